/* SPDX-License-Identifier: Apache-2.0 */
/* Fields as words, spellings and bytes. */
#include "protocol/registry/field.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/core/outbox.h"
#include "protocol/facts/copies.h"
#include "protocol/facts/job.h"
#include "protocol/facts/table_filter.h"
#include "protocol/facts/work.h"
#include "protocol/trust/trust.h"

/* "list:" and the longest boundaries, each with a comma. */
#define PARTITION_BY_MAX (8 + (size_t)PS_TABLE_PARTITIONS_MAX * 21)

/* ---- words ---- */

static const char *node_state_name(int value)
{
    return value == 0 ? "up" : value == 1 ? "draining" : "?";
}

static const char *work_kind_name(int value)
{
    static const char *const names[] = {"?", "given", "done", "was_done", "was_last"};

    return value > 0 && value < (int)(sizeof names / sizeof *names) ? names[value] : "?";
}

static const char *report_kind_name(int value)
{
    static const char *const names[] = {"?",        "position",  "fenced", "slow",
                                        "diverged", "caught_up", "partial"};

    return value > 0 && value < (int)(sizeof names / sizeof *names) ? names[value] : "?";
}

static const char *word_of(ps_field_type_t type, int value)
{
    switch ((int)type) {
    case PS_AS_TYPE:
        return ps_type_name((ps_type_t)value);
    case PS_AS_ROW_FORMAT:
        return ps_row_format_name((ps_row_format_t)value);
    case PS_AS_KEYS:
        return ps_keys_name((ps_keys_t)value);
    case PS_AS_ACK:
        return ps_ack_name((ps_ack_t)value);
    case PS_AS_COMBINE:
        return ps_combine_name((ps_combine_t)value);
    case PS_AS_COPY_STATE:
        return ps_copy_state_name((ps_copy_state_t)value);
    case PS_AS_WORKER_STATE:
        return ps_worker_state_name((ps_worker_state_t)value);
    case PS_AS_NODE_STATE:
        return node_state_name(value);
    case PS_AS_REPORT_KIND:
        return report_kind_name(value);
    case PS_AS_STATUS:
        return psd_status_name((psd_status_t)value);
    case PS_AS_WORK_KIND:
        return work_kind_name(value);
    case PS_AS_ROLE:
        return ps_role_word((ps_role_t)value);
    default:
        return "?";
    }
}

bool ps_field_is_word(const ps_field_t *self)
{
    return self->type >= PS_AS_TYPE && self->type <= PS_AS_ROLE;
}

/* Words lie in an enum, but for one that is a bool. */
static int word_value(const ps_field_t *self, const void *value)
{
    const uint8_t *at = (const uint8_t *)value + self->at;
    int number = 0;

    if (self->size == sizeof number) {
        memcpy(&number, at, sizeof number);
    } else {
        number = *at;
    }
    return number;
}

static void set_word_value(const ps_field_t *self, void *value, int number)
{
    uint8_t *at = (uint8_t *)value + self->at;

    if (self->size == sizeof number) {
        memcpy(at, &number, sizeof number);
    } else {
        *at = (uint8_t)number;
    }
}

const char *ps_field_word(const ps_field_t *self, const void *value)
{
    return word_of(self->type, word_value(self, value));
}

bool ps_field_set_word(const ps_field_t *self, void *value, const char *word)
{
    for (int number = 0; number < 8; number++) {
        const char *name = word_of(self->type, number);

        if (strcmp(name, "?") != 0 && strcmp(name, word) == 0) {
            set_word_value(self, value, number);
            return true;
        }
    }
    return false;
}

/* ---- spellings ---- */

bool ps_field_is_spelling(const ps_field_t *self)
{
    return self->type >= PS_AS_UPDATER;
}

bool ps_field_spell(const ps_field_t *self, const void *value, ps_buffer_t *text)
{
    const void *at = (const uint8_t *)value + self->at;
    char spelled[PS_SPEC_TEXT_SIZE] = "";

    switch ((int)self->type) {
    case PS_AS_PARTITION_BY:
        return ps_partition_by_format(at, text);
    case PS_AS_UPDATER:
        ps_updater_spec_format(at, spelled);
        break;
    case PS_AS_INIT:
        ps_init_spec_format(at, spelled);
        break;
    default:
        memcpy(spelled, ((const ps_table_spec_t *)at)->filter, PS_TABLE_FILTER_SIZE);
        break;
    }
    return ps_buffer_append(text, spelled, strlen(spelled));
}

size_t ps_field_spelling_max(const ps_field_t *self)
{
    return self->type == PS_AS_PARTITION_BY ? PARTITION_BY_MAX
           : self->type == PS_AS_FILTER     ? PS_TABLE_FILTER_SIZE
                                            : PS_SPEC_TEXT_SIZE;
}

psd_status_t ps_field_read_spelling(const ps_field_t *self, void *value, const char *text,
                                    psd_error_t *err)
{
    void *at = (uint8_t *)value + self->at;

    switch ((int)self->type) {
    case PS_AS_PARTITION_BY:
        return ps_partition_by_parse(text, at, err);
    case PS_AS_UPDATER:
        return ps_updater_spec_parse(text, at, err);
    case PS_AS_INIT:
        return ps_init_spec_parse(text, at, err);
    default:
        return ps_table_filter_set(at, text, err);
    }
}

/* ---- bytes ---- */

static size_t count_of(const ps_field_t *self, const void *value)
{
    const uint8_t *at = (const uint8_t *)value + self->count_at;
    size_t count = 0;
    uint32_t small = 0;

    if (self->count_size == sizeof count) {
        memcpy(&count, at, sizeof count);
        return count;
    }
    memcpy(&small, at, sizeof small);
    return small;
}

static void set_count(const ps_field_t *self, void *value, uint32_t count)
{
    uint8_t *at = (uint8_t *)value + self->count_at;
    size_t wide = count;

    if (self->count_size == sizeof wide) {
        memcpy(at, &wide, sizeof wide);
    } else {
        memcpy(at, &count, sizeof count);
    }
}

/* Where the values of a list or array begin. */
static uint8_t *items_of(const ps_field_t *self, const void *value)
{
    uint8_t *at = (uint8_t *)(uintptr_t)value + self->at;
    uint8_t *items = NULL;

    if (self->type == PS_AS_ARRAY) {
        return at;
    }
    memcpy(&items, at, sizeof items);
    return items;
}

static bool encode_items(const ps_field_t *self, const void *value, ps_buffer_t *buffer)
{
    size_t count = count_of(self, value);
    const uint8_t *items = items_of(self, value);
    bool ok = ps_buffer_u32(buffer, (uint32_t)count);

    for (size_t i = 0; ok && i < count; i++) {
        ok = ps_shape_encode(self->of, items + i * self->of->size, buffer);
    }
    return ok;
}

static bool encode_spelling(const ps_field_t *self, const void *value, ps_buffer_t *buffer)
{
    size_t at = buffer->size;

    if (!ps_buffer_u32(buffer, 0) || !ps_field_spell(self, value, buffer)) {
        return false;
    }
    ps_store_u32(buffer->data + at, (uint32_t)(buffer->size - at - sizeof(uint32_t)));
    return true;
}

static bool encode_bytes(const void *at, ps_buffer_t *buffer)
{
    const ps_buffer_t *bytes = at;

    return ps_buffer_u32(buffer, (uint32_t)bytes->size) &&
           ps_buffer_append(buffer, bytes->data, bytes->size);
}

static bool encode_field(const ps_field_t *self, const void *value, ps_buffer_t *buffer)
{
    const uint8_t *at = (const uint8_t *)value + self->at;
    size_t size = 0;

    switch ((int)self->type) {
    case PS_AS_U32:
    case PS_AS_U64:
    case PS_AS_I32:
    case PS_AS_ID:
        return ps_buffer_append(buffer, at, self->size); /* little-endian: cursor.h */
    case PS_AS_BOOL:
        return ps_buffer_u8(buffer, *at);
    case PS_AS_TEXT:
        size = strnlen((const char *)at, self->size - 1);
        return ps_buffer_u16(buffer, (uint16_t)size) && ps_buffer_append(buffer, at, size);
    case PS_AS_BYTES:
        return encode_bytes(at, buffer);
    case PS_AS_LIST:
    case PS_AS_ARRAY:
        return encode_items(self, value, buffer);
    default:
        return ps_field_is_word(self) ? ps_buffer_u8(buffer, (uint8_t)word_value(self, value))
                                      : encode_spelling(self, value, buffer);
    }
}

bool ps_shape_encode(const ps_field_shape_t *self, const void *value, ps_buffer_t *buffer)
{
    bool ok = true;

    for (size_t i = 0; ok && i < self->n; i++) {
        ok = encode_field(&self->fields[i], value, buffer);
    }
    return ok;
}

static psd_status_t wrong(const ps_field_t *self, psd_error_t *err)
{
    return psd_error_set(err, PSD_PROTO, "%s is cut off, or not of its type or range", self->name);
}

static psd_status_t decode_text(const ps_field_t *self, ps_bytes_t text, uint8_t *at,
                                psd_error_t *err)
{
    if (text.size >= self->size || (text.size > 0 && memchr(text.data, 0, text.size) != NULL)) {
        return wrong(self, err);
    }
    if (text.size > 0) {
        memcpy(at, text.data, text.size);
    }
    return PSD_OK;
}

static psd_status_t decode_bytes(const ps_field_t *self, ps_bytes_t bytes, void *at,
                                 psd_error_t *err)
{
    return ps_buffer_append(at, bytes.data, bytes.size)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for %s", self->name);
}

static psd_status_t decode_spelling(const ps_field_t *self, ps_cursor_t *cursor, void *value,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    size_t size = ps_cursor_u32(cursor);
    ps_bytes_t bytes = ps_cursor_take(cursor, size);
    psd_status_t rc = PSD_OK;

    if (cursor->failed || size > ps_field_spelling_max(self) ||
        (size > 0 && memchr(bytes.data, 0, size) != NULL)) {
        return wrong(self, err);
    }
    if (why == NULL || !ps_buffer_append(&text, bytes.data, size) ||
        !ps_buffer_append(&text, "", 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", self->name);
    }
    rc = ps_field_read_spelling(self, value, (const char *)text.data, why);
    if (rc != PSD_OK) {
        rc = psd_error_set(err, rc == PSD_NOMEM ? rc : PSD_PROTO, "%s", psd_error_text(why));
    }
    return rc;
}

/* Bytes of the shortest value. */
static size_t least_of(const ps_field_shape_t *self)
{
    size_t least = 0;

    for (size_t i = 0; i < self->n; i++) {
        const ps_field_t *field = &self->fields[i];

        switch ((int)field->type) {
        case PS_AS_U32:
        case PS_AS_U64:
        case PS_AS_I32:
        case PS_AS_ID:
            least += field->size;
            break;
        case PS_AS_TEXT:
            least += sizeof(uint16_t);
            break;
        case PS_AS_BOOL:
            least++;
            break;
        default:
            least += ps_field_is_word(field) ? 1 : sizeof(uint32_t);
            break;
        }
    }
    return least;
}

static psd_status_t decode_items(const ps_field_t *self, ps_cursor_t *cursor, void *value,
                                 psd_error_t *err)
{
    uint32_t count = ps_cursor_u32(cursor);
    uint8_t *items = NULL;
    psd_status_t rc = PSD_OK;

    if (cursor->failed || count > self->max || count > cursor->rest.size / least_of(self->of)) {
        return wrong(self, err);
    }
    if (self->type == PS_AS_LIST && count > 0) {
        items = ps_alloc(count, self->of->size);
        if (items == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for %s", self->name);
        }
        memcpy((uint8_t *)value + self->at, &items, sizeof items);
    }
    set_count(self, value, count);
    items = items_of(self, value);
    for (uint32_t i = 0; rc == PSD_OK && i < count; i++) {
        rc = ps_shape_decode(self->of, cursor, items + i * self->of->size, err);
    }
    return rc;
}

static psd_status_t decode_word(const ps_field_t *self, uint8_t number, void *value,
                                psd_error_t *err)
{
    if (strcmp(word_of(self->type, number), "?") == 0) {
        return wrong(self, err);
    }
    set_word_value(self, value, number);
    return PSD_OK;
}

static psd_status_t decode_field(const ps_field_t *self, ps_cursor_t *cursor, void *value,
                                 psd_error_t *err)
{
    uint8_t *at = (uint8_t *)value + self->at;
    uint8_t byte = 0;
    psd_status_t rc = PSD_OK;

    switch ((int)self->type) {
    case PS_AS_U32:
    case PS_AS_U64:
    case PS_AS_I32:
    case PS_AS_ID:
        ps_cursor_copy(cursor, at, self->size);
        break;
    case PS_AS_BOOL:
        byte = ps_cursor_u8(cursor);
        *at = byte == 1 ? 1 : 0;
        rc = byte <= 1 ? PSD_OK : wrong(self, err);
        break;
    case PS_AS_TEXT:
        rc = decode_text(self, ps_cursor_take(cursor, ps_cursor_u16(cursor)), at, err);
        break;
    case PS_AS_BYTES:
        rc = decode_bytes(self, ps_cursor_take(cursor, ps_cursor_u32(cursor)), at, err);
        break;
    case PS_AS_LIST:
    case PS_AS_ARRAY:
        return decode_items(self, cursor, value, err);
    default:
        rc = ps_field_is_word(self) ? decode_word(self, ps_cursor_u8(cursor), value, err)
                                    : decode_spelling(self, cursor, value, err);
        break;
    }
    return rc == PSD_OK && cursor->failed ? wrong(self, err) : rc;
}

psd_status_t ps_shape_decode(const ps_field_shape_t *self, ps_cursor_t *cursor, void *value,
                             psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        rc = decode_field(&self->fields[i], cursor, value, err);
    }
    return rc;
}
