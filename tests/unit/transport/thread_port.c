/* SPDX-License-Identifier: Apache-2.0 */
/* A port that is watched: what it keeps of whom, until when, and what it knows
 * of answers on their way. ZeroMQ's threads release payloads, so this is a
 * plain program that also runs under TSan. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <zmq.h>

#include "support/check.h"
#include "support/zmtp.h"
#include "transport/sockets/socket.h"

#define PATIENCE_MS 60000
#define STALE_MS 120000  /* without a piece, until a beginning is dropped */
#define DESCRIPTORS 1024 /* that a test may have */
#define TRIES 100        /* of which one at least goes as it is wanted */

typedef struct ends {
    ps_context_t *context;
    psd_error_t *err;
} ends_t;

static psd_status_t send_now(ps_socket_t *socket, uint64_t conn, const ps_message_t *message,
                             ps_payload_t *payload, psd_error_t *err)
{
    psd_status_t rc = ps_socket_send(socket, conn, message, payload, err);

    ps_socket_flush(socket);
    return rc;
}

/* Waits for the next whole message. */
static psd_status_t receive(ps_socket_t *socket, uint64_t *conn, ps_message_t *message,
                            ps_payload_t **payload, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (ps_now_ms() < until_ms) {
        bool ready = false;
        bool got = false;
        psd_status_t rc = ps_socket_wait(&socket, 1, until_ms - ps_now_ms(), &ready, err);

        if (rc == PSD_OK && ready) {
            ps_room_t room = {NULL, 0};

            rc = ps_socket_receive(socket, &got, conn, message, payload, &room, err);
        }
        if (rc != PSD_OK || got) {
            return rc;
        }
    }
    return psd_error_set(err, PSD_DEADLINE, "nothing came");
}

/* Sends a message of one value, or of none, in one frame. */
static bool send_raw(void *peer, const ps_message_t *message, size_t n_bytes)
{
    uint8_t bytes[PS_HEADER_MAX + 4] = {0};
    size_t size = ps_message_encode(message, bytes) + n_bytes;

    return zmq_send(peer, bytes, size, 0) == (int)size;
}

/* The same by a plain socket. */
static bool write_raw(int fd, const ps_message_t *message, size_t n_bytes)
{
    uint8_t bytes[PS_HEADER_MAX + 4] = {0};
    size_t size = ps_message_encode(message, bytes) + n_bytes;

    return zmtp_send(fd, 0, bytes, size);
}

/* Says HELLO, and is answered WELCOME by the port. */
static bool greet(ps_socket_t *port, void *peer, uint64_t *ret_conn, psd_error_t *err)
{
    const ps_message_t hello = {.kind = PS_KIND_HELLO,
                                .hello = {.version_min = 1, .version_max = 1}};
    const ps_message_t welcome = {.kind = PS_KIND_WELCOME, .welcome = {.version = 1}};
    ps_message_t got;
    ps_payload_t *payload = NULL;

    CHECK(send_raw(peer, &hello, 0));
    CHECK_OK(receive(port, ret_conn, &got, &payload, err), err);
    CHECK(got.kind == PS_KIND_HELLO);
    CHECK_OK(send_now(port, *ret_conn, &welcome, NULL, err), err);
    return true;
}

static const ps_message_t beginning = {.kind = PS_KIND_PUSH,
                                       .flags = PS_FLAG_MORE,
                                       .push = {.request = 7,
                                                .seq = 1,
                                                .rows = PS_ROWS_RANGE,
                                                .type = PS_TYPE_F32,
                                                .n_rows = 1,
                                                .n_cols = 9,
                                                .n_values = 9}};
static const ps_message_t chunk_of_nothing = {.kind = PS_KIND_CHUNK,
                                              .chunk = {.request = 5, .offset = 64}};
static const ps_message_t a_bye = {.kind = PS_KIND_BYE};

/* A CHUNK of what has not begun, and what ends the wait. */
static bool send_a_chunk(ps_socket_t *port, void *peer, psd_error_t *err)
{
    ps_message_t got;
    ps_payload_t *payload = NULL;
    uint64_t conn = 0;

    CHECK(send_raw(peer, &chunk_of_nothing, 4));
    CHECK(send_raw(peer, &a_bye, 0));
    CHECK_OK(receive(port, &conn, &got, &payload, err), err);
    CHECK(got.kind == PS_KIND_BYE);
    return true;
}

/* The beginning of a message, a CHUNK of none, and what ends the wait. */
static bool send_a_beginning(ps_socket_t *port, void *peer, psd_error_t *err)
{
    CHECK(send_raw(peer, &beginning, 4));
    return send_a_chunk(port, peer, err);
}

/* Until what is unfinished there is of so many connections. */
static bool comes_to(ps_socket_t *port, size_t n, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (ps_socket_n_unfinished(port) != n && ps_now_ms() < until_ms) {
        bool ready = false;
        uint64_t gone = 0;

        CHECK_OK(ps_socket_wait(&port, 1, 5, &ready, err), err);
        CHECK(!ps_socket_next_gone(port, &gone));
    }
    return ps_socket_n_unfinished(port) == n;
}

static bool open_watched(ends_t *ends, int high_water, ps_socket_t **ret_port)
{
    const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    const ps_socket_args_t args = {.context = ends->context,
                                   .high_water = high_water,
                                   .frame_bytes = 1 << 20,
                                   .assembly_bytes = 1 << 20,
                                   .chunk_bytes = 1 << 20,
                                   .linger_ms = 1000,
                                   .is_watched = true};

    CHECK_OK(ps_socket_bind(endpoints, 1, &args, ret_port, ends->err), ends->err);
    return true;
}

/* The one connection that always has room began something, and never goes on.
 */
static bool pieces_that_stop_are_dropped(ends_t *ends)
{
    void *zmq = zmq_ctx_new();
    void *peer = zmq_socket(zmq, ZMQ_DEALER);
    ps_socket_t *port = NULL;
    uint64_t conn = 0;
    uint64_t begun_ms = 0;

    CHECK(open_watched(ends, 100, &port));
    CHECK(zmq_connect(peer, ps_socket_endpoint(port, 0)) == 0);
    CHECK(greet(port, peer, &conn, ends->err));
    ps_socket_set_unfinished_max(port, 0);
    begun_ms = ps_now_ms();
    CHECK(send_a_beginning(port, peer, ends->err));
    ps_socket_drop_stale(port, begun_ms + STALE_MS - 1);
    CHECK(ps_socket_n_unfinished(port) == 1);
    ps_socket_drop_stale(port, begun_ms + STALE_MS + PATIENCE_MS);
    CHECK(ps_socket_n_unfinished(port) == 0);
    CHECK(ps_socket_unfinished_bytes(port) == 0);
    CHECK(zmq_close(peer) == 0);
    ps_socket_close(&port);
    CHECK(zmq_ctx_term(zmq) == 0);
    return true;
}

/* Pieces of who was not welcomed are not kept, and of who is gone neither. */
static bool pieces_are_of_the_welcome(ends_t *ends)
{
    void *zmq = zmq_ctx_new();
    void *peer = zmq_socket(zmq, ZMQ_DEALER);
    void *other = zmq_socket(zmq, ZMQ_DEALER);
    ps_socket_t *port = NULL;
    ps_message_t got;
    ps_payload_t *payload = NULL;
    uint64_t conn = 0;

    CHECK(open_watched(ends, 100, &port));
    CHECK(zmq_connect(peer, ps_socket_endpoint(port, 0)) == 0);
    CHECK(zmq_connect(other, ps_socket_endpoint(port, 0)) == 0);
    CHECK(send_raw(peer, &beginning, 4));
    CHECK_ERROR(receive(port, &conn, &got, &payload, ends->err), PSD_NO_SESSION, "say HELLO first",
                ends->err);
    CHECK(ps_socket_n_unfinished(port) == 0);
    CHECK(greet(port, peer, &conn, ends->err));
    CHECK(greet(port, other, &conn, ends->err));
    CHECK(send_a_beginning(port, peer, ends->err));
    CHECK(ps_socket_n_unfinished(port) == 1);
    CHECK(ps_socket_unfinished_bytes(port) == 4);

    ps_socket_set_unfinished_max(port, 7); /* one always has room */
    CHECK(send_raw(other, &beginning, 4));
    CHECK_ERROR(receive(port, &conn, &got, &payload, ends->err), PSD_LIMIT,
                "all of the memory that is left", ends->err);
    CHECK(got.kind == PS_KIND_PUSH && got.push.request == 7);
    ps_socket_forget(port, conn);
    CHECK(send_a_chunk(port, other, ends->err)); /* of it, dropped */
    ps_socket_set_unfinished_max(port, 12);      /* and the CHUNK */
    CHECK(send_a_beginning(port, other, ends->err));
    CHECK(ps_socket_unfinished_bytes(port) == 8);
    ps_socket_drop_stale(port, ps_now_ms());
    CHECK(ps_socket_unfinished_bytes(port) == 8);

    CHECK(zmq_close(peer) == 0);
    CHECK(comes_to(port, 1, ends->err));
    CHECK(ps_socket_unfinished_bytes(port) == 4);
    CHECK(zmq_close(other) == 0);
    CHECK(comes_to(port, 0, ends->err));
    CHECK(ps_socket_unfinished_bytes(port) == 0);
    ps_socket_close(&port);
    CHECK(zmq_ctx_term(zmq) == 0);
    return true;
}

/* The connections that a port of this process has taken and not closed are so
 * many, and ZeroMQ has read all that came. */
static bool has_taken(const char *endpoint, int n)
{
    unsigned long port = strtoul(strrchr(endpoint, ':') + 1, NULL, 10);
    int n_found = 0;
    int n_unread = 0;

    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct sockaddr_in mine = {.sin_family = AF_UNSPEC};
        socklen_t size = sizeof mine;
        int listens = 1;
        socklen_t listens_size = sizeof listens;
        int unread = 0;

        if (getsockname(fd, (struct sockaddr *)&mine, &size) == 0 && mine.sin_family == AF_INET &&
            ntohs(mine.sin_port) == port &&
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) == 0 &&
            listens == 0) {
            n_found++;
            n_unread += ioctl(fd, FIONREAD, &unread) == 0 ? unread : 0;
        }
    }
    return n_found == n && n_unread == 0;
}

static bool comes_to_have(const char *endpoint, int n)
{
    const uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (!has_taken(endpoint, n) && ps_now_ms() < until_ms) {
        (void)poll(NULL, 0, 1);
    }
    return has_taken(endpoint, n);
}

static const ps_message_t a_hello = {.kind = PS_KIND_HELLO,
                                     .hello = {.version_min = 1, .version_max = 1}};

/* One says HELLO, begins a message, and is gone before any of that is read.
 * When the HELLO of the next one is there, what it began came, or ZeroMQ has
 * thrown it away, as it may. */
static bool goes_before_it_is_read(ends_t *ends, ps_socket_t *port, bool *ret_came)
{
    const ps_message_t welcome = {.kind = PS_KIND_WELCOME, .welcome = {.version = 1}};
    const char *endpoint = ps_socket_endpoint(port, 0);
    ps_message_t got = {.kind = PS_KIND_WELCOME};
    ps_payload_t *payload = NULL;
    uint64_t conn = 0;
    uint64_t next = 0;
    int fd = zmtp_connect(endpoint);

    CHECK(fd >= 0);
    CHECK(write_raw(fd, &a_hello, 0) && write_raw(fd, &beginning, 4));
    CHECK(comes_to_have(endpoint, 1));
    CHECK(close(fd) == 0);
    CHECK(comes_to_have(endpoint, 0));
    CHECK_OK(receive(port, &conn, &got, &payload, ends->err), ends->err);
    CHECK(got.kind == PS_KIND_HELLO);
    CHECK_OK(send_now(port, conn, &welcome, NULL, ends->err), ends->err);

    fd = zmtp_connect(endpoint);
    CHECK(fd >= 0 && write_raw(fd, &a_hello, 0));
    while (next == 0) {
        psd_status_t rc = receive(port, &next, &got, &payload, ends->err);

        if (rc == PSD_NO_SESSION) {
            CHECK(strstr(psd_error_text(ends->err), "say HELLO first") != NULL);
            psd_error_clear(ends->err);
            *ret_came = true;
            next = 0;
        } else {
            CHECK_OK(rc, ends->err);
            CHECK(got.kind == PS_KIND_HELLO && next != conn);
        }
    }
    CHECK(close(fd) == 0 && comes_to_have(endpoint, 0));
    CHECK(ps_socket_n_unfinished(port) == 0);
    return true;
}

/* What a connection has sent is read when it is closed, and the monitor has
 * said so before: nobody will say it again. */
static bool who_is_gone_is_not_welcome(ends_t *ends)
{
    ps_socket_t *port = NULL;
    bool came = false;

    CHECK(open_watched(ends, 100, &port));
    for (int i = 0; i < TRIES && !came; i++) {
        CHECK(goes_before_it_is_read(ends, port, &came));
    }
    CHECK(came);
    ps_socket_close(&port);
    return true;
}

#define ANSWER_BYTES (UINT32_C(8) << 20)
#define PIECE_BYTES (UINT32_C(1) << 20)
#define ANSWERS_MAX 100
#define EPOCH 3

/* Where an answer is, at a time that the test says. */
typedef struct look {
    ps_socket_t *port;
    uint64_t conn;
    uint64_t now_ms;
    uint64_t sent;
    uint64_t bytes;
} look_t;

/* Sends values that its peer does not take yet. */
static psd_status_t answer(const look_t *at, uint64_t request, uint32_t bytes, psd_error_t *err)
{
    static float cells[ANSWER_BYTES / sizeof(float)];
    const ps_message_t values = {.kind = PS_KIND_VALUES,
                                 .values = {.request = request,
                                            .epoch = EPOCH,
                                            .rows = PS_ROWS_RANGE,
                                            .type = PS_TYPE_F32,
                                            .n_rows = 1,
                                            .n_cols = bytes / 4,
                                            .n_values = bytes / 4}};
    ps_payload_t *payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                                           (ps_bytes_t){(const uint8_t *)cells, bytes}, NULL, NULL);
    psd_status_t rc = send_now(at->port, at->conn, &values, payload, err);

    ps_payload_destroy(&payload);
    return rc;
}

static bool find(look_t *at, uint64_t request)
{
    return ps_socket_find_answer(at->port, at->conn, request, EPOCH, at->now_ms, &at->sent,
                                 &at->bytes);
}

static bool take_some(void *peer)
{
    CHECK(zmq_recv(peer, NULL, 0, ZMQ_DONTWAIT) >= 0 || zmq_errno() == EAGAIN);
    return true;
}

/* It arrives while its peer reads, and is found a second more. */
static bool arrives(look_t *at, void *peer, uint64_t request)
{
    const uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    do {
        CHECK(take_some(peer));
        CHECK(find(at, request));
    } while (at->sent < at->bytes && ps_now_ms() < until_ms);
    CHECK(at->sent == at->bytes);
    at->now_ms += 999;
    CHECK(find(at, request));
    at->now_ms++;
    CHECK(!find(at, request));
    return true;
}

static bool connect_slow(void *zmq, look_t *at, void **ret_peer, psd_error_t *err)
{
    const int few = 1;

    *ret_peer = zmq_socket(zmq, ZMQ_DEALER);
    CHECK(zmq_setsockopt(*ret_peer, ZMQ_RCVHWM, &few, sizeof few) == 0);
    CHECK(zmq_connect(*ret_peer, ps_socket_endpoint(at->port, 0)) == 0);
    CHECK(greet(at->port, *ret_peer, &at->conn, err));
    return true;
}

/* An answer is found until it has arrived, and a while longer. */
static bool answers_are_found_on_their_way(ends_t *ends)
{
    void *zmq = zmq_ctx_new();
    void *peer = NULL;
    look_t at = {.now_ms = 1000};

    CHECK(open_watched(ends, 100, &at.port));
    CHECK(connect_slow(zmq, &at, &peer, ends->err));
    CHECK(!find(&at, 6));
    CHECK_OK(answer(&at, 6, ANSWER_BYTES, ends->err), ends->err);
    CHECK(find(&at, 6));
    CHECK(at.bytes == ANSWER_BYTES && at.sent < ANSWER_BYTES);
    CHECK(!find(&at, 7));
    at.conn++;
    CHECK(!find(&at, 6));
    at.conn--;
    CHECK(arrives(&at, peer, 6));
    CHECK(zmq_close(peer) == 0 && zmq_ctx_term(zmq) == 0);
    ps_socket_close(&at.port);
    return true;
}

/* ZeroMQ drops what waits for a connection that is closed; the same client
 * comes back by another one, and is answered again. */
static bool answers_go_with_their_connection(ends_t *ends)
{
    const uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    const int none = 0;
    void *zmq = zmq_ctx_new();
    void *peer = NULL;
    look_t at = {.now_ms = 1000};
    look_t before;
    uint64_t gone = 0;

    CHECK(open_watched(ends, 100, &at.port));
    CHECK(connect_slow(zmq, &at, &peer, ends->err));
    CHECK_OK(answer(&at, 6, ANSWER_BYTES, ends->err), ends->err);
    CHECK(find(&at, 6));
    before = at;
    CHECK(zmq_setsockopt(peer, ZMQ_LINGER, &none, sizeof none) == 0);
    CHECK(zmq_close(peer) == 0);
    CHECK(connect_slow(zmq, &at, &peer, ends->err));
    CHECK(at.conn != before.conn);
    CHECK(!find(&at, 6));
    while (find(&before, 6) && ps_now_ms() < until_ms) {
        CHECK(!ps_socket_next_gone(at.port, &gone));
    }
    CHECK(!find(&before, 6));
    CHECK_OK(answer(&at, 6, ANSWER_BYTES, ends->err), ends->err);
    CHECK(arrives(&at, peer, 6));
    CHECK(zmq_close(peer) == 0 && zmq_ctx_term(zmq) == 0);
    ps_socket_close(&at.port);
    return true;
}

/* The queue is full in the middle of an answer: the rest of it is dropped, and
 * it is not on its way; what was queued before is. */
static bool answers_that_are_cut_off_are_not_found(ends_t *ends)
{
    void *zmq = zmq_ctx_new();
    void *peer = NULL;
    look_t at = {.now_ms = 1000};
    uint64_t request = 0;
    psd_status_t rc = PSD_OK;

    CHECK(open_watched(ends, 2, &at.port));
    CHECK(connect_slow(zmq, &at, &peer, ends->err));
    while (rc == PSD_OK && request < ANSWERS_MAX) {
        CHECK(take_some(peer));
        rc = answer(&at, ++request, ANSWER_BYTES, ends->err);
    }
    CHECK(rc == PSD_BUSY);
    CHECK(!find(&at, request));
    while (rc == PSD_BUSY) {
        CHECK(take_some(peer));
        rc = answer(&at, request, PIECE_BYTES, ends->err);
    }
    CHECK_OK(rc, ends->err);
    CHECK(arrives(&at, peer, request));
    CHECK(zmq_close(peer) == 0 && zmq_ctx_term(zmq) == 0);
    ps_socket_close(&at.port);
    return true;
}

int main(void)
{
    ends_t ends = {.err = psd_error_new()};
    bool ok = ps_context_new(2, &ends.context, ends.err) == PSD_OK &&
              pieces_are_of_the_welcome(&ends) && pieces_that_stop_are_dropped(&ends) &&
              who_is_gone_is_not_welcome(&ends) && answers_are_found_on_their_way(&ends) &&
              answers_go_with_their_connection(&ends) &&
              answers_that_are_cut_off_are_not_found(&ends);

    ps_context_destroy(&ends.context);
    psd_error_destroy(&ends.err);
    return ok ? 0 : 1;
}
