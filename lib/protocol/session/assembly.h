/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_assembly - reassembles chunked messages without copying
 *
 * What     Sending: ps_piece_at cuts a payload's values into pieces. Receiving:
 *          the first message (PS_FLAG_MORE) and its CHUNKs become one payload
 *          whose spans are the pieces as they arrived.
 * Owner    The caller; embedded, one for each connection.
 */
#ifndef PS_PROTOCOL_ASSEMBLY_H
#define PS_PROTOCOL_ASSEMBLY_H

#include "wire/messages/message.h"

typedef struct ps_assembly {
    struct ps_assembling *open; /* owned list, one for each request */
    size_t n_open;
    size_t n_pieces; /* held by them, plus a fixed cost for each of them */
    uint64_t bytes;  /* of these pieces */
} ps_assembly_t;

void ps_assembly_done(ps_assembly_t *self);
/*
 * Takes a decoded message. When a message is complete (at once, if it has no
 * MORE flag) *ret_whole is true, *message is that message, and *payload_p its
 * payload. Otherwise *payload_p was taken and *ret_whole is false. A new first
 * message of a request drops the pieces of the old one. A CHUNK of a request
 * that has no first message is dropped: its sender will probe the request.
 *
 * limit_bytes  in  the limit of all unfinished messages of the connection; very
 *                  many tiny pieces are PSD_LIMIT before that
 * Errors: PSD_PROTO (a CHUNK at the wrong offset, too long, not of whole
 * values), PSD_LIMIT, PSD_NOMEM; the request's pieces are then
 * dropped, and *payload_p is still the caller's (or, taken, it is NULL).
 */
PSD_MUST_CHECK psd_status_t ps_assembly_add(ps_assembly_t *self, ps_message_t *message,
                                            ps_payload_t **payload_p, uint64_t limit_bytes,
                                            bool *ret_whole, psd_error_t *err);

/* True when a message of that request has begun. */
bool ps_assembly_has(const ps_assembly_t *self, uint64_t request);

/* A request that received pieces since it was last named. false: none. */
PSD_MUST_CHECK bool ps_assembly_next_fresh(ps_assembly_t *self, uint64_t *ret_request);

/* The piece of values at byte `offset`: at most chunk_bytes long, a multiple of
 * 64 bytes unless it ends its span, never over a span's end. Empty at the end.
 * chunk_bytes below 64: a multiple of 8 bytes, and at least 8. */
ps_bytes_t ps_piece_at(const ps_payload_t *payload, uint64_t offset, uint32_t chunk_bytes);
#endif
