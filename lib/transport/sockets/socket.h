/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_socket - sockets that speak in messages and payloads
 *
 * What     A port (ROUTER) at the node or a link (DEALER) at the client, over
 *          tcp or ipc; or, on one host, a lane through shared memory, which a
 *          port may have beside them (lane.h says how it works). Data messages
 *          go out from the payload's own memory and come in as payloads that
 *          borrow the received frames; large values are cut and put together
 *          (protocol/session/assembly.h). Control messages are one frame of text.
 * Shape    conn: names a port's peer; 0 on a link. A peer that chose its own
 *          routing id is dropped and counted. ZeroMQ's conns are below 2^40,
 *          lanes' above.
 * Owner    The caller; ps_socket_close sends what is queued for linger_ms.
 * Threads  Confined to one thread; payloads sent are released on ZeroMQ's, and
 *          what came over a lane on the socket's.
 */
#ifndef PS_TRANSPORT_SOCKET_H
#define PS_TRANSPORT_SOCKET_H

#include "protocol/session/assembly.h"
#include "transport/sockets/door.h"

typedef struct ps_context ps_context_t;
typedef struct ps_socket ps_socket_t;

/* What the sockets of one owner share: ZeroMQ's I/O threads (1 .. 16). They
 * block all signals. Any thread may open sockets on it. Errors: PSD_INVALID
 * n_io_threads; PSD_NOMEM; PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_context_new(int n_io_threads, ps_context_t **ret_context,
                                           psd_error_t *err);
/* ZeroMQ's own context, for who looks after its threads. Borrowed. */
void *ps_context_zmq(const ps_context_t *self);
/* From any thread: every wait on its sockets ends at once, now and later, and
 * every other call on them fails with PSD_IO. They are still to be closed. */
void ps_context_stop(ps_context_t *self);
/* In a forked child what is libzmq's stays, as its threads are not there. Else:
 * its sockets are closed. Waits until what they had queued is sent or their
 * linger is over: behind it no thread looks at a payload any more. Takes NULL,
 * nulls *self_p. */
void ps_context_destroy(ps_context_t **self_p);

/* What concerns lanes only, but for spin_us. */
typedef struct ps_lane_options {
    uint32_t most;        /* a port: at a time; 0: PS_LANE_MOST */
    uint64_t arena_bytes; /* a port: of each, for bulk; taken when touched;
                             0: PS_LANE_ARENA_BYTES */
    uint32_t spin_us;     /* any socket: waits look again for so long before
                             they sleep; 0: not */
    uint32_t wait_ms;     /* a link: for the server to take it in;
                             0: PS_LANE_WAIT_MS */
} ps_lane_options_t;

#define PS_LANE_MOST 64
#define PS_LANE_ARENA_BYTES (UINT64_C(128) << 20)
#define PS_LANE_SPIN_US 50
#define PS_LANE_WAIT_MS 1000

/* For patience_ms, where a peer may be behind a slow link: a piece of 1 MiB at
 * 20 kB/s takes that long; and where messages are small, which wait for such
 * pieces of other connections. */
#define PS_PATIENCE_BODIES_MS 60000
#define PS_PATIENCE_SMALL_MS 20000

typedef struct ps_socket_args {
    ps_context_t *context;   /* borrowed, outlives the socket; NULL: one of its
                                own with one I/O thread */
    int high_water;          /* messages queued each way, > 0 */
    uint64_t frame_bytes;    /* largest frame accepted */
    uint64_t assembly_bytes; /* unfinished messages of one connection */
    uint32_t patience_ms;    /* until a peer is given up that sends no whole
                                frame, and a quarter of it for one whose kernel
                                is silent; 0: 4 s for both. For slow links: at
                                least what one piece takes */
    uint32_t chunk_bytes;    /* pieces that are sent; ps_socket_set_chunk */
    int linger_ms;           /* for what is queued at close */
    bool is_watched;         /* a link over ZeroMQ: ps_socket_is_up and is_gone
                                know of it; a port: it takes pieces only from
                                connections that it has sent WELCOME, and drops
                                them when ps_socket_next_gone hears that one is
                                closed */
    ps_peers_t peers;        /* a port: who of this host comes by ipc or lane */
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
/* A link. ZeroMQ connects, and connects again, by itself; nothing waits here. A
 * lane is there when this returns, and is not made again when it breaks.
 * Errors: PSD_INVALID endpoint, PSD_NOMEM, PSD_IO; for a lane also PSD_CONNECT,
 * PSD_DENIED, PSD_BUSY (no more lanes), PSD_PROTO, PSD_VERSION: there is none,
 * and the caller takes another way. */
PSD_MUST_CHECK psd_status_t ps_socket_connect(const char *endpoint, const ps_socket_args_t *args,
                                              ps_socket_t **ret_socket, psd_error_t *err);
/* Takes NULL, nulls *self_p. In a forked child it frees memory and sends
 * nothing. */
void ps_socket_close(ps_socket_t **self_p);
/* Closes without sending what is queued. */
void ps_socket_drop(ps_socket_t **self_p);
/* The ZeroMQ socket, for zmq_poll and zloop_poller; borrowed. It says nothing
 * of lanes; NULL for a link that is one. */
void *ps_socket_handle(ps_socket_t *self);
/* Messages dropped because their peer chose its own routing id. */
uint64_t ps_socket_n_refused(const ps_socket_t *self);
/* Connections that have sent the beginning of a message in pieces. */
size_t ps_socket_n_unfinished(const ps_socket_t *self);
/* Bytes of these beginnings, and how many there may be; one connection may
 * always have some. */
uint64_t ps_socket_unfinished_bytes(const ps_socket_t *self);
void ps_socket_set_unfinished_max(ps_socket_t *self, uint64_t bytes);
/* A port over ZeroMQ: how far the VALUES that answer a request are on their way
 * to conn. false: none are, of that epoch or a later one. */
PSD_MUST_CHECK bool ps_socket_find_answer(ps_socket_t *self, uint64_t conn, uint64_t request,
                                          uint64_t epoch, uint64_t now_ms, uint64_t *ret_sent,
                                          uint64_t *ret_bytes);
/* A link: a request of whose answer pieces have come since it was last named.
 * false: there is none. */
PSD_MUST_CHECK bool ps_socket_next_piece(ps_socket_t *self, uint64_t *ret_request);
/* Pieces of values from now on. */
void ps_socket_set_chunk(ps_socket_t *self, uint32_t chunk_bytes);

/* Sends a data message; a small one goes with the next flush, or with the next
 * large one to the same peer, before it. The payload (may be NULL) is kept
 * until ZeroMQ is done with its bytes. Errors: PSD_BUSY the queue is full or
 * the peer is gone (nothing, or only the first pieces, went out: the protocol
 * repairs both); PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_socket_send(ps_socket_t *self, uint64_t conn,
                                           const ps_message_t *message, ps_payload_t *payload,
                                           psd_error_t *err);
/* The same for a request, of a link, that may have been sent before, by this or
 * any other connection: a lane offers room for the answer with the first send
 * only, so that nobody can write there behind the end of the request. */
PSD_MUST_CHECK psd_status_t ps_socket_send_again(ps_socket_t *self, const ps_message_t *message,
                                                 ps_payload_t *payload, psd_error_t *err);
/*
 * Takes the next whole data message, without waiting.
 * ret_got      out  false: none is there now (pieces may have been taken in)
 * ret_payload  out  NULL when there is no body; the caller destroys it
 * ret_room     out  where the answer's values may be written; borrowed until
 *                   the connection is said to be gone; size 0: nowhere
 * Errors: PSD_PROTO, PSD_VERSION, PSD_LIMIT: conn sent something that is no
 * message (ret_conn is set; it is gone from the queue); PSD_NO_SESSION: the
 * first piece of one, without a WELCOME; PSD_NOMEM. Of PSD_LIMIT and PSD_NOMEM
 * ret_message is what it was of, as far as it has a kind.
 */
PSD_MUST_CHECK psd_status_t ps_socket_receive(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                              ps_message_t *ret_message, ps_payload_t **ret_payload,
                                              ps_room_t *ret_room, psd_error_t *err);
/* Drops what has begun on connections of which no piece has come for two
 * minutes, a second later at most if it is called all the time: the one that
 * always has room would keep that for good. */
void ps_socket_drop_stale(ps_socket_t *self, uint64_t now_ms);
/* Drops what is held for a connection that is gone. */
void ps_socket_forget(ps_socket_t *self, uint64_t conn);
/* Small messages over ZeroMQ go now, those of one connection in one frame
 * (wire/messages/batch.h), and what was sent over lanes since the last time is told to
 * peers that sleep: one wake-up for a batch. Waiting and closing do it too. */
void ps_socket_flush(ps_socket_t *self);
/* Small messages over ZeroMQ that the next flush sends. */
uint32_t ps_socket_n_collected(const ps_socket_t *self);
/* Small messages that were taken and could not go when they were flushed: the
 * queue was full or the peer gone. The protocol repairs it. */
uint64_t ps_socket_n_lost(const ps_socket_t *self);
/* A port: the next lane whose peer is gone, in turn with receiving; room that
 * it offered may be written to until the call behind. false: none. Pieces of
 * other connections that are closed are dropped here. */
PSD_MUST_CHECK bool ps_socket_next_gone(ps_socket_t *self, uint64_t *ret_conn);
/* A link: it was a lane, and its peer is gone. Nothing comes any more, and
 * sending is PSD_BUSY; it is always ready. The caller closes it. Or it is
 * watched and has lost its connection: what was under way may be lost, and
 * ZeroMQ connects again by itself. To be called now and then. */
bool ps_socket_is_gone(ps_socket_t *self);
/* A watched link: it is connected, and always was since it first was. */
bool ps_socket_is_up(ps_socket_t *self);
/* A link that is a lane. */
bool ps_socket_is_lane(const ps_socket_t *self);

/* Memory that a push over this link needs not be copied from: values that lie
 * in it are read there. */
typedef struct ps_block {
    uint8_t *data; /* aligned to 64 */
    size_t size;
    struct ps_lane_share *share; /* held; outlives the socket */
} ps_block_t;
/* false: the link is no lane, or has none left (callers may have a quarter of
 * it); *ret_block is then unchanged. */
PSD_MUST_CHECK bool ps_socket_take_block(ps_socket_t *self, size_t size, ps_block_t *ret_block);
/* Gives it back and zeroes it, before or behind the socket's end; pushes of
 * what lies in it have been answered. Ignores a zeroed one. */
void ps_block_done(ps_block_t *self);

/* One frame of text each way, for control. As above; text of more than
 * PS_DOC_BYTES_MAX or in several frames is PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_socket_send_text(ps_socket_t *self, uint64_t conn, ps_bytes_t text,
                                                psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_socket_receive_text(ps_socket_t *self, bool *ret_got,
                                                   uint64_t *ret_conn, ps_buffer_t *ret_text,
                                                   psd_error_t *err);

/* Waits until one of the sockets has something to receive, at most timeout_ms
 * (UINT64_MAX: for ever). ret_ready[i] says which. A signal ends the wait early
 * with nothing ready. Sockets are flushed, and looked at for a while before the
 * thread sleeps. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_socket_wait(ps_socket_t *const *sockets, size_t n_sockets,
                                           uint64_t timeout_ms, bool *ret_ready, psd_error_t *err);
/* The same for sockets and a ZeroMQ socket of the caller. */
PSD_MUST_CHECK psd_status_t ps_socket_wait_beside(ps_socket_t *const *sockets, size_t n_sockets,
                                                  void *zmq_socket, uint64_t timeout_ms,
                                                  bool *ret_ready, bool *ret_beside,
                                                  psd_error_t *err);

/* Waits for the socket end as well when fd, which is borrowed until the socket
 * is closed, is readable; nothing else comes of it. */
void ps_socket_wake_by(ps_socket_t *self, int fd);

/* The clock of everything: CLOCK_BOOTTIME in milliseconds. */
uint64_t ps_now_ms(void);
/* Random bytes of the kernel. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_random(void *ret_bytes, size_t size, psd_error_t *err);
#endif
