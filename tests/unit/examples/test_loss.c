/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lr/loss.h: values that are known, slopes against differences. */
#include "lr/loss.h"

#include <criterion/criterion.h>
#include <math.h>

Test(loss, slopes_are_those_of_the_values)
{
    const double H = 1e-6;

    for (unsigned kind = LR_LOGIT; kind <= LR_SQUARE_HINGE; kind++) {
        const lr_loss_t *loss = lr_loss_of(kind);

        for (int label = -1; label <= 1; label += 2) {
            for (double m = -3.05; m < 3; m += 0.1) {
                double slope = (loss->value(m + H, label) - loss->value(m - H, label)) / (2 * H);

                cr_assert_float_eq(loss->slope(m, label), slope, 1e-6, "%s at %g", loss->name, m);
            }
        }
    }
}

Test(loss, curves_are_those_of_the_slopes)
{
    const double H = 1e-6;

    cr_assert_null(lr_loss_of(LR_HINGE)->curve);
    for (unsigned kind = LR_LOGIT; kind <= LR_SQUARE_HINGE; kind++) {
        const lr_loss_t *loss = lr_loss_of(kind);

        for (double m = -3.05; loss->curve != NULL && m < 3; m += 0.1) {
            double curve = (loss->slope(m + H, 1) - loss->slope(m - H, 1)) / (2 * H);

            cr_assert_float_eq(loss->curve(m, 1), curve, 1e-6, "%s at %g", loss->name, m);
        }
    }
}

Test(loss, values_are_those_of_the_formulas)
{
    cr_assert_float_eq(lr_loss_of(LR_LOGIT)->value(0, 1), log(2), 1e-15);
    cr_assert_float_eq(lr_loss_of(LR_SQUARE)->value(3, 0.5), 3.125, 1e-15);
    cr_assert_float_eq(lr_loss_of(LR_HINGE)->value(0.25, -1), 1.25, 1e-15);
    cr_assert_eq(lr_loss_of(LR_HINGE)->value(2, 1), 0);
    cr_assert_float_eq(lr_loss_of(LR_SQUARE_HINGE)->value(0.5, 1), 0.25, 1e-15);
    cr_assert_float_eq(lr_loss_of(LR_SQUARE_HINGE)->slope(0.5, 1), -1, 1e-15);
}

Test(loss, rates_are_constant_or_decay)
{
    const double xs[] = {0, 1, 100};

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lr_rate(0, 2, xs[i]), 1);
        cr_assert_float_eq(lr_rate(1, 2, xs[i]), 1 / (2 + xs[i]), 1e-15);
    }
}
