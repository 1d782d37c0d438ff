/* SPDX-License-Identifier: Apache-2.0 */
/* What ends waits for a port, asleep and looking: a socket of somebody else
 * beside it, as a shard's commands, what wakes it, and time. */
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "base/alloc.h"
#include "support/check.h"
#include "transport/sockets/socket.h"
#include "transport/threads/spin.h"

#define PATIENCE_MS 60000
#define SOON_MS (PS_SPIN_MAX_US / 1000 / 2) /* no wait is as short that spins to its end */
#define TRIES 1000
#define ROUNDS 1000

typedef struct echo {
    void *pair;
    bool is_good;
} echo_t;

/* Sends back what comes. */
static void *send_back(void *of)
{
    echo_t *self = of;
    int number = 0;

    for (int i = 0; i < ROUNDS; i++) {
        self->is_good = zmq_recv(self->pair, &number, sizeof number, 0) == sizeof number &&
                        zmq_send(self->pair, &number, sizeof number, 0) == sizeof number &&
                        number == i;
        if (!self->is_good) {
            break;
        }
    }
    return NULL;
}

/* Waits for each of them; the port has nothing. */
static bool numbers_come_back(ps_socket_t *port, void *pair, psd_error_t *err)
{
    for (int i = 0; i < ROUNDS; i++) {
        bool ready = true;
        bool beside = false;
        int number = -1;

        CHECK(zmq_send(pair, &i, sizeof i, 0) == sizeof i);
        CHECK_OK(ps_socket_wait_beside(&port, 1, pair, PATIENCE_MS, &ready, &beside, err), err);
        CHECK(!ready && beside);
        CHECK(zmq_recv(pair, &number, sizeof number, ZMQ_DONTWAIT) == sizeof number);
        CHECK(number == i);
    }
    return true;
}

static psd_status_t open_port(uint32_t spin_us, ps_socket_t **ret_port, psd_error_t *err)
{
    const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    const ps_socket_args_t args = {.high_water = 100,
                                   .frame_bytes = 1 << 20,
                                   .assembly_bytes = 1 << 20,
                                   .chunk_bytes = 4096,
                                   .lane = {.spin_us = spin_us}};

    return ps_socket_bind(endpoints, 1, &args, ret_port, err);
}

/* What wakes the port from sleep ends its spin, too. The fastest of many first
 * waits, for a busy machine takes its time: others may run for longer than a spin. */
static bool what_wakes_ends_spins(void)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t least_ms = UINT64_MAX;
    int fd = eventfd(1, EFD_CLOEXEC);

    CHECK(fd >= 0);
    for (int i = 0; i < TRIES && least_ms >= SOON_MS; i++) {
        PSD_AUTO(ps_socket_close) ps_socket_t *port = NULL;
        bool ready = true;
        uint64_t ms = 0;

        CHECK_OK(open_port(PS_SPIN_MAX_US, &port, err), err);
        ps_socket_wake_by(port, fd);
        ms = ps_now_ms();
        CHECK_OK(ps_socket_wait(&port, 1, PATIENCE_MS, &ready, err), err);
        ms = ps_now_ms() - ms;
        least_ms = ms < least_ms ? ms : least_ms;
        CHECK(!ready);
    }
    CHECK(least_ms < SOON_MS);
    return close(fd) == 0;
}

/* A spin does not make a wait longer than it may be. */
static bool a_spin_ends_in_time(void)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t least_ms = UINT64_MAX;

    for (int i = 0; i < TRIES && least_ms >= SOON_MS; i++) {
        PSD_AUTO(ps_socket_close) ps_socket_t *port = NULL;
        bool ready = true;
        uint64_t ms = 0;

        CHECK_OK(open_port(PS_SPIN_MAX_US, &port, err), err);
        ms = ps_now_ms();
        CHECK_OK(ps_socket_wait(&port, 1, 2, &ready, err), err);
        ms = ps_now_ms() - ms;
        least_ms = ms < least_ms ? ms : least_ms;
        CHECK(!ready && ms >= 1);
    }
    CHECK(least_ms < SOON_MS);
    return true;
}

static bool a_socket_beside_ends_waits(uint32_t spin_us)
{
    const int patience_ms = PATIENCE_MS;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_socket_close) ps_socket_t *port = NULL;
    void *context = zmq_ctx_new();
    void *ours = zmq_socket(context, ZMQ_PAIR);
    echo_t echo = {.pair = zmq_socket(context, ZMQ_PAIR)};
    pthread_t thread;
    bool is_good = false;

    CHECK_OK(open_port(spin_us, &port, err), err);
    CHECK(zmq_setsockopt(echo.pair, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms) == 0);
    CHECK(zmq_bind(ours, "inproc://beside") == 0);
    CHECK(zmq_connect(echo.pair, "inproc://beside") == 0);
    CHECK(pthread_create(&thread, NULL, send_back, &echo) == 0);
    is_good = numbers_come_back(port, ours, err);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(is_good && echo.is_good);
    CHECK(zmq_close(ours) == 0 && zmq_close(echo.pair) == 0);
    CHECK(zmq_ctx_term(context) == 0);
    return true;
}

/* A wait for no socket is one for what is beside it, or a sleep. */
static bool no_sockets_are_waited_for(void)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    int fd = eventfd(1, EFD_CLOEXEC);
    ps_poll_item_t items[] = {{.fd = -1}, {.fd = fd}};
    uint64_t begin_ms = ps_now_ms();

    CHECK(fd >= 0);
    CHECK_OK(ps_socket_wait(NULL, 0, 2, NULL, err), err);
    CHECK(ps_now_ms() - begin_ms >= 1);
    CHECK_OK(ps_socket_wait_with(NULL, 0, items, 2, PATIENCE_MS, NULL, err), err);
    CHECK(!items[0].is_ready && items[1].is_ready);
    CHECK_OK(ps_socket_wait_with(NULL, 0, items, 1, 0, NULL, err), err);
    CHECK(!items[0].is_ready);
    return close(fd) == 0;
}

int main(void)
{
    return no_sockets_are_waited_for() && a_socket_beside_ends_waits(0) &&
                   a_socket_beside_ends_waits(PS_LANE_SPIN_US) && what_wakes_ends_spins() &&
                   a_spin_ends_in_time()
               ? 0
               : 1;
}
