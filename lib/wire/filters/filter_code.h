/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/wire/filters: bodies of messages in fewer bytes
 *
 * It is       Filters as text, and a coder for each connection: known lists of
 *             keys, differences of keys, rounded values, LZ4 and zstd.
 * It uses     messages, for slices and bodies; lib/base; lz4 and zstd in pack.c.
 * It ignores  Which table or call asks for a filter, and connections. Filters
 *             that drop values act before (lib/client/slices).
 * Start at    filter.h for the words, filter_encode.c and filter_decode.c for a
 *             body, quant.h and pack.h for its parts.
 */
/*
 * ps_coder - encodes and decodes message bodies with filters
 *
 * What     A coded body (PS_FLAG_CODED) holds keys, index and values, each
 *          encoded as the filter asks if that saves bytes. Its head:
 *            0  keys_as u8    0 RAW, 1 DELTA (wire/filters/keys.h)
 *            1  values_as u8  ps_values_as_t (wire/filters/quant.h)
 *            2  pack u8       ps_pack_t (wire/filters/pack.h)
 *            3  packed u8     packed parts: 1 keys, 2 index, 4 values
 *            4  zero u32
 *            8  sizes u64 of keys, index and values as stored
 *           32  keys, index, values; zeros up to a multiple of 8 bytes
 *          A request that wants values says in the same head how the answer may
 *          encode its values. A PULL has no values; its head says only that.
 * Errors   only values lose precision: rows, columns and integers are exact.
 * Owner    The caller; work memory is kept between calls, at most a few MiB
 * Threads  Confined to one thread.
 */
#ifndef PS_WIRE_FILTER_CODE_H
#define PS_WIRE_FILTER_CODE_H

#include "wire/filters/filter.h"
#include "wire/messages/message.h"

#define PS_CODED_HEAD 32 /* bytes of a coded body's head */

typedef struct ps_coder ps_coder_t;

/* seed: for the random rounding of pushes from clients that are not workers.
 * Other seeds follow from the message: for a worker's push from table,
 * partition, seq and the worker's identity, for values from the request that
 * they answer. So a job that runs again rounds in the same way. NULL when there
 * is no memory. */
PSD_MUST_CHECK ps_coder_t *ps_coder_new(uint64_t seed);
/* Takes NULL, nulls *self_p. */
void ps_coder_destroy(ps_coder_t **self_p);

/*
 * Encodes the body of a PUSH, PULL or VALUES message with a filter.
 *
 * filter     in   delta, pack and values_as are applied, as far as the values'
 *                 type allows; other code applies the rest
 * payload    in   the plain body; NULL when there is none; borrowed
 * ret_coded  out  the coded body; message->flags is set. NULL: it would not be
 *                 smaller, or some value cannot be encoded: send the message
 *                 plain. A PULL is coded whenever its answer's values should be
 *                 coded
 *
 * Errors: PSD_NOMEM; the message is unchanged.
 */
PSD_MUST_CHECK psd_status_t ps_coder_encode(ps_coder_t *self, const ps_filter_t *filter,
                                            ps_message_t *message, const ps_payload_t *payload,
                                            ps_payload_t **ret_coded, psd_error_t *err);
/*
 * Decodes a body with PS_FLAG_CODED.
 *
 * payload     in   the coded body, in one or several spans; NULL is refused;
 *                  borrowed (parts that needed no decoding stay in it)
 * limit_bytes in   the limit of keys, index and values together
 * ret_filter  out  how the body is encoded and how its answer may be: delta,
 *                  pack, values_as
 * ret_plain   out  the body, as ps_message_decode returns it, with every length
 *                  checked; NULL when it is empty. The flag is cleared
 *
 * Errors: PSD_PROTO, naming the part; PSD_LIMIT; PSD_NOMEM; the message is then
 * unchanged. Never allocates for announced sizes beyond limit_bytes.
 */
PSD_MUST_CHECK psd_status_t ps_coder_decode(ps_coder_t *self, ps_message_t *message,
                                            ps_payload_t *payload, uint64_t limit_bytes,
                                            ps_filter_t *ret_filter, ps_payload_t **ret_plain,
                                            psd_error_t *err);

/* The filters that a coded body's head names, PS_FILTER_BIT_…; reads only the
 * head; payload may be NULL. Errors: PSD_PROTO no head. */
PSD_MUST_CHECK psd_status_t ps_coded_bits(const ps_payload_t *payload, uint32_t *ret_bits,
                                          psd_error_t *err);

/* The size in bytes, a multiple of 8, of the whole coded body that begins with
 * `piece`, for reassembly. Errors: PSD_PROTO no head, sizes that overflow. */
PSD_MUST_CHECK psd_status_t ps_coded_size(ps_bytes_t piece, uint64_t *ret_size, psd_error_t *err);
#endif
