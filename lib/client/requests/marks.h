/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: marks that finish a worker's clock at partitions. */
#ifndef PS_CLIENT_MARKS_H
#define PS_CLIENT_MARKS_H

#include "client/requests/ticket.h"

/* PSD_OK while the client is a running worker. Errors: PSD_NOT_JOINED; the
 * reason why the worker ended; those of ps_client_check. */
PSD_MUST_CHECK psd_status_t ps_worker_check(const psd_client_t *client, psd_error_t *err);
/* Sends the marks of one finished clock. Errors: PSD_NOMEM, nothing is sent. */
PSD_MUST_CHECK psd_status_t ps_mark_clock(psd_client_t *client, psd_error_t *err);
/* The two halves of ps_mark_clock, for a clock that ends with the pushes of a
 * ticket. The pushes are in no queue yet, and mark their partitions themselves.
 * ticket NULL: none. Errors: PSD_NOMEM, no mark was made. */
PSD_MUST_CHECK psd_status_t ps_marks_make(psd_client_t *client, ps_ticket_t *ticket,
                                          struct ps_slice_requests *marks, psd_error_t *err);
void ps_marks_send(psd_client_t *client, struct ps_slice_requests *marks);
/* The job has opened this table: from now on it gets marks. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_mark_table(psd_client_t *client, ps_known_table_t *table,
                                          psd_error_t *err);
#endif
