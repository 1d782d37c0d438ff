/* SPDX-License-Identifier: Apache-2.0 */
/* The margin of a factorisation machine for a sample, and its gradient. */
#include "kernel.h"

double fm_margin(const fm_view_t *self, const ex_samples_t *samples, size_t i, double *ret_sums)
{
    double linear = 0;
    double pairs = 0;

    for (size_t k = 0; k < self->dim; k++) {
        ret_sums[k] = 0;
    }
    for (size_t e = samples->starts[i]; e < samples->starts[i + 1]; e++) {
        uint32_t place = self->places[samples->features[e]];
        uint32_t slot = self->slots[place];
        double x = (double)samples->values[e];
        const float *factors = NULL;

        linear += (double)self->weights[place] * x;
        if (slot == FM_NO_SLOT) {
            continue;
        }
        factors = self->factors + (size_t)slot * self->dim;
        for (size_t k = 0; k < self->dim; k++) {
            double part = (double)factors[k] * x;

            ret_sums[k] += part;
            pairs -= part * part;
        }
    }
    for (size_t k = 0; k < self->dim; k++) {
        pairs += ret_sums[k] * ret_sums[k];
    }
    return linear + pairs / 2;
}

void fm_gradient(const fm_view_t *self, const ex_samples_t *samples, size_t i, const double *sums,
                 double slope, double *weights, double *factors)
{
    for (size_t e = samples->starts[i]; e < samples->starts[i + 1]; e++) {
        uint32_t place = self->places[samples->features[e]];
        uint32_t slot = self->slots[place];
        double x = (double)samples->values[e];
        size_t at = (size_t)slot * self->dim;

        weights[place] += slope * x;
        for (size_t k = 0; slot != FM_NO_SLOT && k < self->dim; k++) {
            factors[at + k] += slope * x * (sums[k] - (double)self->factors[at + k] * x);
        }
    }
}
