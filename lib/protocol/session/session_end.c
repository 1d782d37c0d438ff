/* SPDX-License-Identifier: Apache-2.0 */
/* How operations end: by an answer, or by the session itself. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/session/session_private.h"

#define SPARE_MAX 1024 /* operations kept to be used again */

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

/* Drops an operation whose end was said. */
static void forget(ps_session_t *self, ps_op_t *op)
{
    unname(self, op);
    if (op->ask.kind == PS_KIND_PULL) {
        self->n_pulls--;
    } else {
        self->n_numbered--;
    }
    ps_op_destroy(self, &op);
}

/* Most answers are a fraction of the largest one, which has a text. */
static void copy_answer(const ps_message_t *from, ps_message_t *to)
{
    if (from->kind == PS_KIND_ACK) {
        to->kind = from->kind;
        to->flags = from->flags;
        to->ack = from->ack;
    } else if (from->kind == PS_KIND_VALUES) {
        to->kind = from->kind;
        to->flags = from->flags;
        to->values = from->values;
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
    refused->seq = op->ask.kind == PS_KIND_PULL ? 0 : op->seq;
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
