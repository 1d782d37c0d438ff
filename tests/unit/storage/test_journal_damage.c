/* SPDX-License-Identifier: Apache-2.0 */
/* A damaged file costs the partitions in it: every byte of every file flipped,
 * every file cut, and nothing that is left is less than it was. */
#include "storage/log/journal.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/shard/shard_recover.h"
#include "protocol/shard/shard_state.h"
#include "support/fail_alloc.h"
#include "support/sim_disk.h"

#define TABLE 7
#define N 3     /* partitions */
#define FIRST 6 /* records of each in front of the snapshot */
#define LAST 9  /* records of each */
#define DIR "data/log-0"
#define FLUSHED DIR "/log-flushed"

static sim_disk_t *sim;
static ps_journal_t *journal;
static ps_shard_t *shard;
static ps_table_spec_t spec;
static ps_damage_t damage;
static ps_journal_found_t found;

static ps_shard_t *new_shard_or_null(void)
{
    ps_shard_t *made = NULL;
    const ps_shard_args_t args = {.incarnation = 9,
                                  .credit_requests = 8,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 8,
                                  .disk = true};

    return ps_shard_new(&args, &made, NULL) == PSD_OK ? made : NULL;
}

static void new_shard(ps_shard_t **ret)
{
    *ret = new_shard_or_null();
    cr_assert_not_null(*ret);
}

static void stop(void)
{
    ps_journal_close(&journal);
    ps_shard_destroy(&shard);
    ps_damage_done(&damage);
}

static void start(void)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_journal_args_t args = {.disk = sim_disk_face(sim),
                                    .dir = DIR,
                                    .cluster = {{1, 2}},
                                    .node = "n1",
                                    .n_shards = 1,
                                    .segment_bytes = 1024,
                                    .damage = &damage};

    stop();
    new_shard(&shard);
    cr_assert_eq(ps_journal_open(&args, &journal, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_journal_recover(journal, shard, NULL, NULL, &found, err), PSD_OK, "%s",
                 psd_error_text(err));
}

static void append(ps_record_kind_t kind, uint32_t partition, uint64_t lsn, uint64_t epoch)
{
    const ps_record_t record = {
        .kind = kind, .table = TABLE, .partition = partition, .lsn = lsn, .epoch = epoch};

    cr_assert_eq(ps_journal_append(journal, &record, NULL, NULL), PSD_OK);
}

static void flush(void)
{
    const ps_position_t *positions = NULL;
    size_t n = 0;

    cr_assert_eq(ps_journal_flush(journal, &positions, &n, NULL), PSD_OK);
}

/* A snapshot of partition 0 behind record FIRST. */
static void snapshot(void)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *state = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = NULL;
    PSD_AUTO(ps_shard_destroy) ps_shard_t *other = NULL;
    ps_piece_t piece = {.table = TABLE, .first_lsn = FIRST, .lsn = FIRST, .is_first = true};
    const ps_body_t none = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    const ps_local_table_t *table = NULL;
    ps_store_cursor_t cursor = {0};
    bool done = false;

    new_shard(&other);
    cr_assert_eq(ps_shard_recover_table(other, TABLE, &spec, NULL), PSD_OK);
    for (uint64_t i = 1; i <= FIRST; i++) {
        const ps_record_t record = {.kind = PS_RECORD_EPOCH, .table = TABLE, .lsn = i, .epoch = 1};

        cr_assert_eq(ps_shard_recover_record(other, &record, &none, NULL), PSD_OK);
    }
    table = ps_map_get(&other->step.tables, TABLE);
    state = ps_partition_give_state(table->partitions[0]);
    cr_assert_eq(ps_partition_give_rows(&other->step, table->partitions[0], &cursor, 1 << 20, &rows,
                                        &done, NULL),
                 PSD_OK);
    cr_assert(done && state != NULL);
    cr_assert_eq(ps_journal_piece(journal, &piece, state->span, NULL), PSD_OK);
    piece.is_first = false;
    piece.is_last = true;
    cr_assert_eq(ps_journal_piece(journal, &piece, rows->span, NULL), PSD_OK);
}

/* Some segments, a snapshot, a table; partition 2 has been idle in the end. */
static void fill(void)
{
    start();
    cr_assert_eq(ps_journal_put_table(journal, TABLE, &spec, NULL), PSD_OK);
    for (uint64_t lsn = 1; lsn <= LAST; lsn++) {
        for (uint32_t i = 0; i < N; i++) {
            if (i < 2 || lsn < LAST) {
                append(PS_RECORD_EPOCH, i, lsn, 1);
            }
        }
        flush();
        if (lsn == FIRST) {
            snapshot();
        }
    }
    stop();
}

static void begin(void)
{
    sim = sim_disk_new(1);
    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "w");
    spec.n_rows = 12;
    spec.n_partitions = N;
    spec.n_col_slices = 1;
    spec.ack = PS_ACK_DISK;
    fill();
}

static void finish(void)
{
    stop();
    sim_disk_destroy(&sim);
}

static void again(void)
{
    finish();
    begin();
}

TestSuite(journal_damage, .init = begin, .fini = finish);

static uint64_t whole(uint32_t partition)
{
    return partition < 2 ? LAST : LAST - 1;
}

static bool is_lost(uint32_t partition)
{
    return ps_lost_has(damage.lost, damage.n_lost, 0, TABLE, partition);
}

/* Each partition has all of it, or nothing and is told as lost; the number of
 * those. */
static unsigned check(const char *what, const char *file, uint64_t at)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < N; i++) {
        uint64_t lsn = ps_shard_recover_lsn(shard, TABLE, i);

        cr_assert_eq(lsn, is_lost(i) ? 0 : whole(i), "%s %s at %llu: partition %u has %llu", what,
                     file, (unsigned long long)at, i, (unsigned long long)lsn);
        n += is_lost(i) ? 1 : 0;
    }
    return n;
}

static void check_noticed(const char *what, const char *file, uint64_t at)
{
    cr_assert(damage.n_texts > 0 || found.log.note_torn, "%s %s at %llu is not noticed", what, file,
              (unsigned long long)at);
    cr_assert(damage.n_texts == 0 || (strstr(damage.texts[0], file) != NULL &&
                                      strstr(damage.texts[0], "byte") != NULL),
              "%s %s at %llu: %s", what, file, (unsigned long long)at,
              damage.n_texts == 0 ? "" : damage.texts[0]);
    cr_assert_eq(found.is_unsettled, damage.n_texts > 0);
}

static uint64_t size_of(const char *file)
{
    return sim_disk_content(sim, file).size;
}

Test(journal_damage, of_any_byte_costs_what_lies_there)
{
    unsigned n_spared = 0;

    for (size_t i = 0; i < sim_disk_count(sim); i++) {
        char file[256];
        uint64_t size = 0;

        (void)snprintf(file, sizeof file, "%s", sim_disk_name(sim, i));
        size = size_of(file);
        for (uint64_t at = 0; at < size; at++) {
            sim_disk_flip(sim, file, at, (uint8_t)(1U << (at % 8)));
            start();
            check_noticed("a flip of", file, at);
            n_spared += check("a flip of", file, at) < N ? 1 : 0;
            if (strcmp(file, FLUSHED) == 0) {
                again(); /* what is torn there is mended at once */
            } else {
                sim_disk_flip(sim, file, at, (uint8_t)(1U << (at % 8)));
            }
        }
    }
    cr_assert_gt(n_spared, 1000, "it mostly costs some, not all: %u", n_spared);
    start();
    cr_assert_eq(damage.n_texts, 0, "nothing was changed meanwhile");
    cr_assert_eq(check("nothing of", "any", 0), 0);
}

Test(journal_damage, of_any_length_costs_what_lay_there)
{
    for (size_t i = 0; i < sim_disk_count(sim); i++) {
        char file[256];

        (void)snprintf(file, sizeof file, "%s", sim_disk_name(sim, i));
        for (uint64_t size = 0; size < size_of(file); size += 13) {
            sim_disk_cut(sim, file, size);
            start();
            check_noticed("a cut of", file, size);
            (void)check("a cut of", file, size);
            again();
        }
    }
}

/* Beside files of any kind it is damage, and no new log. */
Test(journal_damage, of_a_missing_note_is_a_hole_at_the_end)
{
    static const char *const kinds[] = {".seg", ".rows", ".spec"};

    for (size_t k = 0; k <= sizeof kinds / sizeof kinds[0]; k++) {
        bool all = k == sizeof kinds / sizeof kinds[0];

        sim_disk_drop(sim, FLUSHED);
        for (size_t i = sim_disk_count(sim); !all && i-- > 0;) {
            char file[256];

            (void)snprintf(file, sizeof file, "%s", sim_disk_name(sim, i));
            if (strstr(file, kinds[k]) == NULL) {
                sim_disk_drop(sim, file);
            }
        }
        start();
        cr_expect(found.was_there, "%s", all ? "all" : kinds[k]);
        cr_assert_gt(damage.n_texts, 0, "%s", all ? "all" : kinds[k]);
        cr_expect(strstr(damage.texts[0], FLUSHED) != NULL, "%s", damage.texts[0]);
        cr_expect_not(sim_disk_has(sim, FLUSHED), "nobody has agreed yet");
        if (all) {
            cr_expect(is_lost(2), "it was idle");
        } else if (strcmp(kinds[k], ".spec") == 0) {
            cr_expect_eq(check("without", FLUSHED, 0), N);
        }
        again();
    }
}

/* What nothing that is left shows: the inventory does, since a start. */
Test(journal_damage, of_a_missing_file_costs_what_was_in_it)
{
    static const char *const files[] = {DIR "/snap-7-0-0-6.rows", DIR "/table-7.spec"};

    for (unsigned i = 0; i < 2; i++) {
        start();
        cr_assert(sim_disk_has(sim, files[i]));
        sim_disk_drop(sim, files[i]);
        start();
        check_noticed("the end of", files[i], 0);
        cr_expect_eq(check("without", files[i], 0), i == 0 ? 1 : N);
        again();
    }
}

/* What was lost begins anew; nothing is lost again for the same damage. */
static void mend(void)
{
    cr_assert_eq(ps_journal_settle(journal, NULL), PSD_OK);
    if (!ps_shard_recover_knows(shard, TABLE)) {
        cr_assert_eq(ps_journal_put_table(journal, TABLE, &spec, NULL), PSD_OK);
    }
    for (uint32_t i = 0; i < N; i++) {
        if (is_lost(i)) {
            append(PS_RECORD_ANEW, i, 0, 0);
            for (uint64_t lsn = 1; lsn <= whole(i); lsn++) {
                append(PS_RECORD_EPOCH, i, lsn, 2);
            }
        }
    }
    flush();
}

Test(journal_damage, is_over_when_the_lost_ones_began_anew)
{
    for (size_t i = 0; i < sim_disk_count(sim); i++) {
        char file[256];

        (void)snprintf(file, sizeof file, "%s", sim_disk_name(sim, i));
        for (uint64_t at = 0; at < size_of(file); at += 37) {
            bool cuts = at % 2 == 0;

            if (cuts) {
                sim_disk_cut(sim, file, at);
            } else {
                sim_disk_flip(sim, file, at, 16);
            }
            start();
            mend();
            for (int k = 0; k < 2; k++) {
                start();
                cr_assert_eq(check(cuts ? "behind a cut of" : "behind a flip of", file, at), 0);
                mend();
            }
            again();
        }
    }
}

/* A power loss anywhere in it: a start finds a log that was there, and each
 * partition whole or lost. */
static void crash_settling(const char *const *files, size_t n, uint64_t op, uint64_t seed)
{
    finish();
    begin();
    sim_disk_destroy(&sim);
    sim = sim_disk_new(seed);
    fill();
    if (n > 1) {
        sim_disk_drop(sim, DIR "/snap-7-0-0-6.rows"); /* all gets aside */
    }
    for (size_t i = 0; i < n; i++) {
        if (files[i] == NULL) {
            sim_disk_drop(sim, FLUSHED);
        } else {
            sim_disk_cut(sim, files[i], 5);
        }
    }
    start();
    cr_assert(found.is_unsettled);
    sim_disk_plan(sim, sim_disk_ops(sim) + op, 1, SIM_DISK_CRASH);
    (void)!ps_journal_settle(journal, NULL);
    stop();
    sim_disk_restart(sim);
    start();
    cr_assert(found.was_there, "operation %d, seed %d", (int)op, (int)seed);
    cr_assert(sim_disk_has(sim, FLUSHED) || files[0] == NULL, "operation %d, seed %d", (int)op,
              (int)seed);
    if (ps_shard_recover_knows(shard, TABLE)) {
        mend();
        start();
        cr_assert_eq(damage.n_lost, 0);
    }
}

Test(journal_damage, is_put_aside_or_found_again_behind_a_crash)
{
    static const char *const all[] = {FLUSHED,
                                      DIR "/table-7.spec",
                                      DIR "/log-0000000000000001.seg",
                                      DIR "/log-0000000000000002.seg",
                                      DIR "/log-0000000000000003.seg",
                                      DIR "/log-0000000000000004.seg",
                                      DIR "/log-0000000000000005.seg"};
    const char *missing[sizeof all / sizeof all[0]] = {NULL};
    size_t n = 0;

    start();
    while (n < sizeof all / sizeof all[0] && sim_disk_has(sim, all[n])) {
        n++;
    }
    cr_assert_gt(n, 3);
    memcpy(missing + 1, all + 1, (n - 1) * sizeof *missing);
    for (uint64_t op = 0; op < 30; op++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            crash_settling(all, 1, op, seed);
            crash_settling(all, n, op, seed);
            crash_settling(missing, 1, op, seed);
            crash_settling(missing, n, op, seed);
        }
    }
}

Test(journal_damage, puts_the_file_aside)
{
    static const char *const files[] = {DIR "/table-7.spec", DIR "/snap-7-0-0-6.rows", FLUSHED};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char aside[256];

        (void)snprintf(aside, sizeof aside, "%s.damaged", files[i]);
        sim_disk_cut(sim, files[i], 5);
        start();
        cr_expect_not(sim_disk_has(sim, aside), "nobody has agreed yet");
        cr_expect(sim_disk_has(sim, files[i]));
        cr_assert_eq(ps_journal_settle(journal, NULL), PSD_OK);
        cr_expect(sim_disk_has(sim, aside), "%s", aside);
        cr_expect_eq(size_of(aside), 5);
        again();
    }
}

static psd_status_t start_once(void *fixture)
{
    const ps_journal_args_t args = {.disk = sim_disk_face(sim),
                                    .dir = DIR,
                                    .cluster = {{1, 2}},
                                    .node = "n1",
                                    .n_shards = 1,
                                    .segment_bytes = 1024,
                                    .damage = &damage};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = err == NULL ? PSD_NOMEM : PSD_OK;

    (void)fixture;
    shard = new_shard_or_null();
    rc = shard == NULL ? PSD_NOMEM : rc;
    if (rc == PSD_OK) {
        rc = ps_journal_open(&args, &journal, err);
    }
    if (rc == PSD_OK) {
        rc = ps_journal_recover(journal, shard, NULL, NULL, &found, err);
    }
    stop();
    return rc;
}

Test(journal_damage, is_found_or_there_is_no_memory)
{
    static const char *const files[] = {DIR "/table-7.spec", DIR "/snap-7-0-0-6.rows",
                                        DIR "/log-0000000000000002.seg", FLUSHED};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        psd_status_t rc = PSD_NOMEM;

        sim_disk_flip(sim, files[i], 10, 1); /* both slots of FLUSHED */
        sim_disk_flip(sim, files[i], 50, 1);
        cr_assert_null(fail_alloc_sweep(start_once, NULL));
        start();
        cr_assert_gt(damage.n_texts, 0);
        for (size_t at = 0; rc != PSD_OK; at++) {
            fail_alloc_at(at);
            rc = ps_journal_settle(journal, NULL);
            cr_assert_eq(rc, fail_alloc_happened() ? PSD_NOMEM : PSD_OK);
            fail_alloc_off();
        }
        mend();
        start();
        cr_assert_eq(check("behind a flip of", files[i], 50), 0);
        again();
    }
}

/* Without somebody to ask it ends the start, as ever. */
Test(journal_damage, is_refused_where_nobody_can_agree)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_journal_args_t args = {.disk = sim_disk_face(sim),
                                    .dir = DIR,
                                    .cluster = {{1, 2}},
                                    .node = "n1",
                                    .n_shards = 1,
                                    .segment_bytes = 1024};

    sim_disk_flip(sim, DIR "/snap-7-0-0-6.rows", 60, 1);
    new_shard(&shard);
    cr_assert_eq(ps_journal_open(&args, &journal, err), PSD_OK);
    cr_assert_eq(ps_journal_recover(journal, shard, NULL, NULL, &found, err), PSD_DAMAGED);
}

/* A copy that came with state and rows; its snapshot is damaged while the log
 * still has its ANEW. */
static void came_from_a_primary(void)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *state = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = NULL;
    PSD_AUTO(ps_shard_destroy) ps_shard_t *other = NULL;
    ps_piece_t piece = {
        .table = TABLE, .first_lsn = FIRST, .lsn = FIRST, .life = 5, .is_first = true};
    const ps_record_t anew = {
        .kind = PS_RECORD_ANEW, .table = TABLE, .lsn = FIRST, .epoch = 1, .seq = 5};
    const ps_body_t none = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    const ps_local_table_t *table = NULL;
    ps_store_cursor_t cursor = {0};
    bool done = false;

    sim_disk_destroy(&sim);
    sim = sim_disk_new(1);
    start();
    cr_assert_eq(ps_journal_put_table(journal, TABLE, &spec, NULL), PSD_OK);
    append(PS_RECORD_EPOCH, 1, 1, 1);
    cr_assert_eq(ps_journal_append(journal, &anew, NULL, NULL), PSD_OK);
    flush();
    new_shard(&other);
    cr_assert_eq(ps_shard_recover_table(other, TABLE, &spec, NULL), PSD_OK);
    for (uint64_t i = 1; i <= FIRST; i++) {
        const ps_record_t record = {.kind = PS_RECORD_EPOCH, .table = TABLE, .lsn = i, .epoch = 1};

        cr_assert_eq(ps_shard_recover_record(other, &record, &none, NULL), PSD_OK);
    }
    table = ps_map_get(&other->step.tables, TABLE);
    state = ps_partition_give_state(table->partitions[0]);
    cr_assert_eq(ps_partition_give_rows(&other->step, table->partitions[0], &cursor, 1 << 20, &rows,
                                        &done, NULL),
                 PSD_OK);
    cr_assert_eq(ps_journal_piece(journal, &piece, state->span, NULL), PSD_OK);
    piece.is_first = false;
    piece.is_last = true;
    cr_assert_eq(ps_journal_piece(journal, &piece, rows->span, NULL), PSD_OK);
    append(PS_RECORD_EPOCH, 0, FIRST + 1, 1);
    flush();
    cr_assert_eq(ps_journal_tidy(journal, NULL), PSD_OK);
    stop();
}

Test(journal_damage, the_snapshot_of_a_copy_that_came_as_rows)
{
    came_from_a_primary();
    start();
    cr_assert_eq(ps_shard_recover_lsn(shard, TABLE, 0), FIRST + 1);
    cr_assert_eq(damage.n_texts, 0);
    stop();
    sim_disk_flip(sim, DIR "/snap-7-0-5-6.rows", 70, 1);
    start();
    cr_expect_gt(damage.n_texts, 0);
    cr_expect_eq(ps_shard_recover_lsn(shard, TABLE, 0), 0);
    cr_expect(is_lost(0), "%zu lost", damage.n_lost);
}
