/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_mpi_traffic - what is on its way through MPI
 *
 * What     Sends and receives that MPI has begun. No call waits. A receive that
 *          is not done holds up later ones of its rank, so that they are taken in
 *          the order of sending.
 * Owner    What is being sent to a rank that is dead stays here for ever, as MPI
 *          cannot cancel a send: PS_MPI_TRAFFIC_MOST parcels for each rank at most.
 * Threads  The MPI thread.
 */
#ifndef PS_MPI_TRAFFIC_H
#define PS_MPI_TRAFFIC_H

#include <mpi.h>

#include "mpi/hall.h"

#define PS_MPI_TRAFFIC_MOST 64 /* sends to one rank at a time */

typedef struct ps_mpi_traffic ps_mpi_traffic_t;

/* NULL: no memory. */
ps_mpi_traffic_t *ps_mpi_traffic_new(MPI_Comm comm, int size, ps_hall_t *hall);
/* Begins sends, and takes in what came, as far as that can be done now. true:
 * something moved. */
bool ps_mpi_traffic_turn(ps_mpi_traffic_t *self, uint64_t now_ms);
/* Beats for ranks that were told nothing, and ranks that say nothing. To be
 * called a few times a second. */
void ps_mpi_traffic_look(ps_mpi_traffic_t *self, uint64_t now_ms);
/* Something is being sent or received. */
bool ps_mpi_traffic_is_moving(const ps_mpi_traffic_t *self);
/* A call of MPI has failed. */
bool ps_mpi_traffic_has_failed(const ps_mpi_traffic_t *self);
/* Bytes of MPI messages that were sent and received; from any thread. */
void ps_mpi_traffic_count(const ps_mpi_traffic_t *self, uint64_t *ret_sent, uint64_t *ret_received);
#endif
