/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rank_place - a rank of an MPI world among the others: what they tell each other
 *
 * What     Each rank says a few words before it serves, and at its end: its
 *          transport, its host, where it listens. So all know whether they have one
 *          host, and each finds the address at which the others reach it.
 * Owner    The caller.
 * Threads  any; a wait looks every few milliseconds
 */
#ifndef PS_CLIENT_RANK_PLACE_H
#define PS_CLIENT_RANK_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/discovery/own_address.h"
#include "psd/status.h"
#include "transport/sockets/ranks.h"

#define PS_RANK_MEET_MS 60000 /* for all ranks to serve */
#define PS_RANK_LISTEN_SIZE (PS_ADDRESS_SIZE + 16)

typedef struct ps_rank_place {
    int rank;
    int size;
    uint64_t until_ms; /* waits end then */
} ps_rank_place_t;

/* A few milliseconds, between two looks at what others said. */
void ps_rank_nap(void);

/* What this rank says of itself. Errors: as ps_ranks_say. */
PSD_MUST_CHECK psd_status_t ps_rank_say(const ps_rank_place_t *self, const char *what,
                                        const char *value, psd_error_t *err);
/* What that rank has said; false: nothing yet. */
bool ps_rank_find(const char *what, int rank, char ret_value[PS_CARRIER_TEXT]);
/* Waits for what that rank says. Errors: PSD_CONNECT a rank cannot serve, with its reason;
 * PSD_DEADLINE naming the rank. */
PSD_MUST_CHECK psd_status_t ps_rank_wait_for(const ps_rank_place_t *self, const char *what,
                                             int rank, char ret_value[PS_CARRIER_TEXT],
                                             psd_error_t *err);
/* The same of all ranks. */
PSD_MUST_CHECK psd_status_t ps_rank_wait_for_each(const ps_rank_place_t *self, const char *what,
                                                  psd_error_t *err);

/*
 * Tells the others of this rank's transport and host, and hears theirs.
 *
 * ret_far  out  a rank on another host; -1: there is none
 *
 * Errors: PSD_INVALID ranks differ in PSD_TRANSPORT; as ps_rank_wait_for and ps_rank_say.
 */
PSD_MUST_CHECK psd_status_t ps_rank_compare(const ps_rank_place_t *self, int *ret_far,
                                            psd_error_t *err);
/*
 * Where this rank's server listens, after ps_rank_compare.
 *
 * far         in   as ps_rank_compare gave it
 * ret_listen  out  an endpoint of psd.yaml; "": what PSD_LISTEN_ENDPOINTS says
 *
 * Errors: PSD_CONNECT this host has no way to that of `far`.
 */
PSD_MUST_CHECK psd_status_t ps_rank_listen(const ps_rank_place_t *self, int far,
                                           char ret_listen[PS_RANK_LISTEN_SIZE], psd_error_t *err);
/* Where MPI carries all, nobody connects to this rank's ports; an address that no other rank of
 * any host has is their name. */
void ps_rank_name(const ps_rank_place_t *self, char ret_host[PS_ADDRESS_SIZE]);
#endif
