/* SPDX-License-Identifier: Apache-2.0 */
/* ps_values_* - operations that change or measure n contiguous values */
#ifndef PS_MODEL_OPS_LOOPS_H
#define PS_MODEL_OPS_LOOPS_H

#include <stddef.h>

#include "base/slice.h"

/* Changes, in the table's type; integers wrap. The operand was checked. */
void ps_values_scale(ps_type_t type, uint8_t *values, size_t n, double operand);
void ps_values_fill(ps_type_t type, uint8_t *values, size_t n, double operand);
/* values += operand * other */
void ps_values_axpy(ps_type_t type, uint8_t *values, const uint8_t *other, size_t n,
                    double operand);

/* Sums continue from `sum`, value by value. */
double ps_values_sum(ps_type_t type, const uint8_t *values, size_t n, double sum);
double ps_values_squares(ps_type_t type, const uint8_t *values, size_t n, double sum);
double ps_values_dot(ps_type_t type, const uint8_t *values, const uint8_t *other, size_t n,
                     double sum);
uint64_t ps_values_nonzeros(ps_type_t type, const uint8_t *values, size_t n);
/* A number that is greater for a greater value, equal for 0 and -0; 0 only for
 * NaN. */
uint64_t ps_value_order(ps_type_t type, const uint8_t *value);
#endif
