/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the bytes of a record; record_read.c reads them. */
#include "wire/records/record.h"

#include <assert.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "wire/records/record_fields.h"

static const uint8_t ZEROS[PS_RECORD_ALIGN];

const char *ps_record_kind_name(ps_record_kind_t kind)
{
    switch (kind) {
    case PS_RECORD_PUSH:
        return "PUSH";
    case PS_RECORD_REFUSAL:
        return "REFUSAL";
    case PS_RECORD_MARK:
        return "MARK";
    case PS_RECORD_JOB:
        return "JOB";
    case PS_RECORD_FORGET:
        return "FORGET";
    case PS_RECORD_EPOCH:
        return "EPOCH";
    case PS_RECORD_ANEW:
        return "ANEW";
    case PS_RECORD_ROWS:
        return "ROWS";
    case PS_RECORD_LEAVE:
        return "LEAVE";
    case PS_RECORD_AHEAD:
        return "AHEAD";
    case PS_RECORD_RETIRE:
        return "RETIRE";
    case PS_RECORD_SET:
        return "SET";
    case PS_RECORD_BUNDLE:
        return "BUNDLE";
    }
    return "?";
}

static size_t values_size(const ps_payload_t *payload)
{
    size_t size = 0;

    for (size_t i = 0; payload != NULL && i < payload->n_spans; i++) {
        size += payload->spans[i].size;
    }
    return size;
}

size_t ps_record_size(const ps_record_t *self, const ps_payload_t *payload)
{
    size_t values = values_size(payload);
    size_t keys = payload != NULL ? payload->keys.size : 0;
    size_t index = payload != NULL ? payload->index.size : 0;
    size_t size = PS_RECORD_HEAD;

    (void)self;
    /* Each of them lies in memory: the sum cannot overflow. */
    size += keys + ps_record_padding(keys) + index + ps_record_padding(index);
    size += values + ps_record_padding(values);
    return size <= PS_RECORD_MAX ? size : 0;
}

static void write_head(const ps_record_t *self, size_t size, size_t values, uint8_t *to)
{
    uint8_t marks = self->marks ? PS_RECORD_MARKS : 0;
    ps_record_fields_t fields = {.kind = (uint8_t)self->kind | marks,
                                 .status = (uint16_t)self->status,
                                 .lsn = self->lsn,
                                 .epoch = self->epoch,
                                 .session = self->session,
                                 .seq = self->seq,
                                 .clock = self->clock,
                                 .table = self->table,
                                 .partition = self->partition,
                                 .job = self->job,
                                 .worker = self->worker,
                                 .member = self->member,
                                 .joins = self->joins,
                                 .values_size = (uint32_t)values};

    if (self->kind == PS_RECORD_AHEAD) {
        fields.n_rows = self->slice.n_rows;
        fields.first_row = self->slice.first_row;
    }
    if (self->kind == PS_RECORD_PUSH) {
        fields.op = self->op.op;
        fields.other = self->op.other;
        fields.operand = self->op.operand;
        fields.rows = (uint8_t)self->slice.rows;
        fields.layout = (uint8_t)self->slice.layout;
        fields.cols = (uint8_t)self->slice.cols;
        fields.type = (uint8_t)self->slice.type;
        fields.n_rows = self->slice.n_rows;
        fields.first_row = self->slice.first_row;
        fields.n_values = self->slice.n_values;
        fields.first_col = self->slice.first_col;
        fields.n_cols = self->slice.n_cols;
    }
    ps_store_u32(to, (uint32_t)size);
    ps_store_u32(to + PS_RECORD_AT_MAGIC, PS_RECORD_MAGIC);
    ps_store_u64(to + PS_RECORD_AT_CHECKSUM, 0);
#define STORE(type, name) ps_store_##type(to + PS_RECORD_PLACE_OF(name), fields.name);
    PS_RECORD_FIELDS(STORE)
#undef STORE
}

/* Appends a part and its zero padding; returns the end. */
static uint8_t *copy_part(uint8_t *to, const ps_bytes_t *spans, size_t n)
{
    size_t size = 0;
    size_t zeros = 0;

    for (size_t i = 0; i < n; i++) {
        if (spans[i].size > 0) {
            memcpy(to + size, spans[i].data, spans[i].size);
        }
        size += spans[i].size;
    }
    zeros = ps_record_padding(size);
    memset(to + size, 0, zeros);
    return to + size + zeros;
}

void ps_record_write(const ps_record_t *self, const ps_payload_t *payload, uint8_t *to)
{
    size_t size = ps_record_size(self, payload);
    uint8_t *at = to + PS_RECORD_HEAD;

    assert(size > 0);
    write_head(self, size, values_size(payload), to);
    if (payload != NULL) {
        at = copy_part(at, &payload->keys, 1);
        at = copy_part(at, &payload->index, 1);
        at = copy_part(at, payload->spans, payload->n_spans);
    }
    assert(at == to + size);
    ps_store_u64(to + PS_RECORD_AT_CHECKSUM, ps_hash_bytes(to, size, 0));
}

/* Lists a part and its zero padding; returns the number of spans. */
static size_t list_part(const ps_bytes_t *from, size_t n_from, ps_bytes_t *ret_spans)
{
    size_t size = 0;
    size_t n = 0;

    for (size_t i = 0; i < n_from; i++) {
        if (from[i].size > 0) {
            ret_spans[n++] = from[i];
            size += from[i].size;
        }
    }
    if (ps_record_padding(size) > 0) {
        ret_spans[n++] = (ps_bytes_t){ZEROS, ps_record_padding(size)};
    }
    return n;
}

size_t ps_record_head_write(const ps_record_t *self, const ps_payload_t *payload,
                            uint8_t ret_head[PS_RECORD_HEAD], ps_bytes_t *ret_spans)
{
    size_t size = ps_record_size(self, payload);
    size_t n = 1;

    assert(size > 0 && (payload == NULL || !payload->shared));
    write_head(self, size, values_size(payload), ret_head);
    ret_spans[0] = (ps_bytes_t){ret_head, PS_RECORD_HEAD};
    if (payload != NULL) {
        n += list_part(&payload->keys, 1, ret_spans + n);
        n += list_part(&payload->index, 1, ret_spans + n);
        n += list_part(payload->spans, payload->n_spans, ret_spans + n);
    }
    ps_store_u64(ret_head + PS_RECORD_AT_CHECKSUM, ps_hash_spans(ret_spans, n));
    return n;
}
