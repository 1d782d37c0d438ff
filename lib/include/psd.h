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
 *          with other workers by clocks. Nothing is printed, no signal is
 *          touched, there is no global state.
 * Owner    What a call gives through `ret_x` belongs to the caller; a
 *          destructor takes the pointer's address, takes NULL, nulls it.
 * Threads  A client, and all that was made from it, belongs to one thread at
 *          a time. A process opens as many clients as it has threads.
 * Errors   Every call returns a psd_status_t and, when err is not NULL, one
 * line of text that names the place and the reason.
 */
#ifndef PSD_H
#define PSD_H

#include "psd/status.h"
#include "psd/client.h"
#include "psd/table.h"
#include "psd/ops.h"
#include "psd/rows.h"
#include "psd/job.h"

#endif
