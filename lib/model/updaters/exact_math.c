/* SPDX-License-Identifier: Apache-2.0 */
/* Series for the two functions that Box-Muller needs; see the header for why
 * libm is not used. */
#include "model/updaters/exact_math.h"

#include <stdint.h>
#include <string.h>

#define LN2 0x1.62e42fefa39efp-1
#define HALF_PI 0x1.921fb54442d18p+0
#define SQRT2 0x1.6a09e667f3bcdp+0
#define LOG_TERMS 12 /* f^2 <= 0.0295, and 0.0295^12 < 1e-18 */
#define TRIG_TERMS 9 /* (pi/4)^20 / 20! < 1e-20 */

/* x = m 2^e with m in [1/sqrt(2), sqrt(2)]. */
static double split_exponent(double x, int *ret_e)
{
    uint64_t bits = 0;
    double m = 0;
    int e = 0;

    memcpy(&bits, &x, sizeof bits);
    e = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
    memcpy(&m, &bits, sizeof m);
    if (m > SQRT2) {
        m *= 0.5;
        e++;
    }
    *ret_e = e;
    return m;
}

double ps_exact_log(double x)
{
    int e = 0;
    double m = split_exponent(x, &e);
    double f = (m - 1) / (m + 1); /* log m = 2 (f + f^3/3 + f^5/5 + ...) */
    double sum = 0;

    for (int k = LOG_TERMS; k >= 0; k--) {
        sum = sum * (f * f) + 1.0 / (2 * k + 1);
    }
    return e * LN2 + 2 * f * sum;
}

/* sum of (-a^2)^k / ((first + 1) (first + 2) ... (first + 2k)). */
static double alternating(double a, int first)
{
    double sum = 1;

    for (int k = TRIG_TERMS; k > 0; k--) {
        int d = first + 2 * k;

        sum = 1 - sum * (a * a) / (d * (d - 1));
    }
    return sum;
}

double ps_exact_cos_turn(double x)
{
    int quarter = (int)(4 * x + 0.5);       /* nearest quarter turn, 0 .. 4 */
    double a = (4 * x - quarter) * HALF_PI; /* within pi/4; 4x is exact */

    switch (quarter % 4) {
    case 0:
        return alternating(a, 0);
    case 1:
        return -a * alternating(a, 1);
    case 2:
        return -alternating(a, 0);
    default:
        return a * alternating(a, 1);
    }
}
