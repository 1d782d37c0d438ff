/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the files of a shard's log and of a snapshot,
 * storage_<file>.hex: what this psd wrote a later one has to read. A difference
 * is a new version of the format. A new file gets its golden one with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_storage
 *
 * Shape: '#' starts a comment; the rest is bytes in hex.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "storage/log/shard_log.h"
#include "storage/snapshot/snapshot_file.h"
#include "support/record_sample.h"
#include "support/sim_disk.h"

#define N_STORED 7 /* records of the files, which older psd wrote */
#define BYTES_MAX 2048
#define PATH_SIZE 4096

static const ps_id_t CLUSTER = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
static const ps_snapshot_id_t SNAPSHOT = {0x01020304, 5, 41, 6};

static FILE *open_file(const char *name, const char *mode)
{
    const char *dir = getenv("PSD_GOLDEN_DIR");
    char path[PATH_SIZE];
    FILE *file = NULL;

    cr_assert_not_null(dir, "PSD_GOLDEN_DIR is not set");
    (void)snprintf(path, sizeof path, "%s/storage_%s.hex", dir, name);
    file = fopen(path, mode);
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static void write_file(const char *name, ps_bytes_t bytes)
{
    FILE *file = open_file(name, "w");

    (void)fprintf(file, "# %s", name);
    for (size_t at = 0; at < bytes.size; at++) {
        (void)fprintf(file, "%s%02x", at % 16 == 0 ? "\n" : " ", (unsigned)bytes.data[at]);
    }
    (void)fprintf(file, "\n");
    cr_assert_eq(fclose(file), 0);
}

static size_t read_file(const char *name, uint8_t bytes[BYTES_MAX])
{
    FILE *file = open_file(name, "r");
    char line[256];
    size_t size = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = line;
        unsigned byte = 0;
        int length = 0;

        while (line[0] != '#' && sscanf(at, " %2x%n", &byte, &length) == 1) {
            cr_assert_lt(size, BYTES_MAX);
            bytes[size++] = (uint8_t)byte;
            at += length;
        }
    }
    cr_assert_eq(fclose(file), 0);
    return size;
}

static void check(sim_disk_t *sim, const char *path, const char *name)
{
    ps_bytes_t bytes = sim_disk_content(sim, path);
    uint8_t golden[BYTES_MAX];

    if (getenv("PSD_GOLDEN_WRITE") != NULL) {
        write_file(name, bytes);
    }
    cr_assert_eq(read_file(name, golden), bytes.size, "%s", name);
    cr_assert_arr_eq(golden, bytes.data, bytes.size, "%s has other bytes", name);
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
