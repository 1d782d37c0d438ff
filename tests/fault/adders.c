/* SPDX-License-Identifier: Apache-2.0 */
/* The workers as they are seen from outside. */
#include "adders.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"

#define HANG_MS 120000 /* who says nothing for so long hangs */
#define STEP_MS 100
#define LINES 64
#define NUMBER_SIZE 24

typedef bool (*ready_t)(const adder_t *adder, uint64_t n);

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* In the child: this program again, as a worker. */
static void become(const adders_t *self, unsigned rank, int reports, int stop, int waits)
{
    const adders_args_t *args = &self->args;
    char numbers[8][NUMBER_SIZE];
    const char *argv[14] = {"adder", "adder", args->endpoint, args->job};
    const int64_t values[8] = {
        args->n_workers, args->max_delay, (int64_t)args->seed, (int64_t)args->n_rows,
        args->replicas,  args->ack,       args->timeout_ms,    rank};

    for (int i = 0; i < 8; i++) {
        (void)snprintf(numbers[i], NUMBER_SIZE, "%" PRId64, values[i]);
        argv[4 + i] = numbers[i];
    }
    argv[12] = "";
    /* Above all, so that none overwrites another. */
    reports = fcntl(reports, F_DUPFD_CLOEXEC, 10);
    stop = fcntl(stop, F_DUPFD_CLOEXEC, 10);
    waits = fcntl(waits, F_DUPFD_CLOEXEC, 10);
    (void)dup2(reports, 3);
    (void)dup2(stop, 4);
    (void)dup2(waits, 5);
    (void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* ---- reports ---- */

static bool take_line(adders_t *self, const ledger_line_t *line)
{
    adder_t *adder = &self->each[line->worker % ADDERS_MAX];

    switch ((ledger_event_t)line->event) {
    case LEDGER_STARTED:
        adder->last_seq = line->seq;
        break;
    case LEDGER_ACKED:
        adder->n_acked += line->seq > adder->since_seq ? 1 : 0;
        break;
    case LEDGER_FLUSHED:
        adder->n_acked += line->seq > adder->since_seq ? 1 : 0;
        break;
    case LEDGER_UNKNOWN:
        adder->n_deadlines++;
        break;
    case LEDGER_JOINED:
        adder->has_joined = true;
        break;
    case LEDGER_LEFT:
        adder->has_left = true;
        if ((uint64_t)line->delta > self->longest_ms) {
            self->longest_ms = (uint64_t)line->delta;
        }
        break;
    case LEDGER_REFUSED:
    default:
        break;
    }
    return ledger_take(self->ledger, line);
}

/* Takes what has been written; waits STEP_MS at most for the first of it. */
static bool drain(adders_t *self)
{
    ledger_line_t lines[LINES];
    struct pollfd ready = {.fd = self->reports, .events = POLLIN};
    int timeout_ms = STEP_MS;

    while (poll(&ready, 1, timeout_ms) > 0 && (ready.revents & POLLIN) != 0) {
        /* A pipe whose writes are all of one size gives whole lines. */
        ssize_t n = read(self->reports, lines, sizeof lines);

        for (ssize_t i = 0; i < n / (ssize_t)sizeof lines[0]; i++) {
            if (!take_line(self, &lines[i])) {
                return false;
            }
        }
        timeout_ms = 0;
    }
    return true;
}

/* Whether one has ended in the meantime. */
static void look_for_ends(adders_t *self)
{
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        adder_t *adder = &self->each[i];
        int status = 0;

        if (adder->pid > 0 && waitpid(adder->pid, &status, WNOHANG) == adder->pid) {
            adder->pid = 0;
            adder->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
    }
}

/* Waits until all are ready; with `runs` one that has ended is a failure. */
static bool wait_all(adders_t *self, ready_t is_ready, uint64_t n, bool runs, const char *what)
{
    uint64_t end_ms = now_ms() + HANG_MS;

    for (;;) {
        unsigned n_ready = 0;
        bool all_run = true;

        look_for_ends(self);
        if (!drain(self)) {
            return false;
        }
        for (unsigned i = 0; i < self->args.n_workers; i++) {
            n_ready += is_ready(&self->each[i], n) ? 1 : 0;
            all_run = all_run && self->each[i].pid > 0;
        }
        if (n_ready == self->args.n_workers) {
            return true;
        }
        if ((runs && !all_run) || now_ms() >= end_ms) {
            break;
        }
    }
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        const adder_t *adder = &self->each[i];

        (void)fprintf(stderr,
                      "%s: worker %u: %s, last push %" PRIu64 ", %" PRIu64
                      " acknowledged and %" PRIu64 " deadlines since, exit %d\n",
                      is_ready(adder, n) ? "done" : what, i, adder->pid > 0 ? "runs" : "has ended",
                      adder->last_seq, adder->n_acked, adder->n_deadlines, adder->exit_code);
    }
    return false;
}

static bool has_joined(const adder_t *adder, uint64_t n)
{
    (void)n;
    return adder->has_joined;
}

static bool has_acked(const adder_t *adder, uint64_t n)
{
    return adder->n_acked >= n;
}

static bool has_deadlines(const adder_t *adder, uint64_t n)
{
    return adder->n_deadlines >= n;
}

static bool has_either(const adder_t *adder, uint64_t n)
{
    return has_acked(adder, n) || has_deadlines(adder, n);
}

static bool has_ended(const adder_t *adder, uint64_t n)
{
    (void)n;
    return adder->pid == 0;
}

/* ---- */

bool adders_start(adders_t *self, const adders_args_t *args)
{
    int reports[2] = {-1, -1};
    int stop[2] = {-1, -1};
    int waits = -1;

    *self = (adders_t){.args = *args, .reports = -1, .stop = -1};
    self->ledger = ledger_new(args->n_rows);
    self->waits = waits_new(&waits);
    CHECK(args->n_workers <= ADDERS_MAX && self->ledger != NULL && self->waits != NULL);
    CHECK(pipe2(reports, O_CLOEXEC) == 0 && pipe2(stop, O_CLOEXEC) == 0);
    self->reports = reports[0];
    self->stop = stop[1];
    (void)fflush(NULL);
    for (unsigned i = 0; i < args->n_workers; i++) {
        self->each[i].pid = fork();
        if (self->each[i].pid == 0) {
            become(self, i, reports[1], stop[0], waits);
        }
        CHECK(self->each[i].pid > 0);
    }
    (void)close(reports[1]);
    (void)close(stop[0]);
    (void)close(waits);
    return wait_all(self, has_joined, 0, true, "has not joined");
}

void adders_mark(adders_t *self)
{
    (void)drain(self);
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        self->each[i].since_seq = self->each[i].last_seq;
        self->each[i].n_acked = 0;
        self->each[i].n_deadlines = 0;
    }
}

bool adders_wait_acks(adders_t *self, uint64_t n)
{
    return wait_all(self, has_acked, n, true, "hangs");
}

bool adders_wait_deadlines(adders_t *self, uint64_t n)
{
    return wait_all(self, has_deadlines, n, true, "saw no deadline");
}

bool adders_wait_either(adders_t *self, uint64_t n)
{
    return wait_all(self, has_either, n, true, "neither goes on nor is told");
}

bool adders_wait_end(adders_t *self, adder_end_t end)
{
    bool good = wait_all(self, has_ended, 0, false, "does not end");

    good = good && drain(self);
    for (unsigned i = 0; i < self->args.n_workers && good; i++) {
        if (self->each[i].exit_code != (int)end) {
            (void)fprintf(stderr, "worker %u ended with %d, not %d\n", i, self->each[i].exit_code,
                          (int)end);
            good = false;
        }
    }
    return good;
}

bool adders_finish(adders_t *self, adder_end_t end)
{
    (void)close(self->stop);
    self->stop = -1;
    return adders_wait_end(self, end);
}

static bool read_rows(const adders_t *self, const char *name, int64_t *values, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    uint64_t *rows = calloc(self->args.n_rows, sizeof *rows);

    CHECK(rows != NULL && options != NULL);
    for (uint64_t i = 0; i < self->args.n_rows; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_options_set_transport(options, "tcp", err), err);
    CHECK_OK(psd_connect(self->args.endpoint, options, &client, err), err);
    CHECK_OK(psd_table_open(client, name, &table, err), err);
    CHECK_OK(psd_pull(table, rows, self->args.n_rows, values, self->args.n_rows, err), err);
    psd_table_close(&table);
    psd_close(&client);
    psd_options_destroy(&options);
    free(rows);
    return true;
}

bool adders_check(adders_t *self, ledger_level_t least)
{
    int64_t *values = calloc(self->args.n_rows, sizeof *values);
    psd_error_t *err = psd_error_new();
    ledger_sums_t sums = {0};
    bool good = values != NULL && read_rows(self, self->args.job, values, err) &&
                ledger_check(self->ledger, values, self->args.n_rows, least, stderr);

    ledger_sum(self->ledger, &sums);
    (void)fprintf(stderr,
                  "%" PRIu64 " adds, %" PRIu64 " acknowledged, %" PRIu64 " not known, %" PRIu64
                  " deadlines, longest call %" PRIu64 " ms: %s\n",
                  sums.n_started, sums.n_acked, sums.n_unknown, sums.n_deadlines, self->longest_ms,
                  good ? "every sum as it must be" : "WRONG");
    psd_error_destroy(&err);
    free(values);
    return good;
}

bool adders_check_copy(adders_t *self, const char *table, ledger_level_t least, uint64_t then)
{
    int64_t *values = calloc(self->args.n_rows, sizeof *values);
    psd_error_t *err = psd_error_new();
    bool good = values != NULL && read_rows(self, table, values, err) && drain(self) &&
                ledger_check_at(self->ledger, values, self->args.n_rows, least, then, stderr);

    if (!good) {
        (void)fprintf(stderr, "table %s: WRONG %s\n", table, psd_error_text(err));
    }
    psd_error_destroy(&err);
    free(values);
    return good;
}

void adders_drop(adders_t *self)
{
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        if (self->each[i].pid > 0) {
            (void)kill(self->each[i].pid, SIGKILL);
            (void)waitpid(self->each[i].pid, NULL, 0);
            self->each[i].pid = 0;
        }
    }
    if (self->stop >= 0) {
        (void)close(self->stop);
    }
    if (self->reports >= 0) {
        (void)close(self->reports);
    }
    waits_destroy(&self->waits);
    ledger_destroy(&self->ledger);
}
