/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of a record and trusts none of them. A PUSH record allows the
 * same as a PUSH message, so the same code checks its slice. */
#include "wire/records/record.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "wire/messages/message_body.h"
#include "wire/messages/message_check.h"
#include "wire/records/record_fields.h"

static const uint8_t ZEROS[PS_RECORD_ALIGN];

static psd_status_t damaged(psd_error_t *err, size_t at, const char *what, uint64_t value,
                            const char *allowed)
{
    return psd_error_set(err, PSD_DAMAGED, "byte %zu: %s is %" PRIu64 "; allowed: %s", at, what,
                         value, allowed);
}

size_t ps_record_claims(ps_bytes_t bytes)
{
    size_t size = bytes.size >= 8 ? ps_load_u32(bytes.data) : 0;

    return size >= PS_RECORD_HEAD && size % PS_RECORD_ALIGN == 0 &&
                   ps_load_u32(bytes.data + PS_RECORD_AT_MAGIC) == PS_RECORD_MAGIC
               ? size
               : 0;
}

/* Checks the head and the checksum over all bytes; then every byte is as
 * written. */
static psd_status_t check_whole(ps_bytes_t bytes, size_t *ret_size, psd_error_t *err)
{
    uint32_t magic = 0;
    size_t size = 0;
    uint64_t sum = 0;

    if (bytes.size < PS_RECORD_HEAD) {
        return psd_error_set(err, PSD_DAMAGED,
                             "byte %zu: the bytes end; a record's head needs "
                             "%d",
                             bytes.size, PS_RECORD_HEAD);
    }
    size = ps_load_u32(bytes.data);
    magic = ps_load_u32(bytes.data + PS_RECORD_AT_MAGIC);
    if (magic != PS_RECORD_MAGIC) {
        return psd_error_set(err, PSD_DAMAGED,
                             "byte %d: magic is 0x%08" PRIx32 "; allowed: 0x%08" PRIx32,
                             PS_RECORD_AT_MAGIC, magic, PS_RECORD_MAGIC);
    }
    if (size < PS_RECORD_HEAD || size % PS_RECORD_ALIGN != 0) {
        return damaged(err, 0, "size", size, "multiples of 8, 136 at least");
    }
    if (size > bytes.size) {
        return psd_error_set(err, PSD_DAMAGED, "byte %zu: the bytes end; size is %zu", bytes.size,
                             size);
    }
    sum = ps_hash_spans(
        (const ps_bytes_t[]){
            {bytes.data, PS_RECORD_AT_CHECKSUM},
            {ZEROS, sizeof ZEROS},
            {bytes.data + PS_RECORD_AT_FIELDS, size - PS_RECORD_AT_FIELDS},
        },
        3);
    if (sum != ps_load_u64(bytes.data + PS_RECORD_AT_CHECKSUM)) {
        return psd_error_set(
            err, PSD_DAMAGED,
            "byte %d: checksum is 0x%016" PRIx64 "; the %zu bytes give 0x%016" PRIx64,
            PS_RECORD_AT_CHECKSUM, ps_load_u64(bytes.data + PS_RECORD_AT_CHECKSUM), size, sum);
    }
    *ret_size = size;
    return PSD_OK;
}

static bool is_status(uint16_t number)
{
#define KNOWN(name, number, ...) case number:
    switch (number) {
        PSD_STATUS_MAP(KNOWN)
        return true;
    default:
        return false;
    }
#undef KNOWN
}

/* The fields that only PUSH uses. */
static psd_status_t check_unused(const ps_record_fields_t *fields, psd_error_t *err)
{
#define UNUSED(name)                                                       \
    if (fields->name != 0) {                                               \
        return damaged(err, PS_RECORD_PLACE_OF(name), #name, fields->name, \
                       "0 as kind "                                        \
                       "is not "                                           \
                       "PUSH");                                            \
    }
    UNUSED(op)
    UNUSED(rows)
    UNUSED(layout)
    UNUSED(cols)
    UNUSED(type)
    UNUSED(operand)
    if (fields->kind != PS_RECORD_AHEAD) {
        UNUSED(n_rows)
        UNUSED(first_row)
    }
    UNUSED(n_values)
    UNUSED(other)
    UNUSED(first_col)
    UNUSED(n_cols)
#undef UNUSED
    return PSD_OK;
}

/* Takes the bit off the kind, where it has one. */
static psd_status_t split_kind(ps_record_fields_t *fields, bool *ret_marks, psd_error_t *err)
{
    uint8_t kind = fields->kind & (uint8_t)~PS_RECORD_MARKS;

    *ret_marks = kind != fields->kind;
    if (*ret_marks && kind != PS_RECORD_PUSH && kind != PS_RECORD_REFUSAL &&
        kind != PS_RECORD_AHEAD) {
        return damaged(err, PS_RECORD_PLACE_OF(kind), "kind", fields->kind,
                       "1..10, and 128 more of 1, 2 and 10");
    }
    fields->kind = kind;
    return PSD_OK;
}

static psd_status_t check_kind(const ps_record_fields_t *fields, psd_error_t *err)
{
    bool refusal = fields->kind == PS_RECORD_REFUSAL;

    if (fields->kind < PS_RECORD_PUSH || fields->kind > PS_RECORD_BUNDLE) {
        return damaged(err, PS_RECORD_PLACE_OF(kind), "kind", fields->kind, "1..13");
    }
    if (refusal ? fields->status == PSD_OK || !is_status(fields->status)
                : fields->status != PSD_OK) {
        return damaged(err, PS_RECORD_PLACE_OF(status), "status", fields->status,
                       refusal ? "the numbers of the status list but 0"
                               : "0 as kind is not REFUSAL");
    }
    if (fields->lsn == 0 && fields->kind != PS_RECORD_ANEW && fields->kind != PS_RECORD_LEAVE) {
        return damaged(err, PS_RECORD_PLACE_OF(lsn), "lsn", 0, "1 and more");
    }
    if (fields->kind != PS_RECORD_PUSH) {
        return check_unused(fields, err);
    }
    if (fields->rows > PS_ROWS_RANGE) {
        return damaged(err, PS_RECORD_PLACE_OF(rows), "rows", fields->rows, "0..1");
    }
    return PSD_OK;
}

/* The PUSH message that says the same. */
static void as_message(const ps_record_fields_t *fields, ps_message_t *ret)
{
    memset(ret, 0, sizeof *ret);
    ret->kind = PS_KIND_PUSH;
    ret->push.seq = fields->seq;
    ret->push.op = fields->op;
    ret->push.other = fields->other;
    ret->push.operand = fields->operand;
#define COPY(type, name) ret->push.name = fields->name;
    PS_SLICE_FIELDS(COPY)
#undef COPY
}

/* Bytes of the three parts. */
typedef struct sizes {
    uint64_t keys;
    uint64_t index;
    uint64_t values;
} sizes_t;

static psd_status_t sizes_of(const ps_record_fields_t *fields, const ps_message_t *message,
                             sizes_t *ret, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    memset(ret, 0, sizeof *ret);
    if (fields->kind == PS_RECORD_PUSH) {
        rc = ps_message_check(message, err);
        if (rc == PSD_OK) {
            rc = ps_message_sizes(message, &ret->keys, &ret->index, &ret->values, err);
        }
        return rc;
    }
    if (fields->kind == PS_RECORD_REFUSAL || fields->kind == PS_RECORD_JOB ||
        fields->kind == PS_RECORD_ROWS || fields->kind == PS_RECORD_BUNDLE) {
        ret->values = fields->values_size;
    }
    return rc;
}

/* Cuts a part of need bytes and its zeros off the front of rest. */
static bool cut_part(ps_bytes_t *rest, uint64_t need, ps_bytes_t *ret)
{
    size_t size = (size_t)need;
    size_t zeros = 0;

    if (need > rest->size || ps_record_padding(size) > rest->size - size) {
        return false;
    }
    zeros = ps_record_padding(size);
    if (zeros > 0 && memcmp(rest->data + size, ZEROS, zeros) != 0) {
        return false;
    }
    *ret = (ps_bytes_t){size > 0 ? rest->data : NULL, size};
    rest->data += size + zeros;
    rest->size -= size + zeros;
    return true;
}

static psd_status_t cut_body(const ps_record_fields_t *fields, const sizes_t *sizes,
                             ps_bytes_t rest, ps_body_t *ret, psd_error_t *err)
{
    if (sizes->values != fields->values_size) {
        return psd_error_set(err, PSD_DAMAGED,
                             "byte %zu: values_size is %" PRIu32 "; %s needs %" PRIu64,
                             PS_RECORD_PLACE_OF(values_size), fields->values_size,
                             ps_record_kind_name(fields->kind), sizes->values);
    }
    if (!cut_part(&rest, sizes->keys, &ret->keys) || !cut_part(&rest, sizes->index, &ret->index) ||
        !cut_part(&rest, sizes->values, &ret->values) || rest.size != 0) {
        return psd_error_set(err, PSD_DAMAGED,
                             "byte %d: the parts are not %" PRIu64 ", %" PRIu64 " and %" PRIu64
                             " bytes with zeros between",
                             PS_RECORD_HEAD, sizes->keys, sizes->index, sizes->values);
    }
    return PSD_OK;
}

static psd_status_t read_body(const ps_record_fields_t *fields, ps_bytes_t rest, ps_body_t *ret,
                              psd_error_t *err)
{
    ps_message_t message;
    sizes_t sizes;
    psd_status_t rc = PSD_OK;

    as_message(fields, &message);
    rc = sizes_of(fields, &message, &sizes, err);
    if (rc == PSD_OK) {
        rc = cut_body(fields, &sizes, rest, ret, err);
    }
    if (rc == PSD_OK && fields->kind == PS_RECORD_PUSH) {
        rc = ps_message_check_index(&message, ret->index, err);
    }
    return rc;
}

static void to_record(const ps_record_fields_t *fields, bool marks, ps_record_t *ret)
{
    *ret = (ps_record_t){
        .kind = (ps_record_kind_t)fields->kind,
        .table = fields->table,
        .partition = fields->partition,
        .lsn = fields->lsn,
        .epoch = fields->epoch,
        .session = fields->session,
        .seq = fields->seq,
        .status = (psd_status_t)fields->status,
        .marks = marks,
        .job = fields->job,
        .worker = fields->worker,
        .member = fields->member,
        .joins = fields->joins,
        .clock = fields->clock,
        .op = {fields->op, fields->other, fields->operand},
        .slice = {.rows = (ps_rows_kind_t)fields->rows,
                  .layout = (ps_layout_t)fields->layout,
                  .cols = (ps_cols_kind_t)fields->cols,
                  .type = (ps_type_t)fields->type,
                  .n_rows = fields->n_rows,
                  .first_row = fields->first_row,
                  .first_col = fields->first_col,
                  .n_cols = fields->n_cols,
                  .n_values = fields->n_values},
    };
}

/* Says it in the words of the message's checks, as damage. */
static psd_status_t refuse_push(const ps_record_fields_t *fields, ps_bytes_t rest, psd_error_t *err)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    ps_body_t body = {0};

    psd_status_t rc = read_body(fields, rest, &body, why);

    assert(rc != PSD_OK);
    (void)rc;
    return psd_error_set(err, PSD_DAMAGED, "byte %d: %s", PS_RECORD_AT_FIELDS, psd_error_text(why));
}

psd_status_t ps_record_read(ps_bytes_t bytes, size_t *ret_size, ps_record_t *ret_record,
                            ps_body_t *ret_body, psd_error_t *err)
{
    ps_record_fields_t fields;
    ps_bytes_t rest = {NULL, 0};
    ps_body_t body = {0};
    size_t size = 0;
    bool marks = false;
    psd_status_t rc = check_whole(bytes, &size, err);

    if (rc != PSD_OK) {
        return rc;
    }
#define LOAD(type, name) fields.name = ps_load_##type(bytes.data + PS_RECORD_PLACE_OF(name));
    PS_RECORD_FIELDS(LOAD)
#undef LOAD
    rest = (ps_bytes_t){bytes.data + PS_RECORD_HEAD, size - PS_RECORD_HEAD};
    rc = split_kind(&fields, &marks, err);
    if (rc == PSD_OK) {
        rc = check_kind(&fields, err);
    }
    if (rc == PSD_OK && fields.kind == PS_RECORD_PUSH) {
        rc = read_body(&fields, rest, &body, NULL);
        if (rc != PSD_OK) {
            return refuse_push(&fields, rest, err);
        }
    } else if (rc == PSD_OK) {
        rc = read_body(&fields, rest, &body, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    to_record(&fields, marks, ret_record);
    *ret_size = size;
    *ret_body = body;
    return PSD_OK;
}
