/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The courier: the thread that uses the client while a training runs. It starts
 * parcels in the order in which they are handed over, so a pull comes after the
 * pushes and marks that were sent before it. It waits for all of them at once:
 * no parcel waits because another one does.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "train/courier/courier.h"

/* The longest delay of a parcel that is handed over while the courier waits for
 * an answer. */
#define LOOK_MS 1
#define SLICE_LOOK_MS 5 /* the same while only a slice is waited for */

typedef struct courier {
    psd_train_t *train;
    struct ps_parcels under_way; /* owned; started, not over */
    psd_error_t *err;            /* owned */
    bool unflushed;              /* pushes or marks are not acknowledged */
    uint64_t flush_until_ms;
} courier_t;

/* The prefix of a parcel's error text. */
static psd_status_t name_failure(courier_t *self, const ps_parcel_t *parcel, psd_status_t rc)
{
    switch (parcel->kind) {
    case PS_PARCEL_PULL:
        return psd_error_wrap(self->err, rc, "block %" PRIu64 ": pull", parcel->n_block);
    case PS_PARCEL_PUSH:
        return psd_error_wrap(self->err, rc, "block %" PRIu64 ": push", parcel->n_block);
    case PS_PARCEL_SLICE:
    case PS_PARCEL_CLOCK:
    default:
        return psd_error_wrap(self->err, rc, "clock");
    }
}

/* It is over: wakes the thread that waits for it. */
static void finish(courier_t *self, ps_parcel_t *parcel)
{
    psd_train_t *train = self->train;

    if (parcel->ahead && parcel->n_tickets == 0) {
        ps_kept_take_cache(&train->kept, parcel->cache);
    }
    ps_train_lock(train);
    train->n_parcels--;
    train->n_prefetched += parcel->ahead ? 1 : 0;
    train->n_pushes -= parcel->kind == PS_PARCEL_PUSH ? 1 : 0;
    if (parcel->done_p != NULL) {
        *parcel->done_p = true;
    }
    ps_train_tell(train);
    ps_train_unlock(train);
    ps_parcel_destroy(&parcel);
}

static void set_flush_deadline(courier_t *self)
{
    self->flush_until_ms = ps_train_now_ms() + self->train->options.timeout_ms;
}

static psd_status_t start(courier_t *self, ps_parcel_t *parcel)
{
    psd_status_t rc = ps_parcel_start(self->train, parcel, self->err);

    if (parcel->kind == PS_PARCEL_PUSH || parcel->kind == PS_PARCEL_CLOCK) {
        self->unflushed = true;
        set_flush_deadline(self);
    }
    TAILQ_INSERT_TAIL(&self->under_way, parcel, in_list);
    return rc == PSD_OK ? rc : name_failure(self, parcel, rc);
}

/* Takes the results of tickets that have ended. */
static psd_status_t collect(courier_t *self, ps_parcel_t *parcel)
{
    psd_client_t *client = self->train->client;
    psd_status_t rc = PSD_OK;
    size_t kept = 0;

    for (size_t i = 0; i < parcel->n_tickets; i++) {
        psd_ticket_t ticket = parcel->tickets[i];
        bool ended = false;

        if (rc == PSD_OK) {
            rc = psd_poll(client, ticket, &ended, self->err);
        }
        if (rc == PSD_OK && ended) {
            rc = psd_wait(client, ticket, 0, self->err);
        } else {
            parcel->tickets[kept++] = ticket;
        }
    }
    parcel->n_tickets = kept;
    return rc == PSD_OK ? rc : name_failure(self, parcel, rc);
}

/* Waits for pulls first, because a block waits for them. */
static ps_parcel_t *most_wanted(const courier_t *self)
{
    ps_parcel_t *parcel = NULL;

    TAILQ_FOREACH(parcel, &self->under_way, in_list)
    {
        if (parcel->kind == PS_PARCEL_PULL) {
            return parcel;
        }
    }
    return TAILQ_FIRST(&self->under_way);
}

/* Lets the client work for a moment, or until a message has arrived. */
static psd_status_t work(courier_t *self)
{
    psd_client_t *client = self->train->client;
    psd_status_t rc = PSD_OK;
    ps_parcel_t *parcel = most_wanted(self);

    if (parcel != NULL && parcel->n_tickets > 0) {
        rc = psd_wait(client, parcel->tickets[0], LOOK_MS, self->err);
        if (rc == PSD_OK) {
            parcel->tickets[0] = parcel->tickets[--parcel->n_tickets];
        } else if (rc == PSD_DEADLINE) {
            bool ended = false;

            /* Its own deadline, when it is used up; else only ours. */
            if (psd_poll(client, parcel->tickets[0], &ended, NULL) == PSD_OK) {
                psd_error_clear(self->err);
                rc = PSD_OK;
            }
        }
        return rc == PSD_OK ? rc : name_failure(self, parcel, rc);
    }
    if (self->unflushed) {
        rc = psd_flush(client, LOOK_MS, self->err);
        if (ps_slice_is_awaited(self->train)) {
            set_flush_deadline(self);
        }
        if (rc == PSD_OK) {
            self->unflushed = false;
        } else if (rc == PSD_DEADLINE && ps_train_now_ms() < self->flush_until_ms) {
            psd_error_clear(self->err);
            rc = PSD_OK;
        }
    } else {
        ps_slice_work(self->train, SLICE_LOOK_MS);
    }
    return rc;
}

static psd_status_t finish_ended(courier_t *self)
{
    ps_parcel_t *parcel = TAILQ_FIRST(&self->under_way);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && parcel != NULL) {
        ps_parcel_t *next = TAILQ_NEXT(parcel, in_list);

        rc = collect(self, parcel);
        if (rc == PSD_OK && parcel->n_tickets == 0) {
            TAILQ_REMOVE(&self->under_way, parcel, in_list);
            finish(self, parcel);
        }
        parcel = next;
    }
    return rc;
}

/* All pushes that were handed over before are acknowledged. */
static bool is_pushed(const courier_t *self)
{
    const ps_parcel_t *parcel = NULL;

    TAILQ_FOREACH(parcel, &self->under_way, in_list)
    {
        if (parcel->kind == PS_PARCEL_PUSH) {
            return false;
        }
    }
    return true;
}

/* The next parcel that was handed over; NULL: none. *ret_over: there will be
 * none, and nothing is left to do. Waits when there is nothing to wait for
 * elsewhere. */
static ps_parcel_t *take(courier_t *self, bool *ret_over)
{
    psd_train_t *train = self->train;
    bool busy = !TAILQ_EMPTY(&self->under_way) || self->unflushed;
    ps_parcel_t *parcel = NULL;

    ps_train_lock(train);
    busy |= ps_slice_is_under_way(train) && !train->stop;
    if (train->unflushed && !self->unflushed && TAILQ_EMPTY(&train->parcels)) {
        train->unflushed = false;
        ps_train_tell(train);
    }
    while (train->failed == PSD_OK && TAILQ_EMPTY(&train->parcels) && !busy && !train->stop) {
        ps_train_await(train);
    }
    parcel = TAILQ_FIRST(&train->parcels);
    if (parcel != NULL) {
        TAILQ_REMOVE(&train->parcels, parcel, in_list);
        train->unflushed |= parcel->kind == PS_PARCEL_PUSH || parcel->kind == PS_PARCEL_CLOCK;
    }
    *ret_over = train->failed != PSD_OK || (parcel == NULL && !busy && train->stop);
    ps_train_unlock(train);
    return parcel;
}

void *ps_courier_run(void *arg)
{
    courier_t self = {.train = arg};
    psd_status_t rc = PSD_OK;
    bool over = false;

    TAILQ_INIT(&self.under_way);
    self.err = psd_error_new(); /* NULL: reasons are lost, not failures */
    while (rc == PSD_OK && !over) {
        ps_parcel_t *parcel = take(&self, &over);

        if (parcel != NULL) {
            rc = start(&self, parcel);
        } else if (!over) {
            rc = work(&self);
        }
        if (rc == PSD_OK && !over) {
            rc = finish_ended(&self);
        }
        if (rc == PSD_OK && !over) {
            rc = ps_slice_turn(self.train, is_pushed(&self), self.err);
        }
    }
    ps_slice_stop(self.train);
    if (rc != PSD_OK) {
        ps_train_fail(self.train, rc, self.err);
    }
    ps_train_leave_failed(self.train);
    /* Only closing the client ends the loans of what is under way. */
    if (!TAILQ_EMPTY(&self.under_way)) {
        psd_close(&self.train->client);
    }
    while (!TAILQ_EMPTY(&self.under_way)) {
        ps_parcel_t *parcel = TAILQ_FIRST(&self.under_way);

        TAILQ_REMOVE(&self.under_way, parcel, in_list);
        finish(&self, parcel);
    }
    psd_error_destroy(&self.err);
    return NULL;
}
