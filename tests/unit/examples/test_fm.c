/* SPDX-License-Identifier: Apache-2.0 */
/* examples/fm: the kernel against its definition and against differences of the
 * loss; the model's file.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/program/random.h"
#include "common/samples/evaluate.h"
#include "fm/kernel.h"
#include "fm/model.h"
#include "support/temp_dir.h"

enum { N_FEATURES = 7, DIM = 3, N_SLOTS = 5 };

/* A sample with all features, of which two have no embedding. */
typedef struct fixture {
    ex_samples_t samples;
    uint32_t places[N_FEATURES];
    uint32_t slots[N_FEATURES];
    float weights[N_FEATURES];
    float factors[N_SLOTS * DIM];
    fm_view_t view;
} fixture_t;

static float draw(uint64_t *random)
{
    return (float)(2 * ex_random_real(random) - 1);
}

static void fixture_init(fixture_t *self)
{
    uint64_t random = 5;
    uint32_t n_slots = 0;

    *self = (fixture_t){.view = {.dim = DIM,
                                 .places = self->places,
                                 .weights = self->weights,
                                 .slots = self->slots,
                                 .factors = self->factors}};
    cr_assert_eq(ex_samples_add(&self->samples, 1, 1, NULL), PSD_OK);
    for (uint32_t j = 0; j < N_FEATURES; j++) {
        cr_assert_eq(ex_samples_add_entry(&self->samples, 0, 10 * j, draw(&random), NULL), PSD_OK);
        self->places[j] = N_FEATURES - 1 - j;
        self->weights[j] = draw(&random);
        self->slots[j] = j % 4 == 1 ? FM_NO_SLOT : n_slots++;
    }
    cr_assert_eq(n_slots, N_SLOTS);
    for (size_t k = 0; k < sizeof(self->factors) / sizeof(float); k++) {
        self->factors[k] = draw(&random);
    }
}

/* The definition: a sum over pairs. */
static double margin_by_pairs(const fixture_t *self)
{
    double margin = 0;

    for (uint32_t i = 0; i < N_FEATURES; i++) {
        uint32_t a = self->slots[self->places[i]];
        double x = (double)self->samples.values[i];

        margin += (double)self->weights[self->places[i]] * x;
        for (uint32_t j = i + 1; j < N_FEATURES; j++) {
            uint32_t b = self->slots[self->places[j]];
            double dot = 0;

            for (size_t k = 0; a != FM_NO_SLOT && b != FM_NO_SLOT && k < DIM; k++) {
                dot += (double)self->factors[a * DIM + k] * (double)self->factors[b * DIM + k];
            }
            margin += dot * x * (double)self->samples.values[j];
        }
    }
    return margin;
}

Test(fm, the_margin_is_the_sum_over_pairs)
{
    fixture_t self;
    double sums[DIM];

    fixture_init(&self);
    cr_assert_float_eq(fm_margin(&self.view, &self.samples, 0, sums), margin_by_pairs(&self),
                       1e-12);
    ex_samples_done(&self.samples);
}

/* Of log(1 + exp(-y m)) by one parameter, from both sides. */
static double difference(fixture_t *self, float *parameter, double label)
{
    const float step = 0x1p-10F; /* exact beside numbers below 1 */
    float kept = *parameter;
    double sums[DIM];
    double loss[2];
    double width = 0;

    for (int side = 0; side < 2; side++) {
        *parameter = side == 0 ? kept - step : kept + step;
        width += (side == 0 ? -1 : 1) * (double)*parameter;
        loss[side] = ex_logistic_loss(label * fm_margin(&self->view, &self->samples, 0, sums));
    }
    *parameter = kept;
    return (loss[1] - loss[0]) / width;
}

Test(fm, the_gradient_is_the_slope_of_the_loss)
{
    fixture_t self;
    double sums[DIM];
    const double label = -1;

    fixture_init(&self);
    {
        double weights[N_FEATURES] = {0};
        double factors[N_SLOTS * DIM] = {0};
        double margin = fm_margin(&self.view, &self.samples, 0, sums);

        fm_gradient(&self.view, &self.samples, 0, sums, -label * ex_sigmoid(-label * margin),
                    weights, factors);
        for (size_t j = 0; j < N_FEATURES; j++) {
            cr_assert_float_eq(weights[j], difference(&self, &self.weights[j], label), 1e-6,
                               "weight %zu", j);
        }
        for (size_t k = 0; k < (size_t)N_SLOTS * DIM; k++) {
            cr_assert_float_eq(factors[k], difference(&self, &self.factors[k], label), 1e-6,
                               "factor %zu", k);
        }
    }
    ex_samples_done(&self.samples);
}

static void model_fill(fm_model_t *model)
{
    const float factors[] = {1.0F / 3, -1e-38F, 2};

    *model = (fm_model_t){.dim = DIM};
    cr_assert_eq(fm_model_add(model, 0, 0.5F, NULL, NULL), PSD_OK);
    cr_assert_eq(fm_model_add(model, 20, -1.0F / 3, factors, NULL), PSD_OK);
    cr_assert_eq(fm_model_add(model, UINT64_C(1) << 60, 2, factors, NULL), PSD_OK);
}

Test(fm, a_model_comes_back_to_the_bit_and_passes_over_strangers)
{
    temp_dir_t dir;
    char path[PATH_MAX + 8];
    fm_model_t model;
    fm_model_t again;
    ex_samples_t samples = {0};
    double margin = 0;

    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof(path), "%s/model", dir.path);
    model_fill(&model);
    cr_assert_eq(fm_model_save(&model, path, NULL), PSD_OK);
    cr_assert_eq(fm_model_load(&again, path, NULL), PSD_OK);
    cr_assert_eq(again.n, 3);
    cr_assert_eq(again.n_slots, 2);
    cr_assert_arr_eq(again.keys, model.keys, 3 * sizeof(uint64_t));
    cr_assert_arr_eq(again.weights, model.weights, 3 * sizeof(float));
    cr_assert_arr_eq(again.slots, model.slots, 3 * sizeof(uint32_t));
    cr_assert_arr_eq(again.factors, model.factors, 2 * DIM * sizeof(float));
    cr_assert_eq(ex_samples_add(&samples, 1, 1, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add_entry(&samples, 0, 0, 4, NULL), PSD_OK);
    cr_assert_eq(ex_samples_add_entry(&samples, 0, 7, 9, NULL), PSD_OK);
    cr_assert_eq(fm_model_score(&again, &samples, &margin, NULL), PSD_OK);
    cr_assert_eq(margin, 2);
    ex_samples_done(&samples);
    fm_model_done(&model);
    fm_model_done(&again);
    temp_dir_drop(&dir);
}

static void refused(const char *text, const char *want)
{
    temp_dir_t dir;
    char path[PATH_MAX + 8];
    FILE *file = NULL;
    fm_model_t model;
    psd_error_t *err = psd_error_new();

    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof(path), "%s/model", dir.path);
    file = fopen(path, "we");
    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(fm_model_load(&model, path, err), PSD_INVALID, "%s", text);
    cr_assert(strstr(psd_error_text(err), want) != NULL, "%s: %s", want, psd_error_text(err));
    cr_assert_null(model.keys, "nothing is left");
    psd_error_destroy(&err);
    temp_dir_drop(&dir);
}

Test(fm, a_file_that_is_no_model_is_refused_by_its_line)
{
    refused("", "model:1: is not \"psd-fm 2 DIM KEYS\"");
    refused("psd-fm 2 3\n", "model:1: is not");
    refused("psd-fm 2 2 0", "model:1: is not");
    refused("psd-fm 2 0 1\n", "model:1: is not");
    refused("psd-fm 2 1025 1\n", "model:1: is not");
    refused("psd-fm 2 2 2\n1 0.5\n\n", "model:3: is not \"key weight\"");
    refused("psd-fm 2 2 2\n1 0.5 1\n", "model:2: is not \"key weight\"");
    refused("psd-fm 2 2 2\n1 0.5 1 2 3\n", "model:2: is not \"key weight\"");
    refused("psd-fm 2 2 2\n1 nan\n", "model:2: is not \"key weight\"");
    refused("psd-fm 2 2 2\n1 1e39\n", "model:2: is not \"key weight\"");
    refused("psd-fm 2 2 2\n-1 1\n", "model:2: is not \"key weight\"");
    refused("psd-fm 2 2 2\n1 1\n1 1\n", "model:3: is not after");
    refused("psd-fm 1 2\n1 1\n", "model:1: is not");
    refused("psd-fm 2 2 x\n1 1\n", "model:1: is not");
    refused("psd-fm 2 2 2\n1 1\n", "model: 1 keys were found, of 2");
    refused("psd-fm 2 2 2\n1 1\n2 0.5", "model: 2 keys, the last one cut, were found, of 2");
}
