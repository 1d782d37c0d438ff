/* SPDX-License-Identifier: Apache-2.0 */
/* The step of one weight from its gradient. */
#include "step.h"

#include <math.h>

/* A curvature of nothing would make steps without bound. */
#define CURVATURE_MIN 1e-10

/* How far the slopes on both sides of w are from those of an optimum. */
static double violation_of(double w, double plus, double minus)
{
    if (w > 0) {
        return fabs(plus);
    }
    if (w < 0) {
        return fabs(minus);
    }
    return fmax(fmax(-plus, minus), 0);
}

double bcd_step(bcd_weight_t *self, const bcd_rule_t *rule, double g, double u)
{
    double plus = g + rule->lambda; /* slope to the right of w >= 0 */
    double minus = g - rule->lambda;
    double d = -self->w;

    self->violation = violation_of(self->w, plus, minus);
    if (self->w == 0 && rule->skip >= 0 && plus > rule->skip && minus < -rule->skip) {
        self->is_skipped = true;
        self->delta = fmin(rule->delta_max, 0.1); /* as after any step of 0 */
        return 0;
    }
    u = u / rule->eta + CURVATURE_MIN;
    if (plus <= u * self->w) {
        d = -plus / u;
    } else if (minus >= u * self->w) {
        d = -minus / u;
    }
    d = fmin(fmax(d, -self->delta), self->delta);
    self->delta = fmin(rule->delta_max, 2 * fabs(d) + 0.1);
    self->w += d;
    return d;
}
