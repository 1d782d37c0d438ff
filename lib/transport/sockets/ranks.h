/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_ranks - the world of a carrier that this process has entered
 *
 * What     The processes of one mpirun, its ranks. Each can let the others know a
 *          few texts by name, before any of them has a connection.
 * Threads  any
 */
#ifndef PS_TRANSPORT_RANKS_H
#define PS_TRANSPORT_RANKS_H

#include <stdbool.h>

#include "transport/sockets/carrier_plugin.h"
#include "psd/status.h"

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
#endif
