/* SPDX-License-Identifier: Apache-2.0 */
/* storage/log/shard_log.h on a disk that crashes, fails and fills up at every one
 * of its operations: what was flushed is there once and in order, and what is
 * there beyond that was appended. */
#include "shard_log_kit.h"
#include "support/seeds.h"

#define TURNS 24

static void assert_whole(kit_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = kit_open(self, err);

    cr_assert_eq(rc, PSD_OK, "%s", psd_error_text(err));
    kit_check(self);
}

/* One life that ends by a crash in operation `op`, and two that follow. false:
 * the work was done before there were so many operations. */
static bool crash_at(uint64_t seed, uint64_t op)
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

    for (uint64_t seed = 1; seed <= seeds_of(25); seed++) {
        for (uint64_t op = 0; crash_at(seed, op); op++) {
            n_crashes++;
        }
    }
    cr_assert_gt(n_crashes, seeds_of(1000));
}

/* A crash while it recovers from a crash. */
Test(shard_log_faults, a_crash_while_reading_changes_nothing)
{
    for (uint64_t seed = 1; seed <= seeds_of(100); seed++) {
        kit_t kit;

        kit_begin(&kit, seed, 1500);
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        cr_assert_eq(kit_work(&kit, seed, TURNS), PSD_OK);
        ps_shard_log_close(&kit.log);
        sim_disk_restart(kit.sim);
        for (uint64_t op = 0; op < 4; op++) {
            sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + op, 1, SIM_DISK_CRASH);
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
static void work_through(kit_t *self, uint64_t seed)
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
static bool fail_at(uint64_t seed, uint64_t op, uint64_t times, bool only_flushes)
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
    for (uint64_t seed = 1; seed <= seeds_of(12); seed++) {
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
    for (uint64_t seed = 1; seed <= seeds_of(25); seed++) {
        for (uint64_t times = 1; times <= 7; times += 3) {
            for (uint64_t op = 0; fail_at(seed, op, times, true); op++) {
            }
        }
    }
}

/* Fails until time comes, then everything that waited is flushed. */
Test(shard_log_faults, goes_on_by_itself_after_failures)
{
    for (uint64_t seed = 1; seed <= seeds_of(50); seed++) {
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
    for (uint64_t seed = 1; seed <= seeds_of(30); seed++) {
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

#define SEGMENT KIT_DIR "/log-0000000000000001.seg"
#define NOTE KIT_DIR "/log-flushed"
#define NOTE_SIZE 64 /* of both slots */

/* log-flushed as it was once. */
static void put_note_back(kit_t *self, const uint8_t *note)
{
    for (uint64_t i = 0; i < NOTE_SIZE; i++) {
        uint8_t now = sim_disk_content(self->sim, NOTE).data[i];

        sim_disk_flip(self->sim, NOTE, i, now ^ note[i]);
    }
}

typedef struct remains {
    uint64_t segment_bytes;
    uint64_t large_bytes; /* of the payload of every 7th record */
    bool is_note_old;     /* it tells of the first flush only */
} remains_t;

/* A flush fails, and nothing works any more until psd ends: of what it leaves
 * in the system's memory a later flush says nothing. */
static void end_by_failed_flush(kit_t *self, uint64_t seed, const remains_t *what)
{
    uint8_t note[NOTE_SIZE];

    kit_begin(self, seed, what->segment_bytes);
    self->large_bytes = what->large_bytes;
    cr_assert_eq(kit_open(self, NULL), PSD_OK);
    for (uint32_t i = 0; i < 24; i++) {
        cr_assert_eq(kit_append(self, i % KIT_PARTITIONS), PSD_OK);
        if (i % 3 == 0 && i <= 15) {
            cr_assert_eq(kit_flush(self), PSD_OK);
        }
        if (i == 0) {
            memcpy(note, sim_disk_content(self->sim, NOTE).data, NOTE_SIZE);
        }
    }
    cr_assert_eq(ps_shard_log_write(self->log, NULL), PSD_OK);
    sim_disk_plan(self->sim, sim_disk_ops(self->sim), 100, SIM_DISK_FAIL);
    cr_assert_eq(kit_flush(self), PSD_IO);
    ps_shard_log_close(&self->log);
    sim_disk_plan(self->sim, sim_disk_ops(self->sim), 0, SIM_DISK_SOUND);
    if (what->is_note_old) {
        put_note_back(self, note);
    }
}

/* A start that meets a fault in its operation `op`, one that does not, and then
 * the power goes: what was read once is read again. false: the first start
 * has fewer operations. */
static bool start_behind_failed_flush(uint64_t seed, const remains_t *what, uint64_t op,
                                      sim_disk_fault_t fault)
{
    bool met = false;
    kit_t kit;

    end_by_failed_flush(&kit, seed, what);
    op += sim_disk_ops(kit.sim);
    sim_disk_plan(kit.sim, op, 1, fault);
    if (kit_open(&kit, NULL) == PSD_OK) {
        cr_assert_eq(kit.seen[0], 8);
        kit_check(&kit);
    }
    met = sim_disk_ops(kit.sim) > op;
    ps_shard_log_close(&kit.log);
    sim_disk_plan(kit.sim, 0, 0, SIM_DISK_SOUND);
    if (sim_disk_crashed(kit.sim)) {
        sim_disk_restart(kit.sim);
    }
    assert_whole(&kit);
    ps_shard_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    assert_whole(&kit);
    cr_assert_eq(kit_work(&kit, seed, 4), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    ps_shard_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    assert_whole(&kit);
    kit_end(&kit);
    return met;
}

Test(shard_log_faults, what_was_read_behind_a_failed_flush_is_written_again)
{
    static const remains_t all[] = {{1 << 20, 900, false},
                                    {1 << 20, 900, true},
                                    {700, 400, false},
                                    {700, 400, true},
                                    {64 << 20, 5 << 20, true}};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bool is_large = all[i].large_bytes > 900; /* takes most of the time */
        uint64_t n_seeds = is_large ? 1 : seeds_of(30);
        uint64_t step = is_large ? seeds_less() : 1;

        for (uint64_t seed = 1; seed <= n_seeds; seed++) {
            for (uint64_t op = 0; start_behind_failed_flush(seed, &all[i], op, SIM_DISK_FAIL);
                 op += step) {
                start_behind_failed_flush(seed, &all[i], op, SIM_DISK_CRASH);
            }
        }
    }
}

/* Sees the record that is to be lost, and then it is. */
static psd_status_t see_and_lose(void *context, const ps_record_t *record, const ps_body_t *body,
                                 psd_error_t *err)
{
    kit_t *self = context;

    if (record->partition == KIT_PARTITIONS - 1 && record->lsn == 8) {
        ps_bytes_t bytes = sim_disk_content(self->sim, SEGMENT);

        sim_disk_flip(self->sim, SEGMENT, bytes.size - 1, 1);
    }
    return kit_see(context, record, body, err);
}

/* The system drops what a failed flush has left in its memory when it likes to:
 * what it shows then takes nothing's place. */
Test(shard_log_faults, what_is_gone_when_it_is_written_again_ends_the_start)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const remains_t what = {1 << 20, 900, false};
    ps_shard_log_args_t args;
    size_t size = 0;
    kit_t kit;

    end_by_failed_flush(&kit, 1, &what);
    size = sim_disk_content(kit.sim, SEGMENT).size;
    args = kit_args(&kit);
    cr_assert_eq(ps_shard_log_open(&args, &kit.log, NULL), PSD_OK);
    memset(kit.seen, 0, sizeof kit.seen);
    cr_assert_eq(ps_shard_log_read(kit.log, see_and_lose, &kit, &kit.found, err), PSD_IO);
    cr_expect_not_null(strstr(psd_error_text(err), "log-0000000000000001.seg"), "%s",
                       psd_error_text(err));
    cr_expect_not_null(strstr(psd_error_text(err), "was not a moment later"));
    cr_expect_eq(sim_disk_content(kit.sim, SEGMENT).size, size);
    cr_expect_not(sim_disk_has(kit.sim, SEGMENT ".tmp"));
    ps_shard_log_close(&kit.log);
    assert_whole(&kit); /* without it */
    cr_expect_eq(kit.found.cut_segment, 1);
    cr_expect_eq(kit.seen[KIT_PARTITIONS - 1], 7);
    kit_end(&kit);
}

/* All is flushed, and log-flushed tells of the first flush only, as a loss of power
 * may leave it. */
static void end_with_old_note(kit_t *self, uint64_t seed)
{
    uint8_t note[NOTE_SIZE];

    kit_begin(self, seed, 1 << 20);
    cr_assert_eq(kit_open(self, NULL), PSD_OK);
    for (uint32_t i = 0; i < 24; i++) {
        cr_assert_eq(kit_append(self, i % KIT_PARTITIONS), PSD_OK);
        if (i % 3 == 0 || i == 23) {
            cr_assert_eq(kit_flush(self), PSD_OK);
        }
        if (i == 0) {
            memcpy(note, sim_disk_content(self->sim, NOTE).data, NOTE_SIZE);
        }
    }
    ps_shard_log_close(&self->log);
    sim_disk_restart(self->sim);
    put_note_back(self, note);
}

static bool spoil_at(uint64_t seed, uint64_t op)
{
    bool crashed = false;
    kit_t kit;

    end_with_old_note(&kit, seed);
    sim_disk_spoil(kit.sim, SEGMENT);
    sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + op, 1, SIM_DISK_CRASH);
    (void)!kit_open(&kit, NULL);
    crashed = sim_disk_crashed(kit.sim);
    ps_shard_log_close(&kit.log);
    sim_disk_restart(kit.sim);
    assert_whole(&kit);
    kit_end(&kit);
    return crashed;
}

/* A start wrote flushed records again where they are. When the power went meanwhile, a
 * disk that spoils what it is writing had lost them. */
Test(shard_log_faults, a_crash_while_it_is_written_again_spoils_nothing)
{
    for (uint64_t seed = 1; seed <= seeds_of(10); seed++) {
        uint64_t op = 0;

        while (spoil_at(seed, op)) {
            op++;
        }
        cr_assert_geq(op, 5, "a file, its bytes, a flush, two names");
    }
}

Test(shard_log_faults, a_start_needs_no_room_for_what_it_writes_again)
{
    for (uint64_t room = 0; room < 4000; room += 100) {
        kit_t kit;

        end_with_old_note(&kit, room);
        sim_disk_set_capacity(kit.sim, sim_disk_bytes(kit.sim) + room);
        for (size_t i = 0; i < 2; i++) {
            assert_whole(&kit);
            cr_expect_eq(sim_disk_count(kit.sim), 2);
            ps_shard_log_close(&kit.log);
            sim_disk_restart(kit.sim);
        }
        kit_end(&kit);
    }
}

static psd_status_t see_any(void *context, const ps_record_t *record, const ps_body_t *body,
                            psd_error_t *err)
{
    (void)context;
    (void)record;
    (void)body;
    (void)err;
    return PSD_OK;
}

/* A start that passes over damage, and what is settled behind it. */
static void start_damaged(kit_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_damage_done) ps_damage_t damage = {0};
    ps_shard_log_args_t args = kit_args(self);

    args.damage = &damage;
    cr_assert_eq(ps_shard_log_open(&args, &self->log, NULL), PSD_OK);
    cr_assert_eq(ps_shard_log_read(self->log, see_any, NULL, &self->found, NULL), PSD_OK);
    cr_assert(self->found.is_unsettled);
    cr_assert_eq(ps_shard_log_settle(self->log, err), PSD_OK, "%s", psd_error_text(err));
    ps_shard_log_close(&self->log);
}

/* A bit of a flushed record has changed, and of the last one behind them, which
 * was not, a part is there. */
static void damage_and_tear(uint64_t n_flushed, uint64_t damaged, bool in_size)
{
    uint64_t ends[16];
    kit_t kit;

    kit_begin(&kit, damaged, 1 << 20);
    cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
    for (uint32_t i = 0; i < n_flushed; i++) {
        cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        ends[i] = sim_disk_content(kit.sim, SEGMENT).size;
    }
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(kit_append(&kit, i), PSD_OK);
    }
    cr_assert_eq(ps_shard_log_write(kit.log, NULL), PSD_OK);
    ps_shard_log_close(&kit.log);
    sim_disk_cut(kit.sim, SEGMENT, sim_disk_content(kit.sim, SEGMENT).size - 20);
    sim_disk_flip(kit.sim, SEGMENT, in_size ? ends[damaged - 1] : ends[damaged] - 1, 4);
    start_damaged(&kit);
    start_damaged(&kit);
    sim_disk_restart(kit.sim);
    start_damaged(&kit);
    kit_end(&kit);
}

Test(shard_log_faults, damage_in_front_of_a_torn_tail_is_settled)
{
    for (uint64_t n = 2; n <= 9; n++) {
        for (uint64_t damaged = 1; damaged < n; damaged++) {
            damage_and_tear(n, damaged, true);
            damage_and_tear(n, damaged, false);
        }
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
    for (uint64_t seed = 1; seed <= seeds_of(20); seed++) {
        for (uint64_t op = 0; op < 8; op++) {
            PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
            ps_shard_log_args_t args;
            kit_t kit;

            kit_begin(&kit, seed, 700);
            cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
            cr_assert_eq(kit_work(&kit, seed, TURNS), PSD_OK);
            sim_disk_plan(kit.sim, sim_disk_ops(kit.sim) + op, 1, SIM_DISK_CRASH);
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
