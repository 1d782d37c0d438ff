/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_difference - whether two copies of a partition are alike, but for rows
 *
 * What     The last record, the version of the rows, each client's window, each
 *          job's gate and how much of it was applied.
 */
#ifndef PS_TESTS_SIM_ALIKE_H
#define PS_TESTS_SIM_ALIKE_H

#include "protocol/partition/partition.h"

/* What differs, in a word; NULL: nothing. */
const char *sim_difference(const ps_partition_t *one, const ps_partition_t *other);
#endif
