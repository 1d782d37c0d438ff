/* SPDX-License-Identifier: Apache-2.0 */
/* model/updater.h: each rule against the header's formulas written out plainly,
 * over 100,000 updates. */
#include "model/updater.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"

#define N_VALUES 50
#define N_STEPS 2000 /* x N_VALUES = 100,000 updates */
#define STRIDE 64

static const ps_updater_spec_t ftrl = {
    .kind = PS_UPDATER_FTRL, .alpha = 0.1, .beta = 1, .l1 = 0.5, .l2 = 0.01};
static const ps_updater_spec_t adagrad = {
    .kind = PS_UPDATER_ADAGRAD, .alpha = 0.1, .beta = 1, .l1 = 1e-3, .l2 = 0.1};
static const ps_updater_spec_t sgd = {
    .kind = PS_UPDATER_SGD, .alpha = 0.01, .l1 = 1e-2, .l2 = 0.1};
static const ps_updater_spec_t plain_sgd = {.kind = PS_UPDATER_SGD,
                                            .alpha = 0.01};

/* One run of a rule that is made for it. */
static void
apply(const ps_updater_spec_t *spec,
      ps_type_t type,
      void *values,
      void *state,
      size_t stride,
      const void *deltas,
      size_t n)
{
    PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = NULL;

    cr_assert_eq(ps_updater_new(spec, type, &updater, NULL), PSD_OK);
    ps_updater_apply(updater, PS_UPDATER_NO_WORKER, values, state, stride,
                     deltas, n);
}

static uint32_t
n_states(ps_updater_kind_t kind)
{
    ps_updater_spec_t spec = {.kind = kind, .alpha = 1};
    PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = NULL;

    cr_assert_eq(ps_updater_new(&spec, PS_TYPE_F32, &updater, NULL), PSD_OK);
    return ps_updater_n_states(updater);
}

/* The plain formulas, once per float type. */
#define PLAIN(REAL, suffix, SQRT, FABS)                                      \
    static REAL prox_##suffix(REAL x, REAL eta, REAL l1, REAL l2)            \
    {                                                                        \
        REAL cut = l1 * eta;                                                 \
        REAL soft = x > cut ? x - cut : x < -cut ? x + cut : 0;              \
                                                                             \
        return soft / (1 + l2 * eta);                                        \
    }                                                                        \
                                                                             \
    static void plain_##suffix(const ps_updater_spec_t *u, REAL *w, REAL *a, \
                               REAL *b, REAL g)                              \
    {                                                                        \
        REAL alpha = (REAL)u->alpha;                                         \
        REAL beta = (REAL)u->beta;                                           \
        REAL l1 = (REAL)u->l1;                                               \
        REAL l2 = (REAL)u->l2;                                               \
                                                                             \
        if (u->kind == PS_UPDATER_ADD) {                                     \
            *w = *w + g;                                                     \
        } else if (u->kind == PS_UPDATER_ASSIGN) {                           \
            *w = g;                                                          \
        } else if (u->kind == PS_UPDATER_SGD) {                              \
            *w = prox_##suffix(*w - alpha * g, alpha, l1, l2);               \
        } else if (u->kind == PS_UPDATER_ADAGRAD) {                          \
            REAL eta = 0;                                                    \
                                                                             \
            *a = *a + g * g;                                                 \
            eta = alpha / (beta + SQRT(*a));                                 \
            *w = prox_##suffix(*w - eta * g, eta, l1, l2);                   \
        } else {                                                             \
            REAL n = *b + g * g;                                             \
            REAL sigma = (SQRT(n) - SQRT(*b)) / alpha;                       \
                                                                             \
            *a = *a + (g - sigma * *w);                                      \
            *b = n;                                                          \
            *w = FABS(*a) <= l1 ? 0                                          \
                                : -(*a - (*a > 0 ? l1 : -l1)) /              \
                                      ((beta + SQRT(n)) / alpha + l2);       \
        }                                                                    \
    }                                                                        \
                                                                             \
    static void follow_##suffix(const ps_updater_spec_t *u, ps_type_t type)  \
    {                                                                        \
        REAL w[N_VALUES] = {0};                                              \
        REAL state[2 * STRIDE] = {0};                                        \
        REAL plain[3][N_VALUES] = {{0}};                                     \
        uint8_t deltas[N_VALUES * sizeof(REAL) + 1];                         \
        ps_rng_t rng = {5};                                                  \
                                                                             \
        for (int step = 0; step < N_STEPS; step++) {                         \
            for (size_t i = 0; i < N_VALUES; i++) {                          \
                REAL g = (REAL)(2 * ps_rng_f64(&rng) - 0.9);                 \
                                                                             \
                memcpy(deltas + 1 + i * sizeof g, &g, sizeof g);             \
                plain_##suffix(u, &plain[0][i], &plain[1][i], &plain[2][i],  \
                               g);                                           \
            }                                                                \
            apply(u, type, w, state, STRIDE, deltas + 1, N_VALUES);          \
        }                                                                    \
        for (size_t i = 0; i < N_VALUES; i++) {                              \
            REAL tolerance = u->kind <= PS_UPDATER_ASSIGN ? 0 : (REAL)1e-6;  \
                                                                             \
            cr_assert_leq(FABS(w[i] - plain[0][i]),                          \
                          tolerance *(1 + FABS(plain[0][i])));               \
            if (n_states(u->kind) > 0) {                                     \
                cr_assert_leq(FABS(state[i] - plain[1][i]),                  \
                              tolerance *(1 + FABS(plain[1][i])));           \
            }                                                                \
            if (n_states(u->kind) > 1) {                                     \
                cr_assert_leq(FABS(state[STRIDE + i] - plain[2][i]),         \
                              tolerance *(1 + FABS(plain[2][i])));           \
            }                                                                \
        }                                                                    \
    }

PLAIN(float, f32, sqrtf, fabsf)
PLAIN(double, f64, sqrt, fabs)

static void
follow(const ps_updater_spec_t *updater)
{
    follow_f32(updater, PS_TYPE_F32);
    follow_f64(updater, PS_TYPE_F64);
}

Test(updater, add_follows_the_formula)
{
    ps_updater_spec_t add = {.kind = PS_UPDATER_ADD};

    follow(&add);
}

Test(updater, assign_follows_the_formula)
{
    ps_updater_spec_t assign = {.kind = PS_UPDATER_ASSIGN};

    follow(&assign);
}

Test(updater, sgd_follows_the_formula)
{
    follow(&sgd);
    follow(&plain_sgd);
}

Test(updater, adagrad_follows_the_formula)
{
    follow(&adagrad);
}

Test(updater, ftrl_follows_the_formula)
{
    follow(&ftrl);
}

Test(updater, states_are_counted)
{
    cr_assert_eq(n_states(PS_UPDATER_ADD), 0);
    cr_assert_eq(n_states(PS_UPDATER_ASSIGN), 0);
    cr_assert_eq(n_states(PS_UPDATER_SGD), 0);
    cr_assert_eq(n_states(PS_UPDATER_ADAGRAD), 1);
    cr_assert_eq(n_states(PS_UPDATER_FTRL), 2);
}

Test(updater, integers_wrap)
{
    ps_updater_spec_t add = {.kind = PS_UPDATER_ADD};
    int32_t w32[2] = {INT32_MAX, INT32_MIN};
    int64_t w64[2] = {INT64_MAX, INT64_MIN};
    int32_t one32[2] = {1, -1};
    int64_t one64[2] = {1, -1};

    apply(&add, PS_TYPE_I32, w32, NULL, 0, one32, 2);
    apply(&add, PS_TYPE_I64, w64, NULL, 0, one64, 2);
    cr_assert_eq(w32[0], INT32_MIN);
    cr_assert_eq(w32[1], INT32_MAX);
    cr_assert_eq(w64[0], INT64_MIN);
    cr_assert_eq(w64[1], INT64_MAX);
}

Test(updater, integers_are_exact)
{
    ps_updater_spec_t add = {.kind = PS_UPDATER_ADD};
    ps_updater_spec_t assign = {.kind = PS_UPDATER_ASSIGN};
    ps_rng_t rng = {3};
    uint64_t w[N_VALUES] = {0};
    uint64_t plain[N_VALUES] = {0};
    uint64_t deltas[N_VALUES] = {0};

    for (int step = 0; step < N_STEPS; step++) {
        for (size_t i = 0; i < N_VALUES; i++) {
            deltas[i] = ps_rng_u64(&rng);
            plain[i] += deltas[i];
        }
        apply(&add, PS_TYPE_I64, w, NULL, 0, deltas, N_VALUES);
    }
    cr_assert_arr_eq(w, plain, sizeof w);
    apply(&assign, PS_TYPE_I64, w, NULL, 0, deltas, N_VALUES);
    cr_assert_arr_eq(w, deltas, sizeof w);
}

/* With beta 0 the first step would divide zero by zero. */
Test(updater, no_gradient_is_no_step)
{
    static const ps_updater_kind_t kinds[] = {PS_UPDATER_ADAGRAD,
                                              PS_UPDATER_FTRL};

    for (size_t k = 0; k < 2; k++) {
        ps_updater_spec_t updater = {.kind = kinds[k], .alpha = 0.1};
        double w = 0;
        double state[2] = {0, 0};
        double g = 0;

        apply(&updater, PS_TYPE_F64, &w, state, 1, &g, 1);
        cr_assert_eq(w, 0);
        cr_assert_eq(state[0], 0);
        cr_assert_eq(state[1], 0);
        g = 2;
        apply(&updater, PS_TYPE_F64, &w, state, 1, &g, 1);
        cr_assert_float_eq(w, -0.1, 1e-12);
    }
}

Test(updater, a_nan_stays_one)
{
    const ps_updater_spec_t *updaters[] = {&sgd, &plain_sgd, &adagrad, &ftrl};

    for (size_t k = 0; k < 4; k++) {
        float w = 1;
        float state[2] = {1, 1};
        float g = NAN;

        apply(updaters[k], PS_TYPE_F32, &w, state, 1, &g, 1);
        cr_assert(isnan(w));
    }
}

Test(updater, what_is_cut_to_zero_has_no_sign)
{
    const ps_updater_spec_t *updaters[] = {&sgd, &adagrad, &ftrl};

    for (size_t k = 0; k < 3; k++) {
        ps_updater_spec_t updater = *updaters[k];
        double w[2] = {-0x1p-20, 0x1p-20};
        double state[4] = {0};
        double g[2] = {0x1p-30, -0x1p-30};

        updater.l1 = 1;
        apply(&updater, PS_TYPE_F64, w, state, 2, g, 2);
        cr_assert(w[0] == 0 && !signbit(w[0]));
        cr_assert(w[1] == 0 && !signbit(w[1]));
    }
}
