/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lr/history.h: the directions are those of the loop over vectors. */
#include "lr/history.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "common/program/random.h"

enum { N = 5, STEPS = 2 * LR_STEPS + 3 };

static double dot(const double *a, const double *b, const double *by_curve)
{
    double sum = 0;

    for (int j = 0; j < N; j++) {
        sum += a[j] * b[j] / (by_curve == NULL ? 1 : by_curve[j]);
    }
    return sum;
}

/* Algorithm 7.4 of Nocedal and Wright with H0 = scale / M; the steps are those
 * from `first` on. */
static void loop(double s[][N], double y[][N], int first, int n, const double *g,
                 const double *curve, double *ret_direction)
{
    double alpha[STEPS] = {0};
    double q[N];
    double scale = 1;

    memcpy(q, g, sizeof(q));
    for (int i = n - 1; i >= first; i--) {
        alpha[i] = dot(s[i], q, NULL) / dot(s[i], y[i], NULL);
        for (int j = 0; j < N; j++) {
            q[j] -= alpha[i] * y[i][j];
        }
    }
    if (n > 0) {
        scale = dot(s[n - 1], y[n - 1], NULL) / dot(y[n - 1], y[n - 1], curve);
    }
    for (int j = 0; j < N; j++) {
        q[j] *= scale / curve[j];
    }
    for (int i = first; i < n; i++) {
        double beta = dot(y[i], q, NULL) / dot(s[i], y[i], NULL);

        for (int j = 0; j < N; j++) {
            q[j] += (alpha[i] - beta) * s[i][j];
        }
    }
    for (int j = 0; j < N; j++) {
        ret_direction[j] = -q[j];
    }
}

/* place_of: the step at each place. */
static lr_products_t products_of(const lr_history_t *history, double s[][N], double y[][N],
                                 const int *step_at, const double *g, const double *curve)
{
    lr_products_t products = {.g_g = dot(g, g, curve)};

    for (size_t a = 0; a < history->n; a++) {
        int last = step_at[lr_history_last(history)];
        int i = step_at[a];

        products.last_s_y[a] = dot(s[last], y[i], NULL);
        products.s_last_y[a] = dot(s[i], y[last], NULL);
        products.s_g[a] = dot(s[i], g, NULL);
        products.y_g[a] = dot(y[i], g, curve);
        for (size_t b = a; b < history->n; b++) {
            products.y_y[a][b] = dot(y[i], y[step_at[b]], curve);
        }
    }
    return products;
}

Test(history, directions_are_those_of_the_loop_over_vectors)
{
    lr_history_t history = {0};
    uint64_t random = 1;
    double s[STEPS][N];
    double y[STEPS][N];
    int step_at[LR_STEPS] = {0};

    for (int n = 0; n < STEPS; n++) {
        int first = n > LR_STEPS ? n - LR_STEPS : 0;
        double g[N];
        double curve[N];
        double expected[N];
        lr_products_t products;
        lr_direction_t by;

        for (int j = 0; j < N; j++) {
            g[j] = ex_random_real(&random) - 0.5;
            curve[j] = 1 + ex_random_real(&random);
        }
        products = products_of(&history, s, y, step_at, g, curve);
        lr_history_direct(&history, &products, &by);
        loop(s, y, first, n, g, curve, expected);
        for (int j = 0; j < N; j++) {
            double d = by.g * g[j] / curve[j];

            for (size_t a = 0; a < history.n; a++) {
                d += by.y[a] * y[step_at[a]][j] / curve[j] + by.s[a] * s[step_at[a]][j];
            }
            cr_assert_float_eq(d, expected[j], 1e-9, "step %d: %g, not %g", n, d, expected[j]);
        }
        step_at[lr_history_next(&history)] = n;
        for (int j = 0; j < N; j++) { /* of a convex function: s.y > 0 */
            s[n][j] = ex_random_real(&random) - 0.5;
            y[n][j] = s[n][j] * (1 + ex_random_real(&random));
        }
    }
    cr_assert_eq(history.n, LR_STEPS);
}
