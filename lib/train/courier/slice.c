/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices from the job's work queue. The caller's thread asks; the courier does
 * the rest in steps, because it must not wait:
 *
 *   PUSHES   until all pushes that were handed over before are acknowledged
 *   SAY      then it reports the slice before as done
 *   ASK      then it asks for the next one, and finishes clocks meanwhile
 *
 * When an answer does not come in time, the courier retries as long as the
 * training runs: that no slice is free now is no failure.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "client/job/work.h"
#include "client/requests/pump.h"
#include "train/courier/courier.h"

#define STEP_MS 2000  /* of a question; then the node says who has slices */
#define LEAVE_MS 2000 /* for the answer that a worker has left */
#define PAUSE_MS 100  /* after a node could not answer */

/* ---- the caller's thread ------------------------------------------------- */

psd_status_t ps_slice_check(const psd_train_t *self, psd_error_t *err)
{
    const ps_train_options_t *options = &self->options;

    return options->queue == NULL || options->n_slices > 0
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID, "queue is \"%.80s\", and slices is not set",
                               options->queue);
}

/* No worker waits for one that does not come. */
psd_status_t ps_slice_open(psd_train_t *self, psd_error_t *err)
{
    const ps_train_options_t *options = &self->options;
    psd_status_t rc = PSD_OK;
    psd_status_t left = PSD_OK;

    if (options->queue == NULL) {
        return PSD_OK;
    }
    rc = psd_work_open(self->client, options->queue, options->n_slices, options->n_epochs,
                       &self->work, err);
    if (rc != PSD_OK) {
        rc = psd_error_wrap(err, rc, "open the queue");
        left = psd_fail(self->client, psd_error_text(err), LEAVE_MS, NULL);
        (void)left; /* its silence ends it */
    }
    return rc;
}

/* Appends the item that brings the courier the question, after all blocks.
 * Locked. */
static psd_status_t ask(psd_train_t *self, psd_error_t *err)
{
    ps_item_t *item = ps_alloc(1, sizeof *item);

    if (item == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a slice");
    }
    item->kind = PS_ITEM_SLICE;
    self->slice.wanted = true;
    self->slice.here = false;
    self->slice.counting = self->slice.epoch != 0;
    self->slice.why[0] = '\0';
    ps_item_add(self, item);
    return PSD_OK;
}

/* Locked. */
static psd_status_t say_late(const psd_train_t *self, uint32_t timeout_ms, psd_error_t *err)
{
    const ps_train_slice_t *slice = &self->slice;
    char reason[PS_REASON_SIZE];

    if (!TAILQ_EMPTY(&self->items) || self->n_pushes > 0) {
        ps_train_print_reason(self, reason);
        return psd_error_set(err, PSD_DEADLINE, "next slice: %" PRIu32 " ms passed; %s", timeout_ms,
                             reason);
    }
    if (slice->counting) {
        return psd_error_set(
            err, PSD_DEADLINE,
            "next slice: %" PRIu32 " ms passed; slice %" PRIu32 " is not counted: %s", timeout_ms,
            slice->slice, slice->why[0] == '\0' ? "no answer yet" : slice->why);
    }
    return psd_error_set(err, PSD_DEADLINE, "next slice: %" PRIu32 " ms passed; %s", timeout_ms,
                         slice->why[0] == '\0' ? "none is free, or no answer yet" : slice->why);
}

psd_status_t psd_train_next_slice(psd_train_t *self, uint32_t timeout_ms, uint64_t *ret_epoch,
                                  uint32_t *ret_slice, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_train_slice_t *slice = &self->slice;
    uint64_t until_ms = ps_train_now_ms() + timeout_ms;
    psd_status_t rc = ps_train_check_running(self, err);

    if (rc == PSD_OK && self->work == NULL) {
        rc = psd_error_set(err, PSD_INVALID,
                           "the training has no queue; psd_train_set takes "
                           "queue, slices and epochs");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_train_lock(self);
    if (!slice->wanted) {
        rc = ask(self, err);
    }
    while (rc == PSD_OK && self->failed == PSD_OK && !slice->here && ps_train_now_ms() < until_ms) {
        ps_train_await_until(self, until_ms);
    }
    if (rc == PSD_OK) {
        rc = ps_train_check(self, err);
    }
    if (rc == PSD_OK && !slice->here) {
        rc = say_late(self, timeout_ms, err);
    }
    if (rc == PSD_OK) {
        slice->wanted = false;
        *ret_epoch = slice->epoch;
        *ret_slice = slice->slice;
    }
    ps_train_unlock(self);
    return rc;
}

uint64_t psd_train_first_clock(const psd_train_t *self)
{
    return self->first_clock;
}

/* ---- the courier --------------------------------------------------------- */

void ps_slice_start(psd_train_t *self)
{
    self->slice.step = PS_SLICE_PUSHES;
}

/* Nothing is under way any more; what the question says is to be kept. */
static psd_status_t begin(psd_train_t *self, psd_error_t *err)
{
    ps_train_slice_t *slice = &self->slice;
    psd_status_t rc = PSD_OK;

    if (ps_train_now_ms() < slice->again_ms) {
        return PSD_OK;
    }
    if (slice->step == PS_SLICE_SAY) {
        rc = ps_work_done_begin(self->work, slice->epoch, slice->slice, STEP_MS, err);
    } else {
        slice->clock = psd_clock_count(self->client);
        rc = ps_work_next_begin(self->work, STEP_MS, slice->waits, err);
    }
    slice->asking = rc == PSD_OK;
    return rc;
}

/* Clocks that the worker finished meanwhile also age the kept rows: in each of
 * them other workers have pushed, and this worker's pushes took effect. */
static void forget_kept(psd_train_t *self)
{
    if (self->keeps && psd_clock_count(self->client) != self->slice.clock) {
        ps_kept_lock(&self->kept);
        ps_kept_forget(&self->kept);
        ps_kept_unlock(&self->kept);
    }
}

/* The slice was counted. */
static void take_count(psd_train_t *self)
{
    ps_train_lock(self);
    self->slice.counting = false;
    self->slice.epoch = 0;
    self->slice.why[0] = '\0';
    self->slice.step = PS_SLICE_ASK;
    ps_train_tell(self);
    ps_train_unlock(self);
}

static void take_slice(psd_train_t *self, uint64_t epoch, uint32_t number)
{
    ps_train_lock(self);
    self->slice.epoch = epoch;
    self->slice.slice = number;
    self->slice.here = true;
    self->slice.step = PS_SLICE_NONE;
    ps_train_tell(self);
    ps_train_unlock(self);
}

/* It is asked again, under the same number. */
static void repeat(psd_train_t *self, psd_status_t rc, psd_error_t *err)
{
    ps_train_slice_t *slice = &self->slice;

    slice->again_ms = ps_train_now_ms() + (rc == PSD_DEADLINE ? 0 : PAUSE_MS);
    slice->waits = slice->step == PS_SLICE_ASK && rc == PSD_DEADLINE;
    ps_train_lock(self);
    (void)snprintf(slice->why, sizeof slice->why, "%s", psd_error_text(err));
    ps_train_unlock(self);
    psd_error_clear(err);
}

static psd_status_t end(psd_train_t *self, psd_error_t *err)
{
    ps_train_slice_t *slice = &self->slice;
    bool says = slice->step == PS_SLICE_SAY;
    uint64_t epoch = 0;
    uint32_t number = 0;
    psd_status_t rc = says ? ps_work_done_end(self->work, err)
                           : ps_work_next_end(self->work, &epoch, &number, err);

    slice->asking = false;
    if (!says) {
        forget_kept(self); /* before blocks of the slice can be loaded */
    }
    if (rc == PSD_DEADLINE || rc == PSD_STOPPING || rc == PSD_BUSY) {
        repeat(self, rc, err);
        return PSD_OK;
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, says ? "slice" : "next slice");
    }
    if (says) {
        take_count(self);
    } else {
        take_slice(self, epoch, number);
    }
    return PSD_OK;
}

psd_status_t ps_slice_turn(psd_train_t *self, bool pushed, psd_error_t *err)
{
    ps_train_slice_t *slice = &self->slice;
    bool over = false;
    psd_status_t rc = PSD_OK;

    if (slice->step == PS_SLICE_PUSHES && pushed) {
        slice->step = slice->epoch != 0 ? PS_SLICE_SAY : PS_SLICE_ASK;
        slice->again_ms = 0;
        slice->waits = false;
    }
    if (slice->step != PS_SLICE_SAY && slice->step != PS_SLICE_ASK) {
        return PSD_OK;
    }
    if (!slice->asking) {
        return begin(self, err);
    }
    rc = ps_work_look(self->work, &over, err);
    if (rc == PSD_OK && over) {
        rc = end(self, err);
    }
    return rc;
}

bool ps_slice_is_awaited(const psd_train_t *self)
{
    return self->slice.step == PS_SLICE_ASK;
}

bool ps_slice_is_under_way(const psd_train_t *self)
{
    return self->slice.step != PS_SLICE_NONE;
}

void ps_slice_work(psd_train_t *self, uint32_t timeout_ms)
{
    ps_pump(self->client, ps_now_ms() + timeout_ms);
}

void ps_slice_stop(psd_train_t *self)
{
    if (self->slice.asking) {
        ps_work_cancel(self->work);
        self->slice.asking = false;
    }
    self->slice.step = PS_SLICE_NONE;
}
