/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_difference - whether two copies of a partition are alike, except for rows
 *
 * What     The last record, the version of the rows, each client's window, each
 *          job's gate, and how far it was applied.
 */
#ifndef PS_TESTS_SIM_ALIKE_H
#define PS_TESTS_SIM_ALIKE_H

#include "protocol/partition/partition.h"

/* The difference, in a word; NULL: none. */
const char *sim_difference(const ps_partition_t *one, const ps_partition_t *other);
#endif
