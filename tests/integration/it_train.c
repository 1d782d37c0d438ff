/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings on a real psd: workers count what is in their blocks. Counts are
 * exact, what was asked for is there and was sent once, call-backs come in
 * their order, blocks are freed once. */
#include <psd_train.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define WORKERS 2
#define TRAINERS 3
#define CLOCKS 5
#define BLOCKS 3 /* of a clock */
#define SIZE 100 /* numbers in a block */
#define ROWS 50
#define CALL_MS 60000
#define TOTAL (CLOCKS * (BLOCKS * SIZE + TRAINERS)) /* that are done */

static const char *endpoint;
static atomic_int n_freed;

/* One worker's training. */
typedef struct job {
    const char *name;
    const char *max_delay[WORKERS];
    const char *pipeline;
    int rank;
    pthread_t thread;
    bool good;
    atomic_int n_bad;            /* values that were read and could not be */
    atomic_int orders[TRAINERS]; /* the last event that each trainer saw */
    int32_t agreed;
    int n_told; /* of progress */
    uint64_t told;
} job_t;

typedef struct block {
    uint64_t clock; /* from 1 */
    uint64_t numbers[SIZE];
} block_t;

static void free_block(void *block)
{
    atomic_fetch_add(&n_freed, 1);
    free(block);
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block_p, psd_error_t *err)
{
    const block_t *block = block_p;
    psd_status_t rc = PSD_OK;

    (void)user;
    for (int i = 0; rc == PSD_OK && i < 10; i++) { /* it comes once anyway */
        rc = psd_loader_rows(loader, 0, block->numbers, SIZE, err);
    }
    return rc;
}

/* Events come in this order, as their numbers say. */
static void see(job_t *job, psd_trainer_t *trainer, psd_train_event_t event)
{
    atomic_int *last = &job->orders[psd_trainer_id(trainer)];
    int before = atomic_exchange(last, (int)event);
    bool fits = false;

    switch (event) {
    case PSD_TRAIN_CLOCK_BEGIN:
        fits = before == PSD_TRAIN_CLOCK_END;
        break;
    case PSD_TRAIN_ITERATION_BEGIN:
        fits = before == PSD_TRAIN_CLOCK_BEGIN || before == PSD_TRAIN_ITERATION_END;
        break;
    case PSD_TRAIN_STEP:
        fits = before == PSD_TRAIN_ITERATION_BEGIN;
        break;
    case PSD_TRAIN_ITERATION_END:
        fits = before == PSD_TRAIN_STEP;
        break;
    case PSD_TRAIN_CLOCK_END:
        fits = before == PSD_TRAIN_ITERATION_END;
        break;
    }
    if (!fits) {
        (void)fprintf(stderr, "event %d came behind %d\n", (int)event, before);
        atomic_fetch_add(&job->n_bad, 1);
    }
}

static psd_status_t clock_begin(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    (void)block;
    (void)err;
    see(user, trainer, PSD_TRAIN_CLOCK_BEGIN);
    return PSD_OK;
}

static psd_status_t iteration_begin(void *user, psd_trainer_t *trainer, void *block,
                                    psd_error_t *err)
{
    (void)block;
    (void)err;
    see(user, trainer, PSD_TRAIN_ITERATION_BEGIN);
    return PSD_OK;
}

/* It comes when nobody counts, and never goes back. */
static void tell(void *user, uint64_t done, uint64_t total, double rate, double left_s)
{
    job_t *job = user;

    if (done < job->told || total != TOTAL || rate < 0 || (done == total && left_s != 0)) {
        atomic_fetch_add(&job->n_bad, 1);
    }
    job->n_told++;
    job->told = done;
}

/* Each trainer counts its part. */
static psd_status_t count(void *user, psd_trainer_t *trainer, void *block_p, psd_error_t *err)
{
    const block_t *block = block_p;
    job_t *job = user;
    size_t first = 0;
    size_t end = 0;

    (void)err;
    see(job, trainer, PSD_TRAIN_STEP);
    psd_trainer_share(trainer, SIZE, &first, &end);
    for (size_t i = first; i < end; i++) {
        int64_t value = psd_trainer_get_i64(trainer, 0, block->numbers[i], 0);

        /* The first values are 1000. */
        if (value < 1000) {
            atomic_fetch_add(&job->n_bad, 1);
        }
        psd_trainer_add_i64(trainer, 0, block->numbers[i], 0, 1);
    }
    psd_trainer_done(trainer, end - first);
    return PSD_OK;
}

static psd_status_t iteration_end(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    (void)block;
    (void)err;
    see(user, trainer, PSD_TRAIN_ITERATION_END);
    return PSD_OK;
}

/* Deltas of a clock's end count too. */
static psd_status_t clock_end(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    (void)block;
    (void)err;
    see(user, trainer, PSD_TRAIN_CLOCK_END);
    psd_trainer_add_i64(trainer, 0, 0, 1, 1);
    psd_trainer_done(trainer, 1);
    return PSD_OK;
}

static bool configure(job_t *job, psd_train_t *train, psd_error_t *err)
{
    char rank[8];
    psd_spec_t *spec = psd_spec_new();
    uint64_t rows[ROWS];
    int64_t values[ROWS * 2];
    uint32_t table = 7;

    (void)snprintf(rank, sizeof rank, "%d", job->rank);
    CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(train, "job", job->name, err), err);
    CHECK_OK(psd_train_set(train, "worker", rank, err), err);
    CHECK_OK(psd_train_set(train, "workers", "2", err), err);
    CHECK_OK(psd_train_set(train, "max-delay", job->max_delay[job->rank], err), err);
    CHECK_OK(psd_train_set(train, "trainers", "3", err), err);
    CHECK_OK(psd_train_set(train, "pipeline", job->pipeline, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "50", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "2", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_train_set(train, "progress-ms", "0", err), err);
    psd_train_on_progress(train, tell);
    psd_train_set_total(train, TOTAL);
    CHECK(psd_train_rate(train) == 0 && psd_train_left_s(train) < 0);
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_CLOCK_BEGIN, clock_begin);
    psd_train_on(train, PSD_TRAIN_ITERATION_BEGIN, iteration_begin);
    psd_train_on(train, PSD_TRAIN_STEP, count);
    psd_train_on(train, PSD_TRAIN_ITERATION_END, iteration_end);
    psd_train_on(train, PSD_TRAIN_CLOCK_END, clock_end);
    CHECK_OK(psd_train_config_begin(train, err), err);
    job->agreed = psd_train_max_delay(train);
    CHECK(psd_train_worker(train) == (uint32_t)job->rank);
    CHECK(psd_train_workers(train) == 2);
    CHECK_OK(psd_train_table(train, job->name, spec, &table, err), err);
    CHECK(table == 0);
    for (size_t i = 0; i < ROWS; i++) { /* each adds one half of it */
        rows[i] = i;
        values[2 * i] = 500;
        values[2 * i + 1] = 0;
    }
    CHECK_OK(psd_train_add_to_server(train, 0, rows, ROWS, values, ROWS * 2, err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static bool feed(psd_train_t *train, psd_error_t *err)
{
    for (uint64_t clock = 1; clock <= CLOCKS; clock++) {
        CHECK_OK(psd_train_clock_begin(train, err), err);
        for (int i = 0; i < BLOCKS; i++) {
            block_t *block = malloc(sizeof *block);

            block->clock = clock;
            for (size_t k = 0; k < SIZE; k++) {
                block->numbers[k] = k % (ROWS / 2) + (uint64_t)i;
            }
            CHECK_OK(psd_train_push_block(train, block, free_block, CALL_MS, err), err);
        }
        CHECK_OK(psd_train_clock_end(train, err), err);
    }
    CHECK_OK(psd_train_wait(train, CALL_MS, err), err);
    CHECK_OK(psd_train_wait(train, 0, err), err);
    CHECK(psd_train_client(train) == NULL);
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    return true;
}

static bool run(job_t *job, psd_train_t *train, psd_error_t *err)
{
    CHECK(configure(job, train, err));
    CHECK_OK(psd_train_begin(train, err), err);
    CHECK(feed(train, err));
    CHECK(job->n_bad == 0);
    CHECK(psd_train_count(train, "blocks") == CLOCKS * BLOCKS);
    CHECK(psd_train_count(train, "clocks") == CLOCKS);
    CHECK(psd_train_count(train, "adds") == CLOCKS * (BLOCKS * SIZE + TRAINERS));
    CHECK(job->told == TOTAL); /* a last time behind all */
    CHECK(job->n_told == CLOCKS * BLOCKS + 1);
    CHECK(psd_train_count(train, "done") == job->told);
    CHECK(psd_train_count(train, "total") == job->told);
    CHECK(psd_train_left_s(train) == 0);
    CHECK(psd_train_count(train, "rows-asked") == CLOCKS * BLOCKS * SIZE * 10);
    CHECK(psd_train_count(train, "rows-pulled") == CLOCKS * BLOCKS * (ROWS / 2));
    CHECK(psd_train_count(train, "entries-pushed") == CLOCKS * (BLOCKS * (ROWS / 2) + 1));
    return true;
}

static void *run_worker(void *arg)
{
    job_t *job = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(job);

    for (int i = 0; i < TRAINERS; i++) {
        job->orders[i] = PSD_TRAIN_CLOCK_END;
    }
    job->good = run(job, train, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

/* What the table has when all have ended. */
static bool read_sums(const char *name, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    uint64_t rows[ROWS];
    int64_t values[ROWS * 2];

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, name, &table, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS * 2, err), err);
    for (uint64_t row = 0; row < ROWS; row++) {
        int64_t wanted = 1000;

        for (uint64_t i = 0; i < BLOCKS; i++) {
            if (row >= i && row - i < ROWS / 2) {
                wanted += (int64_t)WORKERS * CLOCKS * (SIZE / (ROWS / 2));
            }
        }
        CHECK(values[2 * row] == wanted);
        CHECK(values[2 * row + 1] == (row == 0 ? WORKERS * CLOCKS * TRAINERS : 0));
    }
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

static bool count_together(const char *name, const char *first_delay, const char *second_delay,
                           const char *pipeline, int32_t agreed)
{
    job_t jobs[WORKERS];
    psd_error_t *err = psd_error_new();
    bool good = true;

    atomic_store(&n_freed, 0);
    for (int i = 0; i < WORKERS; i++) {
        jobs[i] = (job_t){.name = name,
                          .max_delay = {first_delay, second_delay},
                          .pipeline = pipeline,
                          .rank = i};
        CHECK(pthread_create(&jobs[i].thread, NULL, run_worker, &jobs[i]) == 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        (void)pthread_join(jobs[i].thread, NULL);
        good = good && jobs[i].good;
    }
    CHECK(good);
    CHECK(jobs[0].agreed == agreed && jobs[1].agreed == agreed);
    CHECK(n_freed == WORKERS * CLOCKS * BLOCKS);
    CHECK(read_sums(name, err));
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && count_together("bsp", "0", "0", "on", 0);
    ok = ok && count_together("bsp-off", "0", "0", "off", 0);
    ok = ok && count_together("ssp", "0", "2", "on", 2);
    ok = ok && count_together("asp", "-5", "-1", "off", -1);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
