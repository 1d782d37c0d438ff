/* SPDX-License-Identifier: Apache-2.0 */
/* lane_kit - a port with lanes and its links in one process, for plain programs
 */
#ifndef PS_TESTS_LANE_KIT_H
#define PS_TESTS_LANE_KIT_H

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "support/check.h"
#include "support/temp_dir.h"
#include "transport/sockets/socket.h"

#define PATIENCE_MS 60000

typedef struct lane_kit {
    temp_dir_t dir;
    char endpoint[PATH_MAX + 16];
    ps_socket_args_t args;
    ps_socket_t *port;
    ps_socket_t *link;
    psd_error_t *err;
} lane_kit_t;

static inline ps_socket_args_t lane_kit_args(uint32_t spin_us)
{
    return (ps_socket_args_t){.high_water = 100,
                              .frame_bytes = 1 << 20,
                              .assembly_bytes = UINT64_C(64) << 20,
                              .chunk_bytes = 4096,
                              .linger_ms = 1000,
                              .lane = {.most = 4, .arena_bytes = 1 << 20, .spin_us = spin_us}};
}

static inline bool lane_kit_open(lane_kit_t *self, const ps_socket_args_t *args)
{
    const char *endpoints[] = {"tcp://127.0.0.1:*", self->endpoint};

    self->err = psd_error_new();
    self->args = *args;
    CHECK(temp_dir_make(&self->dir));
    (void)snprintf(self->endpoint, sizeof self->endpoint, "lane://%s/s.lane", self->dir.path);
    CHECK_OK(ps_socket_bind(endpoints, 2, args, &self->port, self->err), self->err);
    return true;
}

static inline void lane_kit_done(lane_kit_t *self)
{
    ps_socket_drop(&self->link);
    ps_socket_close(&self->port);
    temp_dir_drop(&self->dir);
    psd_error_destroy(&self->err);
}

/* Connects one more link while the port takes it in: both are one thread, so
 * another one has to look after the port. */
typedef struct lane_kit_taker {
    pthread_t thread;
    ps_socket_t *port;
    atomic_bool stop;
} lane_kit_taker_t;

static inline void *lane_kit_take_in(void *arg)
{
    lane_kit_taker_t *self = arg;

    while (!atomic_load(&self->stop)) {
        bool ready = false;

        if (ps_socket_wait(&self->port, 1, 10, &ready, NULL) != PSD_OK) {
            break;
        }
    }
    return NULL;
}

static inline psd_status_t lane_kit_connect(lane_kit_t *self, ps_socket_t **ret_link)
{
    lane_kit_taker_t taker = {.port = self->port};
    psd_status_t rc = PSD_OK;

    if (pthread_create(&taker.thread, NULL, lane_kit_take_in, &taker) != 0) {
        return psd_error_set(self->err, PSD_NOMEM, "no thread");
    }
    rc = ps_socket_connect(self->endpoint, &self->args, ret_link, self->err);
    atomic_store(&taker.stop, true);
    if (pthread_join(taker.thread, NULL) != 0) {
        return psd_error_set(self->err, PSD_IO, "no end of a thread");
    }
    return rc;
}

/* Something that was received. */
typedef struct arrived {
    uint64_t conn;
    ps_message_t message;
    ps_payload_t *payload;
    ps_room_t room;
} arrived_t;

/* Waits for the next whole message; both ends are flushed. */
static inline psd_status_t lane_kit_receive(ps_socket_t *socket, ps_socket_t *other, arrived_t *ret,
                                            psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    ret->payload = NULL;
    while (ps_now_ms() < until_ms) {
        bool ready = false;
        bool got = false;
        psd_status_t rc = PSD_OK;

        ps_socket_flush(other);
        rc = ps_socket_wait(&socket, 1, 10, &ready, err);
        if (rc == PSD_OK) {
            rc = ps_socket_receive(socket, &got, &ret->conn, &ret->message, &ret->payload,
                                   &ret->room, err);
        }
        if (rc != PSD_OK || got) {
            return rc;
        }
    }
    return psd_error_set(err, PSD_DEADLINE, "nothing came");
}

/* A push of n rows of one f32 each, with n keys. */
static inline ps_message_t lane_kit_push(uint64_t request, uint64_t n)
{
    ps_message_t message = {.kind = PS_KIND_PUSH};
    const ps_slice_t slice = {
        .rows = PS_ROWS_LIST, .type = PS_TYPE_F32, .n_rows = n, .n_cols = 1, .n_values = n};

    message.push = (ps_msg_push_t){.request = request, .table = 7, .seq = 1};
    ps_message_set_slice(&message, &slice);
    return message;
}

/* A pull of a range of n rows of one f32 each. */
static inline ps_message_t lane_kit_pull(uint64_t request, uint64_t n)
{
    ps_message_t message = {.kind = PS_KIND_PULL};
    const ps_slice_t slice = {.rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = n, .n_cols = 1};

    message.pull = (ps_msg_pull_t){.request = request, .table = 7};
    ps_message_set_slice(&message, &slice);
    return message;
}

/* Its answer. */
static inline ps_message_t lane_kit_values(const ps_message_t *pull)
{
    ps_message_t message = {.kind = PS_KIND_VALUES};
    ps_slice_t slice;

    ps_message_slice(pull, &slice);
    slice.n_values = slice.n_rows * slice.n_cols;
    message.values = (ps_msg_values_t){.request = pull->pull.request, .n_done = slice.n_rows};
    ps_message_set_slice(&message, &slice);
    return message;
}

/* Bytes that look like finite f32s and differ from place to place. */
static inline uint8_t lane_kit_byte(size_t i)
{
    return i % 4 == 3 ? 0x3f : (uint8_t)(i * 31 + i / 256);
}

static inline void lane_kit_fill(uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bytes[i] = lane_kit_byte(i);
    }
}

static inline bool lane_kit_same(const ps_payload_t *payload, size_t size)
{
    size_t at = 0;

    for (size_t i = 0; payload != NULL && i < payload->n_spans; i++) {
        for (size_t j = 0; j < payload->spans[i].size; j++) {
            CHECK(payload->spans[i].data[j] == lane_kit_byte(at));
            at++;
        }
    }
    return at == size;
}
#endif
