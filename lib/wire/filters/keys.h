/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_keys_delta - ascending lists of row keys as differences
 *
 * What     The first key and then each key's distance from the one before it,
 *          as little-endian groups of 7 bits; the top bit of a byte means that
 *          another byte follows. Equal neighbours have distance 0. A number
 *          never takes more bytes than it needs.
 * Shape    keys are little-endian u64, any alignment; a number is 1 .. 10 bytes
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_WIRE_KEYS_H
#define PS_WIRE_KEYS_H

#include "base/bytes.h"

#define PS_KEY_SIZE 8 /* bytes of a key in a list */

/*
 * Appends the list to `to` when it ascends.
 *
 * keys           in   n x 8 bytes
 * ret_ascending  out  false: the list does not ascend; nothing was appended
 *
 * Errors: PSD_NOMEM, nothing was appended.
 */
PSD_MUST_CHECK psd_status_t ps_keys_delta_encode(const uint8_t *keys, uint64_t n, ps_buffer_t *to,
                                                 bool *ret_ascending);
/* Whether coded_size bytes can hold n keys; check this before allocating for
 * them. */
bool ps_keys_delta_can_hold(size_t coded_size, uint64_t n);
/*
 * Reads exactly n keys; no bytes may be left over.
 *
 * ret_keys  out  n x 8 bytes; undefined on failure
 *
 * Errors: PSD_PROTO, naming the key and what is wrong: cut off, longer than it
 * needs, beyond 2^64 - 1, bytes left over.
 */
PSD_MUST_CHECK psd_status_t ps_keys_delta_decode(ps_bytes_t coded, uint64_t n, uint8_t *ret_keys,
                                                 psd_error_t *err);
#endif
