/* SPDX-License-Identifier: Apache-2.0 */
/* A training's lock, its failure, and its items. */
#include "train/state/train_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "transport/threads/fork.h"

#define LEAVE_MS 2000 /* for the answer that a failed worker has left */

/* ---- the mutex ----------------------------------------------------------- */

void ps_train_lock(psd_train_t *self)
{
    (void)pthread_mutex_lock(&self->mutex);
}

void ps_train_unlock(psd_train_t *self)
{
    (void)pthread_mutex_unlock(&self->mutex);
}

void ps_train_tell(psd_train_t *self)
{
    (void)pthread_cond_broadcast(&self->changed);
}

void ps_train_await(psd_train_t *self)
{
    (void)pthread_cond_wait(&self->changed, &self->mutex);
}

void ps_train_await_until(psd_train_t *self, uint64_t until_ms)
{
    struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                             .tv_nsec = (long)(until_ms % 1000) * 1000000L};

    (void)pthread_cond_timedwait(&self->changed, &self->mutex, &until);
}

uint64_t ps_train_now_ms(void)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- failing ------------------------------------------------------------- */

void ps_train_fail_locked(psd_train_t *self, psd_status_t rc, const psd_error_t *why)
{
    if (self->failed == PSD_OK) {
        const char *text = psd_error_text(why);

        self->failed = rc;
        (void)psd_error_set(self->why, rc, "%s", text[0] == '\0' ? psd_status_text(rc) : text);
        ps_train_tell(self);
    }
}

void ps_train_fail(psd_train_t *self, psd_status_t rc, const psd_error_t *why)
{
    ps_train_lock(self);
    ps_train_fail_locked(self, rc, why);
    ps_train_unlock(self);
}

psd_status_t ps_train_check(const psd_train_t *self, psd_error_t *err)
{
    if (self->failed == PSD_OK) {
        return PSD_OK;
    }
    return psd_error_set(err, self->failed, "%s", psd_error_text(self->why));
}

void ps_train_leave_failed(psd_train_t *self)
{
    psd_status_t rc = PSD_OK;

    ps_train_lock(self);
    rc = self->failed;
    ps_train_unlock(self);
    if (rc != PSD_OK && self->client != NULL) { /* its text stays from then on */
        rc = psd_fail(self->client, psd_error_text(self->why), LEAVE_MS, NULL);
        (void)rc; /* its silence ends it */
    }
}

psd_status_t ps_train_enter(const psd_train_t *self, psd_error_t *err)
{
    psd_error_clear(err);
    return ps_fork_is_since(self->n_forks) ? ps_fork_error("training", err) : PSD_OK;
}

/* ---- items ---- */

void ps_item_destroy(ps_item_t **self_p)
{
    ps_item_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->free_block != NULL) {
        self->free_block(self->block);
    }
    ps_free(self);
    *self_p = NULL;
}

/* A failure of the training comes before any other error. */
psd_status_t ps_train_check_running(psd_train_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->phase != PS_TRAIN_RUNNING) {
        return psd_error_set(err, PSD_INVALID,
                             self->phase == PS_TRAIN_ENDED
                                 ? "the training has ended"
                                 : "psd_train_begin must be called first");
    }
    ps_train_lock(self);
    rc = ps_train_check(self, err);
    ps_train_unlock(self);
    return rc;
}

void ps_train_print_reason(const psd_train_t *self, char ret_text[PS_REASON_SIZE])
{
    for (uint32_t i = 0; i < self->options.n_trainers; i++) {
        const ps_doing_t *doing = &self->trainers[i].doing;

        if (doing->what != NULL) {
            (void)snprintf(ret_text, PS_REASON_SIZE, "trainer %" PRIu32 " is in %s, block %" PRIu64,
                           i, doing->what, doing->n_block);
            return;
        }
    }
    if (self->loader.doing.what != NULL) {
        (void)snprintf(ret_text, PS_REASON_SIZE, "the loader is in %s block %" PRIu64,
                       self->loader.doing.what, self->loader.doing.n_block);
    } else if (self->n_pushes > 0 || self->unflushed) {
        (void)snprintf(ret_text, PS_REASON_SIZE,
                       "%" PRIu32 " pushes, or a clock's marks, are not "
                       "acknowledged",
                       self->n_pushes);
    } else if (self->slice.counting) {
        (void)snprintf(ret_text, PS_REASON_SIZE, "slice %" PRIu32 " is not counted",
                       self->slice.slice);
    } else {
        (void)snprintf(ret_text, PS_REASON_SIZE, "threads are about to continue");
    }
}

static uint32_t outer_every(const psd_train_t *self)
{
    return self->options.outer_every > 0 ? self->options.outer_every : 1;
}

void ps_item_add(psd_train_t *self, ps_item_t *item)
{
    if (item->kind == PS_ITEM_BLOCK) {
        self->n_blocks++;
        self->n_open++;
    }
    item->number = ++self->n_items;
    item->n_block = self->n_blocks;
    item->n_clock = self->n_clocks + 1;
    item->n_inner = self->n_inner;
    self->n_inner += item->kind == PS_ITEM_CLOCK_END ? 1 : 0;
    item->ends_clock = item->kind == PS_ITEM_REST ||
                       (item->kind == PS_ITEM_CLOCK_END && self->n_inner >= outer_every(self));
    if (item->ends_clock) {
        self->n_clocks++;
        self->n_inner = 0;
    }
    item->n_left = self->options.n_trainers;
    TAILQ_INSERT_TAIL(&self->items, item, in_list);
    ps_train_tell(self);
}
