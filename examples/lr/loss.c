/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and their slopes. */
#include "loss.h"

#include <math.h>

#include "../common/samples/evaluate.h"

static double logit(double m, double y)
{
    return ex_logistic_loss(y * m);
}

static double logit_slope(double m, double y)
{
    return -y * ex_sigmoid(-y * m);
}

static double logit_curve(double m, double y)
{
    double p = ex_sigmoid(-y * m);

    return p * (1 - p);
}

static double square(double m, double y)
{
    return (m - y) * (m - y) / 2;
}

static double square_slope(double m, double y)
{
    return m - y;
}

static double square_curve(double m, double y)
{
    (void)m;
    (void)y;
    return 1;
}

static double hinge(double m, double y)
{
    return fmax(0, 1 - y * m);
}

static double hinge_slope(double m, double y)
{
    return y * m < 1 ? -y : 0;
}

static double square_hinge(double m, double y)
{
    return hinge(m, y) * hinge(m, y);
}

static double square_hinge_slope(double m, double y)
{
    return -2 * y * hinge(m, y);
}

static double square_hinge_curve(double m, double y)
{
    return y * m < 1 ? 2 : 0;
}

static const lr_loss_t LOSSES[] = {
    [LR_LOGIT] = {"logit", logit, logit_slope, logit_curve},
    [LR_SQUARE] = {"square", square, square_slope, square_curve},
    [LR_HINGE] = {"hinge", hinge, hinge_slope, NULL},
    [LR_SQUARE_HINGE] = {"square-hinge", square_hinge, square_hinge_slope, square_hinge_curve},
};

const lr_loss_t *lr_loss_of(unsigned kind)
{
    return &LOSSES[kind];
}

double lr_rate(int decay, double beta, double x)
{
    return decay ? 1 / (beta + x) : 1;
}
