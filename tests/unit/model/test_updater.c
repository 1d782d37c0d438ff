/* SPDX-License-Identifier: Apache-2.0 */
/* model/updaters/updater.h: each rule against the header's formulas written out plainly,
 * over 100,000 updates; and what is said about zeros, NaN and workers. */
#include "model/updaters/updater.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "model/updaters/loops.h"
#include "support/fail_alloc.h"
#include "unit/model/plain_updater.h"

#define N_VALUES 50
#define N_STEPS 2000 /* x N_VALUES = 100,000 updates */
#define STRIDE 64
#define N_WORKERS 3

/* Every rule, with its penalties and without. */
static const char *const RULES[] = {
    "add",
    "assign",
    "min",
    "max",
    "sgd:alpha=0.01",
    "sgd:alpha=0.01,l1=0.01,l2=0.1",
    "momentum:alpha=0.05,momentum=0.8",
    "nesterov",
    "nesterov:alpha=0.05,momentum=0.8",
    "adagrad:alpha=0.1,beta=1,l1=0.001,l2=0.1",
    "adam:alpha=0.01,beta1=0.8,beta2=0.99",
    "adam",
    "adamw:alpha=0.01,decay=0.1",
    "rmsprop:alpha=0.01,rho=0.9,eps=1e-6",
    "ftrl:alpha=0.1,beta=1,l1=0.5,l2=0.01",
    "dcasgd:alpha=0.01,lambda=0.2,workers=3",
};
#define N_RULES (sizeof RULES / sizeof *RULES)

static ps_updater_spec_t spec_of(const char *text)
{
    ps_updater_spec_t spec = {0};

    cr_assert_eq(ps_updater_spec_parse(text, &spec, NULL), PSD_OK, "%s", text);
    return spec;
}

static ps_updater_t *make(const char *text, ps_type_t type)
{
    ps_updater_spec_t spec = spec_of(text);
    ps_updater_t *updater = NULL;

    cr_assert_eq(ps_updater_new(&spec, type, &updater, NULL), PSD_OK);
    return updater;
}

/* One run of a rule that is made for it, for no worker. */
static void apply(const char *text, ps_type_t type, void *values, void *state, size_t stride,
                  const void *deltas, size_t n)
{
    PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = make(text, type);

    ps_updater_apply(updater, PS_UPDATER_NO_WORKER, values, state, stride, deltas, n);
}

static uint32_t n_states(const char *text)
{
    PSD_AUTO(ps_updater_destroy)
    ps_updater_t *updater = make(text, PS_TYPE_F32);

    return ps_updater_n_states(updater);
}

/* The rule as a whole beside the plain one, value by value: a relative error
 * of 1e-6 of value and state, and none at all where nothing is rounded twice.
 * The deltas are not aligned, and some of them are zero. */
#define FOLLOW(REAL, suffix, FABS, TYPE)                                                          \
    static void follow_##suffix(const char *text)                                                 \
    {                                                                                             \
        ps_updater_spec_t u = spec_of(text);                                                      \
        PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = make(text, TYPE);                    \
        uint32_t n = ps_updater_n_states(updater);                                                \
        REAL w[N_VALUES] = {0};                                                                   \
        REAL state[PLAIN_STATES * STRIDE] = {0};                                                  \
        REAL plain[N_VALUES] = {0};                                                               \
        REAL plain_state[PLAIN_STATES][N_VALUES] = {{0}};                                         \
        uint8_t deltas[N_VALUES * sizeof(REAL) + 1];                                              \
        ps_rng_t rng = {5};                                                                       \
                                                                                                  \
        for (uint32_t step = 0; step < N_STEPS; step++) {                                         \
            uint32_t worker = step * 7 % N_WORKERS;                                               \
            bool is_dc = u.kind == PS_UPDATER_DCASGD;                                             \
                                                                                                  \
            for (size_t i = 0; i < N_VALUES; i++) {                                               \
                REAL g = (REAL)(2 * ps_rng_f64(&rng) - 0.9);                                      \
                REAL *s[PLAIN_STATES] = {&plain_state[is_dc ? worker : 0][i], &plain_state[1][i], \
                                         &plain_state[2][i]};                                     \
                                                                                                  \
                g = (step + i) % 5 == 0 ? 0 : g;                                                  \
                memcpy(deltas + 1 + i * sizeof g, &g, sizeof g);                                  \
                plain_##suffix(&u, &plain[i], s, g);                                              \
            }                                                                                     \
            ps_updater_apply(updater, worker, (uint8_t *)w, (uint8_t *)state, STRIDE, deltas + 1, \
                             N_VALUES);                                                           \
        }                                                                                         \
        for (size_t i = 0; i < N_VALUES; i++) {                                                   \
            REAL tolerance = u.kind <= PS_UPDATER_ASSIGN ? 0 : (REAL)1e-6;                        \
                                                                                                  \
            cr_assert_leq(FABS(w[i] - plain[i]), tolerance *FABS(plain[i]), "%s: %g, not %g",     \
                          text, (double)w[i], (double)plain[i]);                                  \
            for (uint32_t k = 0; k < n; k++) {                                                    \
                REAL want = plain_state[k][i];                                                    \
                                                                                                  \
                cr_assert_leq(FABS(state[k * STRIDE + i] - want), tolerance *FABS(want),          \
                              "%s: state %u", text, k);                                           \
            }                                                                                     \
        }                                                                                         \
    }

FOLLOW(float, f32, fabsf, PS_TYPE_F32)
FOLLOW(double, f64, fabs, PS_TYPE_F64)

Test(updater, every_rule_follows_its_formula)
{
    for (size_t i = 0; i < N_RULES; i++) {
        follow_f32(RULES[i]);
        follow_f64(RULES[i]);
    }
}

/* With gradients that are always 1 both means are 1 once they are corrected, so
 * that every step is alpha: the paper's own argument. */
Test(updater, adam_corrects_its_bias)
{
    PSD_AUTO(ps_updater_destroy)
    ps_updater_t *updater = make("adam:alpha=0.5", PS_TYPE_F64);
    double w = 10;
    double state[3] = {0};
    double g = 1;

    for (int step = 1; step <= 100000; step++) {
        ps_updater_apply(updater, PS_UPDATER_NO_WORKER, (uint8_t *)&w, (uint8_t *)state, 1,
                         (const uint8_t *)&g, 1);
        cr_assert_float_eq(w, 10 - 0.5 * step, 1e-8 * (10 + step));
    }
    cr_assert_eq(state[2], 100000);
}

Test(updater, adam_counts_no_further_than_it_can)
{
    float w = 1;
    float state[3] = {0, 0, PS_STEPS_MAX};
    float g = 1;

    apply("adam", PS_TYPE_F32, &w, state, 1, &g, 1);
    cr_assert_eq(state[2], PS_STEPS_MAX);
    cr_assert_float_eq(w, 1 - 0.001 * 0.1 / sqrt(0.001), 1e-6);
}

/* What PyTorch's SGD makes of a gradient of 1, then 2, then 0, with lr 0.5,
 * momentum 0.5 and nesterov=True: buf is 1, 2.5, 1.25. */
Test(updater, nesterov_looks_ahead)
{
    static const double gradients[] = {1, 2, 0};
    static const double values[] = {10 - 0.75, 10 - 0.75 - 1.625, 10 - 0.75 - 1.625 - 0.3125};
    double w = 10;
    double state = 0;

    for (size_t i = 0; i < 3; i++) {
        apply("nesterov:alpha=0.5,momentum=0.5", PS_TYPE_F64, &w, &state, 1, &gradients[i], 1);
        cr_assert_eq(w, values[i]);
    }
    cr_assert_eq(state, 1.25);
}

/* A row of its own pace beside one of another: both move as if alone. */
Test(updater, adam_counts_each_value)
{
    double both[2] = {0, 0};
    double state[6] = {0};
    double one[2] = {0, 0};
    double one_state[2][3] = {{0}, {0}};

    for (int step = 0; step < 50; step++) {
        double g[2] = {1 + step % 3, step < 20 ? 0 : 2 - step % 5};

        apply("adam:alpha=0.1", PS_TYPE_F64, both, state, 2, g, 2);
        for (int i = 0; i < 2; i++) {
            apply("adam:alpha=0.1", PS_TYPE_F64, &one[i], one_state[i], 1, &g[i], 1);
        }
    }
    cr_assert_arr_eq(both, one, sizeof both);
    cr_assert_eq(state[4], 50);
    cr_assert_eq(state[5], 30);
}

Test(updater, states_are_counted)
{
    cr_assert_eq(n_states("add"), 0);
    cr_assert_eq(n_states("assign"), 0);
    cr_assert_eq(n_states("min"), 0);
    cr_assert_eq(n_states("max"), 0);
    cr_assert_eq(n_states("sgd"), 0);
    cr_assert_eq(n_states("momentum"), 1);
    cr_assert_eq(n_states("nesterov"), 1);
    cr_assert_eq(n_states("adagrad"), 1);
    cr_assert_eq(n_states("adam"), 3);
    cr_assert_eq(n_states("adamw"), 3);
    cr_assert_eq(n_states("rmsprop"), 1);
    cr_assert_eq(n_states("ftrl"), 2);
    cr_assert_eq(n_states("dcasgd:workers=7"), 7);
}

Test(updater, integers_wrap)
{
    int32_t w32[2] = {INT32_MAX, INT32_MIN};
    int64_t w64[2] = {INT64_MAX, INT64_MIN};
    int32_t one32[2] = {1, -1};
    int64_t one64[2] = {1, -1};

    apply("add", PS_TYPE_I32, w32, NULL, 0, one32, 2);
    apply("add", PS_TYPE_I64, w64, NULL, 0, one64, 2);
    cr_assert_eq(w32[0], INT32_MIN);
    cr_assert_eq(w32[1], INT32_MAX);
    cr_assert_eq(w64[0], INT64_MIN);
    cr_assert_eq(w64[1], INT64_MAX);
}

/* One rule over integers beside the plain one. */
#define INTEGERS(INTEGER, UNSIGNED, suffix, TYPE)                                        \
    static void integers_##suffix(const char *text)                                      \
    {                                                                                    \
        ps_updater_spec_t u = spec_of(text);                                             \
        ps_rng_t rng = {3};                                                              \
        INTEGER w[N_VALUES] = {0};                                                       \
        INTEGER plain[N_VALUES] = {0};                                                   \
        INTEGER deltas[N_VALUES] = {0};                                                  \
                                                                                         \
        for (int step = 0; step < N_STEPS; step++) {                                     \
            for (size_t i = 0; i < N_VALUES; i++) {                                      \
                INTEGER d = (INTEGER)ps_rng_u64(&rng);                                   \
                INTEGER sum = (INTEGER)((UNSIGNED)plain[i] + (UNSIGNED)d);               \
                                                                                         \
                deltas[i] = d;                                                           \
                plain[i] = u.kind == PS_UPDATER_ADD      ? sum                           \
                           : u.kind == PS_UPDATER_ASSIGN ? d                             \
                           : u.kind == PS_UPDATER_MIN    ? (d < plain[i] ? d : plain[i]) \
                                                         : (d > plain[i] ? d : plain[i]);   \
            }                                                                            \
            apply(text, TYPE, w, NULL, 0, deltas, N_VALUES);                             \
        }                                                                                \
        cr_assert_arr_eq(w, plain, sizeof w, "%s", text);                                \
    }

INTEGERS(int32_t, uint32_t, i32, PS_TYPE_I32)
INTEGERS(int64_t, uint64_t, i64, PS_TYPE_I64)

Test(updater, integers_are_exact)
{
    static const char *const texts[] = {"add", "assign", "min", "max"};

    for (size_t i = 0; i < 4; i++) {
        integers_i32(texts[i]);
        integers_i64(texts[i]);
    }
}

/* ---- zeros, NaN, workers ---- */

/* Sparse rows rest on it. */
Test(updater, a_zero_delta_leaves_zeros)
{
    for (size_t i = 0; i < N_RULES; i++) {
        for (int sign = 0; sign < 2; sign++) {
            float w = 0;
            float state[PLAIN_STATES] = {0};
            float g = sign == 0 ? 0.0F : -0.0F;

            apply(RULES[i], PS_TYPE_F32, &w, state, 1, &g, 1);
            cr_assert_eq(w, 0, "%s", RULES[i]);
            for (size_t k = 0; k < PLAIN_STATES; k++) {
                cr_assert_eq(state[k], 0, "%s: state %zu", RULES[i], k);
            }
        }
    }
}

/* With beta 0 the first step would divide zero by zero. */
Test(updater, no_gradient_is_no_step)
{
    static const char *const texts[] = {"adagrad:alpha=0.1,beta=0", "ftrl:alpha=0.1,beta=0"};

    for (size_t k = 0; k < 2; k++) {
        double w = 0;
        double state[2] = {0, 0};
        double g = 0;

        apply(texts[k], PS_TYPE_F64, &w, state, 1, &g, 1);
        cr_assert_eq(w, 0);
        cr_assert_eq(state[0], 0);
        cr_assert_eq(state[1], 0);
        g = 2;
        apply(texts[k], PS_TYPE_F64, &w, state, 1, &g, 1);
        cr_assert_float_eq(w, -0.1, 1e-12);
    }
}

Test(updater, a_nan_stays_one)
{
    for (size_t k = 0; k < N_RULES; k++) {
        float w = 1;
        float state[PLAIN_STATES] = {1, 1, 1};
        float g = NAN;

        apply(RULES[k], PS_TYPE_F32, &w, state, 1, &g, 1);
        cr_assert(isnan(w), "%s", RULES[k]);
        g = 1;
        if (strcmp(RULES[k], "assign") != 0) {
            apply(RULES[k], PS_TYPE_F32, &w, state, 1, &g, 1);
            cr_assert(isnan(w), "%s", RULES[k]);
        }
    }
}

Test(updater, what_is_cut_to_zero_has_no_sign)
{
    static const char *const texts[] = {"sgd:alpha=0.01,l1=1,l2=0.1",
                                        "adagrad:alpha=0.1,beta=1,l1=1,l2=0.1",
                                        "ftrl:alpha=0.1,beta=1,l1=1,l2=0.01"};

    for (size_t k = 0; k < 3; k++) {
        double w[2] = {-0x1p-20, 0x1p-20};
        double state[4] = {0};
        double g[2] = {0x1p-30, -0x1p-30};

        apply(texts[k], PS_TYPE_F64, w, state, 2, g, 2);
        cr_assert(w[0] == 0 && !signbit(w[0]));
        cr_assert(w[1] == 0 && !signbit(w[1]));
    }
}

/* A worker's own pushes in a row see no delay: then it is plain sgd. */
Test(updater, dcasgd_compensates_what_others_did)
{
    PSD_AUTO(ps_updater_destroy)
    ps_updater_t *updater = make("dcasgd:alpha=0.5,lambda=2,workers=2", PS_TYPE_F64);
    double w = 8;
    double backups[2] = {0, 0};
    uint8_t *values = (uint8_t *)&w;
    uint8_t *state = (uint8_t *)backups;
    double g = 1;
    const uint8_t *delta = (const uint8_t *)&g;

    ps_updater_begin(updater, values, state, 1, 1);
    cr_assert(backups[0] == 8 && backups[1] == 8);
    ps_updater_apply(updater, 0, values, state, 1, delta, 1);
    cr_assert(w == 7.5 && backups[0] == 7.5 && backups[1] == 8);
    ps_updater_apply(updater, 0, values, state, 1, delta, 1);
    cr_assert(w == 7 && backups[0] == 7 && backups[1] == 8);
    /* 7 - 0.5 (1 + 2 (7 - 8)) */
    ps_updater_apply(updater, 1, values, state, 1, delta, 1);
    cr_assert(w == 7.5 && backups[0] == 7 && backups[1] == 7.5);
    ps_updater_apply(updater, PS_UPDATER_NO_WORKER, values, state, 1, delta, 1);
    cr_assert(w == 7 && backups[0] == 7 && backups[1] == 7.5);
}

Test(updater, dcasgd_knows_its_workers)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_updater_destroy)
    ps_updater_t *two = make("dcasgd:workers=2", PS_TYPE_F32);
    PSD_AUTO(ps_updater_destroy) ps_updater_t *adam = make("adam", PS_TYPE_F32);

    cr_assert_eq(ps_updater_check_worker(two, 1, err), PSD_OK);
    cr_assert_eq(ps_updater_check_worker(two, PS_UPDATER_NO_WORKER, err), PSD_OK);
    cr_assert_eq(ps_updater_check_worker(adam, 1000, err), PSD_OK);
    cr_assert_eq(ps_updater_check_worker(two, 2, err), PSD_RANGE);
    cr_assert_str_eq(psd_error_text(err), "updater dcasgd keeps a backup for workers 0..1 "
                                          "(workers=2), not for worker 2");
}

static psd_status_t make_each(void *fixture)
{
    (void)fixture;
    for (size_t i = 0; i < N_RULES; i++) {
        PSD_AUTO(ps_updater_destroy) ps_updater_t *updater = NULL;
        ps_updater_spec_t spec = spec_of(RULES[i]);
        psd_status_t rc = ps_updater_new(&spec, PS_TYPE_F64, &updater, NULL);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

Test(updater, without_memory)
{
    cr_assert_null(fail_alloc_sweep(make_each, NULL));
}
