/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushes that wait for psd_clock
 *
 * What     Of a worker with a relay: a push that may be all that its clock brings to a partition
 *          waits here, so that psd_clock makes it the mark of its clock as well, and the relay
 *          gets both as one (lend.h). Nobody could see it before: a table whose clocks are added
 *          up applies a push when its clock closes.
 *          It goes as it is, at once and with all partitions of its push, when the program waits
 *          for it, pushes there again, or asks for something that comes after it; and
 *          when the program is in libpsd, for something else, later than PS_HOLD_MS after it.
 * Time     The deadline of a push counts from when it goes.
 * Memory   At most PS_HOLD_BYTES of values wait; more go as they are.
 * Threads  The client's.
 */
#ifndef PS_CLIENT_HOLD_H
#define PS_CLIENT_HOLD_H

#include "client/requests/ticket.h"

#define PS_HOLD_MS 20
#define PS_HOLD_BYTES (UINT64_C(64) << 20)

/* The requests of a ticket, which are in no queue yet. True: all of them are held, and must not
 * get into their queues. Else none is; what is held and must go before them is in its queue then.
 */
PSD_MUST_CHECK bool ps_hold(psd_client_t *client, ps_ticket_t *ticket);
/* A clock ends: what is held ends it. */
void ps_hold_mark(psd_client_t *client);
/* They go as they are. */
void ps_hold_end(psd_client_t *client);
/* The program is in libpsd, until until_ms at most: what has waited for too long goes. */
void ps_hold_look(psd_client_t *client, uint64_t until_ms);
/* When ps_hold_look is due; UINT64_MAX: nothing is held. */
uint64_t ps_hold_due(const psd_client_t *client);
#endif
