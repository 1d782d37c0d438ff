/* SPDX-License-Identifier: Apache-2.0 */
/* client/slices/sparsify.h: which values of a push are sent. */
#include "client/slices/sparsify.h"

#include <criterion/criterion.h>
#include <math.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/fail_alloc.h"

#define NO_LIMIT UINT64_MAX
#define N_ROWS 200
#define N_COLS 3

static const ps_filter_t TOP = {.thin = PS_THIN_TOPK, .thin_amount = 0.1};

/* Everything that arrived, summed by row and column. */
typedef struct arrived {
    double sums[N_ROWS][N_COLS];
    size_t n_values;
} arrived_t;

static void arrive(arrived_t *self, const ps_thinned_t *thinned)
{
    const float *values = thinned->values;
    size_t at = 0;

    for (size_t i = 0; i < thinned->n_rows; i++) {
        uint32_t count = thinned->counts == NULL ? 1 : thinned->counts[i];

        cr_assert_lt(thinned->rows[i], N_ROWS);
        cr_assert_gt(count, 0);
        for (uint32_t k = 0; k < count; k++, at++) {
            uint32_t col = thinned->cols == NULL ? 0 : thinned->cols[at];

            cr_assert(k == 0 || col > thinned->cols[at - 1]);
            self->sums[thinned->rows[i]][col] += (double)values[at];
        }
    }
    cr_assert_eq(at, thinned->n_values);
    self->n_values += at;
}

static ps_thinned_t push(ps_sparsify_t *self, const ps_filter_t *filter, const uint64_t *rows,
                         size_t n_rows, const float *values)
{
    ps_thinned_t thinned = {0};
    const ps_thin_rows_t named = {.rows = rows, .n_rows = n_rows};

    cr_assert_eq(ps_sparsify_push(self, filter, &named, values, &thinned, NULL), PSD_OK);
    return thinned;
}

static ps_thinned_t rest_of(ps_sparsify_t *self)
{
    ps_thinned_t thinned = {0};

    cr_assert_eq(ps_sparsify_rest(self, &thinned, NULL), PSD_OK);
    return thinned;
}

Test(sparsify, largest_share_is_sent_and_the_rest_waits)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, 1, NO_LIMIT, 1);
    const uint64_t rows[] = {10, 11, 12, 13};
    const float values[] = {1, -4, 3, 2};
    const ps_filter_t half = {.thin = PS_THIN_TOPK, .thin_amount = 0.5};
    ps_thinned_t thinned = push(self, &half, rows, 4, values);

    cr_assert_eq(thinned.n_rows, 2);
    cr_assert_null(thinned.counts);
    cr_assert_eq(thinned.rows[0], 11);
    cr_assert_eq(thinned.rows[1], 12);
    cr_assert_eq(((const float *)thinned.values)[0], -4);
    thinned = push(self, &half, rows, 4, values);
    cr_assert_eq(thinned.n_rows, 2);
    cr_assert_eq(thinned.rows[0], 11);
    cr_assert_eq(thinned.rows[1], 13);
    cr_assert_eq(((const float *)thinned.values)[1], 4, "2 waited");
}

/* The promise: nothing is lost. Values of few bits make all sums exact. */
Test(sparsify, what_arrived_and_what_waits_is_what_was_pushed)
{
    static const ps_filter_t filters[] = {
        {.thin = PS_THIN_TOPK, .thin_amount = 0.01},
        {.thin = PS_THIN_TOPK, .thin_amount = 0.7},
        {.thin = PS_THIN_THRESHOLD, .thin_amount = 900},
    };

    for (size_t f = 0; f < 3; f++) {
        PSD_AUTO(ps_sparsify_destroy)
        ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, N_COLS, NO_LIMIT, 1);
        arrived_t arrived = {.n_values = 0};
        double pushed[N_ROWS][N_COLS] = {{0}};
        ps_rng_t rng = {.state = f};
        ps_thinned_t thinned;

        for (int turn = 0; turn < 50; turn++) {
            uint64_t rows[40];
            float values[40 * N_COLS];

            for (size_t i = 0; i < 40; i++) {
                rows[i] = ps_rng_below(&rng, N_ROWS); /* some of them twice */
                for (size_t c = 0; c < N_COLS; c++) {
                    int value = (int)ps_rng_below(&rng, 2001) - 1000;

                    values[i * N_COLS + c] = (float)value;
                    pushed[rows[i]][c] += value;
                }
            }
            thinned = push(self, &filters[f], rows, 40, values);
            arrive(&arrived, &thinned);
        }
        cr_assert_lt(arrived.n_values, 50 * 40 * N_COLS * 8 / 10);
        thinned = rest_of(self);
        arrive(&arrived, &thinned);
        cr_assert_arr_eq(arrived.sums, pushed, sizeof pushed);
        cr_assert_eq(ps_sparsify_n_held(self), 0);
        cr_assert_eq(rest_of(self).n_rows, 0);
    }
}

Test(sparsify, bits_that_f32_cannot_hold_wait_too)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, 1, NO_LIMIT, 1);
    const ps_filter_t large = {.thin = PS_THIN_THRESHOLD, .thin_amount = 1};
    const uint64_t row = 5;
    const float tiny = 0x1p-25F;
    const float one = 1;
    arrived_t arrived = {.n_values = 0};
    ps_thinned_t thinned = push(self, &large, &row, 1, &tiny);

    cr_assert_eq(thinned.n_rows, 0);
    thinned = push(self, &large, &row, 1, &one);
    arrive(&arrived, &thinned);
    thinned = rest_of(self);
    arrive(&arrived, &thinned);
    cr_assert_eq(arrived.sums[5][0], 1 + 0x1p-25);
}

Test(sparsify, threshold_sends_its_own_size)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F64, 1, NO_LIMIT, 1);
    const ps_filter_t at_two = {.thin = PS_THIN_THRESHOLD, .thin_amount = 2};
    const double values[] = {1.9, -2, 2.1};
    ps_thinned_t thinned = {0};
    const ps_thin_rows_t range = {.first_row = 7, .n_rows = 3};

    cr_assert_eq(ps_sparsify_push(self, &at_two, &range, values, &thinned, NULL), PSD_OK);
    cr_assert_eq(thinned.n_rows, 2);
    cr_assert_eq(thinned.rows[0], 8);
    cr_assert_eq(((const double *)thinned.values)[0], -2);
}

Test(sparsify, equal_values_are_sent_as_many_as_the_share_says)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, N_COLS, NO_LIMIT, 1);
    uint64_t rows[N_ROWS];
    float values[N_ROWS * N_COLS];

    for (size_t i = 0; i < N_ROWS; i++) {
        rows[i] = i;
    }
    for (size_t i = 0; i < N_ROWS * N_COLS; i++) {
        values[i] = i % 2 == 0 ? 1 : -1;
    }
    cr_assert_eq(push(self, &TOP, rows, N_ROWS, values).n_values, N_ROWS * N_COLS / 10);
}

Test(sparsify, zeros_are_never_sent)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, N_COLS, NO_LIMIT, 1);
    const uint64_t rows[] = {1, 2};
    const float zeros[2 * N_COLS] = {0};
    const ps_filter_t skip = {.thin = PS_THIN_SKIP, .thin_amount = 0.01};

    cr_assert_eq(push(self, &TOP, rows, 2, zeros).n_rows, 0);
    cr_assert_eq(push(self, &skip, rows, 2, zeros).n_rows, 0);
    cr_assert_eq(rest_of(self).n_rows, 0);
}

/* The server is to refuse it, as it would without a filter. */
Test(sparsify, what_is_no_number_is_sent_first)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, 1, NO_LIMIT, 1);
    const uint64_t rows[] = {1, 2, 3};
    const float values[] = {1e30F, NAN, 5};
    ps_thinned_t thinned = push(self, &TOP, rows, 3, values);

    cr_assert_eq(thinned.n_rows, 1);
    cr_assert_eq(thinned.rows[0], 2);
    cr_assert(isnan(((const float *)thinned.values)[0]));
    thinned = rest_of(self);
    cr_assert_eq(thinned.n_rows, 2);
}

/* As it would overflow on the server; the row goes on behind it. */
Test(sparsify, a_sum_beyond_f32_leaves_nothing_behind)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, 1, NO_LIMIT, 1);
    const ps_filter_t huge = {.thin = PS_THIN_THRESHOLD, .thin_amount = 3.3e38};
    const uint64_t row = 5;
    const float large = 3e38F;
    const float one = 1;
    ps_thinned_t thinned = push(self, &huge, &row, 1, &large);

    cr_assert_eq(thinned.n_values, 0);
    thinned = push(self, &huge, &row, 1, &large);
    cr_assert_eq(thinned.n_values, 1);
    cr_assert(isinf(((const float *)thinned.values)[0]));
    cr_assert_eq(push(self, &huge, &row, 1, &one).n_values, 0);
    thinned = rest_of(self);
    cr_assert_eq(thinned.n_values, 1);
    cr_assert_eq(((const float *)thinned.values)[0], 1);
}

Test(sparsify, rows_beyond_the_limit_are_sent_whole)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self =
        ps_sparsify_new(PS_TYPE_F32, 1, 2 * (PS_SPARSIFY_ROW_COST + sizeof(double)), 1);
    const uint64_t rows[] = {1, 2, 3, 4};
    const float values[] = {9, 1, 2, 3};
    ps_thinned_t thinned = push(self, &TOP, rows, 4, values);

    cr_assert_eq(ps_sparsify_n_held(self), 2);
    cr_assert_eq(thinned.n_rows, 3, "9 is the larger one of two that wait");
    thinned = rest_of(self);
    cr_assert_eq(thinned.n_rows, 1);
    cr_assert_eq(thinned.rows[0], 2);
}

/* Mean of what arrives over many pushes, within three standard deviations. */
Test(sparsify, skipping_is_unbiased)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, 1, NO_LIMIT, 7);
    const ps_filter_t skip = {.thin = PS_THIN_SKIP, .thin_amount = 0.75};
    const double n = 1000 * N_ROWS;
    uint64_t rows[N_ROWS];
    float values[N_ROWS];
    arrived_t arrived = {.n_values = 0};
    double sum = 0;

    for (size_t i = 0; i < N_ROWS; i++) {
        rows[i] = i;
        values[i] = 2;
    }
    for (int turn = 0; turn < 1000; turn++) {
        ps_thinned_t thinned = push(self, &skip, rows, N_ROWS, values);

        arrive(&arrived, &thinned);
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        sum += arrived.sums[i][0];
    }
    /* each is 8 with the chance 1/4, else 0: variance 12 */
    cr_assert_leq(fabs(sum / n - 2), 3 * sqrt(12 / n));
    cr_assert_leq(fabs((double)arrived.n_values / n - 0.25), 3 * sqrt(0.25 * 0.75 / n));
    cr_assert_eq(ps_sparsify_n_held(self), 0);
}

Test(sparsify, an_undone_push_was_never_made)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, 1, NO_LIMIT, 1);
    const ps_filter_t at_four = {.thin = PS_THIN_THRESHOLD, .thin_amount = 4};
    const uint64_t rows[] = {1, 2, 1, 3};
    const float values[] = {1, 2, 1, 9};
    ps_thinned_t thinned = push(self, &at_four, rows, 3, values);

    cr_assert_eq(thinned.n_values, 0);
    /* row 1 leaves, row 2 waits, row 3 is a new one */
    cr_assert_eq(push(self, &at_four, rows, 4, values).n_values, 3);
    ps_sparsify_undo(self);
    ps_sparsify_undo(self); /* there is nothing more to undo */
    thinned = rest_of(self);
    cr_assert_eq(thinned.n_rows, 2);
    cr_assert(thinned.rows[0] == 1 && thinned.rows[1] == 2);
    cr_assert_eq(((const float *)thinned.values)[0], 2);
    cr_assert_eq(((const float *)thinned.values)[1], 2);
}

Test(sparsify, an_undone_rest_waits_on)
{
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, N_COLS, NO_LIMIT, 1);
    const ps_filter_t huge = {.thin = PS_THIN_THRESHOLD, .thin_amount = 1e9};
    const uint64_t rows[] = {4, 2};
    const float values[2 * N_COLS] = {1, 2, 3, 4, 5, 6};

    cr_assert_eq(push(self, &huge, rows, 2, values).n_values, 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(rest_of(self).n_values, 6);
        cr_assert_eq(ps_sparsify_n_held(self), 0);
        ps_sparsify_undo(self);
        cr_assert_eq(ps_sparsify_n_held(self), 2);
        cr_assert_eq(push(self, &huge, rows, 1, values).n_values, 0);
    }
    cr_assert_eq(((const float *)rest_of(self).values)[1], 2 + 2 * 2);
    cr_assert_eq(push(self, &huge, rows, 1, values).n_values, 0);
    cr_assert_eq(((const float *)rest_of(self).values)[1], 2);
}

static psd_status_t thin_once(void *fixture)
{
    const float values[] = {1, 2, 3, 4, 5, 6};
    const uint64_t rows[] = {1, 2};
    const ps_thin_rows_t named = {.rows = rows, .n_rows = 2};
    ps_thinned_t thinned = {0};
    PSD_AUTO(ps_sparsify_destroy)
    ps_sparsify_t *self = ps_sparsify_new(PS_TYPE_F32, N_COLS, NO_LIMIT, 1);
    psd_status_t rc = PSD_OK;

    (void)fixture;
    if (self == NULL) {
        return PSD_NOMEM;
    }
    rc = ps_sparsify_push(self, &TOP, &named, values, &thinned, NULL);
    if (rc == PSD_OK) {
        cr_assert_eq(thinned.n_values, 1);
        rc = ps_sparsify_rest(self, &thinned, NULL);
        cr_assert(rc != PSD_OK || thinned.n_values == 5);
    }
    return rc;
}

Test(sparsify, no_memory_is_said)
{
    cr_assert_null(fail_alloc_sweep(thin_once, NULL));
}
