/* SPDX-License-Identifier: Apache-2.0 */
/* A copy that began anew: what its log and snapshots are worth at a start. */
#include "storage/log/journal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/shard/shard_recover.h"
#include "protocol/shard/shard_state.h"
#include "support/sim_disk.h"

#define TABLE 7

static sim_disk_t *sim;
static ps_journal_t *journal;
static ps_shard_t *shard;
static ps_table_spec_t spec;
static uint64_t segment_bytes;

static void new_shard(ps_shard_t **ret)
{
    const ps_shard_args_t args = {.incarnation = 9,
                                  .credit_requests = 8,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 8,
                                  .disk = true};

    cr_assert_eq(ps_shard_new(&args, ret, NULL), PSD_OK);
}

/* A start: what the disk has is read into a new shard. */
static void start(void)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_journal_found_t found;
    const ps_journal_args_t args = {.disk = sim_disk_face(sim),
                                    .dir = "data/log-0",
                                    .cluster = {{1, 2}},
                                    .node = "n1",
                                    .n_shards = 1,
                                    .segment_bytes = segment_bytes};

    ps_journal_close(&journal);
    ps_shard_destroy(&shard);
    sim_disk_restart(sim);
    new_shard(&shard);
    cr_assert_eq(ps_journal_open(&args, &journal, err), PSD_OK);
    cr_assert_eq(ps_journal_recover(journal, shard, NULL, NULL, &found, err), PSD_OK, "%s",
                 psd_error_text(err));
}

static void begin_on(uint64_t seed, uint64_t bytes)
{
    sim = sim_disk_new(seed);
    segment_bytes = bytes;
    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "w");
    spec.n_rows = 4;
    spec.n_partitions = 1;
    spec.n_col_slices = 1;
    spec.ack = PS_ACK_DISK;
    start();
    cr_assert_eq(ps_journal_put_table(journal, TABLE, &spec, NULL), PSD_OK);
}

static void begin(void)
{
    begin_on(1, 1 << 16);
}

static void finish(void)
{
    ps_journal_close(&journal);
    ps_shard_destroy(&shard);
    sim_disk_destroy(&sim);
}

TestSuite(journal, .init = begin, .fini = finish);

static void append(ps_record_kind_t kind, uint64_t lsn, uint64_t epoch, uint64_t life)
{
    const ps_record_t record = {
        .kind = kind, .table = TABLE, .lsn = lsn, .epoch = epoch, .seq = life};

    cr_assert_eq(ps_journal_append(journal, &record, NULL, NULL), PSD_OK);
}

static void append_epochs(uint64_t first, uint64_t last, uint64_t epoch)
{
    for (uint64_t lsn = first; lsn <= last; lsn++) {
        append(PS_RECORD_EPOCH, lsn, epoch, 0);
    }
}

/* Flushes; the lsn that is told of the partition, 0: none is. */
static uint64_t flush(uint64_t *ret_life)
{
    const ps_position_t *positions = NULL;
    size_t n = 0;

    cr_assert_eq(ps_journal_flush(journal, &positions, &n, NULL), PSD_OK);
    cr_assert_leq(n, 1);
    if (n > 0 && ret_life != NULL) {
        *ret_life = positions[0].life;
    }
    return n > 0 ? positions[0].lsn : 0;
}

/* A snapshot of the partition as it is behind `lsn` records of `epoch`. */
static psd_status_t snapshot(uint64_t lsn, uint64_t epoch, uint64_t life)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *state = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = NULL;
    PSD_AUTO(ps_shard_destroy) ps_shard_t *other = NULL;
    ps_piece_t piece = {
        .table = TABLE, .first_lsn = lsn, .lsn = lsn, .life = life, .is_first = true};
    const ps_body_t none = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    const ps_local_table_t *table = NULL;
    ps_store_cursor_t cursor = {0};
    bool done = false;
    psd_status_t rc = PSD_OK;

    new_shard(&other);
    cr_assert_eq(ps_shard_recover_table(other, TABLE, &spec, NULL), PSD_OK);
    for (uint64_t i = 1; i <= lsn; i++) {
        const ps_record_t record = {
            .kind = PS_RECORD_EPOCH, .table = TABLE, .lsn = i, .epoch = epoch};

        cr_assert_eq(ps_shard_recover_record(other, &record, &none, NULL), PSD_OK);
    }
    table = ps_map_get(&other->step.tables, TABLE);
    cr_assert_not_null(table);
    state = ps_partition_give_state(table->partitions[0]);
    cr_assert_not_null(state);
    cr_assert_eq(ps_partition_give_rows(&other->step, table->partitions[0], &cursor, 1 << 20, &rows,
                                        &done, NULL),
                 PSD_OK);
    cr_assert(done);
    rc = ps_journal_piece(journal, &piece, state->span, NULL);
    piece.is_first = false;
    piece.is_last = true;
    return rc == PSD_OK ? ps_journal_piece(journal, &piece, rows->span, NULL) : rc;
}

static size_t n_segments(void)
{
    size_t n = 0;

    for (size_t i = 0; i < sim_disk_count(sim); i++) {
        n += strstr(sim_disk_name(sim, i), ".seg") != NULL ? 1 : 0;
    }
    return n;
}

static uint64_t recovered(void)
{
    return ps_shard_recover_lsn(shard, TABLE, 0);
}

Test(journal, a_life_without_its_snapshot_is_not_read)
{
    append_epochs(1, 5, 1);
    cr_expect_eq(flush(NULL), 5);
    append(PS_RECORD_ANEW, 9, 1, 1);
    append_epochs(10, 12, 1);
    cr_expect_eq(flush(NULL), 0, "nothing of it counts as flushed");
    start();
    cr_expect_eq(recovered(), 0);
    start();
    cr_expect_eq(recovered(), 0, "nor the next time");
}

Test(journal, counts_as_flushed_with_its_own_snapshot)
{
    uint64_t life = 0;

    append_epochs(1, 5, 1);
    append(PS_RECORD_ANEW, 9, 1, 3);
    append_epochs(10, 10, 1);
    cr_expect_eq(flush(NULL), 0);
    cr_assert_eq(snapshot(9, 1, 3), PSD_OK);
    cr_expect_eq(flush(&life), 10);
    cr_expect_eq(life, 3);
    start();
    cr_expect_eq(recovered(), 10);
    append_epochs(11, 11, 1);
    cr_expect_eq(flush(&life), 11);
    cr_expect_eq(life, 3, "it goes on");
}

/* Its primary has less than the copy had, under a newer epoch. */
Test(journal, records_of_an_earlier_life_are_passed_over)
{
    append_epochs(1, 8, 1);
    append(PS_RECORD_ANEW, 5, 2, 1);
    append_epochs(6, 7, 2);
    cr_assert_eq(snapshot(5, 2, 1), PSD_OK);
    cr_expect_eq(flush(NULL), 7);
    start();
    cr_expect_eq(recovered(), 7);
}

/* The same, and the older snapshot lies behind the newer one's lsn. */
Test(journal, a_snapshot_of_an_earlier_life_is_not_taken)
{
    append_epochs(1, 8, 1);
    cr_assert_eq(snapshot(8, 1, 0), PSD_OK);
    cr_assert(sim_disk_has(sim, "data/log-0/snap-7-0-0-8.rows"));
    append(PS_RECORD_ANEW, 5, 2, 1);
    append_epochs(6, 7, 2);
    cr_expect_eq(flush(NULL), 0);
    start(); /* before the snapshot: the older one leads to nothing */
    cr_expect_eq(recovered(), 0);
    append(PS_RECORD_ANEW, 5, 2, 2);
    cr_assert_eq(snapshot(5, 2, 2), PSD_OK);
    cr_expect_not(sim_disk_has(sim, "data/log-0/snap-7-0-0-8.rows"));
    append_epochs(6, 6, 2);
    cr_expect_eq(flush(NULL), 6);
    start();
    cr_expect_eq(recovered(), 6, "record 7 is of another life");
}

Test(journal, a_life_that_begins_empty_has_all_in_its_log)
{
    append_epochs(1, 8, 1);
    cr_assert_eq(snapshot(8, 1, 0), PSD_OK);
    append(PS_RECORD_ANEW, 0, 0, 1);
    append_epochs(1, 3, 2);
    cr_expect_eq(flush(NULL), 3);
    start();
    cr_expect_eq(recovered(), 3);
}

/* It was made where nothing was, and then took a state in a move. */
Test(journal, a_life_of_two_beginnings_has_its_snapshot)
{
    append(PS_RECORD_ANEW, 0, 0, 1);
    append(PS_RECORD_ANEW, 2, 2, 2);
    cr_assert_eq(snapshot(2, 2, 2), PSD_OK);
    append_epochs(3, 5, 3);
    cr_expect_eq(flush(NULL), 5);
    start();
    cr_expect_eq(recovered(), 5);
    append_epochs(6, 6, 3);
    cr_expect_eq(flush(NULL), 6);
    start();
    cr_expect_eq(recovered(), 6);
}

/* A table beside it, whose going cuts the log. */
static void drop_another(void)
{
    const ps_record_t record = {.kind = PS_RECORD_EPOCH, .table = TABLE + 1, .lsn = 1, .epoch = 1};

    cr_assert_eq(ps_journal_append(journal, &record, NULL, NULL), PSD_OK);
    cr_assert_eq(ps_journal_drop_table(journal, TABLE + 1, NULL), PSD_OK);
}

/* Its snapshot lies behind the records of the life that counts. */
static void begin_empty_behind_a_snapshot(void)
{
    append_epochs(1, 8, 1);
    cr_assert_eq(snapshot(8, 1, 0), PSD_OK);
    append(PS_RECORD_ANEW, 0, 0, 1);
    for (uint64_t lsn = 1; lsn <= 7; lsn++) {
        append_epochs(lsn, lsn, 2);
        cr_expect_eq(flush(NULL), lsn);
    }
}

Test(journal, a_cut_leaves_a_life_without_a_snapshot)
{
    segment_bytes = 256;
    start();
    begin_empty_behind_a_snapshot();
    drop_another();
    start();
    cr_expect_eq(recovered(), 7, "not 8, of the life before");
}

Test(journal, a_cut_behind_a_restart_leaves_it_too)
{
    segment_bytes = 256;
    start();
    begin_empty_behind_a_snapshot();
    start();
    cr_expect_eq(recovered(), 7);
    drop_another();
    start();
    cr_expect_eq(recovered(), 7, "not 8, of the life before");
}

/* A start finds a life that had no snapshot yet, cuts the log, and ends before
 * anybody says what becomes of the partition. */
Test(journal, a_start_keeps_the_mark_of_a_life_without_a_snapshot)
{
    segment_bytes = 256;
    start();
    append(PS_RECORD_ANEW, 3, 1, 1);
    for (uint64_t lsn = 4; lsn <= 9; lsn++) {
        append_epochs(lsn, lsn, 1);
        cr_expect_eq(flush(NULL), 0);
    }
    for (int i = 0; i < 3; i++) {
        start();
        cr_expect_eq(recovered(), 0);
    }
    append(PS_RECORD_LEAVE, 9, 1, 1);
    cr_expect_eq(flush(NULL), 0);
    cr_assert_eq(ps_journal_tidy(journal, NULL), PSD_OK);
    cr_expect_eq(n_segments(), 1);
    start();
    cr_expect_eq(recovered(), 0);
}

/* It began anew again while pieces of its snapshot were on their way. */
Test(journal, pieces_of_an_earlier_life_are_given_up)
{
    append(PS_RECORD_ANEW, 5, 2, 1);
    append(PS_RECORD_ANEW, 9, 3, 2);
    cr_assert_eq(snapshot(5, 2, 1), PSD_OK);
    cr_expect_eq(flush(NULL), 0);
    cr_expect_not(sim_disk_has(sim, "data/log-0/snap-7-0-1-5.rows"));
}

/* ---- a partition leaves ---- */

/* Records one by one, so that each has a segment of its own. */
static void fill_segments(uint64_t first, uint64_t last, uint64_t epoch)
{
    for (uint64_t lsn = first; lsn <= last; lsn++) {
        append_epochs(lsn, lsn, epoch);
        cr_expect_eq(flush(NULL), lsn);
    }
}

Test(journal, a_partition_that_has_left_keeps_nothing)
{
    segment_bytes = 256;
    start();
    append(PS_RECORD_ANEW, 0, 0, 1);
    fill_segments(1, 9, 1);
    cr_assert_eq(snapshot(4, 1, 1), PSD_OK);
    cr_expect_gt(n_segments(), 3);
    append(PS_RECORD_LEAVE, 9, 1, 1);
    cr_expect_eq(flush(NULL), 0, "nothing of it is told");
    cr_assert_eq(ps_journal_tidy(journal, NULL), PSD_OK);
    cr_expect_eq(n_segments(), 1);
    cr_expect_not(sim_disk_has(sim, "data/log-0/snap-7-0-1-4.rows"));
    start();
    cr_expect_eq(recovered(), 0);
}

Test(journal, a_start_knows_who_has_left)
{
    append(PS_RECORD_ANEW, 0, 0, 1);
    append_epochs(1, 6, 1);
    cr_assert_eq(snapshot(4, 1, 1), PSD_OK);
    append(PS_RECORD_LEAVE, 6, 1, 1);
    cr_expect_eq(flush(NULL), 0);
    start();
    cr_expect_eq(recovered(), 0);
    cr_expect_not(sim_disk_has(sim, "data/log-0/snap-7-0-1-4.rows"));
}

Test(journal, files_that_stay_keep_the_log_until_they_are_gone)
{
    segment_bytes = 256;
    start();
    append(PS_RECORD_ANEW, 0, 0, 1);
    fill_segments(1, 9, 1);
    cr_assert_eq(snapshot(4, 1, 1), PSD_OK);
    append(PS_RECORD_LEAVE, 9, 1, 1);
    (void)flush(NULL);
    sim_disk_plan(sim, sim_disk_ops(sim), 1, SIM_DISK_FAIL);
    cr_assert_eq(ps_journal_tidy(journal, NULL), PSD_IO);
    cr_expect_gt(n_segments(), 3);
    cr_assert_eq(ps_journal_tidy(journal, NULL), PSD_OK);
    cr_expect_eq(n_segments(), 1);
}

/* What a start may find. A mark that is not flushed may be lost or not. */
typedef struct hope {
    uint64_t told;     /* of the life that is flushed */
    uint64_t appended; /* to it */
    uint64_t more;     /* appended behind a mark that is not flushed */
    bool has_mark;     /* … which there is */
    bool is_awaited;   /* the life that the mark begins has no snapshot yet */
} hope_t;

static void expect_hope(const hope_t *hope, uint64_t op)
{
    uint64_t lsn = recovered();
    bool is_old = lsn >= hope->told && lsn <= hope->appended;
    bool is_new = hope->has_mark && lsn <= hope->more;

    cr_expect(is_old || is_new,
              "crash in operation %llu: %llu was found; told %llu, appended "
              "%llu",
              (unsigned long long)op, (unsigned long long)lsn, (unsigned long long)hope->told,
              (unsigned long long)hope->appended);
}

static void hope_mark(hope_t *hope, ps_record_kind_t kind, uint64_t lsn, uint64_t life)
{
    append(kind, lsn, lsn > 0 ? life : 0, life);
    hope->has_mark = true;
    hope->is_awaited = kind == PS_RECORD_ANEW && lsn > 0;
    hope->more = 0;
}

static void hope_append(hope_t *hope, uint64_t lsn, uint64_t epoch)
{
    append_epochs(lsn, lsn, epoch);
    hope->appended = hope->has_mark ? hope->appended : lsn;
    hope->more = lsn;
}

/* Flushes and tidies; false: the disk has crashed. */
static bool hope_flush(hope_t *hope)
{
    const ps_position_t *positions = NULL;
    size_t n = 0;

    if (ps_journal_flush(journal, &positions, &n, NULL) != PSD_OK) {
        return false;
    }
    if (hope->has_mark) {
        hope->told = 0;
        hope->appended = hope->is_awaited ? 0 : hope->more;
        hope->has_mark = hope->is_awaited;
    }
    hope->told = n > 0 ? positions[0].lsn : hope->told;
    return ps_journal_tidy(journal, NULL) == PSD_OK;
}

static bool hope_snapshot(hope_t *hope, uint64_t lsn, uint64_t epoch, uint64_t life)
{
    hope->appended = hope->more > hope->appended ? hope->more : hope->appended;
    if (snapshot(lsn, epoch, life) != PSD_OK) {
        return false;
    }
    hope->has_mark = false;
    return hope_flush(hope);
}

static bool fill_hope(hope_t *hope, uint64_t first, uint64_t last, uint64_t epoch)
{
    bool goes = true;

    for (uint64_t lsn = first; goes && lsn <= last; lsn++) {
        hope_append(hope, lsn, epoch);
        goes = hope_flush(hope);
    }
    return goes;
}

/* A partition comes, leaves, comes back with a state, leaves, comes back
 * empty. */
static bool come_and_go(hope_t *hope)
{
    hope_mark(hope, PS_RECORD_ANEW, 0, 1);
    if (!fill_hope(hope, 1, 6, 1) || !hope_snapshot(hope, 4, 1, 1) || !fill_hope(hope, 7, 8, 1)) {
        return false;
    }
    hope_mark(hope, PS_RECORD_LEAVE, 8, 1);
    if (!hope_flush(hope)) {
        return false;
    }
    hope_mark(hope, PS_RECORD_ANEW, 0, 2);
    hope_mark(hope, PS_RECORD_ANEW, 3, 3);
    hope->more = 3;
    hope_append(hope, 4, 3);
    if (!hope_flush(hope) || !hope_snapshot(hope, 3, 3, 3) || !fill_hope(hope, 5, 7, 3)) {
        return false;
    }
    hope_mark(hope, PS_RECORD_LEAVE, 7, 3);
    if (!hope_flush(hope)) {
        return false;
    }
    hope_mark(hope, PS_RECORD_ANEW, 0, 4);
    return fill_hope(hope, 1, 3, 4);
}

/* Whatever was found, a new life can begin, and end. */
static void live_again(void)
{
    append(PS_RECORD_ANEW, 0, 0, 9);
    append_epochs(1, 2, 9);
    cr_expect_eq(flush(NULL), 2);
    start();
    cr_expect_eq(recovered(), 2);
    append(PS_RECORD_LEAVE, 2, 9, 9);
    cr_expect_eq(flush(NULL), 0);
    cr_assert_eq(ps_journal_tidy(journal, NULL), PSD_OK);
    cr_expect_leq(n_segments(), 1);
    start();
    cr_expect_eq(recovered(), 0);
}

static bool crash_in(uint64_t seed, uint64_t op)
{
    hope_t hope = {0};
    uint64_t from = 0;
    bool is_through = false;

    finish();
    begin_on(seed, 256);
    from = sim_disk_ops(sim);
    sim_disk_plan(sim, from + op, 1, SIM_DISK_CRASH);
    is_through = come_and_go(&hope);
    sim_disk_plan(sim, 0, 0, SIM_DISK_SOUND);
    start();
    expect_hope(&hope, op);
    live_again();
    return is_through;
}

Test(journal, a_crash_at_any_step_of_lives_leaves_what_was_told)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        uint64_t op = 0;

        while (!crash_in(seed, op)) {
            op++;
        }
        cr_expect_gt(op, 50, "the sweep has seen all steps");
    }
}
