/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk_shard - a shard, its journal, and a disk that fails, from one seed
 *
 * What     Clients push integers at level disk to a shard whose records and
 *          snapshots a simulated thread writes to a virtual disk
 *          (support/sim_disk.h), which crashes in the middle of operations,
 *          fails, and fills up. After each crash the shard is rebuilt from what
 *          lasts. Promises: a start finds everything that is whole; every
 *          acknowledged push is there, and the shard never asks for it again
 *          (GAP); in the end, when the faults have stopped, everything is
 *          acknowledged, and every row is the sum of its pushes, each once.
 */
#ifndef PS_TESTS_SIM_DISK_SHARD_H
#define PS_TESTS_SIM_DISK_SHARD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The first of n seeds from `first` on that breaks a promise, with its story
 * on stdout; UINT64_MAX: none. */
uint64_t disk_search(uint64_t first, uint64_t n, bool verbose);

#define DISK_SEEDS_MAX 500 /* within which a planted bug must be found */

static inline int disk_planted_main(const char *bug)
{
    uint64_t seed = disk_search(1, DISK_SEEDS_MAX, false);

    if (seed == UINT64_MAX) {
        (void)printf("%s: not found within %d seeds\n", bug, DISK_SEEDS_MAX);
        return 1;
    }
    (void)printf("%s: found by seed %llu\n", bug, (unsigned long long)seed);
    return 0;
}
#endif
