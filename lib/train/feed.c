/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's thread while the training runs: it feeds, and waits. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "train/train.h"

/* ---- feeding ------------------------------------------------------------- */

static psd_status_t push_mark(psd_train_t *self, ps_item_kind_t kind, psd_error_t *err)
{
    ps_item_t *item = NULL;
    psd_status_t rc = ps_train_check_running(self, err);
    bool begins = kind == PS_ITEM_CLOCK_BEGIN;

    if (rc != PSD_OK) {
        return rc;
    }
    if (self->in_clock == begins) {
        return psd_error_set(err, PSD_INVALID,
                             begins ? "a clock has begun and not ended" : "no clock has begun");
    }
    item = ps_alloc(1, sizeof *item);
    if (item == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a clock");
    }
    item->kind = kind;
    ps_train_lock(self);
    rc = ps_train_check(self, err);
    if (rc == PSD_OK) {
        ps_item_add(self, item);
        if (self->options.outer_every > 0 && !begins) {
            self->has_rest = !item->ends_clock || self->options.outer_fragments > 1;
        }
        item = NULL;
        self->in_clock = begins;
    }
    ps_train_unlock(self);
    ps_item_destroy(&item);
    return rc;
}

psd_status_t psd_train_clock_begin(psd_train_t *self, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    return push_mark(self, PS_ITEM_CLOCK_BEGIN, err);
}

psd_status_t psd_train_clock_end(psd_train_t *self, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    return push_mark(self, PS_ITEM_CLOCK_END, err);
}

psd_status_t psd_train_push_block(psd_train_t *self, void *block, psd_train_free_t *free_block,
                                  uint32_t timeout_ms, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    uint64_t until_ms = ps_train_now_ms() + timeout_ms;
    char reason[PS_REASON_SIZE];
    ps_item_t *item = NULL;
    psd_status_t rc = ps_train_check_running(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!self->in_clock) {
        return psd_error_set(err, PSD_INVALID, "no clock has begun");
    }
    if (self->slice.wanted) {
        return psd_error_set(err, PSD_INVALID, "psd_train_next_slice has not ended; call it again");
    }
    item = ps_alloc(1, sizeof *item);
    if (item == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a block");
    }
    ps_train_lock(self);
    while (self->failed == PSD_OK && self->n_open >= self->options.max_blocks &&
           ps_train_now_ms() < until_ms) {
        ps_train_await_until(self, until_ms);
    }
    rc = ps_train_check(self, err);
    if (rc == PSD_OK && self->n_open >= self->options.max_blocks) {
        ps_train_print_reason(self, reason);
        rc = psd_error_set(err, PSD_DEADLINE,
                           "push a block: %" PRIu32 " ms passed; %" PRIu32
                           " blocks are not done: %s",
                           timeout_ms, self->n_open, reason);
    }
    if (rc == PSD_OK) {
        item->block = block;
        item->free_block = free_block;
        ps_item_add(self, item);
        item = NULL;
    }
    ps_train_unlock(self);
    ps_item_destroy(&item);
    return rc;
}

/* ---- waiting ------------------------------------------------------------- */

static bool is_idle(const psd_train_t *self)
{
    return TAILQ_EMPTY(&self->items) && self->n_parcels == 0 && !self->unflushed &&
           !self->slice.counting;
}

psd_status_t psd_train_wait(psd_train_t *self, uint32_t timeout_ms, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    uint64_t until_ms = ps_train_now_ms() + timeout_ms;
    char reason[PS_REASON_SIZE];
    psd_status_t rc = ps_train_check_running(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_train_lock(self);
    while (self->failed == PSD_OK && !is_idle(self) && ps_train_now_ms() < until_ms) {
        ps_train_await_until(self, until_ms);
    }
    rc = ps_train_check(self, err);
    if (rc == PSD_OK && !is_idle(self)) {
        ps_train_print_reason(self, reason);
        rc = psd_error_set(err, PSD_DEADLINE,
                           "wait for the training: %" PRIu32 " ms passed; "
                           "%" PRIu32 " blocks are not done: %s",
                           timeout_ms, self->n_open, reason);
    }
    ps_train_unlock(self);
    return rc;
}

/* Outer steps: sends what no push has sent yet. */
static psd_status_t push_rest(psd_train_t *self, psd_error_t *err)
{
    ps_item_t *item = NULL;

    if (!self->has_rest) {
        return PSD_OK;
    }
    item = ps_alloc(1, sizeof *item);
    if (item == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the last outer step");
    }
    item->kind = PS_ITEM_REST;
    ps_train_lock(self);
    ps_item_add(self, item);
    ps_train_unlock(self);
    self->has_rest = false;
    return PSD_OK;
}

psd_status_t psd_train_end(psd_train_t *self, uint32_t timeout_ms, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    uint64_t until_ms = ps_train_now_ms() + timeout_ms;
    uint64_t now_ms = 0;
    psd_status_t rc = ps_train_check_running(self, err);

    if (rc == PSD_OK && self->in_clock) {
        rc = psd_error_set(err, PSD_INVALID, "a clock has begun and not ended");
    }
    if (rc == PSD_OK) {
        rc = push_rest(self, err);
    }
    if (rc == PSD_OK) {
        rc = psd_train_wait(self, timeout_ms, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_train_stop(self);
    self->phase = PS_TRAIN_ENDED;
    now_ms = ps_train_now_ms();
    self->ended_ms = now_ms;
    ps_train_progress_tell(self, true);
    rc = psd_leave(self->client, until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0, err);
    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "end the training");
}

uint64_t psd_train_count(const psd_train_t *self, const char *what)
{
    const ps_train_counts_t *counts = &self->counts;
    const struct {
        const char *word;
        const _Atomic uint64_t *count;
    } rows[] = {{"blocks", &counts->blocks},
                {"clocks", &counts->clocks},
                {"rows-asked", &counts->rows_asked},
                {"rows-pulled", &counts->rows_pulled},
                {"cells-asked", &counts->cells_asked},
                {"cells-pulled", &counts->cells_pulled},
                {"adds", &counts->adds},
                {"entries-pushed", &counts->entries_pushed},
                {"done", &counts->done},
                {"total", &counts->total}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].word, what) == 0) {
            return *rows[i].count;
        }
    }
    return 0;
}
