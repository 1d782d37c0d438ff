/* SPDX-License-Identifier: Apache-2.0 */
/* A port that is watched: what it keeps of whom, and until when. ZeroMQ's
 * threads release payloads, so this is a
 * plain program that also runs under TSan. */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <zmq.h>

#include "support/check.h"
#include "transport/socket.h"

#define PATIENCE_MS 60000

typedef struct ends {
    ps_context_t *context;
    psd_error_t *err;
} ends_t;

static psd_status_t
send_now(ps_socket_t *socket,
         uint64_t conn,
         const ps_message_t *message,
         ps_payload_t *payload,
         psd_error_t *err)
{
    psd_status_t rc = ps_socket_send(socket, conn, message, payload, err);

    ps_socket_flush(socket);
    return rc;
}

/* Waits for the next whole message. */
static psd_status_t
receive(ps_socket_t *socket,
        uint64_t *conn,
        ps_message_t *message,
        ps_payload_t **payload,
        psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (ps_now_ms() < until_ms) {
        bool ready = false;
        bool got = false;
        psd_status_t rc =
            ps_socket_wait(&socket, 1, until_ms - ps_now_ms(), &ready, err);

        if (rc == PSD_OK && ready) {
            ps_room_t room = {NULL, 0};

            rc = ps_socket_receive(socket, &got, conn, message, payload, &room,
                                   err);
        }
        if (rc != PSD_OK || got) {
            return rc;
        }
    }
    return psd_error_set(err, PSD_DEADLINE, "nothing came");
}

/* Sends a message of one value, or of none, in one frame. */
static bool
send_raw(void *peer, const ps_message_t *message, size_t n_bytes)
{
    uint8_t bytes[PS_HEADER_MAX + 4] = {0};
    size_t size = ps_message_encode(message, bytes) + n_bytes;

    return zmq_send(peer, bytes, size, 0) == (int)size;
}

/* Says HELLO, and is answered WELCOME by the port. */
static bool
greet(ps_socket_t *port, void *peer, uint64_t *ret_conn, psd_error_t *err)
{
    const ps_message_t hello = {.kind = PS_KIND_HELLO,
                                .hello = {.version_min = 1, .version_max = 1}};
    const ps_message_t welcome = {.kind = PS_KIND_WELCOME,
                                  .welcome = {.version = 1}};
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
                                       .push = {.seq = 1,
                                                .rows = PS_ROWS_RANGE,
                                                .type = PS_TYPE_F32,
                                                .n_rows = 1,
                                                .n_cols = 9,
                                                .n_values = 9}};
static const ps_message_t chunk_of_nothing = {
    .kind = PS_KIND_CHUNK, .chunk = {.request = 5, .offset = 64}};
static const ps_message_t a_bye = {.kind = PS_KIND_BYE};

/* The beginning of a message, a CHUNK of none, and what ends the wait. */
static bool
send_a_beginning(ps_socket_t *port, void *peer, psd_error_t *err)
{
    ps_message_t got;
    ps_payload_t *payload = NULL;
    uint64_t conn = 0;

    CHECK(send_raw(peer, &beginning, 4));
    CHECK(send_raw(peer, &chunk_of_nothing, 4));
    CHECK(send_raw(peer, &a_bye, 0));
    CHECK_OK(receive(port, &conn, &got, &payload, err), err);
    CHECK(got.kind == PS_KIND_BYE);
    return true;
}

/* Until what is unfinished there is of so many connections. */
static bool
comes_to(ps_socket_t *port, size_t n, psd_error_t *err)
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

static bool
open_watched(ends_t *ends, int high_water, ps_socket_t **ret_port)
{
    const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    const ps_socket_args_t args = {.context = ends->context,
                                   .high_water = high_water,
                                   .frame_bytes = 1 << 20,
                                   .assembly_bytes = 1 << 20,
                                   .chunk_bytes = 1 << 20,
                                   .linger_ms = 1000,
                                   .is_watched = true};

    CHECK_OK(ps_socket_bind(endpoints, 1, &args, ret_port, ends->err),
             ends->err);
    return true;
}

/* Pieces of who was not welcomed are not kept, and of who is gone neither. */
static bool
pieces_are_of_the_welcome(ends_t *ends)
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
    CHECK_ERROR(receive(port, &conn, &got, &payload, ends->err), PSD_NO_SESSION,
                "say HELLO first", ends->err);
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
    ps_socket_forget(port, conn);
    ps_socket_set_unfinished_max(port, 12); /* and the CHUNK */
    CHECK(send_a_beginning(port, other, ends->err));
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

static int
n_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return n;
}

/* What a connection has sent is read when it is closed, and the monitor has
 * said so before: nobody will say it again. */
static bool
who_is_gone_is_not_welcome(ends_t *ends)
{
    const ps_message_t hello = {.kind = PS_KIND_HELLO,
                                .hello = {.version_min = 1, .version_max = 1}};
    const ps_message_t welcome = {.kind = PS_KIND_WELCOME,
                                  .welcome = {.version = 1}};
    const uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    void *zmq = NULL;
    void *peer = NULL;
    ps_socket_t *port = NULL;
    ps_message_t got;
    ps_payload_t *payload = NULL;
    uint64_t conn = 0;
    int n_before = 0;

    CHECK(open_watched(ends, 100, &port));
    n_before = n_descriptors();
    zmq = zmq_ctx_new();
    peer = zmq_socket(zmq, ZMQ_DEALER);
    CHECK(zmq_connect(peer, ps_socket_endpoint(port, 0)) == 0);
    CHECK(send_raw(peer, &hello, 0) && send_raw(peer, &beginning, 4));
    CHECK(zmq_close(peer) == 0 && zmq_ctx_term(zmq) == 0);
    while (n_descriptors() > n_before && ps_now_ms() < until_ms) {
        (void)poll(NULL, 0, 1);
    }
    CHECK(n_descriptors() == n_before);
    CHECK_OK(receive(port, &conn, &got, &payload, ends->err), ends->err);
    CHECK(got.kind == PS_KIND_HELLO);
    CHECK_OK(send_now(port, conn, &welcome, NULL, ends->err), ends->err);
    CHECK_ERROR(receive(port, &conn, &got, &payload, ends->err), PSD_NO_SESSION,
                "say HELLO first", ends->err);
    CHECK(ps_socket_n_unfinished(port) == 0);
    ps_socket_close(&port);
    return true;
}

int
main(void)
{
    ends_t ends = {.err = psd_error_new()};
    bool ok = ps_context_new(2, &ends.context, ends.err) == PSD_OK &&
              pieces_are_of_the_welcome(&ends) &&
              who_is_gone_is_not_welcome(&ends);

    ps_context_destroy(&ends.context);
    psd_error_destroy(&ends.err);
    return ok ? 0 : 1;
}
