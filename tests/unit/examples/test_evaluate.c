/* SPDX-License-Identifier: Apache-2.0 */
/* examples/common/samples/evaluate.h: AUC against its definition, losses at the ends.
 */
#include "common/samples/evaluate.h"

#include <criterion/criterion.h>
#include <math.h>

/* Every pair, as the definition says. */
static double count_pairs(const double *margins, const float *labels, size_t n)
{
    double good = 0;
    double all = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (labels[i] > 0 && labels[j] < 0) {
                all++;
                good += margins[i] > margins[j] ? 1 : margins[i] == margins[j] ? 0.5 : 0;
            }
        }
    }
    return good / all;
}

static double auc_of(const double *margins, const float *labels, size_t n)
{
    double auc = -1;

    cr_assert_eq(ex_auc(margins, labels, n, &auc, NULL), PSD_OK);
    return auc;
}

Test(evaluate, auc_is_the_share_of_ordered_pairs)
{
    const double margins[] = {3, 1, 2, 0};

    cr_assert_eq(auc_of(margins, (float[]){1, -1, 1, -1}, 4), 1);
    cr_assert_eq(auc_of(margins, (float[]){-1, 1, -1, 1}, 4), 0);
    cr_assert_eq(auc_of(margins, (float[]){1, 1, -1, -1}, 4), 0.75);
}

Test(evaluate, a_tie_counts_for_half)
{
    const double same[] = {5, 5, 5, 5};
    const double some[] = {1, 2, 2, 3};

    cr_assert_eq(auc_of(same, (float[]){1, -1, 1, -1}, 4), 0.5);
    cr_assert_eq(auc_of(some, (float[]){-1, 1, -1, 1}, 4), 0.875);
}

Test(evaluate, auc_of_what_has_no_order_is_none)
{
    const double margins[] = {1, NAN, 3};

    cr_assert(isnan(auc_of(margins, (float[]){1, -1, -1}, 3)));
}

Test(evaluate, auc_needs_both_classes)
{
    const double margins[] = {1, 2};

    cr_assert(isnan(auc_of(margins, (float[]){1, 1}, 2)));
    cr_assert(isnan(auc_of(margins, (float[]){-1, -1}, 2)));
    cr_assert(isnan(auc_of(margins, (float[]){1}, 0)));
}

Test(evaluate, auc_agrees_with_its_definition_on_many_lists)
{
    enum { N = 60 };
    double margins[N];
    float labels[N];
    unsigned state = 1;

    for (unsigned list = 0; list < 200; list++) {
        for (unsigned i = 0; i < N; i++) {
            state = state * 1664525U + 1013904223U;
            /* few values, so that there are ties */
            margins[i] = (double)(state >> 16 & 15) - 8;
            labels[i] = (state >> 28 & 1) != 0 ? 1 : -1;
        }
        labels[0] = 1;
        labels[1] = -1;
        cr_assert_float_eq(auc_of(margins, labels, N), count_pairs(margins, labels, N), 1e-12);
    }
}

Test(evaluate, losses_do_not_overflow)
{
    cr_assert_float_eq(ex_logistic_loss(0), log(2), 1e-15);
    cr_assert_eq(ex_logistic_loss(1000), 0);
    cr_assert_eq(ex_logistic_loss(-1000), 1000);
    cr_assert_eq(ex_logistic_loss(-1e300), 1e300);
    cr_assert_eq(ex_sigmoid(0), 0.5);
    cr_assert_eq(ex_sigmoid(-1e300), 0);
    cr_assert_eq(ex_sigmoid(1e300), 1);
}

Test(evaluate, quality_adds_up)
{
    ex_quality_t quality = {.auc = 0.25};

    ex_quality_add(&quality, 0, 1, 2); /* not above 0: negative: wrong */
    ex_quality_add(&quality, 0, -1, 3);
    ex_quality_add(&quality, 1000, 1, 0);
    ex_quality_add(&quality, 3, -1, 0.5);
    cr_assert_eq(quality.n, 4);
    cr_assert_eq(quality.n_correct, 2);
    cr_assert_float_eq(quality.loss, 5.5, 1e-12);
    cr_assert_eq(quality.auc, 0.25);
}

Test(evaluate, a_loss_that_is_no_number_is_never_the_best)
{
    ex_quality_t quality = {.n = 2, .loss = 3};

    cr_assert(ex_quality_is_better(&quality, INFINITY));
    cr_assert(ex_quality_is_better(&quality, 3.5));
    cr_assert(!ex_quality_is_better(&quality, 3));
    quality.loss = NAN;
    cr_assert(!ex_quality_is_better(&quality, 3));
    cr_assert(!ex_quality_is_better(&quality, INFINITY));
    quality.loss = INFINITY;
    cr_assert(!ex_quality_is_better(&quality, INFINITY));
    quality = (ex_quality_t){0};
    cr_assert(!ex_quality_is_better(&quality, INFINITY));
}
