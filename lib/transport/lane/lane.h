/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/transport/lane: connections on one host
 *
 * It is       Unix sockets and who may connect (door.h); a ring each way and an
 *             arena in shared memory; the lanes of a port.
 * It uses     threads; lib/protocol/session/assembly.h for messages in pieces;
 *             lib/wire, lib/model/updaters/finite.h, lib/base.
 * It ignores  ZeroMQ, and that a port has other connections:
 *             lib/transport/sockets offers both as one.
 * Start at    lane.h for an end, lane_meet.h for the handshake, lane_write.c and
 *             lane_read.c for a message, lane_port.h for many lanes.
 */
/*
 * ps_lane - one end of a connection through shared memory
 *
 * What     Messages go through a ring in each direction. Large bodies of
 *          requests are in the arena, where the server reads them in place;
 *          large answers are written to room that the request offers there.
 *          The unix socket between the two is the bell that wakes a sleeping
 *          end; when it closes, the other end is gone.
 * Trust    The server trusts nothing: every number from the shared memory
 *          is loaded once, checked, then used; headers, keys and indices are
 *          copied before they are looked at; values are read in place and
 *          marked as shared. The client checks as much of the server.
 * Owner    The caller.
 * Threads  Confined to one thread; payloads that were received are released on
 *          it too.
 */
#ifndef PS_TRANSPORT_LANE_H
#define PS_TRANSPORT_LANE_H

#include <sys/queue.h>

#include "base/map.h"
#include "protocol/session/assembly.h"
#include "transport/lane/lane_ring.h"
#include "transport/lane/lane_share.h"
#include "transport/threads/fork.h"

#define PS_LANE_CONN (UINT64_C(1) << 40) /* lanes' conns are at least this */

/* A message on its way into the ring. */
typedef struct ps_lane_item {
    const ps_message_t *message; /* borrowed */
    ps_payload_t *payload;       /* NULL: no body */
    size_t parts_sent;           /* bytes of keys and index that went in PARTs */
    uint64_t sent;               /* bytes of values that went */
    bool repeated;               /* it may have been sent before */
    bool asked_room;             /* the room below was thought of */
    bool started;                /* its first record went */
    bool checks;                 /* whether the values are finite, for the server is
                                    busy */
    int how;                     /* how values go; lane_write.c */
    uint64_t block_at;           /* of the arena, when they are copied there */
    uint64_t block_size;         /* 0: no block */
    uint64_t room_at;            /* offered for the answer */
    uint64_t room_size;          /* 0: none */
} ps_lane_item_t;

/* A message that is deferred until there is room for it. */
typedef struct ps_lane_waiting {
    ps_lane_item_t item;  /* its payload is held */
    ps_message_t message; /* the item's */
} ps_lane_waiting_t;

/* The body of a request: free when the server has passed it and all bodies
 * before it, which is later than the end of its record. */
typedef struct ps_lane_body {
    uint64_t end; /* position after its last record */
    uint64_t at;  /* block of the arena; size 0: none */
    uint64_t size;
    uint64_t values;       /* bytes that the server reads */
    ps_payload_t *payload; /* held; may be NULL */
} ps_lane_body_t;

/* A received body in the shared memory, as long as its payload is held. */
typedef struct ps_lane_hold {
    TAILQ_ENTRY(ps_lane_hold) in_order;
    struct ps_lane *lane;   /* server: NULL when the lane is closed */
    ps_lane_share_t *share; /* held */
    uint8_t *block;         /* owned copies of keys and index; may be NULL */
    uint64_t position;      /* server: of the record in the ring */
    uint64_t at;            /* client: the room to give back */
    uint64_t size;          /* client: of it; 0: none */
} ps_lane_hold_t;

/* A push that comes in pieces: what is learned from each. */
typedef struct ps_lane_coming {
    uint64_t request;
    ps_type_t type;
    bool is_some;
    bool is_finite; /* all values so far */
    ps_room_t room; /* for its answer */
} ps_lane_coming_t;

typedef struct ps_lane_args {
    uint32_t high_water;     /* maximum of deferred messages */
    uint64_t assembly_bytes; /* unfinished messages hold at most */
} ps_lane_args_t;

typedef struct ps_lane {
    ps_lane_share_t *share; /* held */
    ps_lane_args_t args;
    int fd;               /* the unix socket; owned; -1 in a forked child */
    ps_fork_item_t apart; /* fd is not a child's */
    bool serves;          /* this is the server's end */
    bool gone;            /* the other end hung up, or broke the rings */
    uint64_t conn;
    uint64_t last; /* server: what came before the end; read up to here */
    ps_ring_out_t out;
    ps_ring_in_t in;
    _Atomic uint64_t *passed_at; /* of requests: the server's word for … */
    uint64_t passed;             /* … up to where their bodies are done with too; told, or
                                    seen last */
    _Atomic uint64_t *own_waits; /* lane_bell.c */
    _Atomic uint64_t *peer_waits;
    bool wrote; /* since the bell was last thought of */
    bool took;
    /* sending */
    ps_lane_waiting_t *items; /* owned ring of deferred messages */
    size_t items_capacity;    /* a power of two */
    size_t first_item;        /* counts up; modulo the capacity */
    size_t n_items;
    uint64_t tried_head;    /* what was seen when the first of them last had no
                               room: of the ring … */
    uint64_t tried_passed;  /* … and of the arena */
    ps_lane_body_t *bodies; /* client: the same */
    size_t bodies_capacity;
    size_t first_body;
    size_t n_bodies;
    ps_map_t rooms;         /* client: request -> room_t *, lane_room.c */
    uint64_t awaited_bytes; /* of these rooms */
    /* receiving */
    ps_assembly_t assembly;
    ps_buffer_t parts;                             /* keys and index that come in PARTs */
    TAILQ_HEAD(ps_lane_holds, ps_lane_hold) holds; /* in order of position */
    ps_lane_coming_t coming;                       /* server */
} ps_lane_t;

/* Takes share and fd (also when it fails). Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_lane_new(ps_lane_share_t *share, int fd, bool serves,
                                        const ps_lane_args_t *args, ps_lane_t **ret_lane,
                                        psd_error_t *err);
/* Drops deferred messages. Takes NULL, nulls *self_p. */
void ps_lane_destroy(ps_lane_t **self_p);

/* Sends, or defers in order. repeated: it may have been sent before, by any
 * connection. Errors: PSD_BUSY (the maximum of messages is deferred, or the
 * other end is gone), PSD_NOMEM; nothing was sent then. */
PSD_MUST_CHECK psd_status_t ps_lane_send(ps_lane_t *self, const ps_message_t *message,
                                         ps_payload_t *payload, bool repeated, psd_error_t *err);
/* The next whole message; as ps_socket_receive. Errors: PSD_PROTO, PSD_VERSION,
 * PSD_LIMIT, PSD_NOMEM; a ring that cannot be read any more makes it gone. */
PSD_MUST_CHECK psd_status_t ps_lane_receive(ps_lane_t *self, bool *ret_got,
                                            ps_message_t *ret_message, ps_payload_t **ret_payload,
                                            ps_room_t *ret_room, psd_error_t *err);
/* There is a record to read; also one that will be reported as PSD_PROTO. */
bool ps_lane_has_record(ps_lane_t *self);
/* Something can be received, or the lane is gone and that is not reported
 * yet. */
bool ps_lane_is_ready(ps_lane_t *self);

/* Sends deferred messages as far as there is room, publishes the read position,
 * and wakes the other end if it sleeps and has something to do. Once a
 * batch. */
void ps_lane_flush(ps_lane_t *self);
/* Announces that the caller is about to sleep until fd can be read. false:
 * there is something to do already. ps_lane_wake follows in both cases. */
PSD_MUST_CHECK bool ps_lane_sleep(ps_lane_t *self);
/* Client: how long the server may be busy with the values that it was sent or
 * asked for, if it comes to them at once; at most a millisecond. */
uint32_t ps_lane_work_us(ps_lane_t *self);
/* The caller is awake again. */
void ps_lane_wake(ps_lane_t *self);
/* Takes in bells, and whether the other end hung up. */
void ps_lane_listen(ps_lane_t *self);

/* ---- between the files of the lane ---- */

/* Sends on of item what there is room for. */
typedef enum ps_lane_written {
    PS_LANE_WRITTEN = 0, /* all of it */
    PS_LANE_LATER = 1,   /* there is no room for the rest */
    PS_LANE_NO_MEMORY = 2
} ps_lane_written_t;
PSD_MUST_CHECK ps_lane_written_t ps_lane_write(ps_lane_t *self, ps_lane_item_t *item);
/* Client: frees the bodies that the server has passed. */
void ps_lane_reclaim(ps_lane_t *self);
/* There may be room now for deferred messages. */
bool ps_lane_may_go_on(const ps_lane_t *self);
/* Room to remember one more body, so that it cannot fail when it was sent. */
PSD_MUST_CHECK bool ps_lane_reserve_body(ps_lane_t *self);
/* Wakes the other end if it sleeps, without waiting for the batch to end. */
void ps_lane_nudge(ps_lane_t *self);
/* Tells the other end what is done with of what it wrote. */
void ps_lane_give(ps_lane_t *self);

/* Client: room for the answer to the request, when it is large, there is some,
 * and this is the first time that it is sent. */
void ps_lane_offer_room(ps_lane_t *self, ps_lane_item_t *item);
/* Client: an answer came. The size of the room that it may name at `at`; 0:
 * none. An end frees room to which the server will not write any more
 * (lane_room.c). */
uint64_t ps_lane_room_of(const ps_lane_t *self, uint64_t request, uint64_t at);
/* Client: the answer lies in the room, which becomes the payload's. */
void ps_lane_room_used(ps_lane_t *self, uint64_t request);
void ps_lane_room_answered(ps_lane_t *self, const ps_message_t *message);
void ps_lane_rooms_done(ps_lane_t *self);
#endif
