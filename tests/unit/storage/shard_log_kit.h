/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard_log_kit - a log on a virtual disk, and what has to be in it
 *
 * What     Records of a few partitions whose bytes follow from partition and
 *          lsn, so that whoever reads one knows what it must hold.
 */
#ifndef PS_TESTS_SHARD_LOG_KIT_H
#define PS_TESTS_SHARD_LOG_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "storage/log/shard_log.h"
#include "support/sim_disk.h"

#define KIT_DIR "data/log-0"
#define KIT_PARTITIONS 3
#define KIT_TABLE 7

typedef struct kit {
    sim_disk_t *sim;
    ps_shard_log_t *log;
    uint64_t segment_bytes;
    uint64_t large_bytes;              /* of the payload of every 7th record */
    uint64_t appended[KIT_PARTITIONS]; /* last lsn given to the log */
    uint64_t flushed[KIT_PARTITIONS];  /* last lsn known to be flushed */
    uint64_t base[KIT_PARTITIONS];     /* records up to this lsn were cut */
    uint64_t seen[KIT_PARTITIONS];     /* last lsn read */
    ps_shard_log_found_t found;
} kit_t;

static inline void kit_begin(kit_t *self, uint64_t seed, uint64_t segment_bytes)
{
    memset(self, 0, sizeof *self);
    self->sim = sim_disk_new(seed);
    self->segment_bytes = segment_bytes;
    self->large_bytes = 900;
}

static inline void kit_end(kit_t *self)
{
    ps_shard_log_close(&self->log);
    sim_disk_destroy(&self->sim);
}

static inline ps_shard_log_args_t kit_args(const kit_t *self)
{
    return (ps_shard_log_args_t){.disk = sim_disk_face(self->sim),
                                 .dir = KIT_DIR,
                                 .cluster = {{1, 2, 3, 4}},
                                 .node = "n1",
                                 .shard = 5,
                                 .segment_bytes = self->segment_bytes};
}

static inline size_t kit_size(const kit_t *self, uint64_t lsn)
{
    return lsn % 7 == 0 ? (size_t)self->large_bytes : (size_t)(8 * (1 + lsn % 5));
}

static inline uint8_t kit_byte(uint32_t partition, uint64_t lsn, size_t i)
{
    return (uint8_t)(partition * 31 + lsn * 17 + i * 7);
}

static inline ps_record_t kit_record(const kit_t *self, uint32_t partition, uint64_t lsn)
{
    uint64_t n = kit_size(self, lsn) / 4;

    return (ps_record_t){.kind = PS_RECORD_PUSH,
                         .table = KIT_TABLE,
                         .partition = partition,
                         .lsn = lsn,
                         .epoch = 1,
                         .session = 9,
                         .seq = lsn,
                         .slice = {.rows = PS_ROWS_RANGE,
                                   .layout = PS_LAYOUT_DENSE,
                                   .cols = PS_COLS_ALL,
                                   .type = PS_TYPE_F32,
                                   .n_rows = n,
                                   .n_cols = 1,
                                   .n_values = n}};
}

static inline psd_status_t kit_append(kit_t *self, uint32_t partition)
{
    uint64_t lsn = self->appended[partition] + 1;
    ps_record_t record = kit_record(self, partition, lsn);
    size_t size = kit_size(self, lsn);
    uint8_t *bytes = NULL;
    ps_payload_t *payload = ps_payload_room(0, 0, size, &bytes);
    psd_status_t rc = PSD_NOMEM;

    if (payload == NULL) {
        return PSD_NOMEM;
    }
    for (size_t i = 0; i < size; i++) {
        bytes[i] = kit_byte(partition, lsn, i);
    }
    rc = ps_shard_log_append(self->log, &record, payload, NULL);
    ps_payload_destroy(&payload);
    if (rc == PSD_OK) {
        self->appended[partition] = lsn;
    }
    return rc;
}

static inline psd_status_t kit_see(void *context, const ps_record_t *record, const ps_body_t *body,
                                   psd_error_t *err)
{
    kit_t *self = context;
    uint32_t partition = record->partition;

    (void)err;
    cr_assert_lt(partition, KIT_PARTITIONS);
    cr_assert_eq(record->lsn, self->seen[partition] + 1, "partition %u: %lu behind %lu", partition,
                 (unsigned long)record->lsn, (unsigned long)self->seen[partition]);
    cr_assert_eq(body->values.size, kit_size(self, record->lsn));
    for (size_t i = 0; i < body->values.size; i++) {
        cr_assert_eq(body->values.data[i], kit_byte(partition, record->lsn, i));
    }
    self->seen[partition] = record->lsn;
    return PSD_OK;
}

/* Opens and reads: each record once, in order. */
static inline psd_status_t kit_open(kit_t *self, psd_error_t *err)
{
    ps_shard_log_args_t args = kit_args(self);
    psd_status_t rc = ps_shard_log_open(&args, &self->log, err);

    memcpy(self->seen, self->base, sizeof self->seen);
    if (rc == PSD_OK) {
        rc = ps_shard_log_read(self->log, kit_see, self, &self->found, err);
    }
    if (rc != PSD_OK) {
        ps_shard_log_close(&self->log);
    }
    return rc;
}

/* What was read holds all that was flushed, and goes on from there. */
static inline void kit_check(kit_t *self)
{
    for (size_t i = 0; i < KIT_PARTITIONS; i++) {
        cr_assert(self->seen[i] >= self->flushed[i] && self->seen[i] <= self->appended[i],
                  "partition %zu: flushed %lu, read %lu, appended %lu", i,
                  (unsigned long)self->flushed[i], (unsigned long)self->seen[i],
                  (unsigned long)self->appended[i]);
        self->appended[i] = self->seen[i];
        self->flushed[i] = self->seen[i];
    }
}

static inline psd_status_t kit_flush(kit_t *self)
{
    psd_status_t rc = ps_shard_log_flush(self->log, NULL);

    if (rc == PSD_OK) {
        memcpy(self->flushed, self->appended, sizeof self->flushed);
        cr_assert_eq(ps_shard_log_waiting(self->log), 0);
        cr_assert_eq(ps_shard_log_flushed(self->log), ps_shard_log_appended(self->log));
    }
    return rc;
}

/* n turns of appends, writes, flushes and a cut now and then; ends with the
 * first status that is not PSD_OK. */
static inline psd_status_t kit_work(kit_t *self, uint64_t seed, size_t n)
{
    ps_rng_t rng = {seed};
    psd_status_t rc = PSD_OK;

    for (size_t turn = 0; turn < n && rc == PSD_OK; turn++) {
        uint64_t what = ps_rng_below(&rng, 10);

        for (uint64_t i = ps_rng_below(&rng, 4); i > 0 && rc == PSD_OK; i--) {
            rc = kit_append(self, (uint32_t)ps_rng_below(&rng, KIT_PARTITIONS));
        }
        if (rc == PSD_OK) {
            rc = what < 6 ? kit_flush(self) : ps_shard_log_write(self->log, NULL);
        }
    }
    return rc;
}
#endif
