/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and seconds of each link, the older ones with less weight. */
#include "protocol/overlay/rates.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

typedef struct link {
    double bytes; /* weighted */
    double s;     /* weighted, of the same transfers; 0: never measured */
    uint64_t clock;
} link_t;

typedef struct end {
    double out; /* 0: never seen */
    double in;
    uint64_t out_clock;
    uint64_t in_clock;
} end_t;

struct ps_rates {
    uint32_t n;
    uint64_t expiry;
    link_t *links; /* [from][to] */
    end_t *ends;
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
    self->ends = ps_alloc(n_ends, sizeof *self->ends);
    if (self->links == NULL || self->ends == NULL) {
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
        ps_free((*self_p)->ends);
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

static void see(const ps_rates_t *self, double *rate, uint64_t *when, double seen, uint64_t clock)
{
    if (seen > 0 && isfinite(seen) && (is_old(self, *when, clock) || seen >= *rate)) {
        *rate = seen;
        *when = clock;
    }
}

void ps_rates_seen(ps_rates_t *self, uint32_t end, double out, double in, uint64_t clock)
{
    if (end < self->n) {
        end_t *at = &self->ends[end];

        see(self, &at->out, &at->out_clock, out, clock);
        see(self, &at->in, &at->in_clock, in, clock);
    }
}

void ps_rates_forget(ps_rates_t *self, uint32_t end)
{
    if (end >= self->n) {
        return;
    }
    self->ends[end] = (end_t){0};
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

double ps_rates_out(const ps_rates_t *self, uint32_t end, uint64_t clock)
{
    return is_old(self, self->ends[end].out_clock, clock) ? 0 : self->ends[end].out;
}

double ps_rates_in(const ps_rates_t *self, uint32_t end, uint64_t clock)
{
    return is_old(self, self->ends[end].in_clock, clock) ? 0 : self->ends[end].in;
}

/* ---- guesses ---- */

/* A known link, by the sites of its ends. */
typedef struct known {
    uint32_t from_site;
    uint32_t to_site;
    double rate;
} known_t;

static int compare_sites(const known_t *a, const known_t *b)
{
    if (a->from_site != b->from_site) {
        return a->from_site < b->from_site ? -1 : 1;
    }
    return a->to_site == b->to_site ? 0 : (a->to_site < b->to_site ? -1 : 1);
}

static int compare_known(const void *left, const void *right)
{
    const known_t *a = left;
    const known_t *b = right;
    int sites = compare_sites(a, b);

    return sites != 0 ? sites : (a->rate > b->rate) - (a->rate < b->rate);
}

static int compare_rates(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

/* The first of the sorted that is not before the wanted sites; past: that is after them. */
static size_t bound(const known_t *known, size_t n, const known_t *wanted, bool past)
{
    size_t first = 0;

    while (n > 0) {
        size_t half = n / 2;

        if (compare_sites(&known[first + half], wanted) < (past ? 1 : 0)) {
            first += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return first;
}

/* The median of the known links between two sites; `otherwise` when there is none. */
static double median_between(const known_t *known, size_t n, uint32_t from, uint32_t to,
                             double otherwise)
{
    known_t wanted = {.from_site = from, .to_site = to};
    size_t first = bound(known, n, &wanted, false);
    size_t end = bound(known, n, &wanted, true);

    return end == first ? otherwise : known[first + (end - first) / 2].rate;
}

/* Collects known links, sorted; returns how many. */
static size_t collect(const ps_rates_t *self, const uint32_t *sites, uint64_t clock, known_t *known)
{
    size_t n = 0;

    for (uint32_t i = 0; i < self->n; i++) {
        for (uint32_t j = 0; j < self->n; j++) {
            double rate = ps_rates_of(self, i, j, clock);

            if (rate > 0) {
                known[n++] = (known_t){sites[i], sites[j], rate};
            }
        }
    }
    qsort(known, n, sizeof *known, compare_known);
    return n;
}

psd_status_t ps_rates_guess(const ps_rates_t *self, const uint32_t *sites, uint64_t clock,
                            double otherwise, double *rates, psd_error_t *err)
{
    size_t n_all = (size_t)self->n * self->n;
    PSD_AUTO(ps_free_at) known_t *known = ps_alloc(n_all, sizeof *known);

    if (known == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for guesses of %zu links", n_all);
    }
    size_t n = collect(self, sites, clock, known);

    for (size_t i = 0; i < n; i++) {
        rates[i] = known[i].rate;
    }
    qsort(rates, n, sizeof *rates, compare_rates);

    double median = n > 0 ? rates[n / 2] : otherwise;

    for (uint32_t i = 0; i < self->n; i++) {
        for (uint32_t j = 0; j < self->n; j++) {
            double rate = ps_rates_of(self, i, j, clock);

            if (rate <= 0) {
                rate = median_between(known, n, sites[i], sites[j], median);
            }
            rates[(size_t)i * self->n + j] = i == j ? 0 : rate;
        }
    }
    return PSD_OK;
}
