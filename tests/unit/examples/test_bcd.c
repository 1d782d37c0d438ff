/* SPDX-License-Identifier: Apache-2.0 */
/* examples/bcd: slopes against differences, steps against their definition,
 * blocks. */
#include <criterion/criterion.h>
#include <math.h>

#include "bcd/blocks.h"
#include "bcd/step.h"
#include "common/samples/columns.h"

#define N_SAMPLES 40
#define N_FEATURES 7

static uint32_t state = 1;

/* -1 .. 1 */
static double next(void)
{
    state = state * 1664525U + 1013904223U;
    return (double)(state >> 8) / (1 << 23) - 1;
}

/* Samples of three groups; some values are 1, the weights differ. */
static void fill(ex_samples_t *samples)
{
    for (int i = 0; i < N_SAMPLES; i++) {
        float label = next() > 0 ? 1 : -1;
        float weight = i % 5 == 0 ? 2 : 1;

        cr_assert_eq(ex_samples_add(samples, label, weight, NULL), PSD_OK);
        for (uint64_t key = 0; key < N_FEATURES; key++) {
            double value = key % 2 == 0 ? 1 : 3 * next();

            if (next() > 0) {
                cr_assert_eq(
                    ex_samples_add_entry(samples, (int64_t)key % 3, 100 * key, (float)value, NULL),
                    PSD_OK);
            }
        }
    }
    cr_assert_eq(ex_samples_number(samples, NULL), PSD_OK);
}

/* The loss from nothing but the samples. */
static double loss_of(const ex_samples_t *samples, const double *w)
{
    double sum = 0;

    for (size_t i = 0; i < samples->n; i++) {
        double margin = 0;

        for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
            margin += w[samples->features[k]] * (double)samples->values[k];
        }
        sum += (double)samples->weights[i] * log1p(exp(-(double)samples->labels[i] * margin));
    }
    return sum;
}

Test(bcd, g_is_the_gradient_and_u_bounds_the_curvature)
{
    const double H = 1e-4;
    ex_samples_t samples = {0};
    ex_columns_t columns = {0};
    double w[N_FEATURES];

    fill(&samples);
    cr_assert_eq(ex_columns_init(&columns, &samples, NULL), PSD_OK);
    for (size_t j = 0; j < N_FEATURES; j++) {
        w[j] = next();
        ex_columns_move(&columns, j, w[j]);
    }
    cr_assert_float_eq(ex_columns_loss(&columns), loss_of(&samples, w), 1e-9);
    for (size_t j = 0; j < N_FEATURES; j++) {
        double delta = 0.5;
        double at = w[j];
        double g = 0;
        double u = 0;

        ex_columns_slope(&columns, j, delta, &g, &u);
        for (double d = -delta; d <= delta; d += delta / 5) {
            double here = 0;
            double left = 0;
            double right = 0;

            w[j] = at + d;
            here = loss_of(&samples, w);
            w[j] = at + d - H;
            left = loss_of(&samples, w);
            w[j] = at + d + H;
            right = loss_of(&samples, w);
            cr_assert_leq((left - 2 * here + right) / (H * H), u + 1e-4);
            if (fabs(d) < 1e-9) {
                cr_assert_float_eq((right - left) / (2 * H), g, 1e-6);
            }
        }
        w[j] = at;
    }
    ex_columns_done(&columns);
    ex_samples_done(&samples);
}

/* Where g d + u d^2 / 2 + lambda |w + d| is least, by looking everywhere. */
static double best_step(double w, double lambda, double g, double u, double delta)
{
    double best = 0;
    double least = INFINITY;

    for (int i = -20000; i <= 20000; i++) {
        double d = delta * i / 20000;
        double value = g * d + u * d * d / 2 + lambda * fabs(w + d);

        if (value < least) {
            least = value;
            best = d;
        }
    }
    return best;
}

Test(bcd, a_step_is_the_least_of_its_model_within_the_trust_region)
{
    const bcd_rule_t rule = {.lambda = 0.7, .eta = 1, .delta_max = 5, .skip = -1};

    for (int i = 0; i < 100; i++) {
        bcd_weight_t weight = {.w = i % 3 == 0 ? 0 : 2 * next(), .delta = 1};
        double w = weight.w;
        double g = 3 * next();
        double u = 0.2 + fabs(next());
        double d = bcd_step(&weight, &rule, g, u);

        cr_assert_float_eq(d, best_step(w, rule.lambda, g, u, 1), 2e-4);
        cr_assert_eq(weight.w, w + d);
        cr_assert_float_eq(weight.delta, fmin(5, 2 * fabs(d) + 0.1), 1e-12);
        cr_assert_not(weight.is_skipped);
    }
}

Test(bcd, only_a_weight_that_stays_zero_is_skipped)
{
    const bcd_rule_t rule = {.lambda = 1, .eta = 1, .delta_max = 5, .skip = 0.2};
    static const struct {
        double w;
        double g;
        bool is_skipped;
        double violation;
    } cases[] = {
        {0, 0.5, true, 0}, {0, -0.5, true, 0},   {0, 0.9, false, 0},    {0, 1.5, false, 0.5},
        {0, -3, false, 2}, {1, 0.5, false, 1.5}, {-1, 0.5, false, 0.5}, {1, -1, false, 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bcd_weight_t weight = {.w = cases[i].w, .delta = 1};

        bcd_step(&weight, &rule, cases[i].g, 1);
        cr_assert_eq(weight.is_skipped, cases[i].is_skipped, "case %zu", i);
        cr_assert_float_eq(weight.violation, cases[i].violation, 1e-12, "case %zu", i);
    }
}

Test(bcd, to_be_skipped_changes_nothing_but_that)
{
    bcd_rule_t rule = {.lambda = 1, .eta = 1, .delta_max = 5, .skip = 0.2};
    bcd_weight_t skipped = {.delta = 3};
    bcd_weight_t other = {.delta = 3};

    cr_assert_eq(bcd_step(&skipped, &rule, 0.5, 1), 0);
    rule.skip = -1;
    cr_assert_eq(bcd_step(&other, &rule, 0.5, 1), 0);
    cr_assert(skipped.is_skipped);
    cr_assert_not(other.is_skipped);
    cr_assert_eq(skipped.delta, other.delta);
    cr_assert_eq(skipped.w, other.w);
}

Test(bcd, a_group_has_as_many_blocks_as_the_formula_says)
{
    cr_assert_eq(bcd_blocks_count(1000, 1000, 4), 1);
    cr_assert_eq(bcd_blocks_count(1001, 1000, 4), 5);
    cr_assert_eq(bcd_blocks_count(22000, 1000, 4), 88);
    cr_assert_eq(bcd_blocks_count(22000, 1000, 0.01), 1);
    cr_assert_eq(bcd_blocks_count(0, 0, 4), 1);
}

Test(bcd, each_feature_is_in_one_block_of_its_group)
{
    const bcd_group_t groups[] = {{2, 60}, {0, 200}, {1, 20}, {77, 50}};
    const bcd_cut_t cut = {
        .groups = groups, .n_groups = 4, .n_prior = 1, .n_samples = N_SAMPLES, .ratio = 2};
    size_t seen[N_FEATURES] = {0};
    ex_samples_t samples = {0};
    bcd_blocks_t blocks = {0};

    fill(&samples);
    cr_assert_eq(bcd_blocks_init(&blocks, &samples, &cut, NULL), PSD_OK);
    cr_assert_eq(blocks.n_prior, 3);
    cr_assert_eq(blocks.n, 3 + 10 + 1 + 3);
    for (size_t b = 0; b < blocks.n; b++) {
        cr_assert_leq(blocks.starts[b + 1] - blocks.starts[b], blocks.greatest);
        for (size_t k = blocks.starts[b]; k < blocks.starts[b + 1]; k++) {
            uint32_t j = blocks.features[k];
            int64_t group = b < 3 ? 2 : b < 13 ? 0 : b < 14 ? 1 : 77;

            seen[j]++;
            cr_assert_eq(samples.groups[j], group);
        }
    }
    for (size_t j = 0; j < N_FEATURES; j++) {
        cr_assert_eq(seen[j], 1);
    }
    bcd_blocks_done(&blocks);
    ex_samples_done(&samples);
}
