/* SPDX-License-Identifier: Apache-2.0 */
/* ps_shape - the properties of a table that lib/train needs to store values. */
#ifndef PS_TRAIN_SHAPE_H
#define PS_TRAIN_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct ps_shape {
    uint64_t n_rows; /* 0: hash keys */
    uint32_t n_cols; /* >= 1 */
    ps_type_t type;
    size_t value_size; /* bytes */
    bool adds;         /* its updater is `add` */
    bool sparse;       /* rows of few entries: they are kept as such */
} ps_shape_t;

/* A sum, or a value while it is converted between types. */
typedef union ps_number {
    double f64;  /* of f32 and f64 */
    int64_t i64; /* of i32 and i64 */
} ps_number_t;

static inline bool ps_type_is_float(ps_type_t type)
{
    return type == PS_TYPE_F32 || type == PS_TYPE_F64;
}

/* The row is one that the table can have. */
static inline bool ps_shape_has_row(const ps_shape_t *self, uint64_t row)
{
    return self->n_rows == 0 || row < self->n_rows;
}
#endif
