/* SPDX-License-Identifier: Apache-2.0 */
/* Planted bugs: the linker's --wrap puts one into the core of a program of its
 * own. The test passes when the simulator finds it. */
#ifndef PS_TESTS_SIM_CLUSTER_PLANTED_H
#define PS_TESTS_SIM_CLUSTER_PLANTED_H

#include "protocol/replica/replicas.h"
#include "sim_cluster.h"

#ifndef SEEDS_MAX
#define SEEDS_MAX 500 /* within which it must be found */
#endif

static inline int cluster_planted_from(const char *bug, uint64_t first)
{
    uint64_t seed = cluster_search(first, SEEDS_MAX, false);

    if (seed == UINT64_MAX) {
        (void)printf("%s: not found within %d seeds\n", bug, SEEDS_MAX);
        return 1;
    }
    (void)printf("%s: found by seed %llu\n", bug, (unsigned long long)seed);
    return 0;
}

static inline int cluster_planted_main(const char *bug)
{
    return cluster_planted_from(bug, 1);
}
#endif
