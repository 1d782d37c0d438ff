/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_ranks - the world of a carrier that this process has entered
 *
 * What     The processes of one mpirun, its ranks. Each can let the others know a
 *          few texts by name, before any of them has a connection. With
 *          $PSD_TRANSPORT mpi or mpi,auto, what their ports are called over tcp is
 *          among them, so that an endpoint "tcp://…" stays the name of a port, and
 *          links to it go by the carrier. libpsd and libpsd_server have each their own copy of
 *          this room; the carrier's object is one, and so is the world.
 * Threads  any
 */
#ifndef PS_TRANSPORT_RANKS_H
#define PS_TRANSPORT_RANKS_H

#include <stdbool.h>

#include "psd/status.h"
#include "transport/sockets/carrier_plugin.h"

/* Enters the world of that carrier, once for the process. Waits for the other processes to
 * begin. Errors: those of ps_plugin_load; PSD_UNSUPPORTED the carrier has no world; PSD_CONNECT
 * with its reason. */
PSD_MUST_CHECK psd_status_t ps_ranks_enter(const char *carrier, int *ret_rank, int *ret_size,
                                           psd_error_t *err);
/* What all ranks shall know; short. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_ranks_say(const char *key, const char *value, psd_error_t *err);
/* false: no rank has said it, as far as is known here. */
bool ps_ranks_find(const char *key, char ret_value[PS_CARRIER_TEXT]);
/* That rank has ended, or does not answer. */
bool ps_ranks_are_without(int rank);

/* What $PSD_TRANSPORT asks for. */
typedef enum ps_ranks_use {
    PS_RANKS_UNUSED = 0, /* another word: nothing goes by the carrier */
    PS_RANKS_ALONE,      /* "mpi": all links do */
    PS_RANKS_FIRST,      /* "mpi,auto": those to ports of ranks do, others go as they always do */
} ps_ranks_use_t;

ps_ranks_use_t ps_ranks_use(void);
/* From now on links of this process go by the carrier; where that is so, after ps_ranks_enter.
 * Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_ranks_carry(psd_error_t *err);
bool ps_ranks_do_carry(void);
/* A link to that endpoint goes by the carrier, or not at all. */
bool ps_ranks_own(const char *endpoint);

/* ---- socket.c ---- */

/* Where a link to an endpoint goes: "" for there. Errors: PSD_CONNECT all links go by the carrier,
 * and the endpoint is no port of a rank. */
PSD_MUST_CHECK psd_status_t ps_ranks_way(const char *endpoint, char ret_address[PS_CARRIER_TEXT],
                                         psd_error_t *err);
/* The endpoint that a port binds as well, for the ranks; NULL: they do not carry. */
const char *ps_ranks_port(void);
#endif
