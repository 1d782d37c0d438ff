/* SPDX-License-Identifier: Apache-2.0 */
/* Rows whose number only the server knew. */
#include "client/requests/result.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"

psd_status_t ps_result_new(ps_type_t type, bool sparse, size_t max_rows, psd_result_t **ret_result,
                           psd_error_t *err)
{
    psd_result_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a result");
    }
    self->value_size = ps_type_size(type);
    self->is_sparse = sparse;
    self->max_rows = max_rows;
    *ret_result = self;
    return PSD_OK;
}

void psd_result_destroy(psd_result_t **self_p)
{
    psd_result_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    ps_free(self->rows);
    ps_buffer_done(&self->values);
    ps_buffer_done(&self->cols);
    ps_free(self);
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the rows fetched");
}

psd_status_t ps_result_add_row(psd_result_t *self, uint64_t key, size_t at, size_t n,
                               psd_error_t *err)
{
    if (!ps_grow(&self->rows, &self->capacity, self->n_rows + 1, sizeof *self->rows)) {
        return no_memory(err);
    }
    self->rows[self->n_rows++] = (ps_result_row_t){.key = key, .at = at, .n = n};
    return PSD_OK;
}

static bool append_values(psd_result_t *self, const ps_payload_t *payload)
{
    for (size_t i = 0; i < payload->n_spans; i++) {
        if (!ps_buffer_append(&self->values, payload->spans[i].data, payload->spans[i].size)) {
            return false;
        }
    }
    return true;
}

psd_status_t ps_result_add(psd_result_t *self, const ps_slice_t *slice, const ps_payload_t *payload,
                           const ps_slice_t *asked, const ps_payload_t *asked_payload)
{
    bool names_rows = slice->rows != PS_ROWS_ASKED;
    size_t at = self->values.size / self->value_size;
    const uint8_t *counts = NULL;
    size_t n_counts = (size_t)slice->n_rows * sizeof(uint32_t);

    if (slice->n_rows == 0 || payload == NULL) {
        return PSD_OK;
    }
    if (!append_values(self, payload)) {
        return PSD_NOMEM;
    }
    if (self->is_sparse) {
        counts = payload->index.data;
        if (!ps_buffer_append(&self->cols, counts + n_counts, payload->index.size - n_counts)) {
            return PSD_NOMEM;
        }
    }
    for (uint64_t i = 0; i < slice->n_rows; i++) {
        size_t n = counts == NULL ? slice->n_cols : ps_load_u32(counts + i * sizeof(uint32_t));
        uint64_t key =
            names_rows ? ps_slice_row(slice, payload, i) : ps_slice_row(asked, asked_payload, i);
        psd_status_t rc = ps_result_add_row(self, key, at, n, NULL);

        if (rc != PSD_OK) {
            return rc;
        }
        at += n;
    }
    return PSD_OK;
}

bool ps_result_is_full(const psd_result_t *self)
{
    return self->n_rows >= self->max_rows;
}

/* By key; parts of a row stay in the order in which they came to lie. */
static int compare(const void *left, const void *right)
{
    const ps_result_row_t *a = left;
    const ps_result_row_t *b = right;

    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return a->at < b->at ? -1 : a->at > b->at;
}

/* By key, then by the first column. */
typedef struct part {
    ps_result_row_t row;
    uint32_t first_col;
} part_t;

static int compare_parts(const void *left, const void *right)
{
    const part_t *a = left;
    const part_t *b = right;

    if (a->row.key != b->row.key) {
        return a->row.key < b->row.key ? -1 : 1;
    }
    return a->first_col < b->first_col ? -1 : a->first_col > b->first_col;
}

static bool append_part(psd_result_t *to, const psd_result_t *from, const part_t *part)
{
    size_t size = from->value_size;
    const ps_result_row_t *row = &part->row;

    if (row->n == 0) {
        return true;
    }
    return ps_buffer_append(&to->values, from->values.data + row->at * size, row->n * size) &&
           ps_buffer_append(&to->cols, from->cols.data + row->at * sizeof(uint32_t),
                            row->n * sizeof(uint32_t));
}

static part_t *make_parts(const psd_result_t *self)
{
    part_t *parts = ps_alloc_raw(self->n_rows, sizeof *parts);

    for (size_t i = 0; parts != NULL && i < self->n_rows; i++) {
        const ps_result_row_t *row = &self->rows[i];

        parts[i] = (part_t){.row = *row};
        if (row->n > 0) {
            parts[i].first_col = ps_load_u32(self->cols.data + row->at * sizeof(uint32_t));
        }
    }
    if (parts != NULL) {
        qsort(parts, self->n_rows, sizeof *parts, compare_parts);
    }
    return parts;
}

/* Rows whose columns came from several partitions. */
static psd_status_t merge_rows(psd_result_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) part_t *parts = make_parts(self);
    PSD_AUTO(psd_result_destroy) psd_result_t *merged = NULL;
    psd_result_t old = *self;
    psd_status_t rc = PSD_OK;

    merged = ps_alloc(1, sizeof *merged);
    if (parts == NULL || merged == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n_rows; i++) {
        bool is_new = i == 0 || parts[i].row.key != parts[i - 1].row.key;

        if (is_new) {
            rc = ps_result_add_row(merged, parts[i].row.key, merged->values.size / self->value_size,
                                   0, err);
        }
        if (rc == PSD_OK && !append_part(merged, self, &parts[i])) {
            rc = no_memory(err);
        }
        if (rc == PSD_OK) {
            merged->rows[merged->n_rows - 1].n += parts[i].row.n;
        }
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->rows = merged->rows;
    self->n_rows = merged->n_rows;
    self->capacity = merged->capacity;
    self->values = merged->values;
    self->cols = merged->cols;
    *merged = old; /* freed at the end of the block */
    return PSD_OK;
}

psd_status_t ps_result_finish(psd_result_t *self, bool merge, size_t max_rows, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (merge && self->n_rows > 0) {
        rc = merge_rows(self, err);
    } else if (self->n_rows > 0) {
        qsort(self->rows, self->n_rows, sizeof *self->rows, compare);
    }
    if (self->n_rows > max_rows) {
        self->n_rows = max_rows;
    }
    return rc;
}

/* A row with its only value; floats leave `whole` 0, integers `number`. */
typedef struct ranked {
    ps_result_row_t row;
    double number;
    int64_t whole;
    uint32_t col;
} ranked_t;

static int compare_ranked(const void *left, const void *right)
{
    const ranked_t *a = left;
    const ranked_t *b = right;

    if (a->number != b->number) {
        return a->number > b->number ? -1 : 1;
    }
    if (a->whole != b->whole) {
        return a->whole > b->whole ? -1 : 1;
    }
    if (a->row.key != b->row.key) {
        return a->row.key < b->row.key ? -1 : 1;
    }
    return a->col < b->col ? -1 : a->col > b->col;
}

static void read_value(ranked_t *self, ps_type_t type, const uint8_t *value)
{
    float single = 0;
    int32_t word = 0;

    switch (type) {
    case PS_TYPE_I32:
        memcpy(&word, value, sizeof word);
        self->whole = word;
        break;
    case PS_TYPE_I64:
        memcpy(&self->whole, value, sizeof self->whole);
        break;
    case PS_TYPE_F32:
        memcpy(&single, value, sizeof single);
        self->number = (double)single;
        break;
    case PS_TYPE_F64:
    default:
        memcpy(&self->number, value, sizeof self->number);
        break;
    }
}

psd_status_t ps_result_rank(psd_result_t *self, ps_type_t type, size_t n, psd_error_t *err)
{
    PSD_AUTO(ps_free_at)
    ranked_t *ranked = ps_alloc(self->n_rows, sizeof *ranked);
    size_t n_ranked = 0;

    if (ranked == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < self->n_rows; i++) {
        const ps_result_row_t *row = &self->rows[i];

        if (row->n != 1) {
            continue; /* a row with more or fewer values has no rank */
        }
        ranked[n_ranked].row = *row;
        ranked[n_ranked].col = ps_load_u32(self->cols.data + row->at * sizeof(uint32_t));
        read_value(&ranked[n_ranked], type, self->values.data + row->at * self->value_size);
        n_ranked++;
    }
    if (n_ranked > 0) {
        qsort(ranked, n_ranked, sizeof *ranked, compare_ranked);
    }
    self->n_rows = n_ranked < n ? n_ranked : n;
    for (size_t i = 0; i < self->n_rows; i++) {
        self->rows[i] = ranked[i].row;
    }
    return PSD_OK;
}

size_t psd_result_count(const psd_result_t *self)
{
    return self->n_rows;
}

void psd_result_row(const psd_result_t *self, size_t i, uint64_t *ret_row, size_t *ret_n,
                    const void **ret_values, const uint32_t **ret_cols)
{
    const ps_result_row_t *row = &self->rows[i];

    if (ret_row != NULL) {
        *ret_row = row->key;
    }
    if (ret_n != NULL) {
        *ret_n = row->n;
    }
    if (ret_values != NULL) {
        *ret_values = row->n == 0 ? NULL : self->values.data + row->at * self->value_size;
    }
    if (ret_cols != NULL) {
        /* the buffer is aligned as every heap block is */
        *ret_cols =
            !self->is_sparse || row->n == 0
                ? NULL
                : (const uint32_t *)(const void *)(self->cols.data + row->at * sizeof(uint32_t));
    }
}
