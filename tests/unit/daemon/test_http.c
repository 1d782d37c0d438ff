/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/http: which connections are cut, and what paths are answered with. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "daemon/http/http_answer.h"
#include "daemon/http/http_conns.h"

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

static void expect(ps_metrics_t *metrics, const char *method, const char *path, unsigned status,
                   const char *part)
{
    PSD_AUTO(ps_http_answer_done) ps_http_answer_t answer = {0};

    ps_http_answer_make(metrics, method, path, &answer);
    cr_expect_eq(answer.status, status, "%s %s: %u", method, path, answer.status);
    cr_expect_not_null(memmem(answer.text.data, answer.text.size, part, strlen(part)),
                       "%s %s: %.*s", method, path, (int)answer.text.size,
                       (const char *)answer.text.data);
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
    expect(metrics, "GET", "/", 404, "not found");
    expect(metrics, "GET", "/metrics", 200, "psd_http_answers_total{status=\"404\"} 3\n");
    expect(metrics, "GET", "/metrics", 200, "psd_http_answers_total{status=\"405\"} 2\n");
    expect(metrics, "GET", "/metrics", 200, "psd_scrape_seconds_count 3\n");
}
