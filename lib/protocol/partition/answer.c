/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to clients, and the notes about them. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "model/store/store_ops.h"
#include "protocol/partition/answer.h"

/* Adds an answer with a body of this size to the client's newest connection,
 * with only its head set; NULL when the client has no connection now (it will
 * retry) or there is no memory. */
static ps_effect_t *answer_body(ps_step_t *step, const ps_request_t *request, ps_kind_t kind,
                                size_t size)
{
    uint64_t conn = ps_peer_conn(request->peer, size > PS_BULK_MIN ? PS_WAY_BULK : PS_WAY_FIRST);
    ps_effect_t *effect = NULL;

    if (conn == PS_PEER_NO_CONN) {
        return NULL;
    }
    effect = ps_outbox_add_raw(step->outbox, PS_EFFECT_SEND);
    if (effect == NULL) {
        return NULL;
    }
    effect->to = conn;
    effect->message.kind = kind;
    effect->message.flags = 0;
    return effect;
}

static ps_effect_t *answer(ps_step_t *step, const ps_request_t *request, ps_kind_t kind)
{
    return answer_body(step, request, kind, 0);
}

/* Says where the time went, to one that asked. */
static void add_times(const ps_request_t *request, ps_message_t *message)
{
    if (request->wants_times) {
        message->flags |= PS_FLAG_TIMES;
        message->times = request->times;
    }
}

#define ADDRESS_OF(from)                                                                \
    .request = (from)->request, .table = (from)->table, .partition = (from)->partition, \
    .epoch = (from)->epoch, .seq = (from)->seq

static void count_refusal(ps_step_t *step, psd_status_t status)
{
    step->refused++;
    if ((size_t)status < PS_DIM_CODE) {
        ps_count_add(&step->counts->refusals[status], 1);
    }
}

static void set_text(char (*to)[PS_TEXT_MAX + 1], const char *text)
{
    (void)snprintf(*to, sizeof *to, "%.*s", PS_TEXT_MAX, text);
}

void ps_answer_refused(ps_step_t *step, const ps_request_t *request, psd_status_t status,
                       uint64_t detail, const char *text)
{
    ps_effect_t *effect = NULL;
    ps_msg_refused_t *refused = NULL;

    count_refusal(step, status);
    PS_NOTE_TRACE(step, (&(ps_note_t){.kind = status == PSD_GAP ? PS_NOTE_GAP : PS_NOTE_REFUSED,
                                      .table = request->table,
                                      .partition = request->partition,
                                      .a = request->session,
                                      .b = request->seq,
                                      .c = status == PSD_GAP ? detail : (uint64_t)status}));
    effect = answer(step, request, PS_KIND_REFUSED);
    if (effect == NULL) {
        return;
    }
    refused = &effect->message.refused;
    *refused =
        (ps_msg_refused_t){ADDRESS_OF(request), .status = (uint16_t)status, .detail = detail};
    set_text(&refused->text, text);
}

void ps_answer_ack(ps_step_t *step, const ps_request_t *request)
{
    ps_effect_t *effect = answer(step, request, PS_KIND_ACK);

    if (effect != NULL) {
        effect->message.ack = (ps_msg_ack_t){ADDRESS_OF(request), .level = PS_ACK_MEMORY};
        add_times(request, &effect->message);
    }
}

void ps_answer_parked(ps_step_t *step, const ps_request_t *request, const char *text)
{
    ps_effect_t *effect = answer(step, request, PS_KIND_PARKED);

    ps_count_add(step->counts->parked, 1);
    if (effect != NULL) {
        effect->message.parked = (ps_msg_parked_t){ADDRESS_OF(request)};
        set_text(&effect->message.parked.text, text);
    }
}

bool ps_answer_is_under_way(ps_step_t *step, const ps_request_t *request)
{
    char text[PS_TEXT_MAX + 1];

    if (request->sending.bytes == 0) {
        return false;
    }
    (void)snprintf(text, sizeof text,
                   "the values are on their way: %" PRIu64 " of %" PRIu64 " bytes sent",
                   request->sending.sent, request->sending.bytes);
    ps_answer_parked(step, request, text);
    return true;
}

/* Where values may be written: room belongs to the connection that the request
 * came on, and may be gone when the client answers to another one by now. */
static ps_room_t room_of(const ps_request_t *request)
{
    const ps_peer_t *peer = request->peer;

    return ps_peer_conn(peer, PS_WAY_FIRST) == request->conn &&
                   ps_peer_conn(peer, PS_WAY_BULK) == request->conn
               ? request->room
               : (ps_room_t){NULL, 0};
}

/* The rows that the request selects. Errors: PSD_NOMEM. */
static psd_status_t gather(const ps_step_t *step, ps_partition_t *partition,
                           const ps_request_t *request, ps_slice_t *ret_slice,
                           ps_payload_t **ret_payload, uint64_t *ret_done)
{
    ps_slice_t want = request->slice;

    want.n_values = 0;
    if (request->kind == PS_KIND_PUSH) {
        /* a pushpull wants the rows it pushed, whole or sparse */
        want.n_cols = want.layout == PS_LAYOUT_SPARSE ? 0 : want.n_cols;
    }
    if (request->since > 0) {
        return ps_store_gather_since(partition->store, &want, request->payload, request->since,
                                     step->args.slice_bytes, ret_slice, ret_payload, ret_done,
                                     NULL);
    }
    return ps_store_gather(partition->store, &want, request->payload, step->args.slice_bytes,
                           room_of(request), ret_slice, ret_payload, ret_done, NULL);
}

/* What the rows are, for a client that gets them elsewhere. Errors: PSD_NOMEM. */
static psd_status_t digest(const ps_step_t *step, ps_partition_t *partition,
                           const ps_request_t *request, ps_slice_t *ret_slice,
                           ps_payload_t **ret_payload, uint64_t *ret_done)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = NULL;
    const ps_bytes_t none = {NULL, 0};
    ps_slice_t got = {0};
    ps_id_t id;
    psd_status_t rc =
        ps_store_gather(partition->store, &request->slice, request->payload, step->args.slice_bytes,
                        (ps_room_t){NULL, 0}, &got, &rows, ret_done, NULL);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_hash_id_spans(rows->spans, rows->n_spans, &id);
    *ret_payload = ps_payload_copy(none, none, (ps_bytes_t){id.bytes, sizeof id.bytes});
    *ret_slice = (ps_slice_t){
        .rows = PS_ROWS_RANGE, .type = PS_TYPE_I64, .n_rows = 1, .n_cols = 2, .n_values = 2};
    return *ret_payload == NULL ? PSD_NOMEM : PSD_OK;
}

static psd_status_t read_rows(const ps_step_t *step, ps_partition_t *partition,
                              const ps_request_t *request, ps_slice_t *ret_slice,
                              ps_payload_t **ret_payload, uint64_t *ret_done)
{
    if (request->kind != PS_KIND_PULL || request->op.op == PS_READ_VALUES) {
        return gather(step, partition, request, ret_slice, ret_payload, ret_done);
    }
    if (request->op.op == PS_READ_DIGEST) {
        return digest(step, partition, request, ret_slice, ret_payload, ret_done);
    }
    return ps_partition_measure(step, partition, request, ret_slice, ret_payload, ret_done);
}

void ps_answer_filter(ps_step_t *step, const ps_request_t *request, ps_effect_t *effect)
{
    const ps_filter_t filter = {.delta = request->answer_delta,
                                .pack = (ps_pack_t)request->answer_pack,
                                .values_as = (ps_values_as_t)request->answer_values_as};
    ps_payload_t *coded = NULL;
    psd_status_t rc = PSD_OK;

    if (step->coder == NULL || effect->payload == NULL) {
        return; /* only lists of keys were named */
    }
    rc = ps_coder_encode(step->coder, &filter, &effect->message, effect->payload, &coded, NULL);
    if (rc == PSD_OK && coded != NULL) { /* else it goes plain */
        ps_payload_destroy(&effect->payload);
        effect->payload = coded;
    }
}

uint64_t ps_answer_values(ps_step_t *step, ps_partition_t *partition, const ps_request_t *request)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_slice_t got = {0};
    uint64_t n_done = 0;
    ps_effect_t *effect = NULL;
    psd_status_t rc = read_rows(step, partition, request, &got, &payload, &n_done);

    if (rc != PSD_OK) {
        ps_answer_refused(step, request, rc, 0, psd_status_text(rc));
        return 0;
    }
    effect = answer_body(step, request, PS_KIND_VALUES, ps_payload_size(payload));
    if (effect == NULL) {
        return got.n_rows;
    }
    effect->message.values = (ps_msg_values_t){
        ADDRESS_OF(request),
        .level = request->kind == PS_KIND_PUSH ? PS_ACK_MEMORY : PS_ACK_DEFAULT, .n_done = n_done,
        .version = ps_store_has_versions(partition->store) ? partition->version : 0};
    ps_message_set_slice(&effect->message, &got);
    add_times(request, &effect->message);
    effect->payload = payload;
    payload = NULL;
    if (request->filtered) {
        ps_answer_filter(step, request, effect);
    }
    return got.n_rows;
}

void ps_answer_moved(ps_step_t *step, const ps_request_t *request, const ps_local_table_t *table,
                     bool was_taken)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_effect_t *effect = NULL;

    ps_count_add(step->counts->moved, 1);
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        if (!ps_route_encode(&table->routes[i], &bytes)) {
            return;
        }
    }
    payload =
        ps_payload_copy((ps_bytes_t){bytes.data, bytes.size}, (ps_bytes_t){0}, (ps_bytes_t){0});
    effect = payload == NULL ? NULL : answer_body(step, request, PS_KIND_MOVED, bytes.size);
    if (effect == NULL) {
        return;
    }
    effect->message.moved =
        (ps_msg_moved_t){ADDRESS_OF(request), .n_routes = table->spec.n_partitions};
    if (!was_taken) {
        effect->message.moved.seq = 0;
    }
    effect->payload = payload;
    payload = NULL;
}

void ps_answer_refused_conn(ps_step_t *step, uint64_t conn, psd_status_t status, const char *text)
{
    ps_effect_t *effect = ps_outbox_add(step->outbox, PS_EFFECT_SEND);

    count_refusal(step, status);
    if (effect != NULL) {
        effect->to = conn;
        effect->message.kind = PS_KIND_REFUSED;
        effect->message.refused.status = (uint16_t)status;
        set_text(&effect->message.refused.text, text);
    }
}

void ps_answer_no_session(ps_step_t *step, uint64_t conn, const ps_message_t *message)
{
    ps_effect_t *effect = ps_outbox_add(step->outbox, PS_EFFECT_SEND);
    ps_request_t request;

    count_refusal(step, PSD_NO_SESSION);
    if (effect != NULL) {
        ps_request_read(message, &request);
        effect->to = conn;
        effect->message.kind = PS_KIND_REFUSED;
        effect->message.refused =
            (ps_msg_refused_t){ADDRESS_OF(&request), .status = (uint16_t)PSD_NO_SESSION};
        set_text(&effect->message.refused.text, "say HELLO first");
    }
}

void ps_answer_rows_lost(ps_step_t *step, const ps_request_t *request, const char *table)
{
    char text[PS_TEXT_MAX + 1];

    (void)snprintf(text, sizeof text, PS_ROWS_LOST_TEXT, table);
    ps_answer_refused(step, request, PSD_ROWS_LOST, 0, text);
}

void ps_answer_welcome(ps_step_t *step, uint64_t conn, uint32_t filters)
{
    ps_effect_t *effect = ps_outbox_add(step->outbox, PS_EFFECT_SEND);

    if (effect != NULL) {
        effect->to = conn;
        effect->message.kind = PS_KIND_WELCOME;
        effect->message.welcome = (ps_msg_welcome_t){.version = PS_VERSION,
                                                     .cluster = step->args.cluster,
                                                     .incarnation = step->args.incarnation,
                                                     .shard = step->args.shard,
                                                     .credit_requests = step->args.credit_requests,
                                                     .credit_bytes = step->args.credit_bytes,
                                                     .chunk_bytes = step->args.chunk_bytes,
                                                     .slice_bytes = step->args.slice_bytes,
                                                     .filters = filters};
    }
}

void ps_note(ps_step_t *step, const ps_note_t *note)
{
    ps_effect_t *effect = ps_outbox_add(step->outbox, PS_EFFECT_NOTE);

    if (effect != NULL) {
        effect->note = *note;
    }
}
