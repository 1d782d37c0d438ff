/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of one float type: a template, included once per type by
 * loops_body.c with these set:
 *
 *   REAL         float or double
 *   BITS         the unsigned integer of the same size
 *   NAME(rule)   name of the type's function for a rule
 *   LOAD(at)     a REAL from bytes of any alignment; LOAD_BITS(at) its bits
 *   EXPONENT     the bits of the exponent; ONE the lowest of them
 *   SQRT, FABS, COPYSIGN
 *
 * The loops have no branch and no call, so that compilers vectorise them.
 */

/* The beginning of every rule's loop: local names for its arguments. Rules
 * without numbers or state leave theirs unused. */
#define RULE(rule)                                                                        \
    static void NAME(rule)(const void *numbers, void *values, void *state, size_t stride, \
                           const uint8_t *restrict deltas, size_t n)
#define UNUSED_STATE() \
    (void)state;       \
    (void)stride
#define UNUSED_NUMBERS() (void)numbers

static inline REAL NAME(soft)(REAL x, REAL threshold)
{
    REAL rest = FABS(x) - threshold;

    /* Compared this way, a NaN stays a NaN; + 0 turns -0 into 0. */
    return COPYSIGN(rest < 0 ? 0 : rest, x) + 0;
}

static inline REAL NAME(prox)(REAL x, REAL eta, REAL l1, REAL l2)
{
    return NAME(soft)(x, l1 * eta) / (1 + l2 * eta);
}

RULE(add)
{
    REAL *restrict w = values;

    UNUSED_NUMBERS();
    UNUSED_STATE();
    for (size_t i = 0; i < n; i++) {
        w[i] += LOAD(deltas + i * sizeof(REAL));
    }
}

/* Of two equal values the old one stays; NaN wins on either side. */
RULE(min)
{
    REAL *restrict w = values;

    UNUSED_NUMBERS();
    UNUSED_STATE();
    for (size_t i = 0; i < n; i++) {
        REAL d = LOAD(deltas + i * sizeof(REAL));

        w[i] = d < w[i] || d != d ? d : w[i];
    }
}

RULE(max)
{
    REAL *restrict w = values;

    UNUSED_NUMBERS();
    UNUSED_STATE();
    for (size_t i = 0; i < n; i++) {
        REAL d = LOAD(deltas + i * sizeof(REAL));

        w[i] = d > w[i] || d != d ? d : w[i];
    }
}

/* Without a penalty prox(x) is exactly x; a loop of its own saves the
 * division. */
RULE(sgd)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *restrict w = values;
    REAL eta = u->alpha;
    REAL l1 = u->l1;
    REAL l2 = u->l2;

    UNUSED_STATE();
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

RULE(momentum)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *restrict w = values;
    REAL *restrict s = state;
    REAL eta = u->alpha;
    REAL keep = u->momentum;

    (void)stride;
    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL step = keep * s[i] + (1 - keep) * g;

        s[i] = step;
        w[i] -= eta * step;
    }
}

RULE(nesterov)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *restrict w = values;
    REAL *restrict s = state;
    REAL eta = u->alpha;
    REAL keep = u->momentum;

    (void)stride;
    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL step = keep * s[i] + g;

        s[i] = step;
        w[i] -= eta * (g + keep * step);
    }
}

RULE(adagrad)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *restrict w = values;
    REAL *restrict s = state;
    REAL alpha = u->alpha;
    REAL beta = u->beta;
    REAL l1 = u->l1;
    REAL l2 = u->l2;

    (void)stride;
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

RULE(rmsprop)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *restrict w = values;
    REAL *restrict s = state;
    REAL alpha = u->alpha;
    REAL rho = u->rho;
    REAL eps = u->eps;

    (void)stride;
    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL mean = rho * s[i] + (1 - rho) * (g * g);

        s[i] = mean;
        w[i] -= alpha * g / (SQRT(mean) + eps);
    }
}

RULE(ftrl)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *restrict w = values;
    REAL *restrict z = state;
    REAL *restrict sums = (REAL *)state + stride;
    REAL alpha = u->alpha;
    REAL beta = u->beta;
    REAL l1 = u->l1;
    REAL l2 = u->l2;

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

RULE(dcasgd)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *restrict w = values;
    REAL *restrict backup = state;
    REAL eta = u->alpha;
    REAL lambda = u->lambda;

    (void)stride;
    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL value = w[i] - eta * (g + lambda * g * g * (w[i] - backup[i]));

        w[i] = value;
        backup[i] = value;
    }
}

/* Counts a step of each of n <= BLOCK values: every delta except leading zeros.
 * True when all counts are the same. */
static inline bool NAME(count_steps)(REAL *restrict counts, const uint8_t *restrict deltas,
                                     size_t n)
{
    BITS differ = 0;

    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL count = counts[i] + (g != 0 || counts[i] > 0 ? 1 : 0);

        counts[i] = count < PS_STEPS_MAX ? count : PS_STEPS_MAX;
    }
    for (size_t i = 0; i < n; i++) {
        differ |= counts[i] != counts[0] ? 1 : 0;
    }
    return differ == 0;
}

static double NAME(power)(const ps_powers_t *powers, uint32_t steps)
{
    return powers->of[0][steps % PS_POWER_SIZE] *
           powers->of[1][(steps >> PS_POWER_BITS) % PS_POWER_SIZE] *
           powers->of[2][(steps >> (2 * PS_POWER_BITS)) % PS_POWER_SIZE];
}

/* Step size and correction of the square after `count` steps; with count 0
 * there is no step. */
static void NAME(correct)(const ps_bias_t *bias, REAL count, REAL *ret_rate, REAL *ret_square)
{
    uint32_t steps = (uint32_t)count;

    *ret_rate = 0;
    *ret_square = 1;
    if (steps > 0) {
        double rest1 = 1 - NAME(power)(&bias->beta1, steps);
        double rest2 = 1 - NAME(power)(&bias->beta2, steps);

        *ret_rate = (REAL)(bias->alpha / rest1);
        *ret_square = (REAL)(1 / rest2);
    }
}

static void NAME(adam_block)(const struct NAME(ps_numbers) * u, REAL *restrict w, REAL *restrict m,
                             REAL *restrict v, REAL *restrict counts,
                             const uint8_t *restrict deltas, size_t n)
{
    REAL rates[BLOCK];
    REAL squares[BLOCK];
    REAL beta1 = u->beta1;
    REAL beta2 = u->beta2;
    REAL eps = u->eps;
    REAL keep = u->keep;

    if (NAME(count_steps)(counts, deltas, n)) {
        NAME(correct)(u->bias, counts[0], &rates[0], &squares[0]);
        for (size_t i = 1; i < n; i++) {
            rates[i] = rates[0];
            squares[i] = squares[0];
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            if (i > 0 && counts[i] == counts[i - 1]) {
                rates[i] = rates[i - 1]; /* values of one row */
                squares[i] = squares[i - 1];
                continue;
            }
            NAME(correct)(u->bias, counts[i], &rates[i], &squares[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        REAL g = LOAD(deltas + i * sizeof(REAL));
        REAL mean = beta1 * m[i] + (1 - beta1) * g;
        REAL square = beta2 * v[i] + (1 - beta2) * (g * g);

        m[i] = mean;
        v[i] = square;
        w[i] = keep * w[i] - rates[i] * mean / (SQRT(square * squares[i]) + eps);
    }
}

/* adamw too: keep is 1 for adam, which leaves values exact. */
RULE(adam)
{
    const struct NAME(ps_numbers) *u = numbers;
    REAL *w = values;
    REAL *m = state;

    for (size_t i = 0; i < n; i += BLOCK) {
        size_t part = n - i < BLOCK ? n - i : BLOCK;

        NAME(adam_block)
        (u, w + i, m + i, m + stride + i, m + 2 * stride + i, deltas + i * sizeof(REAL), part);
    }
}

/* A float is finite unless all bits of its exponent are set; adding one to such
 * an exponent carries into the sign's bit. The loop has no early exit and no
 * comparison: bad values are rare. */
static bool NAME(finite)(const uint8_t *values, size_t n)
{
    BITS bad = 0;

    for (size_t i = 0; i < n; i++) {
        bad |= (LOAD_BITS(values + i * sizeof(BITS)) & EXPONENT) + ONE;
    }
    return bad >> (8 * sizeof(BITS) - 1) == 0;
}

#undef RULE
#undef UNUSED_STATE
#undef UNUSED_NUMBERS
