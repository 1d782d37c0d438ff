/* SPDX-License-Identifier: Apache-2.0 */
/* A pair of libzmq sockets over tcp, between two processes. */
#include "cli/machine/bench_limit.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <zmq.h>

#include "base/alloc.h"
#include "cli/machine/bench_stats.h"

#define SMALL_BYTES 64
#define AREA_BYTES ((size_t)32 << 20) /* more than a core's own caches */
#define QUEUE_SMALL 10000
#define QUEUE_BIG 8
#define WAIT_MS 5000
#define TRIPS_MAX 100000

/* State that both processes share. */
typedef struct pair {
    _Atomic uint32_t ready;
    char endpoint[64];
    size_t bytes; /* of a message */
} pair_t;

typedef struct side {
    void *context; /* owned */
    void *socket;  /* owned */
} side_t;

static void side_done(side_t *self)
{
    if (self->socket != NULL) {
        (void)zmq_close(self->socket);
    }
    if (self->context != NULL) {
        (void)zmq_ctx_term(self->context);
    }
}

static bool side_init(side_t *self, int type, size_t bytes)
{
    int queue = bytes > SMALL_BYTES ? QUEUE_BIG : QUEUE_SMALL;
    int wait_ms = WAIT_MS;
    int linger = 0;

    self->context = zmq_ctx_new();
    self->socket = self->context == NULL ? NULL : zmq_socket(self->context, type);
    return self->socket != NULL &&
           zmq_setsockopt(self->socket, ZMQ_SNDHWM, &queue, sizeof queue) == 0 &&
           zmq_setsockopt(self->socket, ZMQ_RCVHWM, &queue, sizeof queue) == 0 &&
           zmq_setsockopt(self->socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms) == 0 &&
           zmq_setsockopt(self->socket, ZMQ_SNDTIMEO, &wait_ms, sizeof wait_ms) == 0 &&
           zmq_setsockopt(self->socket, ZMQ_LINGER, &linger, sizeof linger) == 0;
}

static bool side_connect(side_t *self, pair_t *pair)
{
    uint32_t n_looks = 0;

    while (atomic_load(&pair->ready) == 0) {
        ps_limit_pause(&n_looks);
    }
    return zmq_connect(self->socket, pair->endpoint) == 0;
}

static bool side_bind(side_t *self, pair_t *pair)
{
    size_t size = sizeof pair->endpoint;

    if (zmq_bind(self->socket, "tcp://127.0.0.1:*") != 0 ||
        zmq_getsockopt(self->socket, ZMQ_LAST_ENDPOINT, pair->endpoint, &size) != 0) {
        return false;
    }
    atomic_store(&pair->ready, 1);
    return true;
}

/* The area outlives every message. */
static void keep_area(void *data, void *hint)
{
    (void)data;
    (void)hint;
}

static void send_all(void *arg)
{
    pair_t *pair = arg;
    PSD_AUTO(side_done) side_t side = {NULL, NULL};
    char *area = ps_alloc(AREA_BYTES, 1); /* libzmq's threads read it to the
                                             end of this process */
    size_t at = 0;
    int sent = area != NULL && side_init(&side, ZMQ_PUSH, pair->bytes) && side_connect(&side, pair)
                   ? 0
                   : -1;

    if (area != NULL) {
        memset(area, 1, AREA_BYTES);
    }
    while (sent >= 0) {
        if (pair->bytes <= SMALL_BYTES) {
            sent = zmq_send(side.socket, area, pair->bytes, 0);
        } else {
            zmq_msg_t message;

            (void)zmq_msg_init_data(&message, area + at, pair->bytes, keep_area, NULL);
            sent = zmq_msg_send(&message, side.socket, 0);
            at = (at + pair->bytes) % AREA_BYTES;
        }
    }
}

/* Receives for the time; messages a second after the warm-up. */
static bool take_all(void *socket, size_t bytes, uint32_t duration_ms, double *ret)
{
    uint64_t step = bytes <= SMALL_BYTES ? 1024 : 4;
    uint64_t start = 0;
    uint64_t spent = 0;
    uint64_t n = 0;
    zmq_msg_t message;

    (void)zmq_msg_init(&message);
    while (spent < (uint64_t)duration_ms * 1000000U) {
        if (zmq_msg_recv(&message, socket, 0) < 0) {
            return false;
        }
        n++;
        if (n == step * 8) {
            start = ps_bench_now_ns();
        } else if (n > step * 8 && n % step == 0) {
            spent = ps_bench_now_ns() - start;
        }
    }
    (void)zmq_msg_close(&message);
    *ret = (double)(n - step * 8) / (double)spent * 1e9;
    return true;
}

bool ps_limit_zmq(size_t bytes, uint32_t duration_ms, double *ret)
{
    pair_t *pair = ps_limit_share(sizeof *pair);
    PSD_AUTO(side_done) side_t side = {NULL, NULL};

    if (pair == NULL) {
        return false;
    }
    pair->bytes = bytes;
    return ps_limit_fork(send_all, pair) && side_init(&side, ZMQ_PULL, bytes) &&
           side_bind(&side, pair) && take_all(side.socket, bytes, duration_ms, ret);
}

static void answer_all(void *arg)
{
    pair_t *pair = arg;
    PSD_AUTO(side_done) side_t side = {NULL, NULL};
    char text[SMALL_BYTES];
    bool ok = side_init(&side, ZMQ_PAIR, SMALL_BYTES) && side_connect(&side, pair);

    while (ok) {
        ok = zmq_recv(side.socket, text, sizeof text, 0) >= 0 &&
             zmq_send(side.socket, text, sizeof text, 0) >= 0;
    }
}

bool ps_limit_zmq_trip(uint32_t duration_ms, double *ret)
{
    pair_t *pair = ps_limit_share(sizeof *pair);
    PSD_AUTO(side_done) side_t side = {NULL, NULL};
    PSD_AUTO(ps_free_at) double *times = ps_alloc(TRIPS_MAX, sizeof *times);
    char text[SMALL_BYTES] = "";
    uint64_t first = 0;
    uint64_t now = 0;
    size_t n = 0;

    if (pair == NULL || times == NULL || !ps_limit_fork(answer_all, pair) ||
        !side_init(&side, ZMQ_PAIR, SMALL_BYTES) || !side_bind(&side, pair)) {
        return false;
    }
    first = ps_bench_now_ns();
    while (n < TRIPS_MAX && (n < 10 || now - first < (uint64_t)duration_ms * 1000000U)) {
        uint64_t start = ps_bench_now_ns();

        if (zmq_send(side.socket, text, sizeof text, 0) < 0 ||
            zmq_recv(side.socket, text, sizeof text, 0) < 0) {
            return false;
        }
        now = ps_bench_now_ns();
        times[n++] = (double)(now - start) / 1e9;
    }
    *ret = ps_bench_median(times, n);
    return true;
}
