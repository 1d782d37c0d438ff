/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The updaters of one float type: a template, included once per type by
 * updater.c with these set:
 *
 *   REAL         float or double
 *   NAME(rule)   name of the type's function for a rule
 *   LOAD(at)     a REAL from bytes of any alignment
 *   SQRT, FABS, COPYSIGN
 *
 * The loops have no branch and no call, so that compilers vectorise them.
 */

static inline REAL
NAME(soft)(REAL x, REAL threshold)
{
    REAL rest = FABS(x) - threshold;

    /* This way round a NaN stays one; + 0 makes a minus zero a plain one. */
    return COPYSIGN(rest < 0 ? 0 : rest, x) + 0;
}

static inline REAL
NAME(prox)(REAL x, REAL eta, REAL l1, REAL l2)
{
    return NAME(soft)(x, l1 * eta) / (1 + l2 * eta);
}

static void
NAME(add)(REAL *restrict w, const uint8_t *restrict deltas, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        w[i] += LOAD(deltas + i * sizeof(REAL));
    }
}

/* Without a penalty prox(x) is x to the bit; it is worth a loop of its own
 * because it saves the division. */
static void
NAME(sgd)(const ps_updater_spec_t *spec,
          REAL *restrict w,
          const uint8_t *restrict deltas,
          size_t n)
{
    REAL eta = (REAL)spec->alpha;
    REAL l1 = (REAL)spec->l1;
    REAL l2 = (REAL)spec->l2;

    if (l1 == 0 && l2 == 0) {
        for (size_t i = 0; i < n; i++) {
            w[i] -= eta * LOAD(deltas + i * sizeof(REAL));
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));

        w[i] = NAME(prox)(w[i] - eta * g, eta, l1, l2);
    }
}

static void
NAME(adagrad)(const ps_updater_spec_t *spec,
              REAL *restrict w,
              REAL *restrict s,
              const uint8_t *restrict deltas,
              size_t n)
{
    REAL alpha = (REAL)spec->alpha;
    REAL beta = (REAL)spec->beta;
    REAL l1 = (REAL)spec->l1;
    REAL l2 = (REAL)spec->l2;

    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL sum = s[i] + g * g;
        REAL root = beta + SQRT(sum);
        /* beta 0 and no gradient yet: no step, rather than 0 times infinity */
        REAL eta = root > 0 ? alpha / root : 0;

        eta = root == root ? eta : root; /* a NaN stays one */
        s[i] = sum;
        w[i] = NAME(prox)(w[i] - eta * g, eta, l1, l2);
    }
}

static void
NAME(ftrl)(const ps_updater_spec_t *spec,
           REAL *restrict w,
           REAL *restrict z,
           REAL *restrict sums,
           const uint8_t *restrict deltas,
           size_t n)
{
    REAL alpha = (REAL)spec->alpha;
    REAL beta = (REAL)spec->beta;
    REAL l1 = (REAL)spec->l1;
    REAL l2 = (REAL)spec->l2;

    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL sum = sums[i] + g * g;
        REAL root = SQRT(sum);
        REAL sigma = (root - SQRT(sums[i])) / alpha;
        REAL pull = z[i] + (g - sigma * w[i]);
        REAL weight = (beta + root) / alpha + l2;
        REAL move = NAME(soft)(-pull, l1) / weight;

        /* weight 0 means that no gradient has been seen: stay at zero */
        w[i] = weight == 0 ? 0 : move;
        z[i] = pull;
        sums[i] = sum;
    }
}
