/* SPDX-License-Identifier: Apache-2.0 */
/* The largest part, and whether it is too large. */
#include "model/tables/skew.h"

bool ps_skew_find(const uint64_t *sizes, size_t n, uint64_t least, size_t *ret_part,
                  uint64_t *ret_sum)
{
    uint64_t sum = 0;
    size_t largest = 0;

    for (size_t i = 0; i < n; i++) {
        sum += sizes[i];
        largest = sizes[i] > sizes[largest] ? i : largest;
    }
    /* size > factor x sum / n, without a product that could wrap */
    if (n <= PS_SKEW_FACTOR || sizes[largest] < least ||
        (double)sizes[largest] * (double)n <= PS_SKEW_FACTOR * (double)sum) {
        return false;
    }
    *ret_part = largest;
    *ret_sum = sum;
    return true;
}
