/* SPDX-License-Identifier: Apache-2.0 */
/* storage/log/shard_log.h: what is appended is read again; what is damaged, foreign
 * or missing is refused by name. Faults of the disk: test_shard_log_faults.c.
 */
#include "storage/log/shard_log.h"

#include <stdio.h>

#include "shard_log_kit.h"
#include "support/fail_alloc.h"
#include "support/temp_dir.h"

#define FIRST KIT_DIR "/log-0000000000000001.seg"
#define SECOND KIT_DIR "/log-0000000000000002.seg"
#define NOTE KIT_DIR "/log-flushed"

static void reopen(kit_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    ps_shard_log_close(&self->log);
    cr_assert_eq(kit_open(self, err), PSD_OK, "%s", psd_error_text(err));
    kit_check(self);
}

/* A log of a few segments, all flushed, closed. */
static void make_log(kit_t *self)
{
    kit_begin(self, 1, 1000);
    cr_assert_eq(kit_open(self, NULL), PSD_OK);
    for (uint32_t i = 0; i < 12; i++) {
        cr_assert_eq(kit_append(self, i % KIT_PARTITIONS), PSD_OK);
        cr_assert_eq(kit_append(self, 0), PSD_OK);
        cr_assert_eq(kit_flush(self), PSD_OK);
    }
    ps_shard_log_close(&self->log);
}

static void assert_open(kit_t *self, psd_status_t status, const char *part)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = kit_open(self, err);

    cr_assert_eq(rc, status, "%s: %s", psd_status_name(rc), psd_error_text(err));
    cr_assert_not_null(strstr(psd_error_text(err), part), "%s: no %s", psd_error_text(err), part);
}

Test(shard_log, records_come_back_in_order)
{
    kit_t kit;

    make_log(&kit);
    reopen(&kit);
    cr_assert_gt(kit.found.n_segments, 3);
    cr_assert_eq(kit.found.n_records, 24);
    cr_assert_eq(kit.found.cut_segment, 0);
    cr_assert_eq(kit.found.bytes, ps_shard_log_bytes(kit.log));
    /* It goes on behind them. */
    cr_assert_eq(kit_append(&kit, 2), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    reopen(&kit);
    cr_assert_eq(kit.found.n_records, 25);
    kit_end(&kit);
}

Test(shard_log, one_that_is_empty_stays_empty)
{
    kit_t kit;

    kit_begin(&kit, 1, 1000);
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        cr_assert_eq(kit.found.n_segments, 0);
        cr_assert_eq(ps_shard_log_flush(kit.log, NULL), PSD_OK);
        ps_shard_log_close(&kit.log);
    }
    cr_assert_eq(sim_disk_count(kit.sim), 1); /* log-flushed */
    kit_end(&kit);
}

Test(shard_log, a_turn_is_one_write_and_one_flush)
{
    kit_t kit;
    uint64_t ops = 0;

    kit_begin(&kit, 1, 1 << 20);
    kit.large_bytes = 40000; /* more than is copied */
    cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
    cr_assert_eq(kit_append(&kit, 0), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    for (uint32_t i = 0; i < 30; i++) {
        cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
    }
    cr_assert_gt(ps_shard_log_waiting(kit.log), 40000);
    cr_assert_eq(ps_shard_log_appended(kit.log), 31);
    cr_assert_eq(ps_shard_log_flushed(kit.log), 1);
    ops = sim_disk_ops(kit.sim);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    /* The third operation is the note of how far it is flushed. */
    cr_assert_eq(sim_disk_ops(kit.sim), ops + 3);
    reopen(&kit);
    cr_assert_eq(kit.found.n_records, 31);
    kit_end(&kit);
}

Test(shard_log, bytes_that_came_from_elsewhere_are_taken_as_they_are)
{
    kit_t kit;

    kit_begin(&kit, 1, 1 << 20);
    kit.large_bytes = 40000;
    cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
    for (uint64_t lsn = 1; lsn <= 7; lsn++) {
        ps_record_t record = kit_record(&kit, 1, lsn);
        size_t size = kit_size(&kit, lsn);
        uint8_t *values = NULL;
        uint8_t *bytes = NULL;
        ps_payload_t *payload = ps_payload_room(0, 0, size, &values);
        ps_payload_t *holder = ps_payload_room(0, 0, PS_RECORD_HEAD + size, &bytes);

        cr_assert(payload != NULL && holder != NULL);
        for (size_t i = 0; i < size; i++) {
            values[i] = kit_byte(1, lsn, i);
        }
        cr_assert_eq(ps_record_size(&record, payload), PS_RECORD_HEAD + size);
        ps_record_write(&record, payload, bytes);
        cr_assert_eq(ps_shard_log_append_bytes(kit.log, &record, holder->span,
                                               lsn % 2 == 0 ? NULL : holder, NULL),
                     PSD_OK);
        ps_payload_destroy(&payload);
        ps_payload_destroy(&holder);
    }
    kit.appended[1] = 7;
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    reopen(&kit);
    cr_assert_eq(kit.found.n_records, 7);
    kit_end(&kit);
}

Test(shard_log, knows_where_the_records_of_a_partition_are)
{
    kit_t kit;

    make_log(&kit);
    for (size_t i = 0; i < 2; i++) {
        uint64_t last = 0;

        reopen(&kit);
        for (uint64_t lsn = 1; lsn <= kit.appended[0]; lsn++) {
            uint64_t at = ps_shard_log_segment_with(kit.log, KIT_TABLE, 0, lsn);

            cr_assert(at >= last && at < 100);
            last = at;
        }
        cr_assert_gt(last, 1);
        cr_assert_eq(ps_shard_log_segment_with(kit.log, KIT_TABLE, 0, kit.appended[0] + 1),
                     UINT64_MAX);
        cr_assert_eq(ps_shard_log_segment_with(kit.log, 8, 0, 1), UINT64_MAX);
    }
    kit_end(&kit);
}

Test(shard_log, cuts_what_nobody_needs)
{
    kit_t kit;
    uint64_t lowest = 0;

    make_log(&kit);
    reopen(&kit);
    lowest = ps_shard_log_segment_with(kit.log, KIT_TABLE, 0, 6);
    cr_assert_gt(lowest, 1);
    cr_assert_eq(ps_shard_log_cut(kit.log, lowest, NULL), PSD_OK);
    cr_assert(!sim_disk_has(kit.sim, FIRST));
    ps_shard_log_close(&kit.log);
    /* What is left begins somewhere at or in front of lsn 6. */
    for (size_t i = 0; i < KIT_PARTITIONS; i++) {
        ps_shard_log_args_t args = kit_args(&kit);

        cr_assert_eq(ps_shard_log_open(&args, &kit.log, NULL), PSD_OK);
        ps_shard_log_close(&kit.log);
    }
    kit_end(&kit);
}

Test(shard_log, never_cuts_the_last_segment)
{
    kit_t kit;

    make_log(&kit);
    reopen(&kit);
    cr_assert_eq(ps_shard_log_cut(kit.log, UINT64_MAX, NULL), PSD_OK);
    cr_assert_eq(sim_disk_count(kit.sim), 2);
    cr_assert_eq(kit_append(&kit, 1), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    kit_end(&kit);
}

/* ---- what is wrong ------------------------------------------------------- */

/* What a reading has put right says nothing else than before. */
static void make_note_again(kit_t *self)
{
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(kit_open(self, NULL), PSD_OK);
        ps_shard_log_close(&self->log);
    }
    cr_assert(!self->found.note_torn);
}

Test(shard_log, every_flipped_byte_of_every_file_is_found)
{
    kit_t kit;

    make_log(&kit);
    for (size_t f = 0; f < sim_disk_count(kit.sim); f++) {
        PSD_AUTO(ps_free_at) char *path = ps_strdup(sim_disk_name(kit.sim, f));
        size_t size = sim_disk_content(kit.sim, path).size;

        for (size_t at = 0; at < size; at++) {
            uint8_t mask = (uint8_t)(1U << at % 8);

            sim_disk_flip(kit.sim, path, at, mask);
            if (strcmp(path, NOTE) == 0) {
                assert_open(&kit, PSD_OK, "");
                cr_assert(kit.found.note_torn);
                ps_shard_log_close(&kit.log);
                make_note_again(&kit);
            } else {
                assert_open(&kit, PSD_DAMAGED, path);
                sim_disk_flip(kit.sim, path, at, mask);
            }
        }
    }
    reopen(&kit);
    kit_end(&kit);
}

Test(shard_log, a_note_with_both_slots_damaged_is_refused)
{
    kit_t kit;

    make_log(&kit);
    sim_disk_flip(kit.sim, NOTE, 9, 1);
    sim_disk_flip(kit.sim, NOTE, 40, 1);
    assert_open(&kit, PSD_DAMAGED, NOTE ": byte 24: the checksum");
    kit_end(&kit);
}

Test(shard_log, every_truncation_of_every_file_is_found)
{
    kit_t kit;

    make_log(&kit);
    for (size_t f = 0; f < sim_disk_count(kit.sim); f++) {
        PSD_AUTO(ps_free_at) char *path = ps_strdup(sim_disk_name(kit.sim, f));
        size_t size = sim_disk_content(kit.sim, path).size;

        for (size_t cut = 0; cut < size; cut++) {
            kit_t fresh;

            make_log(&fresh);
            sim_disk_cut(fresh.sim, path, cut);
            assert_open(&fresh, PSD_DAMAGED, path);
            kit_end(&fresh);
        }
    }
    kit_end(&kit);
}

Test(shard_log, a_missing_file_is_named)
{
    kit_t kit;

    make_log(&kit);
    sim_disk_drop(kit.sim, SECOND);
    assert_open(&kit, PSD_DAMAGED, SECOND " is missing between others");
    kit_end(&kit);

    make_log(&kit);
    sim_disk_drop(kit.sim, NOTE);
    assert_open(&kit, PSD_DAMAGED, NOTE " is missing beside");
    kit_end(&kit);

    kit_begin(&kit, 1, 1 << 20);
    cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
    cr_assert_eq(kit_append(&kit, 1), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    ps_shard_log_close(&kit.log);
    sim_disk_drop(kit.sim, FIRST);
    assert_open(&kit, PSD_DAMAGED, FIRST " is missing; ");
    kit_end(&kit);
}

Test(shard_log, anothers_log_is_refused_by_name)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_shard_log_args_t args;
    kit_t kit;

    make_log(&kit);
    args = kit_args(&kit);
    args.cluster.bytes[0] = 9;
    cr_assert_eq(ps_shard_log_open(&args, &kit.log, err), PSD_FOREIGN);
    cr_assert_str_eq(psd_error_text(err),
                     FIRST " is of cluster 01020304-0000-0000-0000-000000000000; "
                           "this one is 09020304-0000-0000-0000-000000000000");
    psd_error_clear(err);
    args = kit_args(&kit);
    args.shard = 6;
    cr_assert_eq(ps_shard_log_open(&args, &kit.log, err), PSD_FOREIGN);
    cr_assert_str_eq(psd_error_text(err),
                     FIRST " is of shard 5 of node n1; this is shard 6 of node "
                           "n1");
    psd_error_clear(err);
    args = kit_args(&kit);
    args.node = "n2";
    cr_assert_eq(ps_shard_log_open(&args, &kit.log, err), PSD_FOREIGN);
    kit_end(&kit);
}

Test(shard_log, what_is_not_flushed_and_torn_is_cut_and_told)
{
    kit_t kit;
    uint64_t size = 0;

    kit_begin(&kit, 1, 1 << 20);
    cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
    cr_assert_eq(kit_append(&kit, 0), PSD_OK);
    cr_assert_eq(kit_flush(&kit), PSD_OK);
    size = sim_disk_content(kit.sim, FIRST).size;
    cr_assert_eq(kit_append(&kit, 0), PSD_OK);
    cr_assert_eq(ps_shard_log_write(kit.log, NULL), PSD_OK);
    ps_shard_log_close(&kit.log);
    sim_disk_flip(kit.sim, FIRST, size + 140, 1);
    reopen(&kit);
    cr_assert_eq(kit.found.n_records, 1);
    cr_assert_eq(kit.found.cut_segment, 1);
    cr_assert_eq(kit.found.cut_offset, size);
    cr_assert_eq(kit.found.cut_bytes, PS_RECORD_HEAD + kit_size(&kit, 2));
    cr_assert_eq(sim_disk_content(kit.sim, FIRST).size, size);
    kit_end(&kit);
}

/* ---- memory -------------------------------------------------------------- */

static psd_status_t all_of_it(void *fixture)
{
    kit_t kit;
    psd_status_t rc = PSD_OK;

    (void)fixture;
    kit_begin(&kit, 1, 2000);
    rc = kit_open(&kit, NULL);
    for (uint32_t i = 0; i < 20 && rc == PSD_OK; i++) {
        rc = kit_append(&kit, i % KIT_PARTITIONS);
        if (rc == PSD_OK && i % 3 == 0) {
            rc = kit_flush(&kit);
        }
    }
    if (rc == PSD_OK) {
        rc = kit_flush(&kit);
    }
    if (rc == PSD_OK) {
        rc = ps_shard_log_cut(kit.log, 2, NULL);
    }
    ps_shard_log_close(&kit.log);
    memset(kit.base, 0, sizeof kit.base);
    kit_end(&kit);
    return rc;
}

static psd_status_t open_again(void *fixture)
{
    kit_t *kit = fixture;
    psd_status_t rc = kit_open(kit, NULL);

    ps_shard_log_close(&kit->log);
    return rc;
}

Test(shard_log, no_memory_is_told_and_leaks_nothing)
{
    kit_t kit;

    cr_assert_null(fail_alloc_sweep(all_of_it, NULL));
    make_log(&kit);
    cr_assert_null(fail_alloc_sweep(open_again, &kit));
    kit_end(&kit);
}

/* A flush without memory is called again, and nothing is lost or doubled. */
Test(shard_log, goes_on_when_there_is_memory_again)
{
    for (size_t at = 0; at < 12; at++) {
        kit_t kit;
        psd_status_t rc = PSD_OK;

        kit_begin(&kit, 1, 600);
        cr_assert_eq(kit_open(&kit, NULL), PSD_OK);
        for (uint32_t i = 0; i < 9; i++) {
            cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
        }
        fail_alloc_at(at);
        rc = kit_flush(&kit);
        cr_assert_eq(rc, fail_alloc_happened() ? PSD_NOMEM : PSD_OK);
        fail_alloc_off();
        cr_assert_eq(kit_append(&kit, 0), PSD_OK);
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        sim_disk_restart(kit.sim);
        reopen(&kit);
        kit_end(&kit);
    }
}

/* ---- the system's disk --------------------------------------------------- */

Test(shard_log, works_on_the_systems_disk)
{
    temp_dir_t temp;
    kit_t kit;

    cr_assert(temp_dir_make(&temp));
    kit_begin(&kit, 1, 3 << 20);
    kit.large_bytes = 1 << 20;
    for (size_t life = 0; life < 3; life++) {
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        ps_shard_log_args_t args = kit_args(&kit);

        args.disk = ps_disk_real();
        args.dir = temp.path;
        cr_assert_eq(ps_shard_log_open(&args, &kit.log, err), PSD_OK, "%s", psd_error_text(err));
        memset(kit.seen, 0, sizeof kit.seen);
        cr_assert_eq(ps_shard_log_read(kit.log, kit_see, &kit, &kit.found, err), PSD_OK, "%s",
                     psd_error_text(err));
        kit_check(&kit);
        for (uint32_t i = 0; i < 60; i++) {
            cr_assert_eq(kit_append(&kit, i % KIT_PARTITIONS), PSD_OK);
            if (i % 5 == 0) {
                cr_assert_eq(kit_flush(&kit), PSD_OK);
            }
        }
        cr_assert_eq(kit_flush(&kit), PSD_OK);
        ps_shard_log_close(&kit.log);
    }
    kit_end(&kit);
    temp_dir_drop(&temp);
}
