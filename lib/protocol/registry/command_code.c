/* SPDX-License-Identifier: Apache-2.0 */
/* Commands in bytes: tables made from registry_fields.def. */
#include "protocol/registry/command_code.h"

#include "base/alloc.h"
#include "protocol/registry/field.h"
#include "protocol/registry/registry_fields.def"

#define OLD_VERSION 2              /* of kinds before SETTING */
#define SETTING_VERSION 3          /* of those that came with settings of the cluster */
#define COMBINE_VERSION 4          /* of a table that has `combine`, and of what sets it */
#define PRINCIPAL_VERSION 5        /* of a principal with one key */
#define HOLD_VERSION 7             /* of wishes about members of the registry */
#define OLD_KEY_VERSION 8          /* of a principal with two keys */
#define MAGIC UINT32_C(0x6d437370) /* "psCm" in memory order */

static const ps_field_t shard_fields[] = {PS_SHARD_FIELDS(PS_FIELD_ROW, ps_route_t, )};
PS_FIELD_SHAPE(shard, ps_route_t)
static const ps_field_t copy_fields[] = {PS_FIELD_ROW(ps_copy_t, U64, incarnation, incarnation)
                                             PS_COPY_FIELDS(PS_FIELD_ROW, ps_copy_t, )};
PS_FIELD_SHAPE(copy, ps_copy_t)
static const ps_field_t copies_fields[] = {PS_COPIES_FIELDS(
    PS_FIELD_ROW, ps_copies_t, ) PS_ARRAY_ROW(ps_copies_t, copy, copies, at, n, PS_COPIES_MAX)};
PS_FIELD_SHAPE(copies, ps_copies_t)
static const ps_field_t change_fields[] = {
    PS_FIELD_ROW(ps_change_t, U32, table, table)
        PS_FIELD_ROW(ps_change_t, U32, partition, partition) PS_FIELD_ROW(
            ps_change_t, BOOL, rows_lost, rows_lost) PS_FIELD_ROW(ps_change_t, U64, prefer, prefer)
            PS_COPIES_FIELDS(PS_FIELD_ROW, ps_change_t, copies.)
                PS_ARRAY_ROW(ps_change_t, copy, copies, copies.at, copies.n, PS_COPIES_MAX)};
PS_FIELD_SHAPE(change, ps_change_t)
static const ps_field_t worker_fields[] = {PS_RANK_FIELDS(PS_FIELD_ROW, ps_worker_t, )};
PS_FIELD_SHAPE(worker, ps_worker_t)
static const ps_field_t hold_fields[] = {PS_FIELD_ROW(ps_work_hold_t, WORK_KIND, kind, kind)
                                             PS_HOLD_FIELDS(PS_FIELD_ROW, ps_work_hold_t, )};
PS_FIELD_SHAPE(hold, ps_work_hold_t)
static const ps_field_t slice_fields[] = {
    {.name = "slice", .type = PS_AS_U32, .size = sizeof(uint32_t)}};
PS_FIELD_SHAPE(slice, uint32_t)
static const ps_field_t resumed_fields[] = {
    PS_QUEUE_FIELDS(PS_FIELD_ROW, ps_work_resumed_t, )
        PS_LIST_ROW(ps_work_resumed_t, slice, done, done, n_done, PS_WORK_SLICES_MAX)};
PS_FIELD_SHAPE(resumed, ps_work_resumed_t)
static const ps_field_t rule_fields[] = {PS_RULE_FIELDS(PS_FIELD_ROW, ps_rule_t, )};
PS_FIELD_SHAPE(rule, ps_rule_t)
static const ps_field_t principal_fields[] = {
    PS_PRINCIPAL_FIELDS(PS_FIELD_ROW, ps_principal_t, )
        PS_ARRAY_ROW(ps_principal_t, rule, rules, rules, n_rules, PS_RULES_MAX)};
PS_FIELD_SHAPE(principal, ps_principal_t)

static const ps_field_t head_fields[] = {
    PS_FIELD_ROW(ps_command_t, U64, unix_ms, unix_ms) PS_FIELD_ROW(ps_command_t, U64, epoch, epoch)
        PS_FIELD_ROW(ps_command_t, U64, session, session)
            PS_FIELD_ROW(ps_command_t, U64, request, request)
                PS_FIELD_ROW(ps_command_t, U64, detail, detail)
                    PS_FIELD_ROW(ps_command_t, TEXT, text, text)};
PS_FIELD_SHAPE(head, ps_command_t)

/* The first row is of no command: one of them has no fields. */
#define COMMAND_FIELDS(NAME, number, word, event) \
    static const ps_field_t NAME##_fields[] = {   \
        PS_COMMAND_##NAME##_FIELDS(PS_FIELD_ROW, PS_LIST_ROW, PS_ARRAY_ROW, ps_command_t){0}};
PS_COMMAND_MAP(COMMAND_FIELDS)
#undef COMMAND_FIELDS

/* A table of an older psd, and one that combines each: without `combine`. */
static const ps_field_t old_table_fields[] = {
    PS_TABLE_FIRST_FIELDS(PS_FIELD_ROW, ps_command_t, table.)
        PS_TABLE_LAST_FIELDS(PS_FIELD_ROW, ps_command_t, table.) PS_LIST_ROW(
            ps_command_t, copies, copies, table.copies, table.spec.n_partitions, UINT32_MAX)};
PS_FIELD_SHAPE(old_table, ps_command_t)

/* A principal with one key: without the second one. */
static const ps_field_t one_key_fields[] = {
    PS_PRINCIPAL_FIRST_FIELDS(PS_FIELD_ROW, ps_principal_t, )
        PS_ARRAY_ROW(ps_principal_t, rule, rules, rules, n_rules, PS_RULES_MAX)};
PS_FIELD_SHAPE(one_key, ps_principal_t)
static const ps_field_t old_principal_fields[] = {
    PS_LIST_ROW(ps_command_t, one_key, principals, principals, n_principals, 1)};
PS_FIELD_SHAPE(old_principal, ps_command_t)

#define COMMAND_ROW(NAME, number, word, event)                          \
    [number] = {#word,                                                  \
                #event,                                                 \
                {.fields = NAME##_fields,                               \
                 .n = sizeof NAME##_fields / sizeof *NAME##_fields - 1, \
                 .size = sizeof(ps_command_t)}},
static const struct {
    const char *word;
    const char *event;
    ps_field_shape_t shape;
} commands[] = {[0] = {"?", "registry_changed", {0}}, PS_COMMAND_MAP(COMMAND_ROW)};
#undef COMMAND_ROW
#define N_COMMANDS (sizeof commands / sizeof *commands)

static size_t row_of(ps_command_kind_t kind)
{
    return (size_t)kind < N_COMMANDS && commands[kind].word != NULL ? (size_t)kind : 0;
}

const char *ps_command_name(ps_command_kind_t kind)
{
    return commands[row_of(kind)].word;
}

const char *ps_command_event(ps_command_kind_t kind)
{
    return commands[row_of(kind)].event;
}

/* The version with which the kind came, as it is now. */
static uint16_t version_of(ps_command_kind_t kind)
{
    switch ((int)kind) {
    case PS_COMMAND_TABLE: /* it has `combine` */
    case PS_COMMAND_SET:
        return COMBINE_VERSION;
    case PS_COMMAND_SETTING:
    case PS_COMMAND_MACHINE:
        return SETTING_VERSION;
    case PS_COMMAND_PRINCIPAL: /* it has `old_key` */
        return OLD_KEY_VERSION;
    case PS_COMMAND_HOLD:
        return HOLD_VERSION;
    default:
        return OLD_VERSION;
    }
}

static bool is_old_table(ps_command_kind_t kind, uint16_t version)
{
    return kind == PS_COMMAND_TABLE && version == OLD_VERSION;
}

static bool is_old_principal(ps_command_kind_t kind, uint16_t version)
{
    return kind == PS_COMMAND_PRINCIPAL && version == PRINCIPAL_VERSION;
}

static bool has_old_key(const ps_command_t *self)
{
    for (size_t i = 0; i < self->n_principals; i++) {
        if (self->principals[i].old_key[0] != '\0') {
            return true;
        }
    }
    return false;
}

/* A table that combines each needs no member that knows `combine`, nor a principal with one key
 * one that knows of two. */
static uint16_t version_for(const ps_command_t *self)
{
    if (self->kind == PS_COMMAND_TABLE && self->table.spec.combine == PS_COMBINE_EACH) {
        return OLD_VERSION;
    }
    if (self->kind == PS_COMMAND_PRINCIPAL && !has_old_key(self)) {
        return PRINCIPAL_VERSION;
    }
    return version_of(self->kind);
}

static const ps_field_shape_t *shape_of(ps_command_kind_t kind, uint16_t version)
{
    if (is_old_principal(kind, version)) {
        return &old_principal_shape;
    }
    return is_old_table(kind, version) ? &old_table_shape : &commands[row_of(kind)].shape;
}

bool ps_command_encode(const ps_command_t *self, ps_buffer_t *buffer)
{
    uint16_t version = version_for(self);

    return ps_buffer_u32(buffer, MAGIC) && ps_buffer_u16(buffer, version) &&
           ps_buffer_u8(buffer, (uint8_t)self->kind) && ps_buffer_u8(buffer, 0) &&
           ps_shape_encode(&head_shape, self, buffer) &&
           ps_shape_encode(shape_of(self->kind, version), self, buffer);
}

static psd_status_t check_version(ps_command_kind_t kind, uint16_t version, psd_error_t *err)
{
    return version == version_of(kind) || is_old_table(kind, version) ||
                   is_old_principal(kind, version)
               ? PSD_OK
               : psd_error_set(err, PSD_VERSION, "%s has version %u; this psd knows %u",
                               ps_command_name(kind), version, version_of(kind));
}

static psd_status_t decode_head(ps_cursor_t *cursor, ps_command_t *command, uint16_t *ret_version,
                                psd_error_t *err)
{
    uint32_t magic = ps_cursor_u32(cursor);
    uint16_t version = ps_cursor_u16(cursor);
    uint8_t kind = ps_cursor_u8(cursor);
    uint8_t zero = ps_cursor_u8(cursor);
    psd_status_t rc = PSD_OK;

    if (cursor->failed || magic != MAGIC) {
        return psd_error_set(err, PSD_PROTO, "it begins with other bytes");
    }
    if (version < OLD_VERSION || version > PS_COMMAND_VERSION) {
        return psd_error_set(err, PSD_VERSION, "version is %u; this psd knows %d..%d", version,
                             OLD_VERSION, PS_COMMAND_VERSION);
    }
    if (row_of((ps_command_kind_t)kind) == 0 || zero != 0) {
        return psd_error_set(err, PSD_PROTO, "kind is %u, %u", kind, zero);
    }
    rc = check_version((ps_command_kind_t)kind, version, err);
    if (rc != PSD_OK) {
        return rc;
    }
    command->kind = (ps_command_kind_t)kind;
    *ret_version = version;
    return ps_shape_decode(&head_shape, cursor, command, err);
}

psd_status_t ps_command_decode(ps_bytes_t bytes, ps_command_t *ret_command, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    uint16_t version = 0;
    psd_status_t rc = decode_head(&cursor, &command, &version, err);

    if (rc == PSD_OK) {
        if (is_old_table(command.kind, version)) {
            command.table.spec.combine = PS_COMBINE_EACH;
        }
        rc = ps_shape_decode(shape_of(command.kind, version), &cursor, &command, err);
    }
    if (rc == PSD_OK && !ps_cursor_is_done(&cursor)) {
        rc = psd_error_set(err, PSD_PROTO, "%zu bytes are left", cursor.rest.size);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "command of %zu bytes", bytes.size);
    }
    *ret_command = command; /* ownership moves to the caller */
    command = (ps_command_t){0};
    return PSD_OK;
}
