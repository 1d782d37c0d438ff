/* SPDX-License-Identifier: Apache-2.0 */
/* A channel from its hello to its close. */
#include "base/alloc.h"
#include "mpi/hall_inner.h"

#define GIVE_BACK_PARTS 4 /* of the window */

static void free_channel(ps_channel_t *self)
{
    ps_mpi_parcels_done(&self->out);
    ps_mpi_parcel_free(self->hello);
    ps_mpi_parcel_free(self->last);
    ps_free(self);
}

static bool give_number(ps_channel_t *self, ps_hall_t *hall)
{
    self->number = hall->n_numbers + 1;
    if (self->number == UINT32_MAX || !ps_map_put(&hall->channels, self->number, self)) {
        return false;
    }
    hall->n_numbers = self->number;
    return true;
}

ps_channel_t *ps_channel_new(ps_end_t *end, int rank, uint64_t conn, ps_mpi_parcel_kind_t hello)
{
    ps_channel_t *self = ps_alloc(1, sizeof *self);
    bool is_link = conn == 0;

    if (self == NULL) {
        return NULL;
    }
    STAILQ_INIT(&self->out);
    self->rank = rank;
    self->end = end;
    self->conn = conn;
    self->hello = ps_mpi_parcel_new(rank, hello);
    self->last = is_link ? NULL : ps_mpi_parcel_new(rank, PS_MPI_PARCEL_CLOSE);
    if (self->hello == NULL || (!is_link && self->last == NULL) || !give_number(self, end->hall)) {
        free_channel(self);
        return NULL;
    }
    if (!ps_map_put(&end->channels, conn, self)) {
        (void)ps_map_remove(&end->hall->channels, self->number);
        free_channel(self);
        return NULL;
    }
    self->hello->head.from = self->number;
    self->hello->head.count = end->high_water;
    end->hall->n_channels[rank]++;
    ps_channel_list(self, end->hall);
    return self;
}

void ps_channel_list(ps_channel_t *self, ps_hall_t *hall)
{
    if (!self->is_listed) {
        self->is_listed = true;
        TAILQ_INSERT_TAIL(&hall->listed, self, in_list);
    }
    ps_hall_tell(hall);
}

static void unlist(ps_channel_t *self, ps_hall_t *hall)
{
    if (self->is_listed) {
        self->is_listed = false;
        TAILQ_REMOVE(&hall->listed, self, in_list);
    }
}

static void leave_end(ps_channel_t *self)
{
    if (self->end != NULL) {
        (void)ps_map_remove(&self->end->channels, self->conn);
        self->end = NULL;
    }
}

static void destroy(ps_channel_t *self, ps_hall_t *hall)
{
    leave_end(self);
    unlist(self, hall);
    hall->n_channels[self->rank]--;
    (void)ps_map_remove(&hall->channels, self->number);
    free_channel(self);
}

void ps_channel_linger(ps_channel_t *self, ps_hall_t *hall, uint64_t till_ms)
{
    leave_end(self);
    self->lingers_till_ms = till_ms;
    ps_channel_list(self, hall);
}

void ps_channel_tell_end(ps_channel_t *self)
{
    ps_end_t *end = self->end;

    if (end != NULL && self->last != NULL) {
        self->last->conn = self->conn;
        STAILQ_INSERT_TAIL(&end->in, self->last, in_line);
        self->last = NULL;
        atomic_fetch_add(&end->n_there, 1);
    } else if (end != NULL) {
        atomic_store(&end->is_lost, true);
    }
    if (end != NULL) {
        ps_end_wake(end);
    }
}

void ps_channel_lose(ps_channel_t *self, ps_hall_t *hall)
{
    ps_channel_tell_end(self);
    destroy(self, hall);
}

/* A parcel of its own, that goes at once. */
static bool add(ps_channel_t *self, ps_mpi_parcel_kind_t kind, uint32_t count,
                ps_mpi_parcels_t *parcels)
{
    ps_mpi_parcel_t *parcel = ps_mpi_parcel_new(self->rank, kind);

    if (parcel == NULL) {
        return false; /* it stays listed */
    }
    parcel->head.to = self->peer;
    parcel->head.from = self->number;
    parcel->head.count = count;
    STAILQ_INSERT_TAIL(parcels, parcel, in_line);
    return true;
}

/* Gives back in a few parts, so that there are few such parcels. */
static uint32_t due_back(const ps_channel_t *self)
{
    uint32_t least = self->end == NULL ? 0 : self->end->high_water / GIVE_BACK_PARTS;

    return self->end != NULL && self->peer != 0 && self->n_taken > least ? self->n_taken : 0;
}

static bool may_go(const ps_channel_t *self)
{
    return self->peer != 0 && self->credit > 0 && !STAILQ_EMPTY(&self->out);
}

/* Returns how many went. */
static uint32_t collect_data(ps_channel_t *self, uint32_t room, ps_mpi_parcels_t *parcels)
{
    uint32_t n = 0;

    while (n < room && may_go(self)) {
        ps_mpi_parcel_t *parcel = STAILQ_FIRST(&self->out);

        STAILQ_REMOVE_HEAD(&self->out, in_line);
        parcel->rank = self->rank;
        parcel->head.to = self->peer;
        parcel->head.from = self->number;
        STAILQ_INSERT_TAIL(parcels, parcel, in_line);
        self->credit--;
        self->n_out--;
        n++;
    }
    return n;
}

uint32_t ps_channel_collect(ps_channel_t *self, ps_hall_t *hall, uint32_t room,
                            ps_mpi_parcels_t *parcels)
{
    uint32_t n = 0;
    bool is_left = false;

    if (self->hello != NULL) {
        STAILQ_INSERT_TAIL(parcels, self->hello, in_line);
        self->hello = NULL;
        n++;
    }
    if (due_back(self) > 0 && n < room && add(self, PS_MPI_PARCEL_CREDIT, self->n_taken, parcels)) {
        self->n_taken = 0;
        n++;
    }
    n += collect_data(self, room - n, parcels);
    is_left = self->end == NULL && self->peer != 0 && STAILQ_EMPTY(&self->out);
    if (is_left && n < room && add(self, PS_MPI_PARCEL_CLOSE, 0, parcels)) {
        n++;
        destroy(self, hall);
    } else if (!is_left && due_back(self) == 0 && !may_go(self)) {
        unlist(self, hall);
    }
    return n;
}
