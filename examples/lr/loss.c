/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and their slopes. */
#include "loss.h"

#include <math.h>

#include "../common/evaluate.h"

static double
logit(double m, double y)
{
    return ex_logistic_loss(y * m);
}

static double
logit_slope(double m, double y)
{
    return -y * ex_sigmoid(-y * m);
}

static double
square(double m, double y)
{
    return (m - y) * (m - y) / 2;
}

static double
square_slope(double m, double y)
{
    return m - y;
}

static double
hinge(double m, double y)
{
    return fmax(0, 1 - y * m);
}

static double
hinge_slope(double m, double y)
{
    return y * m < 1 ? -y : 0;
}

static double
square_hinge(double m, double y)
{
    return hinge(m, y) * hinge(m, y);
}

static double
square_hinge_slope(double m, double y)
{
    return -2 * y * hinge(m, y);
}

static const lr_loss_t LOSSES[] = {
    [LR_LOGIT] = {"logit", logit, logit_slope},
    [LR_SQUARE] = {"square", square, square_slope},
    [LR_HINGE] = {"hinge", hinge, hinge_slope},
    [LR_SQUARE_HINGE] = {"square-hinge", square_hinge, square_hinge_slope},
};

const lr_loss_t *
lr_loss_of(unsigned kind)
{
    return &LOSSES[kind];
}

double
lr_rate(int decay, double beta, double x)
{
    return decay ? 1 / (beta + x) : 1;
}
