/* SPDX-License-Identifier: Apache-2.0 */
/* ps_http_answer - what the HTTP port answers to a method and a path */
#ifndef PS_DAEMON_HTTP_ANSWER_H
#define PS_DAEMON_HTTP_ANSWER_H

#include "server/metrics/metrics.h"

#define PS_HTTP_TEXT "text/plain; charset=utf-8"
#define PS_HTTP_METRICS "text/plain; version=0.0.4; charset=utf-8"

typedef struct ps_http_answer {
    unsigned status;    /* 200, 404 … */
    const char *type;   /* of its content; static */
    ps_buffer_t text;   /* owned */
    const char *allows; /* 405: the methods that would do; NULL: none */
} ps_http_answer_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_http_answer_done(ps_http_answer_t *self);
/* path: without a query. Without memory the answer is 500 and has no text. The
 * answer is counted. */
void ps_http_answer_make(ps_metrics_t *metrics, const char *method, const char *path,
                         ps_http_answer_t *ret_answer);
/* Counts an answer with that status. */
void ps_http_answer_count(ps_metrics_t *metrics, unsigned status);
#endif
