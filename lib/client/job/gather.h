/* SPDX-License-Identifier: Apache-2.0 */
/* ps_gather - what a worker does before it joins: waits for servers, finds a rank */
#ifndef PS_CLIENT_GATHER_H
#define PS_CLIENT_GATHER_H

#include "client/connection/client_state.h"

/* The node of psd_start's scheduler, which is no server. */
#define PS_SCHEDULER_NODE "scheduler"

/*
 * Waits until as many nodes are up as $PSD_SERVERS and $PSD_SPARES say, within the
 * client's time-out. Errors: PSD_DEADLINE naming how many are missing and which are there;
 * PSD_INVALID naming a variable; those of psd_request.
 */
PSD_MUST_CHECK psd_status_t ps_gather_servers(psd_client_t *client, psd_error_t *err);
/*
 * The lowest rank that no worker of the running job has or had; when there
 * is none below n_workers, the lowest that none has now. It is free only until another
 * worker joins under it.
 */
PSD_MUST_CHECK psd_status_t ps_gather_rank(psd_client_t *client, const char *job,
                                           uint32_t n_workers, uint32_t *ret_rank,
                                           psd_error_t *err);

/* The workers of a job that this client has left. */
typedef struct ps_gathered {
    bool are_there; /* some have not left, and are not lost */
    char names[80]; /* their ranks: "1, 4", as far as there is room */
    bool may_come;  /* some below n_workers have never been there */
} ps_gathered_t;

/* Neither, when the job of that name that runs has another id, or none runs. Errors: those of
 * psd_request; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_gather_others(psd_client_t *client, const char *job, uint64_t id,
                                             uint32_t n_workers, ps_gathered_t *ret,
                                             psd_error_t *err);
#endif
