/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's memory that a payload points at (a loan). The caller gets it
 * back when nothing can read it any more:
 * - the session, which may resend it;
 * - a lane, which may have deferred it;
 * - ZeroMQ, whose queues hold frames that are this memory;
 * - a lane again, through a second payload over the same values whose list is
 *   named.
 * When all holders of a payload are known, nothing else reads it. The session
 * and lanes read where the payload points, on this thread: for them it is
 * enough to point the payload elsewhere. The others must release it.
 */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "client/requests/ticket.h"

#define PATIENCE_MS 20 /* for ZeroMQ to release it by itself, as it mostly does */

/* What a payload that was made independent owns. */
typedef struct estate {
    void *owner; /* before; frames in sockets may lie in it */
    void (*release)(void *owner);
    void *block; /* the copy */
} estate_t;

static void release_estate(void *owner)
{
    estate_t *self = owner;

    if (self->release != NULL) {
        self->release(self->owner);
    }
    ps_free(self->block);
    ps_free(self);
}

static void move_part(ps_bytes_t *part, uint8_t **to)
{
    if (part->size > 0) {
        memcpy(*to, part->data, part->size);
        part->data = *to;
        *to += part->size;
    }
}

/* Only this thread reads the parts of a payload; ZeroMQ's threads only count
 * its holders, and the last one frees it. */
static bool make_independent(ps_payload_t *payload)
{
    estate_t *estate = ps_alloc(1, sizeof *estate);
    uint8_t *to = NULL;

    if (estate == NULL) {
        return false;
    }
    estate->block = ps_alloc_raw(ps_payload_size(payload), 1);
    if (estate->block == NULL) {
        ps_free(estate);
        return false;
    }
    to = estate->block;
    move_part(&payload->keys, &to);
    move_part(&payload->index, &to);
    for (size_t i = 0; i < payload->n_spans; i++) {
        move_part(&payload->spans[i], &to);
    }
    estate->owner = payload->owner;
    estate->release = payload->release;
    payload->owner = estate;
    payload->release = release_estate;
    return true;
}

static bool is_held(const ps_payload_t *payload, unsigned known)
{
    return atomic_load(&payload->n_holders) > known;
}

static void rest_ms(long ms)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = ms * 1000000};

    (void)nanosleep(&time, NULL);
}

/* Waits until only `known` holders are left. Drops messages in sockets whose
 * connection makes no progress; the session resends them. */
static void wait_for_holders(psd_client_t *client, const ps_payload_t *payload, unsigned known)
{
    uint64_t patient_ms = ps_now_ms() + PATIENCE_MS;

    while (is_held(payload, known) && ps_now_ms() < patient_ms) {
        rest_ms(1);
    }
    if (!is_held(payload, known)) {
        return;
    }
    ps_links_reset(client);
    while (is_held(payload, known)) {
        rest_ms(1); /* closed sockets release everything at once */
    }
}

void ps_loan_call_in(psd_client_t *client, ps_slice_request_t *request)
{
    ps_payload_t *payload = request->payload;
    unsigned known = request->op != 0 ? 2 : 1; /* the session's, and ours */

    if (!request->borrows) {
        return;
    }
    if (make_independent(payload)) {
        if (request->n_fixed_sends > 0) {
            wait_for_holders(client, payload, known);
        }
    } else {
        ps_client_break(client, PSD_NOMEM, "no memory to keep a push without a ticket");
        wait_for_holders(client, payload, known);
        payload->keys.size = payload->index.size = 0;
        payload->n_spans = 0;
    }
    request->borrows = false;
}

void ps_loan_end(psd_client_t *client, ps_slice_request_t *request)
{
    if (request->was_answered && request->n_sends <= 1) {
        return; /* the peer has read all of it, and it was sent once */
    }
    if (!is_held(request->payload, 1) ||
        (request->n_fixed_sends == 0 && make_independent(request->payload))) {
        return;
    }
    wait_for_holders(client, request->payload, 1);
}
