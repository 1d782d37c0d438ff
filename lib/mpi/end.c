/* SPDX-License-Identifier: Apache-2.0 */
/* Links and ports, as the threads of psd use them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "mpi/hall_inner.h"
#include "transport/threads/clock.h"

static void free_end(ps_end_t *self)
{
    ps_mpi_parcels_done(&self->in);
    ps_mpi_parcels_done(&self->gone);
    ps_map_done(&self->channels);
    (void)close(self->fd);
    ps_free(self);
}

static int new_end(ps_hall_t *hall, const ps_carrier_setup_t *setup, ps_end_t **ret_end)
{
    ps_end_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return ENOMEM;
    }
    self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->fd < 0) {
        int code = errno;

        ps_free(self);
        return code;
    }
    self->hall = hall;
    self->high_water = setup->high_water;
    self->frame_bytes = setup->frame_bytes;
    STAILQ_INIT(&self->in);
    STAILQ_INIT(&self->gone);
    atomic_init(&self->n_there, 0);
    atomic_init(&self->is_lost, false);
    *ret_end = self;
    return 0;
}

int ps_hall_bind(ps_hall_t *self, const ps_carrier_setup_t *setup, ps_end_t **ret_end,
                 uint32_t *ret_number)
{
    ps_end_t *end = NULL;
    int code = new_end(self, setup, &end);

    if (code != 0) {
        return code;
    }
    ps_hall_lock(self);
    end->port = self->n_numbers + 1;
    if (end->port == UINT32_MAX || !ps_map_put(&self->ports, end->port, end)) {
        code = ENOMEM;
    } else {
        self->n_numbers = end->port;
        *ret_number = end->port;
        *ret_end = end;
    }
    ps_hall_unlock(self);
    if (code != 0) {
        free_end(end);
    }
    return code;
}

int ps_hall_connect(ps_hall_t *self, int rank, uint32_t port, const ps_carrier_setup_t *setup,
                    ps_end_t **ret_end)
{
    ps_end_t *end = NULL;
    ps_channel_t *channel = NULL;
    int code = new_end(self, setup, &end);

    if (code != 0) {
        return code;
    }
    ps_hall_lock(self);
    channel = ps_channel_new(end, rank, 0, PS_MPI_PARCEL_OPEN);
    if (channel != NULL) {
        channel->hello->head.to = port;
    }
    ps_hall_unlock(self);
    if (channel == NULL) {
        free_end(end);
        return ENOMEM;
    }
    *ret_end = end;
    return 0;
}

void ps_end_close(ps_end_t *self, uint32_t linger_ms)
{
    uint64_t till_ms = ps_now_ms() + linger_ms;
    uint64_t conn = 0;
    void *channel = NULL;
    size_t at = 0;

    ps_hall_lock(self->hall);
    if (self->port != 0) {
        (void)ps_map_remove(&self->hall->ports, self->port);
    }
    while (ps_map_next(&self->channels, &at, &conn, &channel)) {
        ps_channel_linger(channel, self->hall, till_ms);
        at = 0;
    }
    ps_hall_unlock(self->hall);
    free_end(self);
}

/* Whether one more may be queued. 0 or an errno. */
static int look_room(const ps_end_t *self, uint64_t conn, ps_channel_t **ret_channel)
{
    ps_channel_t *channel = ps_map_get(&self->channels, conn);

    if (channel == NULL) {
        return EHOSTUNREACH;
    }
    *ret_channel = channel;
    return channel->n_out >= self->high_water ? EAGAIN : 0;
}

int ps_end_send(ps_end_t *self, uint64_t conn, const ps_carrier_frame_t *frames, size_t n)
{
    ps_channel_t *channel = NULL;
    ps_mpi_parcel_t *parcel = NULL;
    int code = 0;

    assert(n >= 1 && n <= PS_CARRIER_FRAMES);
    ps_hall_lock(self->hall);
    code = look_room(self, conn, &channel);
    ps_hall_unlock(self->hall);
    if (code != 0) {
        return code;
    }
    parcel = ps_mpi_parcel_of(frames, n);
    if (parcel == NULL) {
        return ENOMEM;
    }
    ps_hall_lock(self->hall);
    code = look_room(self, conn, &channel); /* the peer may be gone by now */
    if (code == 0) {
        STAILQ_INSERT_TAIL(&channel->out, parcel, in_line);
        channel->n_out++;
        if (channel->peer != 0 && channel->credit > 0) {
            ps_channel_list(channel, self->hall);
        }
    }
    ps_hall_unlock(self->hall);
    if (code != 0) {
        ps_mpi_parcel_free(parcel);
        return code;
    }
    for (size_t i = 0; i < n; i++) {
        frames[i].free_frame(frames[i].owner);
    }
    return 0;
}

/* One message less is on its way. */
static void give_back(const ps_end_t *self, const ps_mpi_parcel_t *parcel)
{
    ps_channel_t *channel = ps_map_get(&self->hall->channels, parcel->channel);

    if (channel != NULL && ++channel->n_taken == self->high_water / 4 + 1) {
        ps_channel_list(channel, self->hall);
    }
}

/* The next DATA; what stands before it in the line is set aside. NULL: none. */
static ps_mpi_parcel_t *next_data(ps_end_t *self)
{
    ps_mpi_parcel_t *parcel = NULL;

    while ((parcel = STAILQ_FIRST(&self->in)) != NULL) {
        STAILQ_REMOVE_HEAD(&self->in, in_line);
        if (parcel->head.kind == PS_MPI_PARCEL_DATA) {
            atomic_fetch_sub(&self->n_there, 1);
            give_back(self, parcel);
            return parcel;
        }
        STAILQ_INSERT_TAIL(&self->gone, parcel, in_line);
    }
    return NULL;
}

int ps_end_receive(ps_end_t *self, uint64_t *ret_conn, ps_carrier_frame_t frames[PS_CARRIER_FRAMES],
                   size_t *ret_n)
{
    ps_mpi_parcel_t *parcel = NULL;

    if (atomic_load(&self->n_there) == 0) {
        return EAGAIN;
    }
    ps_hall_lock(self->hall);
    parcel = next_data(self);
    ps_hall_unlock(self->hall);
    if (parcel == NULL) {
        return EAGAIN;
    }
    *ret_conn = parcel->conn;
    ps_mpi_parcel_open(parcel, frames, ret_n);
    return 0;
}

bool ps_end_next_gone(ps_end_t *self, uint64_t *ret_conn)
{
    ps_mpi_parcel_t *parcel = NULL;

    if (self->port == 0) {
        return atomic_load(&self->is_lost) && atomic_load(&self->n_there) == 0;
    }
    ps_hall_lock(self->hall);
    parcel = STAILQ_FIRST(&self->gone);
    if (parcel != NULL) {
        STAILQ_REMOVE_HEAD(&self->gone, in_line);
        atomic_fetch_sub(&self->n_there, 1);
    }
    ps_hall_unlock(self->hall);
    if (parcel == NULL) {
        return false;
    }
    *ret_conn = parcel->conn;
    ps_mpi_parcel_free(parcel);
    return true;
}

/* ---- waiting ------------------------------------------------------------- */

bool ps_end_is_ready(const ps_end_t *self)
{
    return atomic_load(&self->n_there) > 0 || atomic_load(&self->is_lost);
}

int ps_end_fd(const ps_end_t *self)
{
    return self->fd;
}

void ps_end_wake(ps_end_t *self)
{
    uint64_t one = 1;

    if (self->sleeps) {
        self->sleeps = false;
        /* Its counter is far from full, so it takes one more. */
        if (write(self->fd, &one, sizeof one) != (ssize_t)sizeof one) {
            abort();
        }
    }
}

bool ps_end_lie_down(ps_end_t *self)
{
    bool may = false;

    ps_hall_lock(self->hall);
    may = !ps_end_is_ready(self);
    self->sleeps = may;
    ps_hall_unlock(self->hall);
    return may;
}

void ps_end_get_up(ps_end_t *self)
{
    uint64_t n = 0;

    ps_hall_lock(self->hall);
    self->sleeps = false;
    ps_hall_unlock(self->hall);
    while (read(self->fd, &n, sizeof n) > 0) {
    }
}
