/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pulls whose rows come from another worker
 *
 * What     When the plan puts a worker below another one, a pull of a range of whole rows asks the
 *          shard for their digest only, and the relay for the rows. The shard answers when its
 *          clock is open, as it answers any pull; so freshness, own writes and the place of the
 *          partition are its word alone. Rows that have this digest are the answer. Rows that
 *          have not, or do not come within the patience, are pulled from the shard.
 *
 *              begin --> shard: digest --> waits for rows --> ended
 *                                   |            |
 *                                   +------------+--> a plain pull
 *
 *          Whoever has rows hands them to its relay if others are below it, else only word that
 *          it has them: the plan may put others there.
 * Order    Marks of the partition wait for such a pull: it must not become one of a later clock.
 *          So a pull with a mark after it waits for its rows for 100 ms, and as long as they
 *          take at 100 Mbit/s, no longer.
 * Patience PATIENCE_MS after the digest, or after rows of any such pull came, and as long as the
 *          rows may travel; never more than half of what is left to the call. Whoever was waited
 *          for in vain is not asked at that partition in the next one to nine clocks. Nor is one
 *          that has refused in three clocks in a row; that costs no wait.
 * Threads  The client's.
 */
#ifndef PS_CLIENT_BY_PEER_H
#define PS_CLIENT_BY_PEER_H

#include "client/requests/ticket.h"

#define PS_BY_PEER_LEAST_BYTES (UINT64_C(16) << 10) /* smaller ones are not worth a question */

/* A pull is about to go. True: the shard is to be asked for the digest. */
PSD_MUST_CHECK bool ps_by_peer_begin(psd_client_t *client, ps_slice_request_t *request);
/* The shard's answer to a request that is in no list. */
void ps_by_peer_digest(psd_client_t *client, ps_slice_request_t *request,
                       const ps_message_t *message, const ps_payload_t *payload);
/* The shard's rows of a plain pull; others may want them. */
void ps_by_peer_pass_on(const psd_client_t *client, const ps_slice_request_t *request,
                        ps_payload_t *payload, uint64_t n_done);
/* True when it has its digest, and waits for rows. It is in the list of those that are sent. */
bool ps_by_peer_waits(const ps_slice_request_t *request);
/* The request ends, or becomes a plain one. Takes one that is none. */
void ps_by_peer_drop(psd_client_t *client, ps_slice_request_t *request);
/* Once a turn: rows that have come, and those that have not in time. */
void ps_by_peer_look(psd_client_t *client);
/* When the next look is due at the latest; UINT64_MAX: never. */
uint64_t ps_by_peer_due(const psd_client_t *client);
#endif
