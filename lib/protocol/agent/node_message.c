/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between the registry and the nodes in bytes: tables made from
 * node_fields.def. */
#include "protocol/agent/node_message.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/field.h"
#include "protocol/trust/trust_kinds.def"
#include "wire/messages/formats.h"

/* Each kind has its row, and each row its kind: else this does not build. */
#define ROW_OF(KIND, VERB, OBJECT, SCOPE) HAS_##KIND = PS_NODE_##KIND,
enum { PS_TRUST_NODE_MESSAGES(ROW_OF) };
#undef ROW_OF
#define WANTS_ROW(KIND, number, word) \
    static_assert((int)HAS_##KIND == (int)PS_NODE_##KIND, "a row for it");
PS_NODE_MESSAGE_MAP(WANTS_ROW)
#undef WANTS_ROW

#define MAGIC UINT32_C(0x6d4e7370) /* "psNm" in memory order */
#define LAST_JSON_FORMAT 3         /* between nodes */

static const ps_field_t shard_fields[] = {PS_SHARD_FIELDS(PS_FIELD_ROW, ps_route_t, )};
PS_FIELD_SHAPE(shard, ps_route_t)
static const ps_field_t id_fields[] = {{.name = "id", .type = PS_AS_U32, .size = sizeof(uint32_t)}};
PS_FIELD_SHAPE(id, uint32_t)
static const ps_field_t seat_fields[] = {PS_SEAT_FIELDS(PS_FIELD_ROW, ps_seat_t)};
PS_FIELD_SHAPE(seat, ps_seat_t)
static const ps_field_t lost_fields[] = {PS_LOST_FIELDS(PS_FIELD_ROW, ps_lost_t)};
PS_FIELD_SHAPE(lost, ps_lost_t)
static const ps_field_t size_info_fields[] = {PS_SIZE_INFO_FIELDS(PS_FIELD_ROW, ps_size_info_t)};
PS_FIELD_SHAPE(size_info, ps_size_info_t)
static const ps_field_t report_fields[] = {PS_REPORT_FIELDS(PS_FIELD_ROW, ps_report_t)};
PS_FIELD_SHAPE(report, ps_report_t)
static const ps_field_t partition_info_fields[] = {
    PS_PARTITION_INFO_FIELDS(PS_FIELD_ROW, ps_partition_info_t)};
PS_FIELD_SHAPE(partition_info, ps_partition_info_t)
static const ps_field_t lag_info_fields[] = {PS_LAG_INFO_FIELDS(PS_FIELD_ROW, ps_lag_info_t)};
PS_FIELD_SHAPE(lag_info, ps_lag_info_t)
static const ps_field_t waiting_info_fields[] = {
    PS_WAITING_INFO_FIELDS(PS_FIELD_ROW, ps_waiting_info_t)};
PS_FIELD_SHAPE(waiting_info, ps_waiting_info_t)
static const ps_field_t clock_info_fields[] = {PS_CLOCK_INFO_FIELDS(PS_FIELD_ROW, ps_clock_info_t)};
PS_FIELD_SHAPE(clock_info, ps_clock_info_t)
static const ps_field_t shard_answer_fields[] = {
    PS_SHARD_ANSWER_FIELDS(PS_FIELD_ROW, PS_LIST_ROW, ps_shard_answer_t)};
PS_FIELD_SHAPE(shard_answer, ps_shard_answer_t)
static const ps_field_t copy_fields[] = {PS_FIELD_ROW(ps_copy_t, U64, incarnation, incarnation)
                                             PS_COPY_FIELDS(PS_FIELD_ROW, ps_copy_t, )
                                                 PS_FIELD_ROW(ps_copy_t, TEXT, tcp, tcp)};
PS_FIELD_SHAPE(copy, ps_copy_t)
static const ps_field_t place_fields[] = {
    PS_FIELD_ROW(ps_place_t, U32, partition, partition)
        PS_COPIES_FIELDS(PS_FIELD_ROW, ps_place_t, copies.)
            PS_ARRAY_ROW(ps_place_t, copy, copies, copies.at, copies.n, PS_COPIES_MAX)
                PS_FIELD_ROW(ps_place_t, TEXT, ipc, ipc)};
PS_FIELD_SHAPE(place, ps_place_t)
static const ps_field_t setting_fields[] = {PS_SETTING_FIELDS(PS_FIELD_ROW, ps_setting_t, )};
PS_FIELD_SHAPE(setting, ps_setting_t)
static const ps_field_t worker_fields[] = {PS_RANK_FIELDS(PS_FIELD_ROW, ps_worker_t, )};
PS_FIELD_SHAPE(worker, ps_worker_t)

static const ps_field_t head_fields[] = {
    PS_NODE_MESSAGE_HEAD_FIELDS(PS_FIELD_ROW, ps_node_message_t)};
PS_FIELD_SHAPE(head, ps_node_message_t)

/* The last row is of no message: one of them has no fields. */
#define MESSAGE_FIELDS(NAME, number, word)      \
    static const ps_field_t NAME##_fields[] = { \
        PS_NODE_MESSAGE_##NAME##_FIELDS(PS_FIELD_ROW, PS_LIST_ROW, ps_node_message_t){0}};
PS_NODE_MESSAGE_MAP(MESSAGE_FIELDS)
#undef MESSAGE_FIELDS

#define MESSAGE_ROW(NAME, number, word)                                 \
    [number] = {#word,                                                  \
                {.fields = NAME##_fields,                               \
                 .n = sizeof NAME##_fields / sizeof *NAME##_fields - 1, \
                 .size = sizeof(ps_node_message_t)}},
static const struct {
    const char *word;
    ps_field_shape_t shape;
} messages[] = {[0] = {"?", {0}}, PS_NODE_MESSAGE_MAP(MESSAGE_ROW)};
#undef MESSAGE_ROW
#define N_MESSAGES (sizeof messages / sizeof *messages)

static size_t row_of(ps_node_message_kind_t kind)
{
    return (size_t)kind < N_MESSAGES && messages[kind].word != NULL ? (size_t)kind : 0;
}

const char *ps_node_message_name(ps_node_message_kind_t kind)
{
    return messages[row_of(kind)].word;
}

void ps_node_message_done(ps_node_message_t *self)
{
    ps_node_done(&self->node);
    ps_table_done(&self->table);
    ps_job_done(&self->job);
    ps_answers_done(&self->answers);
    ps_buffer_done(&self->words);
    ps_free(self->lost);
    ps_free(self->sizes);
    ps_free(self->reports);
    ps_free(self->tables);
    ps_free(self->places);
    ps_free(self->seats);
    ps_free(self->settings);
    *self = (ps_node_message_t){0};
}

bool ps_node_message_encode(const ps_node_message_t *self, ps_buffer_t *buffer)
{
    return ps_buffer_u32(buffer, MAGIC) && ps_buffer_u16(buffer, PS_NODE_FORMAT) &&
           ps_buffer_u8(buffer, (uint8_t)self->kind) && ps_buffer_u8(buffer, 0) &&
           ps_shape_encode(&head_shape, self, buffer) &&
           ps_shape_encode(&messages[row_of(self->kind)].shape, self, buffer);
}

bool ps_node_message_is(ps_bytes_t bytes)
{
    return bytes.size >= sizeof(uint32_t) && ps_load_u32(bytes.data) == MAGIC;
}

/* HEARD may be of a message that could not be read. */
static psd_status_t check_head(const ps_node_message_t *message, psd_error_t *err)
{
    bool is_numbered = message->kind == PS_NODE_ANSWER || message->kind > PS_NODE_HEARD;

    if (message->kind != PS_NODE_HEARD &&
        (message->incarnation == 0 || message->incarnation > INT64_MAX)) {
        return psd_error_set(err, PSD_PROTO, "incarnation is %" PRIu64 "; allowed: 1 to 2^63 - 1",
                             message->incarnation);
    }
    return is_numbered && message->serial == 0
               ? psd_error_set(err, PSD_PROTO, "serial is 0; allowed: 1 and up")
               : PSD_OK;
}

static psd_status_t decode_head(ps_cursor_t *cursor, ps_node_message_t *message, psd_error_t *err)
{
    uint32_t magic = ps_cursor_u32(cursor);
    uint16_t format = ps_cursor_u16(cursor);
    uint8_t kind = ps_cursor_u8(cursor);
    uint8_t zero = ps_cursor_u8(cursor);
    psd_status_t rc = PSD_OK;

    if (!cursor->failed && (magic & 0xff) == '{') {
        return psd_error_set(err, PSD_VERSION,
                             "it is JSON, of a psd of format %d or less, this psd's is %d; %s",
                             LAST_JSON_FORMAT, PS_NODE_FORMAT, PS_NODE_FORMAT_HINT);
    }
    if (cursor->failed || magic != MAGIC) {
        return psd_error_set(err, PSD_PROTO, "it begins with other bytes");
    }
    if (format != PS_NODE_FORMAT) {
        return psd_error_set(err, PSD_VERSION, "format is %u, this psd's is %d; %s", format,
                             PS_NODE_FORMAT, PS_NODE_FORMAT_HINT);
    }
    if (row_of((ps_node_message_kind_t)kind) == 0 || zero != 0) {
        return psd_error_set(err, PSD_PROTO, "kind is %u, %u", kind, zero);
    }
    message->kind = (ps_node_message_kind_t)kind;
    rc = ps_shape_decode(&head_shape, cursor, message, err);
    return rc == PSD_OK ? check_head(message, err) : rc;
}

static psd_status_t check_places(const ps_node_message_t *message, psd_error_t *err)
{
    bool is_whole = message->kind == PS_NODE_TABLE;
    psd_status_t rc = PSD_OK;

    if (is_whole && message->n_places != message->table.spec.n_partitions) {
        return psd_error_set(err, PSD_PROTO, "%zu places for %" PRIu32 " partitions",
                             message->n_places, message->table.spec.n_partitions);
    }
    for (size_t i = 0; rc == PSD_OK && i < message->n_places; i++) {
        const ps_place_t *place = &message->places[i];

        if (is_whole && place->partition != i) {
            return psd_error_set(err, PSD_PROTO, "place %zu is of partition %" PRIu32, i,
                                 place->partition);
        }
        rc = ps_copies_check(&place->copies, err);
    }
    return rc;
}

static psd_status_t check_lost(const ps_node_message_t *message, psd_error_t *err)
{
    for (size_t i = 0; i < message->n_lost; i++) {
        const ps_lost_t *lost = &message->lost[i];

        if (lost->first > lost->last) {
            return psd_error_set(err, PSD_INVALID,
                                 "lost partitions %" PRIu32 " to %" PRIu32 " are no range",
                                 lost->first, lost->last);
        }
    }
    return PSD_OK;
}

/* Numbers that only grow leave room for it. */
static psd_status_t check_numbers(const ps_node_message_t *message, psd_error_t *err)
{
    ps_node_message_kind_t kind = message->kind;
    bool is_fence = kind == PS_NODE_FENCE;
    uint64_t epoch = is_fence ? message->fence.epoch : message->epoch;
    uint32_t table = is_fence ? message->fence.table : message->table.id;

    if (epoch > INT64_MAX || (is_fence && epoch == 0)) {
        return psd_error_set(err, PSD_INVALID, "epoch is %" PRIu64 "; allowed: below 2^63", epoch);
    }
    if (message->session > INT64_MAX) {
        return psd_error_set(err, PSD_INVALID, "session is %" PRIu64 "; allowed: below 2^63",
                             message->session);
    }
    if (table == 0 &&
        (is_fence || kind == PS_NODE_TABLE || kind == PS_NODE_PLACES || kind == PS_NODE_DROP)) {
        return psd_error_set(err, PSD_PROTO, "table is 0; allowed: 1 and up");
    }
    return PSD_OK;
}

static psd_status_t check(const ps_node_message_t *message, psd_error_t *err)
{
    psd_status_t rc = check_numbers(message, err);

    if (rc == PSD_OK && message->kind == PS_NODE_TABLE) {
        rc = ps_table_spec_check(&message->table.spec, err);
    }
    if (rc == PSD_OK && (message->kind == PS_NODE_JOB || message->kind == PS_NODE_RANKS)) {
        rc = ps_job_check(&message->job, err);
    }
    if (rc == PSD_OK) {
        rc = check_places(message, err);
    }
    return rc == PSD_OK ? check_lost(message, err) : rc;
}

psd_status_t ps_node_message_head(ps_bytes_t bytes, ps_node_message_t *ret_message,
                                  psd_error_t *err)
{
    ps_node_message_t message = {0};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    psd_status_t rc = decode_head(&cursor, &message, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "message of %zu bytes between nodes", bytes.size);
    }
    *ret_message = message;
    return PSD_OK;
}

psd_status_t ps_node_message_decode(ps_bytes_t bytes, ps_node_message_t *ret_message,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    psd_status_t rc = decode_head(&cursor, &message, err);

    if (rc == PSD_OK) {
        rc = ps_shape_decode(&messages[message.kind].shape, &cursor, &message, err);
    }
    if (rc == PSD_OK && !ps_cursor_is_done(&cursor)) {
        rc = psd_error_set(err, PSD_PROTO, "%zu bytes are left", cursor.rest.size);
    }
    if (rc == PSD_OK) {
        rc = check(&message, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "message \"%s\" of %zu bytes between nodes",
                              ps_node_message_name(message.kind), bytes.size);
    }
    *ret_message = message; /* ownership moves to the caller */
    message = (ps_node_message_t){0};
    return PSD_OK;
}

/* ---- places ---- */

bool ps_places_gather(const ps_table_t *table, uint64_t since, ps_node_message_t *message)
{
    size_t n = 0;

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        n += table->changed[i] > since ? 1 : 0;
    }
    message->places = ps_alloc(n, sizeof *message->places);
    if (message->places == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        ps_place_t *place = &message->places[message->n_places];

        if (table->changed[i] > since) {
            place->partition = i;
            place->copies = table->copies[i];
            memcpy(place->ipc, table->routes[i].ipc, sizeof place->ipc);
            message->n_places++;
        }
    }
    return true;
}

static void put_route(const ps_place_t *place, ps_route_t *route)
{
    const ps_copy_t *first = &place->copies.at[0];

    *route = (ps_route_t){.partition = place->partition,
                          .shard = first->shard,
                          .epoch = place->copies.epoch,
                          .incarnation = first->incarnation};
    memcpy(route->ipc, place->ipc, sizeof route->ipc);
    if (strcmp(first->tcp, place->ipc) != 0) { /* else it listens on ipc alone */
        memcpy(route->tcp, first->tcp, sizeof route->tcp);
    }
}

psd_status_t ps_places_put(const ps_node_message_t *message, ps_table_t *table, psd_error_t *err)
{
    for (size_t i = 0; i < message->n_places; i++) {
        const ps_place_t *place = &message->places[i];

        if (place->partition >= table->spec.n_partitions) {
            return psd_error_set(err, PSD_INVALID,
                                 "partition %" PRIu32 " of table %s; allowed: 0..%" PRIu32,
                                 place->partition, table->spec.name, table->spec.n_partitions - 1);
        }
        table->copies[place->partition] = place->copies;
        put_route(place, &table->routes[place->partition]);
    }
    return PSD_OK;
}
