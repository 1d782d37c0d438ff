/* SPDX-License-Identifier: Apache-2.0 */
/* How many of its seeds or rounds a test runs: all, and a part of them where the
 * environment has SEEDS_LESS, as under sanitizers. */
#ifndef PS_TESTS_SUPPORT_SEEDS_H
#define PS_TESTS_SUPPORT_SEEDS_H

#include <stdint.h>
#include <stdlib.h>

/* $SEEDS_LESS, or 1. */
static inline uint64_t seeds_less(void)
{
    const char *text = getenv("SEEDS_LESS");
    uint64_t less = text == NULL ? 1 : strtoull(text, NULL, 10);

    return less == 0 ? 1 : less;
}

/* `all`, or that part of them, rounded up. */
static inline uint64_t seeds_of(uint64_t all)
{
    return (all + seeds_less() - 1) / seeds_less();
}

#endif
