/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/mpi: what hall.c, end.c and channel.c share. All of it is used
 * under the hall's lock, but for what is atomic. */
#ifndef PS_MPI_HALL_INNER_H
#define PS_MPI_HALL_INNER_H

#include <pthread.h>

#include "base/map.h"
#include "mpi/hall.h"

typedef struct ps_channel {
    uint32_t number;
    int rank;
    uint32_t peer;          /* its number there; 0: not accepted yet */
    ps_end_t *end;          /* NULL: it is closed, and lingers */
    uint64_t conn;          /* of a port; a link's is 0 */
    ps_mpi_parcel_t *hello; /* OPEN or ACCEPT, to go first; NULL: it went */
    ps_mpi_parcel_t *last;  /* what a port's end gets when the peer is gone; NULL: a link's */
    ps_mpi_parcels_t out;
    uint32_t n_out;
    uint32_t credit;  /* messages that may go */
    uint32_t n_taken; /* received, and not given back */
    uint64_t lingers_till_ms;
    bool is_listed; /* among those with something to collect */
    TAILQ_ENTRY(ps_channel) in_list;
} ps_channel_t;

typedef TAILQ_HEAD(ps_channels, ps_channel) ps_channels_t;

struct ps_end {
    ps_hall_t *hall;
    uint32_t port; /* a port's number; 0: a link */
    uint32_t high_water;
    uint64_t frame_bytes;
    ps_map_t channels;     /* conn -> ps_channel_t *; borrowed from the hall */
    uint64_t n_conns;      /* that were given */
    ps_mpi_parcels_t in;   /* DATA, and `last` of channels */
    ps_mpi_parcels_t gone; /* `last` of those whose messages are all received */
    atomic_uint n_there;   /* of both */
    atomic_bool is_lost;   /* a link: its peer is gone */
    bool sleeps;
    int fd;
};

struct ps_hall {
    pthread_mutex_t mutex;
    pthread_cond_t woken; /* the MPI thread */
    bool sleeps;
    bool has_news; /* since it has last collected */
    int size;
    int rank;              /* the process's own */
    uint32_t *n_channels;  /* of each rank; open, or lingering */
    uint32_t *n_collected; /* for each rank, by the collect that runs */
    bool *has_ended;       /* each rank; it has said so */
    bool *is_lost;         /* each rank */
    bool watches_all;
    ps_mpi_parcels_t said;  /* SAY, also of this process */
    uint32_t n_numbers;     /* given */
    ps_map_t ports;         /* number -> ps_end_t * */
    ps_map_t channels;      /* number -> ps_channel_t *, owned */
    ps_channels_t listed;   /* with something to collect */
    ps_mpi_parcels_t loose; /* of no channel */
};

void ps_hall_lock(ps_hall_t *self);
void ps_hall_unlock(ps_hall_t *self);
/* The MPI thread has something to do. */
void ps_hall_tell(ps_hall_t *self);

/* ---- channel.c ---- */

/* One of an end, with its hello; the end knows it by conn. NULL: no memory. */
ps_channel_t *ps_channel_new(ps_end_t *end, int rank, uint64_t conn, ps_mpi_parcel_kind_t hello);
/* It has something to collect. */
void ps_channel_list(ps_channel_t *self, ps_hall_t *hall);
/* Its end is closed: what is queued goes, until then. */
void ps_channel_linger(ps_channel_t *self, ps_hall_t *hall, uint64_t till_ms);
/* Nothing more reaches its end through it; wakes the end. */
void ps_channel_tell_end(ps_channel_t *self);
/* Its peer is gone: wakes the end and frees the channel. */
void ps_channel_lose(ps_channel_t *self, ps_hall_t *hall);
/* Moves what may go to the end of *parcels, at most room > 0; it may be freed
 * with that. What is left stays listed. Returns how many. */
uint32_t ps_channel_collect(ps_channel_t *self, ps_hall_t *hall, uint32_t room,
                            ps_mpi_parcels_t *parcels);

/* ---- end.c ---- */

/* A parcel has come, or the link's peer is gone. */
void ps_end_wake(ps_end_t *self);
#endif
