/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What filters do to bytes, to values, and to time: pushes as trainers make
 * them, through every filter and back, as a table in Markdown. The table of
 * docs/performance.md is what this prints. Times are the best of several runs;
 * what is random has fixed seeds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/rng.h"
#include "client/slices/sparsify.h"
#include "wire/filters/filter_code.h"

#define RUNS 7

/* A push of n rows x n_cols f32. */
typedef struct sample {
    const char *name;
    ps_rows_kind_t rows;
    uint64_t n_rows;
    uint32_t n_cols;
    uint64_t keys_below; /* of so many, ascending, each equally likely */
    double zeros;        /* share of values that are 0 */
    uint64_t *keys;
    float *values;
} sample_t;

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double gaussian(ps_rng_t *rng)
{
    double radius = sqrt(-2 * log(1 - ps_rng_f64(rng)));

    return radius * cos(2 * 3.14159265358979 * ps_rng_f64(rng));
}

static bool fill(sample_t *self)
{
    ps_rng_t rng = {.state = 1};
    size_t n = self->n_rows * self->n_cols;
    uint64_t key = 0;
    double gap = (double)self->keys_below / (double)self->n_rows;

    self->keys = ps_alloc(self->n_rows, sizeof *self->keys);
    self->values = ps_alloc(n, sizeof *self->values);
    if (self->keys == NULL || self->values == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < self->n_rows; i++) { /* geometric gaps */
        key += 1 + (uint64_t)(log(1 - ps_rng_f64(&rng)) / log(1 - 1 / gap));
        self->keys[i] = key;
    }
    for (size_t i = 0; i < n; i++) {
        self->values[i] = ps_rng_f64(&rng) < self->zeros ? 0 : (float)(gaussian(&rng) * 1e-3);
    }
    return true;
}

/* What came of one filter. */
typedef struct outcome {
    size_t plain_bytes;
    size_t bytes;
    double write_ns;
    double read_ns;
    double error; /* rms, as a share of the values' */
} outcome_t;

static ps_bytes_t bytes_of(const void *data, size_t size)
{
    return (ps_bytes_t){size == 0 ? NULL : data, size};
}

static ps_payload_t *body_of(const sample_t *self, bool named)
{
    size_t n = self->n_rows * self->n_cols;
    size_t keys_size = self->rows == PS_ROWS_LIST ? self->n_rows * 8 : 0;

    return ps_payload_copy(bytes_of(self->keys, named ? 16 : keys_size), bytes_of(NULL, 0),
                           bytes_of(self->values, n * sizeof(float)));
}

static ps_message_t push_of(const sample_t *self, bool named)
{
    ps_message_t message = {.kind = PS_KIND_PUSH};
    const ps_slice_t slice = {.rows = named ? PS_ROWS_CACHED : self->rows,
                              .type = PS_TYPE_F32,
                              .n_rows = self->n_rows,
                              .n_cols = self->n_cols,
                              .n_values = self->n_rows * self->n_cols};

    ps_message_set_slice(&message, &slice);
    return message;
}

static double rms_of(const float *values, const float *from, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        double d = (double)values[i] - (from == NULL ? 0 : (double)from[i]);

        sum += d * d;
    }
    return sqrt(sum / (double)n);
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* Writes and reads a body; false: no memory. */
static bool go_through(const ps_filter_t *filter, const ps_message_t *push, ps_payload_t *body,
                       outcome_t *ret, ps_payload_t **ret_plain)
{
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);

    ret->bytes = ps_payload_size(body);
    ret->write_ns = ret->read_ns = 1e18;
    for (int run = 0; run < RUNS; run++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
        ps_message_t message = *push;
        ps_filter_t used;
        double began = now_ns();

        if (coder == NULL ||
            ps_coder_encode(coder, filter, &message, body, &coded, NULL) != PSD_OK) {
            return false;
        }
        ret->write_ns = least(ret->write_ns, now_ns() - began);
        if (coded == NULL) {
            ret->read_ns = 0;
            continue;
        }
        ps_payload_destroy(ret_plain);
        ret->bytes = ps_payload_size(coded);
        began = now_ns();
        if (ps_coder_decode(coder, &message, coded, UINT64_MAX, &used, ret_plain, NULL) != PSD_OK) {
            return false;
        }
        ret->read_ns = least(ret->read_ns, now_ns() - began);
    }
    return true;
}

/* What it takes to name a list. */
static double name_ns(ps_bytes_t keys)
{
    double best = 1e18;

    for (int run = 0; run < RUNS; run++) {
        double began = now_ns();
        ps_id_t hash;

        ps_hash_id(keys.data, keys.size, &hash);
        best = least(best, now_ns() - began + (hash.bytes[0] == 0 ? 1 : 0));
    }
    return best;
}

static bool measure(const sample_t *self, const ps_filter_t *filter, outcome_t *ret)
{
    size_t n = self->n_rows * self->n_cols;
    bool named = filter->cache && self->rows == PS_ROWS_LIST;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *whole = body_of(self, false);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *body = body_of(self, named);
    ps_message_t push = push_of(self, named);

    if (whole == NULL || body == NULL || !go_through(filter, &push, body, ret, &plain)) {
        return false;
    }
    ret->plain_bytes = ps_payload_size(whole);
    if (named) {
        ret->write_ns += name_ns(whole->keys);
    }
    if (plain != NULL) {
        PSD_AUTO(ps_free_at) float *back = ps_alloc(n, sizeof *back);

        if (back == NULL) {
            return false;
        }
        memcpy(back, plain->spans[0].data, n * sizeof *back);
        ret->error = rms_of(back, self->values, n) / rms_of(self->values, NULL, n);
    }
    return true;
}

/* What is sent of a thinned push; its error is what waits or is left out. */
static bool measure_thin(const sample_t *self, const ps_filter_t *filter, outcome_t *ret)
{
    size_t n = self->n_rows * self->n_cols;
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *thin = ps_sparsify_new(PS_TYPE_F32, self->n_cols, UINT64_MAX, 1);
    PSD_AUTO(ps_free_at) float *sent = ps_alloc(n, sizeof *sent);
    const ps_thin_rows_t rows = {.rows = self->keys, .n_rows = self->n_rows};
    ps_thinned_t thinned = {.n_rows = 0};
    const float *values = NULL;
    size_t at = 0;
    size_t row = 0;
    double began = 0;

    if (thin == NULL || sent == NULL) {
        return false;
    }
    if (ps_sparsify_push(thin, filter, &rows, self->values, &thinned, NULL) != PSD_OK) {
        return false;
    }
    *ret = (outcome_t){.write_ns = 1e18};
    values = thinned.values;
    for (size_t i = 0; i < thinned.n_rows; i++) {
        while (self->keys[row] != thinned.rows[i]) {
            row++;
        }
        for (uint32_t k = 0; k < (thinned.counts == NULL ? 1 : thinned.counts[i]); k++, at++) {
            uint32_t col = thinned.cols == NULL ? 0 : thinned.cols[at];

            sent[row * self->n_cols + col] = values[at];
        }
    }
    ret->plain_bytes = (self->rows == PS_ROWS_LIST ? self->n_rows * 8 : 0) + n * sizeof(float);
    ret->bytes = thinned.n_rows * (thinned.counts == NULL ? 8 : 12) +
                 thinned.n_values * (thinned.counts == NULL ? 4 : 8);
    ret->error = rms_of(sent, self->values, n) / rms_of(self->values, NULL, n);
    for (int run = 0; run < RUNS; run++) { /* rows that are known already */
        began = now_ns();
        if (ps_sparsify_push(thin, filter, &rows, self->values, &thinned, NULL) != PSD_OK) {
            return false;
        }
        ret->write_ns = least(ret->write_ns, now_ns() - began);
    }
    return true;
}

/* Below this speed of a network the time that bytes take outweighs the time
 * that the filter takes. */
static double pays_below(const outcome_t *outcome)
{
    double saved = (double)(outcome->plain_bytes - outcome->bytes) * 8;

    return saved / (outcome->write_ns + outcome->read_ns);
}

static bool print_row(const sample_t *self, const char *text)
{
    ps_filter_t filter = {0};
    outcome_t outcome = {0};
    double n = (double)(self->n_rows * self->n_cols);
    bool good = ps_filter_parse(text, &filter, NULL) == PSD_OK;

    good = good && (filter.thin != PS_THIN_NONE ? measure_thin(self, &filter, &outcome)
                                                : measure(self, &filter, &outcome));
    if (!good) {
        return false;
    }
    (void)printf("| `%s` | %.2f | %.1f %% |", text, (double)outcome.bytes / n,
                 100.0 * (double)outcome.bytes / (double)outcome.plain_bytes);
    if (outcome.error > 0) {
        (void)printf(" %.2g |", outcome.error);
    } else {
        (void)printf(" %s |", outcome.bytes < outcome.plain_bytes ? "exact" : "–");
    }
    if (outcome.bytes < outcome.plain_bytes) {
        (void)printf(" %.1f / %.1f | %.3g Gbit/s |\n", outcome.write_ns / n, outcome.read_ns / n,
                     pays_below(&outcome));
    } else {
        (void)printf(" %.1f / – | never |\n", outcome.write_ns / n);
    }
    return true;
}

static bool print_table(sample_t *self, const char *const *filters)
{
    bool good = fill(self);

    (void)printf("\n| %s | bytes a value | of plain | error | write / read, "
                 "ns a value | pays below |\n"
                 "| --- | --- | --- | --- | --- | --- |\n",
                 self->name);
    for (; good && *filters != NULL; filters++) {
        good = print_row(self, *filters);
    }
    ps_free(self->keys);
    ps_free(self->values);
    return good;
}

int main(void)
{
    static const char *const sparse[] = {"delta",
                                         "cache",
                                         "lz4",
                                         "zstd",
                                         "delta+f16",
                                         "cache+f16",
                                         "cache+fixed1",
                                         "cache+fixed2",
                                         "delta+zstd+bf16",
                                         "topk=0.1",
                                         NULL};
    static const char *const dense[] = {"lz4",       "zstd",      "f16",      "bf16",
                                        "fixed1",    "fixed2",    "fixed3",   "fixed4",
                                        "zstd+bf16", "topk=0.01", "skip=0.9", NULL};
    static const char *const zeros[] = {"lz4",         "zstd",      "f16", "lz4+f16",
                                        "zstd+fixed1", "topk=0.01", NULL};
    sample_t samples[] = {
        {.name = "100,000 of 1 M keys, ascending, × 1",
         .n_rows = 100000,
         .n_cols = 1,
         .keys_below = 1000000},
        {.name = "10,000 of 1 M keys, ascending, × 64",
         .n_rows = 10000,
         .n_cols = 64,
         .keys_below = 1000000},
        {.name = "dense gradient, 1,000 rows × 1,000, gaussian",
         .rows = PS_ROWS_RANGE,
         .n_rows = 1000,
         .n_cols = 1000,
         .keys_below = 10000},
        {.name = "the same, 95 % of the values 0",
         .rows = PS_ROWS_RANGE,
         .n_rows = 1000,
         .n_cols = 1000,
         .keys_below = 10000,
         .zeros = 0.95},
    };
    bool good = print_table(&samples[0], sparse) && print_table(&samples[1], sparse) &&
                print_table(&samples[2], dense) && print_table(&samples[3], zeros);

    return good ? 0 : 1;
}
