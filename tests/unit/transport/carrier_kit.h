/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that try carriers share: messages with a number, from which
 * who gets one knows what is in it. */
#ifndef PS_TEST_CARRIER_KIT_H
#define PS_TEST_CARRIER_KIT_H

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "transport/sockets/socket.h"

#define PATIENCE_MS 60000
#define CHUNK (UINT32_C(1) << 20)
#define MIB ((size_t)1 << 20)
#define POOL_BYTES (64 * MIB + 4096)

/* All values are taken from it: finite numbers that differ from place to
 * place. */
static uint8_t *pool;

static bool make_pool(void)
{
    pool = malloc(POOL_BYTES);
    for (size_t i = 0; pool != NULL && i < POOL_BYTES; i++) {
        pool[i] = i % 4 == 3 ? 0x3f : (uint8_t)(i * 31 + i / 256);
    }
    return pool != NULL;
}

/* What was received. */
typedef struct got {
    uint64_t conn;
    ps_message_t message;
    ps_payload_t *payload;
} got_t;

/* Message `number` with n_values values, or none: a push of a range of rows,
 * from a port an answer. Who gets it knows from the number what is in it. */
static psd_status_t send_numbered(ps_socket_t *socket, uint64_t conn, uint64_t number,
                                  uint64_t n_values, psd_error_t *err)
{
    const ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                              .type = PS_TYPE_F32,
                              .n_rows = n_values,
                              .n_cols = 1,
                              .n_values = n_values};
    ps_message_t message = {.kind = PS_KIND_BYE, .bye = {.session = number}};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;

    if (n_values > 0) {
        const ps_bytes_t values = {pool + number % 1024 * 4, n_values * 4};

        message =
            (ps_message_t){.kind = PS_KIND_PUSH, .push = {.request = number, .table = 7, .seq = 1}};
        if (conn != 0) {
            message = (ps_message_t){.kind = PS_KIND_VALUES,
                                     .values = {.request = number, .n_done = n_values}};
        }
        ps_message_set_slice(&message, &slice);
        payload = ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, values, NULL, NULL);
        if (payload == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory");
        }
    }
    return ps_socket_send(socket, conn, &message, payload, err);
}

static bool is_numbered(const got_t *got, uint64_t number, uint64_t n_values)
{
    const uint8_t *values = pool + number % 1024 * 4;
    size_t at = 0;

    if (n_values == 0) {
        CHECK(got->message.kind == PS_KIND_BYE && got->message.bye.session == number);
        CHECK(got->payload == NULL);
        return true;
    }
    CHECK(got->message.kind == (got->conn != 0 ? PS_KIND_PUSH : PS_KIND_VALUES));
    CHECK((got->conn != 0 ? got->message.push.request : got->message.values.request) == number);
    CHECK(got->payload != NULL && got->payload->keys.size == 0);
    for (size_t i = 0; i < got->payload->n_spans; i++) {
        const ps_bytes_t span = got->payload->spans[i];

        CHECK(span.size <= n_values * 4 - at && memcmp(span.data, values + at, span.size) == 0);
        at += span.size;
    }
    return at == n_values * 4;
}

/* The next whole message that is there. */
static psd_status_t take(ps_socket_t *socket, bool *ret_got, got_t *ret, psd_error_t *err)
{
    ps_room_t room = {NULL, 0};

    ret->payload = NULL;
    return ps_socket_receive(socket, ret_got, &ret->conn, &ret->message, &ret->payload, &room, err);
}

/* The next one, if there is one within wait_ms. */
static psd_status_t look(ps_socket_t *socket, uint64_t wait_ms, bool *ret_got, got_t *ret,
                         psd_error_t *err)
{
    bool ready = false;
    psd_status_t rc = ps_socket_wait(&socket, 1, wait_ms, &ready, err);

    *ret_got = false;
    return rc != PSD_OK ? rc : take(socket, ret_got, ret, err);
}

/* Waits for it; the sender is flushed, as its owner does at every turn. */
static psd_status_t receive(ps_socket_t *socket, ps_socket_t *sender, got_t *ret, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;

    while (ps_now_ms() < until_ms) {
        bool got = false;
        psd_status_t rc = PSD_OK;

        if (sender != NULL) {
            ps_socket_flush(sender);
        }
        rc = look(socket, sender == NULL ? PATIENCE_MS : 5, &got, ret, err);
        if (rc != PSD_OK || got) {
            return rc;
        }
    }
    return psd_error_set(err, PSD_DEADLINE, "nothing came");
}

static bool receive_numbered(ps_socket_t *socket, ps_socket_t *sender, uint64_t number,
                             uint64_t n_values, uint64_t *ret_conn, psd_error_t *err)
{
    got_t got;
    bool ok = false;

    CHECK_OK(receive(socket, sender, &got, err), err);
    ok = is_numbered(&got, number, n_values);
    ps_payload_destroy(&got.payload);
    if (ret_conn != NULL) {
        *ret_conn = got.conn;
    }
    CHECK(ok);
    return true;
}
#endif
