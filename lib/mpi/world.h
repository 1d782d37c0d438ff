/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_world - the MPI world of the process, and the thread that calls MPI
 *
 * What     Begins MPI where the program has not, and ends it at exit, after the
 *          other ranks have come to their end, as MPI_Finalize does; but not
 *          when a rank was lost, for that might wait for ever, and not where the
 *          process fails. Where the program
 *          has begun MPI, it ends it, and the thread stops before that. The
 *          thread looks for messages, more and more seldom where none come:
 *          MPI cannot sleep on a descriptor.
 * Threads  Any. A forked child has no world.
 */
#ifndef PS_MPI_WORLD_H
#define PS_MPI_WORLD_H

#include "mpi/hall.h"

/*
 * The hall of the process, and its place in the world. The first call begins
 * MPI, which waits for all ranks to do so.
 *
 * ret_reason  out  why not
 *
 * Returns 0 or an errno.
 */
int ps_world_enter(ps_hall_t **ret_hall, int *ret_rank, int *ret_size,
                   char ret_reason[PS_CARRIER_REASON]);
/* The hall, where the world was entered; else NULL. */
ps_hall_t *ps_world_hall(void);
/* Bytes that went through MPI; 0 where it has not begun. */
void ps_world_count(uint64_t *ret_sent, uint64_t *ret_received);
#endif
