/* SPDX-License-Identifier: Apache-2.0 */
/* Sets rows of an image in a store that may belong to another partition. */
#include <inttypes.h>

#include "base/alloc.h"
#include "model/rows/row_head.h"
#include "model/store/image.h"

/* A part of a piece, and the destination of its rows. */
typedef struct part {
    ps_store_t *store;
    uint32_t kind;
    uint32_t first_col; /* of the table */
    uint32_t n_cols;
    uint64_t n_rows;
    uint64_t first_row;
    uint32_t lo; /* the first of its columns that are here … */
    uint32_t n;  /* … and their number; 0: none */
    uint64_t *version;
    bool only_checks;
} part_t;

/* A row with all columns of its part. */
typedef struct row {
    uint64_t key;
    uint64_t version;
    const uint8_t *values;
    const uint8_t *state; /* of the first state */
    size_t stride;        /* bytes from one state to the next */
} row_t;

static psd_status_t cut_short(const part_t *part, psd_error_t *err)
{
    return psd_error_set(err, PSD_PROTO, "a piece ends inside a part of %" PRIu64 " rows",
                         part->n_rows);
}

static psd_status_t no_memory(uint64_t key, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for row %" PRIu64, key);
}

static psd_status_t wrong_entry(uint64_t key, psd_error_t *err)
{
    return psd_error_set(err, PSD_PROTO,
                         "row %" PRIu64 " of a piece has an entry that is "
                         "zero, or columns that do not ascend",
                         key);
}

/* Raises the row's version and the greatest version set: a row in column slices
 * has a version in each of them. */
static void raise_version(const part_t *part, uint8_t *at, uint64_t version)
{
    if (ps_load_u64(at) < version) {
        ps_store_u64(at, version);
    }
    if (*part->version < version) {
        *part->version = version;
    }
}

/* ---- rows that are dense ---- */

static void copy_row(const part_t *part, const row_t *row, const ps_dense_row_t *to)
{
    const ps_row_shape_t *shape = &part->store->shape;
    size_t size = shape->value_size;
    size_t from = (size_t)(part->lo - part->first_col) * size;
    size_t here = (size_t)(part->lo - shape->first_col) * size;

    memcpy(to->values + here, row->values + from, part->n * size);
    for (uint32_t k = 0; k < shape->n_states; k++) {
        memcpy(to->state + k * to->state_stride * size + here, row->state + k * row->stride + from,
               part->n * size);
    }
}

static psd_status_t put_dense(const part_t *part, const row_t *row, psd_error_t *err)
{
    ps_store_t *self = part->store;
    ps_indexed_rows_t *rows = &self->indexed;
    ps_dense_row_t to;

    if (self->is_array) {
        to = ps_array_rows_at(&self->array, row->key, 0, self->shape.width);
        copy_row(part, row, &to);
        if (self->array.versions.data != NULL) {
            raise_version(part,
                          self->array.versions.data +
                              (row->key - self->array.first_row) * sizeof(uint64_t),
                          row->version);
        }
        return PSD_OK;
    }
    if (!ps_slab_reserve(&rows->rows, 1) || !ps_row_index_reserve(&rows->index, 1)) {
        return no_memory(row->key, err);
    }
    uint8_t *at = ps_indexed_rows_make(rows, row->key);

    to = ps_indexed_row_at(rows, at).dense;
    copy_row(part, row, &to);
    if (self->shape.version != NULL) {
        raise_version(part, at + PS_ROW_VERSION_AT, row->version);
    }
    return PSD_OK;
}

/* ---- rows that may be sparse ---- */

/* Entries to put into a row: values, states and columns in separate arrays. */
typedef struct entries {
    ps_buffer_t *arrays; /* owned; values, then each state */
    uint32_t n_arrays;
    ps_buffer_t columns;
    uint32_t n;
} entries_t;

static void entries_done(entries_t *self)
{
    for (uint32_t k = 0; self->arrays != NULL && k < self->n_arrays; k++) {
        ps_buffer_done(&self->arrays[k]);
    }
    ps_free(self->arrays);
    ps_buffer_done(&self->columns);
}

/* Adds entry i of n packed entries at `from`. */
static bool add_entry(entries_t *self, size_t size, const uint8_t *from, uint32_t n, uint32_t i,
                      uint32_t column)
{
    bool fits = ps_buffer_u32(&self->columns, column);

    for (uint32_t k = 0; fits && k < self->n_arrays; k++) {
        fits = ps_buffer_append(&self->arrays[k], from + ((size_t)k * n + i) * size, size);
    }
    self->n++;
    return fits;
}

static uint32_t column_at(const entries_t *self, size_t size, const uint8_t *from, uint32_t n,
                          uint32_t i)
{
    return ps_load_u32(from + (size_t)self->n_arrays * n * size + i * sizeof(uint32_t));
}

/* Adds the packed entries whose columns are in [lo, hi). */
static bool add_between(entries_t *self, size_t size, const uint8_t *from, uint32_t n, uint64_t lo,
                        uint64_t hi)
{
    bool fits = true;

    for (uint32_t i = 0; fits && i < n; i++) {
        uint32_t column = column_at(self, size, from, n, i);

        fits = column < lo || column >= hi || add_entry(self, size, from, n, i, column);
    }
    return fits;
}

/* The row's head, created if necessary. NULL: no memory. */
static uint8_t *find_or_make(ps_indexed_rows_t *rows, uint64_t key)
{
    uint32_t number = ps_row_index_find(&rows->index, key);
    ps_sparse_row_t *empty = NULL;
    uint8_t *at = NULL;

    if (number != PS_ROW_NONE) {
        return ps_slab_at(&rows->rows, number);
    }
    empty = ps_sparse_row_new(&rows->shape, NULL, 0);
    if (empty == NULL || !ps_row_index_reserve(&rows->index, 1) ||
        !ps_slab_add(&rows->rows, &number)) {
        ps_free(empty);
        return NULL;
    }
    rows->sparse_bytes += ps_sparse_row_bytes(&rows->shape, 0);
    at = ps_slab_at(&rows->rows, number);
    ps_store_u64(at, key);
    *ps_row_head_at(rows, at) = (void *)empty;
    ps_row_index_add(&rows->index, key, number);
    return at;
}

/* Entries outside of the part's columns stay. */
static bool merge(const part_t *part, const ps_sparse_row_t *old, const uint8_t *packed, uint32_t n,
                  entries_t *to)
{
    const ps_row_shape_t *shape = &part->store->shape;
    PSD_AUTO(ps_buffer_done) ps_buffer_t before = {0};
    size_t size = ps_sparse_row_packed(shape, old->n);
    uint64_t end = (uint64_t)part->lo + part->n;

    if (!ps_buffer_reserve(&before, size + 1)) {
        return false;
    }
    (void)ps_sparse_row_pack(old, shape, before.data);
    return add_between(to, shape->value_size, before.data, old->n, 0, part->lo) &&
           add_between(to, shape->value_size, packed, n, part->lo, end) &&
           add_between(to, shape->value_size, before.data, old->n, end, UINT64_MAX);
}

/* Joins the arrays into one buffer in packed form. */
static bool join(entries_t *entries, ps_buffer_t *to)
{
    bool fits = true;

    for (uint32_t k = 0; fits && k < entries->n_arrays; k++) {
        fits = ps_buffer_append(to, entries->arrays[k].data, entries->arrays[k].size);
    }
    return fits && ps_buffer_append(to, entries->columns.data, entries->columns.size);
}

static psd_status_t set_entries(const part_t *part, uint8_t *at, uint64_t key,
                                const uint8_t *packed, uint32_t n, psd_error_t *err)
{
    ps_indexed_rows_t *rows = &part->store->indexed;
    ps_sparse_row_t *old = ps_row_head_sparse(*ps_row_head_at(rows, at));
    PSD_AUTO(ps_free_at) ps_sparse_row_t *row = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t all = {0};
    PSD_AUTO(entries_done)
    entries_t entries = {.n_arrays = 1 + rows->shape.n_states};

    entries.arrays = ps_alloc(entries.n_arrays, sizeof *entries.arrays);
    if (entries.arrays == NULL || !merge(part, old, packed, n, &entries) || !join(&entries, &all)) {
        return no_memory(key, err);
    }
    row = ps_sparse_row_new(&rows->shape, NULL, entries.n);
    if (row == NULL) {
        return no_memory(key, err);
    }
    if (entries.n > 0 && !ps_sparse_row_unpack(row, &rows->shape, all.data, entries.n)) {
        return wrong_entry(key, err);
    }
    rows->sparse_bytes += ps_sparse_row_bytes(&rows->shape, row->capacity);
    rows->sparse_bytes -= ps_sparse_row_bytes(&rows->shape, old->capacity);
    rows->sparse_entries += entries.n;
    rows->sparse_entries -= old->n;
    *ps_row_head_at(rows, at) = (void *)row;
    row = old; /* freed here */
    return PSD_OK;
}

static psd_status_t put_sparse(const part_t *part, uint64_t key, uint64_t version,
                               const uint8_t *packed, uint32_t n, psd_error_t *err)
{
    ps_indexed_rows_t *rows = &part->store->indexed;
    uint8_t *at = find_or_make(rows, key);
    psd_status_t rc = PSD_OK;

    if (at == NULL) {
        return no_memory(key, err);
    }
    if (ps_row_head_flags(*ps_row_head_at(rows, at)) != 0) {
        return psd_error_set(err, PSD_PROTO,
                             "row %" PRIu64 " of a piece was pushed to before it arrived", key);
    }
    rc = set_entries(part, at, key, packed, n, err);
    if (rc == PSD_OK && rows->shape.version != NULL) {
        raise_version(part, at + PS_ROW_VERSION_AT, version);
    }
    return rc;
}

/* A dense row of an AUTO table: its entries that are not all zero. */
static psd_status_t put_item_mixed(const part_t *part, const row_t *row, psd_error_t *err)
{
    const ps_row_shape_t *shape = &part->store->shape;
    PSD_AUTO(ps_buffer_done) ps_buffer_t packed = {0};
    PSD_AUTO(entries_done)
    entries_t entries = {.n_arrays = 1 + shape->n_states};
    bool fits = true;

    entries.arrays = ps_alloc(entries.n_arrays, sizeof *entries.arrays);
    fits = entries.arrays != NULL;
    for (uint32_t i = 0; fits && i < part->n_cols; i++) {
        bool is_zero = true;

        for (uint32_t k = 0; k < entries.n_arrays; k++) {
            is_zero = is_zero &&
                      ps_value_is_zero(shape->type, row->values + ((size_t)k * part->n_cols + i) *
                                                                      shape->value_size);
        }
        fits = is_zero || add_entry(&entries, shape->value_size, row->values, part->n_cols, i,
                                    part->first_col + i);
    }
    if (!fits || !join(&entries, &packed)) {
        return no_memory(row->key, err);
    }
    return put_sparse(part, row->key, row->version, packed.data, entries.n, err);
}

/* ---- parts ---- */

static bool is_here(const part_t *part, uint64_t key)
{
    const ps_store_t *self = part->store;

    return !part->only_checks && part->n > 0 && ps_extent_has_row(&self->extent, key) &&
           ps_store_takes_row(self, key);
}

/* True when the array and the part have the same layout. */
static bool is_plain(const part_t *part)
{
    const ps_store_t *self = part->store;
    uint64_t first = part->first_row - self->array.first_row;

    return !part->only_checks && self->is_array && !self->is_partial &&
           part->first_col == self->shape.first_col && part->n_cols == self->shape.width &&
           first < self->array.n_rows && part->n_rows <= self->array.n_rows - first;
}

static void put_plain(const part_t *part, ps_bytes_t versions, const uint8_t *values)
{
    ps_store_t *self = part->store;
    uint64_t n = part->n_rows * part->n_cols;
    size_t size = n * self->shape.value_size;
    ps_dense_row_t to = ps_array_rows_at(&self->array, part->first_row, 0, n);

    memcpy(to.values, values, size);
    for (uint32_t k = 0; k < self->shape.n_states; k++) {
        memcpy(to.state + k * to.state_stride * self->shape.value_size, values + (k + 1) * size,
               size);
    }
    for (uint64_t i = 0; i < versions.size / sizeof(uint64_t); i++) {
        raise_version(part,
                      self->array.versions.data +
                          (part->first_row - self->array.first_row + i) * sizeof(uint64_t),
                      ps_load_u64(versions.data + i * sizeof(uint64_t)));
    }
}

static psd_status_t put_run(const part_t *part, ps_cursor_t *cursor, psd_error_t *err)
{
    const ps_row_shape_t *shape = &part->store->shape;
    size_t width = (size_t)part->n_cols * shape->value_size;
    size_t arrays = 1 + (size_t)shape->n_states;
    ps_bytes_t versions = {NULL, 0};
    ps_bytes_t values;
    psd_status_t rc = PSD_OK;

    if (part->n_rows > cursor->rest.size / width / arrays) {
        return cut_short(part, err);
    }
    if (shape->version != NULL) {
        versions = ps_cursor_take(cursor, part->n_rows * sizeof(uint64_t));
    }
    values = ps_cursor_take(cursor, part->n_rows * width * arrays);
    if (cursor->failed) {
        return cut_short(part, err);
    }
    if (is_plain(part)) {
        put_plain(part, versions, values.data);
        return PSD_OK;
    }
    for (uint64_t i = 0; rc == PSD_OK && i < part->n_rows; i++) {
        row_t row = {.key = part->first_row + i,
                     .version = versions.data == NULL
                                    ? 0
                                    : ps_load_u64(versions.data + i * sizeof(uint64_t)),
                     .values = values.data + i * width,
                     .state = values.data + (part->n_rows + i) * width,
                     .stride = part->n_rows * width};

        rc = is_here(part, row.key) ? put_dense(part, &row, err) : PSD_OK;
    }
    return rc;
}

static psd_status_t put_items(const part_t *part, ps_cursor_t *cursor, psd_error_t *err)
{
    const ps_store_t *self = part->store;
    const ps_row_shape_t *shape = &self->shape;
    bool is_mixed = self->spec.row_format != PS_ROW_DENSE;
    size_t width = (size_t)part->n_cols * shape->value_size;
    psd_status_t rc = PSD_OK;

    for (uint64_t i = 0; rc == PSD_OK && i < part->n_rows; i++) {
        row_t row = {.key = ps_cursor_u64(cursor), .stride = width};

        row.version = shape->version == NULL ? 0 : ps_cursor_u64(cursor);
        row.values = ps_cursor_take(cursor, width * (1 + (size_t)shape->n_states)).data;
        if (cursor->failed) {
            return cut_short(part, err);
        }
        row.state = row.values + width;
        if (is_here(part, row.key)) {
            rc = is_mixed ? put_item_mixed(part, &row, err) : put_dense(part, &row, err);
        }
    }
    return rc;
}

/* Checks what setting these entries would refuse. */
static psd_status_t check_sparse(const part_t *part, uint64_t key, const uint8_t *packed,
                                 uint32_t n, psd_error_t *err)
{
    const ps_row_shape_t *shape = &part->store->shape;
    const entries_t arrays = {.n_arrays = 1 + shape->n_states};
    uint64_t next = part->first_col;
    bool is_right = true;

    for (uint32_t i = 0; is_right && i < n; i++) {
        uint32_t column = column_at(&arrays, shape->value_size, packed, n, i);
        bool is_zero = true;

        for (uint32_t k = 0; is_zero && k < arrays.n_arrays; k++) {
            is_zero =
                ps_value_is_zero(shape->type, packed + ((size_t)k * n + i) * shape->value_size);
        }
        is_right = !is_zero && column >= next && column - part->first_col < part->n_cols;
        next = (uint64_t)column + 1;
    }
    return is_right ? PSD_OK : wrong_entry(key, err);
}

static psd_status_t put_sparse_rows(const part_t *part, ps_cursor_t *cursor, psd_error_t *err)
{
    const ps_store_t *self = part->store;
    psd_status_t rc = PSD_OK;

    for (uint64_t i = 0; rc == PSD_OK && i < part->n_rows; i++) {
        uint64_t key = ps_cursor_u64(cursor);
        uint64_t version = ps_cursor_u64(cursor);
        uint32_t n = ps_cursor_u32(cursor);
        ps_bytes_t packed = ps_cursor_take(cursor, ps_sparse_row_packed(&self->shape, n));

        if (cursor->failed || n > part->n_cols) {
            return cut_short(part, err);
        }
        if (part->only_checks) {
            rc = check_sparse(part, key, packed.data, n, err);
        } else if (is_here(part, key)) {
            rc = put_sparse(part, key, version, packed.data, n, err);
        }
    }
    return rc;
}

/* Finds the columns of the part that are here. */
static void meet(part_t *part)
{
    const ps_row_shape_t *shape = &part->store->shape;
    uint64_t part_end = (uint64_t)part->first_col + part->n_cols;
    uint64_t here_end = (uint64_t)shape->first_col + shape->width;
    uint64_t end = part_end < here_end ? part_end : here_end;

    part->lo = part->first_col > shape->first_col ? part->first_col : shape->first_col;
    part->n = part->lo < end ? (uint32_t)(end - part->lo) : 0;
}

static psd_status_t put_part(part_t *part, ps_cursor_t *cursor, psd_error_t *err)
{
    const ps_table_spec_t *spec = &part->store->spec;
    bool is_dense = spec->row_format == PS_ROW_DENSE;

    if (part->n_cols == 0 || (uint64_t)part->first_col + part->n_cols > spec->n_cols ||
        part->kind < PS_IMAGE_RUN || part->kind > PS_IMAGE_SPARSE ||
        (part->kind == PS_IMAGE_RUN && !is_dense) || (part->kind == PS_IMAGE_SPARSE && is_dense)) {
        return psd_error_set(err, PSD_PROTO,
                             "a piece has a part of kind %" PRIu32 ", columns %" PRIu32
                             " and %" PRIu32 " more, which no row of this table has",
                             part->kind, part->first_col, part->n_cols);
    }
    meet(part);
    return part->kind == PS_IMAGE_RUN     ? put_run(part, cursor, err)
           : part->kind == PS_IMAGE_ITEMS ? put_items(part, cursor, err)
                                          : put_sparse_rows(part, cursor, err);
}

static psd_status_t put_parts(ps_bytes_t piece, const part_t *to, psd_error_t *err)
{
    ps_cursor_t cursor = ps_cursor_over(piece);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && cursor.rest.size > 0) {
        part_t part = *to;

        part.kind = ps_cursor_u32(&cursor);
        part.first_col = ps_cursor_u32(&cursor);
        part.n_cols = ps_cursor_u32(&cursor);
        (void)ps_cursor_u32(&cursor);
        part.n_rows = ps_cursor_u64(&cursor);
        part.first_row = ps_cursor_u64(&cursor);
        rc = cursor.failed ? cut_short(&part, err) : put_part(&part, &cursor, err);
    }
    return rc;
}

psd_status_t ps_store_check_piece(ps_store_t *self, ps_bytes_t piece, psd_error_t *err)
{
    const part_t part = {.store = self, .only_checks = true};

    return put_parts(piece, &part, err);
}

psd_status_t ps_store_put(ps_store_t *self, ps_bytes_t piece, uint64_t *version, psd_error_t *err)
{
    const part_t part = {.store = self, .version = version};

    return put_parts(piece, &part, err);
}
