/* SPDX-License-Identifier: Apache-2.0 */
/* Planted bugs: the linker's --wrap puts one into a program of its own. The test
 * passes when the simulator finds it. */
#ifndef PS_TESTS_SIM_OVERLAY_PLANTED_H
#define PS_TESTS_SIM_OVERLAY_PLANTED_H

#include "sim_overlay.h"

#ifndef SEEDS_MAX
#define SEEDS_MAX 500 /* within which it must be found */
#endif

static inline int overlay_planted_main(const char *bug)
{
    uint64_t seed = overlay_search(1, SEEDS_MAX, false);

    if (seed == UINT64_MAX) {
        (void)printf("%s: not found within %d seeds\n", bug, SEEDS_MAX);
        return 1;
    }
    (void)printf("%s: found by seed %" PRIu64 "\n", bug, seed);
    return 0;
}
#endif
