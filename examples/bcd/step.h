/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step - the step of one weight from its gradient
 *
 * What     Proximal Newton step of one coordinate of
 *          sum log(1 + exp(-y w.x)) + lambda |w|_1 within its trust region,
 *          and whether it may be skipped from now on (KKT filter).
 * Source   Li et al., "Parameter Server for Distributed Machine Learning", 2013
 */
#ifndef BCD_STEP_H
#define BCD_STEP_H

#include <stdbool.h>

/* What steps have in common. */
typedef struct bcd_rule {
    double lambda;
    double eta;       /* fraction of a step to take */
    double delta_max; /* trust region at most */
    double skip;      /* threshold of the KKT filter; < 0: none */
} bcd_rule_t;

/* One weight. */
typedef struct bcd_weight {
    double w;
    double delta;     /* trust region: the next step is at most this */
    double violation; /* of the condition of optimality, seen last; >= 0 */
    bool is_skipped;
} bcd_weight_t;

/* Makes the step with g and u of all samples; returns how far w has moved. */
double bcd_step(bcd_weight_t *self, const bcd_rule_t *rule, double g, double u);
#endif
