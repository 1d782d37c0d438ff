/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/wire: what the fields of a message may say. */
#ifndef PS_WIRE_MESSAGE_CHECK_H
#define PS_WIRE_MESSAGE_CHECK_H

#include "wire/messages/message.h"

/* Checks the flags and every field that has a bound of its own, and the slice
 * for contradictions within it; not the body. The kind is one of the list.
 * Errors: PSD_PROTO, naming field, value and what is allowed. */
PSD_MUST_CHECK psd_status_t ps_message_check(const ps_message_t *self, psd_error_t *err);
#endif
