/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets between two ends in one process. ZeroMQ's threads release payloads,
 * so this is a plain program that also runs under TSan. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "support/check.h"
#include "transport/sockets/socket.h"

#define PATIENCE_MS 60000
#define CHUNK 4096

typedef struct ends {
    uint32_t spin_us;
    ps_context_t *context;
    ps_socket_t *port;
    ps_socket_t *link;
    psd_error_t *err;
} ends_t;

static ps_socket_args_t args_of(ps_context_t *context, uint32_t spin_us)
{
    return (ps_socket_args_t){.context = context,
                              .high_water = 100,
                              .frame_bytes = 1 << 20,
                              .assembly_bytes = 1 << 20,
                              .chunk_bytes = CHUNK,
                              .linger_ms = 1000,
                              .lane = {.spin_us = spin_us}};
}

static bool open_ends(ends_t *self)
{
    const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    ps_socket_args_t args;

    self->err = psd_error_new();
    CHECK_OK(ps_context_new(2, &self->context, self->err), self->err);
    args = args_of(self->context, self->spin_us);
    CHECK_OK(ps_socket_bind(endpoints, 1, &args, &self->port, self->err), self->err);
    CHECK_OK(ps_socket_connect(ps_socket_endpoint(self->port, 0), &args, &self->link, self->err),
             self->err);
    return true;
}

static void close_ends(ends_t *self)
{
    ps_socket_close(&self->link);
    ps_socket_close(&self->port);
    ps_context_destroy(&self->context);
    psd_error_destroy(&self->err);
}

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

static psd_status_t receive_text(ps_socket_t *socket, uint64_t *conn, ps_buffer_t *text,
                                 psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (ps_now_ms() < until_ms) {
        bool ready = false;
        bool got = false;
        psd_status_t rc = ps_socket_wait(&socket, 1, until_ms - ps_now_ms(), &ready, err);

        if (rc == PSD_OK && ready) {
            rc = ps_socket_receive_text(socket, &got, conn, text, err);
        }
        if (rc != PSD_OK || got) {
            return rc;
        }
    }
    return psd_error_set(err, PSD_DEADLINE, "nothing came");
}

/* A push of n rows of one f32 each. */
static ps_message_t push_of(uint64_t n)
{
    ps_message_t message = {.kind = PS_KIND_PUSH, .push = {.request = n + 1, .table = 7, .seq = 1}};
    const ps_slice_t slice = {
        .rows = PS_ROWS_LIST, .type = PS_TYPE_F32, .n_rows = n, .n_cols = 1, .n_values = n};

    ps_message_set_slice(&message, &slice);
    return message;
}

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 31 + i / 256);
}

/* Waits until nobody but the test holds it. */
static bool is_released(ps_payload_t *payload)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (atomic_load(&payload->n_holders) > 1 && ps_now_ms() < until_ms) {
        bool nothing = false;
        psd_status_t rc = ps_socket_wait(NULL, 0, 1, &nothing, NULL);

        CHECK(rc == PSD_OK);
    }
    return atomic_load(&payload->n_holders) == 1;
}

static bool same_values(const ps_payload_t *payload, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; i < payload->n_spans; i++) {
        for (size_t j = 0; j < payload->spans[i].size; j++) {
            CHECK(payload->spans[i].data[j] == byte_at(at));
            at++;
        }
    }
    return at == size;
}

/* There and back: inline, in frames, in chunks. */
static bool body_of(ends_t *ends, uint64_t n)
{
    uint8_t *keys = calloc(n, 8);
    uint8_t *values = malloc(n * 4);
    ps_message_t sent = push_of(n);
    ps_message_t got;
    ps_payload_t *payload = NULL;
    ps_payload_t *arrived = NULL;
    uint64_t conn = 0;
    ps_slice_t slice;

    CHECK(keys != NULL && values != NULL);
    for (size_t i = 0; i < n * 4; i++) {
        values[i] = byte_at(i);
    }
    payload = ps_payload_new((ps_bytes_t){keys, n * 8}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){values, n * 4}, NULL, NULL);
    CHECK_OK(send_now(ends->link, 0, &sent, payload, ends->err), ends->err);
    CHECK_OK(receive(ends->port, &conn, &got, &arrived, ends->err), ends->err);
    ps_message_slice(&got, &slice);
    CHECK(got.kind == PS_KIND_PUSH && got.push.request == n + 1);
    CHECK(slice.n_rows == n && arrived->keys.size == n * 8);
    CHECK(same_values(arrived, n * 4));
    CHECK(is_released(payload));

    /* The answer is made of the very bytes that came. */
    sent = (ps_message_t){.kind = PS_KIND_VALUES, .values = {.request = n + 1, .n_done = n}};
    slice.rows = PS_ROWS_LIST;
    ps_message_set_slice(&sent, &slice);
    CHECK_OK(send_now(ends->port, conn, &sent, arrived, ends->err), ends->err);
    ps_payload_destroy(&arrived);
    CHECK_OK(receive(ends->link, &conn, &got, &arrived, ends->err), ends->err);
    CHECK(conn == 0 && got.kind == PS_KIND_VALUES && same_values(arrived, n * 4));
    ps_payload_destroy(&arrived);
    ps_payload_destroy(&payload);
    free(keys);
    free(values);
    return true;
}

static bool bodies_of_every_size_arrive(ends_t *ends)
{
    const uint64_t sizes[] = {1, 85, 86, 1000, 1024, 1025, 5000, 50000};
    const ps_message_t bye = {.kind = PS_KIND_BYE, .bye = {.session = 3}};
    ps_message_t got;
    ps_payload_t *payload = NULL;
    uint64_t conn = 0;

    CHECK_OK(send_now(ends->link, 0, &bye, NULL, ends->err), ends->err);
    CHECK_OK(receive(ends->port, &conn, &got, &payload, ends->err), ends->err);
    CHECK(got.kind == PS_KIND_BYE && got.bye.session == 3 && payload == NULL);
    CHECK(conn > 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK(body_of(ends, sizes[i]));
    }
    ps_socket_set_chunk(ends->link, 64);
    return body_of(ends, 1000);
}

/* A large message behind n small ones, which have the seqs 1 to n. */
static bool body_of_behind(ends_t *ends, uint64_t n)
{
    const uint64_t n_rows = 1000;
    uint8_t *bytes = calloc(n_rows, 12);
    ps_message_t push = push_of(n_rows);
    ps_message_t got = {.kind = PS_KIND_BYE};
    ps_payload_t *payload = NULL;
    ps_payload_t *arrived = NULL;
    uint64_t conn = 0;

    CHECK(bytes != NULL);
    payload = ps_payload_new((ps_bytes_t){bytes, n_rows * 8}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){bytes, n_rows * 4}, NULL, NULL);
    push.push.seq = n + 1;
    CHECK_OK(ps_socket_send(ends->link, 0, &push, payload, ends->err), ends->err);
    for (uint64_t i = 1; i <= n + 1; i++) {
        CHECK_OK(receive(ends->port, &conn, &got, &arrived, ends->err), ends->err);
        CHECK(got.kind == PS_KIND_PUSH && got.push.seq == i);
        CHECK(ps_payload_size(arrived) == (i <= n ? 12 : n_rows * 12));
        ps_payload_destroy(&arrived);
    }
    CHECK(is_released(payload));
    ps_payload_destroy(&payload);
    free(bytes);
    return true;
}

/* Small messages wait for the flush, then come one by one, in order, and what
 * is large comes behind those that were sent before it. */
static bool small_messages_come_in_batches(ends_t *ends)
{
    const uint64_t n = 3000; /* more than one batch holds */
    uint8_t bytes[100] = {0};
    ps_payload_t *small = ps_payload_new((ps_bytes_t){bytes, 8}, (ps_bytes_t){NULL, 0},
                                         (ps_bytes_t){bytes, 4}, NULL, NULL);
    bool ready = false;

    CHECK(small != NULL);
    for (uint64_t i = 1; i <= n; i++) {
        ps_message_t push = push_of(1);

        push.push.seq = i;
        CHECK_OK(ps_socket_send(ends->link, 0, &push, small, ends->err), ends->err);
    }
    CHECK(is_released(small)); /* small bodies are copied */
    ps_payload_destroy(&small);
    CHECK(body_of_behind(ends, n));
    CHECK_OK(ps_socket_wait(&ends->port, 1, 0, &ready, ends->err), ends->err);
    CHECK(!ready && ps_socket_n_lost(ends->link) == 0);
    return true;
}

static bool text_goes_both_ways(ends_t *ends)
{
    ps_buffer_t text = {.size = 0};
    uint64_t conn = 0;
    ps_bytes_t hello = {(const uint8_t *)"{\"op\":1}", 8};
    bool nothing = true;

    CHECK_OK(ps_socket_send_text(ends->link, 0, hello, ends->err), ends->err);
    CHECK_OK(receive_text(ends->port, &conn, &text, ends->err), ends->err);
    CHECK(text.size == 8 && memcmp(text.data, hello.data, 8) == 0);
    CHECK_OK(ps_socket_send_text(ends->port, conn, hello, ends->err), ends->err);
    CHECK_OK(receive_text(ends->link, &conn, &text, ends->err), ends->err);
    CHECK(text.size == 8 && conn == 0);
    CHECK_OK(ps_socket_receive_text(ends->link, &nothing, &conn, &text, ends->err), ends->err);
    CHECK(!nothing);
    CHECK_ERROR(ps_socket_send_text(ends->link, 0, (ps_bytes_t){NULL, 0}, ends->err), PSD_PROTO,
                "allowed: 1..16777216", ends->err);
    CHECK_ERROR(ps_socket_send_text(ends->port, 99, hello, ends->err), PSD_BUSY, "peer is gone",
                ends->err);
    ps_buffer_done(&text);
    return true;
}

/* A socket that had nothing is not asked again before it sleeps. A send may
 * have taken in the sign of what came behind that. */
static bool what_comes_before_a_send_is_heard(ends_t *ends)
{
    const ps_bytes_t hello = {(const uint8_t *)"{\"op\":1}", 8};
    ps_buffer_t text = {.size = 0};
    uint64_t conn = 0;
    uint64_t from = 0;

    CHECK_OK(ps_socket_send_text(ends->link, 0, hello, ends->err), ends->err);
    CHECK_OK(receive_text(ends->port, &conn, &text, ends->err), ends->err);
    for (int i = 0; i < 300; i++) {
        bool got = true;

        CHECK_OK(ps_socket_receive_text(ends->link, &got, &from, &text, ends->err), ends->err);
        CHECK(!got);
        CHECK_OK(ps_socket_send_text(ends->port, conn, hello, ends->err), ends->err);
        CHECK_OK(ps_socket_send_text(ends->link, 0, hello, ends->err), ends->err);
        CHECK_OK(receive_text(ends->port, &from, &text, ends->err), ends->err);
        CHECK(from == conn);
        CHECK_OK(receive_text(ends->link, &from, &text, ends->err), ends->err);
    }
    ps_buffer_done(&text);
    return true;
}

/* What no link of ours would send: with ZeroMQ alone. */
static bool bad_peers_are_named(ends_t *ends)
{
    void *zmq = zmq_ctx_new();
    void *peer = zmq_socket(zmq, ZMQ_DEALER);
    void *named = zmq_socket(zmq, ZMQ_DEALER);
    uint8_t header[PS_HEADER_MAX];
    const ps_message_t chunk = {.kind = PS_KIND_CHUNK, .chunk = {.request = 5, .offset = 64}};
    const ps_message_t bye = {.kind = PS_KIND_BYE, .bye = {.session = 3}};
    ps_message_t got;
    ps_payload_t *payload = NULL;
    ps_buffer_t text = {.size = 0};
    uint64_t conn = 0;
    size_t size = 0;

    CHECK(zmq_connect(peer, ps_socket_endpoint(ends->port, 0)) == 0);
    CHECK(zmq_send(peer, "rubbish", 7, 0) == 7);
    CHECK_ERROR(receive(ends->port, &conn, &got, &payload, ends->err), PSD_PROTO,
                "header is 7 bytes", ends->err);
    CHECK(conn > 0 && payload == NULL);

    for (int i = 0; i < 7; i++) {
        CHECK(zmq_send(peer, "x", 1, i < 6 ? ZMQ_SNDMORE : 0) == 1);
    }
    CHECK_ERROR(receive(ends->port, &conn, &got, &payload, ends->err), PSD_PROTO,
                "7 frames; allowed: 1..4", ends->err);

    size = ps_message_encode(&chunk, header);
    CHECK(zmq_send(peer, header, size, ZMQ_SNDMORE) >= 0);
    CHECK(zmq_send(peer, header, 3, 0) == 3);
    CHECK_ERROR(receive(ends->port, &conn, &got, &payload, ends->err), PSD_PROTO,
                "CHUNK values are 3 bytes", ends->err);

    CHECK(zmq_send(peer, "{}", 2, ZMQ_SNDMORE) == 2);
    CHECK(zmq_send(peer, "{}", 2, 0) == 2);
    CHECK_ERROR(receive_text(ends->port, &conn, &text, ends->err), PSD_PROTO,
                "2 frames; allowed: 1", ends->err);

    size = ps_message_encode(&bye, header);
    CHECK(zmq_setsockopt(named, ZMQ_ROUTING_ID, "worker-1", 8) == 0);
    CHECK(zmq_connect(named, ps_socket_endpoint(ends->port, 0)) == 0);
    CHECK(ps_socket_n_refused(ends->port) == 0);
    CHECK(zmq_send(named, header, size, 0) == (int)size);
    while (ps_socket_n_refused(ends->port) == 0) {
        bool got_one = false;
        ps_room_t room = {NULL, 0};
        psd_status_t rc =
            ps_socket_receive(ends->port, &got_one, &conn, &got, &payload, &room, ends->err);

        CHECK(rc == PSD_OK && !got_one);
    }
    CHECK(zmq_send(peer, header, size, 0) == (int)size);
    CHECK_OK(receive(ends->port, &conn, &got, &payload, ends->err), ends->err);
    CHECK(got.kind == PS_KIND_BYE);
    ps_socket_forget(ends->port, conn);
    ps_buffer_done(&text);
    CHECK(zmq_close(peer) == 0 && zmq_close(named) == 0);
    CHECK(zmq_ctx_term(zmq) == 0);
    return true;
}

static bool endpoints_are_checked(ends_t *ends)
{
    ps_socket_args_t args = args_of(NULL, ends->spin_us);
    ps_socket_t *socket = NULL;
    const char *const words[] = {"localhost:1"};
    const char *const taken[] = {ps_socket_endpoint(ends->port, 0)};

    CHECK(strncmp(taken[0], "tcp://127.0.0.1:", 16) == 0);
    CHECK(strcmp(taken[0] + 16, "*") != 0 && strcmp(taken[0] + 16, "0") != 0);
    CHECK_ERROR(ps_socket_bind(words, 1, &args, &socket, ends->err), PSD_INVALID, "localhost:1",
                ends->err);
    CHECK_ERROR(ps_socket_connect("inproc://x", &args, &socket, ends->err), PSD_INVALID,
                "1 .. 65535, ipc://PATH or lane://PATH", ends->err);
    CHECK_ERROR(ps_socket_connect("tcp://a:65536", &args, &socket, ends->err), PSD_INVALID,
                "a PORT of 1 .. 65535", ends->err);
    CHECK_ERROR(ps_socket_connect("tcp://a:0", &args, &socket, ends->err), PSD_INVALID,
                "a PORT of 1 .. 65535", ends->err);
    CHECK_ERROR(ps_socket_connect("tcp://nohost", &args, &socket, ends->err), PSD_INVALID,
                "tcp://nohost", ends->err);
    CHECK_ERROR(ps_socket_bind(taken, 1, &args, &socket, ends->err), PSD_IO,
                "Address already in use", ends->err);
    CHECK(socket == NULL);
    CHECK_OK(ps_socket_bind_more(ends->port, "tcp://127.0.0.1:0", ends->err), ends->err);
    CHECK(strcmp(ps_socket_endpoint(ends->port, 1), ps_socket_endpoint(ends->port, 0)) != 0);
    CHECK_ERROR(ps_context_new(0, &args.context, ends->err), PSD_INVALID, "1..16", ends->err);
    return true;
}

/* To nobody: the queue fills, and closing does not wait when it is dropped. */
static bool full_queue_is_busy(ends_t *ends)
{
    ps_socket_args_t args = args_of(NULL, ends->spin_us);
    ps_socket_t *link = NULL;
    ps_message_t push = push_of(1000);
    ps_payload_t *payload = NULL;
    static uint8_t bytes[12000];
    psd_status_t rc = PSD_OK;
    uint64_t start_ms = ps_now_ms();
    int n = 0;

    args.linger_ms = 60000;
    payload = ps_payload_new((ps_bytes_t){bytes, 8000}, (ps_bytes_t){NULL, 0},
                             (ps_bytes_t){bytes + 8000, 4000}, NULL, NULL);
    CHECK_OK(ps_socket_connect("tcp://127.0.0.1:1", &args, &link, ends->err), ends->err);
    while (rc == PSD_OK && n < 10000) {
        rc = ps_socket_send(link, 0, &push, payload, ends->err);
        n++;
    }
    CHECK(rc == PSD_BUSY && n > 50);
    psd_error_clear(ends->err);
    CHECK(atomic_load(&payload->n_holders) > 1);
    ps_socket_drop(&link);
    CHECK(link == NULL && ps_now_ms() - start_ms < 10000);
    CHECK(is_released(payload));
    ps_payload_destroy(&payload);
    return true;
}

static bool a_stopped_context_ends_waits(ends_t *ends)
{
    bool ready = true;
    bool both[2] = {true, true};
    ps_socket_t *sockets[] = {ends->port, ends->link};
    uint64_t start_ms = ps_now_ms();

    CHECK_OK(ps_socket_wait(sockets, 2, 20, both, ends->err), ends->err);
    CHECK(!both[0] && !both[1] && ps_now_ms() - start_ms >= 19);
    ps_context_stop(ends->context);
    CHECK_ERROR(ps_socket_wait(&ends->port, 1, UINT64_MAX, &ready, ends->err), PSD_IO, "wait",
                ends->err);
    CHECK_ERROR(ps_socket_wait(&ends->port, 1, UINT64_MAX, &ready, ends->err), PSD_IO, "wait",
                ends->err); /* and all that follow */
    return true;
}

static bool all_with_spins_of(uint32_t spin_us)
{
    ends_t ends = {.spin_us = spin_us};
    bool ok = open_ends(&ends) && bodies_of_every_size_arrive(&ends) &&
              small_messages_come_in_batches(&ends) && text_goes_both_ways(&ends) &&
              what_comes_before_a_send_is_heard(&ends) && bad_peers_are_named(&ends) &&
              endpoints_are_checked(&ends) && full_queue_is_busy(&ends) &&
              a_stopped_context_ends_waits(&ends);

    close_ends(&ends);
    return ok;
}

int main(void)
{
    return all_with_spins_of(0) && all_with_spins_of(PS_LANE_SPIN_US) ? 0 : 1;
}
