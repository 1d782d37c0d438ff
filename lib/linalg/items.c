/* SPDX-License-Identifier: Apache-2.0 */
/* Operations item by item, for vectors and matrices. Sums are in double
 * precision: float is too short for a million items. */
#include "linalg/linalg.h"

#include <math.h>

psd_status_t ps_linalg_check_op(psd_op_t op, psd_error_t *err)
{
    /* A number of another language may be none of the enumeration's. */
    return (unsigned)op <= PSD_OP_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID, "%u is not an operation; 0 .. %d are",
                               (unsigned)op, PSD_OP_MAX);
}

psd_status_t ps_linalg_check_range(const char *what, size_t first, size_t n, size_t count,
                                   psd_error_t *err)
{
    return first <= count && n <= count - first
               ? PSD_OK
               : psd_error_set(err, PSD_RANGE, "%zu %s from %zu on, of %zu", n, what, first, count);
}

double ps_linalg_norm(const float *values, size_t n, size_t step, psd_norm_t norm)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double size = fabs((double)values[i * step]);

        if (norm == PSD_NORM_1) {
            sum += size;
        } else if (norm == PSD_NORM_2) {
            sum += size * size;
        } else if (norm == PSD_NORM_MAX && (size > sum || isnan(size))) {
            sum = size; /* nothing is greater than NaN */
        }
    }
    return norm == PSD_NORM_2 ? sqrt(sum) : sum;
}

#define APPLY(name, expression)                                                       \
    static void name(const psd_vector_t *x, const psd_vector_t *y, psd_vector_t *out) \
    {                                                                                 \
        for (size_t i = 0; i < out->n; i++) {                                         \
            float a = x->values[i * x->step];                                         \
            float b = y->values[i * y->step];                                         \
                                                                                      \
            out->values[i * out->step] = (expression);                                \
        }                                                                             \
    }

APPLY(add, a + b)
APPLY(subtract, a - b)
APPLY(multiply, a *b)
APPLY(divide, a / b)
APPLY(least, b < a ? b : a)
APPLY(greatest, b > a ? b : a)

void ps_linalg_apply(psd_op_t op, const psd_vector_t *x, const psd_vector_t *y, psd_vector_t *out)
{
    static void (*const DO[])(const psd_vector_t *, const psd_vector_t *, psd_vector_t *) = {
        [PSD_OP_ADD] = add,       [PSD_OP_SUBTRACT] = subtract, [PSD_OP_MULTIPLY] = multiply,
        [PSD_OP_DIVIDE] = divide, [PSD_OP_MIN] = least,         [PSD_OP_MAX] = greatest,
    };

    DO[op](x, y, out);
}
