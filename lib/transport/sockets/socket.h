/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/transport/sockets: messages over tcp, ipc and lanes
 *
 * It is       Ports and links over any carrier, with one interface; waiting for
 *             several of them; why an endpoint does not answer.
 * It uses     lane, threads, lib/protocol/session/assembly.h, lib/wire,
 *             lib/base; czmq and zmq.
 * It ignores  What a message means, sessions, retries.
 * Start at    socket.h, carrier.h (the table: ZeroMQ, lane, plug-ins), send.c,
 *             receive.c and wait.c; zap.c and asker.h for who a peer is. A
 *             transport to come is a plug-in.
 */
/*
 * ps_socket - sockets for messages and payloads
 *
 * What     A port (ROUTER) at the node or a link (DEALER) at the client, over
 *          tcp or ipc; or, on one host, a lane through shared memory, which a
 *          port may offer as well (lane.h says how it works). Data messages are
 *          sent from the payload's own memory, and received as payloads that
 *          borrow the frames; large values are cut into pieces and reassembled
 *          (protocol/session/assembly.h). Control messages are one frame of
 *          text.
 * Shape    conn: names a port's peer; 0 on a link. A peer that chose its own
 *          routing id is dropped and counted. ZeroMQ's conns are below 2^40,
 *          lanes' above, plug-ins' above 2^41.
 * Owner    The caller; ps_socket_close sends what is queued for linger_ms.
 * Threads  Confined to one thread. Payloads that were sent are released on
 *          ZeroMQ's threads; payloads from a lane on the socket's.
 */
#ifndef PS_TRANSPORT_SOCKET_H
#define PS_TRANSPORT_SOCKET_H

#include "protocol/session/assembly.h"
#include "transport/lane/door.h"
#include "transport/sockets/asker.h"
#include "transport/sockets/poll.h"
#include "transport/threads/clock.h"
#include "transport/threads/turns.h"

typedef struct ps_context ps_context_t;
typedef struct ps_socket ps_socket_t;

/* What the sockets of one owner share: ZeroMQ's I/O threads (1 .. 16). They
 * block all signals. Any thread may open sockets on it. Errors: PSD_INVALID
 * n_io_threads; PSD_NOMEM; PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_context_new(int n_io_threads, ps_context_t **ret_context,
                                           psd_error_t *err);
/* Starts the thread that ZeroMQ asks who a peer is (zap.h), before the first port of the
 * context is bound. It ends with the context. Errors: PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_context_guard(ps_context_t *self, psd_error_t *err);
/* From now on that thread lets in those alone who have proven one of these keys; n_keys 0: nobody.
 * Connections that stand go on. Not without ps_context_guard. Errors: PSD_NOMEM: nobody gets
 * in. */
PSD_MUST_CHECK psd_status_t ps_context_admit(ps_context_t *self, const ps_public_key_t *keys,
                                             size_t n_keys, psd_error_t *err);
/* That thread reports from now on that it turns. turns outlives the context. */
void ps_context_watch_guard(ps_context_t *self, ps_turns_t *turns);
/* ZeroMQ's own context, to watch its threads. Borrowed. */
void *ps_context_zmq(const ps_context_t *self);
/* From any thread: every wait on its sockets ends at once, now and later, and every other call on
 * them fails with PSD_IO, but not those on a lane's link. They are still to be closed. */
void ps_context_stop(ps_context_t *self);
/* Its sockets must be closed. Waits until their queued messages are sent or
 * their linger is over: after it no thread reads a payload any more. In a
 * forked child it leaves libzmq's memory alone, because libzmq's threads do not
 * exist there. Takes NULL, nulls *self_p. */
void ps_context_destroy(ps_context_t **self_p);

/* Settings of lanes only, except spin_us. */
typedef struct ps_lane_options {
    uint32_t most;        /* a port: at a time; 0: PS_LANE_MOST */
    uint64_t arena_bytes; /* a port: of each, for bulk; taken when touched;
                             0: PS_LANE_ARENA_BYTES */
    uint32_t spin_us;     /* any socket: how long a wait polls before it
                             sleeps; 0: not at all */
    uint32_t wait_ms;     /* a link: for the server to take it in;
                             0: PS_LANE_WAIT_MS */
} ps_lane_options_t;

#define PS_LANE_MOST 64
#define PS_LANE_ARENA_BYTES (UINT64_C(128) << 20)
#define PS_LANE_SPIN_US 50
#define PS_LANE_WAIT_MS 1000

/* For patience_ms, when a peer may be behind a slow link: a piece of 1 MiB at
 * 20 kB/s takes that long. Also for small messages, which wait for such pieces
 * of other connections. */
#define PS_PATIENCE_BODIES_MS 60000
#define PS_PATIENCE_SMALL_MS 20000

typedef struct ps_socket_args {
    ps_context_t *context;     /* borrowed, outlives the socket; NULL: one of its
                                  own with one I/O thread */
    int high_water;            /* messages queued each way, > 0 */
    uint64_t frame_bytes;      /* largest frame accepted */
    uint64_t assembly_bytes;   /* unfinished messages of one connection */
    uint32_t patience_ms;      /* timeout for a peer that sends no whole frame; a
                                  quarter of it for one whose kernel is silent;
                                  0: 4 s for both. For slow links: at least the
                                  time of one piece */
    uint32_t chunk_bytes;      /* pieces that are sent; ps_socket_set_chunk */
    int linger_ms;             /* for messages queued at close */
    bool is_watched;           /* a link over ZeroMQ: ps_socket_is_up and is_gone
                                  work; a port: it accepts pieces only from
                                  connections that it has sent WELCOME, and drops
                                  them when ps_socket_next_gone sees that the
                                  connection is closed */
    const ps_key_pair_t *keys; /* borrowed until the close; NULL: none. A port: tcp is bound
                                  with CURVE under this pair. A link: who it is for a
                                  server whose endpoint names a key (curve.h) */
    bool is_guarded;           /* a port: it knows its callers, and is not bound without
                                  ps_context_guard before */
    ps_door_peers_t peers;     /* a port: which users of this host may use ipc or lane */
    ps_lane_options_t lane;
} ps_socket_args_t;

/* A port: binds each of the n endpoints ("tcp://127.0.0.1:*" or port 0 lets the
 * kernel choose; "ipc://PATH" and "lane://PATH": unix sockets, for clients of
 * this host, whose files have their mode by args->peers and go with the port).
 * Errors: PSD_INVALID endpoint; PSD_IO with the reason and the endpoint
 * ("address in use"). */
PSD_MUST_CHECK psd_status_t ps_socket_bind(const char *const *endpoints, size_t n_endpoints,
                                           const ps_socket_args_t *args, ps_socket_t **ret_socket,
                                           psd_error_t *err);
/* Binds one more endpoint. */
PSD_MUST_CHECK psd_status_t ps_socket_bind_more(ps_socket_t *self, const char *endpoint,
                                                psd_error_t *err);
/* The endpoint as bound (with the port that was chosen), i-th in order of
 * binding. Borrowed. */
const char *ps_socket_endpoint(const ps_socket_t *self, size_t i);
/* A link. ZeroMQ connects and reconnects by itself; this call does not wait. A
 * lane is open when this returns, and is not reopened when it breaks. Errors:
 * PSD_INVALID endpoint, PSD_NOMEM, PSD_IO; for a lane also PSD_CONNECT,
 * PSD_DENIED, PSD_BUSY (no more lanes), PSD_PROTO, PSD_VERSION: there is no
 * lane, and the caller uses another transport. */
PSD_MUST_CHECK psd_status_t ps_socket_connect(const char *endpoint, const ps_socket_args_t *args,
                                              ps_socket_t **ret_socket, psd_error_t *err);
/* Takes NULL, nulls *self_p. In a forked child it frees memory and sends
 * nothing. */
void ps_socket_close(ps_socket_t **self_p);
/* Closes without sending what is queued. */
void ps_socket_drop(ps_socket_t **self_p);
/* The ZeroMQ socket, for zloop_poller; borrowed. It does not cover lanes and
 * plug-ins, as ps_socket_wait does; NULL for a link that is one of them. */
void *ps_socket_handle(ps_socket_t *self);
/* Messages dropped because their peer chose its own routing id. */
uint64_t ps_socket_n_refused(const ps_socket_t *self);
/* Connections that have sent the beginning of a message in pieces. */
size_t ps_socket_n_unfinished(const ps_socket_t *self);
/* Bytes of these beginnings, and how many there may be; one connection may
 * always have some. */
uint64_t ps_socket_unfinished_bytes(const ps_socket_t *self);
void ps_socket_set_unfinished_max(ps_socket_t *self, uint64_t bytes);
/* A port over ZeroMQ: how far the VALUES that answer a request have been sent
 * to conn. false: none are in flight, of that epoch or a later one. */
PSD_MUST_CHECK bool ps_socket_find_answer(ps_socket_t *self, uint64_t conn, uint64_t request,
                                          uint64_t epoch, uint64_t now_ms, uint64_t *ret_sent,
                                          uint64_t *ret_bytes);
/* A link: a request for which pieces of the answer have come since it was last
 * named. false: there is none. */
PSD_MUST_CHECK bool ps_socket_next_piece(ps_socket_t *self, uint64_t *ret_request);
/* Pieces of values from now on. */
void ps_socket_set_chunk(ps_socket_t *self, uint32_t chunk_bytes);

/* Sends a data message; a small one is sent with the next flush, or before the
 * next large one to the same peer. The payload (may be NULL) is held until
 * ZeroMQ is done with its bytes. Errors: PSD_BUSY the queue is full or the peer
 * is gone (nothing, or only the first pieces, were sent: the protocol repairs
 * both); PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_socket_send(ps_socket_t *self, uint64_t conn,
                                           const ps_message_t *message, ps_payload_t *payload,
                                           psd_error_t *err);
/* The same for a request of a link that may have been sent before, by this or
 * any other connection. A lane offers room for the answer only with the first
 * send, so that a server cannot write there after the end of the request. */
PSD_MUST_CHECK psd_status_t ps_socket_send_again(ps_socket_t *self, const ps_message_t *message,
                                                 ps_payload_t *payload, psd_error_t *err);
/*
 * Takes the next whole data message, without waiting.
 * ret_got      out  false: there is none now (pieces may have been taken)
 * ret_payload  out  NULL when there is no body; the caller destroys it
 * ret_room     out  where the answer's values may be written; borrowed until
 *                   ps_socket_next_gone names the connection; size 0: nowhere
 * Errors: PSD_PROTO, PSD_VERSION, PSD_LIMIT: conn sent something that is no
 * message (ret_conn is set; it is gone from the queue); PSD_NO_SESSION: the
 * first piece of one, without a WELCOME; PSD_NOMEM. Of PSD_LIMIT and PSD_NOMEM
 * ret_message is what it was of, as far as it has a kind.
 */
PSD_MUST_CHECK psd_status_t ps_socket_receive(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                              ps_message_t *ret_message, ps_payload_t **ret_payload,
                                              ps_room_t *ret_room, psd_error_t *err);
/* Drops unfinished messages of connections that have sent no piece for two
 * minutes (at most a second later, if it is called all the time). Otherwise the
 * one connection that always has room would keep it forever. */
void ps_socket_drop_stale(ps_socket_t *self, uint64_t now_ms);
/* Drops what is held for a connection that is gone. */
void ps_socket_forget(ps_socket_t *self, uint64_t conn);
/* Sends small messages over ZeroMQ now, those of one connection in one frame
 * (wire/messages/batch.h). Wakes sleeping peers of lanes that got messages
 * since the last time: one wakeup for a batch. Waiting and closing flush
 * too. */
void ps_socket_flush(ps_socket_t *self);
/* Small messages over ZeroMQ that the next flush sends. */
uint32_t ps_socket_n_collected(const ps_socket_t *self);
/* The number of small messages that could not be sent when they were flushed:
 * the queue was full or the peer gone. The protocol repairs it. */
uint64_t ps_socket_n_lost(const ps_socket_t *self);
/* A port: the next lane whose peer is gone, called in turn with receive; the
 * room that it offered may be written to until the next call. false: none. It
 * also drops pieces of other connections that are closed. */
PSD_MUST_CHECK bool ps_socket_next_gone(ps_socket_t *self, uint64_t *ret_conn);
/* A link: either it is a lane whose peer is gone. No message comes any more, a
 * send returns PSD_BUSY, and it is always ready; the caller closes it. Or it is
 * watched and has lost its connection: messages in flight may be lost, and
 * ZeroMQ reconnects by itself. Call it now and then. */
bool ps_socket_is_gone(ps_socket_t *self);
/* A watched link: it is connected, and has not lost its first connection. */
bool ps_socket_is_up(ps_socket_t *self);
/* Why a watched link is not let in; it will not be. */
typedef enum ps_denial {
    PS_DENIAL_NONE = 0,
    PS_DENIAL_WANTS_KEY = 1, /* the server speaks CURVE, and the endpoint names no key */
    PS_DENIAL_HAS_NONE = 2,  /* the endpoint names a key, and the server has none */
    PS_DENIAL_KEY = 3,       /* the server's ZAP thread does not take this key */
    PS_DENIAL_SERVER = 4     /* the server has another key than the endpoint names */
} ps_denial_t;
ps_denial_t ps_socket_denial(ps_socket_t *self);
/* In words, with what to do. */
const char *ps_denial_text(ps_denial_t denial);
/* A link that is a lane. */
bool ps_socket_is_lane(const ps_socket_t *self);

/* Memory from which a push over this link is not copied: the server reads
 * values there in place. */
typedef struct ps_block {
    uint8_t *data; /* aligned to 64 */
    size_t size;
    struct ps_lane_share *share; /* held; outlives the socket */
} ps_block_t;
/* false: the link is no lane, or has none left (callers may have a quarter of
 * it); *ret_block is then unchanged. */
PSD_MUST_CHECK bool ps_socket_take_block(ps_socket_t *self, size_t size, ps_block_t *ret_block);
/* Gives it back and zeroes it, before or after the socket is closed. Pushes
 * from it must have been answered. Ignores a zeroed one. */
void ps_block_done(ps_block_t *self);

/* One frame of text each way, for control. As above; text of more than
 * PS_DOC_BYTES_MAX or in several frames is PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_socket_send_text(ps_socket_t *self, uint64_t conn, ps_bytes_t text,
                                                psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_socket_receive_text(ps_socket_t *self, bool *ret_got,
                                                   uint64_t *ret_conn, ps_buffer_t *ret_text,
                                                   psd_error_t *err);
/* Who has sent HELLO, PEER or MEET on that connection of a guarded port; call it when the message
 * has come. false: it is not known, or the connection is gone. */
PSD_MUST_CHECK bool ps_socket_greeter(ps_socket_t *self, uint64_t conn, ps_asker_t *ret_asker);
/* A port: the connection stands, as far as it is known. */
bool ps_socket_has_conn(ps_socket_t *self, uint64_t conn);
/* The same of a guarded port, with who sent it. A message of a connection that the thread of
 * ps_context_guard was not asked about is dropped, and counted as refused. */
PSD_MUST_CHECK psd_status_t ps_socket_receive_from(ps_socket_t *self, bool *ret_got,
                                                   uint64_t *ret_conn, ps_asker_t *ret_caller,
                                                   ps_buffer_t *ret_text, psd_error_t *err);

/* Waits until one of the sockets (0 or more) has something to receive, at most
 * timeout_ms (UINT64_MAX: forever). ret_ready[i] says which. A signal ends the wait early
 * with nothing ready. It flushes the sockets, and polls them for a while before
 * the thread sleeps. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_socket_wait(ps_socket_t *const *sockets, size_t n_sockets,
                                           uint64_t timeout_ms, bool *ret_ready, psd_error_t *err);
/* The same for sockets and other items of the caller, which is_ready then tells;
 * no socket used by others since the last wait may be is_dry. n_sockets may be 0. */
PSD_MUST_CHECK psd_status_t ps_socket_wait_with(ps_socket_t *const *sockets, size_t n_sockets,
                                                ps_poll_item_t *items, size_t n_items,
                                                uint64_t timeout_ms, bool *ret_ready,
                                                psd_error_t *err);
/* The same for sockets and a ZeroMQ socket of the caller. */
PSD_MUST_CHECK psd_status_t ps_socket_wait_beside(ps_socket_t *const *sockets, size_t n_sockets,
                                                  void *zmq_socket, uint64_t timeout_ms,
                                                  bool *ret_ready, bool *ret_beside,
                                                  psd_error_t *err);

/* Waits on this socket also end when fd is readable; it has no other effect. fd
 * is borrowed until the socket is closed, or gets another one; -1: none. */
void ps_socket_wake_by(ps_socket_t *self, int fd);
#endif
