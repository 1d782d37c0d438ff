/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_image, ps_shard_restore - rows of a table for a checkpoint, and back
 *
 * What     An image of every primary partition that is here, each as it was at
 *          one moment. Where a job with clocks uses the table, that is right
 *          behind the closing of one clock, the same in all partitions of the
 *          cluster: `arm` holds back MARKs for a short while and says which
 *          clock the furthest partition has closed; `begin` names the greatest
 *          of the whole cluster, and a partition begins when it has closed that
 *          one: all workers have finished it, so their marks are on the way.
 *          BSP: exactly what these clocks have made; SSP: at least that.
 *          An `exact` image is that under SSP too: `arm` says which clock the
 *          furthest member has marked, the next one is named, and what workers
 *          push behind it waits until the partition's image has begun.
 *          A partition that is restored takes rows as records of its own, so
 *          that other copies and the log have them too. Requests of clients
 *          wait as long as its table is being restored (PS_EVENT_TABLE).
 * Threads  Confined to the shard's one.
 */
#ifndef PS_PROTOCOL_SHARD_IMAGE_H
#define PS_PROTOCOL_SHARD_IMAGE_H

#include "model/store/store_image.h"
#include "protocol/partition/image_view.h"
#include "protocol/shard/shard.h"

typedef struct ps_image_order {
    uint32_t table;
    uint32_t job;                  /* whose clock; 0: every partition begins at once */
    uint64_t clock;                /* that is to be closed */
    const ps_image_since_t *since; /* for each partition: only rows that have
                                      changed behind it; NULL: all rows */
    uint64_t early_bytes;          /* as ps_image_args_t */
    bool exact;                    /* nothing that the job has pushed behind the clock is in it */
    bool in_turn;                  /* of no job: a partition waits until it is told to begin, so
                                      that fewer rows change before they are handed out */
} ps_image_order_t;

/* A step of the shard, as ps_shard_step makes them. */
typedef struct ps_image_step {
    uint64_t now_ms;
    ps_outbox_t *outbox;
} ps_image_step_t;

/* Holds back MARKs at the table's primaries for hold_ms or until begin. The
 * greatest clock of the job that one of them has closed, or, for an exact
 * image, has a mark of; 0: none. */
uint64_t ps_shard_image_arm(ps_shard_t *self, const ps_image_step_t *step,
                            const ps_image_order_t *order, uint64_t hold_ms);
/* No image is to begin: MARKs that are still held back go on with the next
 * tick, which is due. */
void ps_shard_image_disarm(ps_shard_t *self);
/* Begins, or waits for the clock, and lets MARKs go on. */
void ps_shard_image_begin(ps_shard_t *self, const ps_image_step_t *step,
                          const ps_image_order_t *order);
/* An image that is to begin in turn begins, and is not asked twice. */
void ps_shard_image_take_turn(ps_shard_t *self, const ps_image_step_t *step, uint32_t table,
                              uint32_t i);
/* Partitions of the table, wherever they are; 0: it is not known here. */
uint32_t ps_shard_image_partitions(const ps_shard_t *self, uint32_t table);
/* Partition i is primary here; false: it is not. */
bool ps_shard_image_look(const ps_shard_t *self, uint32_t table, uint32_t i,
                         ps_image_view_t *ret_view);
/* As ps_store_image_next, of a partition whose image has begun. */
PSD_MUST_CHECK psd_status_t ps_shard_image_next(ps_shard_t *self, uint32_t table, uint32_t i,
                                                size_t max_bytes, ps_payload_t **ret_piece,
                                                bool *ret_done, psd_error_t *err);
/* Ends the image of partition i. */
void ps_shard_image_end(ps_shard_t *self, uint32_t table, uint32_t i);

/* The last record that a restore has made; zeroes: none yet. */
typedef struct ps_restore_at {
    uint64_t lsn;
    uint64_t epoch; /* under which it was made */
} ps_restore_at_t;

/*
 * The next rows of partition i, which is primary here: a piece of an image.
 *
 * at: where the restore stands, which is moved. A primary that went and came
 * back has that record still, or the restore has failed.
 * Errors: PSD_BUSY copies or disk have to catch up first, ask again; PSD_DENIED
 * clients have pushed to it before; PSD_INVALID it is not primary here, or has
 * lost rows of before; PSD_PROTO, PSD_LIMIT, PSD_NOMEM. Nothing was recorded
 * then.
 */
PSD_MUST_CHECK psd_status_t ps_shard_restore(ps_shard_t *self, const ps_image_step_t *step,
                                             uint32_t table, uint32_t i, ps_payload_t *piece,
                                             ps_restore_at_t *at, psd_error_t *err);
/*
 * Partition i's rows up to `at` have reached the level of its table: only then
 * may somebody be told that it is restored.
 *
 * ret_reached: up to which record all have; it grows as long as they get on.
 * Errors: PSD_BUSY with what is waited for; PSD_INVALID it is not primary here,
 * or has lost some of them.
 */
PSD_MUST_CHECK psd_status_t ps_shard_restored(ps_shard_t *self, const ps_image_step_t *step,
                                              uint32_t table, uint32_t i, const ps_restore_at_t *at,
                                              uint64_t *ret_reached, psd_error_t *err);
#endif
