/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/train/blocks: the way of a block
 *
 * It is       The loader, which finds out what a block needs and has it pulled;
 *             intents; the trainers, which read, add and send sums; the drift
 *             of outer steps.
 * It uses     courier, state, values, lib/model/updaters/finite.h, lib/base.
 * It ignores  The client, options, and how a training starts and ends.
 * Start at    loader.c, fetch.c, trainer.c, access.c.
 */
#ifndef PS_TRAIN_BLOCKS_H
#define PS_TRAIN_BLOCKS_H

#include "train/state/train_state.h"

void *ps_loader_run(void *train);
void *ps_trainer_run(void *trainer);

/* ---- fetch.c ---- */

/* Seals the block's cache, fills in what is kept, and hands over a pull of the
 * rest. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fetch_block(psd_train_t *train, ps_item_t *item,
                                           ps_parcel_t **parcel_p, psd_error_t *err);

/* ---- drift.c ---- */

/* All trainers have finished an item: what they added becomes drift. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_drift_take(psd_train_t *train, psd_error_t *err);
/* Adds the drift to a block's values, which have been fetched. */
void ps_drift_add(psd_train_t *train, const ps_cache_t *cache);
/* Makes a sheaf of a table's drift, which is sent: of the rows whose turn it
 * is, or of all. To a table whose updater takes gradients the negative of what
 * was added goes. Errors: those of ps_binder_bind. */
PSD_MUST_CHECK psd_status_t ps_drift_bind(psd_train_t *train, uint32_t table, bool all,
                                          ps_sheaf_t *ret_sheaf, psd_error_t *err);

/* ---- intent.c ---- */

/* A clock has begun: hands over a pull of the rows that intents lack. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_intents_fetch(psd_train_t *train, const ps_item_t *item,
                                             psd_error_t *err);
/* That clock is about to begin: intents that end before it need no room any
 * more. With ps_kept_lock held. */
void ps_intents_end(psd_train_t *train, uint64_t clock);
void ps_intents_free(psd_train_t *train);
#endif
