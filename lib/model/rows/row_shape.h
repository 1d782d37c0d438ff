/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/model/rows: rows in memory
 *
 * It is       Two layouts of rows (array_rows.h, indexed_rows.h) and their
 *             parts: pages, slabs, an index of keys, sparse rows; deltas applied
 *             to them (push.h), and rows handed to a copy.
 * It uses     updaters, tables, lib/base.
 * It ignores  Checks, replies, partial stores, images: it trusts its caller.
 * Start at    row_shape.h, array_rows.h, indexed_rows.h.
 */
/* ps_row_shape - the properties that all rows of a partition share, as the
 * numbers that the layouts use */
#ifndef PS_MODEL_ROW_SHAPE_H
#define PS_MODEL_ROW_SHAPE_H

#include "base/cursor.h"
#include "model/tables/partition.h"
#include "model/updaters/updater.h"

/* How much of a row to prefetch. */
typedef enum ps_row_need {
    PS_NEED_HEAD = 0,   /* key and version */
    PS_NEED_VALUES = 1, /* and values */
    PS_NEED_ALL = 2     /* and the updater's state */
} ps_row_need_t;

typedef struct ps_row_shape {
    const ps_table_spec_t *spec; /* borrowed from the store */
    const ps_updater_t *updater; /* borrowed from the store */
    const uint32_t *worker;      /* whose deltas are being applied; the store's */
    const uint64_t *version;     /* of the changes being applied; NULL: none */
    ps_type_t type;              /* of values and state */
    uint32_t value_size;         /* bytes of one value: 4 or 8 */
    uint32_t n_states;           /* state arrays beside the values */
    uint32_t first_col;          /* of the partition */
    uint32_t width;              /* columns of the partition */
} ps_row_shape_t;

/* A dense row, wherever it lies. */
typedef struct ps_dense_row {
    uint8_t *values;     /* width of them */
    uint8_t *state;      /* NULL: none */
    size_t state_stride; /* values from one state array to the next */
} ps_dense_row_t;

/* Bytes of a dense row with its state. It fits a size_t: columns are at most
 * 2^31, arrays 257, values 8 bytes. */
static inline size_t ps_row_shape_bytes(const ps_row_shape_t *self)
{
    return (size_t)self->width * self->value_size * (1 + self->n_states);
}

/* True for zero and minus zero. */
static inline bool ps_value_is_zero(ps_type_t type, const uint8_t *value)
{
    switch (type) {
    case PS_TYPE_I32:
        return ps_load_u32(value) == 0;
    case PS_TYPE_F32:
        return ps_load_u32(value) << 1 == 0;
    case PS_TYPE_F64:
        return ps_load_u64(value) << 1 == 0;
    case PS_TYPE_I64:
    default:
        return ps_load_u64(value) == 0;
    }
}

/* Copies n values; a single one, the most common case, without a call. */
static inline void ps_values_copy(uint8_t *to, const uint8_t *from, size_t n, size_t value_size)
{
    if (n == 1 && value_size == 4) {
        memcpy(to, from, 4);
    } else if (n == 1) {
        memcpy(to, from, 8);
    } else {
        memcpy(to, from, n * value_size);
    }
}
#endif
