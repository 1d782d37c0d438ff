/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/wire: which values the fields of a message may have. */
#ifndef PS_WIRE_MESSAGE_CHECK_H
#define PS_WIRE_MESSAGE_CHECK_H

#include "wire/messages/message.h"

/* Checks the flags, every field with a bound of its own, and that the slice is
 * consistent; not the body. The kind must be one of the list. Errors:
 * PSD_PROTO, naming field, value and what is allowed. */
PSD_MUST_CHECK psd_status_t ps_message_check(const ps_message_t *self, psd_error_t *err);
#endif
