/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_peer_links - a shard's connections to the shards that hold its copies
 *
 * What     A socket for each connection that the core has opened, numbered as
 *          the core does. Nothing here blocks: messages that a peer does not
 *          take are queued up to the high-water mark, then dropped, and the
 *          core resends them. A connection that was lost, or whose peer sends
 *          rubbish, is gone for good; the core opens another one.
 *
 *              connecting --handshake--> up --lost, rubbish--> gone
 *
 * Units    ms. GONE comes AGAIN_MS after the opening at the earliest, so that a
 *          peer that ends every connection does not keep us busy.
 * Owner    The shard's thread. Threads: confined to it.
 */
#ifndef PS_SERVER_PEER_LINKS_H
#define PS_SERVER_PEER_LINKS_H

#include "transport/sockets/socket.h"

typedef struct ps_peer_link {
    uint64_t conn;       /* as the core numbers it */
    ps_socket_t *socket; /* owned; NULL: gone, and the core does not know yet */
    uint64_t opened_ms;
    bool is_ready; /* as the last wait found it */
    bool is_up;
    bool has_said; /* sent something before it was up: no more goes until it is up */
} ps_peer_link_t;

typedef struct ps_peer_links {
    ps_socket_args_t args; /* of each */
    ps_peer_link_t *links; /* owned */
    size_t n_links;
    size_t capacity;
    uint64_t unknown;      /* conn that was used and is not here; 0: none */
    size_t next;           /* whose message is taken next */
    uint64_t looked_ms;    /* when lost links were last looked for */
    ps_socket_t **sockets; /* owned; for waits: the port, and those that are
                              here */
    bool *ready;           /* owned, beside sockets; of the last wait */
    size_t sockets_capacity;
    size_t ready_capacity;
} ps_peer_links_t;

/* args are a port's. */
void ps_peer_links_init(ps_peer_links_t *self, const ps_socket_args_t *args);
/* Drops what is queued. */
void ps_peer_links_done(ps_peer_links_t *self);
/* Begins to connect. One that cannot be made is gone, and its reason logged;
 * err is for its text. */
void ps_peer_links_open(ps_peer_links_t *self, uint64_t conn, const char *endpoint, uint64_t now_ms,
                        psd_error_t *err);
/* The core no longer needs it. */
void ps_peer_links_close(ps_peer_links_t *self, uint64_t conn);
/* As ps_socket_send. PSD_BUSY also when it is gone, or is not up and has
 * something to say already. */
PSD_MUST_CHECK psd_status_t ps_peer_links_send(ps_peer_links_t *self, uint64_t conn,
                                               const ps_message_t *message, ps_payload_t *payload,
                                               psd_error_t *err);
void ps_peer_links_flush(ps_peer_links_t *self);
/* The next message that the last wait found, of each link in turn. false:
 * none is left. A peer that speaks rubbish is cut off, and logged; err is
 * for its text. */
PSD_MUST_CHECK bool ps_peer_links_receive(ps_peer_links_t *self, uint64_t *ret_conn,
                                          ps_message_t *ret_message, ps_payload_t **ret_payload,
                                          psd_error_t *err);
/* Takes out the next link that is gone. false: none. */
PSD_MUST_CHECK bool ps_peer_links_next_gone(ps_peer_links_t *self, uint64_t now_ms,
                                            uint64_t *ret_conn);
/* Waits as ps_socket_wait_beside for the port, the links and a ZeroMQ socket.
 * Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_peer_links_wait(ps_peer_links_t *self, ps_socket_t *port,
                                               void *zmq_socket, uint64_t timeout_ms,
                                               bool *ret_port, bool *ret_beside, psd_error_t *err);
#endif
