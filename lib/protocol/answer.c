/* SPDX-License-Identifier: Apache-2.0 */
/* What goes back to a client, and what is noted on the way. */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/shard_state.h"

/* An answer to the newest connection of the client; NULL when it has none now
 * (it will ask again) or there is no memory. */
static ps_message_t *
answer(ps_shard_t *self, uint64_t session, ps_kind_t kind)
{
    const ps_peer_t *peer = ps_peers_of(&self->peers, session);
    ps_effect_t *effect = NULL;

    if (peer == NULL || peer->conn == PS_PEER_NO_CONN) {
        return NULL;
    }
    effect = ps_outbox_add(self->outbox, PS_EFFECT_SEND);
    if (effect == NULL) {
        return NULL;
    }
    effect->to = peer->conn;
    effect->message.kind = kind;
    return &effect->message;
}

#define FILL_ADDRESS(to, from)               \
    do {                                     \
        (to)->request = (from)->request;     \
        (to)->table = (from)->table;         \
        (to)->partition = (from)->partition; \
        (to)->epoch = (from)->epoch;         \
        (to)->seq = (from)->seq;             \
    } while (0)

void
ps_answer_refused(ps_shard_t *self,
                  const ps_request_t *request,
                  psd_status_t status,
                  uint64_t detail,
                  const char *text)
{
    ps_message_t *message = NULL;

    self->refused++;
    ps_note_trace(
        self,
        &(ps_note_t){.kind = status == PSD_GAP ? PS_NOTE_GAP : PS_NOTE_REFUSED,
                     .table = request->table,
                     .partition = request->partition,
                     .a = request->session,
                     .b = request->seq,
                     .c = status == PSD_GAP ? detail : (uint64_t)status});
    message = answer(self, request->session, PS_KIND_REFUSED);
    if (message == NULL) {
        return;
    }
    FILL_ADDRESS(&message->refused, request);
    message->refused.status = (uint16_t)status;
    message->refused.detail = detail;
    (void)snprintf(message->refused.text, sizeof message->refused.text, "%.*s",
                   PS_TEXT_MAX, text);
}

void
ps_answer_ack(ps_shard_t *self, const ps_request_t *request)
{
    ps_message_t *message = answer(self, request->session, PS_KIND_ACK);

    if (message != NULL) {
        FILL_ADDRESS(&message->ack, request);
        message->ack.level = PS_ACK_MEMORY;
    }
}

void
ps_answer_parked(ps_shard_t *self,
                 const ps_request_t *request,
                 const char *text)
{
    ps_message_t *message = answer(self, request->session, PS_KIND_PARKED);

    if (message != NULL) {
        FILL_ADDRESS(&message->parked, request);
        (void)snprintf(message->parked.text, sizeof message->parked.text,
                       "%.*s", PS_TEXT_MAX, text);
    }
}

uint64_t
ps_answer_values(ps_shard_t *self,
                 ps_partition_t *partition,
                 const ps_request_t *request)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_slice_t want = request->slice;
    ps_slice_t got = {0};
    uint64_t n_done = 0;
    ps_message_t *message = NULL;
    psd_status_t rc;

    want.n_values = 0;
    if (request->kind == PS_KIND_PUSH) {
        /* a pushpull wants the rows it pushed, whole or sparse */
        want.n_cols = want.layout == PS_LAYOUT_SPARSE ? 0 : want.n_cols;
    }
    rc = ps_store_gather(partition->store, &want, request->payload,
                         self->args.slice_bytes, &got, &payload, &n_done, NULL);
    if (rc != PSD_OK) {
        ps_answer_refused(self, request, rc, 0, psd_status_text(rc));
        return 0;
    }
    message = answer(self, request->session, PS_KIND_VALUES);
    if (message == NULL) {
        return got.n_rows;
    }
    FILL_ADDRESS(&message->values, request);
    message->values.level =
        request->kind == PS_KIND_PUSH ? PS_ACK_MEMORY : PS_ACK_DEFAULT;
    message->values.n_done = n_done;
    ps_message_set_slice(message, &got);
    /* `answer` appended it last */
    self->outbox->effects[self->outbox->n_effects - 1].payload = payload;
    payload = NULL;
    return got.n_rows;
}

void
ps_answer_moved(ps_shard_t *self,
                const ps_request_t *request,
                const ps_shard_table_t *table)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_message_t *message = NULL;

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        if (!ps_route_encode(&table->routes[i], &bytes)) {
            return;
        }
    }
    payload = ps_payload_copy((ps_bytes_t){bytes.data, bytes.size},
                              (ps_bytes_t){0}, (ps_bytes_t){0});
    message =
        payload == NULL ? NULL : answer(self, request->session, PS_KIND_MOVED);
    if (message == NULL) {
        return;
    }
    FILL_ADDRESS(&message->moved, request);
    message->moved.n_routes = table->spec.n_partitions;
    self->outbox->effects[self->outbox->n_effects - 1].payload = payload;
    payload = NULL;
}

void
ps_answer_refused_conn(ps_shard_t *self,
                       uint64_t conn,
                       psd_status_t status,
                       const char *text)
{
    ps_effect_t *effect = ps_outbox_add(self->outbox, PS_EFFECT_SEND);

    self->refused++;
    if (effect != NULL) {
        effect->to = conn;
        effect->message.kind = PS_KIND_REFUSED;
        effect->message.refused.status = (uint16_t)status;
        (void)snprintf(effect->message.refused.text,
                       sizeof effect->message.refused.text, "%.*s", PS_TEXT_MAX,
                       text);
    }
}

void
ps_answer_welcome(ps_shard_t *self, uint64_t conn)
{
    ps_effect_t *effect = ps_outbox_add(self->outbox, PS_EFFECT_SEND);

    if (effect != NULL) {
        effect->to = conn;
        effect->message.kind = PS_KIND_WELCOME;
        effect->message.welcome =
            (ps_msg_welcome_t){.version = PS_VERSION,
                               .cluster = self->args.cluster,
                               .incarnation = self->args.incarnation,
                               .shard = self->args.shard,
                               .credit_requests = self->args.credit_requests,
                               .credit_bytes = self->args.credit_bytes,
                               .chunk_bytes = self->args.chunk_bytes,
                               .slice_bytes = self->args.slice_bytes};
    }
}

void
ps_note(ps_shard_t *self, const ps_note_t *note)
{
    ps_effect_t *effect = ps_outbox_add(self->outbox, PS_EFFECT_NOTE);

    if (effect != NULL) {
        effect->note = *note;
    }
}

void
ps_note_trace(ps_shard_t *self, const ps_note_t *note)
{
    if (self->args.trace) {
        ps_note(self, note);
    }
}

void
ps_note_record(ps_shard_t *self,
               const ps_record_t *record,
               ps_payload_t *payload)
{
    ps_effect_t *effect = ps_outbox_add(self->outbox, PS_EFFECT_RECORD);

    if (effect != NULL) {
        effect->record = *record;
        effect->payload = payload == NULL ? NULL : ps_payload_keep(payload);
    }
}
