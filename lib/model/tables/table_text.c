/* SPDX-License-Identifier: Apache-2.0 */
/* The words of row format, keys, ack level and partition. */
#include "model/tables/table.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/tables/words.h"

static const ps_word_t row_formats[] = {
    {"dense", PS_ROW_DENSE}, {"sparse", PS_ROW_SPARSE}, {"auto", PS_ROW_AUTO}};
static const ps_word_t keys_words[] = {{"range", PS_KEYS_RANGE}, {"hash", PS_KEYS_HASH}};
static const ps_word_t acks[] = {
    {"memory", PS_ACK_MEMORY}, {"replica", PS_ACK_REPLICA}, {"disk", PS_ACK_DISK}};
static const ps_word_t combines[] = {{"each", PS_COMBINE_EACH},
                                     {"clock-sum", PS_COMBINE_CLOCK_SUM},
                                     {"clock-mean", PS_COMBINE_CLOCK_MEAN}};

psd_status_t ps_row_format_parse(const char *text, ps_row_format_t *ret, psd_error_t *err)
{
    int value = ps_word_find(PS_WORDS(row_formats), text, strlen(text));

    if (value == 0) {
        return ps_word_unknown("row format", text, "dense, sparse or auto", err);
    }
    *ret = (ps_row_format_t)value;
    return PSD_OK;
}

psd_status_t ps_keys_parse(const char *text, ps_keys_t *ret, psd_error_t *err)
{
    int value = ps_word_find(PS_WORDS(keys_words), text, strlen(text));

    if (value == 0) {
        return ps_word_unknown("keys", text, "range or hash", err);
    }
    *ret = (ps_keys_t)value;
    return PSD_OK;
}

psd_status_t ps_ack_parse(const char *text, ps_ack_t *ret, psd_error_t *err)
{
    int value = ps_word_find(PS_WORDS(acks), text, strlen(text));

    if (value == 0) {
        return ps_word_unknown("ack level", text, "memory, replica or disk", err);
    }
    *ret = (ps_ack_t)value;
    return PSD_OK;
}

psd_status_t ps_combine_parse(const char *text, ps_combine_t *ret, psd_error_t *err)
{
    int value = ps_word_find(PS_WORDS(combines), text, strlen(text));

    if (value == 0) {
        return ps_word_unknown("combine", text, "each, clock-sum or clock-mean", err);
    }
    *ret = (ps_combine_t)value;
    return PSD_OK;
}

static psd_status_t read_boundaries(const char *text, uint64_t *ret_rows, uint32_t n,
                                    psd_error_t *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *shown = text; /* a text that is too long for a part */
        char part[PS_NUMBER_SIZE] = {0};

        if (ps_word_take(&text, ',', part)) {
            if (ps_text_u64(part, &ret_rows[i])) {
                continue;
            }
            shown = part;
        }
        return psd_error_set(err, PSD_INVALID,
                             "boundary %" PRIu32 " of the partition list is "
                             "\"%.30s\"; rows 1..%" PRIu64 " are allowed",
                             i, shown, UINT64_MAX);
    }
    return PSD_OK;
}

static psd_status_t parse_list(const char *text, ps_table_spec_t *spec, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint64_t *rows = NULL;
    size_t n = 1;
    psd_status_t rc = PSD_OK;

    for (const char *at = text; *at != '\0'; at++) {
        n += *at == ',' ? 1 : 0;
    }
    if (n >= PS_TABLE_PARTITIONS_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "partition list has %zu boundaries; 1..%" PRIu32 " are allowed", n,
                             PS_TABLE_PARTITIONS_MAX - 1);
    }
    rows = ps_alloc_raw(n, sizeof *rows);
    if (rows == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for boundaries");
    }
    rc = read_boundaries(text, rows, (uint32_t)n, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_free(spec->boundaries);
    spec->partition_by = PS_PARTITION_BY_LIST;
    spec->boundaries = rows;
    spec->n_boundaries = (uint32_t)n;
    rows = NULL;
    return PSD_OK;
}

psd_status_t ps_partition_by_parse(const char *text, ps_table_spec_t *spec, psd_error_t *err)
{
    ps_partition_by_t by = PS_PARTITION_BY_RANGE;

    if (strncmp(text, "list:", 5) == 0) {
        return parse_list(text + 5, spec, err);
    }
    if (strcmp(text, "hash") == 0) {
        by = PS_PARTITION_BY_HASH;
    } else if (strcmp(text, "range") != 0) {
        return ps_word_unknown("partition", text, "range, hash or list:ROW,ROW,...", err);
    }
    ps_free(spec->boundaries);
    spec->partition_by = by;
    spec->boundaries = NULL;
    spec->n_boundaries = 0;
    return PSD_OK;
}

const char *ps_row_format_name(ps_row_format_t value)
{
    return ps_word_of(PS_WORDS(row_formats), (int)value);
}

const char *ps_keys_name(ps_keys_t value)
{
    return ps_word_of(PS_WORDS(keys_words), (int)value);
}

const char *ps_ack_name(ps_ack_t value)
{
    return ps_word_of(PS_WORDS(acks), (int)value);
}

const char *ps_combine_name(ps_combine_t value)
{
    return ps_word_of(PS_WORDS(combines), (int)value);
}

bool ps_partition_by_format(const ps_table_spec_t *self, ps_buffer_t *buffer)
{
    size_t size = buffer->size;
    bool ok = true;

    if (self->partition_by != PS_PARTITION_BY_LIST) {
        return ps_buffer_print(buffer, "%s",
                               self->partition_by == PS_PARTITION_BY_RANGE  ? "range"
                               : self->partition_by == PS_PARTITION_BY_HASH ? "hash"
                                                                            : "?");
    }
    ok = ps_buffer_print(buffer, "list:");
    for (uint32_t i = 0; ok && i < self->n_boundaries; i++) {
        ok = ps_buffer_print(buffer, "%s%" PRIu64, i > 0 ? "," : "", self->boundaries[i]);
    }
    if (!ok) {
        buffer->size = size; /* all of it or nothing */
    }
    return ok;
}
