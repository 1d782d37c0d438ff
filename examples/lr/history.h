/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_history - the directions of L-BFGS, from scalar products
 *
 * What     The last steps s and how they have changed the gradient, y. The
 *          direction -H g is a sum of g, the y (each divided by the curvature M
 *          of its feature) and the s. Its factors need only scalar products, so
 *          that workers, each with a part of the vectors, add up numbers and
 *          exchange no vectors.
 * Owner    the caller; nothing to free
 * Source   Nocedal, Wright, Numerical Optimization, algorithm 7.4; Chen et al.,
 *          Large-scale L-BFGS using MapReduce, NIPS 2014
 */
#ifndef LR_HISTORY_H
#define LR_HISTORY_H

#include <stddef.h>

/* The number of steps kept. More steps need more products and save hardly
 * any epochs. */
#define LR_STEPS 8

/* Scalar products of one epoch, by place of the steps; those of a place that is
 * not used are 0. All doubles: they are summed over the workers as one array.
 */
typedef struct lr_products {
    double last_s_y[LR_STEPS]; /* the last s, each y */
    double s_last_y[LR_STEPS]; /* each s, the last y */
    double s_g[LR_STEPS];
    double y_g[LR_STEPS];           /* y / M, g */
    double g_g;                     /* g / M, g */
    double y_y[LR_STEPS][LR_STEPS]; /* y / M, y; [a][b] with a <= b */
} lr_products_t;

typedef struct lr_history {
    size_t n;               /* steps */
    size_t order[LR_STEPS]; /* their places, oldest first */
    double s_y[LR_STEPS][LR_STEPS];
} lr_history_t;

/* The direction is g * g / M + the sum of y[i] * y_i / M + s[i] * s_i. */
typedef struct lr_direction {
    double g;
    double y[LR_STEPS];
    double s[LR_STEPS];
} lr_direction_t;

/* The place where the next step goes: that of the oldest when all are used. */
size_t lr_history_next(lr_history_t *self);
/* The place of the last step, of which there is one. */
size_t lr_history_last(const lr_history_t *self);
/* The direction at a point with these products. */
void lr_history_direct(lr_history_t *self, const lr_products_t *products,
                       lr_direction_t *ret_direction);
#endif
