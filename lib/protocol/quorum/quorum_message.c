/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between members in bytes: tables made from quorum_fields.def. */
#include "protocol/quorum/quorum_message.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/field.h"
#include "protocol/trust/trust_kinds.def"

/* Each kind has its row, and each row its kind: else this does not build. */
#define ROW_OF(KIND, VERB, OBJECT, SCOPE) HAS_##KIND,
enum { PS_TRUST_QUORUM_MESSAGES(ROW_OF) HAS_COUNT };
#undef ROW_OF
#define WANTS_ROW(KIND, number, word) static_assert(HAS_##KIND < HAS_COUNT, "a row for it");
PS_QUORUM_MESSAGE_MAP(WANTS_ROW)
PS_GREETING_MAP(WANTS_ROW)
#undef WANTS_ROW
#define ONE(KIND, number, word) +1
static_assert(HAS_COUNT == 0 PS_QUORUM_MESSAGE_MAP(ONE) PS_GREETING_MAP(ONE), "no row more");
#undef ONE

#define MAGIC UINT32_C(0x6d517370) /* "psQm" in memory order */
#define KIND_AT 6
#define FROM_AT (8 + 2 * sizeof(ps_id_t)) /* after cluster and lineage */
#define MEMBERS_FORMAT 1

static const ps_field_t member_fields[] = {
    PS_QUORUM_MEMBER_FIELDS(PS_FIELD_ROW, ps_quorum_member_t)};
PS_FIELD_SHAPE(member, ps_quorum_member_t)
static const ps_field_t members_fields[] = {
    PS_QUORUM_MEMBERS_FIELDS(PS_ARRAY_ROW, ps_quorum_members_t)};
PS_FIELD_SHAPE(members, ps_quorum_members_t)
static const ps_field_t entry_fields[] = {PS_QUORUM_ENTRY_FIELDS(PS_FIELD_ROW, ps_quorum_entry_t)};
PS_FIELD_SHAPE(entry, ps_quorum_entry_t)
static const ps_field_t head_fields[] = {
    PS_QUORUM_MESSAGE_HEAD_FIELDS(PS_FIELD_ROW, ps_quorum_message_t)};
PS_FIELD_SHAPE(head, ps_quorum_message_t)

#define MESSAGE_FIELDS(NAME, number, word)                                        \
    static const ps_field_t NAME##_fields[] = {PS_QUORUM_MESSAGE_##NAME##_FIELDS( \
        PS_FIELD_ROW, PS_LIST_ROW, PS_ARRAY_ROW, ps_quorum_message_t)};
PS_QUORUM_MESSAGE_MAP(MESSAGE_FIELDS)
#undef MESSAGE_FIELDS

#define MESSAGE_ROW(NAME, number, word)                             \
    [number] = {#word,                                              \
                {.fields = NAME##_fields,                           \
                 .n = sizeof NAME##_fields / sizeof *NAME##_fields, \
                 .size = sizeof(ps_quorum_message_t)}},
static const struct {
    const char *word;
    ps_field_shape_t shape;
} messages[] = {[0] = {"?", {0}}, PS_QUORUM_MESSAGE_MAP(MESSAGE_ROW)};
#undef MESSAGE_ROW
#define N_MESSAGES (sizeof messages / sizeof *messages)

static size_t row_of(ps_quorum_message_kind_t kind)
{
    return (size_t)kind < N_MESSAGES ? (size_t)kind : 0;
}

const char *ps_quorum_message_name(ps_quorum_message_kind_t kind)
{
    return messages[row_of(kind)].word;
}

void ps_quorum_message_done(ps_quorum_message_t *self)
{
    for (size_t i = 0; self->entries != NULL && i < self->n_entries; i++) {
        ps_buffer_done(&self->entries[i].bytes);
    }
    ps_free(self->entries);
    *self = (ps_quorum_message_t){0};
}

bool ps_quorum_message_encode(const ps_quorum_message_t *self, ps_buffer_t *buffer)
{
    return ps_buffer_u32(buffer, MAGIC) && ps_buffer_u16(buffer, PS_QUORUM_FORMAT) &&
           ps_buffer_u8(buffer, (uint8_t)self->kind) && ps_buffer_u8(buffer, 0) &&
           ps_shape_encode(&head_shape, self, buffer) &&
           ps_shape_encode(&messages[row_of(self->kind)].shape, self, buffer);
}

bool ps_quorum_message_is(ps_bytes_t bytes)
{
    return bytes.size >= sizeof(uint32_t) && ps_load_u32(bytes.data) == MAGIC;
}

ps_quorum_message_kind_t ps_quorum_message_kind(ps_bytes_t bytes)
{
    size_t kind = ps_quorum_message_is(bytes) && bytes.size > KIND_AT ? bytes.data[KIND_AT] : 0;

    return (ps_quorum_message_kind_t)(kind < N_MESSAGES ? kind : 0);
}

uint64_t ps_quorum_message_from(ps_bytes_t bytes)
{
    return ps_quorum_message_is(bytes) && bytes.size >= FROM_AT + sizeof(uint64_t)
               ? ps_load_u64(bytes.data + FROM_AT)
               : 0;
}

/* ---- members ---- */

const ps_quorum_member_t *ps_quorum_members_find(const ps_quorum_members_t *self, uint64_t id)
{
    for (uint32_t i = 0; i < self->n; i++) {
        if (self->at[i].id == id) {
            return &self->at[i];
        }
    }
    return NULL;
}

uint32_t ps_quorum_members_voters(const ps_quorum_members_t *self)
{
    uint32_t voters = 0;

    for (uint32_t i = 0; i < self->n; i++) {
        voters += self->at[i].role == PS_QUORUM_VOTER ? 1 : 0;
    }
    return voters;
}

static psd_status_t check_member(const ps_quorum_members_t *members, uint32_t at, psd_error_t *err)
{
    const ps_quorum_member_t *member = &members->at[at];

    if (member->id == 0 || member->id > PS_QUORUM_MEMBER_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "id of a member is %" PRIu64 "; allowed: 1 to %" PRIu64, member->id,
                             PS_QUORUM_MEMBER_MAX);
    }
    if (member->node[0] == '\0') {
        return psd_error_set(err, PSD_INVALID, "member %" PRIu64 " has no node", member->id);
    }
    if (member->role != PS_QUORUM_VOTER && member->role != PS_QUORUM_STANDBY) {
        return psd_error_set(err, PSD_INVALID, "role of member %" PRIu64 " is %" PRIu32, member->id,
                             member->role);
    }
    for (uint32_t i = 0; i < at; i++) {
        if (members->at[i].id == member->id || strcmp(members->at[i].node, member->node) == 0) {
            return psd_error_set(err, PSD_INVALID,
                                 "member %" PRIu64 " of node \"%s\" is there twice", member->id,
                                 member->node);
        }
    }
    return PSD_OK;
}

psd_status_t ps_quorum_members_check(const ps_quorum_members_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->n > PS_QUORUM_MEMBERS_MAX) {
        return psd_error_set(err, PSD_INVALID, "%" PRIu32 " members; allowed: up to %d", self->n,
                             PS_QUORUM_MEMBERS_MAX);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < self->n; i++) {
        rc = check_member(self, i, err);
    }
    if (rc == PSD_OK && ps_quorum_members_voters(self) == 0) {
        rc = psd_error_set(err, PSD_INVALID, "no member votes");
    }
    return rc;
}

bool ps_quorum_members_encode(const ps_quorum_members_t *self, ps_buffer_t *buffer)
{
    return ps_buffer_u8(buffer, MEMBERS_FORMAT) && ps_shape_encode(&members_shape, self, buffer);
}

psd_status_t ps_quorum_members_decode(ps_bytes_t bytes, ps_quorum_members_t *ret_members,
                                      psd_error_t *err)
{
    ps_quorum_members_t members = {0};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    uint8_t format = ps_cursor_u8(&cursor);
    psd_status_t rc = PSD_OK;

    if (format != MEMBERS_FORMAT) {
        return psd_error_set(err, PSD_VERSION, "format of the members is %u, this psd's is %d",
                             format, MEMBERS_FORMAT);
    }
    rc = ps_shape_decode(&members_shape, &cursor, &members, err);
    if (rc == PSD_OK && !ps_cursor_is_done(&cursor)) {
        rc = psd_error_set(err, PSD_PROTO, "bytes follow the members");
    }
    if (rc == PSD_OK) {
        rc = ps_quorum_members_check(&members, err);
    }
    if (rc == PSD_OK) {
        *ret_members = members;
    }
    return rc;
}

/* ---- checks ---- */

psd_status_t ps_quorum_entry_check(const ps_quorum_entry_t *self, psd_error_t *err)
{
    ps_quorum_members_t members;

    if (self->term == 0 || self->term > PS_QUORUM_NUMBER_MAX) {
        return psd_error_set(err, PSD_INVALID, "term of an entry is %" PRIu64, self->term);
    }
    switch (self->kind) {
    case PS_QUORUM_COMMAND:
        return self->bytes.size > 0 ? PSD_OK
                                    : psd_error_set(err, PSD_INVALID, "a command has no bytes");
    case PS_QUORUM_BARRIER:
        return self->bytes.size == 0 ? PSD_OK
                                     : psd_error_set(err, PSD_INVALID, "a barrier has bytes");
    case PS_QUORUM_CHANGE:
        return ps_quorum_members_decode((ps_bytes_t){self->bytes.data, self->bytes.size}, &members,
                                        err);
    default:
        return psd_error_set(err, PSD_PROTO, "kind of an entry is %" PRIu32, self->kind);
    }
}

static psd_status_t wrong_number(const char *name, uint64_t number, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s is %" PRIu64, name, number);
}

static psd_status_t check_head(const ps_quorum_message_t *message, psd_error_t *err)
{
    if (message->from == 0 || message->from > PS_QUORUM_MEMBER_MAX) {
        return wrong_number("from", message->from, err);
    }
    if (message->to == 0 || message->to > PS_QUORUM_MEMBER_MAX || message->to == message->from) {
        return wrong_number("to", message->to, err);
    }
    if (message->node[0] == '\0') {
        return psd_error_set(err, PSD_INVALID, "node is empty");
    }
    if (message->life == 0) {
        return wrong_number("life", message->life, err);
    }
    if (message->number == 0) {
        return wrong_number("number", message->number, err);
    }
    if (message->term > PS_QUORUM_NUMBER_MAX ||
        (message->term == 0 && message->kind != PS_QUORUM_VOTED &&
         message->kind != PS_QUORUM_VOTE)) {
        return wrong_number("term", message->term, err);
    }
    return PSD_OK;
}

/* An index with its term: both or none. */
static psd_status_t check_last(const ps_quorum_message_t *message, bool may_be_none,
                               psd_error_t *err)
{
    uint64_t index = message->last_index;
    uint64_t term = message->last_term;

    if (index > PS_QUORUM_NUMBER_MAX || (index == 0 && !may_be_none)) {
        return wrong_number("last_index", index, err);
    }
    return term > message->term || (term == 0) != (index == 0)
               ? wrong_number("last_term", term, err)
               : PSD_OK;
}

static psd_status_t check_vote(const ps_quorum_message_t *message, psd_error_t *err)
{
    if (message->for_term == 0 || message->for_term != message->term + (message->trial ? 1 : 0)) {
        return wrong_number("for_term", message->for_term, err);
    }
    if (message->trial && message->depose) {
        return psd_error_set(err, PSD_INVALID, "depose is set in a trial");
    }
    return check_last(message, true, err);
}

static psd_status_t check_append(const ps_quorum_message_t *message, psd_error_t *err)
{
    uint64_t term = message->last_term;
    psd_status_t rc = check_last(message, false, err);

    if (rc == PSD_OK && message->commit > PS_QUORUM_NUMBER_MAX) {
        rc = wrong_number("commit", message->commit, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < message->n_entries; i++) {
        const ps_quorum_entry_t *entry = &message->entries[i];

        rc = ps_quorum_entry_check(entry, err);
        if (rc == PSD_OK && (entry->term < term || entry->term > message->term)) {
            rc = wrong_number("term of an entry", entry->term, err);
        }
        term = entry->term;
    }
    return rc;
}

static psd_status_t check_snapshot(const ps_quorum_message_t *message, psd_error_t *err)
{
    const ps_quorum_snapshot_t *snapshot = &message->snapshot;

    if (snapshot->index < 2 || snapshot->index > PS_QUORUM_NUMBER_MAX) {
        return wrong_number("last_index", snapshot->index, err);
    }
    if (snapshot->term == 0 || snapshot->term > message->term) {
        return wrong_number("last_term", snapshot->term, err);
    }
    if (snapshot->members_index == 0 || snapshot->members_index > snapshot->index) {
        return wrong_number("members_index", snapshot->members_index, err);
    }
    return ps_quorum_members_check(&snapshot->members, err);
}

static psd_status_t check(const ps_quorum_message_t *message, psd_error_t *err)
{
    psd_status_t rc = check_head(message, err);

    if (rc != PSD_OK) {
        return rc;
    }
    switch ((int)message->kind) {
    case PS_QUORUM_VOTE:
        return check_vote(message, err);
    case PS_QUORUM_VOTED:
        return message->for_term == 0 || message->for_term > PS_QUORUM_NUMBER_MAX
                   ? wrong_number("for_term", message->for_term, err)
                   : PSD_OK;
    case PS_QUORUM_APPEND:
        return check_append(message, err);
    case PS_QUORUM_APPENDED:
        return message->last_index > PS_QUORUM_NUMBER_MAX ||
                       (message->rejected > 0 && message->last_index >= message->rejected)
                   ? wrong_number("last_index", message->last_index, err)
                   : PSD_OK;
    case PS_QUORUM_SNAPSHOT:
        return check_snapshot(message, err);
    default:
        return check_last(message, false, err);
    }
}

static psd_status_t decode(ps_cursor_t *cursor, ps_quorum_message_t *message, psd_error_t *err)
{
    uint32_t magic = ps_cursor_u32(cursor);
    uint16_t format = ps_cursor_u16(cursor);
    uint8_t kind = ps_cursor_u8(cursor);
    uint8_t zero = ps_cursor_u8(cursor);
    psd_status_t rc = PSD_OK;

    if (cursor->failed || magic != MAGIC) {
        return psd_error_set(err, PSD_PROTO, "it begins with other bytes");
    }
    if (format != PS_QUORUM_FORMAT) {
        return psd_error_set(err, PSD_VERSION, "format is %u, this psd's is %d", format,
                             PS_QUORUM_FORMAT);
    }
    if (row_of((ps_quorum_message_kind_t)kind) == 0 || zero != 0) {
        return psd_error_set(err, PSD_PROTO, "kind is %u, %u", kind, zero);
    }
    message->kind = (ps_quorum_message_kind_t)kind;
    rc = ps_shape_decode(&head_shape, cursor, message, err);
    if (rc == PSD_OK) {
        rc = ps_shape_decode(&messages[kind].shape, cursor, message, err);
    }
    if (rc == PSD_OK && !ps_cursor_is_done(cursor)) {
        rc = psd_error_set(err, PSD_PROTO, "%zu bytes follow it", cursor->rest.size);
    }
    return rc == PSD_OK ? check(message, err) : rc;
}

psd_status_t ps_quorum_message_decode(ps_bytes_t bytes, ps_quorum_message_t *ret_message,
                                      psd_error_t *err)
{
    ps_quorum_message_t message = {0};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    psd_status_t rc = decode(&cursor, &message, err);

    if (rc != PSD_OK) {
        ps_quorum_message_done(&message);
        return psd_error_wrap(err, rc, "message of %zu bytes between members", bytes.size);
    }
    *ret_message = message;
    return PSD_OK;
}
