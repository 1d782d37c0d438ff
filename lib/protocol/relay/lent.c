/* SPDX-License-Identifier: Apache-2.0 */
/* Each partition's seqs, in order, until the server has answered. */
#include "protocol/relay/lent.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/map.h"

typedef enum state { LENT = 1, DOUBTFUL = 2, BACK = 3, DIRECT = 4 } state_t;

typedef struct op {
    struct op *next; /* the next higher seq of the place */
    uint64_t seq;
    ps_payload_t *payload; /* held; may be NULL */
    state_t state;
    uint64_t heard_ms;
    bool asks; /* ASK is to be done */
} op_t;

struct ps_lent {
    ps_map_t places; /* table and partition -> the op with the lowest seq, owned */
    uint64_t patience_ms;
    size_t limit;
    size_t n;
};

static uint64_t number_of(ps_lent_place_t place)
{
    return (uint64_t)place.table << 32 | place.partition;
}

static ps_lent_place_t place_of(uint64_t number)
{
    return (ps_lent_place_t){.table = (uint32_t)(number >> 32), .partition = (uint32_t)number};
}

psd_status_t ps_lent_new(uint64_t patience_ms, size_t limit, ps_lent_t **ret_lent, psd_error_t *err)
{
    ps_lent_t *self = NULL;

    if (patience_ms == 0 || limit == 0) {
        return psd_error_set(err, PSD_INVALID,
                             "patience %" PRIu64 " ms, limit %zu; allowed: from 1", patience_ms,
                             limit);
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for what is lent");
    }
    self->patience_ms = patience_ms;
    self->limit = limit;
    *ret_lent = self;
    return PSD_OK;
}

static void op_end(op_t *op)
{
    ps_payload_destroy(&op->payload);
    ps_free(op);
}

void ps_lent_destroy(ps_lent_t **self_p)
{
    ps_lent_t *self = self_p == NULL ? NULL : *self_p;
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    if (self == NULL) {
        return;
    }
    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (op_t *op = value; op != NULL;) {
            op_t *next = op->next;

            op_end(op);
            op = next;
        }
    }
    ps_map_done(&self->places);
    ps_free(self);
    *self_p = NULL;
}

ps_lent_way_t ps_lent_way(const ps_lent_t *self, ps_lent_place_t place)
{
    bool is_lent = false;
    bool is_direct = false;

    for (const op_t *op = ps_map_get(&self->places, number_of(place)); op != NULL; op = op->next) {
        is_lent = is_lent || op->state == LENT || op->state == DOUBTFUL;
        is_direct = is_direct || op->state != LENT;
    }
    if (!is_direct) {
        return is_lent ? PS_LENT_LEND : PS_LENT_FREE;
    }
    return is_lent ? PS_LENT_WAIT : PS_LENT_DIRECT;
}

psd_status_t ps_lent_add(ps_lent_t *self, uint64_t now_ms, ps_lent_place_t place, uint64_t seq,
                         ps_payload_t *payload, psd_error_t *err)
{
    op_t *last = ps_map_get(&self->places, number_of(place));
    ps_lent_way_t way = ps_lent_way(self, place);
    op_t *op = NULL;

    while (last != NULL && last->next != NULL) {
        last = last->next;
    }
    if (way != PS_LENT_FREE && way != PS_LENT_LEND) {
        return psd_error_set(err, PSD_INVALID,
                             "seq %" PRIu64 " is lent past one that goes directly", seq);
    }
    if (seq == 0 || (last != NULL && seq <= last->seq)) {
        return psd_error_set(err, PSD_INVALID, "seq %" PRIu64 " is lent after seq %" PRIu64, seq,
                             last == NULL ? 0 : last->seq);
    }
    if (self->n >= self->limit) {
        return psd_error_set(err, PSD_LIMIT, "%zu seqs are lent, as many as may be", self->n);
    }
    op = ps_alloc(1, sizeof *op);
    if (op == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for what is lent");
    }
    *op = (op_t){.seq = seq, .state = LENT, .heard_ms = now_ms};
    op->payload = payload == NULL ? NULL : ps_payload_own(payload);
    if ((payload != NULL && op->payload == NULL) ||
        (last == NULL && !ps_map_put(&self->places, number_of(place), op))) {
        op_end(op);
        return psd_error_set(err, PSD_NOMEM, "no memory for what is lent");
    }
    if (last != NULL) {
        last->next = op;
    }
    self->n++;
    return PSD_OK;
}

static op_t *find(const ps_lent_t *self, ps_lent_place_t place, uint64_t seq)
{
    op_t *op = ps_map_get(&self->places, number_of(place));

    while (op != NULL && op->seq != seq) {
        op = op->next;
    }
    return op;
}

void ps_lent_heard(ps_lent_t *self, uint64_t now_ms, ps_lent_place_t place, uint64_t seq)
{
    op_t *op = find(self, place, seq);

    if (op != NULL && op->state == LENT) {
        op->heard_ms = now_ms;
    }
}

void ps_lent_back(ps_lent_t *self, ps_lent_place_t place, uint64_t seq)
{
    op_t *op = find(self, place, seq);

    if (op != NULL && (op->state == LENT || op->state == DOUBTFUL)) {
        op->state = BACK;
        op->asks = false;
    }
}

static void doubt(op_t *op, uint64_t now_ms)
{
    op->state = DOUBTFUL;
    op->heard_ms = now_ms;
    op->asks = true;
}

void ps_lent_gone(ps_lent_t *self, uint64_t now_ms)
{
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (op_t *op = value; op != NULL; op = op->next) {
            if (op->state == LENT) {
                doubt(op, now_ms);
            }
        }
    }
}

/* The op becomes the first of its place, or the place ends: both take no memory. */
static void set_first(ps_lent_t *self, ps_lent_place_t place, op_t *op)
{
    if (op == NULL) {
        (void)ps_map_remove(&self->places, number_of(place));
    } else if (!ps_map_put(&self->places, number_of(place), op)) {
        return; /* never: the key is there */
    }
}

void ps_lent_end(ps_lent_t *self, ps_lent_place_t place, uint64_t seq)
{
    op_t *op = ps_map_get(&self->places, number_of(place));
    op_t *before = NULL;

    while (op != NULL && op->seq != seq) {
        before = op;
        op = op->next;
    }
    if (op == NULL) {
        return;
    }
    if (before != NULL) {
        before->next = op->next;
    } else {
        set_first(self, place, op->next);
    }
    op_end(op);
    self->n--;
}

static uint64_t op_due(const ps_lent_t *self, const op_t *op)
{
    bool is_waited_for = op->state == LENT || op->state == DOUBTFUL;

    if (!is_waited_for || op->heard_ms > UINT64_MAX - self->patience_ms) {
        return UINT64_MAX;
    }
    return op->heard_ms + self->patience_ms;
}

void ps_lent_tick(ps_lent_t *self, uint64_t now_ms)
{
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (op_t *op = value; op != NULL; op = op->next) {
            if (now_ms >= op_due(self, op)) {
                doubt(op, now_ms);
            }
        }
    }
}

uint64_t ps_lent_due(const ps_lent_t *self)
{
    uint64_t due = UINT64_MAX;
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (const op_t *op = value; op != NULL; op = op->next) {
            uint64_t other = op_due(self, op);

            due = other < due ? other : due;
        }
    }
    return due;
}

/* What can be done of a place now: asking, and sending what nothing is in the way of. */
static bool next_of(op_t *first, uint64_t number, ps_lent_deed_t *ret_deed)
{
    bool is_free = true;

    for (op_t *op = first; op != NULL; op = op->next) {
        bool sends = op->state == BACK && is_free;

        if (op->asks || sends) {
            *ret_deed = (ps_lent_deed_t){.kind = sends ? PS_LENT_SEND : PS_LENT_ASK,
                                         .place = place_of(number),
                                         .seq = op->seq,
                                         .payload = op->payload};
            op->asks = false;
            op->state = sends ? DIRECT : op->state;
            return true;
        }
        is_free = is_free && op->state == DIRECT;
    }
    return false;
}

bool ps_lent_next(ps_lent_t *self, ps_lent_deed_t *ret_deed)
{
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        if (next_of(value, number, ret_deed)) {
            return true;
        }
    }
    return false;
}

size_t ps_lent_count(const ps_lent_t *self)
{
    return self->n;
}
