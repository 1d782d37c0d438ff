/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before they join a job the workers agree on its max_delay: the greatest that
 * any of them wants; and they compare their options of outer steps. For that
 * they meet in another job, "JOB.agree2.N" for N workers, and each writes what it
 * wants into its row of a table of that name. (Earlier builds meet in
 * "JOB.agree.N", whose table has one column.) A worker that comes when the job
 * is running takes the job's max_delay. A meeting that failed blocks nobody:
 * when all have abandoned it, the next workers start another one, and workers
 * with another N meet elsewhere.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/job/job.h"
#include "client/requests/wait.h"
#include "train/setup/setup.h"
#include "wire/messages/doc.h"

#define LONGEST ".agree2.4096"
#define WISHES 4      /* columns: max_delay, and the three of outer steps */
#define LEAVE_MS 2000 /* for the answer that a failed worker has left */
#define BACK_MS 10000 /* for the ack of a row that is taken back */

typedef struct meeting {
    const psd_train_t *train;
    ps_wish_t wish;
    char name[PS_NAME_MAX + 1];
    psd_client_t *client; /* owned */
    psd_table_t *table;   /* owned */
} meeting_t;

static void meeting_done(meeting_t *self)
{
    psd_table_close(&self->table);
    psd_close(&self->client);
}

/* The max_delay of the job if it is running; *ret_runs: it is. */
static psd_status_t look_at_job(const meeting_t *self, bool *ret_runs, int32_t *ret_max_delay,
                                psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("job_state");
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *job = NULL;
    const char *state = "";
    int64_t max_delay = 0;
    psd_status_t rc = PSD_OK;

    *ret_runs = false;
    if (question == NULL || !ps_doc_set_text(question, "job", self->wish.job)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_question_ask(self->client, question, self->train->options.timeout_ms, 0, &reply, err);
    if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_object(reply, "job", &job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(job, "state", PS_NAME_MAX, &state, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_i64(job, "max_delay", -INT32_MAX, INT32_MAX, &max_delay, err);
    }
    if (rc == PSD_OK && strcmp(state, "running") == 0) {
        *ret_runs = true;
        *ret_max_delay = (int32_t)max_delay;
    }
    return rc;
}

static psd_status_t open_table(meeting_t *self, psd_error_t *err)
{
    char rows[16];
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = PSD_OK;

    if (spec == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    (void)snprintf(rows, sizeof rows, "%" PRIu32, self->wish.n_workers);
    rc = psd_spec_set(spec, "rows", rows, err);
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "cols", "4", err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "type", "i32", err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "updater", "assign", err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "init", "constant:0", err); /* the least */
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(self->client, self->name, spec, &self->table, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

/* Negative is without a bound: greater than all others. */
static int32_t greater(int32_t a, int32_t b)
{
    if (a < 0 || b < 0) {
        return -1;
    }
    return a > b ? a : b;
}

/* All workers take outer steps alike. A row of zeros is that of a worker which
 * was lost before it wrote. */
static psd_status_t check_outer(const int32_t *own, const int32_t *other, uint32_t worker,
                                psd_error_t *err)
{
    static const char *const names[WISHES] = {"max-delay", "outer-every", "outer-fragments",
                                              "outer-overlap"};

    for (size_t i = 1; other[2] > 0 && i < WISHES; i++) {
        if (own[i] != other[i]) {
            return psd_error_set(err, PSD_INVALID,
                                 "%s is %" PRId32 ", and %" PRId32 " in worker %" PRIu32
                                 "; allowed: the same in all workers",
                                 names[i], own[i], other[i], worker);
        }
    }
    return PSD_OK;
}

/* No later meeting takes the row for what this worker wants then. For when nobody
 * is reading: all workers of a meeting see the same. */
static void take_back(const meeting_t *self)
{
    const int32_t none[WISHES] = {0};
    const uint64_t own = self->wish.worker;
    psd_select_t *select = psd_select_new();
    psd_call_t *call = psd_call_new();
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_NOMEM;

    if (select != NULL && call != NULL && own < self->wish.n_workers) {
        psd_select_rows(select, &own, 1);
        psd_call_set_timeout_ms(call, BACK_MS);
        rc = psd_push_start(self->table, select, none, WISHES, call, &ticket, NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_wait(self->client, ticket, BACK_MS, NULL);
    }
    (void)rc; /* the row stays, as that of a worker that is killed here */
    psd_call_destroy(&call);
    psd_select_destroy(&select);
}

/* Writes down what this worker wants, and reads what all do when all have. */
static psd_status_t compare(meeting_t *self, int32_t *ret_max_delay, psd_error_t *err)
{
    const ps_train_options_t *options = &self->train->options;
    uint32_t n = self->wish.n_workers;
    PSD_AUTO(ps_free_at) uint64_t *rows = ps_alloc_raw(n, sizeof *rows);
    PSD_AUTO(ps_free_at) int32_t *wanted = ps_alloc_raw(n, WISHES * sizeof *wanted);
    uint64_t own = self->wish.worker;
    const int32_t wishes[WISHES] = {self->wish.max_delay, (int32_t)options->outer_every,
                                    (int32_t)options->outer_fragments,
                                    (int32_t)options->outer_overlap};
    int32_t most = wishes[0];
    psd_status_t rc = PSD_OK;

    if (rows == NULL || wanted == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for workers");
    }
    for (uint32_t i = 0; i < n; i++) {
        rows[i] = i;
    }
    if (own < n) { /* others only listen */
        rc = psd_push(self->table, &own, 1, wishes, WISHES, err);
    }
    if (rc == PSD_OK) { /* names who is missing */
        rc = psd_barrier(self->client, self->train->options.timeout_ms, err);
        if (rc == PSD_DEADLINE) {
            take_back(self);
        }
    }
    if (rc == PSD_OK) { /* all have pushed, and had their acks */
        rc = psd_pull(self->table, rows, n, wanted, (size_t)n * WISHES, err);
    }
    if (rc == PSD_OK) { /* all have read it: it may be dropped */
        rc = psd_barrier(self->client, self->train->options.timeout_ms, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        const int32_t *other = wanted + (size_t)i * WISHES;

        most = greater(most, other[0]);
        rc = check_outer(wishes, other, i, err);
        if (rc != PSD_OK) {
            take_back(self);
        }
    }
    if (rc == PSD_OK) {
        *ret_max_delay = most;
    }
    return rc;
}

/* No worker waits for this one in a meeting that it has abandoned, or finds
 * itself alone in one that all have abandoned. */
static void leave_failed(const meeting_t *self, const psd_error_t *why)
{
    psd_status_t rc = ps_membership_give_up(self->client, psd_error_text(why), LEAVE_MS, NULL);

    (void)rc; /* its silence ends it */
}

static psd_status_t meet(meeting_t *self, int32_t *ret_max_delay, psd_error_t *err)
{
    ps_wish_t wish = self->wish;
    psd_status_t rc = PSD_OK;

    if (snprintf(self->name, sizeof self->name, "%s.agree2.%" PRIu32, self->wish.job,
                 self->wish.n_workers) >= (int)sizeof self->name) {
        return psd_error_set(err, PSD_INVALID,
                             "job is \"%s\"; allowed with several workers: "
                             "%zu letters, digits and _ . -",
                             self->wish.job, sizeof self->name - sizeof LONGEST);
    }
    /* Without clocks: a worker of a meeting that failed keeps its clock from
     * there, and the others could never catch up. And without the overlay, which needs them. */
    wish.job = self->name;
    wish.max_delay = -1;
    rc = ps_join_bare(self->client, &wish, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "join job \"%s\" as worker %" PRIu32, wish.job, wish.worker);
    }
    self->wish.worker = psd_worker(self->client);
    rc = open_table(self, err);
    if (rc == PSD_OK) {
        rc = compare(self, ret_max_delay, err);
    }
    if (rc == PSD_OK) {
        rc = psd_leave(self->client, self->train->options.timeout_ms, err);
    }
    if (rc != PSD_OK) {
        leave_failed(self, err);
    } else if (self->wish.worker == 0) {
        psd_status_t gone = psd_table_drop(self->client, self->name, NULL);

        (void)gone; /* all have read it; that it stays does no harm */
    }
    return rc;
}

psd_status_t ps_train_agree(psd_train_t *train, uint32_t *ret_n_workers, int32_t *ret_max_delay,
                            psd_error_t *err)
{
    PSD_AUTO(meeting_done) meeting_t self = {.train = train};
    const ps_train_options_t *options = &train->options;
    psd_options_t *client_options = NULL;
    bool runs = false;
    psd_status_t rc = ps_wish_resolve(options->job, options->worker, options->n_workers,
                                      options->max_delay, &self.wish, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (self.wish.n_workers == 1) {
        *ret_n_workers = 1;
        *ret_max_delay = self.wish.max_delay;
        return PSD_OK;
    }
    client_options = psd_options_new();
    if (client_options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    psd_options_set_timeout_ms(client_options, options->timeout_ms);
    rc = psd_connect(options->endpoint, client_options, &self.client, err);
    psd_options_destroy(&client_options);
    if (rc == PSD_OK) {
        rc = look_at_job(&self, &runs, ret_max_delay, err);
    }
    if (rc == PSD_OK && !runs) {
        rc = meet(&self, ret_max_delay, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "agree with the other workers");
    }
    *ret_n_workers = self.wish.n_workers;
    if (!runs) {
        train->options.worker = self.wish.worker; /* of the job too */
    }
    return PSD_OK;
}
