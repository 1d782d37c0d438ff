/* SPDX-License-Identifier: Apache-2.0 */
/* Against all matchings of small graphs. */
#include "protocol/overlay/max_min.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>

#include "base/rng.h"

#define MOST 7

typedef struct best {
    const double *weights;
    uint32_t n_left;
    uint32_t n_right;
    uint32_t n;   /* pairs */
    double least; /* weight of them */
} best_t;

/* All ways to match left ends from this one on. */
static void try_all(best_t *best, uint32_t left, uint32_t used, uint32_t n, double least)
{
    if (left == best->n_left) {
        if (n > best->n || (n == best->n && least > best->least)) {
            best->n = n;
            best->least = least;
        }
        return;
    }
    try_all(best, left + 1, used, n, least);
    for (uint32_t right = 0; right < best->n_right; right++) {
        double weight = best->weights[left * best->n_right + right];

        if (weight > 0 && (used >> right & 1) == 0) {
            try_all(best, left + 1, used | 1u << right, n + 1, fmin(least, weight));
        }
    }
}

static void check_graph(const double *weights, uint32_t n_left, uint32_t n_right)
{
    best_t best = {.weights = weights, .n_left = n_left, .n_right = n_right};
    uint32_t matched[MOST];
    uint32_t used = 0;
    uint32_t n = 0;
    double least = INFINITY;

    try_all(&best, 0, 0, 0, INFINITY);
    cr_assert_eq(ps_max_min(weights, n_left, n_right, matched, NULL), PSD_OK);
    for (uint32_t i = 0; i < n_left; i++) {
        if (matched[i] == UINT32_MAX) {
            continue;
        }
        double weight = weights[i * n_right + matched[i]];

        cr_assert_lt(matched[i], n_right);
        cr_assert_gt(weight, 0, "no way is no way");
        cr_assert_eq(used >> matched[i] & 1, 0, "one partner each");
        used |= 1u << matched[i];
        n++;
        least = fmin(least, weight);
    }
    cr_assert_eq(n, best.n, "%u of %u pairs", n, best.n);
    cr_assert(n == 0 || least == best.least, "%g of %g", least, best.least);
}

Test(max_min, is_the_best_of_all_matchings)
{
    ps_rng_t rng = {.state = 7};

    for (int i = 0; i < 3000; i++) {
        uint32_t n_left = 1 + (uint32_t)ps_rng_below(&rng, i % 50 == 0 ? MOST : 5);
        uint32_t n_right = 1 + (uint32_t)ps_rng_below(&rng, i % 50 == 0 ? MOST : 5);
        double weights[MOST * MOST];

        for (uint32_t j = 0; j < n_left * n_right; j++) {
            weights[j] = (double)ps_rng_below(&rng, 9); /* equal ones, and none */
        }
        check_graph(weights, n_left, n_right);
    }
}

Test(max_min, nothing_to_match)
{
    uint32_t matched[1] = {5};

    cr_assert_eq(ps_max_min((double[]){0}, 1, 1, matched, NULL), PSD_OK);
    cr_assert_eq(matched[0], UINT32_MAX);
    cr_assert_eq(ps_max_min(NULL, 0, 0, matched, NULL), PSD_OK);
}
