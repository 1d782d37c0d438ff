/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/transport: the state of a socket. */
#ifndef PS_TRANSPORT_SOCKET_INNER_H
#define PS_TRANSPORT_SOCKET_INNER_H

#include <zmq.h>

#include "base/map.h"
#include "transport/lane/lane_port.h"
#include "transport/sockets/batches.h"
#include "transport/sockets/carrier.h"
#include "transport/sockets/carrier_plugin.h"
#include "transport/sockets/port_conns.h"
#include "transport/sockets/socket.h"
#include "transport/threads/spin.h"

/* A frame on its way in or out: what libzmq calls a message. */
typedef zmq_msg_t ps_frame_t;

/* A connection with unfinished messages. */
typedef struct ps_unfinished {
    ps_assembly_t assembly;
    uint64_t last_ms; /* when the last piece came */
} ps_unfinished_t;

#define PS_PLUGIN_ADDRESS 64

/* The part of a socket that a plug-in carries. */
typedef struct ps_plugin_end {
    ps_carrier_setup_t setup;
    const ps_carrier_plugin_t *functions;
    void *end;                       /* owned; NULL: there is none */
    uint32_t n_received;             /* since others had their turn */
    char address[PS_PLUGIN_ADDRESS]; /* of a link that is opened again, or that a port
                                        has beside others; "": neither */
    bool is_watched;                 /* as args->is_watched of a link */
    bool was_lost;                   /* such a link, once at least */
    uint64_t reopen_ms;              /* not before: of a link that is opened again */
} ps_plugin_end_t;

struct ps_socket {
    const ps_carrier_t *carriers[PS_CARRIER_SLOTS]; /* by slot; some may be NULL */
    size_t n_carriers;                              /* slots up to the last one used */
    bool looks_for_free;                            /* one of them can */
    void *handle;                                   /* of ZeroMQ; owned */
    int fd;                                         /* the handle's, for sleeping (poll.h) */
    bool is_dry;                                    /* a receive found nothing; not used since */
    bool is_lent;                                   /* others use the handle: dry is never known */
    ps_context_t *context;                          /* borrowed, or own_context */
    ps_context_t *own_context;                      /* NULL when the context is shared */
    bool is_port;                                   /* ROUTER; else DEALER */
    bool is_guarded;                                /* a port that knows its callers */
    const ps_key_pair_t *keys;                      /* borrowed; NULL: it speaks without */
    bool is_curve;                                  /* a link that speaks CURVE */
    uint64_t greeter_conn;     /* of the last HELLO, PEER or MEET over ZeroMQ … */
    ps_asker_t greeter;        /* … and who sent it */
    ps_door_peers_t peers;     /* that a port lets in */
    unsigned n_forks;          /* before it was made */
    uint32_t chunk_bytes;      /* of the pieces sent */
    uint64_t assembly_bytes;   /* limit for each connection */
    uint64_t n_refused;        /* messages of peers with an id of their own */
    ps_map_t unfinished;       /* conn -> ps_unfinished_t *, owned; only those
                                  that hold something */
    uint64_t unfinished_bytes; /* of these messages … */
    uint64_t unfinished_max;   /* … at most, but that one is always taken */
    uint64_t stale_due_ms;     /* when to look for those that have stopped */
    ps_port_conns_t conns;     /* of a port, over ZeroMQ */
    char **endpoints;          /* owned, as bound or connected */
    size_t n_endpoints;
    size_t capacity;          /* of endpoints */
    ps_batches_t batches;     /* of ZeroMQ's connections */
    uint64_t n_lost;          /* collected messages that could not be sent */
    void *monitor;            /* of a watched link or a port; owned; else NULL */
    bool is_up;               /* it has been connected … */
    bool was_lost;            /* … and that connection has ended */
    ps_denial_t denial;       /* of a watched link */
    unsigned n_failures;      /* handshakes of a link that failed, in a row … */
    uint64_t first_failed_ms; /* … the first of them … */
    uint64_t failed_ms;       /* … and the last */
    ps_lane_options_t lane_options;
    ps_lane_args_t lane_args;
    ps_lane_t *lane;       /* a link's; owned; handle is NULL then */
    ps_lane_port_t *lanes; /* a port's; owned; NULL: none are offered */
    ps_plugin_end_t plugin;
    ps_spin_t spin;       /* of waits of which it is the first that may spin */
    uint64_t moved_bytes; /* over ZeroMQ, both ways, since the last wait */
    uint32_t linger_ms;   /* of a lane */
    uint32_t n_waits;     /* since ZeroMQ was last asked */
    uint32_t n_received;  /* over lanes, since ZeroMQ was last asked */
    bool zmq_is_ready;    /* as far as is known; lanes only */
    bool has_wake;        /* wake_fd ends waits */
    int wake_fd;          /* borrowed */
    bool has_stop;        /* stop_fd ends waits, and they fail */
    int stop_fd;          /* the context's, of a link that is not ZeroMQ's; borrowed */
};

/* ---- link_watch.c ---- */

/* Called after the handle is opened, before it connects. Errors: PSD_NOMEM,
 * PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_socket_begin_watch(ps_socket_t *self, psd_error_t *err);
void ps_socket_end_watch(ps_socket_t *self);
/* A port: what its monitor has said of connections that are closed. */
void ps_socket_look_closed(ps_socket_t *self);

/* A watched link: it is connected, and has not lost its first connection. */
bool ps_socket_is_connected(ps_socket_t *self);
/* It has lost it. */
bool ps_socket_was_lost(ps_socket_t *self);

/* ---- lane_socket.c ---- */

/* The lane of conn; NULL: the peer is gone. */
ps_lane_t *ps_socket_lane_of(ps_socket_t *self, uint64_t conn);
/* The user at the other end. false: the peer is gone. */
PSD_MUST_CHECK bool ps_socket_lane_user(ps_socket_t *self, uint64_t conn, uint32_t *ret_uid);

static inline void ps_socket_use_carrier(ps_socket_t *self, size_t slot,
                                         const ps_carrier_t *carrier)
{
    self->carriers[slot] = carrier;
    self->n_carriers = slot < self->n_carriers ? self->n_carriers : slot + 1;
    self->looks_for_free = self->looks_for_free || carrier->is_ready != NULL;
}

/* The carrier of conn; NULL: there is none, so its peer is gone. */
static inline const ps_carrier_t *ps_socket_carrier(const ps_socket_t *self, uint64_t conn)
{
    uint64_t slot = conn >> PS_CONN_BITS;

    return slot < PS_CARRIER_SLOTS ? self->carriers[slot] : NULL;
}

/* Ends the thread of ps_context_guard: ports that know their callers let nobody in from now on. */
void ps_context_end_guard(ps_context_t *self);
/* It has that thread. */
bool ps_context_is_guarded(const ps_context_t *self);
/* True in a child that was forked since it was made. */
bool ps_context_is_forked(const ps_context_t *self);
/* A ZeroMQ socket on the context. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_context_open(ps_context_t *self, int zmq_type, void **ret_handle,
                                            psd_error_t *err);
/* ZeroMQ's sockets hear of ps_context_stop from ZeroMQ. The others: whether it was called, and what
 * is readable since. */
bool ps_context_is_stopped(const ps_context_t *self);
int ps_context_stop_fd(const ps_context_t *self);
/* Never the same twice. */
uint64_t ps_context_next_number(ps_context_t *self);
/* Closes one that ps_context_open gave. */
void ps_context_close(ps_context_t *self, void *handle);

/* What ZeroMQ's last call failed with, as a status: PSD_BUSY for a full queue
 * or a peer that is gone, PSD_NOMEM, else PSD_IO. */
psd_status_t ps_zmq_status(psd_error_t *err, const char *doing);
#endif
