/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the files of a shard's log and of a snapshot,
 * storage_<file>.hex: what this psd wrote a later one has to read. A difference
 * is a new version of the format. A new file gets its golden one with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_storage
 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "storage/log/shard_log.h"
#include "storage/snapshot/snapshot_file.h"
#include "support/golden_file.h"
#include "support/record_sample.h"
#include "support/sim_disk.h"

#define N_STORED 7 /* records of the files, which older psd wrote */
#define NAME_SIZE 64

static const ps_id_t CLUSTER = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
static const ps_snapshot_id_t SNAPSHOT = {0x01020304, 5, 41, 6};

static void check(sim_disk_t *sim, const char *path, const char *name)
{
    uint8_t golden[GOLDEN_BYTES_MAX];
    char whole[NAME_SIZE];

    (void)snprintf(whole, sizeof whole, "storage_%s", name);
    (void)golden_file_check(whole, name, sim_disk_content(sim, path), golden);
}

static psd_status_t count_record(void *context, const ps_record_t *record, const ps_body_t *body,
                                 psd_error_t *err)
{
    size_t *n = context;

    (void)record;
    (void)body;
    (void)err;
    (*n)++;
    return PSD_OK;
}

/* Two segments: the second one knows how long the first one is. */
Test(golden_storage, log)
{
    sim_disk_t *sim = sim_disk_new(1);
    ps_shard_log_args_t args = {.disk = sim_disk_face(sim),
                                .dir = "log",
                                .cluster = CLUSTER,
                                .node = "node-1",
                                .shard = 3,
                                .segment_bytes = 500};
    ps_shard_log_t *log = NULL;
    ps_shard_log_found_t found = {0};
    size_t n = 0;

    cr_assert_eq(ps_shard_log_open(&args, &log, NULL), PSD_OK);
    cr_assert_eq(ps_shard_log_read(log, count_record, &n, &found, NULL), PSD_OK);
    for (size_t i = 0; i < N_STORED; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_record_t record;

        record_sample(i, &record, &payload);
        cr_assert_eq(ps_shard_log_append(log, &record, payload, NULL), PSD_OK);
        cr_assert_eq(ps_shard_log_flush(log, NULL), PSD_OK);
    }
    ps_shard_log_close(&log);
    check(sim, "log/log-0000000000000001.seg", "segment_1");
    check(sim, "log/log-0000000000000002.seg", "segment_2");
    check(sim, "log/log-flushed", "flushed");
    sim_disk_destroy(&sim);
}

Test(golden_storage, snapshot)
{
    sim_disk_t *sim = sim_disk_new(1);
    ps_snapshot_dir_t dir = {.disk = sim_disk_face(sim), .dir = "snapshots", .cluster = CLUSTER};
    ps_snapshot_writer_t *writer = NULL;

    cr_assert_eq(ps_snapshot_begin(&dir, &SNAPSHOT, 0, &writer, NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_add(writer, 42, record_sample_text("a piece"), NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_add(writer, 43, record_sample_text(""), NULL), PSD_OK);
    cr_assert_eq(ps_snapshot_commit(&writer, 44, NULL), PSD_OK);
    check(sim, "snapshots/snap-16909060-5-6-41.rows", "snapshot");
    sim_disk_destroy(&sim);
}
