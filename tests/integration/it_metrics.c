/* SPDX-License-Identifier: Apache-2.0 */
/* What psd counts is what was done; and its HTTP port answers whoever asks, also
 * while a thread of it hangs, and beside clients that do not let go. */
#include <dirent.h>
#include <poll.h>
#include <psd.h>
#include <signal.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/http_get.h"
#include "support/stop_thread.h"

#define PUSHES 1000
#define PULLS 500
#define REFUSALS 7
#define ROWS 3
#define LOOKS_MAX 6000 /* a minute: enough everywhere */
#define SLOW_CLIENTS 60
#define ASKERS 17 /* one more than may wait */
#define NAME_SIZE 64
#define LONG_SIZE 65536

typedef struct fixture {
    daemon_t daemon;
    psd_client_t *client;
    psd_error_t *err;
    uint16_t port;
} fixture_t;

static void pause_a_little(void)
{
    const struct timespec step = {.tv_nsec = 10000000};

    (void)nanosleep(&step, NULL);
}

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The sum of a metric now; -1: there is none. */
static double metric(const fixture_t *f, const char *name, const char *label)
{
    char *answer = NULL;
    unsigned status = http_ask(f->port, "GET", "/metrics", &answer);
    double sum = status == 200 ? http_sum(answer, name, label) : -1;

    free(answer);
    return sum;
}

/* Gauges follow a little later. */
static bool metric_becomes(const fixture_t *f, const char *name, const char *label, double want)
{
    for (int i = 0; i < LOOKS_MAX; i++) {
        if (metric(f, name, label) == want) {
            return true;
        }
        pause_a_little();
    }
    (void)fprintf(stderr, "%s{%s} is %f, not %f\n", name, label, metric(f, name, label), want);
    return false;
}

/* Asks until the path has that status and its answer that part. */
static bool answers(const fixture_t *f, const char *path, unsigned want, const char *part)
{
    for (int i = 0; i < LOOKS_MAX; i++) {
        char *answer = NULL;
        unsigned status = http_ask(f->port, "GET", path, &answer);
        bool fits = status == want && strstr(answer, part) != NULL;

        if (!fits && i == LOOKS_MAX - 1) {
            (void)fprintf(stderr, "%s: %u, not %u with \"%s\": %.400s\n", path, status, want, part,
                          answer);
        }
        free(answer);
        if (fits) {
            return true;
        }
        pause_a_little();
    }
    return false;
}

/* ---- counts ---- */

static bool make_table(fixture_t *f, psd_table_t **ret_table)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "1000", f->err), f->err);
    CHECK_OK(psd_spec_set(spec, "partitions", "1", f->err), f->err);
    CHECK_OK(psd_spec_set(spec, "ack", "disk", f->err), f->err);
    CHECK_OK(psd_table_create(f->client, "counted", spec, ret_table, f->err), f->err);
    psd_spec_destroy(&spec);
    return true;
}

static bool work(fixture_t *f, psd_table_t *table)
{
    const uint64_t keys[ROWS] = {1, 3, 5};
    const float deltas[ROWS] = {1.0F, 1.0F, 1.0F};
    const float bad[ROWS] = {0.0F / 0.0F, 1.0F, 1.0F};
    float values[ROWS];

    for (int i = 0; i < PUSHES; i++) {
        CHECK_OK(psd_push(table, keys, ROWS, deltas, ROWS, f->err), f->err);
    }
    for (int i = 0; i < PULLS; i++) {
        CHECK_OK(psd_pull(table, keys, ROWS, values, ROWS, f->err), f->err);
    }
    for (int i = 0; i < REFUSALS; i++) {
        CHECK_ERROR(psd_push(table, keys, ROWS, bad, ROWS, f->err), PSD_NOT_FINITE, "row", f->err);
    }
    CHECK(values[0] == (float)PUSHES);
    return true;
}

/* Each request was taken, refused, sent on, or had been taken before. */
static bool sums_fit(const fixture_t *f)
{
    char *answer = NULL;
    double push = 0;
    double pull = 0;
    double others = 0;

    CHECK(http_ask(f->port, "GET", "/metrics", &answer) == 200);
    push = http_sum(answer, "psd_requests_total", "request=\"push\"");
    pull = http_sum(answer, "psd_requests_total", "request=\"pull\"");
    others = http_sum(answer, "psd_refusals_total", "") +
             http_sum(answer, "psd_repeated_total", "") + http_sum(answer, "psd_moved_total", "");
    CHECK(push + pull == PUSHES + PULLS + others);
    CHECK(http_sum(answer, "psd_request_seconds_count", "request=\"push\"") == push);
    CHECK(http_sum(answer, "psd_request_seconds_count", "request=\"pull\"") == pull);
    CHECK(http_sum(answer, "psd_request_seconds_bucket", "request=\"push\",le=\"+Inf\"") == push);
    CHECK(http_sum(answer, "psd_request_seconds_sum", "request=\"push\"") > 0);
    CHECK(http_sum(answer, "psd_sent_bytes_total", "") >= PULLS * ROWS * (double)sizeof(float));
    CHECK(http_sum(answer, "psd_received_bytes_total", "") >=
          PUSHES * ROWS * (double)sizeof(float));
    free(answer);
    return true;
}

static bool counts_exactly(fixture_t *f)
{
    psd_table_t *table = NULL;
    char label[64];

    CHECK(make_table(f, &table));
    CHECK(work(f, table));
    CHECK(metric(f, "psd_pushes_total", "") == PUSHES);
    CHECK(metric(f, "psd_pulls_total", "") == PULLS);
    CHECK(metric(f, "psd_rows_pushed_total", "") == PUSHES * ROWS);
    CHECK(metric(f, "psd_rows_pulled_total", "") == PULLS * ROWS);
    (void)snprintf(label, sizeof label, "code=\"%s\"", psd_status_code(PSD_NOT_FINITE));
    CHECK(metric(f, "psd_refusals_total", label) == REFUSALS);
    CHECK(sums_fit(f));
    CHECK(metric(f, "psd_control_requests_total", "kind=\"table_create\"") == 1);
    CHECK(metric(f, "psd_registry_commands_total", "command=\"table\"") == 1);
    CHECK(metric(f, "psd_registry_commit_seconds_count", "") >= 1);
    CHECK(metric(f, "psd_log_flushes_total", "") == metric(f, "psd_log_flush_seconds_count", ""));
    CHECK(metric(f, "psd_log_flushes_total", "") >= 1);
    CHECK(metric_becomes(f, "psd_table_pushes_total", "table=\"1\"", PUSHES));
    CHECK(metric_becomes(f, "psd_table_pulls_total", "table=\"1\"", PULLS));
    CHECK(metric_becomes(f, "psd_table_rows", "table=\"1\"", 1000));
    CHECK(metric_becomes(f, "psd_table_info", "name=\"counted\"", 1));
    CHECK(metric_becomes(f, "psd_tables", "", 1));
    CHECK(metric_becomes(f, "psd_nodes", "state=\"up\"", 1));
    CHECK(metric(f, "psd_ready", "") == 1);
    psd_table_close(&table);
    return true;
}

/* ---- what hangs ---- */

/* The thread of psd with that name; 0: none. */
static pid_t find_thread(pid_t pid, const char *name)
{
    char path[NAME_SIZE];
    DIR *dir = NULL;
    pid_t found = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/task", pid);
    dir = opendir(path);
    for (const struct dirent *entry = dir == NULL ? NULL : readdir(dir);
         entry != NULL && found == 0; entry = readdir(dir)) {
        char file_path[NAME_SIZE + 64];
        char is[NAME_SIZE] = "";
        FILE *file = NULL;

        (void)snprintf(file_path, sizeof file_path, "%s/%.20s/comm", path, entry->d_name);
        file = fopen(file_path, "re");
        if (file != NULL) {
            is[fread(is, 1, sizeof is - 1, file)] = '\0';
            is[strcspn(is, "\n")] = '\0';
            (void)fclose(file);
        }
        found = strcmp(is, name) == 0 ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return found;
}

static bool names_hung(const fixture_t *f, pid_t tid, const char *name)
{
    char words[NAME_SIZE];
    double since_s = now_s();

    (void)snprintf(words, sizeof words, "thread %s has not turned", name);
    CHECK(tid > 0);
    CHECK(answers(f, "/healthz", 200, "healthy"));
    CHECK(stop_thread(tid));
    since_s = now_s();
    CHECK(answers(f, "/healthz", 503, words));
    CHECK(now_s() - since_s < 5);
    CHECK(answers(f, "/readyz", 503, words));
    CHECK(metric(f, "psd_threads_late", "") >= 1);
    CHECK(metric(f, "psd_pushes_total", "") == PUSHES);
    CHECK(let_thread_go(tid));
    CHECK(answers(f, "/healthz", 200, "healthy"));
    return answers(f, "/readyz", 200, "ready");
}

/* ---- /api/v1 while a shard hangs ---- */

/* The request with the token, as one text. false: there is no token. */
static bool print_api_request(const fixture_t *f, const char *path, char ret[LONG_SIZE])
{
    char name[4096];
    char token[128] = "";
    FILE *file = NULL;

    (void)snprintf(name, sizeof name, "%.4000s/data/http.token", f->daemon.dir.path);
    file = fopen(name, "re");
    CHECK(file != NULL);
    token[fread(token, 1, sizeof token - 1, file)] = '\0';
    (void)fclose(file);
    token[strcspn(token, "\n")] = '\0';
    (void)snprintf(ret, LONG_SIZE,
                   "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                   "Connection: close\r\n\r\n",
                   path, token);
    return true;
}

static bool api_gives_up(const fixture_t *f)
{
    static char request[LONG_SIZE];
    char *answer = NULL;
    pid_t tid = find_thread(f->daemon.pid, "shard-0");
    double since_s = 0;

    CHECK(print_api_request(f, "/api/v1/tables", request));
    CHECK(http_exchange(f->port, request, strlen(request), &answer) == 200);
    CHECK(strstr(answer, "\"name\":\"counted\"") != NULL);
    free(answer);
    CHECK(tid > 0 && stop_thread(tid));
    since_s = now_s();
    CHECK(http_exchange(f->port, request, strlen(request), &answer) == 503);
    CHECK(strstr(answer, "\"code\":\"E3002\"") != NULL);
    CHECK(now_s() - since_s < 20); /* 3 s, on a machine that is not busy */
    free(answer);
    CHECK(let_thread_go(tid));
    return answers(f, "/healthz", 200, "healthy");
}

/* Waits until it has nothing to do, and so no lock. */
static bool thread_is_idle(pid_t pid, pid_t tid)
{
    char path[NAME_SIZE];
    int n_idle = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)tid);
    for (int i = 0; i < LOOKS_MAX && n_idle < 3; i++) {
        char state = ' ';
        FILE *file = fopen(path, "re");

        CHECK(file != NULL);
        CHECK(fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
        (void)fclose(file);
        n_idle = state == 'S' ? n_idle + 1 : 0;
        pause_a_little();
    }
    return n_idle == 3;
}

/* Of more questions than may wait, one is refused at once; then it goes on. */
static bool api_refuses_too_many(const fixture_t *f)
{
    static char request[LONG_SIZE];
    struct pollfd waits[ASKERS] = {0};
    char text[4096] = "";
    char *answer = NULL;
    pid_t tid = 0;

    CHECK(print_api_request(f, "/api/v1/tables", request));
    CHECK(http_exchange(f->port, request, strlen(request), &answer) == 200);
    free(answer);
    tid = find_thread(f->daemon.pid, "api"); /* it answers them all */
    CHECK(tid > 0 && thread_is_idle(f->daemon.pid, tid) && stop_thread(tid));
    for (int i = 0; i < ASKERS; i++) {
        waits[i] = (struct pollfd){.fd = http_connect(f->port), .events = POLLIN};
        CHECK(waits[i].fd >= 0);
        CHECK(send(waits[i].fd, request, strlen(request), MSG_NOSIGNAL) ==
              (ssize_t)strlen(request));
    }
    CHECK(poll(waits, ASKERS, HTTP_WAIT_S * 1000) == 1);
    for (int i = 0; i < ASKERS; i++) {
        if (waits[i].revents != 0) {
            CHECK(recv(waits[i].fd, text, sizeof text - 1, 0) > 0);
        }
    }
    CHECK(strncmp(text, "HTTP/1.1 503", 12) == 0);
    CHECK(let_thread_go(tid));
    for (int i = 0; i < ASKERS; i++) {
        while (recv(waits[i].fd, text, sizeof text, 0) > 0) {
        }
        (void)close(waits[i].fd);
    }
    CHECK(http_exchange(f->port, request, strlen(request), &answer) == 200);
    free(answer);
    return true;
}

/* psd ends, though somebody waits for an answer. */
static bool ends_while_asked(fixture_t *f)
{
    static char request[LONG_SIZE];
    pid_t tid = find_thread(f->daemon.pid, "shard-0");
    char text[4096];
    int fd = http_connect(f->port);
    size_t size = 0;

    CHECK(print_api_request(f, "/api/v1/tables", request));
    CHECK(fd >= 0 && tid > 0 && stop_thread(tid));
    CHECK(send(fd, request, strlen(request), MSG_NOSIGNAL) == (ssize_t)strlen(request));
    CHECK(answers(f, "/healthz", 503, "shard-0")); /* the request is under way by now */
    CHECK(kill(f->daemon.pid, SIGTERM) == 0);
    for (ssize_t n = 1; n > 0 && size<sizeof text - 1; size += n> 0 ? (size_t)n : 0) {
        n = recv(fd, text + size, sizeof text - 1 - size, 0);
    }
    text[size] = '\0';
    (void)close(fd);
    CHECK(let_thread_go(tid));
    CHECK(strncmp(text, "HTTP/1.1 503", 12) == 0 || size == 0);
    return daemon_end(&f->daemon, 0); /* it ends by the signal that it has got */
}

/* ---- who asks what ---- */

static bool refuses_what_it_has_not(const fixture_t *f)
{
    char *answer = NULL;
    static char long_line[LONG_SIZE];

    CHECK(http_ask(f->port, "GET", "/nothing", &answer) == 404);
    free(answer);
    CHECK(http_ask(f->port, "GET", "/api/v1/tables", &answer) == 401);
    CHECK(strstr(answer, "WWW-Authenticate: Bearer") != NULL);
    CHECK(strstr(answer, "counted") == NULL); /* the table's name */
    free(answer);
    CHECK(http_ask(f->port, "POST", "/metrics", &answer) == 405);
    CHECK(strstr(answer, "Allow: GET, HEAD\r\n") != NULL);
    free(answer);
    CHECK(http_ask(f->port, "HEAD", "/healthz", &answer) == 200);
    CHECK(strstr(answer, "\r\n\r\n")[4] == '\0');
    free(answer);
    CHECK(http_ask(f->port, "GET", "/metrics?x=1", &answer) == 200);
    CHECK(strstr(answer, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n") != NULL);
    free(answer);
    memset(long_line, 'x', sizeof long_line);
    memcpy(long_line, "GET /", 5);
    CHECK(http_exchange(f->port, long_line, sizeof long_line, &answer) != 200);
    free(answer);
    CHECK(http_exchange(f->port, "\r\n\r\n\x01\x02 nonsense\r\n\r\n", 20, &answer) != 200);
    free(answer);
    return answers(f, "/healthz", 200, "healthy");
}

/* More of them than there is room for, none of which says anything. */
static bool serves_beside_slow_clients(const fixture_t *f)
{
    int fds[SLOW_CLIENTS];
    char byte = 0;

    for (int i = 0; i < SLOW_CLIENTS; i++) {
        fds[i] = http_connect(f->port);
        CHECK(fds[i] >= 0);
        (void)!send(fds[i], "GET /metr", 9, MSG_NOSIGNAL);
    }
    CHECK(answers(f, "/healthz", 200, "healthy"));
    CHECK(metric(f, "psd_http_connections_cut_total", "") >= 1);
    for (int i = 0; i < SLOW_CLIENTS; i++) { /* they are closed, and not answered */
        ssize_t n = recv(fds[i], &byte, 1, 0);

        CHECK(n <= 0);
        (void)close(fds[i]);
    }
    return metric(f, "psd_http_connections_cut_total", "") >= SLOW_CLIENTS;
}

/* ---- without it ---- */

static bool is_off_when_told(void)
{
    daemon_t daemon = {0};
    bool done = daemon_start(&daemon, "shards: 1\nhttp:\n  listen: off\n");
    char data[4096];

    (void)snprintf(data, sizeof data, "%.4000s/data", daemon.dir.path);
    done = done && http_port(data) == 0 && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !done);
    return done;
}

static bool run(fixture_t *f)
{
    char data[4096];
    bool done = true;

    (void)snprintf(data, sizeof data, "%.4000s/data", f->daemon.dir.path);
    f->port = http_port(data);
    CHECK(f->port != 0);
    CHECK_OK(psd_connect(f->daemon.control, NULL, &f->client, f->err), f->err);
    done = counts_exactly(f) && names_hung(f, find_thread(f->daemon.pid, "shard-0"), "shard-0") &&
           names_hung(f, f->daemon.pid, "control") && refuses_what_it_has_not(f) &&
           serves_beside_slow_clients(f) && api_gives_up(f) && api_refuses_too_many(f);
    psd_close(&f->client);
    return done && ends_while_asked(f);
}

int main(void)
{
    fixture_t f = {.err = psd_error_new()};
    bool done = daemon_start(&f.daemon, "shards: 2\nhttp:\n  names: true\n") && run(&f);

    daemon_drop(&f.daemon, !done);
    psd_error_destroy(&f.err);
    return done && is_off_when_told() ? 0 : 1;
}
