/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for one of several sockets. A look at shared memory (a lane, most
 * plug-ins) is free; a look at ZeroMQ costs a system call. A wait that finds
 * something in shared memory asks ZeroMQ only now and then. One that finds
 * nothing spins for a while (spin.h) and then sleeps on everything.
 */
#include <limits.h>

#include "base/alloc.h"
#include "transport/sockets/poll.h"
#include "transport/sockets/socket_inner.h"

#define FEW 88                 /* items that need no heap */
#define ASK_EVERY 16           /* waits that found something in a lane */
#define BULK_BYTES (128 << 10) /* keep ZeroMQ's threads busy for a while */

typedef struct waiter {
    ps_socket_t *const *sockets;
    size_t n_sockets;
    ps_poll_item_t *beside; /* the caller's */
    size_t n_beside;
    bool *ready;         /* of the sockets */
    bool is_woken;       /* by a socket's wake_fd */
    bool is_stopped;     /* so is the context of one of them */
    bool looks_for_free; /* at a carrier of them */
    ps_socket_t *first;  /* that may spin, else of all; NULL: there is none */
    ps_poll_item_t *items;
    struct pollfd *fds; /* as many */
    size_t n_items;
    uint64_t moved_bytes; /* over ZeroMQ, since the last wait */
} waiter_t;

/* For each socket one of each carrier, and what wakes it. What stops it is of links, which have one
 * carrier. */
static size_t most_items(const waiter_t *self)
{
    return (PS_CARRIER_SLOTS + 1) * self->n_sockets + self->n_beside;
}

static void fill_items(waiter_t *self)
{
    self->n_items = 0;
    for (size_t i = 0; i < self->n_sockets; i++) {
        const ps_socket_t *socket = self->sockets[i];

        for (size_t k = 0; k < socket->n_carriers; k++) {
            if (socket->carriers[k] != NULL) {
                socket->carriers[k]->item(socket, &self->items[self->n_items++]);
            }
        }
        if (socket->has_wake) {
            self->items[self->n_items++] = (ps_poll_item_t){.fd = socket->wake_fd};
        }
        if (socket->has_stop) {
            self->items[self->n_items++] = (ps_poll_item_t){.fd = socket->stop_fd};
        }
    }
    for (size_t i = 0; i < self->n_beside; i++) {
        self->items[self->n_items++] = self->beside[i];
    }
}

/* The next carrier of the sockets that is looked at for free, from *i, *k on.
 * NULL: there is none. Without lanes and plug-ins it is found out at once. */
static const ps_carrier_t *next_free(const waiter_t *self, size_t *i, size_t *k)
{
    for (; self->looks_for_free && *i < self->n_sockets; (*i)++, *k = 0) {
        const ps_socket_t *socket = self->sockets[*i];

        while (*k < socket->n_carriers) {
            const ps_carrier_t *carrier = socket->carriers[(*k)++];

            if (carrier != NULL && carrier->is_ready != NULL) {
                return carrier;
            }
        }
    }
    return NULL;
}

/* Marks the sockets that have something in shared memory. */
static bool look_for_free(const waiter_t *self)
{
    const ps_carrier_t *carrier = NULL;
    bool any = false;

    for (size_t i = 0, k = 0; (carrier = next_free(self, &i, &k)) != NULL;) {
        if (carrier->is_ready(self->sockets[i])) {
            self->ready[i] = true;
            any = true;
        }
    }
    return any;
}

/* What a poll found, taken in. */
static void take_in(waiter_t *self)
{
    const ps_poll_item_t *item = self->items;

    for (size_t i = 0; i < self->n_sockets; i++) {
        ps_socket_t *socket = self->sockets[i];

        for (size_t k = 0; k < socket->n_carriers; k++) {
            if (socket->carriers[k] != NULL) {
                self->ready[i] = socket->carriers[k]->heard(socket, item) || self->ready[i];
                item++;
            }
        }
        if (socket->has_wake) {
            self->is_woken = self->is_woken || item->is_ready;
            item++;
        }
        if (socket->has_stop) {
            self->is_stopped = self->is_stopped || item->is_ready;
            item++;
        }
    }
    for (size_t i = 0; i < self->n_beside; i++) {
        self->beside[i] = item[i];
    }
    (void)look_for_free(self);
}

/* Asks all sockets, for timeout_ms at most (-1: forever). */
static psd_status_t ask(waiter_t *self, long timeout_ms, psd_error_t *err)
{
    fill_items(self);
    if (ps_poll(self->items, self->fds, self->n_items, timeout_ms) != 0) {
        for (size_t i = 0; i < self->n_sockets; i++) {
            self->sockets[i]->is_dry = false; /* the next wait fails, too */
        }
        return ps_zmq_status(err, "wait");
    }
    take_in(self);
    return self->is_stopped ? psd_error_set(err, PSD_IO, "wait: the context was stopped") : PSD_OK;
}

/* Something may come that is looked at for free. */
static bool any_is_open(const waiter_t *self)
{
    const ps_carrier_t *carrier = NULL;

    for (size_t i = 0, k = 0; (carrier = next_free(self, &i, &k)) != NULL;) {
        if (carrier->is_open(self->sockets[i])) {
            return true;
        }
    }
    return false;
}

static bool is_over(const waiter_t *self)
{
    for (size_t i = 0; i < self->n_sockets; i++) {
        if (self->ready[i]) {
            return true;
        }
    }
    for (size_t i = 0; i < self->n_beside; i++) {
        if (self->beside[i].is_ready) {
            return true;
        }
    }
    return self->is_woken;
}

/* How long others may be busy with what we asked them. */
static uint32_t work_of_others(const waiter_t *self)
{
    const ps_carrier_t *carrier = NULL;
    uint32_t most_us = 0;

    for (size_t i = 0, k = 0; (carrier = next_free(self, &i, &k)) != NULL;) {
        uint32_t us = carrier->work_us(self->sockets[i]);

        most_us = us > most_us ? us : most_us;
    }
    return most_us;
}

static bool begin_spin(const waiter_t *self, bool is_free)
{
    ps_spin_t *spin = &self->first->spin;

    /* A thread that copies much needs the processor more than one that
     * polls. */
    return is_free ? ps_spin_begin(spin, PS_SPIN_FREE, work_of_others(self))
                   : ps_spin_begin(spin, PS_SPIN_CALLS, 0) && self->moved_bytes < BULK_BYTES;
}

static psd_status_t look_on(waiter_t *self, bool is_free, bool *ret_found, psd_error_t *err)
{
    ps_spin_t *spin = &self->first->spin;
    psd_status_t rc = PSD_OK;
    bool found = false;

    while (rc == PSD_OK && !found && ps_spin_go_on(spin)) {
        found = is_free && look_for_free(self);
        if (!found && ps_spin_asks(spin)) {
            rc = ask(self, 0, err);
            found = is_over(self);
        }
    }
    if (found) {
        ps_spin_paid(spin);
    }
    *ret_found = found;
    return rc;
}

/* Looks until something is there, and takes its time off the wait. Without: it
 * is time to sleep. */
static psd_status_t spin_for(waiter_t *self, uint64_t *timeout_ms, bool *ret_found,
                             psd_error_t *err)
{
    bool is_free = any_is_open(self);
    psd_status_t rc = PSD_OK;
    uint64_t spent_ms = 0;

    *ret_found = false;
    if (*timeout_ms == 0 || self->first == NULL || !begin_spin(self, is_free)) {
        return PSD_OK;
    }
    ps_spin_bound(&self->first->spin, *timeout_ms);
    if (!is_free) { /* what is there already needs no yield */
        rc = ask(self, 0, err);
        *ret_found = is_over(self);
    }
    if (rc == PSD_OK && !*ret_found) {
        rc = look_on(self, is_free, ret_found, err);
    }
    if (*timeout_ms < UINT64_MAX) {
        spent_ms = ps_spin_ms(&self->first->spin);
        *timeout_ms -= spent_ms < *timeout_ms ? spent_ms : *timeout_ms;
    }
    return rc;
}

static void flush_all(const waiter_t *self)
{
    for (size_t i = 0; i < self->n_sockets; i++) {
        ps_socket_flush(self->sockets[i]);
    }
}

/* Says that we sleep to all that will have to wake us. False: one of them has
 * something. */
static bool lie_down(const waiter_t *self)
{
    const ps_carrier_t *carrier = NULL;

    for (size_t i = 0, k = 0; (carrier = next_free(self, &i, &k)) != NULL;) {
        if (!carrier->lie_down(self->sockets[i])) {
            return false;
        }
    }
    return true;
}

static void get_up(const waiter_t *self)
{
    const ps_carrier_t *carrier = NULL;

    for (size_t i = 0, k = 0; (carrier = next_free(self, &i, &k)) != NULL;) {
        carrier->get_up(self->sockets[i]);
    }
}

static psd_status_t sleep_on(waiter_t *self, long timeout_ms, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (timeout_ms == 0) {
        return ask(self, 0, err);
    }
    rc = ask(self, lie_down(self) ? timeout_ms : 0, err);
    get_up(self);
    if (self->first != NULL && is_over(self)) {
        ps_spin_woken(&self->first->spin);
    }
    flush_all(self); /* deferred messages have room now */
    return rc;
}

/* Where shared memory always has something ZeroMQ has its turn too. */
static psd_status_t ask_now_and_then(waiter_t *self, psd_error_t *err)
{
    return ++self->first->n_waits % ASK_EVERY == 0 ? ask(self, 0, err) : PSD_OK;
}

static psd_status_t look_and_sleep(waiter_t *self, uint64_t timeout_ms, psd_error_t *err)
{
    long most_ms = -1;
    bool found = look_for_free(self);
    psd_status_t rc = PSD_OK;

    if (!found) {
        rc = spin_for(self, &timeout_ms, &found, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (timeout_ms < UINT64_MAX) {
        most_ms = timeout_ms > INT_MAX ? INT_MAX : (long)timeout_ms;
    }
    return found ? ask_now_and_then(self, err) : sleep_on(self, most_ms, err);
}

/* Messages of a batch are left: they are here, but ZeroMQ does not know. */
static bool any_batch_is_open(const waiter_t *self)
{
    bool any = false;

    for (size_t i = 0; i < self->n_sockets; i++) {
        if (ps_batches_is_open(&self->sockets[i]->batches)) {
            self->sockets[i]->zmq_is_ready = true;
            self->ready[i] = true;
            any = true;
        }
    }
    return any;
}

static psd_status_t wait_for(waiter_t *self, uint64_t timeout_ms, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_beside; i++) {
        self->beside[i].is_ready = false;
    }
    for (size_t i = 0; i < self->n_sockets; i++) {
        self->ready[i] = false;
        self->looks_for_free = self->looks_for_free || self->sockets[i]->looks_for_free;
        if (self->first == NULL || self->first->spin.most_us == 0) {
            self->first = self->sockets[i];
        }
    }
    flush_all(self);
    for (size_t i = 0; i < self->n_sockets; i++) {
        self->moved_bytes += self->sockets[i]->moved_bytes;
        self->sockets[i]->moved_bytes = 0;
    }
    return look_and_sleep(self, any_batch_is_open(self) ? 0 : timeout_ms, err);
}

/* With memory for what is asked. */
static psd_status_t wait_with_items(waiter_t *self, uint64_t timeout_ms, psd_error_t *err)
{
    ps_poll_item_t few[FEW];
    struct pollfd few_fds[FEW];
    PSD_AUTO(ps_free_at) ps_poll_item_t *many = NULL;
    PSD_AUTO(ps_free_at) struct pollfd *many_fds = NULL;
    psd_status_t rc = PSD_OK;

    self->items = few;
    self->fds = few_fds;
    if (most_items(self) > FEW) {
        many = ps_alloc(most_items(self), sizeof *many);
        many_fds = ps_alloc(most_items(self), sizeof *many_fds);
        self->items = many;
        self->fds = many_fds;
    }
    if (self->items == NULL || self->fds == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to wait");
    }
    rc = wait_for(self, timeout_ms, err);
    self->items = NULL;
    self->fds = NULL;
    return rc;
}

psd_status_t ps_socket_wait(ps_socket_t *const *sockets, size_t n_sockets, uint64_t timeout_ms,
                            bool *ret_ready, psd_error_t *err)
{
    return ps_socket_wait_with(sockets, n_sockets, NULL, 0, timeout_ms, ret_ready, err);
}

psd_status_t ps_socket_wait_with(ps_socket_t *const *sockets, size_t n_sockets,
                                 ps_poll_item_t *items, size_t n_items, uint64_t timeout_ms,
                                 bool *ret_ready, psd_error_t *err)
{
    waiter_t self = {.sockets = sockets,
                     .n_sockets = n_sockets,
                     .beside = items,
                     .n_beside = n_items,
                     .ready = ret_ready};

    return wait_with_items(&self, timeout_ms, err);
}

psd_status_t ps_socket_wait_beside(ps_socket_t *const *sockets, size_t n_sockets, void *zmq_socket,
                                   uint64_t timeout_ms, bool *ret_ready, bool *ret_beside,
                                   psd_error_t *err)
{
    ps_poll_item_t beside = {.socket = zmq_socket, .fd = ps_poll_fd(zmq_socket)};
    psd_status_t rc =
        ps_socket_wait_with(sockets, n_sockets, &beside, 1, timeout_ms, ret_ready, err);

    *ret_beside = beside.is_ready;
    return rc;
}

void ps_socket_wake_by(ps_socket_t *self, int fd)
{
    self->has_wake = fd >= 0;
    self->wake_fd = fd;
}
