/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_log.h on a disk that crashes, fails and fills up at
 * every one of its operations: what was flushed is there, what was cut is not,
 * and term and vote never go back. */
#include "registry_log_kit.h"
#include "support/seeds.h"

/* A history with every call, in about 70 operations of the disk; ends with the
 * first call that fails. */
static psd_status_t step(kit_t *self, size_t i)
{
    switch (i) {
    case 0:
        return kit_set_term(self, 1, 77);
    case 1:
    case 2:
    case 4:
    case 8:
        return kit_append(self, 3);
    case 3:
    case 5:
    case 9:
    case 12:
    case 17:
        return kit_flush(self);
    case 6:
        return kit_set_term(self, 2, 0);
    case 7: /* into a sealed segment */
        return kit_cut_tail(self, 4);
    case 10:
    case 13:
        return kit_append(self, 4);
    case 11: /* of the last segment, not flushed */
        return kit_cut_tail(self, self->now.last - 1);
    case 14:
        return kit_cut_head(self, 9);
    case 15: /* as low as the first segment */
        return kit_reset(self, self->now.first);
    case 16:
        return kit_append(self, 2);
    case 18:
        return kit_set_lineage(self, 3);
    default:
        return kit_set_term(self, 3, 78);
    }
}

#define STEPS 20

static psd_status_t run(kit_t *self)
{
    psd_status_t rc = kit_create(self, 1) ? PSD_OK : PSD_IO;

    for (size_t i = 0; i < STEPS && rc == PSD_OK; i++) {
        rc = step(self, i);
    }
    return rc;
}

/* The next start; a log that was never made whole is made now. */
static void start(kit_t *self)
{
    ps_registry_log_args_t args = kit_args(self);

    ps_registry_log_close(&self->log);
    if (self->now.term == 0 && self->now.last == 0 &&
        ps_registry_log_open(&args, &self->log, NULL) == PSD_OK && self->log == NULL) {
        cr_assert(kit_create(self, 1));
        return;
    }
    ps_registry_log_close(&self->log);
    kit_must_open(self);
}

/* Works on, loses the power, and has all of it. */
static void work_on(kit_t *self)
{
    cr_assert_eq(kit_set_term(self, self->now.term + 1, 0), PSD_OK);
    cr_assert_eq(kit_append(self, 4), PSD_OK);
    cr_assert_eq(kit_flush(self), PSD_OK);
    ps_registry_log_close(&self->log);
    sim_disk_restart(self->sim);
    kit_must_open(self);
}

static bool crash_at(uint64_t seed, uint64_t op)
{
    kit_t kit;
    bool crashed = false;

    kit_begin(&kit, seed, 700);
    sim_disk_plan(kit.sim, op, 1, SIM_DISK_CRASH);
    (void)!run(&kit);
    crashed = sim_disk_crashed(kit.sim);
    ps_registry_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    start(&kit);
    work_on(&kit);
    kit_end(&kit);
    return crashed;
}

Test(registry_log_faults, a_crash_at_any_operation_loses_nothing_flushed)
{
    size_t n_crashes = 0;

    for (uint64_t seed = 1; seed <= seeds_of(300); seed++) {
        for (uint64_t op = 0; crash_at(seed, op); op++) {
            n_crashes++;
        }
    }
    cr_assert_gt(n_crashes, seeds_of(300) * 60);
}

/* A crash, and another one in each operation of the start after it. */
static bool crash_twice(uint64_t seed, uint64_t op, uint64_t again)
{
    kit_t kit;
    bool crashed = false;

    kit_begin(&kit, seed, 700);
    sim_disk_plan(kit.sim, op, 1, SIM_DISK_CRASH);
    (void)!run(&kit);
    ps_registry_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + again, 1, SIM_DISK_CRASH);
    (void)!kit_open(&kit, NULL);
    crashed = sim_disk_crashed(kit.sim);
    ps_registry_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    start(&kit);
    work_on(&kit);
    kit_end(&kit);
    return crashed;
}

Test(registry_log_faults, a_crash_while_opening_after_a_crash)
{
    size_t n_crashes = 0;

    for (uint64_t seed = 1; seed <= seeds_of(20); seed++) {
        /* The log is whole from there on. */
        for (uint64_t op = 20; op < 90; op++) {
            for (uint64_t again = 0; crash_twice(seed, op, again); again++) {
                n_crashes++;
            }
        }
    }
    cr_assert_gt(n_crashes, seeds_of(20) * 70);
}

/* Operations op .. op + times - 1 fail; the log is opened again, in the same
 * life of the machine, or after a loss of power. */
static bool fail_at(uint64_t seed, uint64_t op, uint64_t times, bool only_flushes)
{
    kit_t kit;
    bool more = false;

    kit_begin(&kit, seed, 700);
    sim_disk_only_flushes(kit.sim, only_flushes);
    sim_disk_plan(kit.sim, op, times, SIM_DISK_FAIL);
    if (run(&kit) != PSD_OK) {
        ps_registry_log_close(&kit.log);
        if (kit.now.term > 0 && seed % 2 == 0 && kit_open(&kit, NULL) == PSD_OK) {
            /* What it has now is flushed, whatever failed before. */
            (void)!kit_append(&kit, 2);
        }
    }
    more = sim_disk_ops(kit.sim) > op;
    ps_registry_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    start(&kit);
    work_on(&kit);
    kit_end(&kit);
    return more;
}

Test(registry_log_faults, any_call_that_fails_is_survived)
{
    for (uint64_t seed = 1; seed <= seeds_of(60); seed++) {
        for (uint64_t times = 1; times <= 9; times += 4) {
            for (uint64_t op = 0; fail_at(seed, op, times, false); op++) {
            }
        }
    }
}

Test(registry_log_faults, a_failed_flush_is_not_believed_later)
{
    for (uint64_t seed = 1; seed <= seeds_of(100); seed++) {
        for (uint64_t times = 1; times <= 7; times += 3) {
            for (uint64_t op = 0; fail_at(seed, op, times, true); op++) {
            }
        }
    }
}

#define SEGMENT KIT_DIR "/entries-00000000000000000001"

/* Three flushes, and the power goes. */
static void end_by_power(kit_t *self, uint64_t seed)
{
    kit_begin(self, seed, 1 << 20);
    cr_assert(kit_create(self, 1));
    cr_assert_eq(kit_set_term(self, 1, 77), PSD_OK);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(kit_append(self, 3), PSD_OK);
        cr_assert_eq(kit_flush(self), PSD_OK);
    }
    ps_registry_log_close(&self->log);
    sim_disk_restart(self->sim);
}

static bool spoil_at(uint64_t seed, uint64_t op)
{
    bool crashed = false;
    kit_t kit;

    end_by_power(&kit, seed);
    sim_disk_spoil(kit.sim, SEGMENT);
    sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + op, 1, SIM_DISK_CRASH);
    (void)!kit_open(&kit, NULL);
    crashed = sim_disk_crashed(kit.sim);
    ps_registry_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    kit_must_open(&kit);
    kit_end(&kit);
    return crashed;
}

/* A start wrote the entries of the last flush again where they are. When the power went
 * meanwhile, a disk that spoils what it is writing had lost them. */
Test(registry_log_faults, a_crash_while_it_is_written_again_spoils_nothing)
{
    for (uint64_t seed = 1; seed <= seeds_of(30); seed++) {
        uint64_t op = 0;

        while (spoil_at(seed, op)) {
            op++;
        }
        cr_assert_gt(op, 3);
    }
}

Test(registry_log_faults, a_start_needs_no_room_for_what_it_writes_again)
{
    for (uint64_t room = 0; room < 2000; room += 50) {
        kit_t kit;

        end_by_power(&kit, room);
        sim_disk_set_capacity(kit.sim, sim_disk_bytes(kit.sim) + room);
        for (size_t i = 0; i < 2; i++) {
            kit_must_open(&kit);
            cr_expect_eq(sim_disk_count(kit.sim), 3);
            ps_registry_log_close(&kit.log);
            sim_disk_restart(kit.sim);
        }
        kit_end(&kit);
    }
}

/* ---- any history ---- */

static psd_status_t any_call(kit_t *self, ps_rng_t *rng)
{
    const kit_model_t *now = &self->now;
    uint64_t n = now->last - now->first + 1;

    switch (ps_rng_below(rng, 16)) {
    case 0:
        return kit_set_term(self, now->term + 1, ps_rng_below(rng, 3));
    case 1:
        return kit_set_term(self, now->term, now->vote > 0 ? now->vote : 5);
    case 2:
        return kit_cut_tail(self, now->last + 2 - ps_rng_below(rng, n < 4 ? n + 1 : 5));
    case 3:
        return kit_cut_tail(self, now->first + ps_rng_below(rng, n + 1));
    case 4:
    case 5:
        return kit_cut_head(self, now->first + ps_rng_below(rng, n + 2));
    case 6:
        return ps_rng_below(rng, 4) > 0 ? PSD_OK
                                        : kit_reset(self, now->first + ps_rng_below(rng, n + 10));
    case 7:
        return kit_set_lineage(self, (uint8_t)ps_rng_below(rng, 256));
    case 8:
    case 9:
    case 10:
        return kit_flush(self);
    default:
        return kit_append(self, 1 + ps_rng_below(rng, 4));
    }
}

/* Something is about to go wrong, or not. */
static void any_fault(kit_t *self, ps_rng_t *rng)
{
    uint64_t op = sim_disk_ops(self->sim) + ps_rng_below(rng, 12);

    sim_disk_set_capacity(self->sim, UINT64_MAX);
    sim_disk_plan(self->sim, 0, 0, SIM_DISK_SOUND);
    sim_disk_only_flushes(self->sim, ps_rng_below(rng, 2) == 0);
    switch (ps_rng_below(rng, 4)) {
    case 0:
        sim_disk_plan(self->sim, op, 1, SIM_DISK_CRASH);
        break;
    case 1:
        sim_disk_plan(self->sim, op, 1 + ps_rng_below(rng, 3), SIM_DISK_FAIL);
        break;
    case 2:
        sim_disk_set_capacity(self->sim, sim_disk_bytes(self->sim) + ps_rng_below(rng, 3000));
        break;
    default:
        break;
    }
}

/* Opens it again, by any way there; a start may fail, too. */
static void any_start(kit_t *self, ps_rng_t *rng)
{
    ps_registry_log_close(&self->log);
    for (size_t i = 0; i < 3 && self->log == NULL; i++) {
        if (sim_disk_crashed(self->sim) || ps_rng_below(rng, 2) == 0) {
            sim_disk_restart(self->sim);
        }
        (void)!kit_open(self, NULL);
    }
    if (self->log == NULL) {
        sim_disk_restart(self->sim);
        sim_disk_plan(self->sim, 0, 0, SIM_DISK_SOUND);
        sim_disk_set_capacity(self->sim, UINT64_MAX);
        kit_must_open(self);
    }
}

Test(registry_log_faults, any_history_fits_the_model)
{
    size_t n_starts = 0;

    for (uint64_t seed = 1; seed <= seeds_of(150); seed++) {
        ps_rng_t rng = {seed};
        kit_t kit;

        kit_begin(&kit, seed, 200 + ps_rng_below(&rng, 3000));
        cr_assert(kit_create(&kit, 1 + ps_rng_below(&rng, 50)));
        for (size_t turn = 0; turn < 300; turn++) {
            psd_status_t rc = PSD_OK;

            if (turn % 16 == 0) {
                any_fault(&kit, &rng);
            }
            rc = any_call(&kit, &rng);
            if (rc == PSD_LIMIT && !ps_registry_log_is_broken(kit.log)) {
                kit_forget(&kit);
            } else if (rc != PSD_OK || ps_rng_below(&rng, 20) == 0) {
                any_start(&kit, &rng);
                n_starts++;
            }
        }
        kit_end(&kit);
    }
    cr_assert_gt(n_starts, seeds_of(150) * 10);
}
