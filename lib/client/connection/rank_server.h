/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rank_server - the servers that "mpi:" names: one in each rank of an MPI world
 *
 * What     psd_connect("mpi:") begins MPI, starts a server in the process, and
 *          waits until all ranks have done so. Rank 0 has the registry. All clients
 *          of the process share it. Others use its partitions: an exit with code 0
 *          waits until all ranks have come to their end.
 * Threads  any
 */
#ifndef PS_CLIENT_RANK_SERVER_H
#define PS_CLIENT_RANK_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/discovery/own_address.h"
#include "psd/status.h"

#define PS_RANKS_ENDPOINT "mpi:"

/*
 * Starts it, if it does not run. ret_endpoint: the registry's; borrowed for ever.
 *
 * Errors: those of ps_ranks_enter; those of ps_private_server_start, also another
 * rank's, by its number; PSD_INVALID ranks differ in PSD_TRANSPORT; PSD_CONNECT another
 * host to which no way is known; PSD_DEADLINE naming a rank that has not come within 60 s;
 * PSD_CLOSED the process exits.
 */
PSD_MUST_CHECK psd_status_t ps_rank_server_hold(const char **ret_endpoint, psd_error_t *err);
/* This process's place. false: it has none. */
bool ps_rank_server_place(int64_t *ret_rank, int64_t *ret_size);
/* Where MPI carries all: the address that names this rank's ports. ret_here: all ranks are on this
 * host. false: ports have addresses. */
bool ps_rank_server_name(char ret_host[PS_ADDRESS_SIZE], bool *ret_here);
#endif
