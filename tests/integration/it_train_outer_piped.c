/* SPDX-License-Identifier: Apache-2.0 */
/* Outer steps of a training with the pipeline, as it is by default: no block
 * mixes what two outer steps have made, also with fragments and an overlap. All
 * numbers are exact. */
#include <psd_train.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "outer_hand.h"
#include "support/check.h"
#include "support/daemon.h"

#define CLOCKS 32
#define BLOCKS 2 /* of a clock */
#define EVERY 4
#define STEPS (CLOCKS / EVERY)
#define N (CLOCKS * BLOCKS)

typedef struct trial {
    const char *name;
    outer_rule_t rule;
    uint64_t rows_pulled, n_pushed; /* by each worker */
} trial_t;

/* With two fragments: 3 rows of them after each step that is followed by
 * another; and in the end what the last step has left. */
static const trial_t trials[] = {
    {"piped", {"4", "1", "0", 0.5, 0.5}, STEPS *OUTER_ROWS, STEPS *OUTER_CELLS},
    {"piped-parts", {"4", "2", "0", 0.5, 0.5}, 6 + (STEPS - 1) * 3, (STEPS + 1) * 6},
    {"piped-late", {"4", "1", "2", 0.5, 0.5}, STEPS *OUTER_ROWS, STEPS *OUTER_CELLS},
    {"piped-late-parts", {"4", "2", "2", 0.5, 0.5}, 6 + (STEPS - 1) * 3, (STEPS + 1) * 6},
};

typedef struct job {
    const trial_t *trial;
    int rank;
    pthread_t thread;
    bool good;
    outer_hand_t hand;
    double most[N][OUTER_CELLS]; /* what a block reads when it sees all blocks before it */
    atomic_int n_bad;
} job_t;

static uint64_t numbers[N];

/* What each block of a worker adds to each cell. */
static double each_of(int rank)
{
    return rank == 0 ? 1 : 3;
}

static void find_most(job_t *job)
{
    outer_hand_init(&job->hand, &job->trial->rule, 2);
    for (int n = 0; n < N; n++) {
        memcpy(job->most[n], job->hand.x[job->rank], sizeof job->most[n]);
        for (int i = 0; i < OUTER_CELLS; i++) {
            outer_hand_add(&job->hand, 0, i, each_of(0));
            outer_hand_add(&job->hand, 1, i, each_of(1));
        }
        if (n % BLOCKS == BLOCKS - 1) {
            outer_hand_end_clock(&job->hand);
        }
    }
    outer_hand_finish(&job->hand);
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    return psd_loader_rows(loader, 0, outer_rows, OUTER_ROWS, err);
}

/* A block sees all blocks before it, but perhaps not the last one; the first
 * of an outer step sees them all. */
static psd_status_t step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    job_t *job = user;
    uint64_t number = *(uint64_t *)block;
    bool is_first = number % (EVERY * BLOCKS) == 0;
    double each = each_of(job->rank);
    size_t first = 0;
    size_t end = 0;

    (void)err;
    psd_trainer_share(trainer, OUTER_CELLS, &first, &end);
    for (size_t i = first; i < end; i++) {
        double x = psd_trainer_get_f64(trainer, 0, i / OUTER_COLS, i % OUTER_COLS);
        double most = job->most[number][i];

        job->n_bad += x != most && (x != most - each || is_first);
        psd_trainer_add_f64(trainer, 0, i / OUTER_COLS, i % OUTER_COLS, each);
    }
    return PSD_OK;
}

static bool configure(psd_train_t *train, const job_t *job, psd_error_t *err)
{
    const trial_t *trial = job->trial;
    const char *const pairs[][2] = {{"job", trial->name},
                                    {"worker", job->rank == 0 ? "0" : "1"},
                                    {"workers", "2"},
                                    {"lock", "lock-free"},
                                    {"trainers", "3"}};

    CHECK(outer_set(train, pairs, sizeof pairs / sizeof *pairs, err));
    CHECK(outer_set_rule(train, &trial->rule, err));
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_STEP, step);
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK(outer_make_table(train, trial->name, &trial->rule, err));
    CHECK_OK(psd_train_config_end(train, err), err);
    return true;
}

static bool run(job_t *job, psd_train_t *train, psd_error_t *err)
{
    find_most(job);
    CHECK(configure(train, job, err));
    CHECK_OK(psd_train_begin(train, err), err);
    for (uint64_t i = 0; i < N; i++) {
        if (i % BLOCKS == 0) {
            CHECK_OK(psd_train_clock_begin(train, err), err);
        }
        CHECK_OK(psd_train_push_block(train, &numbers[i], NULL, OUTER_CALL_MS, err), err);
        if (i % BLOCKS == BLOCKS - 1) {
            CHECK_OK(psd_train_clock_end(train, err), err);
        }
    }
    CHECK_OK(psd_train_end(train, OUTER_CALL_MS, err), err);
    CHECK(job->n_bad == 0);
    CHECK(psd_train_count(train, "rows-pulled") == job->trial->rows_pulled);
    CHECK(psd_train_count(train, "entries-pushed") == job->trial->n_pushed);
    return true;
}

static void *run_worker(void *arg)
{
    job_t *job = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(job);

    job->good = run(job, train, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

static bool is_exact(const trial_t *trial)
{
    static job_t jobs[2];

    for (int i = 0; i < 2; i++) {
        jobs[i] = (job_t){.trial = trial, .rank = i};
        CHECK(pthread_create(&jobs[i].thread, NULL, run_worker, &jobs[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(jobs[i].thread, NULL);
    }
    return jobs[0].good && jobs[1].good && outer_hand_check_table(&jobs[0].hand, trial->name);
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, NULL);

    outer_endpoint = daemon.control;
    for (uint64_t i = 0; i < N; i++) {
        numbers[i] = i;
    }
    for (size_t i = 0; ok && i < sizeof trials / sizeof *trials; i++) {
        ok = is_exact(&trials[i]);
        (void)fprintf(stderr, "%s %s\n", ok ? "ok" : "FAIL", trials[i].name);
    }
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
