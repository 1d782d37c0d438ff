/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/wire: offsets and sizes of the parts of a message's body. */
#ifndef PS_WIRE_MESSAGE_BODY_H
#define PS_WIRE_MESSAGE_BODY_H

#include "wire/messages/message.h"

/*
 * Finds keys, index and values of a message. Its fields must be checked
 * already.
 *
 * rest      in   what follows the fields in the header's frame
 * ret_body  out  borrowed from frames
 *
 * Errors: PSD_PROTO when a part does not have the length that the fields
 * require.
 */
PSD_MUST_CHECK psd_status_t ps_message_body(const ps_message_t *self, const ps_bytes_t *frames,
                                            size_t n_frames, ps_bytes_t rest, ps_body_t *ret_body,
                                            psd_error_t *err);

/* Bytes of the three parts of a plain PUSH, PULL or VALUES message. Errors:
 * PSD_PROTO the sum overflows. */
PSD_MUST_CHECK psd_status_t ps_message_sizes(const ps_message_t *self, uint64_t *ret_keys,
                                             uint64_t *ret_index, uint64_t *ret_values,
                                             psd_error_t *err);
/* Checks the index of such a message, whose length is already right: sparse
 * counts must add up to n_values. Errors: PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_message_check_index(const ps_message_t *self, ps_bytes_t index,
                                                   psd_error_t *err);
#endif
