/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_kernel - sums over vectors
 *
 * Shape    vectors of n floats, n a multiple of WV_LANES, padded with zeros
 *          after the vector's own size
 */
#ifndef WV_KERNEL_H
#define WV_KERNEL_H

#include <stddef.h>

#define WV_LANES 16

/* Wider registers where the machine has them. Levels of x86-64, because a clone
 * for a processor's name, as "arch=haswell", is taken by that one only. */
#if defined(__x86_64__) && defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WV_WIDE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define WV_WIDE
#endif

static inline size_t wv_stride(size_t size)
{
    return (size + WV_LANES - 1) / WV_LANES * WV_LANES;
}

/* In lanes, and then in halves of them: no sum waits for all before it. */
static inline __attribute__((always_inline)) float wv_dot(const float *a, const float *b, size_t n)
{
    float lanes[WV_LANES] = {0};

    for (size_t i = 0; i < n; i += WV_LANES) {
        for (size_t k = 0; k < WV_LANES; k++) {
            lanes[k] += a[i + k] * b[i + k];
        }
    }
    for (size_t k = 0; k < WV_LANES / 2; k++) {
        lanes[k] += lanes[k + WV_LANES / 2];
    }
    for (size_t k = 0; k < WV_LANES / 4; k++) {
        lanes[k] += lanes[k + WV_LANES / 4];
    }
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/* y += a x */
static inline __attribute__((always_inline)) void wv_add(float a, const float *restrict x,
                                                         float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i += WV_LANES) {
        for (size_t k = 0; k < WV_LANES; k++) {
            y[i + k] += a * x[i + k];
        }
    }
}
#endif
