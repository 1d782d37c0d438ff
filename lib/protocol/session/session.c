/* SPDX-License-Identifier: Apache-2.0 */
/* The client side: what its owner calls, and operations from their start to
 * their end. What arrives is in session_answer.c, what time does in
 * session_link.c. */
#include "protocol/session/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/session/session_private.h"

#define SPARE_MAX 1024     /* operations kept to be used again */
#define EFFECTS_OF_START 5 /* OPEN and HELLO, twice, the request itself */

psd_status_t ps_session_new(const ps_session_args_t *args, ps_session_t **ret_session,
                            psd_error_t *err)
{
    ps_session_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        TAILQ_INIT(&self->unreported);
        TAILQ_INIT(&self->spare);
        self->reason = ps_alloc(1, PS_REASON_SIZE);
    }
    if (self == NULL || self->reason == NULL ||
        !ps_grow(&self->identities, &self->identities_capacity, 1, sizeof *self->identities)) {
        ps_session_destroy(&self);
        return psd_error_set(err, PSD_NOMEM, "no memory for a session");
    }
    self->args = *args;
    self->identities[self->n_identities++] = (ps_identity_t){args->client, args->session};
    if (self->args.resend_ms == 0) {
        self->args.resend_ms = 1;
    } else if (self->args.resend_ms > PS_RESEND_MAX_MS) {
        self->args.resend_ms = PS_RESEND_MAX_MS;
    }
    self->wake_ms = UINT64_MAX;
    *ret_session = self;
    return PSD_OK;
}

void ps_session_destroy(ps_session_t **self_p)
{
    ps_session_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    ps_ops_drop(self);
    ps_map_done(&self->table_of);
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_free(self->tables[i]->parts);
        ps_free(self->tables[i]);
    }
    for (size_t i = 0; i < self->n_places; i++) {
        ps_free(self->places[i]);
    }
    ps_node_names_done(&self->names);
    ps_free(self->reason);
    ps_free(self->identities);
    ps_free(self->tables);
    ps_free(self->places);
    ps_free(self->links);
    ps_free(self);
}

/* NULL: no memory. */
static ps_session_table_t *make_table(ps_session_t *self, uint32_t id, uint32_t n_parts)
{
    ps_session_table_t *table = ps_alloc(1, sizeof *table);

    if (table == NULL) {
        return NULL;
    }
    table->id = id;
    table->n_parts = n_parts;
    table->parts = ps_alloc(n_parts, sizeof *table->parts);
    if (table->parts == NULL ||
        !ps_grow(&self->tables, &self->tables_capacity, self->n_tables + 1,
                 sizeof(ps_session_table_t *)) ||
        !ps_map_put(&self->table_of, id, table)) {
        ps_free(table->parts);
        ps_free(table);
        return NULL;
    }
    for (uint32_t i = 0; i < n_parts; i++) {
        table->parts[i].table = id;
        table->parts[i].partition = i;
        TAILQ_INIT(&table->parts[i].ops);
    }
    self->tables[self->n_tables++] = table;
    return table;
}

psd_status_t ps_session_learn(ps_session_t *self, ps_session_table_t *table,
                              const ps_route_t *routes, uint32_t n_routes, psd_error_t *err)
{
    if (n_routes != table->n_parts) {
        return psd_error_set(err, PSD_PROTO, "%" PRIu32 " routes for %" PRIu32 " partitions",
                             n_routes, table->n_parts);
    }
    for (uint32_t i = 0; i < n_routes; i++) {
        ps_part_t *part = &table->parts[i];
        ps_link_t *place = NULL;
        psd_status_t rc;

        if (routes[i].partition != i) {
            return psd_error_set(err, PSD_PROTO, "route %" PRIu32 " is of partition %" PRIu32, i,
                                 routes[i].partition);
        }
        if (part->place != NULL && routes[i].epoch <= part->epoch) {
            continue;
        }
        rc = ps_link_find(self, &routes[i], part->identity, &place, err);
        if (rc != PSD_OK) {
            return rc;
        }
        part->place = place;
        part->epoch = routes[i].epoch;
        if (part->link != NULL && part->link != place) {
            self->wake_ms = 0; /* the next tick carries them along */
        }
    }
    table->known = true;
    return PSD_OK;
}

psd_status_t ps_session_routes(ps_session_t *self, uint32_t table, const ps_route_t *routes,
                               uint32_t n_routes, psd_error_t *err)
{
    ps_session_table_t *known = ps_map_get(&self->table_of, table);

    if (known == NULL) {
        known = make_table(self, table, n_routes);
    }
    if (known == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %" PRIu32 " routes", n_routes);
    }
    return ps_session_learn(self, known, routes, n_routes, err);
}

void ps_session_forget(ps_session_t *self, uint32_t table, psd_status_t status, ps_outbox_t *outbox)
{
    ps_session_table_t *known = ps_map_get(&self->table_of, table);
    char text[PS_TEXT_MAX + 1];

    if (known == NULL) {
        return;
    }
    known->known = false;
    (void)snprintf(text, sizeof text, "table %" PRIu32 ": %s", table, psd_status_text(status));
    for (uint32_t i = 0; i < known->n_parts; i++) {
        ps_op_t *op = NULL;

        while ((op = TAILQ_FIRST(&known->parts[i].ops)) != NULL) {
            known->torn = known->torn || ps_op_is_numbered(op);
            ps_op_end_locally(self, op, status, text, outbox);
        }
    }
    self->wake_ms = 0; /* their credits are free for others */
}

void ps_session_break(ps_session_t *self, psd_status_t status, const char *text,
                      ps_outbox_t *outbox)
{
    size_t length = strnlen(text, PS_TEXT_MAX);

    self->broken = status;
    self->wake_ms = UINT64_MAX;
    memmove(self->broken_text, text, length);
    self->broken_text[length] = '\0';
    for (size_t i = 0; i < self->n_places; i++) {
        ps_part_t *part = NULL;

        while ((part = TAILQ_FIRST(&self->places[i]->active)) != NULL) {
            ps_op_end_locally(self, TAILQ_FIRST(&part->ops), status, self->broken_text, outbox);
        }
    }
}

/* ---- operations: memory and numbers ---- */

ps_op_t *ps_op_new(ps_session_t *self)
{
    ps_op_t *op = TAILQ_FIRST(&self->spare);

    if (op == NULL) {
        return ps_alloc(1, sizeof *op);
    }
    TAILQ_REMOVE(&self->spare, op, in_list);
    self->n_spare--;
    *op = (ps_op_t){.part = NULL};
    return op;
}

void ps_op_destroy(ps_session_t *self, ps_op_t **op_p)
{
    ps_op_t *op = *op_p;

    if (op == NULL) {
        return;
    }
    *op_p = NULL;
    ps_payload_destroy(&op->ask.payload);
    ps_free(op->reason);
    if (self->n_spare >= SPARE_MAX) {
        ps_free(op);
        return;
    }
    TAILQ_INSERT_HEAD(&self->spare, op, in_list);
    self->n_spare++;
}

static void drain(ps_session_t *self)
{
    while (!TAILQ_EMPTY(&self->spare)) {
        ps_op_t *op = TAILQ_FIRST(&self->spare);

        TAILQ_REMOVE(&self->spare, op, in_list);
        ps_free(op);
    }
    self->n_spare = 0;
}

ps_op_t *ps_op_find(const ps_session_t *self, uint64_t id)
{
    ps_op_t *op = self->recent[id % PS_RECENT];

    return op != NULL && op->id == id ? op : ps_map_get(&self->op_of, id);
}

bool ps_op_name(ps_session_t *self, ps_op_t *op, uint64_t id)
{
    ps_op_t **place = &self->recent[id % PS_RECENT];

    if (*place != NULL) {
        if (!ps_map_put(&self->op_of, id, op)) {
            return false;
        }
    } else {
        *place = op;
    }
    op->id = id;
    return true;
}

static void unname(ps_session_t *self, const ps_op_t *op)
{
    ps_op_t **place = &self->recent[op->id % PS_RECENT];

    if (*place == op) {
        *place = NULL;
    } else {
        (void)ps_map_remove(&self->op_of, op->id);
    }
}

void ps_ops_drop(ps_session_t *self)
{
    size_t at = 0;
    uint64_t id = 0;
    void *op = NULL;

    for (size_t i = 0; i < PS_RECENT; i++) {
        ps_op_destroy(self, &self->recent[i]);
    }
    while (ps_map_next(&self->op_of, &at, &id, &op)) {
        ps_op_t *dropped = op;

        ps_op_destroy(self, &dropped);
    }
    ps_map_done(&self->op_of);
    drain(self);
}

/* ---- operations: start ---- */

/* NULL: not now; why_not says why. */
static ps_part_t *find_part(const ps_session_t *self, uint32_t table, uint32_t partition)
{
    const ps_session_table_t *known = ps_map_get(&self->table_of, table);

    if (self->broken != PSD_OK || known == NULL || !known->known || known->torn ||
        partition >= known->n_parts) {
        return NULL;
    }
    return &known->parts[partition];
}

static psd_status_t why_not(const ps_session_t *self, uint32_t table, uint32_t partition,
                            psd_error_t *err)
{
    if (self->broken != PSD_OK) {
        return psd_error_set(err, PSD_CLOSED, "client is broken: %s", self->broken_text);
    }
    return psd_error_set(err, PSD_NO_TABLE, "no route to partition %" PRIu32 " of table %" PRIu32,
                         partition, table);
}

/* Counts it, and gives it its seq. */
static void number_op(ps_session_t *self, ps_op_t *op)
{
    if (ps_op_is_numbered(op)) {
        self->n_numbered++;
        op->part->seq++;
    } else {
        self->n_pulls++;
        if (op->ask.kind == PS_KIND_PULL && op->ask.timeout_ms > 0) {
            ps_session_wake(self, op->start_ms + op->ask.timeout_ms + self->args.resend_ms);
        }
    }
    op->seq = op->part->seq;
}

psd_status_t ps_session_start(ps_session_t *self, uint64_t now_ms, const ps_op_start_t *start,
                              ps_outbox_t *outbox, uint64_t *ret_op, psd_error_t *err)
{
    ps_part_t *part = find_part(self, start->table, start->partition);
    ps_op_t *op = NULL;

    if (part == NULL) {
        return why_not(self, start->table, start->partition, err);
    }
    op = ps_op_new(self); /* everything that needs memory comes first */
    if (op == NULL || !ps_outbox_reserve(outbox, EFFECTS_OF_START) ||
        !ps_op_name(self, op, self->last_op + 1)) {
        ps_op_destroy(self, &op);
        return psd_error_set(err, PSD_NOMEM, "no memory for an operation");
    }
    op->ask = *start;
    self->last_op++;
    op->part = part;
    op->start_ms = now_ms;
    op->heard_ms = now_ms;
    op->sent_epoch = part->epoch; /* a bundle is of it, sent or not */
    op->bytes = ps_payload_size(start->payload);
    if (start->payload != NULL) {
        (void)ps_payload_keep(start->payload);
    }
    number_op(self, op);
    ps_op_enqueue(op);
    if (part->pause_ms > now_ms) {
        ps_session_wake(self, part->pause_ms);
    }
    *ret_op = op->id;
    ps_link_open(self, now_ms, part->link, outbox);
    ps_link_flush(self, now_ms, part->link, outbox);
    return PSD_OK;
}

/* ---- operations: end ---- */

/* Drops an operation whose end was said. */
static void forget(ps_session_t *self, ps_op_t *op)
{
    unname(self, op);
    if (ps_op_is_numbered(op)) {
        self->n_numbered--;
    } else {
        self->n_pulls--;
    }
    ps_op_destroy(self, &op);
}

void ps_session_cancel(ps_session_t *self, uint64_t number)
{
    ps_op_t *op = ps_op_find(self, number);

    if (op == NULL || op->ask.kind != PS_KIND_BUNDLE || op->status != PSD_OK) {
        return;
    }
    ps_op_detach(op);
    forget(self, op);
    self->wake_ms = 0; /* its credits are free for others */
}

/* Most answers are a fraction of the largest one, which has a text. */
static void copy_answer(const ps_message_t *from, ps_message_t *to)
{
    if (from->kind == PS_KIND_ACK) {
        to->kind = from->kind;
        to->flags = from->flags;
        to->ack = from->ack;
        to->times = from->times;
    } else if (from->kind == PS_KIND_VALUES) {
        to->kind = from->kind;
        to->flags = from->flags;
        to->values = from->values;
        to->times = from->times;
    } else {
        *to = *from;
    }
}

void ps_op_end(ps_session_t *self, ps_op_t *op, const ps_message_t *answer, ps_payload_t *payload,
               ps_outbox_t *outbox)
{
    ps_effect_t *effect = ps_outbox_add_raw(outbox, PS_EFFECT_DONE);

    if (effect == NULL) {
        return;
    }
    effect->to = op->id;
    effect->owner = op->ask.owner;
    copy_answer(answer, &effect->message);
    if (payload != NULL) {
        effect->payload = ps_payload_keep(payload);
    }
    ps_op_detach(op);
    forget(self, op);
}

/* Says how an operation, which is in no partition any more, ended. */
static bool report(ps_session_t *self, ps_op_t *op, const char *text, ps_outbox_t *outbox)
{
    ps_effect_t *effect = ps_outbox_add(outbox, PS_EFFECT_DONE);
    ps_msg_refused_t *refused = NULL;
    size_t length = strnlen(text, PS_TEXT_MAX);

    if (effect == NULL) {
        return false;
    }
    effect->to = op->id;
    effect->owner = op->ask.owner;
    effect->message.kind = PS_KIND_REFUSED;
    refused = &effect->message.refused;
    refused->request = op->id;
    refused->table = op->part->table;
    refused->partition = op->part->partition;
    refused->epoch = op->part->epoch;
    refused->seq = ps_op_is_numbered(op) ? op->seq : 0;
    refused->status = (uint16_t)op->status;
    memcpy(refused->text, text, length);
    refused->text[length] = '\0';
    forget(self, op);
    return true;
}

void ps_op_end_locally(ps_session_t *self, ps_op_t *op, psd_status_t status, const char *text,
                       ps_outbox_t *outbox)
{
    ps_op_detach(op);
    op->status = status;
    if (!report(self, op, text, outbox)) {
        TAILQ_INSERT_TAIL(&self->unreported, op, in_list);
        self->wake_ms = 0;
    }
}

void ps_session_report(ps_session_t *self, ps_outbox_t *outbox)
{
    ps_op_t *op = NULL;

    while ((op = TAILQ_FIRST(&self->unreported)) != NULL) {
        TAILQ_REMOVE(&self->unreported, op, in_list);
        if (!report(self, op, psd_status_text(op->status), outbox)) {
            TAILQ_INSERT_HEAD(&self->unreported, op, in_list);
            self->wake_ms = 0;
            return;
        }
    }
}
