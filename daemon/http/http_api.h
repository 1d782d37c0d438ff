/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_http_api - which question of the control port a path below /api/v1/ is
 *
 * What     Only questions that change nothing. Their answers are what `pscli -o json`
 *          prints for the same question.
 * Threads  no shared state
 */
#ifndef PS_DAEMON_HTTP_API_H
#define PS_DAEMON_HTTP_API_H

#include "base/bytes.h"
#include "psd/status.h"

#define PS_HTTP_API "/api/v1/"

typedef enum ps_http_found {
    PS_HTTP_FOUND = 0,
    PS_HTTP_NO_PATH = 1,
    PS_HTTP_BAD_NAME = 2, /* a name in the path, or the argument, is none */
    PS_HTTP_NO_QUESTION_MEMORY = 3
} ps_http_found_t;

/* path: begins with PS_HTTP_API. last: the argument "last", a number of events; NULL: none
 * is given. ret_question: the request's JSON with its '\0'; the caller's on FOUND. */
ps_http_found_t ps_http_api_find(const char *path, const char *last, ps_buffer_t *ret_question);
/* The i-th path, as "nodes/NAME"; NULL: there are no more. */
const char *ps_http_api_path(size_t i);
/* From a reply of the control port to what is answered: its envelope goes, and
 * schema_version comes. text: the reply. false: no memory, or it is no document. */
PSD_MUST_CHECK bool ps_http_api_write(const char *text, ps_buffer_t *ret_text);
/* A refusal in the same form. */
PSD_MUST_CHECK bool ps_http_api_refuse(psd_status_t status, const char *text,
                                       ps_buffer_t *ret_text);
/* The status of HTTP for one of ours. */
unsigned ps_http_api_status(psd_status_t status);
#endif
