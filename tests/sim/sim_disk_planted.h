/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk_planted - a bug in logs or snapshots that a simulator must find
 *
 * What     disk_planted_found looks for it with a shard and its disk
 *          (sim_disk_shard.h) or, where SIM_OF_A_CLUSTER is defined, with a
 *          whole cluster (sim_cluster.h). 0: it was found.
 */
#ifndef PS_TESTS_SIM_DISK_PLANTED_H
#define PS_TESTS_SIM_DISK_PLANTED_H

#ifdef SIM_OF_A_CLUSTER
#include "sim_cluster_planted.h"

static inline int disk_planted_found(const char *bug)
{
    return cluster_planted_main(bug);
}
#else
#include "sim_disk_shard.h"

static inline int disk_planted_found(const char *bug)
{
    return disk_planted_main(bug);
}
#endif
#endif
