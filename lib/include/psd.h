/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd - the client library of the psd parameter server
 *
 *     psd_client_t *client = NULL;
 *     psd_table_t *w = NULL;
 *     psd_connect(NULL, NULL, &client, err);
 *     psd_table_open(client, "w", &w, err);
 *     psd_push(w, rows, 3, deltas, 3, err);
 *     psd_pull(w, rows, 3, values, 3, err);
 *
 * What     Tables of rows on a server: push deltas, pull values, keep in step
 *          with other workers by clocks. The library prints nothing, touches no
 *          signal, and has no global state except a count of forks.
 * Owner    What a call returns through `ret_x` belongs to the caller; a
 *          destructor takes the pointer's address, accepts NULL, and nulls it.
 * Threads  A client and every object made from it belong to one thread at a
 *          time. A process opens one client for each thread that needs one.
 * Forks    In a child of fork() every call on an object of the parent (a client
 *          and what was made from it, a training, a reader, a writer, a
 *          localizer with threads) fails at once with PSD_CLOSED. Functions
 *          that close or destroy free memory there, and touch no socket and no
 *          file. No lane stays open. The child makes its own connection. As
 *          always after fork(), it must not touch what another thread was using
 *          at the fork.
 * Errors   Every call returns a psd_status_t and, when err is not NULL, one
 *          line of text that names the place and the reason. Every call except
 *          psd_error_set and psd_error_wrap clears err first, so that one error
 *          serves any number of calls.
 */
#ifndef PSD_H
#define PSD_H

#include "psd/status.h"
#include "psd/client.h"
#include "psd/table.h"
#include "psd/ops.h"
#include "psd/rows.h"
#include "psd/job.h"
#include "psd/checkpoint.h"
#include "psd/trace.h"

#endif
