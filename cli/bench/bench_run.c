/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats of cases and limits, in turns. */
#include "cli/bench/bench_run.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/bench/bench_figure.h"
#include "cli/machine/bench_stats.h"

#define SMALL_BYTES 1024 /* a smaller request costs per request, not per byte */
#define FEW_FLOATS 4     /* a random key costs more than this many floats */
#define LIMIT_MS 150     /* long enough to measure a limit */

static psd_status_t append(ps_bench_series_t *series, double value, psd_error_t *err)
{
    if (!ps_grow(&series->values, &series->capacity, series->n + 1, sizeof *series->values)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a figure");
    }
    series->values[series->n++] = value;
    return PSD_OK;
}

ps_bench_measure_t ps_bench_measure_of(const ps_bench_shape_t *shape)
{
    if (shape->hash && shape->n_keys > 1 && shape->n_cols <= FEW_FLOATS) {
        return PS_BENCH_BY_KEYS;
    }
    if (ps_bench_bytes(shape) > SMALL_BYTES || shape->n_keys > 1) {
        return PS_BENCH_BY_BYTES;
    }
    return shape->in_flight == 1 ? PS_BENCH_BY_TIME : PS_BENCH_BY_COUNT;
}

void ps_bench_case_limit(ps_bench_case_t *self, const char *transport)
{
    bool lane = strcmp(transport, "lane") == 0;
    bool tcp = strcmp(transport, "tcp") == 0;

    self->n_limits = 1;
    switch (ps_bench_measure_of(&self->shape)) {
    case PS_BENCH_BY_TIME:
        self->limits[0] = lane ? PS_LIMIT_SPIN : PS_LIMIT_ZMQ_TRIP;
        break;
    case PS_BENCH_BY_COUNT:
        self->limits[0] = lane ? PS_LIMIT_RING_SMALL : PS_LIMIT_ZMQ_SMALL;
        break;
    case PS_BENCH_BY_KEYS:
        self->limits[0] = PS_LIMIT_LOOKUP;
        break;
    case PS_BENCH_BY_BYTES:
    default:
        if (tcp) {
            self->limits[0] = PS_LIMIT_TCP;
        } else if (self->shape.n_keys > 1) {
            self->limits[0] = PS_LIMIT_MEMCPY;
        } else {
            self->limits[0] = PS_LIMIT_RING;
            self->limits[1] = PS_LIMIT_ADD;
            self->n_limits = 2;
        }
    }
}

void ps_bench_case_done(ps_bench_case_t *self)
{
    ps_free(self->requests_s.values);
    ps_free(self->p50_s.values);
    ps_free(self->p99_s.values);
    ps_free(self->p999_s.values);
    ps_free(self->limit.values);
    ps_free(self->ratio.values);
    *self = (ps_bench_case_t){0};
}

/* Each limit that one of the cases wants, once. */
static psd_status_t measure_limits(ps_bench_run_t *self, const ps_bench_case_t *cases,
                                   size_t n_cases, psd_error_t *err)
{
    bool wanted[PS_LIMIT_COUNT] = {false};
    uint64_t ms = self->duration_ms < LIMIT_MS ? self->duration_ms : LIMIT_MS;

    for (size_t i = 0; i < n_cases; i++) {
        for (size_t k = 0; k < cases[i].n_limits; k++) {
            wanted[cases[i].limits[k]] = true;
        }
    }
    for (size_t i = 0; i < PS_LIMIT_COUNT; i++) {
        double value = 0;
        psd_status_t rc = PSD_OK;

        if (wanted[i]) {
            rc = ps_machine_measure(self->machine, (ps_limit_t)i, (uint32_t)ms, &value, err);
        }
        if (rc == PSD_OK && wanted[i]) {
            rc = append(&self->limits[i], value, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

/* The slower of the case's limits, as this repeat has measured them. */
static double slowest(const ps_bench_run_t *self, const ps_bench_case_t *one)
{
    double least = 0;

    for (size_t i = 0; i < one->n_limits; i++) {
        const ps_bench_series_t *limit = &self->limits[one->limits[i]];
        double value = limit->values[limit->n - 1];

        least = i == 0 || value < least ? value : least;
    }
    return least;
}

static double ratio_of(const ps_bench_case_t *one, const ps_bench_sample_t *sample, double limit)
{
    double value = sample->requests_s;

    switch (ps_bench_measure_of(&one->shape)) {
    case PS_BENCH_BY_TIME:
        value = sample->p50_s;
        break;
    case PS_BENCH_BY_COUNT:
        break;
    case PS_BENCH_BY_KEYS:
        value *= (double)one->shape.n_keys;
        break;
    case PS_BENCH_BY_BYTES:
    default:
        value *= (double)ps_bench_bytes(&one->shape);
    }
    return limit > 0 ? value / limit : 0;
}

psd_status_t ps_bench_case_add(ps_bench_case_t *self, const ps_bench_sample_t *sample, double limit,
                               psd_error_t *err)
{
    psd_status_t rc = append(&self->requests_s, sample->requests_s, err);

    if (rc == PSD_OK) {
        rc = append(&self->limit, limit, err);
    }
    if (rc == PSD_OK) {
        rc = append(&self->ratio, ratio_of(self, sample, limit), err);
    }
    if (rc != PSD_OK || self->shape.in_flight != 1) {
        return rc;
    }
    rc = append(&self->p50_s, sample->p50_s, err);
    if (rc == PSD_OK) {
        rc = append(&self->p99_s, sample->p99_s, err);
    }
    if (rc == PSD_OK) {
        rc = append(&self->p999_s, sample->p999_s, err);
    }
    self->max_s = sample->max_s > self->max_s ? sample->max_s : self->max_s;
    return rc;
}

static psd_status_t measure_case(ps_bench_run_t *self, ps_bench_case_t *one, psd_error_t *err)
{
    ps_bench_sample_t sample = {0};
    psd_status_t rc = ps_bench_team_sample(one->team, &one->shape, one->n, &sample, err);

    return rc != PSD_OK ? rc : ps_bench_case_add(one, &sample, slowest(self, one), err);
}

static psd_status_t warm_up(ps_bench_run_t *self, ps_bench_case_t *one, psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = ps_bench_team_warm(one->team, &one->shape, self->duration_ms, &n, err);

    if (rc == PSD_OK && one->n == 0) {
        one->n = n;
    }
    return rc;
}

/* For users who wait for the table, and those who will not. */
static void say(const ps_bench_run_t *self, const ps_bench_case_t *one)
{
    ps_bench_stat_t rate = ps_bench_stat_of(one->requests_s.values, one->requests_s.n);
    int digits = rate.median < 100 ? 1 : 0;

    ps_say(&self->cli->out,
           "  %s over %s, %zu x %" PRIu64 " floats, %u in flight: %.*f requests/s (%.*f to %.*f)",
           ps_bench_kind_name(one->shape.kind), one->team->transport, one->shape.n_keys,
           one->shape.n_cols, one->shape.in_flight, digits, rate.median, digits, rate.min, digits,
           rate.max);
}

psd_status_t ps_bench_run_cases(ps_bench_run_t *self, ps_bench_case_t *cases, size_t n_cases,
                                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < n_cases; i++) {
        rc = warm_up(self, &cases[i], err);
    }
    for (uint32_t repeat = 0; rc == PSD_OK && repeat < self->repeats; repeat++) {
        rc = measure_limits(self, cases, n_cases, err);
        for (size_t i = 0; rc == PSD_OK && i < n_cases; i++) {
            rc = measure_case(self, &cases[i], err);
        }
    }
    for (size_t i = 0; rc == PSD_OK && i < n_cases; i++) {
        rc = ps_bench_figure_add(self->figures, &cases[i], err);
        if (rc == PSD_OK) {
            say(self, &cases[i]);
        }
    }
    return rc;
}

psd_status_t ps_bench_run_finish(ps_bench_run_t *self, json_t *doc, psd_error_t *err)
{
    return ps_bench_figure_limits(self->limits, doc, err);
}

void ps_bench_run_done(ps_bench_run_t *self)
{
    for (size_t i = 0; i < PS_LIMIT_COUNT; i++) {
        ps_free(self->limits[i].values);
    }
    *self = (ps_bench_run_t){0};
}
