/* SPDX-License-Identifier: Apache-2.0 */
/* plain_updater - the rules of model/updaters/updater.h written out for one value, in
 * the type itself; corrections of adam by pow, in double */
#ifndef PS_TESTS_PLAIN_UPDATER_H
#define PS_TESTS_PLAIN_UPDATER_H

#include <math.h>

#include "model/updaters/updater.h"

#define PLAIN_STATES 3

/* s[0 ..] are the rule's states; for dcasgd s[0] is the worker's backup. Text
 * of the formulas: model/tables/updaters.def. */
#define PLAIN_UPDATER(REAL, suffix, SQRT, FABS)                                                   \
    static inline REAL plain_prox_##suffix(REAL x, REAL eta, REAL l1, REAL l2)                    \
    {                                                                                             \
        REAL cut = l1 * eta;                                                                      \
        REAL soft = x > cut ? x - cut : x < -cut ? x + cut : 0;                                   \
                                                                                                  \
        return soft / (1 + l2 * eta);                                                             \
    }                                                                                             \
                                                                                                  \
    static inline void plain_adam_##suffix(const ps_updater_spec_t *u, REAL *w,                   \
                                           REAL *s[PLAIN_STATES], REAL g)                         \
    {                                                                                             \
        REAL beta1 = (REAL)u->beta1;                                                              \
        REAL beta2 = (REAL)u->beta2;                                                              \
        REAL rate = 0;                                                                            \
        REAL square = 0;                                                                          \
                                                                                                  \
        if (u->kind == PS_UPDATER_ADAMW) {                                                        \
            *w = (REAL)(1 - u->alpha * u->decay) * *w;                                            \
        }                                                                                         \
        if (g == 0 && *s[2] == 0) {                                                               \
            return;                                                                               \
        }                                                                                         \
        *s[0] = beta1 * *s[0] + (1 - beta1) * g;                                                  \
        *s[1] = beta2 * *s[1] + (1 - beta2) * (g * g);                                            \
        *s[2] = *s[2] + 1;                                                                        \
        rate = (REAL)(u->alpha / (1 - pow((double)beta1, (double)*s[2])));                        \
        square = (REAL)(1 / (1 - pow((double)beta2, (double)*s[2])));                             \
        *w = *w - rate * *s[0] / (SQRT(*s[1] * square) + (REAL)u->eps);                           \
    }                                                                                             \
                                                                                                  \
    static inline void plain_ftrl_##suffix(const ps_updater_spec_t *u, REAL *w,                   \
                                           REAL *s[PLAIN_STATES], REAL g)                         \
    {                                                                                             \
        REAL alpha = (REAL)u->alpha;                                                              \
        REAL beta = (REAL)u->beta;                                                                \
        REAL l1 = (REAL)u->l1;                                                                    \
        REAL n = *s[1] + g * g;                                                                   \
        REAL sigma = (SQRT(n) - SQRT(*s[1])) / alpha;                                             \
                                                                                                  \
        REAL weight = (beta + SQRT(n)) / alpha + (REAL)u->l2;                                     \
                                                                                                  \
        *s[0] = *s[0] + (g - sigma * *w);                                                         \
        *s[1] = n;                                                                                \
        *w = FABS(*s[0]) <= l1 || weight == 0 ? 0 : -(*s[0] - (*s[0] > 0 ? l1 : -l1)) / weight;   \
    }                                                                                             \
                                                                                                  \
    static inline void plain_##suffix(const ps_updater_spec_t *u, REAL *w, REAL *s[PLAIN_STATES], \
                                      REAL g)                                                     \
    {                                                                                             \
        REAL alpha = (REAL)u->alpha;                                                              \
        REAL eta = alpha;                                                                         \
                                                                                                  \
        switch (u->kind) {                                                                        \
        case PS_UPDATER_ADD:                                                                      \
            *w = *w + g;                                                                          \
            break;                                                                                \
        case PS_UPDATER_ASSIGN:                                                                   \
            *w = g;                                                                               \
            break;                                                                                \
        case PS_UPDATER_MIN:                                                                      \
            *w = g < *w ? g : *w;                                                                 \
            break;                                                                                \
        case PS_UPDATER_MAX:                                                                      \
            *w = g > *w ? g : *w;                                                                 \
            break;                                                                                \
        case PS_UPDATER_ADAGRAD:                                                                  \
            *s[0] = *s[0] + g * g;                                                                \
            eta = (REAL)u->beta + SQRT(*s[0]);                                                    \
            eta = eta > 0 ? alpha / eta : 0;                                                      \
            *w = plain_prox_##suffix(*w - eta * g, eta, (REAL)u->l1, (REAL)u->l2);                \
            break;                                                                                \
        case PS_UPDATER_SGD:                                                                      \
            *w = plain_prox_##suffix(*w - eta * g, eta, (REAL)u->l1, (REAL)u->l2);                \
            break;                                                                                \
        case PS_UPDATER_MOMENTUM:                                                                 \
            *s[0] = (REAL)u->momentum * *s[0] + (1 - (REAL)u->momentum) * g;                      \
            *w = *w - alpha * *s[0];                                                              \
            break;                                                                                \
        case PS_UPDATER_NESTEROV:                                                                 \
            *s[0] = (REAL)u->momentum * *s[0] + g;                                                \
            *w = *w - alpha * (g + (REAL)u->momentum * *s[0]);                                    \
            break;                                                                                \
        case PS_UPDATER_RMSPROP:                                                                  \
            *s[0] = (REAL)u->rho * *s[0] + (1 - (REAL)u->rho) * (g * g);                          \
            *w = *w - alpha * g / (SQRT(*s[0]) + (REAL)u->eps);                                   \
            break;                                                                                \
        case PS_UPDATER_DCASGD:                                                                   \
            *w = *w - alpha * (g + (REAL)u->lambda * g * g * (*w - *s[0]));                       \
            *s[0] = *w;                                                                           \
            break;                                                                                \
        case PS_UPDATER_ADAM:                                                                     \
        case PS_UPDATER_ADAMW:                                                                    \
            plain_adam_##suffix(u, w, s, g);                                                      \
            break;                                                                                \
        case PS_UPDATER_FTRL:                                                                     \
        case PS_UPDATER_PLUGIN:                                                                   \
        default:                                                                                  \
            plain_ftrl_##suffix(u, w, s, g);                                                      \
            break;                                                                                \
        }                                                                                         \
    }

PLAIN_UPDATER(float, f32, sqrtf, fabsf)
PLAIN_UPDATER(double, f64, sqrt, fabs)
#endif
