/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/mpi: the carrier in the plug-in libpsd-mpi.so
 *
 * It is       Messages between the ranks of one MPI world. One thread of the
 *             process calls MPI; the others speak to it through the hall.
 * It uses     lib/transport/sockets/carrier_plugin.h (what it implements),
 *             lib/transport/threads, lib/base; mpi.
 * It ignores  What is in a frame, sockets, sessions, retries.
 * Start at    hall.h, then world.h and traffic.h; plugin.c is the table.
 */
/*
 * ps_mpi_parcel - one MPI message: a head, and the frames of a message of psd
 *
 * What     What a rank sends to another one goes in one buffer of its own, so
 *          that the sender's frames are free at once: MPI cannot cancel a send,
 *          and a peer that is dead never takes it.
 * Shape    The head; for DATA each frame follows, its place rounded up to
 *          PS_MPI_PARCEL_ALIGN. All ranks are of one byte order.
 * Owner    Who holds it. One that was received is freed with its last frame.
 * Threads  Held by one at a time; frames are freed on any.
 */
#ifndef PS_MPI_PARCEL_H
#define PS_MPI_PARCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "transport/sockets/carrier_plugin.h"

#define PS_MPI_PARCEL_MAGIC UINT32_C(0x4d445350) /* "PSDM"; of another layout another one */
#define PS_MPI_PARCEL_ALIGN 16
#define PS_MPI_PARCEL_BYTES_MAX (UINT64_C(1) << 30) /* MPI counts in int */

typedef enum ps_mpi_parcel_kind {
    PS_MPI_PARCEL_OPEN = 1, /* a link to port `to`; it gets `count` messages unasked */
    PS_MPI_PARCEL_ACCEPT,   /* the port's channel `from` is for it; count as above */
    PS_MPI_PARCEL_DATA,     /* one message for channel `to` */
    PS_MPI_PARCEL_CREDIT,   /* channel `to` may send `count` more */
    PS_MPI_PARCEL_CLOSE,    /* channel `to` gets nothing more; 0: the one that `from` is to
                           be told of does not exist */
    PS_MPI_PARCEL_BEAT,     /* the process is alive */
    PS_MPI_PARCEL_SAY,      /* a key and a value, two texts each with its '\0' */
    PS_MPI_PARCEL_END,      /* the process has come to its end: nothing more comes */
} ps_mpi_parcel_kind_t;

typedef struct ps_mpi_parcel_head {
    uint32_t magic;
    uint32_t kind;
    uint32_t to;       /* a channel or port of the receiver */
    uint32_t from;     /* a channel of the sender; 0: none */
    uint32_t count;    /* of messages */
    uint32_t n_frames; /* of DATA, 1 .. PS_CARRIER_FRAMES */
    uint64_t sizes[PS_CARRIER_FRAMES];
} ps_mpi_parcel_head_t;

typedef struct ps_mpi_parcel {
    STAILQ_ENTRY(ps_mpi_parcel) in_line;
    int rank;           /* that it goes to or comes from */
    uint32_t channel;   /* of this process; of DATA that came */
    uint64_t conn;      /* of the end that it is for */
    atomic_uint n_held; /* frames that are not freed */
    size_t size;        /* of the MPI message */
    ps_mpi_parcel_head_t head;
    uint8_t body[]; /* right behind the head */
} ps_mpi_parcel_t;

typedef STAILQ_HEAD(ps_mpi_parcels, ps_mpi_parcel) ps_mpi_parcels_t;

/* One without frames. NULL: no memory. */
ps_mpi_parcel_t *ps_mpi_parcel_new(int rank, ps_mpi_parcel_kind_t kind);
/* DATA with copies of the frames, 1 .. PS_CARRIER_FRAMES. NULL: no memory, or
 * more than PS_MPI_PARCEL_BYTES_MAX. */
ps_mpi_parcel_t *ps_mpi_parcel_of(const ps_carrier_frame_t *frames, size_t n);
/* SAY to a rank. NULL: no memory. */
ps_mpi_parcel_t *ps_mpi_parcel_say(int rank, const char *key, const char *value);
/* Room for a message of that size to be received. NULL: no memory. */
ps_mpi_parcel_t *ps_mpi_parcel_for(int rank, size_t size);
/* Takes NULL. */
void ps_mpi_parcel_free(ps_mpi_parcel_t *self);
/* Frees those of a list, and empties it. */
void ps_mpi_parcels_done(ps_mpi_parcels_t *self);
/* What MPI sends or receives, of `size` bytes. */
void *ps_mpi_parcel_bytes(ps_mpi_parcel_t *self);
/* What came is whole and has a known kind. */
bool ps_mpi_parcel_is_good(const ps_mpi_parcel_t *self);
/* What SAY says; borrowed. */
void ps_mpi_parcel_said(const ps_mpi_parcel_t *self, const char **ret_key, const char **ret_value);
/* The frames of DATA, which own the parcel from now on. */
void ps_mpi_parcel_open(ps_mpi_parcel_t *self, ps_carrier_frame_t frames[PS_CARRIER_FRAMES],
                        size_t *ret_n);
#endif
