/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of rows; shared by indexed_rows.c and indexed_reserve.c, and by nobody
 * else. */
#ifndef PS_MODEL_INDEXED_IMPL_H
#define PS_MODEL_INDEXED_IMPL_H

#include "model/indexed_rows.h"

/* Rows whose memory is asked for before it is used. */
#define PS_ROWS_AHEAD 16

/* What a head holds: the address of a sparse row, or that of a dense one plus
 * 1, which is odd. */
typedef uint8_t *ps_row_head_t;

static inline bool
ps_row_head_is_dense(ps_row_head_t head)
{
    return ((uintptr_t)head & 1) != 0;
}

/* The head is sparse. */
static inline ps_sparse_row_t *
ps_row_head_sparse(ps_row_head_t head)
{
    return (void *)head;
}

static inline bool
ps_rows_are_mixed(const ps_indexed_rows_t *self)
{
    return self->shape.spec->row_format != PS_ROW_DENSE;
}

static inline ps_row_t
ps_dense_row_at(const ps_indexed_rows_t *self, uint8_t *values)
{
    const ps_row_shape_t *shape = &self->shape;
    size_t size = (size_t)shape->width * shape->value_size;

    return (ps_row_t){
        .dense = {.values = values,
                  .state = shape->n_states == 0 ? NULL : values + size,
                  .state_stride = shape->width},
    };
}

static inline ps_row_head_t *
ps_row_head_at(const ps_indexed_rows_t *self, uint32_t number)
{
    return (void *)ps_slab_at(&self->heads, number);
}

/* To be called when the last push that had reserved a sparse row may have been
 * applied or given up: drops its zero entries, and its room if most is free. */
void ps_row_head_settle(ps_indexed_rows_t *self, ps_row_head_t *head);
/* Asks the processor for the index lines of the next rows of a slice. */
void ps_indexed_rows_ask(const ps_indexed_rows_t *self,
                         const ps_slice_t *slice,
                         const ps_payload_t *payload,
                         uint64_t first);
#endif
