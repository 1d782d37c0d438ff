/* SPDX-License-Identifier: Apache-2.0 */
/* One shape for all requests, and the list of those that wait. */
#include "protocol/partition/request.h"

#include <assert.h>

#include "base/alloc.h"

#define READ_ADDRESS(from)                 \
    do {                                   \
        ret->request = (from).request;     \
        ret->table = (from).table;         \
        ret->partition = (from).partition; \
        ret->epoch = (from).epoch;         \
    } while (0)

#define READ_WORKER(from)                    \
    do {                                     \
        ret->job = (from).job;               \
        ret->worker = (from).worker;         \
        ret->member = (from).member;         \
        ret->joins = (from).joins;           \
        ret->clock = (from).clock;           \
        ret->timeout_ms = (from).timeout_ms; \
    } while (0)

#define READ_OP(from)                     \
    do {                                  \
        ret->op.op = (from).op;           \
        ret->op.other = (from).other;     \
        ret->op.operand = (from).operand; \
    } while (0)

void ps_request_read(const ps_message_t *message, ps_request_t *ret)
{
    *ret =
        (ps_request_t){.kind = message->kind, .wants_times = (message->flags & PS_FLAG_TIMES) != 0};
    if (message->kind == PS_KIND_PUSH) {
        READ_ADDRESS(message->push);
        READ_WORKER(message->push);
        ret->seq = message->push.seq;
        ret->ack = message->push.ack;
        ret->pull = message->push.pull != 0;
        ret->marks = (message->flags & PS_FLAG_MARK) != 0;
        READ_OP(message->push);
        ps_message_slice(message, &ret->slice);
    } else if (message->kind == PS_KIND_PULL) {
        READ_ADDRESS(message->pull);
        READ_WORKER(message->pull);
        ret->after = message->pull.after;
        ret->since = message->pull.since;
        READ_OP(message->pull);
        ps_message_slice(message, &ret->slice);
    } else if (message->kind == PS_KIND_MARK) {
        READ_ADDRESS(message->mark);
        READ_WORKER(message->mark);
        ret->seq = message->mark.seq;
    } else if (message->kind == PS_KIND_BUNDLE) {
        READ_ADDRESS(message->bundle);
        READ_WORKER(message->bundle);
        ret->marks = true;
        ret->n_from = message->bundle.n_from;
        ret->n_spans = message->bundle.n_spans;
    } else {
        READ_ADDRESS(message->probe);
        ret->seq = message->probe.seq;
        ret->ack = message->probe.ack;
        ret->of_mark = message->probe.mark != 0;
    }
}

/* Appends it to the list of its session. false: no memory. */
static bool append_own(ps_held_list_t *self, ps_held_t *held)
{
    ps_held_t *first = ps_held_of(self, held->is.session);

    if (first == NULL) {
        held->previous_own = held;
        return ps_map_put(&self->own, held->is.session, held);
    }
    held->previous_own = first->previous_own;
    first->previous_own->next_own = held;
    first->previous_own = held;
    return true;
}

static void remove_own(ps_held_list_t *self, ps_held_t *held)
{
    ps_held_t *first = ps_held_of(self, held->is.session);

    if (held->next_own != NULL) {
        held->next_own->previous_own = held->previous_own;
    } else if (held != first) {
        first->previous_own = held->previous_own;
    }
    if (held != first) {
        held->previous_own->next_own = held->next_own;
    } else if (held->next_own == NULL) {
        (void)ps_map_remove(&self->own, held->is.session);
    } else {
        /* the key is there: replacing its value takes no memory */
        bool put = ps_map_put(&self->own, held->is.session, held->next_own);

        assert(put);
        (void)put;
    }
}

ps_held_t *ps_held_append(ps_held_list_t *self, const ps_request_t *request, uint64_t now_ms)
{
    ps_held_t *held = ps_alloc(1, sizeof *held);

    if (held == NULL) {
        return NULL;
    }
    held->is = *request;
    if (request->payload != NULL) {
        held->is.payload = ps_payload_own(request->payload);
    }
    if ((held->is.payload == NULL && request->payload != NULL) || !append_own(self, held)) {
        ps_payload_destroy(&held->is.payload);
        ps_free(held);
        return NULL;
    }
    held->since_ms = now_ms;
    held->tell_ms = request->timeout_ms == 0 ? UINT64_MAX : now_ms + request->timeout_ms;
    held->previous = self->last;
    if (self->last == NULL) {
        self->first = held;
    } else {
        self->last->next = held;
    }
    self->last = held;
    return held;
}

ps_held_t *ps_held_of(const ps_held_list_t *self, uint64_t session)
{
    return ps_map_get(&self->own, session);
}

void ps_held_remove(ps_held_list_t *self, ps_held_t **held_p)
{
    ps_held_t *held = *held_p;

    remove_own(self, held);
    if (held->previous == NULL) {
        self->first = held->next;
    } else {
        held->previous->next = held->next;
    }
    if (held->next == NULL) {
        self->last = held->previous;
    } else {
        held->next->previous = held->previous;
    }
    ps_payload_destroy(&held->is.payload);
    ps_free(held);
    *held_p = NULL;
}

void ps_held_clear(ps_held_list_t *self)
{
    while (self->first != NULL) {
        ps_held_t *held = self->first;

        ps_held_remove(self, &held);
    }
    ps_map_done(&self->own);
}

ps_slow_t ps_request_slow(const ps_request_t *self, uint64_t now_ms)
{
    return (ps_slow_t){.session = self->session,
                       .request = self->request,
                       .table = self->table,
                       .partition = self->partition,
                       .kind = self->kind,
                       .job = self->job,
                       .worker = self->worker,
                       .clock = self->clock,
                       .rows = self->slice.n_rows,
                       .bytes = ps_payload_size(self->payload),
                       .at_ms = now_ms,
                       .held_for = PS_HELD_NOT};
}
