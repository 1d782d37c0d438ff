/* SPDX-License-Identifier: Apache-2.0 */
/* One worker of adders.h: the process that pushes. */
#include <inttypes.h>
#include <poll.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "adders.h"
#include "base/rng.h"
#include "support/check.h"
#include "waits.h"

#define PUSHES 4 /* under way at once */
#define ROWS 6   /* of a push */
#define DELTA_MAX (INT64_C(1) << 40)
#define TOLD_EVERY 40  /* deadlines */
#define WAIT_MS 600000 /* longer than any call's own deadline */
#define JOIN_MS 120000 /* nothing has failed, but the machine may be slow */
#define AGAIN 3000

static const struct timespec PAUSE = {.tv_nsec = 20000000}; /* 60 s in all */

typedef struct push {
    uint64_t seq;
    uint64_t rows[ROWS];
    int64_t deltas[ROWS];
    psd_ticket_t ticket;
} push_t;

typedef struct worker {
    adders_args_t args;
    uint32_t rank;
    int reports;
    int stop;
    waits_t *waits; /* what this one waits for */
    psd_client_t *client;
    psd_table_t *table;
    psd_call_t *call; /* how pushes and pulls are done */
    psd_error_t *err;
    ps_rng_t rng;
    uint64_t seq;
    uint64_t n_deadlines; /* since the last clock */
    uint64_t longest_ms;
    uint64_t began_ms; /* the call that runs */
    push_t pushes[PUSHES];
} worker_t;

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void begin_call(worker_t *self)
{
    psd_error_clear(self->err);
    self->began_ms = now_ms();
}

static psd_status_t end_call(worker_t *self, psd_status_t rc)
{
    uint64_t took_ms = now_ms() - self->began_ms;

    if (took_ms > self->longest_ms) {
        self->longest_ms = took_ms;
    }
    return rc;
}

static bool report(const worker_t *self, ledger_event_t event, uint64_t seq, uint64_t row,
                   int64_t delta)
{
    const ledger_line_t line = {
        .event = (uint32_t)event,
        .worker = self->rank,
        .seq = seq,
        .row = row,
        .delta = delta,
        .level = event == LEDGER_ACKED || event == LEDGER_FLUSHED ? (uint32_t)self->args.ack : 0};

    return write(self->reports, &line, sizeof line) == (ssize_t)sizeof line;
}

/* A call failed for good. */
static adder_end_t give_up(const worker_t *self, const char *what, psd_status_t rc)
{
    (void)fprintf(stderr, "worker %" PRIu32 ": %s: %s: %s\n", self->rank, what, psd_status_name(rc),
                  psd_error_text(self->err));
    return rc == PSD_ROWS_LOST ? ADDER_ROWS_LOST : ADDER_FAILED;
}

/* On a slow machine a node may be down just then. */
static psd_status_t ensure_table(worker_t *self, const psd_spec_t *spec)
{
    psd_status_t rc = psd_table_ensure(self->client, self->args.job, spec, &self->table, self->err);

    for (int i = 0; rc == PSD_FEW_NODES && i < AGAIN; i++) {
        (void)nanosleep(&PAUSE, NULL);
        psd_error_clear(self->err);
        rc = psd_table_ensure(self->client, self->args.job, spec, &self->table, self->err);
    }
    return rc;
}

static psd_status_t open_table(worker_t *self)
{
    static const char *const levels[] = {"memory", "memory", "replica", "disk"};
    psd_spec_t *spec = psd_spec_new();
    char rows[24];
    char replicas[24];
    psd_status_t rc = PSD_OK;

    (void)snprintf(rows, sizeof rows, "%" PRIu64, self->args.n_rows);
    (void)snprintf(replicas, sizeof replicas, "%u", self->args.replicas);
    rc = psd_spec_set(spec, "rows", rows, self->err);
    rc = rc != PSD_OK ? rc : psd_spec_set(spec, "type", "i64", self->err);
    if (rc == PSD_OK && self->args.replicas > 1) {
        rc = psd_spec_set(spec, "replicas", replicas, self->err);
    }
    if (rc == PSD_OK && self->args.ack > LEDGER_MEMORY) {
        rc = psd_spec_set(spec, "ack", levels[self->args.ack], self->err);
    }
    rc = rc != PSD_OK ? rc : ensure_table(self, spec);
    psd_spec_destroy(&spec);
    return rc;
}

static psd_status_t join(worker_t *self)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    psd_options_set_timeout_ms(options, JOIN_MS);
    rc = psd_options_set_transport(options, "tcp", self->err);
    if (rc == PSD_OK) {
        rc = psd_connect(self->args.endpoint, options, &self->client, self->err);
    }
    psd_options_destroy(&options);
    if (rc == PSD_OK) {
        rc = psd_join(self->client, self->args.job, self->rank, self->args.n_workers,
                      self->args.max_delay, self->err);
    }
    return rc == PSD_OK ? open_table(self) : rc;
}

/* Other rows in each place, so that none comes twice. */
static bool fill(worker_t *self, push_t *push)
{
    uint64_t stride = self->args.n_rows / ROWS;

    push->seq = ++self->seq;
    for (uint64_t i = 0; i < ROWS; i++) {
        push->rows[i] = i * stride + ps_rng_below(&self->rng, stride);
        push->deltas[i] = 1 + (int64_t)ps_rng_below(&self->rng, (uint64_t)DELTA_MAX);
        if (!report(self, LEDGER_STARTED, push->seq, push->rows[i], push->deltas[i])) {
            return false;
        }
    }
    return true;
}

static psd_status_t start(worker_t *self, push_t *push)
{
    psd_select_t *select = psd_select_new();
    psd_status_t rc = PSD_OK;

    psd_select_rows(select, push->rows, ROWS);
    begin_call(self);
    rc = end_call(self, psd_push_start(self->table, select, push->deltas, ROWS, self->call,
                                       &push->ticket, self->err));
    psd_select_destroy(&select);
    return rc;
}

/* Something is asked for; until its end is known that is one wait. */
static void begin_wait(const worker_t *self)
{
    waits_begin(self->waits, self->rank, now_ms());
}

static void end_wait(const worker_t *self)
{
    waits_end(self->waits, self->rank);
}

/* A deadline passed. Who waits for long says for whom. */
static bool report_deadline(worker_t *self, uint64_t seq, const char *what)
{
    waits_tell(self->waits, self->rank, now_ms(), psd_error_text(self->err));
    if (++self->n_deadlines % TOLD_EVERY == 0) {
        (void)fprintf(stderr, "worker %" PRIu32 ": %s, deadline %" PRIu64 " in a row: %s\n",
                      self->rank, what, self->n_deadlines, psd_error_text(self->err));
    }
    return report(self, LEDGER_UNKNOWN, seq, 0, 0);
}

/* Until every push's end is known: the library goes on, and so do we. */
static psd_status_t settle(worker_t *self)
{
    psd_status_t rc = PSD_DEADLINE;

    while (rc == PSD_DEADLINE) {
        begin_call(self);
        rc = end_call(self, psd_flush(self->client, self->args.timeout_ms, self->err));
        if (rc == PSD_DEADLINE && !report_deadline(self, self->seq, "flush")) {
            return PSD_IO;
        }
    }
    if (rc == PSD_OK && !report(self, LEDGER_FLUSHED, self->seq, 0, 0)) {
        return PSD_IO;
    }
    return rc;
}

/* Asks for all, and waits for their ends. No report is among it, for a pipe
 * that nobody reads just then is no wait of the library's. */
static psd_status_t push_all(worker_t *self, psd_status_t ret_ends[PUSHES])
{
    psd_status_t rc = PSD_OK;

    begin_wait(self);
    for (int i = 0; i < PUSHES && rc == PSD_OK; i++) {
        rc = start(self, &self->pushes[i]);
    }
    for (int i = 0; i < PUSHES && rc == PSD_OK; i++) {
        begin_call(self);
        ret_ends[i] =
            end_call(self, psd_wait(self->client, self->pushes[i].ticket, WAIT_MS, self->err));
        if (ret_ends[i] == PSD_DEADLINE) {
            waits_tell(self->waits, self->rank, now_ms(), psd_error_text(self->err));
        } else {
            rc = ret_ends[i];
        }
    }
    end_wait(self);
    return rc;
}

static psd_status_t push_some(worker_t *self)
{
    psd_status_t ends[PUSHES];
    bool is_known = true;
    psd_status_t rc = PSD_OK;

    for (int i = 0; i < PUSHES; i++) {
        ends[i] = PSD_FAILED;
        if (!fill(self, &self->pushes[i])) {
            return PSD_IO;
        }
    }
    rc = push_all(self, ends);
    for (int i = 0; i < PUSHES; i++) {
        bool is_acked = ends[i] == PSD_OK;

        is_known = is_known && is_acked;
        if ((is_acked || ends[i] == PSD_DEADLINE) &&
            !report(self, is_acked ? LEDGER_ACKED : LEDGER_UNKNOWN, self->pushes[i].seq, 0, 0)) {
            return PSD_IO;
        }
    }
    if (rc != PSD_OK || is_known) {
        return rc;
    }
    begin_wait(self);
    rc = settle(self);
    end_wait(self);
    return rc;
}

static psd_status_t pull_once(worker_t *self)
{
    int64_t values[ROWS];
    psd_select_t *select = psd_select_new();
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    psd_select_rows(select, self->pushes[0].rows, ROWS);
    begin_call(self);
    rc = psd_pull_start(self->table, select, values, ROWS, self->call, &ticket, self->err);
    if (rc == PSD_OK) {
        rc = psd_wait(self->client, ticket, WAIT_MS, self->err);
    }
    psd_select_destroy(&select);
    return end_call(self, rc);
}

static psd_status_t pull_some(worker_t *self)
{
    psd_status_t rc = PSD_DEADLINE;

    begin_wait(self);
    while (rc == PSD_DEADLINE) {
        rc = pull_once(self);
        if (rc == PSD_DEADLINE && !report_deadline(self, self->seq, "pull")) {
            return PSD_IO;
        }
    }
    end_wait(self);
    return rc;
}

static psd_status_t leave(worker_t *self)
{
    psd_status_t rc = PSD_DEADLINE;

    while (rc == PSD_DEADLINE) {
        begin_call(self);
        rc = end_call(self, psd_leave(self->client, self->args.timeout_ms, self->err));
    }
    /* The first word may have arrived, and its answer not. */
    return rc == PSD_NOT_JOINED ? PSD_OK : rc;
}

static bool shall_stop(const worker_t *self)
{
    struct pollfd end = {.fd = self->stop, .events = POLLIN};

    return poll(&end, 1, 0) != 0;
}

static adder_end_t work(worker_t *self)
{
    psd_status_t rc = join(self);

    if (rc != PSD_OK || !report(self, LEDGER_JOINED, 0, 0, 0)) {
        return give_up(self, "join", rc);
    }
    while (!shall_stop(self)) {
        rc = push_some(self);
        if (rc != PSD_OK) {
            return give_up(self, "push", rc);
        }
        rc = pull_some(self);
        self->n_deadlines = 0;
        if (rc != PSD_OK) {
            return give_up(self, "pull", rc);
        }
        begin_call(self);
        rc = end_call(self, psd_clock(self->client, self->err));
        if (rc != PSD_OK) {
            return give_up(self, "clock", rc);
        }
    }
    rc = leave(self);
    if (rc != PSD_OK || !report(self, LEDGER_LEFT, 0, 0, (int64_t)self->longest_ms)) {
        return give_up(self, "leave", rc);
    }
    return ADDER_DONE;
}

bool adder_main(int argc, char **argv, int *ret_exit_code)
{
    worker_t self = {0};

    if (argc != 13 || strcmp(argv[1], "adder") != 0) {
        return false;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    self.args = (adders_args_t){.endpoint = argv[2],
                                .job = argv[3],
                                .n_workers = (unsigned)strtoul(argv[4], NULL, 10),
                                .max_delay = (int)strtol(argv[5], NULL, 10),
                                .seed = strtoull(argv[6], NULL, 10),
                                .n_rows = strtoull(argv[7], NULL, 10),
                                .replicas = (unsigned)strtoul(argv[8], NULL, 10),
                                .ack = (ledger_level_t)strtoul(argv[9], NULL, 10),
                                .timeout_ms = (uint32_t)strtoul(argv[10], NULL, 10)};
    self.rank = (uint32_t)strtoul(argv[11], NULL, 10);
    self.reports = 3;
    self.stop = 4;
    self.waits = waits_open(5);
    if (self.waits == NULL) {
        *ret_exit_code = ADDER_FAILED;
        return true;
    }
    self.rng = (ps_rng_t){self.args.seed * 1000 + self.rank + 1};
    self.err = psd_error_new();
    self.call = psd_call_new();
    psd_call_set_timeout_ms(self.call, self.args.timeout_ms);
    *ret_exit_code = (int)work(&self);
    psd_table_close(&self.table);
    psd_close(&self.client);
    psd_call_destroy(&self.call);
    psd_error_destroy(&self.err);
    waits_destroy(&self.waits);
    return true;
}
