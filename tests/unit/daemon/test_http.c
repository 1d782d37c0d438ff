/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/http: which connections are cut, and what paths are answered with. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/http/http_answer.h"
#include "daemon/http/http_api.h"
#include "daemon/http/http_conns.h"
#include "daemon/http/http_host.h"
#include "daemon/http/http_token.h"

/* The other end of a connection that is cut reads its end. */
static bool is_cut(int other)
{
    char byte = 0;

    return recv(other, &byte, 1, MSG_DONTWAIT) == 0;
}

typedef struct pair {
    int own;
    int other;
    ps_http_conn_t *conn;
} pair_t;

static pair_t open_pair(ps_http_conns_t *conns, uint64_t now_ms)
{
    int fds[2];
    pair_t pair;

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    pair = (pair_t){fds[0], fds[1], ps_http_conns_add(conns, fds[0], now_ms)};
    return pair;
}

static void close_pair(const pair_t *pair)
{
    (void)close(pair->own);
    (void)close(pair->other);
}

Test(http_conns, a_slow_request_is_cut_and_an_idle_connection_stays)
{
    ps_http_conns_t conns = {.head_ms = 5000, .body_ms = 10000};
    pair_t slow = open_pair(&conns, 100);
    pair_t idle = open_pair(&conns, 100);

    ps_http_conn_enter(idle.conn, PS_HTTP_BODY, 200);
    ps_http_conn_enter(idle.conn, PS_HTTP_IDLE, 300);
    ps_http_conns_tick(&conns, 5100);
    cr_expect(!is_cut(slow.other), "it has 5 s");
    ps_http_conns_tick(&conns, 5101);
    cr_expect(is_cut(slow.other));
    cr_expect(!is_cut(idle.other));
    ps_http_conn_enter(slow.conn, PS_HTTP_BODY, 5102);
    cr_expect_eq(slow.conn->phase, PS_HTTP_CUT, "it stays cut");
    ps_http_conns_tick(&conns, 300 + PS_HTTP_IDLE_MS + 1);
    cr_expect(is_cut(idle.other));
    cr_expect_eq(conns.n_cut, 2);
    close_pair(&slow);
    close_pair(&idle);
}

Test(http_conns, an_answer_that_is_not_taken_is_cut)
{
    ps_http_conns_t conns = {.head_ms = 5000, .body_ms = 10000};
    pair_t pair = open_pair(&conns, 100);

    ps_http_conn_enter(pair.conn, PS_HTTP_BODY, 4000);
    ps_http_conns_tick(&conns, 14000);
    cr_expect(!is_cut(pair.other));
    ps_http_conns_tick(&conns, 14001);
    cr_expect(is_cut(pair.other));
    close_pair(&pair);
}

Test(http_conns, of_too_many_the_oldest_is_cut)
{
    ps_http_conns_t conns = {.head_ms = 5000, .body_ms = 10000};
    pair_t pairs[PS_HTTP_CONNS_LIMIT];

    for (size_t i = 0; i < PS_HTTP_CONNS_LIMIT; i++) {
        pairs[i] = open_pair(&conns, 100 + i);
        cr_assert_not_null(pairs[i].conn);
    }
    for (size_t i = 0; i < PS_HTTP_CONNS_LIMIT; i++) {
        cr_expect_eq(is_cut(pairs[i].other), i < PS_HTTP_CONNS_LIMIT - PS_HTTP_CONNS_MAX, "%zu", i);
    }
    cr_expect_null(ps_http_conns_add(&conns, pairs[0].own, 200), "there is no place");
    ps_http_conns_remove(&conns, pairs[0].conn);
    cr_expect_not_null(ps_http_conns_add(&conns, pairs[0].own, 200));
    for (size_t i = 0; i < PS_HTTP_CONNS_LIMIT; i++) {
        close_pair(&pairs[i]);
    }
}

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void expect_of(const ps_http_view_t *view, const ps_http_request_t *request, unsigned status,
                      const char *part)
{
    const char *method = request->method;
    const char *path = request->path;
    PSD_AUTO(ps_http_answer_done) ps_http_answer_t answer = {0};

    ps_http_answer_make(view, request, &answer);
    cr_expect_eq(answer.status, status, "%s %s: %u", method, path, answer.status);
    cr_expect_not_null(memmem(answer.text.data, answer.text.size, part, strlen(part)),
                       "%s %s: %.*s", method, path, (int)answer.text.size,
                       (const char *)answer.text.data);
    cr_expect_eq(answer.question.size, 0);
}

static void expect(ps_metrics_t *metrics, const char *method, const char *path, unsigned status,
                   const char *part)
{
    const ps_http_view_t view = {.metrics = metrics, .host = "127.0.0.1"};
    const ps_http_request_t request = {.method = method, .path = path};

    expect_of(&view, &request, status, part);
}

Test(http_answer, paths_and_methods)
{
    const ps_metrics_args_t args = {.n_shards = 1};
    PSD_AUTO(ps_metrics_destroy) ps_metrics_t *metrics = NULL;

    cr_assert_eq(ps_metrics_new(&args, &metrics, NULL), PSD_OK);
    expect(metrics, "GET", "/healthz", 200, "healthy\n");
    expect(metrics, "GET", "/readyz", 503, "psd starts\n");
    ps_metrics_set_stage(metrics, PS_STAGE_SERVING);
    expect(metrics, "HEAD", "/readyz", 200, "ready\n");
    expect(metrics, "GET", "/metrics", 200, "psd_build_info{version=\"");
    expect(metrics, "DELETE", "/metrics", 405, "only GET and HEAD\n");
    expect(metrics, "POST", "/healthz", 405, "only GET and HEAD\n");
    expect(metrics, "GET", "/healthz/", 404, "not found");
    expect(metrics, "GET", "", 404, "not found");
    expect(metrics, "GET", "/", 200, "<script src=\"psd.js\">");
    expect(metrics, "GET", "/psd.js", 200, "uPlot");
    expect(metrics, "GET", "/psd.css", 404, "not found");
    expect(metrics, "GET", "/api/v1/tables", 503, "psd starts\n");
    expect(metrics, "GET", "/metrics", 200, "psd_http_answers_total{status=\"404\"} 3\n");
    expect(metrics, "GET", "/metrics", 200, "psd_http_answers_total{status=\"405\"} 2\n");
    expect(metrics, "GET", "/metrics", 200, "psd_scrape_seconds_count 3\n");
}

/* ---- the token ---- */

static void expect_api(const ps_http_view_t *view, const char *path, const char *authorization,
                       unsigned status, const char *question)
{
    const ps_http_request_t request = {
        .method = "GET", .path = path, .authorization = authorization};
    PSD_AUTO(ps_http_answer_done) ps_http_answer_t answer = {0};

    ps_http_answer_make(view, &request, &answer);
    cr_expect_eq(answer.status, status, "%s: %u", path, answer.status);
    cr_expect_eq(answer.wants != NULL, status == 401);
    if (question != NULL) {
        cr_assert_neq(answer.question.size, 0, "%s: %.*s", path, (int)answer.text.size,
                      (const char *)answer.text.data);
        cr_expect_str_eq((const char *)answer.question.data, question);
    }
}

Test(http_answer, the_api_wants_the_token_and_numbers_do_not)
{
    const ps_metrics_args_t args = {.n_shards = 1};
    PSD_AUTO(ps_metrics_destroy) ps_metrics_t *metrics = NULL;
    ps_http_view_t view = {.token = TOKEN, .host = "127.0.0.1"};

    cr_assert_eq(ps_metrics_new(&args, &metrics, NULL), PSD_OK);
    view.metrics = metrics;
    expect_api(&view, "/api/v1/tables", NULL, 401, NULL);
    expect_api(&view, "/api/v1/nothing", NULL, 401, NULL);
    expect_api(&view, "/api/v1/tables", "Bearer " TOKEN "0", 401, NULL);
    expect_api(&view, "/api/v1/tables", "Bearer", 401, NULL);
    expect_api(&view, "/api/v1/tables", "Bearer " TOKEN, 0, "{\"op\":\"table_list\"}");
    expect_api(&view, "/metrics", NULL, 200, NULL);
    expect_api(&view, "/", NULL, 200, NULL);
    view.token_for_all = true; /* another machine may ask */
    expect_api(&view, "/metrics", NULL, 401, NULL);
    expect_api(&view, "/", NULL, 401, NULL);
    expect_api(&view, "/metrics", "Bearer " TOKEN, 200, NULL);
    expect_api(&view, "/healthz", NULL, 200, NULL);
    expect_api(&view, "/readyz", NULL, 503, NULL); /* psd starts */
    view.token = NULL;
    expect_api(&view, "/metrics", "Bearer " TOKEN, 503, NULL);
    expect_api(&view, "/healthz", NULL, 200, NULL);
}

/* As a name that another site gave the address 127.0.0.1. */
Test(http_answer, a_foreign_host_gets_nothing_without_a_token)
{
    const ps_metrics_args_t args = {.n_shards = 1};
    PSD_AUTO(ps_metrics_destroy) ps_metrics_t *metrics = NULL;
    ps_http_view_t view = {.token = TOKEN, .host = "127.0.0.1"};
    ps_http_request_t request = {.method = "GET", .host = "evil.example:7173"};
    static const char *const PATHS[] = {"/metrics", "/healthz", "/", "/none", "/api/v1/tables"};

    cr_assert_eq(ps_metrics_new(&args, &metrics, NULL), PSD_OK);
    view.metrics = metrics;
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        request.path = PATHS[i];
        expect_of(&view, &request, 403, "use an address");
    }
    request.path = "/metrics";
    request.host = "localhost:7173";
    expect_of(&view, &request, 200, "psd_build_info");
    view.token_for_all = true; /* whoever has the token may use any name */
    request.host = "psd.example";
    request.authorization = "Bearer " TOKEN;
    expect_of(&view, &request, 200, "psd_build_info");
}

Test(http_host, an_address_or_a_name_of_ours)
{
    cr_expect(ps_http_host_fits(NULL, "lo"));
    cr_expect(ps_http_host_fits("", "lo"));
    cr_expect(ps_http_host_fits("127.0.0.1", "lo"));
    cr_expect(ps_http_host_fits("10.1.2.3:80", "lo"));
    cr_expect(ps_http_host_fits("[::1]:7173", "lo"));
    cr_expect(ps_http_host_fits("LocalHost:80", "lo"));
    cr_expect(ps_http_host_fits("lo:80", "lo"));
    cr_expect(!ps_http_host_fits("lo.example", "lo"));
    cr_expect(!ps_http_host_fits("127.0.0.1.example", "lo"));
    cr_expect(!ps_http_host_fits("localhost.example:80", "lo"));
    cr_expect(!ps_http_host_fits(":80", "lo"));
    cr_expect(!ps_http_host_fits("[::1", "lo"));
    cr_expect(!ps_http_host_fits("[example]", "lo"));
    cr_expect(!ps_http_host_fits("[::1]example", "lo"));
    cr_expect(!ps_http_host_fits("[::1.example.example.example.example.example.example]", "lo"));
}

Test(http_token, shown_as_bearer_or_as_password)
{
    cr_expect(ps_http_token_fits(TOKEN, "bearer " TOKEN));
    cr_expect(!ps_http_token_fits(TOKEN, NULL));
    cr_expect(!ps_http_token_fits(TOKEN, ""));
    cr_expect(!ps_http_token_fits(TOKEN, TOKEN));
    cr_expect(!ps_http_token_fits(TOKEN, "Bearer 0" TOKEN));
    cr_expect(!ps_http_token_fits(TOKEN, "Digest " TOKEN));
    /* any:TOKEN, and the same with another last digit */
    cr_expect(ps_http_token_fits(
        TOKEN, "Basic "
               "YW55OjAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZmMDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJi"
               "Y2NkZGVlZmY="));
    cr_expect(!ps_http_token_fits(
        TOKEN, "Basic "
               "YW55OjAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZmMDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJi"
               "Y2NkZGVlZmU="));
    cr_expect(!ps_http_token_fits(TOKEN, "Basic "));
    cr_expect(!ps_http_token_fits(TOKEN, "Basic YW55"), "no colon");
    cr_expect(!ps_http_token_fits(TOKEN, "Basic *"));
}

Test(http_token, is_made_once_and_for_its_owner_alone)
{
    char dir[] = "/tmp/test_http_XXXXXX";
    char path[64];
    char beside[80];
    char other[64];
    char first[PS_HTTP_TOKEN_SIZE];
    char again[PS_HTTP_TOKEN_SIZE] = "";
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    struct stat is;

    cr_assert_not_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/%s", dir, PS_HTTP_TOKEN_FILE);
    (void)snprintf(other, sizeof other, "%s/other", dir);
    cr_assert_eq(ps_http_token_load(dir, first, err), PSD_OK);
    cr_expect_eq(strlen(first), 64);
    cr_expect_eq(stat(path, &is), 0);
    cr_expect_eq(is.st_mode & 07777, 0600);
    cr_expect_eq(ps_http_token_load(dir, again, err), PSD_OK);
    cr_expect_str_eq(again, first);
    cr_expect_eq(chmod(path, 0640), 0);
    cr_expect_eq(ps_http_token_load(dir, again, err), PSD_IO);
    cr_expect_not_null(strstr(psd_error_text(err), "others than its owner may use it"));
    psd_error_clear(err);
    cr_expect_eq(chmod(path, 0600), 0);
    cr_expect_eq(truncate(path, 10), 0);
    cr_expect_eq(ps_http_token_load(dir, again, err), PSD_IO);
    cr_expect_not_null(strstr(psd_error_text(err), "it has no token"));
    psd_error_clear(err);
    cr_expect_eq(unlink(path), 0);
    cr_expect_eq(symlink("/dev/null", path), 0);
    cr_expect_eq(ps_http_token_load(dir, again, err), PSD_IO, "it follows no link");
    psd_error_clear(err);
    cr_expect_eq(unlink(path), 0);
    cr_expect_eq(mkfifo(path, 0600), 0);
    cr_expect_eq(ps_http_token_load(dir, again, err), PSD_IO, "it waits for no writer");
    psd_error_clear(err);
    cr_expect_eq(unlink(path), 0);
    (void)snprintf(beside, sizeof beside, "%s.new", path);
    cr_expect_eq(symlink(other, beside), 0);
    cr_expect_eq(ps_http_token_load(dir, again, err), PSD_OK);
    cr_expect_neq(access(other, F_OK), 0, "it writes through no link");
    cr_expect_eq(unlink(path), 0);
    cr_expect_eq(rmdir(dir), 0);
}

/* ---- /api/v1 ---- */

static void expect_question(const char *path, const char *last, ps_http_found_t want,
                            const char *question)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    cr_expect_eq(ps_http_api_find(path, last, &text), want, "%s", path);
    cr_expect_eq(text.size > 0, question != NULL);
    if (question != NULL && text.size > 0) {
        cr_expect_str_eq((const char *)text.data, question);
    }
}

Test(http_api, paths_are_questions)
{
    expect_question("/api/v1/cluster", NULL, PS_HTTP_FOUND, "{\"op\":\"cluster_status\"}");
    expect_question("/api/v1/tables/w.1", NULL, PS_HTTP_FOUND,
                    "{\"op\":\"table_inspect\",\"name\":\"w.1\"}");
    expect_question("/api/v1/jobs/lr/why", NULL, PS_HTTP_FOUND, "{\"op\":\"why\",\"job\":\"lr\"}");
    expect_question("/api/v1/jobs/lr", NULL, PS_HTTP_FOUND,
                    "{\"op\":\"job_inspect\",\"job\":\"lr\"}");
    expect_question("/api/v1/events", NULL, PS_HTTP_FOUND,
                    "{\"op\":\"cluster_events\",\"limit\":200}");
    expect_question("/api/v1/events", "5", PS_HTTP_FOUND,
                    "{\"op\":\"cluster_events\",\"limit\":5}");
    expect_question("/api/v1/events", "0", PS_HTTP_BAD_NAME, NULL);
    expect_question("/api/v1/events", "x", PS_HTTP_BAD_NAME, NULL);
    expect_question("/api/v1/tables/", NULL, PS_HTTP_BAD_NAME, NULL);
    expect_question("/api/v1/tables/a\"b", NULL, PS_HTTP_BAD_NAME, NULL);
    expect_question("/api/v1/tables/"
                    "0123456789012345678901234567890123456789012345678901234567890123",
                    NULL, PS_HTTP_BAD_NAME, NULL);
    expect_question("/api/v1/tables/w/rows", NULL, PS_HTTP_NO_PATH, NULL);
    expect_question("/api/v1/table_drop", NULL, PS_HTTP_NO_PATH, NULL);
    expect_question("/api/v1/", NULL, PS_HTTP_NO_PATH, NULL);
}

Test(http_api, an_answer_loses_its_envelope)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t refusal = {0};

    cr_assert(ps_http_api_write("{\"v\":1,\"id\":7,\"status\":\"OK\",\"nodes\":[]}", &text));
    cr_expect_eq(text.size, strlen("{\"nodes\":[],\"schema_version\":1}"));
    cr_expect_not_null(memmem(text.data, text.size, "\"nodes\":[]", 10));
    cr_expect_not_null(memmem(text.data, text.size, "\"schema_version\":1", 18));
    cr_expect(!ps_http_api_write("no document", &text));
    cr_assert(ps_http_api_refuse(PSD_NO_TABLE, "table \"w\" does not exist", &refusal));
    cr_expect_not_null(memmem(refusal.data, refusal.size, "\"code\":\"E2003\"", 14));
    cr_expect_eq(ps_http_api_status(PSD_OK), 200);
    cr_expect_eq(ps_http_api_status(PSD_NO_TABLE), 404);
    cr_expect_eq(ps_http_api_status(PSD_DENIED), 403);
    cr_expect_eq(ps_http_api_status(PSD_DEADLINE), 503);
    cr_expect_eq(ps_http_api_status(PSD_NOMEM), 500);
}
