/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by key: making them, growing them, applying pushes to them. */
#include "model/indexed_rows.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "model/dense_row.h"
#include "model/init.h"

#define AHEAD 16        /* rows whose memory is asked for before it is used */
#define FIRST_ENTRIES 4 /* room of a sparse row whose need is not known */
#define SHRINK_BELOW 4  /* a sparse row is cut down when it fills 1/4 of it */
#define DENSE_TAG ((uintptr_t)1)

/* What a head holds: a sparse row, or a dense one with the lowest bit set. */
typedef uintptr_t row_head_t;

static bool
is_mixed(const ps_indexed_rows_t *self)
{
    return self->shape.spec->row_format != PS_ROW_DENSE;
}

static ps_row_t
dense_at(const ps_indexed_rows_t *self, uint8_t *values)
{
    const ps_row_shape_t *shape = &self->shape;
    size_t size = (size_t)shape->width * shape->value_size;

    return (ps_row_t){
        .dense = {.values = values,
                  .state = shape->n_states == 0 ? NULL : values + size,
                  .state_stride = shape->width},
    };
}

static row_head_t *
head_at(const ps_indexed_rows_t *self, uint32_t number)
{
    return (void *)ps_slab_at(&self->heads, number);
}

static ps_row_t
row_at(const ps_indexed_rows_t *self, uint32_t number)
{
    row_head_t head = 0;

    number &= PS_ROW_NUMBER_MAX;
    if (!is_mixed(self)) {
        return dense_at(self, ps_slab_at(&self->dense, number));
    }
    head = *head_at(self, number);
    if ((head & DENSE_TAG) != 0) {
        return dense_at(self, (uint8_t *)(head - DENSE_TAG));
    }
    return (ps_row_t){.sparse = (ps_sparse_row_t *)head};
}

void
ps_indexed_rows_init(ps_indexed_rows_t *self, const ps_row_shape_t *shape)
{
    *self = (ps_indexed_rows_t){.shape = *shape};
    ps_slab_init(&self->dense, ps_row_shape_bytes(shape));
    ps_slab_init(&self->heads, sizeof(row_head_t));
}

void
ps_indexed_rows_done(ps_indexed_rows_t *self)
{
    for (uint32_t i = 0; i < self->heads.n; i++) {
        row_head_t head = *head_at(self, i);

        if ((head & DENSE_TAG) == 0) {
            ps_free((ps_sparse_row_t *)head);
        }
    }
    ps_slab_done(&self->heads);
    ps_slab_done(&self->dense);
    ps_row_index_done(&self->index);
}

/* A sparse row's block in the place of another one or of none. */
static void
set_sparse(ps_indexed_rows_t *self,
           row_head_t *head,
           ps_sparse_row_t *old,
           ps_sparse_row_t *row)
{
    if (old != NULL) {
        self->sparse_bytes -= ps_sparse_row_bytes(&self->shape, old->capacity);
        ps_free(old);
    }
    self->sparse_bytes += ps_sparse_row_bytes(&self->shape, row->capacity);
    *head = (row_head_t)row;
}

/* True when an AUTO table keeps a row with so many entries as a dense one. */
static bool
dense_is_smaller(const ps_indexed_rows_t *self, uint32_t capacity)
{
    return self->shape.spec->row_format == PS_ROW_AUTO &&
           ps_sparse_row_bytes(&self->shape, capacity) >=
               ps_row_shape_bytes(&self->shape);
}

static bool
turn_dense(ps_indexed_rows_t *self, row_head_t *head, ps_sparse_row_t *sparse)
{
    uint32_t number = 0;
    uint8_t *values = NULL;
    ps_row_t row = {0};

    if (!ps_slab_add(&self->dense, &number)) {
        return false;
    }
    values = ps_slab_at(&self->dense, number);
    memset(values, 0, ps_row_shape_bytes(&self->shape));
    row = dense_at(self, values);
    ps_sparse_row_spread(sparse, &self->shape, &row.dense);
    self->sparse_entries -= sparse->n;
    self->sparse_bytes -= ps_sparse_row_bytes(&self->shape, sparse->capacity);
    ps_free(sparse);
    *head = (row_head_t)values | DENSE_TAG;
    return true;
}

/* Room for `more` entries; the row may turn dense instead. */
static bool
make_room(ps_indexed_rows_t *self, row_head_t *head, uint32_t more)
{
    ps_sparse_row_t *old = (ps_sparse_row_t *)*head;
    ps_sparse_row_t *row = NULL;
    uint32_t width = self->shape.width;
    uint32_t need = old->n + more; /* different columns: at most width */
    uint32_t capacity = old->capacity < width / 2 ? 2 * old->capacity : width;

    assert(more <= width - old->n);
    if (need <= old->capacity) {
        return true;
    }
    capacity = capacity < need ? need : capacity;
    if (dense_is_smaller(self, capacity)) {
        return turn_dense(self, head, old);
    }
    row = ps_sparse_row_new(&self->shape, old, capacity);
    if (row == NULL) {
        return false;
    }
    set_sparse(self, head, old, row);
    return true;
}

/* The last push that had reserved the row has been applied or given up. */
static void
settle(ps_indexed_rows_t *self, row_head_t *head)
{
    ps_sparse_row_t *row = (ps_sparse_row_t *)*head;
    ps_sparse_row_t *smaller = NULL;

    if (row->n_pending > 0 || row->n_zeros == 0) {
        return;
    }
    self->sparse_entries -= row->n_zeros;
    ps_sparse_row_drop_zeros(row, &self->shape);
    if (row->capacity <= FIRST_ENTRIES ||
        row->n > row->capacity / SHRINK_BELOW) {
        return;
    }
    smaller =
        ps_sparse_row_new(&self->shape, row, row->n * 2 + FIRST_ENTRIES / 2);
    if (smaller != NULL) { /* else it stays larger than it need be */
        set_sparse(self, head, row, smaller);
    }
}

/* Entries for one piece of a row's deltas whose columns ascend. */
static bool
reserve_piece(ps_indexed_rows_t *self,
              row_head_t *head,
              ps_columns_t columns,
              const uint8_t *deltas,
              size_t n)
{
    ps_sparse_row_t *row = (ps_sparse_row_t *)*head;
    uint32_t missing =
        ps_sparse_row_missing(row, &self->shape, columns, deltas, n);

    if (missing == 0) {
        return true;
    }
    if (!make_room(self, head, missing)) {
        return false;
    }
    if ((*head & DENSE_TAG) == 0) {
        row = (ps_sparse_row_t *)*head;
        ps_sparse_row_add(row, &self->shape, columns, deltas, n, missing);
        self->sparse_entries += missing;
    }
    return true;
}

static bool
reserve_entries(ps_indexed_rows_t *self, row_head_t *head, ps_deltas_t *deltas)
{
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        for (size_t i = 0; i < n;) {
            ps_columns_t rest = ps_columns_from(columns, i);
            size_t run = ps_columns_ascending(rest, n - i);
            const uint8_t *at = values + i * self->shape.value_size;

            if (!reserve_piece(self, head, rest, at, run)) {
                settle(self, head);
                return false;
            }
            if ((*head & DENSE_TAG) != 0) {
                return true; /* which has room for everything */
            }
            i += run;
        }
    }
    ((ps_sparse_row_t *)*head)->n_pending++;
    return true;
}

static bool
make_dense(ps_indexed_rows_t *self, uint64_t key, uint8_t **ret_values)
{
    const ps_row_shape_t *shape = &self->shape;
    size_t size = (size_t)shape->width * shape->value_size;
    uint32_t number = 0;
    uint8_t *values = NULL;

    if (!ps_slab_add(&self->dense, &number)) {
        return false;
    }
    values = ps_slab_at(&self->dense, number);
    ps_init_fill(shape->spec, key, shape->first_col, shape->width, values);
    memset(values + size, 0, size * shape->n_states);
    *ret_values = values;
    return true;
}

/* The head of a new row, born as the push has it: with `entries` entries, or
 * dense. */
static bool
make_head(ps_indexed_rows_t *self,
          uint64_t key,
          bool born_dense,
          uint32_t entries,
          row_head_t *ret_head)
{
    ps_sparse_row_t *row = NULL;
    uint8_t *values = NULL;

    if (born_dense || dense_is_smaller(self, entries)) {
        if (!make_dense(self, key, &values)) {
            return false;
        }
        *ret_head = (row_head_t)values | DENSE_TAG;
        return true;
    }
    row = ps_sparse_row_new(&self->shape, NULL, entries);
    if (row == NULL) {
        return false;
    }
    set_sparse(self, ret_head, NULL, row);
    return true;
}

static void
unmake_head(ps_indexed_rows_t *self, row_head_t head)
{
    ps_sparse_row_t *row = (ps_sparse_row_t *)head;

    if ((head & DENSE_TAG) != 0) {
        ps_slab_pop(&self->dense);
        return;
    }
    self->sparse_bytes -= ps_sparse_row_bytes(&self->shape, row->capacity);
    ps_free(row);
}

static bool
make_mixed(ps_indexed_rows_t *self, const ps_deltas_t *deltas)
{
    bool is_sparse = deltas->slice->layout == PS_LAYOUT_SPARSE;
    bool is_auto = self->shape.spec->row_format == PS_ROW_AUTO;
    uint64_t entries = is_sparse ? deltas->n_left : FIRST_ENTRIES;
    uint32_t width = self->shape.width;
    row_head_t head = 0;
    uint32_t number = 0;

    entries = entries < width ? entries : width;
    if (!make_head(self, deltas->row, is_auto && !is_sparse, (uint32_t)entries,
                   &head)) {
        return false;
    }
    if (!ps_slab_add(&self->heads, &number)) {
        unmake_head(self, head);
        return false;
    }
    if (!ps_row_index_add(&self->index, deltas->row, number)) {
        ps_slab_pop(&self->heads);
        unmake_head(self, head);
        return false;
    }
    *head_at(self, number) = head;
    return true;
}

static bool
make_row(ps_indexed_rows_t *self, const ps_deltas_t *deltas)
{
    uint8_t *values = NULL;

    if (self->index.n > PS_ROW_NUMBER_MAX) {
        return false;
    }
    if (is_mixed(self)) {
        return make_mixed(self, deltas);
    }
    if (!make_dense(self, deltas->row, &values)) {
        return false;
    }
    /* The rows of a DENSE table are numbered as they lie in the slab. */
    if (!ps_row_index_add(&self->index, deltas->row, (uint32_t)self->index.n)) {
        ps_slab_pop(&self->dense);
        return false;
    }
    return true;
}

static bool
reserve_row(ps_indexed_rows_t *self, ps_deltas_t *deltas)
{
    uint32_t *number = ps_row_index_find(&self->index, deltas->row);
    row_head_t *head = NULL;

    if (number == NULL) {
        if (!make_row(self, deltas)) {
            return false;
        }
        if (!is_mixed(self)) {
            return true;
        }
        number = ps_row_index_find(&self->index, deltas->row);
    }
    if (!is_mixed(self)) {
        return true;
    }
    head = head_at(self, *number & PS_ROW_NUMBER_MAX);
    return (*head & DENSE_TAG) != 0 || reserve_entries(self, head, deltas);
}

/* Asks for the index lines of the next rows of a slice. */
static void
prefetch_keys(const ps_indexed_rows_t *self,
              const ps_slice_t *slice,
              const ps_payload_t *payload,
              uint64_t first)
{
    for (uint64_t i = first; i < first + AHEAD && i < slice->n_rows; i++) {
        ps_row_index_prefetch(&self->index, ps_slice_row(slice, payload, i));
    }
}

bool
ps_indexed_rows_reserve(ps_indexed_rows_t *self,
                        const ps_slice_t *slice,
                        const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);

    while (ps_deltas_next(&deltas)) {
        uint64_t i = deltas.n_rows - 1;

        if (i % AHEAD == 0) {
            prefetch_keys(self, slice, payload, i);
        }
        if (!reserve_row(self, &deltas)) {
            ps_indexed_rows_unreserve(self, slice, payload, i);
            return false;
        }
    }
    return true;
}

void
ps_indexed_rows_unreserve(ps_indexed_rows_t *self,
                          const ps_slice_t *slice,
                          const ps_payload_t *payload,
                          uint64_t n_rows)
{
    for (uint64_t i = 0; is_mixed(self) && i < n_rows; i++) {
        uint64_t key = ps_slice_row(slice, payload, i);
        uint32_t *number = ps_row_index_find(&self->index, key);
        row_head_t *head = NULL;

        assert(number != NULL);
        head = head_at(self, *number & PS_ROW_NUMBER_MAX);
        if ((*head & DENSE_TAG) == 0) {
            ((ps_sparse_row_t *)*head)->n_pending--;
            settle(self, head);
        }
    }
}

static void
apply_dense(const ps_indexed_rows_t *self,
            const ps_dense_row_t *row,
            ps_deltas_t *deltas)
{
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        for (size_t i = 0; i < n;) {
            ps_columns_t rest = ps_columns_from(columns, i);
            size_t run = ps_columns_neighbours(rest, n - i);

            ps_dense_row_apply(row, &self->shape, ps_columns_at(rest, 0),
                               values + i * self->shape.value_size, run);
            i += run;
        }
    }
}

static void
apply_sparse(ps_indexed_rows_t *self, row_head_t *head, ps_deltas_t *deltas)
{
    ps_sparse_row_t *row = (ps_sparse_row_t *)*head;
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        ps_sparse_row_apply(row, &self->shape, columns, values, n);
    }
    assert(row->n_pending > 0);
    row->n_pending--;
    settle(self, head);
}

static void
apply_row(ps_indexed_rows_t *self, uint32_t *number, ps_deltas_t *deltas)
{
    ps_row_t row = row_at(self, *number);

    if ((*number & PS_ROW_MARK) == 0) {
        *number |= PS_ROW_MARK;
        self->n_present++;
    }
    if (row.sparse != NULL) {
        apply_sparse(self, head_at(self, *number & PS_ROW_NUMBER_MAX), deltas);
    } else {
        apply_dense(self, &row.dense, deltas);
    }
}

static void
prefetch_row(const ps_indexed_rows_t *self, uint32_t number)
{
    if (is_mixed(self)) {
        __builtin_prefetch(head_at(self, number));
    } else {
        __builtin_prefetch(ps_slab_at(&self->dense, number));
    }
}

/* Where the next rows of a slice are; asks for the memory of each. */
static void
find_some(const ps_indexed_rows_t *self,
          const ps_slice_t *slice,
          const ps_payload_t *payload,
          uint64_t first,
          uint32_t *ret_numbers[AHEAD])
{
    prefetch_keys(self, slice, payload, first);
    for (uint64_t i = 0; i < AHEAD && first + i < slice->n_rows; i++) {
        uint64_t key = ps_slice_row(slice, payload, first + i);
        uint32_t *number = ps_row_index_find(&self->index, key);

        assert(number != NULL); /* ps_store_reserve has made it */
        ret_numbers[i] = number;
        prefetch_row(self, *number & PS_ROW_NUMBER_MAX);
    }
}

void
ps_indexed_rows_apply(ps_indexed_rows_t *self,
                      const ps_slice_t *slice,
                      const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    uint32_t *numbers[AHEAD] = {NULL};

    while (ps_deltas_next(&deltas)) {
        uint64_t i = deltas.n_rows - 1;

        if (i % AHEAD == 0) {
            find_some(self, slice, payload, i, numbers);
        }
        apply_row(self, numbers[i % AHEAD], &deltas);
    }
}

bool
ps_indexed_rows_find(const ps_indexed_rows_t *self,
                     uint64_t key,
                     ps_row_t *ret_row)
{
    const uint32_t *number = ps_row_index_find(&self->index, key);

    if (number == NULL) {
        return false;
    }
    *ret_row = row_at(self, *number);
    return true;
}

void
ps_indexed_rows_prefetch(const ps_indexed_rows_t *self, uint64_t key)
{
    const uint32_t *number = ps_row_index_find(&self->index, key);

    if (number != NULL) {
        prefetch_row(self, *number & PS_ROW_NUMBER_MAX);
    }
}

uint64_t
ps_indexed_rows_value_bytes(const ps_indexed_rows_t *self)
{
    uint64_t dense = (uint64_t)self->dense.n * self->shape.width;

    return (dense + self->sparse_entries) * self->shape.value_size;
}

uint64_t
ps_indexed_rows_bytes(const ps_indexed_rows_t *self)
{
    return ps_row_index_bytes(&self->index) + ps_slab_bytes(&self->dense) +
           ps_slab_bytes(&self->heads) + self->sparse_bytes;
}
