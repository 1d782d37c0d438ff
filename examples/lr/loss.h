/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_loss - the loss of a prediction, and its derivatives
 *
 * Units    m = w.x is the margin, y the label: +1 or -1, any number for the
 *          squared error
 */
#ifndef LR_LOSS_H
#define LR_LOSS_H

/* In the order of the words of --loss. */
enum { LR_LOGIT, LR_SQUARE, LR_HINGE, LR_SQUARE_HINGE };

typedef struct lr_loss {
    const char *name;
    double (*value)(double m, double y);
    double (*slope)(double m, double y); /* derivative by m */
    double (*curve)(double m, double y); /* second one; NULL: there is none */
} lr_loss_t;

/*
 * logit         log(1 + exp(-y m))
 * square        (m - y)^2 / 2
 * hinge         max(0, 1 - y m); its slope at y m = 1 is 0
 * square-hinge  max(0, 1 - y m)^2
 */
const lr_loss_t *lr_loss_of(unsigned kind);
/* Learning rate as a part of alpha: 1, or with decay 1 / (beta + x) after x
 * minibatches. */
double lr_rate(int decay, double beta, double x);
#endif
