/* SPDX-License-Identifier: Apache-2.0 */
/* storage/shard_log.h on a disk that crashes, fails and fills up at every one
 * of its operations: what was flushed is there once and in order, and what is
 * there beyond that was appended. */
#include "shard_log_kit.h"

#define TURNS 24

static void
assert_whole(kit_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = kit_open(self, err);

    cr_assert_eq(rc, PSD_OK, "%s", psd_error_text(err));
    kit_check(self);
}

/* One life that ends by a crash in operation `op`, and two that follow. false:
 * the work was done before there were so many operations. */
static bool
crash_at(uint64_t seed, uint64_t op)
{
    kit_t kit;
    bool crashed = false;

    kit_begin(&kit, seed, 1500);
    sim_disk_plan(kit.sim, op, 1, SIM_DISK_CRASH);
    if (kit_open(&kit, NULL) == PSD_OK) {
        (void)!kit_work(&kit, seed, TURNS);
    }
    crashed = sim_disk_crashed(kit.sim);
    ps_shard_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    assert_whole(&kit);
    cr_assert_eq(kit_work(&kit, seed + 1, 4), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    ps_shard_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    assert_whole(&kit);
    kit_end(&kit);
    return crashed;
}

Test(shard_log_faults, a_crash_at_any_operation_loses_nothing_flushed)
{
    size_t n_crashes = 0;

    for (uint64_t seed = 1; seed <= 25; seed++) {
        for (uint64_t op = 0; crash_at(seed, op); op++) {
            n_crashes++;
        }
    }
    cr_assert_gt(n_crashes, 1000);
}

/* A crash while it recovers from a crash. */
Test(shard_log_faults, a_crash_while_reading_changes_nothing)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        kit_t kit;

        kit_begin(&kit, seed, 1500);
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        cr_assert_eq(kit_work(&kit, seed, TURNS), PSD_OK);
        ps_shard_log_close(&kit.log);
        sim_disk_restart(kit.sim);
        for (uint64_t op = 0; op < 4; op++) {
            sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + op, 1,
                          SIM_DISK_CRASH);
            if (kit_open(&kit, NULL) == PSD_OK) {
                kit_check(&kit);
            }
            ps_shard_log_close(&kit.log);
            sim_disk_restart(kit.sim);
        }
        assert_whole(&kit);
        kit_end(&kit);
    }
}

/* Works on although calls fail; what waits is tried again. */
static void
work_through(kit_t *self, uint64_t seed)
{
    ps_rng_t rng = {seed};

    for (size_t turn = 0; turn < TURNS; turn++) {
        uint32_t partition = (uint32_t)ps_rng_below(&rng, KIT_PARTITIONS);

        cr_assert_eq(kit_append(self, partition), PSD_OK);
        if (ps_rng_below(&rng, 3) == 0) {
            (void)!ps_shard_log_write(self->log, NULL);
        } else {
            (void)!kit_flush(self);
        }
    }
}

/* Operations op .. op + times - 1 fail; then the power goes at once. */
static bool
fail_at(uint64_t seed, uint64_t op, uint64_t times, bool only_flushes)
{
    kit_t kit;
    bool more = false;

    kit_begin(&kit, seed, 1500);
    cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
    sim_disk_only_flushes(kit.sim, only_flushes);
    sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + op, times, SIM_DISK_FAIL);
    op += sim_disk_ops(kit.sim);
    work_through(&kit, seed);
    more = sim_disk_ops(kit.sim) > op;
    ps_shard_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    assert_whole(&kit);
    kit_end(&kit);
    return more;
}

Test(shard_log_faults, any_call_that_fails_is_survived)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        for (uint64_t times = 1; times <= 9; times += 4) {
            for (uint64_t op = 0; fail_at(seed, op, times, false); op++) {
            }
        }
    }
}

/* What a failed flush left out is never persisted by a later one, which this
 * disk takes care of; so it has to be written again. */
Test(shard_log_faults, a_failed_flush_is_not_believed_later)
{
    for (uint64_t seed = 1; seed <= 25; seed++) {
        for (uint64_t times = 1; times <= 7; times += 3) {
            for (uint64_t op = 0; fail_at(seed, op, times, true); op++) {
            }
        }
    }
}

/* Fails until time comes, then everything that waited is flushed. */
Test(shard_log_faults, goes_on_by_itself_after_failures)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        kit_t kit;

        kit_begin(&kit, seed, 1500);
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        cr_assert_eq(kit_work(&kit, seed, 5), PSD_OK);
        sim_disk_plan(kit.sim, sim_disk_ops(kit.sim), 40, SIM_DISK_FAIL);
        for (uint32_t i = 0; i < 100; i++) {
            cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
            (void)!kit_flush(&kit);
        }
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        ps_shard_log_close(&kit.log);
        sim_disk_restart(kit.sim);
        assert_whole(&kit);
        kit_end(&kit);
    }
}

/* Flushes fail, and nothing else: every attempt makes a segment. */
Test(shard_log_faults, attempts_leave_no_heap_of_empty_segments)
{
    kit_t kit;

    kit_begin(&kit, 1, 1500);
    cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
    cr_assert_eq(kit_append(&kit, 0), PSD_OK);
    for (uint32_t i = 0; i < 50; i++) {
        cr_assert_eq(ps_shard_log_write(kit.log, NULL), PSD_OK);
        sim_disk_plan(kit.sim, sim_disk_ops(kit.sim), 1, SIM_DISK_FAIL);
        cr_assert_eq(kit_flush(&kit), PSD_IO);
    }
    cr_assert_eq(sim_disk_count(kit.sim), 2);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    ps_shard_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    assert_whole(&kit);
    kit_end(&kit);
}

/* psd ends without a flush, is started again and has read; then the power goes.
 */
Test(shard_log_faults, what_was_read_is_flushed)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        kit_t kit;

        kit_begin(&kit, seed, 1 << 20);
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        for (uint32_t i = 0; i < 9; i++) {
            cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
        }
        cr_assert_eq(ps_shard_log_write(kit.log, NULL), PSD_OK);
        ps_shard_log_close(&kit.log);
        for (size_t i = 0; i < 2; i++) {
            assert_whole(&kit);
            cr_assert_eq(kit.seen[0], 3);
            ps_shard_log_close(&kit.log);
            sim_disk_restart(kit.sim);
        }
        kit_end(&kit);
    }
}

/* The same where a flush had failed, and nothing worked any more until psd
 * ended: of what it left in the system's memory a later flush says nothing. */
Test(shard_log_faults, what_was_read_behind_a_failed_flush_is_written_again)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        uint64_t seen = 0;
        kit_t kit;

        kit_begin(&kit, seed, 1 << 20);
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        for (uint32_t i = 0; i < 18; i++) {
            cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
            if (i == 8) {
                cr_assert_eq(kit_flush(&kit), PSD_OK);
            }
        }
        cr_assert_eq(ps_shard_log_write(kit.log, NULL), PSD_OK);
        sim_disk_plan(kit.sim, sim_disk_ops(kit.sim), 100, SIM_DISK_FAIL);
        cr_assert_eq(kit_flush(&kit), PSD_IO);
        ps_shard_log_close(&kit.log);
        sim_disk_plan(kit.sim, sim_disk_ops(kit.sim), 0, SIM_DISK_SOUND);
        assert_whole(&kit);
        seen = kit.seen[0];
        cr_assert_eq(seen, 6);
        ps_shard_log_close(&kit.log);
        sim_disk_restart(kit.sim);
        assert_whole(&kit);
        cr_assert_eq(kit.seen[0], seen);
        kit_end(&kit);
    }
}

Test(shard_log_faults, a_full_disk_is_told_and_left_behind)
{
    for (uint64_t room = 0; room < 1200; room += 7) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        kit_t kit;
        uint64_t used = 0;

        kit_begin(&kit, room, 900);
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        cr_assert_eq(kit_work(&kit, room, 5), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        for (size_t i = 0; i < sim_disk_count(kit.sim); i++) {
            used += sim_disk_content(kit.sim, sim_disk_name(kit.sim, i)).size;
        }
        sim_disk_set_capacity(kit.sim, used + room);
        for (uint32_t i = 0; i < 15; i++) {
            cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
        }
        cr_assert_eq(ps_shard_log_flush(kit.log, err), PSD_LIMIT);
        cr_assert_not_null(strstr(psd_error_text(err), "No space left"));
        cr_assert_eq(kit_append(&kit, 0), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_LIMIT);
        cr_assert_gt(ps_shard_log_waiting(kit.log), 0);
        if (room % 2 == 0) { /* a crash before there is room */
            ps_shard_log_close(&kit.log);
            sim_disk_restart(kit.sim);
            sim_disk_set_capacity(kit.sim, UINT64_MAX);
            assert_whole(&kit);
        }
        sim_disk_set_capacity(kit.sim, UINT64_MAX);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        ps_shard_log_close(&kit.log);
        sim_disk_restart(kit.sim);
        assert_whole(&kit);
        kit_end(&kit);
    }
}

/* A crash in the midst of a cut leaves a log without gaps. */
Test(shard_log_faults, a_crash_while_cutting_leaves_no_gap)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        for (uint64_t op = 0; op < 8; op++) {
            PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
            ps_shard_log_args_t args;
            kit_t kit;

            kit_begin(&kit, seed, 700);
            cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
            cr_assert_eq(kit_work(&kit, seed, TURNS), PSD_OK);
            sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + op, 1,
                          SIM_DISK_CRASH);
            (void)!ps_shard_log_cut(kit.log, 6, NULL);
            ps_shard_log_close(&kit.log);
            sim_disk_restart(kit.sim);
            args = kit_args(&kit);
            cr_assert_eq(ps_shard_log_open(&args, &kit.log, err), PSD_OK, "%s",
                         psd_error_text(err));
            kit_end(&kit);
        }
    }
}
