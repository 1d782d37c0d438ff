/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/transport: what a socket is made of. */
#ifndef PS_TRANSPORT_SOCKET_INNER_H
#define PS_TRANSPORT_SOCKET_INNER_H

#include <zmq.h>

#include "base/map.h"
#include "transport/socket.h"

/* A frame on its way in or out: what libzmq calls a message. */
typedef zmq_msg_t ps_frame_t;

/* A connection with unfinished messages. */
typedef struct ps_unfinished {
    ps_assembly_t assembly;
    uint64_t touched_ms; /* when its last piece came */
} ps_unfinished_t;

struct ps_socket {
    void *handle;              /* of ZeroMQ; owned */
    ps_context_t *context;     /* borrowed, or own_context */
    ps_context_t *own_context; /* NULL when the context is shared */
    bool is_port;              /* ROUTER; else DEALER */
    uint32_t chunk_bytes;      /* of the pieces sent */
    uint64_t assembly_bytes;   /* limit for each connection */
    uint64_t n_refused;        /* messages of peers with an id of their own */
    uint32_t piece_wait_ms;    /* 0: never dropped for their age */
    uint64_t swept_ms;         /* when old ones were last looked for */
    ps_map_t unfinished;       /* conn -> ps_unfinished_t *, owned; only those
                                  that hold something */
    char **endpoints;          /* owned, as bound or connected */
    size_t n_endpoints;
    size_t capacity; /* of endpoints */
};

/* A ZeroMQ socket on the context. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_context_open(ps_context_t *self,
                                            int zmq_type,
                                            void **ret_handle,
                                            psd_error_t *err);
/* Closes one that ps_context_open gave. */
void ps_context_close(ps_context_t *self, void *handle);

/* What ZeroMQ's last call failed with, as a status: PSD_BUSY for a full queue
 * or a peer that is gone, PSD_NOMEM, else PSD_IO. */
psd_status_t ps_zmq_status(psd_error_t *err, const char *doing);
#endif
