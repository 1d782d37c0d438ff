/* SPDX-License-Identifier: Apache-2.0 */
/* ps_hex - bytes as text, for documents that carry bytes */
#ifndef PS_BASE_HEX_H
#define PS_BASE_HEX_H

#include "base/bytes.h"

/* Appends two lower-case digits per byte and a '\0' that size does not count.
 * false: no memory, nothing changed. */
PSD_MUST_CHECK bool ps_hex_write(ps_buffer_t *to, ps_bytes_t bytes);
/* Appends the bytes of a text of digit pairs, in either case. Errors: PSD_PROTO
 * anything else; PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_hex_read(ps_buffer_t *to, const char *text, psd_error_t *err);
#endif
