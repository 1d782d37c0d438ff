/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_exact - logarithm and cosine with the same bits on every machine
 *
 * What     libm may pick a variant by processor, and then the last bit of a
 *          first value would depend on the node that made it. These two use
 *          only + - * / on doubles, which IEEE 754 defines to the bit (the
 *          build sets -ffp-contract=off). Error below 1e-15 relative to 1.
 */
#ifndef PS_MODEL_EXACT_MATH_H
#define PS_MODEL_EXACT_MATH_H

/* Natural logarithm; 0 < x <= 1, not subnormal. */
double ps_exact_log(double x);
/* cos(2 pi x); 0 <= x < 1. */
double ps_exact_cos_turn(double x);
#endif
