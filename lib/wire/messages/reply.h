/* SPDX-License-Identifier: Apache-2.0 */
/* ps_reply - what every answer of a control port has */
#ifndef PS_WIRE_REPLY_H
#define PS_WIRE_REPLY_H

#include "wire/messages/doc.h"

/* The status of an answer, with its message. PSD_PROTO: it has none, or one
 * that this build does not know. */
PSD_MUST_CHECK psd_status_t ps_reply_status(const ps_doc_t *reply, psd_error_t *err);
/* A question that only asks where tables are, and changes nothing: hello, table_open without
 * spec and job, table_inspect, routes. A node answers it from its own map while there is no
 * registry. */
bool ps_request_is_of_map(const ps_doc_t *request);
#endif
