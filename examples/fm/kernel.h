/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fm_kernel - the margin of a factorisation machine for a sample, and its
 * gradient
 *
 * What     margin = sum_i w_i x_i + sum_{i<j} (v_i . v_j) x_i x_j, of which the
 *          second sum is 1/2 sum_k ((sum_i v_ik x_i)^2 - sum_i v_ik^2 x_i^2):
 *          its time is linear in the entries, not in their pairs. A feature
 *          without an embedding has v = 0.
 * Source   Rendle, "Factorization machines", ICDM 2010
 */
#ifndef FM_KERNEL_H
#define FM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "../common/samples/samples.h"

#define FM_NO_SLOT UINT32_MAX

/* The parameters of some features. A feature has a place; one with an
 * embedding also has a slot. */
typedef struct fm_view {
    size_t dim;
    const uint32_t *places; /* by feature */
    const float *weights;   /* by place */
    const uint32_t *slots;  /* by place; FM_NO_SLOT: no embedding */
    const float *factors;   /* dim for each slot */
} fm_view_t;

/* The margin of sample i. ret_sums: sum_i v_ik x_i for each of the dim k. */
double fm_margin(const fm_view_t *self, const ex_samples_t *samples, size_t i, double *ret_sums);
/*
 * Adds the gradient of a loss by the parameters of sample i.
 *
 * sums     in      as fm_margin gave them for this sample
 * slope    in      of the loss by the margin
 * weights  in/out  by place
 * factors  in/out  dim for each slot
 */
void fm_gradient(const fm_view_t *self, const ex_samples_t *samples, size_t i, const double *sums,
                 double slope, double *weights, double *factors);
#endif
