/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of dense rows: they point at the caller's memory where possible, and
 * gather the rest into one block for each slice. */
#include "client/slices/cut_inner.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

/* A piece of a row from this size on gets a span of its own, rather than being
 * gathered: a copy of less costs less than the span. */
#define SPAN_MIN 4096

/* One slice in the making. */
typedef struct dense {
    const ps_cut_args_t *args;
    const ps_row_run_t *rows;
    const ps_col_run_t *cols;
    size_t from; /* row of the run */
    size_t n;    /* rows */
    size_t value_size;
    size_t width;      /* values of a row of the slice */
    size_t full_width; /* values of the caller's row */
    bool lists_keys;
    /* what is pointed at rather than gathered */
    bool borrows_keys;
    bool borrows_index;
    bool borrows_values; /* in one span */
    bool borrows_rows;   /* in a span for each row */
} dense_t;

static bool pushes(const dense_t *self)
{
    return self->args->values != NULL;
}

static void decide(dense_t *self)
{
    const psd_select_t *select = self->args->select;
    bool borrow = self->args->borrow;
    bool borrow_lists = self->args->borrow_lists;
    bool together = self->rows->order == NULL;
    bool whole = self->cols->places == NULL;

    self->lists_keys =
        select->rows_are == PS_SELECT_LIST || !together || self->args->spec->keys == PS_KEYS_HASH;
    self->borrows_keys = borrow_lists && together && select->rows_are == PS_SELECT_LIST;
    self->borrows_index = borrow_lists && whole && self->cols->kind == PS_COLS_LIST;
    if (pushes(self) && borrow && whole) {
        self->borrows_values = together && self->width == self->full_width;
        self->borrows_rows = !self->borrows_values && self->width * self->value_size >= SPAN_MIN;
    }
}

/* The value of the caller's array where row i of the slice begins. */
static const uint8_t *row_at(const dense_t *self, size_t i)
{
    size_t row = ps_row_run_at(self->rows, self->from + i);
    size_t value = row * self->full_width + self->cols->at;

    return (const uint8_t *)self->args->values + value * self->value_size;
}

static uint8_t *gather_index(const dense_t *self, uint8_t *to)
{
    assert(to != NULL);
    for (uint32_t i = 0; i < self->cols->n_cols; i++) {
        size_t place = self->cols->places == NULL ? i : self->cols->places[i];

        memcpy(to, &self->args->select->cols[place], sizeof(uint32_t));
        to += sizeof(uint32_t);
    }
    return to;
}

/* Rows of one value: a copy whose size the compiler knows is a move. */
#define GATHER_SINGLES(name, type)                                                       \
    static void gather_##name(const dense_t *self, const uint8_t *from, uint8_t *to)     \
    {                                                                                    \
        const uint32_t *order = self->rows->order + self->from;                          \
                                                                                         \
        for (size_t i = 0; i < self->n; i++) {                                           \
            memcpy(to + i * sizeof(type), from + order[i] * sizeof(type), sizeof(type)); \
        }                                                                                \
    }
GATHER_SINGLES(u32, uint32_t)
GATHER_SINGLES(u64, uint64_t)

static void gather_picked(const dense_t *self, uint8_t *to)
{
    for (size_t i = 0; i < self->n; i++) {
        const uint8_t *row = row_at(self, i);

        for (size_t j = 0; j < self->width; j++) {
            memcpy(to, row + self->cols->places[j] * self->value_size, self->value_size);
            to += self->value_size;
        }
    }
}

static void gather_values(const dense_t *self, uint8_t *to)
{
    size_t size = self->width * self->value_size;
    bool whole = self->width == self->full_width;
    const uint8_t *values = self->args->values;

    if (self->cols->places != NULL) {
        gather_picked(self, to);
    } else if (self->rows->order == NULL && whole) {
        memcpy(to, row_at(self, 0), self->n * size);
    } else if (whole && self->rows->order != NULL && size == sizeof(uint32_t)) {
        gather_u32(self, values, to);
    } else if (whole && self->rows->order != NULL && size == sizeof(uint64_t)) {
        gather_u64(self, values, to);
    } else {
        for (size_t i = 0; i < self->n; i++) {
            memcpy(to + i * size, row_at(self, i), size);
        }
    }
}

static bool point_at_rows(const dense_t *self, ps_payload_t *payload)
{
    ps_bytes_t *spans = ps_alloc_raw(self->n, sizeof *spans);

    if (spans == NULL) {
        return false;
    }
    payload->spans = spans;
    for (size_t i = 0; i < self->n; i++) {
        spans[i] = (ps_bytes_t){.data = row_at(self, i), .size = self->width * self->value_size};
    }
    payload->n_spans = self->n;
    return true;
}

typedef struct sizes {
    size_t keys;
    size_t index;
    size_t values;
} sizes_t;

static sizes_t sizes_of(const dense_t *self)
{
    sizes_t sizes = {0};

    if (self->lists_keys) {
        sizes.keys = self->n * sizeof(uint64_t);
    }
    if (self->cols->kind == PS_COLS_LIST && !self->args->sparse_answer) {
        sizes.index = self->cols->n_cols * sizeof(uint32_t);
    }
    if (pushes(self)) {
        sizes.values = self->n * self->width * self->value_size;
    }
    return sizes;
}

/* Fills in what is gathered and points at the rest. */
static void fill(const dense_t *self, const sizes_t *sizes, uint8_t *to, ps_payload_t *payload)
{
    const psd_select_t *select = self->args->select;

    if (self->borrows_keys) {
        payload->keys = (ps_bytes_t){
            (const uint8_t *)(select->rows + self->rows->first + self->from), sizes->keys};
    } else if (sizes->keys > 0) {
        ps_cut_keys(select, self->rows, self->from, self->n, to);
        to += sizes->keys;
    }
    if (self->borrows_index) {
        payload->index = (ps_bytes_t){(const uint8_t *)select->cols, sizes->index};
    } else if (sizes->index > 0) {
        to = gather_index(self, to);
    }
    if (self->borrows_values && sizes->values > 0) {
        payload->span = (ps_bytes_t){row_at(self, 0), sizes->values};
        payload->spans = &payload->span;
        payload->n_spans = 1;
    } else if (!self->borrows_rows && sizes->values > 0) {
        gather_values(self, to);
    }
}

static ps_payload_t *make_payload(const dense_t *self)
{
    sizes_t sizes = sizes_of(self);
    uint8_t *bytes = NULL;
    ps_payload_t *payload =
        ps_payload_room(self->borrows_keys ? 0 : sizes.keys, self->borrows_index ? 0 : sizes.index,
                        self->borrows_values || self->borrows_rows ? 0 : sizes.values, &bytes);

    if (payload == NULL) {
        return NULL;
    }
    fill(self, &sizes, bytes, payload);
    if (self->borrows_rows && !point_at_rows(self, payload)) {
        ps_payload_destroy(&payload);
    }
    return payload;
}

static ps_slice_t slice_of(const dense_t *self)
{
    const ps_cut_args_t *args = self->args;
    ps_slice_t slice = {
        .rows = self->lists_keys ? PS_ROWS_LIST : PS_ROWS_RANGE,
        .layout = PS_LAYOUT_DENSE,
        .cols = self->cols->kind,
        .type = args->spec->type,
        .n_rows = self->n,
        .first_col = self->cols->first_col,
        .n_cols = self->cols->n_cols,
        .n_values = pushes(self) ? self->n * self->width : 0,
    };

    if (slice.rows == PS_ROWS_RANGE) {
        slice.first_row = ps_select_row(args->select, self->rows->first + self->from);
    }
    if (args->sparse_answer) {
        slice.layout = PS_LAYOUT_SPARSE;
        slice.cols = PS_COLS_ALL;
        slice.first_col = 0;
        slice.n_cols = 0;
    }
    return slice;
}

static bool make_places(const dense_t *self, ps_places_t *ret_places)
{
    ps_places_t places = {.first = self->rows->first + self->from,
                          .col = self->cols->at,
                          .row_width = self->full_width};

    if (self->rows->order != NULL) {
        places.rows = ps_alloc_raw(self->n, sizeof *places.rows);
        if (places.rows == NULL) {
            return false;
        }
        memcpy(places.rows, self->rows->order + self->from, self->n * sizeof *places.rows);
    }
    if (self->cols->places != NULL) {
        places.cols = ps_alloc_raw(self->width, sizeof *places.cols);
        if (places.cols == NULL) {
            ps_places_done(&places);
            return false;
        }
        memcpy(places.cols, self->cols->places, self->width * sizeof *places.cols);
    }
    *ret_places = places;
    return true;
}

static psd_status_t make(const dense_t *self, ps_cuts_t *cuts, psd_error_t *err)
{
    const ps_cut_args_t *args = self->args;
    ps_cut_t *cut = ps_cuts_add(cuts);

    if (cut == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to cut a call");
    }
    cut->partition = self->rows->row_slice * args->spec->n_col_slices + self->cols->col_slice;
    cut->slice = slice_of(self);
    cut->borrows =
        self->borrows_keys || self->borrows_index || self->borrows_values || self->borrows_rows;
    if (self->lists_keys || self->cols->kind == PS_COLS_LIST || pushes(self)) {
        cut->payload = make_payload(self);
        if (cut->payload == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a slice");
        }
    }
    if (args->places && !make_places(self, &cut->places)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a slice");
    }
    return PSD_OK;
}

/* Rows whose slice and whose answer stay within the limit; at least one. */
static size_t rows_at_once(const dense_t *self)
{
    uint64_t fixed = (uint64_t)self->cols->n_cols * sizeof(uint32_t);
    uint64_t row =
        (uint64_t)self->width * self->value_size + (self->lists_keys ? sizeof(uint64_t) : 0);
    uint64_t limit = self->args->limit_bytes;
    uint64_t n = 0;

    if (self->cols->kind == PS_COLS_LIST) {
        limit = limit > fixed ? limit - fixed : 0;
    }
    n = limit / row;
    return n == 0 ? 1 : n > SIZE_MAX ? SIZE_MAX : (size_t)n;
}

psd_status_t ps_cut_dense(const ps_cut_args_t *args, const ps_row_run_t *rows,
                          const ps_col_run_t *cols, ps_cuts_t *cuts, psd_error_t *err)
{
    dense_t dense = {
        .args = args,
        .rows = rows,
        .cols = cols,
        .value_size = ps_type_size(args->spec->type),
        .width = cols->n_cols,
        .full_width = ps_select_width(args->select, args->spec),
    };
    size_t most = 0;
    psd_status_t rc = PSD_OK;

    decide(&dense);
    most = rows_at_once(&dense);
    for (size_t at = 0; rc == PSD_OK && at < rows->n; at += dense.n) {
        dense.from = at;
        dense.n = rows->n - at < most ? rows->n - at : most;
        rc = make(&dense, cuts, err);
    }
    return rc;
}
