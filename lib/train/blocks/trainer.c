/* SPDX-License-Identifier: Apache-2.0 */
/* The trainers' threads: all of them work on the first item, and meet at its
 * end; the last one sends the sums of all. */
#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "train/blocks/blocks.h"
#include "train/courier/courier.h"

/* The maximum number of pushes that are handed over and not acknowledged; the
 * next one waits until one of them is over. */
#define PUSHES_MAX 4

static const char *const event_names[PS_TRAIN_EVENTS] = {"CLOCK_BEGIN", "ITERATION_BEGIN", "STEP",
                                                         "ITERATION_END", "CLOCK_END"};

/* The item to work on; NULL: there will be none. */
static ps_item_t *next_item(psd_trainer_t *self, uint64_t number)
{
    psd_train_t *train = self->train;
    ps_item_t *item = NULL;

    ps_train_lock(train);
    self->doing = (ps_doing_t){.what = NULL};
    for (;;) {
        item = TAILQ_FIRST(&train->items);
        if (train->failed != PSD_OK || (item == NULL && train->stop) ||
            (item != NULL && item->number == number && item->ready)) {
            break;
        }
        ps_train_await(train);
    }
    if (train->failed != PSD_OK) {
        item = NULL;
    }
    ps_train_unlock(train);
    return item;
}

/* ---- call-backs ---------------------------------------------------------- */

static psd_status_t call(psd_trainer_t *self, psd_train_event_t event, const ps_item_t *item,
                         psd_error_t *err)
{
    psd_train_t *train = self->train;
    psd_status_t rc = PSD_OK;

    if (train->on[event] == NULL) {
        return PSD_OK;
    }
    ps_train_lock(train);
    self->doing = (ps_doing_t){.what = event_names[event], .n_block = item->n_block};
    ps_train_unlock(train);
    rc = train->on[event](train->user, self, item->block, err);
    if (rc == PSD_OK && self->fault != PSD_OK) {
        rc = psd_error_set(err, self->fault, "%s", psd_error_text(self->fault_err));
    }
    if (rc == PSD_OK) {
        return rc;
    }
    return item->kind == PS_ITEM_BLOCK
               ? psd_error_wrap(err, rc, "block %" PRIu64 ": trainer %" PRIu32 ": %s",
                                item->n_block, self->id, event_names[event])
               : psd_error_wrap(err, rc, "trainer %" PRIu32 ": %s", self->id, event_names[event]);
}

static psd_status_t work(psd_trainer_t *self, const ps_item_t *item, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->cache = item->cache;
    switch (item->kind) {
    case PS_ITEM_CLOCK_BEGIN:
        return call(self, PSD_TRAIN_CLOCK_BEGIN, item, err);
    case PS_ITEM_CLOCK_END:
        return call(self, PSD_TRAIN_CLOCK_END, item, err);
    case PS_ITEM_SLICE:
    case PS_ITEM_REST:
        return PSD_OK;
    case PS_ITEM_BLOCK:
    default:
        rc = call(self, PSD_TRAIN_ITERATION_BEGIN, item, err);
        if (rc == PSD_OK) {
            rc = call(self, PSD_TRAIN_STEP, item, err);
        }
        return rc == PSD_OK ? call(self, PSD_TRAIN_ITERATION_END, item, err) : rc;
    }
}

/* ---- the last one -------------------------------------------------------- */

/* The sums of all trainers for a table, in the order of the trainers. Sums with
 * a place for each cell are added up first: they are contiguous. */
static psd_status_t bind_table(psd_train_t *train, size_t table, ps_sheaf_t *ret_sheaf,
                               psd_error_t *err)
{
    const ps_sums_t *sums[PS_BINDER_SUMS_MAX];
    ps_sums_t *merged = &train->merged[table];
    psd_status_t rc = PSD_OK;
    size_t n = 0;

    for (size_t k = 0; k < train->options.n_trainers; k++) {
        if (train->trainers[k].sums[table].n_touched > 0) {
            sums[n++] = &train->trainers[k].sums[table];
        }
    }
    if (n > 1 && merged->direct) {
        for (size_t k = 0; rc == PSD_OK && k < n; k++) {
            rc = ps_sums_merge(merged, sums[k], err);
        }
        sums[0] = merged;
        n = 1;
    }
    if (rc == PSD_OK && n > 0) {
        rc = ps_binder_bind(&train->binder, sums, n, ret_sheaf, err);
    }
    for (size_t k = 0; k < train->options.n_trainers; k++) {
        ps_sums_clear(&train->trainers[k].sums[table]);
    }
    ps_sums_clear(merged);
    return rc;
}

/* Makes one push of the sums of all trainers, or of the drift: of a fragment, or
 * of all; *ret_parcel stays NULL when there are none. */
static psd_status_t bind_sums(psd_train_t *train, bool all, ps_parcel_t **ret_parcel,
                              psd_error_t *err)
{
    ps_parcel_t *parcel = ps_alloc(1, sizeof *parcel);
    psd_status_t rc = PSD_OK;
    size_t n = 0;

    if (parcel != NULL) {
        parcel->sheaves = ps_alloc(train->n_tables, sizeof *parcel->sheaves);
    }
    if (parcel == NULL || parcel->sheaves == NULL) {
        ps_free(parcel);
        return psd_error_set(err, PSD_NOMEM, "no memory for a push");
    }
    parcel->kind = PS_PARCEL_PUSH;
    parcel->n_sheaves = train->n_tables;
    for (uint32_t i = 0; rc == PSD_OK && i < train->n_tables; i++) {
        rc = train->drift != NULL ? ps_drift_bind(train, i, all, &parcel->sheaves[i], err)
                                  : bind_table(train, i, &parcel->sheaves[i], err);
        n += parcel->sheaves[i].n_rows;
    }
    if (rc != PSD_OK || n == 0) {
        ps_parcel_destroy(&parcel);
        return rc;
    }
    *ret_parcel = parcel;
    return PSD_OK;
}

/* Updates the kept rows in the same step. */
static psd_status_t hand_over(psd_train_t *train, ps_parcel_t **parcel_p, psd_error_t *err)
{
    ps_parcel_t *parcel = *parcel_p;
    psd_status_t rc = PSD_OK;

    if (train->keeps) {
        ps_kept_lock(&train->kept);
        for (uint32_t i = 0; rc == PSD_OK && i < parcel->n_sheaves; i++) {
            rc = ps_kept_push(&train->kept, i, &parcel->sheaves[i], err);
        }
        if (rc == PSD_OK && parcel->kind == PS_PARCEL_CLOCK) {
            ps_intents_end(train, train->kept.clock + 1);
            rc = ps_kept_mark(&train->kept, err);
        }
    }
    if (rc == PSD_OK) {
        ps_train_lock(train);
        ps_parcel_send(train, parcel_p);
        ps_train_unlock(train);
    }
    if (train->keeps) {
        ps_kept_unlock(&train->kept);
    }
    return rc;
}

/* Hands it over, when there are not too many. */
static psd_status_t send_push(psd_train_t *train, ps_parcel_t **parcel_p, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_train_lock(train);
    while (train->failed == PSD_OK && train->n_pushes >= PUSHES_MAX) {
        ps_train_await(train);
    }
    rc = ps_train_check(train, err);
    ps_train_unlock(train);
    if (rc == PSD_OK) { /* nobody else hands over pushes */
        rc = hand_over(train, parcel_p, err);
    }
    ps_parcel_destroy(parcel_p);
    return rc;
}

static psd_status_t send_sums(psd_train_t *train, const ps_item_t *item, psd_error_t *err)
{
    ps_parcel_t *parcel = NULL;
    psd_status_t rc = bind_sums(train, item->kind == PS_ITEM_REST, &parcel, err);

    train->n_unsent = 0;
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "block %" PRIu64 ": sums", item->n_block);
    }
    if (parcel == NULL) {
        return PSD_OK;
    }
    parcel->n_block = item->n_block;
    return send_push(train, &parcel, err);
}

/* The end of a clock, or the wish for another slice. */
static psd_status_t send_bare(psd_train_t *train, ps_parcel_kind_t kind, psd_error_t *err)
{
    ps_parcel_t *parcel = ps_alloc(1, sizeof *parcel);
    psd_status_t rc = PSD_OK;

    if (parcel == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a parcel");
    }
    parcel->kind = kind;
    rc = hand_over(train, &parcel, err);
    ps_parcel_destroy(&parcel);
    return rc;
}

/* All trainers have finished the item, and wait. */
static psd_status_t complete(psd_train_t *train, const ps_item_t *item, psd_error_t *err)
{
    uint32_t every = train->options.push_every;
    ps_parcel_kind_t kind = PS_PARCEL_SLICE;
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; i < train->options.n_trainers; i++) {
        train->counts.adds += train->trainers[i].n_adds;
        train->trainers[i].n_adds = 0;
    }
    if (item->kind == PS_ITEM_CLOCK_BEGIN) {
        if (train->drift != NULL) { /* and no intents */
            return ps_drift_take(train, err);
        }
        return train->keeps ? ps_intents_fetch(train, item, err) : PSD_OK;
    }
    if (item->kind == PS_ITEM_BLOCK) {
        ps_train_progress_add(train, 1);
        train->n_unsent++;
        if (train->drift != NULL) {
            return ps_drift_take(train, err);
        }
        return every > 0 && train->n_unsent >= every ? send_sums(train, item, err) : PSD_OK;
    }
    if (item->kind == PS_ITEM_CLOCK_END) {
        ps_train_progress_add(train, 0);
        kind = PS_PARCEL_CLOCK;
    }
    if (train->drift != NULL) {
        kind = PS_PARCEL_CLOCK;
        rc = ps_drift_take(train, err);
        if (rc != PSD_OK || !item->ends_clock) {
            return rc;
        }
    }
    rc = send_sums(train, item, err);
    if (rc == PSD_OK) {
        rc = send_bare(train, kind, err);
    }
    if (item->kind == PS_ITEM_REST) { /* the turns of fragments do not tell what was sent */
        ps_kept_lock(&train->kept);
        ps_kept_forget(&train->kept);
        ps_kept_unlock(&train->kept);
    }
    return rc;
}

/* Takes the item away, so that the next one is first. */
static void retire(psd_train_t *train, ps_item_t *item)
{
    if (item->kind == PS_ITEM_BLOCK) {
        train->counts.blocks++;
    } else if (item->kind == PS_ITEM_CLOCK_END) {
        train->counts.clocks++;
    }
    if (item->free_block != NULL) {
        item->free_block(item->block);
        item->free_block = NULL;
    }
    ps_train_lock(train);
    assert(TAILQ_FIRST(&train->items) == item);
    TAILQ_REMOVE(&train->items, item, in_list);
    train->n_open -= item->kind == PS_ITEM_BLOCK ? 1 : 0;
    ps_train_tell(train);
    ps_train_unlock(train);
    ps_item_destroy(&item);
}

/* True for the last one; the others may not look at the item any more. */
static bool arrive(psd_trainer_t *self, ps_item_t *item)
{
    bool last = false;

    ps_train_lock(self->train);
    self->doing = (ps_doing_t){.what = NULL};
    item->n_left--;
    last = item->n_left == 0 && self->train->failed == PSD_OK;
    ps_train_unlock(self->train);
    return last;
}

void *ps_trainer_run(void *arg)
{
    psd_trainer_t *self = arg;
    psd_train_t *train = self->train;
    psd_error_t *err = psd_error_new(); /* NULL: reasons are lost */
    psd_status_t rc = PSD_OK;
    ps_item_t *item = NULL;

    for (uint64_t number = 1; rc == PSD_OK; number++) {
        item = next_item(self, number);
        if (item == NULL) {
            break;
        }
        rc = work(self, item, err);
        if (rc == PSD_OK && arrive(self, item)) {
            rc = complete(train, item, err);
            if (rc == PSD_OK) {
                if (item->kind == PS_ITEM_BLOCK) {
                    ps_train_progress_tell(train, false);
                }
                retire(train, item);
            }
        }
    }
    if (rc != PSD_OK) {
        ps_train_fail(train, rc, err);
    }
    psd_error_destroy(&err);
    return NULL;
}
