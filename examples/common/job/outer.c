/* SPDX-License-Identifier: Apache-2.0 */
/* Fragments in turn; pushes counted in inner steps. */
#include "outer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

psd_status_t ex_outer_init(ex_outer_t *self, const ex_outer_rule_t *rule, size_t n,
                           const float *parameters, psd_error_t *err)
{
    *self = (ex_outer_t){.rule = *rule, .n = n};
    if (rule->overlap >= rule->every) {
        return psd_error_set(err, PSD_INVALID,
                             "an overlap of %" PRIu32 " inner steps is not allowed with outer "
                             "steps every %" PRIu32 "; less is",
                             rule->overlap, rule->every);
    }
    if (rule->fragments > n) {
        return psd_error_set(err, PSD_INVALID,
                             "%" PRIu32 " fragments are not allowed; there are %zu parameters",
                             rule->fragments, n);
    }
    self->start = calloc(n, sizeof *self->start);
    self->sent = calloc(n, sizeof *self->sent);
    if (self->start == NULL || self->sent == NULL) {
        ex_outer_done(self);
        return psd_error_set(err, PSD_NOMEM, "outer steps of %zu parameters", n);
    }
    memcpy(self->start, parameters, n * sizeof *parameters);
    return PSD_OK;
}

void ex_outer_done(ex_outer_t *self)
{
    free(self->start);
    free(self->sent);
    self->start = NULL;
    self->sent = NULL;
}

bool ex_outer_step(ex_outer_t *self)
{
    self->steps++;
    return self->steps % self->rule.every == 0;
}

bool ex_outer_pulls(const ex_outer_t *self)
{
    return self->pulls < self->pushes && self->steps % self->rule.every == self->rule.overlap;
}

void ex_outer_fragment(const ex_outer_t *self, size_t *ret_first, size_t *ret_n)
{
    uint64_t turn = self->pulls % self->rule.fragments;

    *ret_first = self->n * turn / self->rule.fragments;
    *ret_n = self->n * (turn + 1) / self->rule.fragments - *ret_first;
}

uint32_t ex_outer_left(const ex_outer_t *self)
{
    if (self->steps == 0) {
        return 0;
    }
    return self->rule.fragments - (self->steps % self->rule.every == 0 ? 1 : 0);
}

void ex_outer_push(ex_outer_t *self, const float *local, float *ret_deltas)
{
    size_t first = 0;
    size_t n = 0;

    ex_outer_fragment(self, &first, &n);
    for (size_t i = 0; i < n; i++) {
        self->sent[first + i] = local[first + i];
        ret_deltas[i] = self->start[first + i] - local[first + i];
    }
    self->pushes++;
}

void ex_outer_mix(ex_outer_t *self, const float *pulled, float *local)
{
    size_t first = 0;
    size_t n = 0;

    ex_outer_fragment(self, &first, &n);
    for (size_t i = first; i < first + n; i++) {
        local[i] = pulled[i - first] + (local[i] - self->sent[i]);
        self->start[i] = pulled[i - first];
    }
    self->pulls++;
}
