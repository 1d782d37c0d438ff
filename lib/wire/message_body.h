/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/wire: where the body of a message lies, and how long. */
#ifndef PS_WIRE_MESSAGE_BODY_H
#define PS_WIRE_MESSAGE_BODY_H

#include "wire/message.h"

/*
 * Finds keys, index and values of a message whose fields are checked.
 *
 * rest      in   what follows the fields in the header's frame
 * ret_body  out  borrowed from frames
 *
 * Errors: PSD_PROTO when a part is not as long as the fields call for.
 */
PSD_MUST_CHECK psd_status_t ps_message_body(const ps_message_t *self,
                                            const ps_bytes_t *frames,
                                            size_t n_frames,
                                            ps_bytes_t rest,
                                            ps_body_t *ret_body,
                                            psd_error_t *err);
#endif
