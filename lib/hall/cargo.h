/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_cargo - what a carrier sends at once: a head, and the frames of a message of psd
 *
 * What     What a rank sends to another one goes in one buffer of its own, so
 *          that the sender's frames are free at once: a send to a peer that is dead
 *          may never end, and cannot be cancelled.
 * Shape    The head; for DATA each frame follows, its place rounded up to
 *          PS_CARGO_ALIGN. All ranks are of one byte order.
 * Owner    Who holds it. One that was received is freed with its last frame.
 * Threads  Held by one at a time; frames are freed on any.
 */
#ifndef PS_HALL_CARGO_H
#define PS_HALL_CARGO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "transport/sockets/carrier_plugin.h"

#define PS_CARGO_MAGIC UINT32_C(0x4d445350) /* "PSDM"; of another layout another one */
#define PS_CARGO_ALIGN 16
#define PS_CARGO_BYTES_MAX (UINT64_C(1) << 30) /* MPI counts in int */

typedef enum ps_cargo_kind {
    PS_CARGO_OPEN = 1, /* a link to port `to`; it gets `count` messages unasked */
    PS_CARGO_ACCEPT,   /* the port's channel `from` is for it; count as above */
    PS_CARGO_DATA,     /* one message for channel `to` */
    PS_CARGO_CREDIT,   /* channel `to` may send `count` more */
    PS_CARGO_CLOSE,    /* channel `to` gets nothing more; 0: the one that `from` is to
                           be told of does not exist */
    PS_CARGO_BEAT,     /* the process is alive */
    PS_CARGO_SAY,      /* a key and a value, two texts each with its '\0' */
    PS_CARGO_END,      /* the process has come to its end: nothing more comes */
} ps_cargo_kind_t;

typedef struct ps_cargo_head {
    uint32_t magic;
    uint32_t kind;
    uint32_t to;       /* a channel or port of the receiver */
    uint32_t from;     /* a channel of the sender; 0: none */
    uint32_t count;    /* of messages */
    uint32_t n_frames; /* of DATA, 1 .. PS_CARRIER_FRAMES */
    uint64_t sizes[PS_CARRIER_FRAMES];
} ps_cargo_head_t;

typedef struct ps_cargo {
    STAILQ_ENTRY(ps_cargo) in_line;
    int rank;           /* that it goes to or comes from */
    uint32_t channel;   /* of this process; of DATA that came */
    uint64_t conn;      /* of the end that it is for */
    atomic_uint n_held; /* frames that are not freed */
    size_t size;        /* of what is sent */
    ps_cargo_head_t head;
    uint8_t body[]; /* right behind the head */
} ps_cargo_t;

typedef STAILQ_HEAD(ps_cargos, ps_cargo) ps_cargos_t;

/* One without frames. NULL: no memory. */
ps_cargo_t *ps_cargo_new(int rank, ps_cargo_kind_t kind);
/* DATA with copies of the frames, 1 .. PS_CARRIER_FRAMES. NULL: no memory, or
 * more than PS_CARGO_BYTES_MAX. */
ps_cargo_t *ps_cargo_of(const ps_carrier_frame_t *frames, size_t n);
/* SAY to a rank. NULL: no memory. */
ps_cargo_t *ps_cargo_say(int rank, const char *key, const char *value);
/* Room for a message of that size to be received. NULL: no memory. */
ps_cargo_t *ps_cargo_for(int rank, size_t size);
/* Takes NULL. */
void ps_cargo_free(ps_cargo_t *self);
/* Frees those of a list, and empties it. */
void ps_cargos_done(ps_cargos_t *self);
/* What is sent or received, of `size` bytes. */
void *ps_cargo_bytes(ps_cargo_t *self);
/* What came is whole and has a known kind. */
bool ps_cargo_is_good(const ps_cargo_t *self);
/* What SAY says; borrowed. */
void ps_cargo_said(const ps_cargo_t *self, const char **ret_key, const char **ret_value);
/* The frames of DATA, which own the parcel from now on. */
void ps_cargo_open(ps_cargo_t *self, ps_carrier_frame_t frames[PS_CARRIER_FRAMES], size_t *ret_n);
#endif
