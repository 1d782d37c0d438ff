/* SPDX-License-Identifier: Apache-2.0 */
/* How psd_train is used. */
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/program/program.h"
#include "learner.h"

#define LOOK_MS 200 /* interval of polling the others' words */
#define VALUE_SIZE 64

typedef struct run {
    const wv_task_t *task;
    uint32_t worker;
    uint32_t n_workers;
    psd_train_t *train;
    wv_tables_t tables;
    wv_others_t others;
    wv_learner_t *learners; /* one a trainer */
    uint32_t n_learners;
    uint64_t n_learnt; /* words, by this worker in an earlier run */
    /* of trainer 0: */
    uint32_t epoch;
    uint64_t n_all; /* words that all workers have read */
} run_t;

/* ---- call-backs ---- */

static psd_status_t ask(psd_loader_t *loader, uint32_t table, const wv_rows_t *rows,
                        psd_error_t *err)
{
    return rows->n == 0 ? PSD_OK : psd_loader_rows(loader, table, rows->rows, rows->n, err);
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    run_t *run = user;
    wv_block_t *words = block;
    const wv_rows_t *rows[WV_VECTORS] = {&words->in, &words->out, &words->nodes};
    psd_status_t rc = wv_block_prepare(words, err);

    if (rc == PSD_OK) {
        rc = psd_loader_table(loader, run->tables.count, err);
    }
    for (int i = 0; rc == PSD_OK && i < WV_VECTORS; i++) {
        rc = ask(loader, run->tables.vectors[i], rows[i], err);
        if (rc == PSD_OK && run->task->options->adagrad) {
            rc = ask(loader, run->tables.sums[i], rows[i], err);
        }
    }
    return rc == PSD_OK && words->n_several > 0
               ? psd_loader_rows(loader, run->tables.senses, words->several, words->n_several, err)
               : rc;
}

/* No trainer works meanwhile. */
static void tell(void *user, uint64_t done, uint64_t total, double rate, double left_s)
{
    const run_t *run = user;

    if (run->epoch == 0) { /* no block had come to this worker */
        if (run->n_learnt > 0) {
            (void)printf("worker %" PRIu32 "  nothing is left to train: %" PRIu64
                         " words are done\n",
                         run->worker, run->n_learnt);
            (void)fflush(stdout);
        }
        return;
    }
    (void)printf("worker %" PRIu32 "  epoch %" PRIu32 " of %" PRIu32
                 "  %5.1f %%  alpha %.5f  %.0f words/s  %.0f s left\n",
                 run->worker, run->epoch, run->task->options->epochs,
                 total == 0 ? 0 : fmin(100, 100 * (double)done / (double)total),
                 wv_learner_alpha(run->task, run->n_all), rate, left_s);
    (void)fflush(stdout);
}

static psd_status_t step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    run_t *run = user;
    const wv_block_t *words = block;
    uint32_t id = psd_trainer_id(trainer);
    uint64_t n_before = 0;
    uint64_t own = 0;

    for (uint32_t i = 0; i < run->n_workers; i++) {
        uint64_t n = (uint64_t)psd_trainer_get_i64(trainer, run->tables.count, i, 0);

        n_before += n;
        own = i == run->worker ? n : own;
    }
    if (id == 0) {
        psd_trainer_add_i64(trainer, run->tables.count, run->worker, 0, (int64_t)words->n_read);
        psd_trainer_done(trainer, words->n_read);
        run->epoch = words->epoch;
        run->n_all = n_before;
    }
    return wv_learner_step(&run->learners[id], trainer, words, n_before, own < words->n_before,
                           err);
}

/* ---- before the training ---- */

static psd_status_t set_number(psd_train_t *train, const char *key, int64_t value, psd_error_t *err)
{
    char text[VALUE_SIZE];

    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return psd_train_set(train, key, text, err);
}

static psd_status_t set_all(run_t *run, psd_error_t *err)
{
    const wv_options_t *options = run->task->options;
    psd_status_t rc = set_number(run->train, "trainers", options->trainers, err);

    if (rc == PSD_OK) {
        rc = set_number(run->train, "timeout-ms", options->job.timeout_ms, err);
    }
    if (rc == PSD_OK && options->job.max_delay != PSD_DELAY_ENV) {
        rc = set_number(run->train, "max-delay", options->job.max_delay, err);
    }
    if (rc == PSD_OK && options->no_pipeline) {
        rc = psd_train_set(run->train, "pipeline", "off", err);
    }
    if (rc == PSD_OK) {
        rc = set_number(run->train, "progress-ms", (int64_t)(options->report_s * 1e3), err);
    }
    psd_train_on_progress(run->train, tell);
    psd_train_on_load(run->train, load);
    psd_train_on(run->train, PSD_TRAIN_STEP, step);
    return rc;
}

static psd_status_t make_learners(run_t *run, psd_error_t *err)
{
    uint32_t n = run->task->options->trainers;
    psd_status_t rc = PSD_OK;

    run->learners = calloc(n, sizeof *run->learners);
    if (run->learners == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for trainers");
    }
    rc = wv_others_init(&run->others, run->task, run->n_workers, err);
    while (rc == PSD_OK && run->n_learners < n) {
        rc = wv_learner_init(&run->learners[run->n_learners], run->task, &run->tables, &run->others,
                             err);
        run->n_learners += rc == PSD_OK ? 1 : 0;
    }
    return rc;
}

/* Drops what an earlier run has left before any worker makes a table. */
static psd_status_t begin(run_t *run, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (run->task->options->resume) {
        return PSD_OK;
    }
    if (run->worker == 0) {
        rc = wv_tables_drop(run->train, run->task, err);
    }
    return rc == PSD_OK
               ? psd_barrier(psd_train_client(run->train), run->task->options->job.timeout_ms, err)
               : rc;
}

static psd_status_t configure(run_t *run, psd_error_t *err)
{
    psd_status_t rc = psd_train_config_begin(run->train, err);

    if (rc == PSD_OK) {
        rc = begin(run, err);
    }
    if (rc == PSD_OK) {
        rc = wv_tables_make(&run->tables, run->train, run->task, run->n_workers, err);
    }
    return rc == PSD_OK ? psd_train_config_end(run->train, err) : rc;
}

/* ---- during the training, and after ---- */

static psd_status_t count_of(run_t *run, uint64_t worker, uint64_t *ret, psd_error_t *err)
{
    int64_t count = 0;
    psd_status_t rc =
        psd_pull(psd_train_table_handle(run->train, run->tables.count), &worker, 1, &count, 1, err);

    *ret = (uint64_t)count;
    return rc;
}

static void tell_resumed(const run_t *run)
{
    if (!run->task->options->resume) {
        return;
    }
    if (run->n_learnt > 0) {
        (void)printf("worker %" PRIu32 " continues after %" PRIu64 " words\n", run->worker,
                     run->n_learnt);
    } else {
        (void)printf("worker %" PRIu32 " has no state to continue from: it begins\n", run->worker);
    }
    (void)fflush(stdout);
}

/* Skips to the first block that is not counted: the skipped ones draw the
 * same numbers as before. */
static psd_status_t skip_learnt(const run_t *run, wv_feed_t *feed, wv_block_t **ret,
                                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    do {
        wv_block_free(*ret);
        rc = wv_feed_next(feed, ret, err);
    } while (*ret != NULL && (*ret)->n_before < run->n_learnt);
    if (*ret != NULL && (*ret)->n_before != run->n_learnt) {
        wv_block_free(*ret);
        *ret = NULL;
        return psd_error_set(err, PSD_INVALID,
                             "--resume: %" PRIu64
                             " words are done, and no block begins there; allowed: the text, "
                             "--min-count, --sample, --seed and --block as they were",
                             run->n_learnt);
    }
    return rc;
}

static psd_status_t feed_all(run_t *run, psd_error_t *err)
{
    uint32_t timeout_ms = run->task->options->job.timeout_ms;
    wv_block_t *block = NULL;
    wv_feed_t feed;
    psd_status_t rc = PSD_OK;

    wv_feed_init(&feed, run->task, run->worker, run->n_workers);
    rc = skip_learnt(run, &feed, &block, err);
    while (rc == PSD_OK && block != NULL) {
        rc = psd_train_clock_begin(run->train, err);
        if (rc == PSD_OK) {
            rc = psd_train_push_block(run->train, block, wv_block_free, timeout_ms, err);
        }
        if (rc != PSD_OK) {
            wv_block_free(block);
            break;
        }
        rc = psd_train_clock_end(run->train, err);
        if (rc == PSD_OK) {
            rc = wv_feed_next(&feed, &block, err);
        }
    }
    wv_feed_done(&feed);
    return rc;
}

static psd_status_t count_all(run_t *run, uint64_t *ret, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *ret = 0;
    for (uint64_t i = 0; rc == PSD_OK && i < run->n_workers; i++) {
        uint64_t count = 0;

        rc = count_of(run, i, &count, err);
        *ret += count;
    }
    return rc;
}

/* Waits until all words of all workers are counted, as long as the number
 * grows. */
static psd_status_t await_all(run_t *run, psd_error_t *err)
{
    const wv_options_t *options = run->task->options;
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    uint64_t all = options->epochs * run->task->vocabulary.n_tokens;
    uint64_t seen = 0;
    double seen_s = ex_now_s();

    for (;;) {
        uint64_t count = 0;
        psd_status_t rc = count_all(run, &count, err);

        if (rc != PSD_OK || count >= all) {
            return rc;
        }
        if (count > seen) {
            seen = count;
            seen_s = ex_now_s();
        } else if (ex_now_s() - seen_s > options->job.timeout_ms / 1e3) {
            return psd_error_set(err, PSD_DEADLINE,
                                 "%" PRIu64 " of %" PRIu64
                                 " words are done, and no progress for %.0f s: a worker was lost",
                                 count, all, options->job.timeout_ms / 1e3);
        }
        (void)nanosleep(&pause, NULL);
    }
}

static psd_status_t pull_all(run_t *run, float **ret_vectors, float **ret_met, psd_error_t *err)
{
    const wv_task_t *task = run->task;
    psd_status_t rc =
        wv_tables_pull(run->train, run->tables.vectors[WV_IN], wv_tables_rows(task, WV_IN),
                       task->options->size, ret_vectors, err);

    return rc == PSD_OK && task->senses.n > 1
               ? wv_tables_pull(run->train, run->tables.senses, task->senses.last + 1,
                                task->senses.n, ret_met, err)
               : rc;
}

static psd_status_t work(run_t *run, float **ret_vectors, float **ret_met, psd_error_t *err)
{
    psd_status_t rc = set_all(run, err);

    if (rc == PSD_OK) {
        rc = configure(run, err);
    }
    if (rc == PSD_OK) {
        rc = count_of(run, run->worker, &run->n_learnt, err);
    }
    if (rc == PSD_OK) {
        uint64_t own = run->task->options->epochs * run->task->vocabulary.n_tokens / run->n_workers;

        tell_resumed(run);
        psd_train_set_total(run->train, own > run->n_learnt ? own - run->n_learnt : 0);
        rc = make_learners(run, err);
    }
    if (rc == PSD_OK) {
        rc = psd_train_begin(run->train, err);
    }
    if (rc == PSD_OK) {
        rc = feed_all(run, err);
    }
    if (rc == PSD_OK) {
        rc = psd_train_end(run->train, run->task->options->job.timeout_ms, err);
    }
    if (rc == PSD_OK) {
        (void)printf("worker %" PRIu32 " has read %" PRIu64 " words: %.0f words/s\n", run->worker,
                     psd_train_count(run->train, "done"), psd_train_rate(run->train));
    }
    if (rc == PSD_OK && run->worker == 0) {
        rc = await_all(run, err);
        if (rc == PSD_OK) {
            rc = pull_all(run, ret_vectors, ret_met, err);
        }
    }
    return rc;
}

psd_status_t wv_train(const wv_task_t *task, uint32_t worker, uint32_t n_workers,
                      float **ret_vectors, float **ret_met, psd_error_t *err)
{
    run_t run = {.task = task, .worker = worker, .n_workers = n_workers};
    psd_status_t rc = PSD_OK;

    *ret_vectors = NULL;
    *ret_met = NULL;
    run.train = psd_train_new(&run);
    rc = run.train == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for a training")
                           : work(&run, ret_vectors, ret_met, err);
    psd_train_destroy(&run.train);
    if (rc != PSD_OK) {
        free(*ret_vectors);
        *ret_vectors = NULL;
    }
    for (uint32_t i = 0; i < run.n_learners; i++) {
        wv_learner_done(&run.learners[i]);
    }
    free(run.learners);
    wv_others_done(&run.others);
    return rc;
}
