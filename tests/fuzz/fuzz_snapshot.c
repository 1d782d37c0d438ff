/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as the blocks behind the head of a snapshot, and as the records
 * behind the head of a log's segment. The checksums of the blocks are put right
 * where there is one, which no chance would find.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "storage/log/shard_log.h"
#include "storage/snapshot/snapshot_block.h"
#include "support/sim_disk.h"

static const ps_id_t CLUSTER = {{1}};
static const ps_snapshot_id_t ID = {1, 2, 3, 0};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* Blocks one behind the other, as far as their sizes fit. */
static void put_right(uint8_t *bytes, size_t size)
{
    size_t at = 0;

    while (size - at >= PS_BLOCK_HEAD) {
        ps_bytes_t stored = {bytes + at + PS_BLOCK_HEAD, 0};
        ps_snapshot_block_t block;

        ps_block_read(bytes + at, &block);
        if (block.stored_size > size - at - PS_BLOCK_HEAD) {
            return;
        }
        stored.size = (size_t)block.stored_size;
        ps_block_write(&block, stored, bytes + at);
        at += PS_BLOCK_HEAD + stored.size;
    }
}

static void put_behind(ps_disk_t *disk, const char *path, ps_bytes_t bytes)
{
    ps_disk_file_t *file = NULL;
    uint64_t size = 0;

    check(disk->open(disk, path, PS_DISK_KEEP, &file, NULL) == PSD_OK);
    check(disk->size(disk, file, &size, NULL) == PSD_OK);
    check(disk->write(disk, file, size, &bytes, 1, NULL) == PSD_OK);
    disk->close(disk, &file);
}

static void read_snapshot(ps_disk_t *disk, ps_bytes_t bytes)
{
    psd_error_t *err = psd_error_new();
    ps_snapshot_dir_t dir = {.disk = disk, .dir = "d", .cluster = CLUSTER};
    ps_snapshot_head_t head = {
        PS_SNAPSHOT_MAGIC, PS_SNAPSHOT_VERSION, ID.table, ID.partition, ID.lsn, ID.life, CLUSTER};
    ps_snapshot_reader_t *reader = NULL;
    ps_snapshot_piece_t piece = {0};
    uint8_t front[PS_SNAPSHOT_HEAD];
    psd_status_t rc = PSD_OK;

    ps_snapshot_head_write(&head, front);
    put_behind(disk, "d/snap-1-2-0-3.rows", (ps_bytes_t){front, sizeof front});
    put_behind(disk, "d/snap-1-2-0-3.rows", bytes);
    check(ps_snapshot_open(&dir, &ID, &reader, err) == PSD_OK);
    while (rc == PSD_OK && !piece.is_end) {
        rc = ps_snapshot_next(reader, &piece, err);
        /* So that each byte of a piece of sane size is looked at. */
        if (rc == PSD_OK && piece.bytes.size < 1 << 20) {
            (void)ps_hash_bytes(piece.bytes.data, piece.bytes.size, 0);
        }
    }
    check(rc == PSD_OK || rc == PSD_DAMAGED || rc == PSD_NOMEM);
    check((rc == PSD_OK) == (psd_error_text(err)[0] == '\0'));
    ps_snapshot_close(&reader);
    psd_error_destroy(&err);
}

static psd_status_t see_record(void *context, const ps_record_t *record, const ps_body_t *body,
                               psd_error_t *err)
{
    (void)context;
    (void)err;
    check(record->lsn > 0 && body->keys.size % 8 == 0);
    return PSD_OK;
}

/* The segment of a log that was begun and has no records. */
static void read_log(ps_disk_t *disk, ps_bytes_t bytes)
{
    ps_shard_log_args_t args = {
        .disk = disk, .dir = "l", .cluster = CLUSTER, .node = "n", .segment_bytes = 1 << 20};
    ps_shard_log_found_t found = {0};

    for (size_t life = 0; life < 3; life++) {
        ps_record_t record = {.kind = PS_RECORD_MARK, .lsn = 1, .seq = 1};
        ps_shard_log_t *log = NULL;

        check(ps_shard_log_open(&args, &log, NULL) == PSD_OK);
        check(ps_shard_log_read(log, see_record, NULL, &found, NULL) == PSD_OK);
        check(ps_shard_log_append(log, &record, NULL, NULL) == PSD_OK);
        check(ps_shard_log_flush(log, NULL) == PSD_OK);
        ps_shard_log_close(&log);
        if (life == 0) {
            put_behind(disk, "l/log-0000000000000001.seg", bytes);
        }
    }
    /* One of each life before this one, and what of the bytes were records. */
    check(found.n_records >= 2 && found.cut_segment == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sim_disk_t *sim = sim_disk_new(1);
    uint8_t *bytes = ps_alloc_raw(size, 1);

    check(bytes != NULL);
    if (size > 0) {
        memcpy(bytes, data, size);
    }
    read_log(sim_disk_face(sim), (ps_bytes_t){bytes, size});
    put_right(bytes, size);
    read_snapshot(sim_disk_face(sim), (ps_bytes_t){bytes, size});
    ps_free(bytes);
    sim_disk_destroy(&sim);
    return 0;
}
