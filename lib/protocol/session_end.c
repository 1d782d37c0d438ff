/* SPDX-License-Identifier: Apache-2.0 */
/* How operations end: by an answer, or by the session itself. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/session_private.h"

void
ps_op_destroy(ps_op_t **op_p)
{
    if (*op_p != NULL) {
        ps_payload_destroy(&(*op_p)->payload);
        ps_free((*op_p)->reason);
        ps_free(*op_p);
        *op_p = NULL;
    }
}

/* Drops an operation whose end was said. */
static void
forget(ps_session_t *self, ps_op_t *op)
{
    (void)ps_map_remove(&self->op_of, op->id);
    if (op->kind == PS_KIND_PULL) {
        self->n_pulls--;
    } else {
        self->n_numbered--;
    }
    ps_op_destroy(&op);
}

void
ps_op_end(ps_session_t *self,
          ps_op_t *op,
          const ps_message_t *answer,
          ps_payload_t *payload,
          ps_outbox_t *outbox)
{
    ps_effect_t *effect = ps_outbox_add(outbox, PS_EFFECT_DONE);

    if (effect == NULL) {
        return;
    }
    effect->to = op->id;
    effect->message = *answer;
    if (payload != NULL) {
        effect->payload = ps_payload_keep(payload);
    }
    ps_op_detach(op);
    forget(self, op);
}

/* Says how an operation, which is in no partition any more, ended. */
static bool
report(ps_session_t *self, ps_op_t *op, const char *text, ps_outbox_t *outbox)
{
    ps_effect_t *effect = ps_outbox_add(outbox, PS_EFFECT_DONE);
    ps_msg_refused_t *refused = NULL;
    size_t length = strnlen(text, PS_TEXT_MAX);

    if (effect == NULL) {
        return false;
    }
    effect->to = op->id;
    effect->message.kind = PS_KIND_REFUSED;
    refused = &effect->message.refused;
    refused->request = op->id;
    refused->table = op->part->table;
    refused->partition = op->part->partition;
    refused->epoch = op->part->epoch;
    refused->seq = op->kind == PS_KIND_PULL ? 0 : op->seq;
    refused->status = (uint16_t)op->status;
    memcpy(refused->text, text, length);
    refused->text[length] = '\0';
    forget(self, op);
    return true;
}

void
ps_op_end_locally(ps_session_t *self,
                  ps_op_t *op,
                  psd_status_t status,
                  const char *text,
                  ps_outbox_t *outbox)
{
    ps_op_detach(op);
    op->status = status;
    if (!report(self, op, text, outbox)) {
        TAILQ_INSERT_TAIL(&self->unreported, op, in_list);
        self->wake_ms = 0;
    }
}

void
ps_session_report(ps_session_t *self, ps_outbox_t *outbox)
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
