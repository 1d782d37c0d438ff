/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clipped - an updater as a plug-in: gradient descent that does not trust large
 * gradients
 *
 *     pscli table create w --rows 1000 --updater
 * plugin:clipped:alpha=0.1,limit=1
 *
 * What     w -= alpha min(max(g, -limit), limit); one state counts how often a
 *          value's gradient was cut.
 * Shape    f32 only; TEXT is "alpha=F,limit=F", both positive
 */
#include <psd_updater.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct clipped {
    float alpha;
    float limit;
} clipped_t;

/* "alpha=" and a positive number, up to `stop`; NULL: not so. */
static const char *read_number(const char *text, const char *name, char stop, float *ret_value)
{
    size_t length = strlen(name);
    char *end = NULL;

    if (strncmp(text, name, length) != 0 || text[length] != '=') {
        return NULL;
    }
    *ret_value = strtof(text + length + 1, &end);
    if (!isfinite(*ret_value) || *ret_value <= 0 || *end != stop) {
        return NULL;
    }
    return end;
}

static int clipped_open(uint32_t type, const char *text, void **ret_self, char *ret_reason,
                        size_t reason_size)
{
    clipped_t numbers = {0, 0};
    clipped_t *self = NULL;
    const char *rest = read_number(text, "alpha", ',', &numbers.alpha);

    (void)type; /* there is only one that it takes */
    if (rest == NULL || read_number(rest + 1, "limit", '\0', &numbers.limit) == NULL) {
        (void)snprintf(ret_reason, reason_size, "allowed is alpha=F,limit=F with positive numbers");
        return -1;
    }
    self = malloc(sizeof *self);
    if (self == NULL) {
        (void)snprintf(ret_reason, reason_size, "no memory");
        return -1;
    }
    *self = numbers;
    *ret_self = self;
    return 0;
}

static void clipped_close(void *self)
{
    free(self);
}

static uint32_t clipped_n_states(const void *self)
{
    (void)self;
    return 1;
}

static void clipped_apply(const void *self, uint32_t worker, void *values, void *state,
                          size_t state_stride, const void *deltas, size_t n)
{
    const clipped_t *numbers = self;
    const float *g = deltas;
    float *w = values;
    float *n_cut = state;

    (void)worker;
    (void)state_stride; /* of a second state, which there is not */
    for (size_t i = 0; i < n; i++) {
        float low = g[i] < -numbers->limit ? -numbers->limit : g[i];
        float step = low > numbers->limit ? numbers->limit : low;

        w[i] -= numbers->alpha * step;
        n_cut[i] += step != g[i] ? 1 : 0;
    }
}

/* A gradient of zero moves nothing and cuts nothing: rows may be sparse. The
 * sum of a clock is cut as one gradient. */
static const psd_updater_t clipped = {
    .abi = PSD_UPDATER_ABI,
    .size = sizeof(psd_updater_t),
    .name = "clipped",
    .types = 1U << PSD_UPDATER_F32,
    .sparse = 1,
    .sums = 1,
    .open = clipped_open,
    .close = clipped_close,
    .n_states = clipped_n_states,
    .apply = clipped_apply,
};

const psd_updater_t *psd_updater_plugin(void)
{
    return &clipped;
}
