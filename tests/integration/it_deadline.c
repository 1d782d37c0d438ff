/* SPDX-License-Identifier: Apache-2.0 */
/* Nobody waits without an end, and everybody hears what for: no daemon, a
 * frozen one, a dead one, one that came back without its rows. */
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define TRIES 20          /* to hear why nobody answers */
#define FROZEN_MS 8000    /* of a call: time to look at it before that */
#define EVERYDAY_MS 10000 /* enough for the calls that shall work */
#define WAIT_TEXT 512
#define MANY 3000000 /* values: much more than sockets hold */

static uint64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Takes what is told of a long wait, behind what was told before. */
static void note_wait(void *user, const char *what)
{
    char *told = user;
    size_t size = strlen(told);

    (void)snprintf(told + size, WAIT_TEXT - size, "%s\n", what);
}

/* The reason is asked for in a thread of its own, which a busy machine may start late. */
static psd_status_t connect_until_refused(const psd_options_t *options, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_status_t rc = PSD_CONNECT;

    for (int i = 0; i < TRIES && rc == PSD_CONNECT; i++) {
        psd_error_clear(err);
        rc = psd_connect("tcp://127.0.0.1:1", options, &client, err);
        if (strstr(psd_error_text(err), "refused") != NULL) {
            break;
        }
    }
    return rc;
}

/* Who waits for longer than a second is told once what for. */
static bool a_long_wait_is_told(psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    char told[WAIT_TEXT] = "";
    const char begin[] = "tcp://127.0.0.1:1: no answer for 1 s: Connection "
                         "refused; waiting ";

    psd_options_set_wait(options, true);
    psd_options_set_on_wait(options, note_wait, told);
    psd_options_set_timeout_ms(options, 1000);
    CHECK_ERROR(psd_connect("tcp://127.0.0.1:1", options, &client, err), PSD_CONNECT,
                "within 1000 ms", err);
    CHECK(told[0] == '\0');
    psd_options_set_timeout_ms(options, 4000);
    for (int i = 0; i < TRIES && strncmp(told, begin, sizeof begin - 1) != 0; i++) {
        told[0] = '\0';
        CHECK_ERROR(psd_connect("tcp://127.0.0.1:1", options, &client, err), PSD_CONNECT,
                    "within 4000 ms", err);
    }
    /* 3 s on a machine that is not slow */
    CHECK(strncmp(told, begin, sizeof begin - 1) == 0);
    CHECK(strstr(told, " s more\n") != NULL);
    psd_options_destroy(&options);
    return true;
}

/* On this host a refusal is the last word, unless one wants to wait. */
static bool a_refusal_ends_at_once(psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    uint64_t start_ms = now_ms();

    psd_options_set_timeout_ms(options, 60000);
    CHECK_ERROR(connect_until_refused(options, err), PSD_CONNECT,
                "connect to tcp://127.0.0.1:1: Connection refused", err);
    CHECK_ERROR(psd_connect("ipc:///nowhere/psd.ipc", options, &client, err), PSD_CONNECT,
                "connect to ipc:///nowhere/psd.ipc: No such file", err);
    psd_options_set_wait(options, false); /* wherever it is */
    CHECK_ERROR(connect_until_refused(options, err), PSD_CONNECT, "Connection refused", err);
    CHECK_ERROR(psd_connect("tcp://no-such-host.invalid:1", options, &client, err), PSD_CONNECT,
                "host \"no-such-host.invalid\": ", err);
    CHECK(now_ms() - start_ms < 30000);
    CHECK(setenv("PSD_WAIT", "2", 1) == 0);
    CHECK_ERROR(psd_connect("tcp://127.0.0.1:1", NULL, &client, err), PSD_INVALID,
                "PSD_WAIT is \"2\"; allowed: 0..1", err);
    CHECK(unsetenv("PSD_WAIT") == 0);
    psd_options_destroy(&options);
    return true;
}

static bool nobody_is_there(psd_error_t *err)
{
    char *set_transport = NULL; /* the test is run over each */
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    uint64_t start_ms = now_ms();

    psd_options_set_wait(options, true);
    psd_options_set_timeout_ms(options, 300);
    CHECK_ERROR(connect_until_refused(options, err), PSD_CONNECT,
                "no answer from tcp://127.0.0.1:1 within 300 ms: "
                "Connection refused",
                err);
    CHECK(now_ms() - start_ms >= 300);
    CHECK(client == NULL);
    CHECK_ERROR(psd_connect("ipc:///nowhere/psd.ipc", options, &client, err), PSD_CONNECT,
                "no answer from ipc:///nowhere/psd.ipc within 300 ms: "
                "No such file",
                err);
    CHECK_ERROR(psd_connect("tcp://127.0.0.1:70000", options, &client, err), PSD_INVALID,
                "a PORT of 1 .. 65535", err);
    CHECK(setenv("PSD_ENDPOINT", "tcp://127.0.0.1:2", 1) == 0);
    CHECK_ERROR(psd_connect(NULL, options, &client, err), PSD_CONNECT, "tcp://127.0.0.1:2", err);
    CHECK(unsetenv("PSD_ENDPOINT") == 0);
    CHECK_ERROR(psd_connect("127.0.0.1:7171", options, &client, err), PSD_INVALID,
                "tcp://HOST:PORT", err);
    CHECK_ERROR(psd_options_set_transport(options, "rdma", err), PSD_INVALID,
                "auto, lane, ipc, tcp", err);
    set_transport = getenv("PSD_TRANSPORT");
    set_transport = set_transport == NULL ? NULL : strdup(set_transport);
    CHECK(setenv("PSD_TRANSPORT", "rdma", 1) == 0);
    CHECK_ERROR(psd_connect(NULL, NULL, &client, err), PSD_INVALID,
                "PSD_TRANSPORT is \"rdma\"; allowed: auto, lane", err);
    CHECK((set_transport == NULL ? unsetenv("PSD_TRANSPORT")
                                 : setenv("PSD_TRANSPORT", set_transport, 1)) == 0);
    free(set_transport);
    CHECK_ERROR(psd_options_set_spin_us(options, 10001, err), PSD_INVALID,
                "spin_us is 10001; allowed: 0..10000", err);
    CHECK(setenv("PSD_SPIN_US", "long", 1) == 0);
    CHECK_ERROR(psd_connect(NULL, NULL, &client, err), PSD_INVALID, "PSD_SPIN_US is \"long\"", err);
    CHECK(unsetenv("PSD_SPIN_US") == 0);
    psd_options_destroy(&options);
    return true;
}

/* The environment says how long a call may take that nobody gave a time. */
static bool environment_has_a_timeout(psd_error_t *err)
{
    const char *tests = getenv("PSD_TIMEOUT_MS");
    char *kept = tests == NULL ? NULL : strdup(tests);
    psd_client_t *client = NULL;

    CHECK(setenv("PSD_TIMEOUT_MS", "0", 1) == 0);
    CHECK_ERROR(psd_connect("tcp://127.0.0.1:1", NULL, &client, err), PSD_INVALID,
                "PSD_TIMEOUT_MS is \"0\"; allowed: 1..86400000", err);
    CHECK(setenv("PSD_TIMEOUT_MS", "70", 1) == 0);
    CHECK(setenv("PSD_WAIT", "1", 1) == 0);
    CHECK_ERROR(psd_connect("tcp://127.0.0.1:1", NULL, &client, err), PSD_CONNECT, "within 70 ms",
                err);
    CHECK(unsetenv("PSD_WAIT") == 0);
    CHECK((kept == NULL ? unsetenv("PSD_TIMEOUT_MS") : setenv("PSD_TIMEOUT_MS", kept, 1)) == 0);
    free(kept);
    return true;
}

static bool open_table(const daemon_t *daemon, psd_client_t **client, psd_table_t **table,
                       psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_connect(daemon->control, NULL, client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "3000000", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i32", err), err);
    CHECK_OK(psd_table_ensure(*client, "t", spec, table, err), err);
    psd_spec_destroy(&spec);
    return true;
}

/* A node that does not move: pushes end for their caller in time, who may then
 * do with its memory what it likes, and are applied once when it goes on. */
static bool node_is_frozen(daemon_t *daemon, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *t = NULL;
    psd_call_t *call = psd_call_new();
    psd_select_t *all = psd_select_new();
    int32_t *values = malloc(MANY * sizeof *values);
    psd_ticket_t push = 0;
    psd_ticket_t pull = 0;
    uint64_t start_ms = 0;
    char *reply = NULL;
    bool done = false;

    CHECK(values != NULL && open_table(daemon, &client, &t, err));
    for (int i = 0; i < MANY; i++) {
        values[i] = 1;
    }
    psd_select_all_rows(all);
    psd_call_set_borrow(call, true);
    CHECK_OK(psd_push_start(t, all, values, MANY, call, &push, err), err);
    CHECK_OK(psd_wait(client, push, 60000, err), err);

    CHECK(daemon_freeze(daemon));
    start_ms = now_ms();
    psd_call_set_timeout_ms(call, FROZEN_MS);
    CHECK_OK(psd_push_start(t, all, values, MANY, call, &push, err), err);
    CHECK_ERROR(psd_wait(client, push, 50, err), PSD_DEADLINE, "50 ms passed", err);
    CHECK_OK(psd_poll(client, push, &done, err), err);
    CHECK(!done);
    CHECK_ERROR(psd_wait(client, push, 600000, err), PSD_DEADLINE,
                "push to table \"t\", partition 0: 8000 ms passed", err);
    CHECK(now_ms() - start_ms >= FROZEN_MS);
    memset(values, 0x55, MANY * sizeof *values);
    CHECK_ERROR(psd_flush(client, 100, err), PSD_DEADLINE, " from ", err);

    CHECK_OK(psd_pull_start(t, all, values, MANY, call, &pull, err), err);
    CHECK_ERROR(psd_wait(client, pull, 600000, err), PSD_DEADLINE, "pull of table \"t\"", err);
    CHECK_ERROR(psd_request(client, "{\"op\":\"cluster_status\"}", 200, &reply, err), PSD_DEADLINE,
                "cluster_status: no answer from tcp://", err);
    CHECK(reply == NULL && values[0] == 0x55555555);

    CHECK(kill(daemon->pid, SIGCONT) == 0);
    CHECK_OK(psd_flush(client, 60000, err), err);
    psd_call_set_timeout_ms(call, 60000);
    CHECK_OK(psd_pull_start(t, all, values, MANY, call, &pull, err), err);
    CHECK_OK(psd_wait_all(client, 60000, err), err);
    for (int i = 0; i < MANY; i++) {
        CHECK(values[i] == 2);
    }
    psd_call_destroy(&call);
    psd_select_destroy(&all);
    psd_table_close(&t);
    psd_close(&client);
    free(values);
    return true;
}

/* Who waits for a call for longer than three seconds is told once what for. */
static bool a_long_call_is_told(daemon_t *daemon, psd_error_t *err)
{
    const uint64_t row = 7;
    const char begin[] = "pull of table \"t\", partition 0: ";
    psd_options_t *options = psd_options_new();
    psd_select_t *select = psd_select_new();
    psd_client_t *client = NULL;
    psd_table_t *t = NULL;
    psd_ticket_t pull = 0;
    char told[WAIT_TEXT] = "";
    int32_t value = 0;
    uint64_t start_ms = 0;

    psd_options_set_on_wait(options, note_wait, told);
    CHECK_OK(psd_connect(daemon->control, options, &client, err), err);
    CHECK_OK(psd_table_open(client, "t", &t, err), err);
    psd_select_rows(select, &row, 1);
    CHECK_OK(psd_pull(t, &row, 1, &value, 1, err), err);

    CHECK(daemon_freeze(daemon));
    start_ms = now_ms();
    CHECK_OK(psd_pull_start(t, select, &value, 1, NULL, &pull, err), err);
    told[0] = '\0'; /* of a machine that is slow */
    while (told[0] == '\0' && now_ms() - start_ms < 60000) {
        CHECK_ERROR(psd_wait(client, pull, 50, err), PSD_DEADLINE, "50 ms passed", err);
    }
    CHECK(now_ms() - start_ms >= 3000);
    CHECK_ERROR(psd_wait(client, pull, 4000, err), PSD_DEADLINE, "4000 ms passed", err);
    CHECK(strncmp(told, begin, sizeof begin - 1) == 0);
    CHECK(strstr(told, " s passed: ") != NULL);
    CHECK(strstr(told, " s more\n") != NULL);
    CHECK(strchr(told, '\n')[1] == '\0'); /* not for each wait */

    CHECK(kill(daemon->pid, SIGCONT) == 0);
    CHECK_OK(psd_wait(client, pull, 60000, err), err);
    psd_options_destroy(&options);
    psd_select_destroy(&select);
    psd_table_close(&t);
    psd_close(&client);
    return true;
}

/* Who fails with calls under way has its memory back at once, also where the
 * node does not move: a push is applied as it was, once, or never. */
static bool worker_fails_with_calls(daemon_t *daemon, psd_error_t *err)
{
    enum { N_SMALL = 8 }; /* enough for the sender's thread to have some */
    const uint64_t row = 7;
    const int32_t one = 1;
    psd_client_t *client = NULL;
    psd_table_t *t = NULL;
    psd_call_t *call = psd_call_new();
    psd_select_t *all = psd_select_new();
    psd_select_t *few = psd_select_new();
    int32_t *values = malloc(MANY * sizeof *values);
    psd_ticket_t tickets[N_SMALL + 2] = {0};

    CHECK(values != NULL && open_table(daemon, &client, &t, err));
    psd_select_all_rows(all);
    /* A lane is made, or fails, with the first call. */
    CHECK_OK(psd_pull_start(t, all, values, MANY, call, &tickets[0], err), err);
    CHECK_OK(psd_wait(client, tickets[0], 60000, err), err);
    for (int i = 0; i < MANY; i++) {
        values[i] = 1;
    }
    CHECK_OK(psd_join(client, "fails", 0, 1, -1, err), err);
    psd_select_rows(few, &row, 1);
    psd_call_set_borrow(call, true);
    CHECK(daemon_freeze(daemon));
    CHECK_OK(psd_push_start(t, all, values, MANY, call, &tickets[0], err), err);
    for (int i = 1; i <= N_SMALL; i++) {
        CHECK_OK(psd_push_start(t, few, &one, 1, NULL, &tickets[i], err), err);
    }
    psd_call_set_borrow(call, false);
    CHECK_OK(psd_pull_start(t, all, values, MANY, call, &tickets[N_SMALL + 1], err), err);
    CHECK_ERROR(psd_fail(client, "it has to", 100, err), PSD_DEADLINE,
                "job_leave: no answer from tcp://", err);
    memset(values, 0x55, MANY * sizeof *values);
    for (int i = 0; i < N_SMALL + 2; i++) {
        CHECK_ERROR(psd_wait(client, tickets[i], 60000, err), PSD_FAILED, "the worker has failed",
                    err);
    }

    CHECK(kill(daemon->pid, SIGCONT) == 0);
    CHECK_OK(psd_fail(client, "it has to", 60000, err), err);
    CHECK_OK(psd_flush(client, 60000, err), err);
    for (int i = 0; i < MANY; i++) {
        CHECK(values[i] == 0x55555555);
    }
    psd_call_set_timeout_ms(call, 60000);
    CHECK_OK(psd_pull_start(t, all, values, MANY, call, &tickets[0], err), err);
    CHECK_OK(psd_wait_all(client, 60000, err), err);
    for (int i = 0; i < MANY; i++) {
        CHECK(values[i] >= 2 && values[i] <= 3 + (i == (int)row ? N_SMALL : 0));
    }
    psd_select_destroy(&few);
    psd_select_destroy(&all);
    psd_call_destroy(&call);
    psd_table_close(&t);
    psd_close(&client);
    free(values);
    return true;
}

/* The same for the everyday call: 400 KB are in use when the deadline passes.
 */
static bool everyday_push_comes_back(daemon_t *daemon, psd_error_t *err)
{
    enum { N = 50000 };
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    psd_table_t *t = NULL;
    uint64_t *rows = malloc(N * sizeof *rows);
    int32_t *values = malloc(N * sizeof *values);
    int32_t *before = malloc(N * sizeof *before);

    CHECK(rows != NULL && values != NULL && before != NULL);
    psd_options_set_timeout_ms(options, EVERYDAY_MS);
    CHECK_OK(psd_connect(daemon->control, options, &client, err), err);
    CHECK_OK(psd_table_open(client, "t", &t, err), err);
    for (uint64_t i = 0; i < N; i++) {
        rows[i] = i;
        values[i] = 5;
    }
    /* A lane is made, or fails, with the first call. */
    CHECK_OK(psd_pull(t, rows, N, before, N, err), err);
    CHECK(daemon_freeze(daemon));
    CHECK_ERROR(psd_push(t, rows, N, values, N, err), PSD_DEADLINE, "10000 ms passed", err);
    memset(rows, 0xff, N * sizeof *rows);
    memset(values, 0xff, N * sizeof *values);
    free(values);
    CHECK(kill(daemon->pid, SIGCONT) == 0);
    CHECK_OK(psd_flush(client, 60000, err), err);
    values = malloc(N * sizeof *values);
    CHECK(values != NULL);
    for (uint64_t i = 0; i < N; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_pull(t, rows, N, values, N, err), err);
    for (int i = 0; i < N; i++) {
        CHECK(values[i] == before[i] + 5);
    }
    psd_table_close(&t);
    psd_close(&client);
    psd_options_destroy(&options);
    free(before);
    free(rows);
    free(values);
    return true;
}

static bool node_comes_back_empty(daemon_t *daemon, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *t = NULL;
    const uint64_t row = 1;
    int32_t value = 1;

    CHECK(open_table(daemon, &client, &t, err));
    CHECK_OK(psd_push(t, &row, 1, &value, 1, err), err);
    CHECK(daemon_end(daemon, SIGKILL));
    CHECK(daemon_restart(daemon));
    psd_table_close(&t);
    psd_close(&client); /* at once, though its node is gone */

    CHECK(open_table(daemon, &client, &t, err));
    CHECK_OK(psd_pull(t, &row, 1, &value, 1, err), err);
    CHECK(value == 0);
    psd_table_close(&t);
    psd_close(&client);
    return true;
}

/* A client that lives on while its node is started again on the same sockets:
 * the rows were lost, and it gets an error instead of continuing with empty ones. */
static bool old_client_is_told(daemon_t *daemon, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    psd_table_t *t = NULL;
    const uint64_t row = 1;
    int32_t value = 1;

    CHECK_OK(psd_options_set_transport(options, "ipc", err), err);
    CHECK_OK(psd_connect(daemon->ipc, options, &client, err), err);
    CHECK_OK(psd_table_open(client, "t", &t, err), err);
    CHECK_OK(psd_push(t, &row, 1, &value, 1, err), err);
    CHECK(daemon_end(daemon, SIGKILL));
    CHECK(daemon_restart(daemon));
    CHECK_ERROR(psd_push(t, &row, 1, &value, 1, err), PSD_ROWS_LOST, "push", err);
    CHECK_ERROR(psd_push(t, &row, 1, &value, 1, err), PSD_ROWS_LOST,
                "client is broken: rows were lost", err);
    CHECK_ERROR(psd_flush(client, 1000, err), PSD_ROWS_LOST, "rows were lost", err);
    psd_table_close(&t);
    psd_close(&client);
    psd_options_destroy(&options);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    psd_error_t *err = psd_error_new();
    bool ok = a_refusal_ends_at_once(err) && nobody_is_there(err) && a_long_wait_is_told(err) &&
              environment_has_a_timeout(err);

    ok = ok && daemon_start(&daemon, NULL);
    ok = ok && node_is_frozen(&daemon, err);
    ok = ok && a_long_call_is_told(&daemon, err);
    ok = ok && worker_fails_with_calls(&daemon, err);
    ok = ok && everyday_push_comes_back(&daemon, err);
    ok = ok && node_comes_back_empty(&daemon, err);
    ok = ok && old_client_is_told(&daemon, err);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
