/* SPDX-License-Identifier: Apache-2.0 */
/* The others wait for a worker at clock 50 of 200, and the job says for whom. It is
 * killed, is declared lost, and they finish. Then: a job is stopped, and
 * workers that end without a word. */
#include <psd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define WORKERS 4
#define CLOCKS 200
#define DIES_AT 50
#define VICTIM 2

static const char config[] = "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 10000\n";

typedef struct run {
    const char *endpoint;
    const char *job;
    int32_t max_delay;
    int arrived; /* a pipe: the victim is at its last clock */
} run_t;

static bool work(const run_t *run, uint32_t worker, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    const uint64_t row = worker;
    const int64_t one = 1;
    int64_t value = 0;

    CHECK_OK(psd_connect(run->endpoint, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_join(client, run->job, worker, WORKERS, run->max_delay, err), err);
    CHECK_OK(psd_table_ensure(client, run->job, spec, &table, err), err);
    for (int clock = 0; clock < CLOCKS; clock++) {
        if (worker == VICTIM && clock == DIES_AT) {
            CHECK(write(run->arrived, "", 1) == 1);
            for (;;) {
                (void)pause(); /* until it is killed */
            }
        }
        CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
        CHECK_OK(psd_push(table, &row, 1, &one, 1, err), err);
        CHECK_OK(psd_clock(client, err), err);
    }
    CHECK(psd_lost_workers(client) == 0);
    CHECK_OK(psd_leave(client, 60000, err), err);
    CHECK(psd_lost_workers(client) == 1);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static pid_t start(const run_t *run, uint32_t worker)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        bool ok = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && work(run, worker, err);

        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return pid;
}

/* Asks until the answer holds `part`; it has 20 s for that. */
static bool ask_until(psd_client_t *client, const char *question, const char *part,
                      psd_error_t *err)
{
    const struct timespec step = {.tv_nsec = 5000000};
    char *reply = NULL;

    for (int i = 0; i < 4000; i++) {
        psd_free(reply);
        reply = NULL;
        if (psd_request(client, question, 5000, &reply, err) == PSD_OK &&
            strstr(reply, part) != NULL) {
            psd_free(reply);
            return true;
        }
        psd_error_clear(err);
        (void)nanosleep(&step, NULL);
    }
    (void)fprintf(stderr, "%s never said %s but %s\n", question, part,
                  reply == NULL ? "nothing" : reply);
    psd_free(reply);
    return false;
}

static bool ended_with(pid_t pid, int exit_code, int signal_number)
{
    int status = 0;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(signal_number == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == signal_number));
    CHECK(signal_number != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == exit_code));
    return true;
}

static bool one_is_killed(const run_t *given)
{
    run_t copy = *given;
    const run_t *run = &copy;
    int arrived[2] = {-1, -1};
    char byte = 0;
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    pid_t pids[WORKERS];
    char why[128];
    char inspect[128];
    const uint64_t rows[WORKERS] = {0, 1, 2, 3};
    int64_t values[WORKERS];

    CHECK(pipe(arrived) == 0);
    copy.arrived = arrived[1];
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = start(run, i);
    }
    CHECK(close(arrived[1]) == 0);
    (void)snprintf(why, sizeof why, "{\"op\":\"why\",\"job\":\"%s\"}", run->job);
    (void)snprintf(inspect, sizeof inspect, "{\"op\":\"clock_inspect\",\"job\":\"%s\"}", run->job);
    CHECK_OK(psd_connect(run->endpoint, NULL, &client, err), err);
    CHECK(read(arrived[0], &byte, 1) == 1 && close(arrived[0]) == 0);
    CHECK(ask_until(client, why, "for worker 2", err));
    CHECK(kill(pids[VICTIM], SIGKILL) == 0 && ended_with(pids[VICTIM], 0, SIGKILL));
    CHECK(ask_until(client, inspect, "\"lost\"", err));
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(i == VICTIM || ended_with(pids[i], 0, 0));
    }
    (void)snprintf(inspect, sizeof inspect, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", run->job);
    CHECK(ask_until(client, inspect, "\"lost\"", err));

    CHECK_OK(psd_table_open(client, run->job, &table, err), err);
    CHECK_OK(psd_pull(table, rows, WORKERS, values, WORKERS, err), err);
    for (uint32_t i = 0; i < WORKERS; i++) {
        CHECK(values[i] == (i == VICTIM ? DIES_AT : CLOCKS));
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

/* In a process of its own: the test must not have threads when it forks. */
static bool apart(bool (*function)(const run_t *run), const run_t *run)
{
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        _exit(function(run) ? 0 : 1);
    }
    return ended_with(pid, 0, 0);
}

/* A worker whose job an operator stops hears of it at its next call, once the
 * news has come. */
static bool job_is_stopped(const run_t *run)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_client_t *boss = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    const uint64_t row = 0;
    float value = 1.0F;
    char *reply = NULL;
    psd_status_t rc = PSD_OK;

    CHECK_OK(psd_connect(run->endpoint, NULL, &client, err), err);
    CHECK_OK(psd_connect(run->endpoint, NULL, &boss, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_table_ensure(client, run->job, spec, &table, err), err);
    CHECK_ERROR(psd_clock(client, err), PSD_NOT_JOINED, "not a worker", err);
    CHECK_OK(psd_join(client, run->job, 0, 1, 0, err), err);
    CHECK_ERROR(psd_join(boss, run->job, 0, 1, 0, err), PSD_WORKER_EXISTS, "0", err);
    CHECK_ERROR(psd_join(boss, run->job, 1, 1, 3, err), PSD_JOB_MISMATCH, "", err);
    CHECK_OK(psd_push(table, &row, 1, &value, 1, err), err);
    CHECK_OK(psd_clock(client, err), err);
    CHECK_OK(psd_request(boss, "{\"op\":\"job_stop\",\"job\":\"stops\"}", 60000, &reply, err), err);
    psd_free(reply);
    while (rc == PSD_OK) {
        rc = psd_push(table, &row, 1, &value, 1, err);
    }
    CHECK_ERROR(rc, PSD_JOB_STOPPED, "", err);
    CHECK(ask_until(boss, "{\"op\":\"job_inspect\",\"job\":\"stops\"}", "\"stopped\"", err));
    CHECK_ERROR(psd_join(boss, run->job, 1, 1, 0, err), PSD_JOB_STOPPED, "", err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    psd_close(&boss);
    psd_error_destroy(&err);
    return true;
}

/* Pushes or pulls row 0 for the first client while the others get their turns,
 * as threads of their own would take them. */
static bool in_turns(psd_table_t *table, psd_client_t *const *clients, bool pushes, float *value,
                     psd_error_t *err)
{
    const uint64_t row = 0;
    psd_select_t *select = psd_select_new();
    psd_ticket_t ticket = 0;
    bool done = false;

    psd_select_rows(select, &row, 1);
    CHECK_OK(pushes ? psd_push_start(table, select, value, 1, NULL, &ticket, err)
                    : psd_pull_start(table, select, value, 1, NULL, &ticket, err),
             err);
    psd_select_destroy(&select);
    while (!done) {
        for (int i = 1; i < 3; i++) {
            CHECK_OK(psd_flush(clients[i], 60000, err), err);
        }
        CHECK_OK(psd_poll(clients[0], ticket, &done, err), err);
    }
    CHECK_OK(psd_wait(clients[0], ticket, 0, err), err);
    return true;
}

/* A pull is held until its deadline, and its caller told that it is for worker
 * 1, unless the answer comes too late for that. */
static bool is_held(psd_table_t *table, psd_client_t *client, psd_error_t *err)
{
    psd_select_t *select = psd_select_new();
    psd_call_t *call = psd_call_new();
    const uint64_t row = 0;
    float value = 0.0F;
    bool is_told = false;

    psd_call_set_timeout_ms(call, 1000);
    psd_select_rows(select, &row, 1);
    while (!is_told) {
        psd_ticket_t ticket = 0;

        CHECK_OK(psd_pull_start(table, select, &value, 1, call, &ticket, err), err);
        CHECK(psd_wait(client, ticket, 60000, err) == PSD_DEADLINE);
        is_told = strstr(psd_error_text(err), "worker 1") != NULL;
        psd_error_clear(err);
    }
    psd_call_destroy(&call);
    psd_select_destroy(&select);
    return true;
}

/* Two members of one worker, a second worker that comes late: nobody passes
 * the barrier alone, and the late one is named. Tables that one of them opens
 * are marked by all. */
static bool members_keep_in_step(const run_t *run)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *clients[3] = {NULL}; /* two members, the second worker */
    psd_table_t *table = NULL;
    psd_table_t *late = NULL;
    psd_spec_t *spec = psd_spec_new();
    const uint64_t row = 0;
    float value = 1.0F;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(psd_connect(run->endpoint, NULL, &clients[i], err), err);
    }
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_join(clients[0], run->job, 0, 2, 0, err), err);
    CHECK_OK(psd_attach(clients[1], clients[0], err), err);
    CHECK(psd_worker(clients[1]) == 0 && psd_clock_count(clients[1]) == 0);
    for (uint32_t ms = 300; ms < 60000 && strstr(psd_error_text(err), "worker 1") == NULL;
         ms *= 4) {
        CHECK(psd_barrier(clients[0], ms, err) == PSD_DEADLINE);
    }
    CHECK(strstr(psd_error_text(err), "worker 1") != NULL);
    psd_error_clear(err);
    CHECK_OK(psd_table_ensure(clients[0], run->job, spec, &table, err), err);
    CHECK_OK(psd_push(table, &row, 1, &value, 1, err), err);
    CHECK_OK(psd_clock(clients[0], err), err);
    CHECK_OK(psd_clock(clients[1], err), err);
    CHECK(is_held(table, clients[0], err));

    CHECK_OK(psd_join(clients[2], run->job, 1, 2, 0, err), err);
    CHECK_OK(psd_clock(clients[2], err), err);
    CHECK(in_turns(table, clients, false, &value, err));
    CHECK(value == 1.0F);

    CHECK_OK(psd_table_ensure(clients[0], "late", spec, &late, err), err);
    value = 5.0F;
    CHECK(in_turns(late, clients, true, &value, err));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(psd_clock(clients[i], err), err);
    }
    CHECK(in_turns(late, clients, false, &value, err));
    CHECK(value == 5.0F);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(psd_leave(clients[i], 60000, err), err);
        CHECK_ERROR(psd_leave(clients[i], 60000, err), PSD_NOT_JOINED, "not a worker", err);
    }
    psd_table_close(&table);
    psd_table_close(&late);
    for (int i = 0; i < 3; i++) {
        psd_close(&clients[i]);
    }
    psd_spec_destroy(&spec);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, config);
    run_t run = {.endpoint = daemon.control};

    run.job = "bsp";
    ok = ok && apart(one_is_killed, &run);
    run.job = "ssp";
    run.max_delay = 2;
    ok = ok && apart(one_is_killed, &run);
    run.job = "stops";
    ok = ok && apart(job_is_stopped, &run);
    run.job = "barrier";
    ok = ok && apart(members_keep_in_step, &run);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
