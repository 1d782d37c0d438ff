/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_coder - bodies of messages through filters
 *
 * What     A coded body (PS_FLAG_CODED) holds keys, index and values, each
 *          written as the filter asks and as it pays. Its head says how:
 *            0  keys_as u8    0 RAW, 1 DELTA (wire/messages/keys.h)
 *            1  values_as u8  ps_values_as_t (wire/filters/quant.h)
 *            2  pack u8       ps_pack_t (wire/messages/pack.h)
 *            3  packed u8     which parts are: 1 keys, 2 index, 4 values
 *            4  zero u32
 *            8  sizes u64 of keys, index and values as they follow
 *           32  keys, index, values; zeros up to a multiple of 8 bytes
 *          A request that wants values says in the same head how the answer's
 *          values may come: a PULL, which has none, only that.
 * Errors   are those of values and of nothing else: rows, columns and integers
 *          come out as they went in.
 * Owner    The caller; memory for work is kept between calls, at most a few MiB
 * Threads  Confined to one thread.
 */
#ifndef PS_WIRE_FILTER_CODE_H
#define PS_WIRE_FILTER_CODE_H

#include "wire/filters/filter.h"
#include "wire/messages/message.h"

#define PS_CODED_HEAD 32 /* bytes of a coded body's head */

typedef struct ps_coder ps_coder_t;

/* seed: of the chances of pushes of those who are no workers. Others follow
 * from the message: a worker's push from table, partition, seq and who the
 * worker is, values from the request that they answer; so that a job that runs
 * again is rounded again in the same way. NULL when there is no memory. */
PSD_MUST_CHECK ps_coder_t *ps_coder_new(uint64_t seed);
/* Takes NULL, nulls *self_p. */
void ps_coder_destroy(ps_coder_t **self_p);

/*
 * Writes a PUSH, PULL or VALUES message's body through a filter.
 *
 * filter     in   delta, pack and values_as are obeyed, as far as the values'
 *                 type allows; the rest is other code's
 * payload    in   the plain body; NULL when there is none; borrowed
 * ret_coded  out  the coded one, and message->flags says so. NULL: it would not
 *                 be smaller, or some value cannot be written so: the
 *                 message goes plain. A PULL is coded whenever the answer's
 *                 values are wanted so
 *
 * Errors: PSD_NOMEM; the message is unchanged.
 */
PSD_MUST_CHECK psd_status_t ps_coder_encode(ps_coder_t *self, const ps_filter_t *filter,
                                            ps_message_t *message, const ps_payload_t *payload,
                                            ps_payload_t **ret_coded, psd_error_t *err);
/*
 * Reads a body with PS_FLAG_CODED.
 *
 * payload     in   the coded body, in one or several spans; NULL is refused;
 *                  borrowed (parts that were not written anew are kept in it)
 * limit_bytes in   what keys, index and values may have together
 * ret_filter  out  how it was written, and so may be answered: delta, pack,
 *                  values_as
 * ret_plain   out  the body, as ps_message_decode would give it: every length
 *                  is checked; NULL when it is empty. The flag is cleared
 *
 * Errors: PSD_PROTO, naming the part; PSD_LIMIT; PSD_NOMEM. Nothing is
 * allocated for what is only announced beyond limit_bytes. The message is then
 * unchanged.
 */
PSD_MUST_CHECK psd_status_t ps_coder_decode(ps_coder_t *self, ps_message_t *message,
                                            ps_payload_t *payload, uint64_t limit_bytes,
                                            ps_filter_t *ret_filter, ps_payload_t **ret_plain,
                                            psd_error_t *err);

/* The filters that a coded body says it was written with, PS_FILTER_BIT_…,
 * before anything of it is read; payload may be NULL. Errors: PSD_PROTO no
 * head. */
PSD_MUST_CHECK psd_status_t ps_coded_bits(const ps_payload_t *payload, uint32_t *ret_bits,
                                          psd_error_t *err);

/* Bytes of a whole coded body of which `piece` is the first piece, for who puts
 * pieces together: a multiple of 8. Errors: PSD_PROTO no head, sizes that
 * cannot be counted. */
PSD_MUST_CHECK psd_status_t ps_coded_size(ps_bytes_t piece, uint64_t *ret_size, psd_error_t *err);
#endif
