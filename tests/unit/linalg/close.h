/* SPDX-License-Identifier: Apache-2.0 */
/* Floats that a test makes and compares. */
#ifndef PS_TESTS_LINALG_CLOSE_H
#define PS_TESTS_LINALG_CLOSE_H

#include <criterion/criterion.h>
#include <math.h>

#include "base/rng.h"
#include "psd_linalg.h"

/* Uniform in [-1, 1). */
static inline void fill_random(float *values, size_t n, uint64_t seed)
{
    ps_rng_t rng = {.state = seed};

    for (size_t i = 0; i < n; i++) {
        values[i] = (float)(2 * ps_rng_f64(&rng) - 1);
    }
}

/* `size` is that of what was added up: the error of a sum is in proportion to
 * its terms, not to what is left of them. */
static inline void check_close(double got, double want, double size)
{
    cr_assert(fabs(got - want) <= 1e-6 * (fabs(want) + size), "%.9g, not %.9g", got, want);
}

/* The status, and what the text must begin with. */
static inline void check_error(psd_status_t got, psd_status_t want, psd_error_t *err,
                               const char *text)
{
    cr_assert_eq(got, want, "%s: %s", psd_status_name(got), psd_error_text(err));
    cr_assert_str_eq(psd_error_text(err), text);
    psd_error_clear(err);
}
#endif
