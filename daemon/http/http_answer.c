/* SPDX-License-Identifier: Apache-2.0 */
/* The paths. Paths below /api/v1/ and the page at / will ask for a token. */
#include "daemon/http/http_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/metrics/family.h"

#define OK 200
#define NOT_FOUND 404
#define NO_METHOD 405
#define FAILED 500
#define UNAVAILABLE 503

typedef unsigned answer_t(ps_metrics_t *metrics, ps_buffer_t *text, bool *done);

static unsigned answer_health(ps_metrics_t *metrics, ps_buffer_t *text, bool *done)
{
    return ps_metrics_say_health(metrics, text, done) ? OK : UNAVAILABLE;
}

static unsigned answer_ready(ps_metrics_t *metrics, ps_buffer_t *text, bool *done)
{
    return ps_metrics_say_ready(metrics, text, done) ? OK : UNAVAILABLE;
}

static unsigned answer_metrics(ps_metrics_t *metrics, ps_buffer_t *text, bool *done)
{
    uint64_t since_ns = ps_meter_now_ns();

    *done = ps_metrics_print(metrics, text);
    ps_histogram_add(ps_metrics_node(metrics)->scrape, ps_meter_now_ns() - since_ns);
    return OK;
}

static const struct {
    const char *path;
    answer_t *answer;
    const char *type;
} PATHS[] = {
    {"/healthz", answer_health, PS_HTTP_TEXT},
    {"/readyz", answer_ready, PS_HTTP_TEXT},
    {"/metrics", answer_metrics, PS_HTTP_METRICS},
};

void ps_http_answer_done(ps_http_answer_t *self)
{
    ps_buffer_done(&self->text);
    *self = (ps_http_answer_t){0};
}

void ps_http_answer_count(ps_metrics_t *metrics, unsigned status)
{
    for (size_t i = 0; i < PS_DIM_ANSWER; i++) {
        if (strtoul(ps_dim_value(PS_BY_ANSWER, i), NULL, 10) == status) {
            ps_count_add(&ps_metrics_node(metrics)->http_answers[i], 1);
        }
    }
}

static bool is_read(const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
}

static void make(ps_metrics_t *metrics, const char *method, const char *path,
                 ps_http_answer_t *answer)
{
    bool done = true;

    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        if (strcmp(PATHS[i].path, path) != 0) {
            continue;
        }
        if (!is_read(method)) {
            answer->status = NO_METHOD;
            answer->allows = "GET, HEAD";
            done = ps_buffer_print(&answer->text, "only GET and HEAD\n");
        } else {
            answer->type = PATHS[i].type;
            answer->status = PATHS[i].answer(metrics, &answer->text, &done);
        }
        if (!done) {
            answer->status = FAILED;
            ps_buffer_done(&answer->text);
        }
        return;
    }
    answer->status = NOT_FOUND;
    if (!ps_buffer_print(&answer->text, "not found; there are /healthz, /readyz, /metrics\n")) {
        answer->status = FAILED;
    }
}

void ps_http_answer_make(ps_metrics_t *metrics, const char *method, const char *path,
                         ps_http_answer_t *ret_answer)
{
    *ret_answer = (ps_http_answer_t){.type = PS_HTTP_TEXT};
    make(metrics, method, path, ret_answer);
    ps_http_answer_count(metrics, ret_answer->status);
}
