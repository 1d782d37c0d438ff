/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_hall - where the threads of psd and the one that calls MPI meet
 *
 * What     The ends (links and ports) of the process, and their channels: a link
 *          has one, a port one for each link to it. What is sent lies in its
 *          channel until the MPI thread takes it; what came lies at its end.
 * Shape    A sender may have `window` messages on their way that nobody has
 *          received; the receiver gives the number, and gives them back. As many
 *          as the end's high_water wait before that. So nothing grows without
 *          bound, and a receiver who reads all makes room for the sender.
 *          Numbers of ports and channels are never given twice.
 * Owner    The one hall of the process lives for ever.
 * Threads  Any; one lock, held for a few instructions. The functions below
 *          "the MPI thread" are that thread's alone.
 */
#ifndef PS_MPI_HALL_H
#define PS_MPI_HALL_H

#include "mpi/parcel.h"

typedef struct ps_hall ps_hall_t;
typedef struct ps_end ps_end_t;

/* Of rank `rank` of `size`. NULL: no memory. */
ps_hall_t *ps_hall_new(int rank, int size);

/* ---- ends ---------------------------------------------------------------- */

/* Opens a port; its number is not 0. Returns 0 or an errno. */
int ps_hall_bind(ps_hall_t *self, const ps_carrier_setup_t *setup, ps_end_t **ret_end,
                 uint32_t *ret_number);
/* Opens a link to a port of a rank, below `size`. Returns 0 or an errno. */
int ps_hall_connect(ps_hall_t *self, int rank, uint32_t port, const ps_carrier_setup_t *setup,
                    ps_end_t **ret_end);
/* As in carrier_plugin.h. What is queued goes while the process lives, for
 * linger_ms; closing does not wait, as no frame is held. */
void ps_end_close(ps_end_t *self, uint32_t linger_ms);
int ps_end_send(ps_end_t *self, uint64_t conn, const ps_carrier_frame_t *frames, size_t n);
int ps_end_receive(ps_end_t *self, uint64_t *ret_conn, ps_carrier_frame_t frames[PS_CARRIER_FRAMES],
                   size_t *ret_n);
bool ps_end_is_ready(const ps_end_t *self);
int ps_end_fd(const ps_end_t *self);
/* false: there is something to do already. */
bool ps_end_lie_down(ps_end_t *self);
void ps_end_get_up(ps_end_t *self);
bool ps_end_next_gone(ps_end_t *self, uint64_t *ret_conn);

/* ---- what ranks say ------------------------------------------------------ */

/* From now on all ranks are watched, not only those with channels. */
void ps_hall_watch_all(ps_hall_t *self);
/* To all ranks. Returns 0 or an errno. */
int ps_hall_say(ps_hall_t *self, const char *key, const char *value);
/* false: nothing has come yet. */
bool ps_hall_find(ps_hall_t *self, const char *key, char ret_value[PS_CARRIER_TEXT]);
/* It was silent for too long, and still is; or it has ended. */
bool ps_hall_is_lost(ps_hall_t *self, int rank);
/* Some rank is. */
bool ps_hall_has_lost(ps_hall_t *self);

/* ---- the MPI thread ------------------------------------------------------ */

/* Moves what may go to the end of *parcels; not to a rank that n_sending says has
 * `most` on their way. */
void ps_hall_collect(ps_hall_t *self, const uint32_t *n_sending, uint32_t most,
                     ps_mpi_parcels_t *parcels);
/* Takes in what came from its rank; takes *parcel_p. */
void ps_hall_take(ps_hall_t *self, ps_mpi_parcel_t **parcel_p);
/* The rank is to be heard: there are channels to it, or all are watched; but not
 * after it has said that it ends. */
bool ps_hall_watches(ps_hall_t *self, int rank);
/* The rank does not answer: its channels are gone. */
void ps_hall_lose(ps_hall_t *self, int rank);
/* Drops what lingers for too long. true: something lingers still. */
bool ps_hall_look_lingering(ps_hall_t *self, uint64_t now_ms);
/* All ends are to be closed, for linger_ms at most. */
void ps_hall_end(ps_hall_t *self, uint32_t linger_ms);
/* Then tells the other ranks that nothing more comes. */
void ps_hall_tell_end(ps_hall_t *self);
/* Sleeps for that long at most; not when there is something to collect. */
void ps_hall_sleep(ps_hall_t *self, uint32_t us);
/* Ends such a sleep; from any thread. */
void ps_hall_wake(ps_hall_t *self);
#endif
