/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pushes and marks that go through the worker's relay
 *
 * What     Lent is what ends a clock at a partition and is all that this client brings there in
 *          that clock: a push that is the clock's mark as well, or a mark alone. Everything else
 *          goes to the shard directly, and so does what the relay gives back, what nobody says
 *          anything about for a while, and whatever is sent again.
 *          The shard's ACK ends what was lent, as ever.
 *          In a job whose max_delay is not 0 every push is lent, and every mark after it, if the
 *          table's updater is add.
 * Threads  The client's.
 */
#ifndef PS_CLIENT_LEND_H
#define PS_CLIENT_LEND_H

#include "client/requests/ticket.h"
#include "model/tables/table.h"

/* A table was learned: the relay hears of one whose clocks are added up. */
void ps_lend_learn(psd_client_t *client, uint32_t id, const ps_table_spec_t *spec,
                   const ps_route_t *routes, uint32_t n_routes);
/* A push of that size in bytes may be lent by that link of the session. */
bool ps_lend_fits(const psd_client_t *client, uint64_t link, uint64_t size);
/* The first send of a request that may be lent. True: the relay has it. */
PSD_MUST_CHECK bool ps_lend(psd_client_t *client, const ps_effect_t *effect,
                            ps_slice_request_t *request);
/* Of a table whose pushes are added up whenever they come: the way of a push or mark that is about
 * to go. Nothing goes to the shard past what is lent, and nothing is lent past what goes there: it
 * would come too early, and be refused. false: it waits for that. */
PSD_MUST_CHECK bool ps_lend_choose(const psd_client_t *client, ps_slice_request_t *request);
/* A request has ended. */
void ps_lend_ended(ps_slice_request_t *request);
/* A request was sent, or lent: of a push that could be lent, its bytes and the time of a direct
 * way are measured. The second, when it was answered and has metered_us. */
void ps_lend_meter(psd_client_t *client, ps_slice_request_t *request, bool is_direct);
void ps_lend_metered(psd_client_t *client, ps_slice_request_t *request);
/* Once a turn: what became of what was lent. */
void ps_lend_hear(psd_client_t *client);
#endif
