/* SPDX-License-Identifier: Apache-2.0 */
/* What the MPI thread asks of the hall. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "mpi/hall_inner.h"
#include "transport/threads/clock.h"
#include "transport/threads/thread.h"

#define NS_OF_US 1000L
#define NS_OF_S 1000000000L

static void free_hall(ps_hall_t *self)
{
    ps_free(self->n_channels);
    ps_free(self->n_collected);
    ps_free(self->has_ended);
    ps_free(self->is_lost);
    ps_free(self);
}

ps_hall_t *ps_hall_new(int rank, int size)
{
    ps_hall_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    self->rank = rank;
    self->size = size;
    self->n_channels = ps_alloc((size_t)size, sizeof *self->n_channels);
    self->n_collected = ps_alloc((size_t)size, sizeof *self->n_collected);
    self->has_ended = ps_alloc((size_t)size, sizeof *self->has_ended);
    self->is_lost = ps_alloc((size_t)size, sizeof *self->is_lost);
    if (self->n_channels == NULL || self->n_collected == NULL || self->has_ended == NULL ||
        self->is_lost == NULL || ps_cond_init(&self->woken) != 0) {
        free_hall(self);
        return NULL;
    }
    (void)pthread_mutex_init(&self->mutex, NULL);
    TAILQ_INIT(&self->listed);
    STAILQ_INIT(&self->loose);
    STAILQ_INIT(&self->said);
    return self;
}

void ps_hall_lock(ps_hall_t *self)
{
    (void)pthread_mutex_lock(&self->mutex);
}

void ps_hall_unlock(ps_hall_t *self)
{
    (void)pthread_mutex_unlock(&self->mutex);
}

void ps_hall_tell(ps_hall_t *self)
{
    self->has_news = true;
    if (self->sleeps) {
        (void)pthread_cond_signal(&self->woken);
    }
}

void ps_hall_wake(ps_hall_t *self)
{
    ps_hall_lock(self);
    ps_hall_tell(self);
    ps_hall_unlock(self);
}

void ps_hall_sleep(ps_hall_t *self, uint32_t us)
{
    struct timespec end;

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += (long)us * NS_OF_US;
    end.tv_sec += end.tv_nsec / NS_OF_S;
    end.tv_nsec %= NS_OF_S;
    ps_hall_lock(self);
    self->sleeps = true;
    if (!self->has_news) {
        (void)pthread_cond_timedwait(&self->woken, &self->mutex, &end);
    }
    self->sleeps = false;
    ps_hall_unlock(self);
}

void ps_hall_collect(ps_hall_t *self, const uint32_t *n_sending, uint32_t most,
                     ps_mpi_parcels_t *parcels)
{
    ps_channel_t *channel = NULL;
    ps_channel_t *next = NULL;

    ps_hall_lock(self);
    memset(self->n_collected, 0, (size_t)self->size * sizeof *self->n_collected);
    STAILQ_CONCAT(parcels, &self->loose);
    for (channel = TAILQ_FIRST(&self->listed); channel != NULL; channel = next) {
        uint32_t *n = &self->n_collected[channel->rank];
        uint32_t sending = n_sending[channel->rank] + *n;

        next = TAILQ_NEXT(channel, in_list);
        if (sending < most) { /* else it stays listed */
            *n += ps_channel_collect(channel, self, most - sending, parcels);
        }
    }
    self->has_news = false;
    ps_hall_unlock(self);
}

bool ps_hall_watches(ps_hall_t *self, int rank)
{
    bool watches = false;

    ps_hall_lock(self);
    watches = !self->has_ended[rank] &&
              (self->n_channels[rank] > 0 || (self->watches_all && rank != self->rank));
    ps_hall_unlock(self);
    return watches;
}

/* ---- what ranks say ------------------------------------------------------ */

void ps_hall_watch_all(ps_hall_t *self)
{
    ps_hall_lock(self);
    self->watches_all = true;
    ps_hall_unlock(self);
}

/* One for each rank at the end of the list. false: no memory. */
static bool make_says(const ps_hall_t *self, const char *key, const char *value,
                      ps_mpi_parcels_t *parcels)
{
    for (int i = 0; i < self->size; i++) {
        ps_mpi_parcel_t *parcel = ps_mpi_parcel_say(i, key, value);

        if (parcel == NULL) {
            ps_mpi_parcels_done(parcels);
            return false;
        }
        STAILQ_INSERT_TAIL(parcels, parcel, in_line);
    }
    return true;
}

int ps_hall_say(ps_hall_t *self, const char *key, const char *value)
{
    ps_mpi_parcels_t parcels = STAILQ_HEAD_INITIALIZER(parcels);
    ps_mpi_parcel_t *parcel = NULL;

    if (strlen(key) >= PS_CARRIER_TEXT || strlen(value) >= PS_CARRIER_TEXT) {
        return EINVAL;
    }
    if (!make_says(self, key, value, &parcels)) {
        return ENOMEM;
    }
    ps_hall_lock(self);
    while ((parcel = STAILQ_FIRST(&parcels)) != NULL) {
        STAILQ_REMOVE_HEAD(&parcels, in_line);
        if (parcel->rank == self->rank) {
            STAILQ_INSERT_TAIL(&self->said, parcel, in_line);
        } else {
            STAILQ_INSERT_TAIL(&self->loose, parcel, in_line);
        }
    }
    ps_hall_tell(self);
    ps_hall_unlock(self);
    return 0;
}

bool ps_hall_find(ps_hall_t *self, const char *wanted, char ret_value[PS_CARRIER_TEXT])
{
    const ps_mpi_parcel_t *parcel = NULL;
    bool found = false;

    ps_hall_lock(self);
    STAILQ_FOREACH(parcel, &self->said, in_line)
    {
        const char *key = NULL;
        const char *value = NULL;

        ps_mpi_parcel_said(parcel, &key, &value);
        if (strcmp(key, wanted) == 0) {
            (void)snprintf(ret_value, PS_CARRIER_TEXT, "%s", value);
            found = true;
        }
    }
    ps_hall_unlock(self);
    return found;
}

bool ps_hall_is_lost(ps_hall_t *self, int rank)
{
    bool is_lost = false;

    ps_hall_lock(self);
    is_lost = self->is_lost[rank] || self->has_ended[rank];
    ps_hall_unlock(self);
    return is_lost;
}

bool ps_hall_has_lost(ps_hall_t *self)
{
    bool has_lost = false;

    ps_hall_lock(self);
    for (int i = 0; i < self->size; i++) {
        has_lost = has_lost || self->is_lost[i];
    }
    ps_hall_unlock(self);
    return has_lost;
}

/* ---- what came ----------------------------------------------------------- */

/* Tells a peer that what it speaks to is not there. */
static void turn_away(ps_hall_t *self, int rank, uint32_t number)
{
    ps_mpi_parcel_t *parcel = number == 0 ? NULL : ps_mpi_parcel_new(rank, PS_MPI_PARCEL_CLOSE);

    if (parcel != NULL) { /* else it finds out by its own timeout */
        parcel->head.to = number;
        STAILQ_INSERT_TAIL(&self->loose, parcel, in_line);
        ps_hall_tell(self);
    }
}

static void take_open(ps_hall_t *self, const ps_mpi_parcel_t *parcel)
{
    ps_end_t *end = ps_map_get(&self->ports, parcel->head.to);
    ps_channel_t *channel = NULL;

    if (end != NULL) {
        channel = ps_channel_new(end, parcel->rank, end->n_conns + 1, PS_MPI_PARCEL_ACCEPT);
    }
    if (channel == NULL) {
        turn_away(self, parcel->rank, parcel->head.from);
        return;
    }
    end->n_conns++;
    channel->peer = parcel->head.from;
    channel->credit = parcel->head.count;
    channel->hello->head.to = channel->peer;
}

/* The channel that it is for, of that rank; NULL: it is gone. */
static ps_channel_t *channel_of(const ps_hall_t *self, const ps_mpi_parcel_t *parcel)
{
    ps_channel_t *channel = ps_map_get(&self->channels, parcel->head.to);

    return channel != NULL && channel->rank == parcel->rank ? channel : NULL;
}

static void take_accept(ps_hall_t *self, const ps_mpi_parcel_t *parcel)
{
    ps_channel_t *channel = channel_of(self, parcel);

    if (channel == NULL) {
        turn_away(self, parcel->rank, parcel->head.from);
        return;
    }
    channel->peer = parcel->head.from;
    channel->credit = parcel->head.count;
    ps_channel_list(channel, self);
}

static bool fits(const ps_end_t *end, const ps_mpi_parcel_t *parcel)
{
    for (uint32_t i = 0; i < parcel->head.n_frames; i++) {
        if (parcel->head.sizes[i] > end->frame_bytes) {
            return false;
        }
    }
    return true;
}

static void take_data(ps_hall_t *self, ps_mpi_parcel_t **parcel_p)
{
    ps_mpi_parcel_t *parcel = *parcel_p;
    ps_channel_t *channel = channel_of(self, parcel);

    if (channel == NULL) {
        turn_away(self, parcel->rank, parcel->head.from);
        return;
    }
    if (channel->end == NULL) { /* nobody reads it */
        return;
    }
    if (!fits(channel->end, parcel)) {
        turn_away(self, parcel->rank, parcel->head.from);
        ps_channel_lose(channel, self);
        return;
    }
    parcel->conn = channel->conn;
    parcel->channel = channel->number;
    STAILQ_INSERT_TAIL(&channel->end->in, parcel, in_line);
    atomic_fetch_add(&channel->end->n_there, 1);
    ps_end_wake(channel->end);
    *parcel_p = NULL;
}

static void take_credit(ps_hall_t *self, const ps_mpi_parcel_t *parcel)
{
    ps_channel_t *channel = channel_of(self, parcel);

    if (channel == NULL) {
        turn_away(self, parcel->rank, parcel->head.from);
        return;
    }
    channel->credit += parcel->head.count;
    ps_channel_list(channel, self);
}

static void take_close(ps_hall_t *self, const ps_mpi_parcel_t *parcel)
{
    ps_channel_t *channel = channel_of(self, parcel);

    if (channel != NULL) {
        ps_channel_lose(channel, self);
    }
}

void ps_hall_take(ps_hall_t *self, ps_mpi_parcel_t **parcel_p)
{
    ps_mpi_parcel_t *parcel = *parcel_p;

    if (ps_mpi_parcel_is_good(parcel)) {
        ps_hall_lock(self);
        self->is_lost[parcel->rank] = false;
        switch ((ps_mpi_parcel_kind_t)parcel->head.kind) {
        case PS_MPI_PARCEL_OPEN:
            take_open(self, parcel);
            break;
        case PS_MPI_PARCEL_ACCEPT:
            take_accept(self, parcel);
            break;
        case PS_MPI_PARCEL_DATA:
            take_data(self, parcel_p);
            break;
        case PS_MPI_PARCEL_CREDIT:
            take_credit(self, parcel);
            break;
        case PS_MPI_PARCEL_CLOSE:
            take_close(self, parcel);
            break;
        case PS_MPI_PARCEL_BEAT:
            break;
        case PS_MPI_PARCEL_SAY:
            STAILQ_INSERT_TAIL(&self->said, parcel, in_line);
            *parcel_p = NULL;
            break;
        case PS_MPI_PARCEL_END:
            self->has_ended[parcel->rank] = true;
            break;
        }
        ps_hall_unlock(self);
    }
    ps_mpi_parcel_free(*parcel_p);
    *parcel_p = NULL;
}

/* ---- ends that are gone, or go ------------------------------------------- */

/* The next channel from *at on. Who changes the map begins again. */
static ps_channel_t *next_channel(const ps_hall_t *self, size_t *at)
{
    uint64_t number = 0;
    void *channel = NULL;

    return ps_map_next(&self->channels, at, &number, &channel) ? channel : NULL;
}

void ps_hall_lose(ps_hall_t *self, int rank)
{
    ps_channel_t *channel = NULL;
    size_t at = 0;

    ps_hall_lock(self);
    self->is_lost[rank] = true;
    while ((channel = next_channel(self, &at)) != NULL) {
        if (channel->rank == rank) { /* it may only have been stopped: send it a CLOSE */
            turn_away(self, rank, channel->peer);
            ps_channel_lose(channel, self);
            at = 0;
        }
    }
    ps_hall_unlock(self);
}

bool ps_hall_look_lingering(ps_hall_t *self, uint64_t now_ms)
{
    ps_channel_t *channel = NULL;
    bool any = false;
    size_t at = 0;

    ps_hall_lock(self);
    while ((channel = next_channel(self, &at)) != NULL) {
        if (channel->end != NULL) {
            continue;
        }
        any = true;
        if (now_ms < channel->lingers_till_ms) {
            continue;
        }
        if (channel->peer == 0) {
            ps_channel_lose(channel, self); /* a later ACCEPT is turned away */
            at = 0;
        } else if (channel->n_out > 0) {
            ps_mpi_parcels_done(&channel->out); /* the close goes with the next collect */
            channel->n_out = 0;
            ps_channel_list(channel, self);
        }
    }
    ps_hall_unlock(self);
    return any;
}

void ps_hall_end(ps_hall_t *self, uint32_t linger_ms)
{
    uint64_t till_ms = ps_now_ms() + linger_ms;
    ps_channel_t *channel = NULL;
    size_t at = 0;

    ps_hall_lock(self);
    while ((channel = next_channel(self, &at)) != NULL) {
        if (channel->end != NULL) {
            ps_channel_tell_end(channel);
            ps_channel_linger(channel, self, till_ms);
        }
    }
    ps_hall_unlock(self);
}

void ps_hall_tell_end(ps_hall_t *self)
{
    ps_hall_lock(self);
    for (int i = 0; i < self->size; i++) {
        bool is_met = i != self->rank && !self->is_lost[i] && !self->has_ended[i];
        ps_mpi_parcel_t *parcel = is_met ? ps_mpi_parcel_new(i, PS_MPI_PARCEL_END) : NULL;

        if (parcel != NULL) {
            STAILQ_INSERT_TAIL(&self->loose, parcel, in_line);
        }
    }
    ps_hall_tell(self);
    ps_hall_unlock(self);
}
