/* SPDX-License-Identifier: Apache-2.0 */
/* The paths. What they show without a token is numbers, and an empty page. */
#include "daemon/http/http_answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/http/http_api.h"
#include "daemon/http/http_host.h"
#include "daemon/http/http_token.h"
#include "daemon/page/page.h"
#include "server/metrics/family.h"

#define OK 200
#define BAD 400
#define NO_TOKEN 401
#define NO_HOST 403
#define NOT_FOUND 404
#define NO_METHOD 405
#define FAILED 500
#define UNAVAILABLE 503

#define HEALTH "/healthz"
#define READY "/readyz"

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

static unsigned answer_page(ps_metrics_t *metrics, ps_buffer_t *text, bool *done)
{
    (void)metrics;
    *done = ps_buffer_append(text, ps_page_html, ps_page_html_size);
    return OK;
}

static unsigned answer_script(ps_metrics_t *metrics, ps_buffer_t *text, bool *done)
{
    (void)metrics;
    *done = ps_buffer_append(text, ps_page_js, ps_page_js_size);
    return OK;
}

/* Nothing from elsewhere, no frame around it, no form that leaves it. */
#define POLICY                                                                               \
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; " \
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct {
    const char *path;
    answer_t *answer;
    const char *type;
} PATHS[] = {
    {"/", answer_page, "text/html; charset=utf-8"},
    {"/psd.js", answer_script, "text/javascript; charset=utf-8"},
    {HEALTH, answer_health, PS_HTTP_TEXT},
    {READY, answer_ready, PS_HTTP_TEXT},
    {"/metrics", answer_metrics, PS_HTTP_METRICS},
};

void ps_http_answer_done(ps_http_answer_t *self)
{
    ps_buffer_done(&self->text);
    ps_buffer_done(&self->question);
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

static bool say(ps_http_answer_t *answer, unsigned status, const char *text)
{
    answer->status = status;
    return ps_buffer_print(&answer->text, "%s\n", text);
}

static bool is_api(const char *path)
{
    return strncmp(path, PS_HTTP_API, strlen(PS_HTTP_API)) == 0;
}

/* What a probe asks: whoever starts and stops psd has no token to show, least of all before
 * psd has made one. */
static bool is_probe(const char *path)
{
    return strcmp(path, HEALTH) == 0 || strcmp(path, READY) == 0;
}

/* Whether the request may have what it asks for; else the answer says why not. */
static bool is_let_in(const ps_http_view_t *view, const ps_http_request_t *request,
                      ps_http_answer_t *answer, bool *done)
{
    if (!view->token_for_all && !ps_http_host_fits(request->host, view->host)) {
        *done = say(answer, NO_HOST, "Host is a name that psd does not have; use an address");
        return false;
    }
    if (is_probe(request->path) || (!is_api(request->path) && !view->token_for_all)) {
        return true;
    }
    if (view->token == NULL) {
        *done = say(answer, UNAVAILABLE, "psd starts");
        return false;
    }
    if (ps_http_token_fits(view->token, request->authorization)) {
        return true;
    }
    /* A browser asks its user only where no page of ours can. */
    answer->wants =
        view->token_for_all ? "Basic realm=\"psd\", charset=\"UTF-8\"" : "Bearer realm=\"psd\"";
    *done =
        say(answer, NO_TOKEN, "this needs the token of psd; \"pscli page\" prints a link with it");
    return false;
}

static bool ask(const ps_http_request_t *request, ps_http_answer_t *answer)
{
    switch (ps_http_api_find(request->path, request->last, &answer->question)) {
    case PS_HTTP_FOUND:
        answer->type = PS_HTTP_JSON;
        return true;
    case PS_HTTP_BAD_NAME:
        return say(answer, BAD,
                   "a name has 1 to 63 letters, digits, \"_\", \".\", \"-\"; last "
                   "is 1 to 10000");
    case PS_HTTP_NO_PATH:
        return say(answer, NOT_FOUND, "not found; docs/metrics.md lists the paths");
    case PS_HTTP_NO_QUESTION_MEMORY:
    default:
        return false;
    }
}

static bool answer_path(const ps_http_view_t *view, const char *path, ps_http_answer_t *answer)
{
    bool done = true;

    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        if (strcmp(PATHS[i].path, path) == 0) {
            answer->type = PATHS[i].type;
            answer->policy = PATHS[i].answer == answer_page ? POLICY : NULL;
            answer->status = PATHS[i].answer(view->metrics, &answer->text, &done);
            return done;
        }
    }
    return say(answer, NOT_FOUND,
               "not found; there are /, /healthz, /readyz, /metrics and /api/v1/");
}

static bool is_path(const char *path)
{
    bool is = is_api(path);

    for (size_t i = 0; !is && i < sizeof PATHS / sizeof PATHS[0]; i++) {
        is = strcmp(PATHS[i].path, path) == 0;
    }
    return is;
}

/* false: no memory. */
static bool make(const ps_http_view_t *view, const ps_http_request_t *request,
                 ps_http_answer_t *answer)
{
    bool done = true;

    if (!is_let_in(view, request, answer, &done)) {
        return done;
    }
    if (is_path(request->path) && !is_read(request->method)) {
        answer->allows = "GET, HEAD";
        return say(answer, NO_METHOD, "only GET and HEAD");
    }
    return is_api(request->path) ? ask(request, answer) : answer_path(view, request->path, answer);
}

void ps_http_answer_make(const ps_http_view_t *view, const ps_http_request_t *request,
                         ps_http_answer_t *ret_answer)
{
    *ret_answer = (ps_http_answer_t){.type = PS_HTTP_TEXT};
    if (!make(view, request, ret_answer)) {
        ps_http_answer_done(ret_answer);
        *ret_answer = (ps_http_answer_t){.type = PS_HTTP_TEXT, .status = FAILED};
    }
    if (ret_answer->question.size == 0) {
        ps_http_answer_count(view->metrics, ret_answer->status);
    }
}
