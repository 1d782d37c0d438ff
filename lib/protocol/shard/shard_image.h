/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_image, ps_shard_restore - rows of a table for a checkpoint, and back
 *
 * What     An image of every primary partition on this shard, each at one
 *          moment. If a job with clocks uses the table, that moment is right
 *          after one clock closed, the same clock in all partitions of the
 *          cluster. `arm` holds back MARKs for a short time and returns the
 *          clock that the furthest partition has closed. `begin` names the
 *          greatest of the whole cluster, and a partition begins when it has
 *          closed that clock: all workers have finished it, so their marks are
 *          in flight. BSP: exactly the result of these clocks; SSP: at least
 *          that. An `exact` image is exact under SSP too: `arm` returns the
 *          clock that the furthest member has marked, `begin` names the next
 *          one, and pushes after it wait until the partition's image has begun.
 *          A restored partition takes rows as records of its own, so that other
 *          copies and the log have them too. Requests of clients wait while the
 *          table is being restored (PS_EVENT_TABLE).
 * Threads  Confined to the shard's thread.
 */
#ifndef PS_PROTOCOL_SHARD_IMAGE_H
#define PS_PROTOCOL_SHARD_IMAGE_H

#include "model/store/store_image.h"
#include "protocol/partition/image_view.h"
#include "protocol/shard/shard.h"

typedef struct ps_image_order {
    uint32_t table;
    uint32_t job;                  /* whose clock; 0: every partition begins at once */
    uint64_t clock;                /* that must close first */
    const ps_image_since_t *since; /* for each partition: only rows that changed after it; NULL: all
                                      rows */
    uint64_t early_bytes;          /* as ps_image_args_t */
    bool exact;                    /* no push of the job after the clock is in it */
    bool in_turn;                  /* without a job: a partition waits for ps_shard_image_take_turn,
                                      so that fewer rows change before they are handed out */
} ps_image_order_t;

/* A step of the shard, as ps_shard_step makes them. */
typedef struct ps_image_step {
    uint64_t now_ms;
    ps_outbox_t *outbox;
} ps_image_step_t;

/* Holds back MARKs at the table's primaries for hold_ms or until begin. Returns
 * the greatest clock of the job that one of them has closed or, for an exact
 * image, has a mark of; 0: none. */
uint64_t ps_shard_image_arm(ps_shard_t *self, const ps_image_step_t *step,
                            const ps_image_order_t *order, uint64_t hold_ms);
/* No image will begin: MARKs that are still held back go on with the next tick,
 * which is due. */
void ps_shard_image_disarm(ps_shard_t *self);
/* Begins, or waits for the clock, and lets MARKs go on. */
void ps_shard_image_begin(ps_shard_t *self, const ps_image_step_t *step,
                          const ps_image_order_t *order);
/* Begins an image that waits for its turn; later calls do nothing. */
void ps_shard_image_take_turn(ps_shard_t *self, const ps_image_step_t *step, uint32_t table,
                              uint32_t i);
/* The number of the table's partitions, here or elsewhere; 0: the table is
 * unknown here. */
uint32_t ps_shard_image_partitions(const ps_shard_t *self, uint32_t table);
/* Returns the image of partition i; false: it is not primary here. */
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
 * at: the position of the restore, which advances. A primary that left and
 * returned still has that record, or the restore has failed.
 * Errors: PSD_BUSY copies or disk must catch up first, retry; PSD_DENIED
 * clients have pushed to it before; PSD_INVALID it is not primary here, or has
 * lost earlier rows; PSD_PROTO, PSD_LIMIT, PSD_NOMEM. Then nothing was
 * recorded.
 */
PSD_MUST_CHECK psd_status_t ps_shard_restore(ps_shard_t *self, const ps_image_step_t *step,
                                             uint32_t table, uint32_t i, ps_payload_t *piece,
                                             ps_restore_at_t *at, psd_error_t *err);
/*
 * Whether partition i's rows up to `at` have reached the level of its table:
 * only then may the restore be reported as done.
 *
 * ret_reached: the last record that all have; it grows while they make
 * progress. Errors: PSD_BUSY with the reason; PSD_INVALID it is not primary
 * here, or has lost some of them.
 */
PSD_MUST_CHECK psd_status_t ps_shard_restored(ps_shard_t *self, const ps_image_step_t *step,
                                              uint32_t table, uint32_t i, const ps_restore_at_t *at,
                                              uint64_t *ret_reached, psd_error_t *err);
#endif
