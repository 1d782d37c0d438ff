/* SPDX-License-Identifier: Apache-2.0 */
/* ps_http_answer - what the HTTP port answers to a request */
#ifndef PS_DAEMON_HTTP_ANSWER_H
#define PS_DAEMON_HTTP_ANSWER_H

#include "server/metrics/metrics.h"

#define PS_HTTP_TEXT "text/plain; charset=utf-8"
#define PS_HTTP_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define PS_HTTP_JSON "application/json"

/* What a request says. All borrowed. */
typedef struct ps_http_request {
    const char *method;
    const char *path;          /* without a query */
    const char *host;          /* the header of that name; NULL: none */
    const char *authorization; /* so, too */
    const char *last;          /* the argument of that name; NULL: none */
} ps_http_request_t;

/* What the port knows and allows. All borrowed. */
typedef struct ps_http_view {
    ps_metrics_t *metrics;
    const char *host;   /* of http.listen */
    const char *token;  /* NULL: there is none yet, and what wants it gets 503 */
    bool token_for_all; /* every path but probes' wants it; else /api/v1 alone */
} ps_http_view_t;

typedef struct ps_http_answer {
    unsigned status;      /* 200, 404 … */
    const char *type;     /* of its content; static */
    ps_buffer_t text;     /* owned */
    const char *allows;   /* 405: the methods that would do; NULL: none */
    const char *wants;    /* 401: how to show a token; NULL: none */
    const char *policy;   /* what a browser may load for it; NULL: nothing is said */
    ps_buffer_t question; /* owned; to be asked of the control port, whose answer it is
                             then, with its '\0'; empty: the answer is here */
} ps_http_answer_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_http_answer_done(ps_http_answer_t *self);
/* Without memory the answer is 500 and has no text. One that is here is counted. */
void ps_http_answer_make(const ps_http_view_t *view, const ps_http_request_t *request,
                         ps_http_answer_t *ret_answer);
/* Counts an answer with that status. */
void ps_http_answer_count(ps_metrics_t *metrics, unsigned status);
#endif
