/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and seconds of each link, the older ones with less weight. */
#include "protocol/overlay/rates.h"

#include <inttypes.h>
#include <math.h>

#include "base/alloc.h"

typedef struct link {
    double bytes; /* weighted */
    double s;     /* weighted, of the same transfers; 0: never measured */
    uint64_t clock;
} link_t;

struct ps_rates {
    uint32_t n;
    uint64_t expiry;
    link_t *links; /* [from][to] */
};

psd_status_t ps_rates_new(uint32_t n_ends, uint64_t expiry, ps_rates_t **ret_rates,
                          psd_error_t *err)
{
    PSD_AUTO(ps_rates_destroy) ps_rates_t *self = NULL;

    if (n_ends > PS_RATES_ENDS_MAX || expiry == 0) {
        return psd_error_set(err, PSD_INVALID,
                             "links between %" PRIu32 " ends, unknown after %" PRIu64
                             " clocks; at most %u ends and at least 1 clock are allowed",
                             n_ends, expiry, PS_RATES_ENDS_MAX);
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for measured links");
    }
    self->n = n_ends;
    self->expiry = expiry;
    self->links = ps_alloc((size_t)n_ends * n_ends, sizeof *self->links);
    if (self->links == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for links between %" PRIu32 " ends",
                             n_ends);
    }
    *ret_rates = self;
    self = NULL;
    return PSD_OK;
}

void ps_rates_destroy(ps_rates_t **self_p)
{
    if (*self_p != NULL) {
        ps_free((*self_p)->links);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

static link_t *link_of(const ps_rates_t *self, uint32_t from, uint32_t to)
{
    return &self->links[(size_t)from * self->n + to];
}

/* Is what was seen at clock `then` unknown again? A report may be late, never early. */
static bool is_old(const ps_rates_t *self, uint64_t then, uint64_t clock)
{
    return clock > then && clock - then > self->expiry;
}

void ps_rates_measured(ps_rates_t *self, uint32_t from, uint32_t to, uint64_t bytes, uint64_t us,
                       uint64_t clock)
{
    if (from >= self->n || to >= self->n || from == to || bytes < PS_RATES_MEASURE_BYTES ||
        us == 0) {
        return;
    }
    link_t *link = link_of(self, from, to);
    double keep =
        is_old(self, link->clock, clock) ? 0 : exp2(-(double)bytes / PS_RATES_MEMORY_BYTES);

    link->bytes = link->bytes * keep + (double)bytes;
    link->s = link->s * keep + (double)us / 1e6;
    link->clock = clock;
}

void ps_rates_forget(ps_rates_t *self, uint32_t end)
{
    if (end >= self->n) {
        return;
    }
    for (uint32_t i = 0; i < self->n; i++) {
        *link_of(self, end, i) = (link_t){0};
        *link_of(self, i, end) = (link_t){0};
    }
}

double ps_rates_of(const ps_rates_t *self, uint32_t from, uint32_t to, uint64_t clock)
{
    const link_t *link = link_of(self, from, to);

    return link->s > 0 && !is_old(self, link->clock, clock) ? link->bytes / link->s : 0;
}
