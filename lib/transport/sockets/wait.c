/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for one of several sockets. A look at a lane is free; a look at
 * ZeroMQ costs a system call. A wait that finds something in a lane asks ZeroMQ
 * only now and then. One that finds nothing spins for a while (spin.h) and then
 * sleeps on everything.
 */
#include "transport/sockets/socket.h"

#include <limits.h>
#include <zmq.h>

#include "base/alloc.h"
#include "transport/sockets/poll.h"
#include "transport/sockets/socket_inner.h"

#define FEW 64                 /* items that need no heap */
#define ASK_EVERY 16           /* waits that found something in a lane */
#define BULK_BYTES (128 << 10) /* keep ZeroMQ's threads busy for a while */

typedef struct waiter {
    ps_socket_t *const *sockets;
    size_t n_sockets;
    void *beside; /* a ZeroMQ socket of the caller, or NULL */
    int beside_fd;
    bool *ready; /* of the sockets */
    bool beside_ready;
    bool beside_is_dry;
    bool is_woken;      /* by a socket's wake_fd */
    ps_socket_t *first; /* that may spin, else of all */
    ps_poll_item_t *items;
    struct pollfd *fds; /* as many */
    size_t n_items;
    uint64_t moved_bytes; /* over ZeroMQ, since the last wait */
} waiter_t;

/* Three for each socket: ZeroMQ's, the lanes', and what wakes it. */
static size_t most_items(const waiter_t *self)
{
    return 3 * self->n_sockets + 1;
}

static void add_item(waiter_t *self, void *socket, int fd, bool is_dry)
{
    self->items[self->n_items++] = (ps_poll_item_t){.socket = socket, .fd = fd, .is_dry = is_dry};
}

static void fill_items(waiter_t *self)
{
    self->n_items = 0;
    for (size_t i = 0; i < self->n_sockets; i++) {
        const ps_socket_t *socket = self->sockets[i];

        if (socket->handle != NULL) {
            add_item(self, socket->handle, socket->fd, socket->is_dry && !socket->is_lent);
        }
        if (ps_socket_has_lanes(socket)) {
            add_item(self, NULL,
                     socket->lane != NULL ? socket->lane->fd : ps_lane_port_fd(socket->lanes),
                     false);
        }
        if (socket->has_wake) {
            add_item(self, NULL, socket->wake_fd, false);
        }
    }
    if (self->beside != NULL) { /* used by others between two waits */
        add_item(self, self->beside, self->beside_fd, self->beside_is_dry);
    }
}

static bool lane_is_ready(const ps_socket_t *socket)
{
    return (socket->lane != NULL && ps_lane_is_ready(socket->lane)) ||
           (socket->lanes != NULL && ps_lane_port_is_ready(socket->lanes));
}

/* Marks the sockets whose lanes have something. */
static bool look_at_lanes(const waiter_t *self)
{
    bool any = false;

    for (size_t i = 0; i < self->n_sockets; i++) {
        if (lane_is_ready(self->sockets[i])) {
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

        if (socket->handle != NULL) {
            socket->is_dry = item->is_dry;
            socket->zmq_is_ready = item->is_ready || ps_batches_is_open(&socket->batches);
            self->ready[i] = self->ready[i] || socket->zmq_is_ready;
            item++;
        }
        if (ps_socket_has_lanes(socket)) {
            if (item->is_ready && socket->lane != NULL) {
                ps_lane_listen(socket->lane);
            } else if (item->is_ready) {
                ps_lane_port_look(socket->lanes);
            }
            item++;
        }
        if (socket->has_wake) {
            self->is_woken = self->is_woken || item->is_ready;
            item++;
        }
    }
    if (self->beside != NULL) {
        self->beside_ready = item->is_ready;
        self->beside_is_dry = item->is_dry;
    }
    (void)look_at_lanes(self);
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
    return PSD_OK;
}

/* Without a lane there is nothing that is looked at for free. */
static bool any_lane_is_open(const waiter_t *self)
{
    for (size_t i = 0; i < self->n_sockets; i++) {
        const ps_socket_t *socket = self->sockets[i];

        if (socket->lane != NULL || (socket->lanes != NULL && ps_lane_port_n(socket->lanes) > 0)) {
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
    return self->beside_ready || self->is_woken;
}

/* How long others may be busy with what we asked them. */
static uint32_t work_of_others(const waiter_t *self)
{
    uint32_t most_us = 0;

    for (size_t i = 0; i < self->n_sockets; i++) {
        ps_lane_t *lane = self->sockets[i]->lane;
        uint32_t us = lane == NULL ? 0 : ps_lane_work_us(lane);

        most_us = us > most_us ? us : most_us;
    }
    return most_us;
}

static bool begin_spin(const waiter_t *self, bool has_lanes)
{
    ps_spin_t *spin = &self->first->spin;

    /* A thread that copies much needs the processor more than one that
     * polls. */
    return has_lanes ? ps_spin_begin(spin, PS_SPIN_FREE, work_of_others(self))
                     : ps_spin_begin(spin, PS_SPIN_CALLS, 0) && self->moved_bytes < BULK_BYTES;
}

static psd_status_t look_on(waiter_t *self, bool has_lanes, bool *ret_found, psd_error_t *err)
{
    ps_spin_t *spin = &self->first->spin;
    psd_status_t rc = PSD_OK;
    bool found = false;

    while (rc == PSD_OK && !found && ps_spin_go_on(spin)) {
        found = has_lanes && look_at_lanes(self);
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
    bool has_lanes = any_lane_is_open(self);
    psd_status_t rc = PSD_OK;
    uint64_t spent_ms = 0;

    *ret_found = false;
    if (*timeout_ms == 0 || !begin_spin(self, has_lanes)) {
        return PSD_OK;
    }
    ps_spin_bound(&self->first->spin, *timeout_ms);
    if (!has_lanes) { /* what is there already needs no yield */
        rc = ask(self, 0, err);
        *ret_found = is_over(self);
    }
    if (rc == PSD_OK && !*ret_found) {
        rc = look_on(self, has_lanes, ret_found, err);
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

/* Says to all lanes that we sleep. False: one of them has something. */
static bool lie_down(const waiter_t *self)
{
    for (size_t i = 0; i < self->n_sockets; i++) {
        ps_socket_t *socket = self->sockets[i];

        if ((socket->lane != NULL && !ps_lane_sleep(socket->lane)) ||
            (socket->lanes != NULL && !ps_lane_port_sleep(socket->lanes))) {
            return false;
        }
    }
    return true;
}

static void get_up(const waiter_t *self)
{
    for (size_t i = 0; i < self->n_sockets; i++) {
        ps_socket_t *socket = self->sockets[i];

        if (socket->lane != NULL) {
            ps_lane_wake(socket->lane);
        }
        if (socket->lanes != NULL) {
            ps_lane_port_wake(socket->lanes);
        }
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
    if (is_over(self)) {
        ps_spin_woken(&self->first->spin);
    }
    flush_all(self); /* deferred messages have room now */
    return rc;
}

/* Where lanes always have something ZeroMQ has its turn too. */
static psd_status_t ask_now_and_then(waiter_t *self, psd_error_t *err)
{
    return ++self->first->n_waits % ASK_EVERY == 0 ? ask(self, 0, err) : PSD_OK;
}

static psd_status_t look_and_sleep(waiter_t *self, uint64_t timeout_ms, psd_error_t *err)
{
    long most_ms = -1;
    bool found = look_at_lanes(self);
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
    self->first = self->sockets[0];
    for (size_t i = 0; i < self->n_sockets; i++) {
        self->ready[i] = false;
        if (self->first->spin.most_us == 0) {
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
    waiter_t self = {.sockets = sockets, .n_sockets = n_sockets, .ready = ret_ready};

    return wait_with_items(&self, timeout_ms, err);
}

psd_status_t ps_socket_wait_beside(ps_socket_t *const *sockets, size_t n_sockets, void *zmq_socket,
                                   uint64_t timeout_ms, bool *ret_ready, bool *ret_beside,
                                   psd_error_t *err)
{
    waiter_t waiter = {.sockets = sockets,
                       .n_sockets = n_sockets,
                       .beside = zmq_socket,
                       .beside_fd = ps_poll_fd(zmq_socket),
                       .ready = ret_ready};
    psd_status_t rc = wait_with_items(&waiter, timeout_ms, err);

    *ret_beside = waiter.beside_ready;
    return rc;
}

void ps_socket_wake_by(ps_socket_t *self, int fd)
{
    self->has_wake = fd >= 0;
    self->wake_fd = fd;
}
