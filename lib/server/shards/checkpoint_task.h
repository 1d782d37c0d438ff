/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_checkpoint_task - a shard's part of a checkpoint, or of a restore
 *
 * What     The registry's control part calls it with JSON commands:
 *            {"do":"arm","exact":true,"tables":[{"id":1,"job":2},…]}
 *               marks wait for a moment; answers {"clock":c}
 *            {"do":"begin","number":7,"exact":true,"dir":"…","early_bytes":…,
 *             "tables":[{"id":1,"job":2,"clock":c,"since":[v,lsn,epoch,…]},…]}
 *               images of all primary partitions begin, those of no job one
 *               after the other (exact: at once); since: what an earlier image
 *               of each partition had
 *            {"do":"restore","number":8,"dirs":["…",…],"cluster":"…","table":3,
 *             "reader":…,"files":[{"dir":0,"table":1,"partition":0,"lsn":9,
 *             "sum":…,"bytes":…},…]}
 *               files are read in this order, each row set where it belongs;
 *               table 0: only read, by the first shard of that incarnation
 *            {"do":"look","number":7}
 *               answers {"is_done":false,
 *               "status":0,"text":"","row_bytes":…,"partitions":…,
 *               "done":…,"of":…,
 *               "items":[{…},…]}, which are named when all is done
 *            {"do":"end"}
 *          It ends by itself after PS_CHECKPOINT_LEASE_MS without a "look".
 *          Rows go piece by piece between messages; a thread handles the files.
 * Owner    The shard's actor. Threads: confined to its own.
 */
#ifndef PS_SERVER_CHECKPOINT_TASK_H
#define PS_SERVER_CHECKPOINT_TASK_H

#include "protocol/shard/shard_image.h"
#include "base/bytes.h"
#include "transport/threads/turns.h"

#define PS_CHECKPOINT_LEASE_MS 15000
/* Restored rows must reach the level of their table: a restore fails when
 * the copies or disk of a partition make no progress for that long. */
#define PS_CHECKPOINT_LEVEL_MS 60000

typedef struct ps_checkpoint_task ps_checkpoint_task_t;

/* Errors: PSD_NOMEM. args: of the shard. turns: of its threads; may be NULL. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_task_new(const ps_shard_args_t *args, ps_turns_t *turns,
                                                   ps_checkpoint_task_t **ret, psd_error_t *err);
/* Takes NULL; before the shard is destroyed. */
void ps_checkpoint_task_destroy(ps_checkpoint_task_t **self_p);
/* Does what `argument` says; the answer is appended, and is {"status":…,
 * "text":"…"} when it cannot be done. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_task_call(ps_checkpoint_task_t *self, ps_shard_t *shard,
                                                    const ps_image_step_t *step,
                                                    ps_bytes_t argument, ps_buffer_t *ret_answer,
                                                    psd_error_t *err);
/* Goes on by about one piece. Returns the milliseconds until it wants to go
 * on again; UINT64_MAX: nothing to do. */
uint64_t ps_checkpoint_task_work(ps_checkpoint_task_t *self, ps_shard_t *shard,
                                 const ps_image_step_t *step);
#endif
