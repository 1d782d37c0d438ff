/* SPDX-License-Identifier: Apache-2.0 */
/* Workers of a job that run while the cluster changes. */
#include "integration/thread_job.h"

#include <psd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"

#define VALUES ((size_t)THREAD_JOB_ROWS * THREAD_JOB_COLS)
#define CALL_MS 60000 /* no move takes so long */
#define STEP_MS 5

typedef struct tables {
    psd_client_t *client;
    psd_table_t *sums;
    psd_table_t *floats;
    psd_error_t *err;
    uint64_t rows[THREAD_JOB_ROWS];
    int64_t ones[VALUES];
    int64_t counted[VALUES];
    float deltas[VALUES];
    float pulled[VALUES];
} tables_t;

static bool open_client(const thread_job_t *job, tables_t *self)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    self->err = psd_error_new();
    for (size_t i = 0; i < THREAD_JOB_ROWS; i++) {
        self->rows[i] = i;
    }
    psd_options_set_timeout_ms(options, CALL_MS);
    rc = psd_connect(job->args.endpoint, options, &self->client, self->err);
    psd_options_destroy(&options);
    CHECK_OK(rc, self->err);
    return true;
}

static void done(tables_t *self)
{
    psd_table_close(&self->sums);
    psd_table_close(&self->floats);
    psd_close(&self->client);
    psd_error_destroy(&self->err);
}

static bool make_table(const thread_job_t *job, tables_t *tables, const char *name,
                       const char *type, psd_table_t **ret_table)
{
    psd_error_t *err = tables->err;
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "480", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "8", err), err);
    CHECK_OK(psd_spec_set(spec, "type", type, err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "6", err), err);
    CHECK_OK(psd_spec_set(spec, "replicas", job->args.replicas, err), err);
    CHECK_OK(psd_spec_set(spec, "ack", job->args.ack, err), err);
    CHECK_OK(psd_table_create(tables->client, name, spec, ret_table, err), err);
    psd_spec_destroy(&spec);
    return true;
}

/* ---- a worker ---- */

static bool run_clock(tables_t *self, uint32_t rank)
{
    psd_error_t *err = self->err;

    CHECK_OK(psd_pull(self->floats, self->rows, THREAD_JOB_ROWS, self->pulled, VALUES, err), err);
    CHECK_OK(psd_pull(self->sums, self->rows, THREAD_JOB_ROWS, self->counted, VALUES, err), err);
    for (size_t i = 0; i < VALUES; i++) {
        self->ones[i] = (int64_t)rank + 1;
        self->deltas[i] =
            0.3F * ((float)rank + 1.1F) - self->pulled[i] * 0.37F + (float)(i % 7) * 0.013F;
    }
    CHECK_OK(psd_push(self->sums, self->rows, THREAD_JOB_ROWS, self->ones, VALUES, err), err);
    CHECK_OK(psd_push(self->floats, self->rows, THREAD_JOB_ROWS, self->deltas, VALUES, err), err);
    CHECK_OK(psd_clock(self->client, err), err);
    return true;
}

static bool run_worker(thread_worker_t *self, tables_t *tables)
{
    const thread_job_t *job = self->job;
    psd_error_t *err = tables->err;

    CHECK(open_client(job, tables));
    CHECK_OK(psd_join(tables->client, job->args.name, self->rank, job->args.n_workers,
                      job->args.max_delay, err),
             err);
    CHECK_OK(psd_table_open(tables->client, "sums", &tables->sums, err), err);
    CHECK_OK(psd_table_open(tables->client, "floats", &tables->floats, err), err);
    while (self->n_clocks < job->last) {
        CHECK(run_clock(tables, self->rank));
        self->n_clocks++;
    }
    CHECK_OK(psd_leave(tables->client, CALL_MS, err), err);
    return true;
}

static void *work(void *arg)
{
    thread_worker_t *self = arg;
    tables_t *tables = calloc(1, sizeof *tables);

    if (tables == NULL || !run_worker(self, tables)) {
        self->failed = true;
        (void)fprintf(stderr, "worker %u failed in clock %llu\n", self->rank,
                      (unsigned long long)self->n_clocks + 1);
    }
    if (tables != NULL) {
        done(tables);
    }
    free(tables);
    return NULL;
}

/* ---- all of them ---- */

bool thread_job_start(thread_job_t *self, const thread_job_args_t *args)
{
    tables_t *tables = calloc(1, sizeof *tables);
    bool good = tables != NULL;

    self->args = *args;
    self->n_running = 0;
    atomic_store(&self->last, args->n_clocks == 0 ? UINT64_MAX : args->n_clocks);
    good = good && open_client(self, tables) &&
           make_table(self, tables, "sums", "i64", &tables->sums) &&
           make_table(self, tables, "floats", "f32", &tables->floats);
    if (tables != NULL) {
        done(tables);
    }
    free(tables);
    for (uint32_t i = 0; good && i < args->n_workers; i++) {
        thread_worker_t *worker = &self->workers[i];

        worker->job = self;
        worker->rank = i;
        atomic_store(&worker->n_clocks, 0);
        atomic_store(&worker->failed, false);
        good = pthread_create(&worker->thread, NULL, work, worker) == 0;
        self->n_running += good ? 1 : 0;
    }
    return good;
}

bool thread_job_goes_on(const thread_job_t *self)
{
    for (uint32_t i = 0; i < self->n_running; i++) {
        CHECK(!self->workers[i].failed);
    }
    return true;
}

bool thread_job_wait_clocks(const thread_job_t *self, uint64_t n)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    uint64_t wanted[THREAD_JOB_MAX];

    for (uint32_t i = 0; i < self->n_running; i++) {
        wanted[i] = self->workers[i].n_clocks + n;
    }
    for (uint32_t i = 0; i < self->n_running; i++) {
        while (self->workers[i].n_clocks < wanted[i]) {
            CHECK(thread_job_goes_on(self));
            (void)nanosleep(&step, NULL);
        }
    }
    return true;
}

static void join_all(thread_job_t *self)
{
    for (uint32_t i = 0; i < self->n_running; i++) {
        (void)pthread_join(self->workers[i].thread, NULL);
    }
}

static bool read_tables(thread_job_t *self, tables_t *tables)
{
    psd_error_t *err = tables->err;
    int64_t wanted = 0;

    CHECK_OK(psd_table_open(tables->client, "sums", &tables->sums, err), err);
    CHECK_OK(psd_table_open(tables->client, "floats", &tables->floats, err), err);
    CHECK_OK(psd_pull(tables->sums, tables->rows, THREAD_JOB_ROWS, tables->counted, VALUES, err),
             err);
    CHECK_OK(psd_pull(tables->floats, tables->rows, THREAD_JOB_ROWS, tables->pulled, VALUES, err),
             err);
    for (uint32_t i = 0; i < self->n_running; i++) {
        wanted += ((int64_t)i + 1) * (int64_t)self->workers[i].n_clocks;
    }
    for (size_t i = 0; i < VALUES; i++) {
        if (tables->counted[i] != wanted) {
            (void)fprintf(stderr, "value %zu of sums is %lld, not %lld\n", i,
                          (long long)tables->counted[i], (long long)wanted);
            return false;
        }
    }
    memcpy(self->floats, tables->pulled, sizeof self->floats);
    return true;
}

/* Far enough ahead that no worker has passed it. */
static void end_together(thread_job_t *self)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < self->n_running; i++) {
        uint64_t n = self->workers[i].n_clocks;

        most = n > most ? n : most;
    }
    if (self->last == UINT64_MAX) {
        self->last = most + 5;
    }
}

bool thread_job_finish(thread_job_t *self)
{
    tables_t *tables = calloc(1, sizeof *tables);
    bool good = tables != NULL;

    end_together(self);
    join_all(self);
    good =
        good && thread_job_goes_on(self) && open_client(self, tables) && read_tables(self, tables);
    if (tables != NULL) {
        done(tables);
    }
    free(tables);
    self->n_running = 0;
    return good;
}

static bool drop_tables(tables_t *tables)
{
    CHECK_OK(psd_table_drop(tables->client, "sums", tables->err), tables->err);
    CHECK_OK(psd_table_drop(tables->client, "floats", tables->err), tables->err);
    return true;
}

bool thread_job_forget(thread_job_t *self)
{
    tables_t *tables = calloc(1, sizeof *tables);
    bool good = tables != NULL && open_client(self, tables) && drop_tables(tables);

    if (tables != NULL) {
        done(tables);
    }
    free(tables);
    return good;
}

void thread_job_drop(thread_job_t *self)
{
    self->last = 0;
    join_all(self);
    self->n_running = 0;
}
