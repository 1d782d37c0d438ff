/* SPDX-License-Identifier: Apache-2.0 */
/* The directions of L-BFGS, from scalar products. */
#include "history.h"

#include <string.h>

size_t lr_history_next(lr_history_t *self)
{
    size_t place = self->n;

    if (self->n == LR_STEPS) {
        place = self->order[0];
        memmove(self->order, self->order + 1, (LR_STEPS - 1) * sizeof(self->order[0]));
        self->n--;
    }
    self->order[self->n++] = place;
    return place;
}

size_t lr_history_last(const lr_history_t *self)
{
    return self->order[self->n - 1];
}

static double y_y(const lr_products_t *products, size_t a, size_t b)
{
    return a < b ? products->y_y[a][b] : products->y_y[b][a];
}

/* Takes the new values: products with the last step. */
static void remember(lr_history_t *self, const lr_products_t *products)
{
    size_t last = lr_history_last(self);

    for (size_t i = 0; i < self->n; i++) {
        size_t place = self->order[i];

        self->s_y[last][place] = products->last_s_y[place];
        self->s_y[place][last] = products->s_last_y[place];
    }
}

void lr_history_direct(lr_history_t *self, const lr_products_t *products,
                       lr_direction_t *ret_direction)
{
    double alpha[LR_STEPS] = {0}; /* by place */
    double scale = 1;

    *ret_direction = (lr_direction_t){.g = -1};
    if (self->n == 0) {
        return;
    }
    remember(self, products);
    /* q = g - sum alpha y, from the last step back. */
    for (size_t i = self->n; i > 0; i--) {
        size_t a = self->order[i - 1];
        double product = products->s_g[a];

        for (size_t k = i; k < self->n; k++) {
            size_t b = self->order[k];

            product -= alpha[b] * self->s_y[a][b];
        }
        alpha[a] = product / self->s_y[a][a];
    }
    scale = self->s_y[lr_history_last(self)][lr_history_last(self)] /
            y_y(products, lr_history_last(self), lr_history_last(self));
    /* r = scale q / M + sum (alpha - beta) s, from the oldest on; the direction
     * is -r. */
    ret_direction->g = -scale;
    for (size_t i = 0; i < self->n; i++) {
        size_t a = self->order[i];
        double product = scale * products->y_g[a];

        for (size_t k = 0; k < self->n; k++) {
            size_t b = self->order[k];

            product -= scale * alpha[b] * y_y(products, a, b);
            /* Those after a are still 0. */
            product -= ret_direction->s[b] * self->s_y[b][a];
        }
        ret_direction->s[a] = product / self->s_y[a][a] - alpha[a];
        ret_direction->y[a] = scale * alpha[a];
    }
}
