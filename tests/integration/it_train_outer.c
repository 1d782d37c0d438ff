/* SPDX-License-Identifier: Apache-2.0 */
/* Outer steps of a training on a real psd: each worker trains a regression of
 * its own for some clocks, and then sends what it has changed. All that the
 * workers read, and what the table has at the end, is what the same steps by
 * hand give. No more values are sent and fetched than outer steps need. With an
 * overlap a worker goes on while the others have not sent yet. What the ends of
 * clocks add counts like what blocks add. */
#include <psd_train.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "outer_hand.h"
#include "support/check.h"
#include "support/daemon.h"

#define CLOCKS 32
#define BLOCKS 2      /* of a clock: steps of the regression */
#define LATE_CLOCKS 8 /* of trial "late": every + overlap */

typedef enum ask { BY_ROWS = 0, BY_TABLE = 1, BY_ELEMENTS = 2 } ask_t;

typedef struct trial {
    const char *name;
    int workers;
    outer_rule_t rule;
    const char *trainers, *keep_bytes;
    ask_t ask;
    uint64_t rows_pulled; /* by each worker */
    uint64_t n_pushed;    /* values, by each worker; without outer steps 32 * CELLS */
    bool marks;           /* both ends of a clock add */
} trial_t;

#define ROWS OUTER_ROWS
#define CELLS OUTER_CELLS

static const trial_t trials[] = {
    {"plain", 3, {"5", "1", "0", 0.7, 0.9}, "1", "1000000", BY_ROWS, 7 * ROWS, 7 * CELLS, false},
    {"average", 4, {"1", "1", "0", 1, 0}, "2", "1000000", BY_ROWS, 32 * ROWS, 32 * CELLS, false},
    {"add", 2, {"5", "1", "0", 0, 0}, "1", "1000000", BY_ROWS, 7 * ROWS, 7 * CELLS, false},
    {"whole", 2, {"5", "1", "0", 0.7, 0.9}, "2", "1000000", BY_TABLE, 7 * ROWS, 7 * CELLS, false},
    {"unkept", 2, {"5", "1", "0", 0.7, 0.9}, "1", "0", BY_ROWS, 64 * ROWS, 7 * CELLS, false},
    {"elements", 2, {"8", "1", "0", 0.7, 0.9}, "1", "1000000", BY_ELEMENTS, 0, 4 * CELLS, false},
    {"parts", 3, {"2", "4", "0", 0.7, 0.9}, "1", "1000000", BY_ROWS, 29, 58, false},
    {"late", 2, {"5", "1", "3", 0.7, 0.9}, "2", "1000000", BY_ROWS, 6 * ROWS, 7 * CELLS, false},
    {"late-parts", 4, {"3", "2", "2", 0.7, 0.9}, "1", "1000000", BY_ROWS, 33, 72, false},
    {"late-whole",
     2,
     {"5", "1", "1", 0.7, 0.9},
     "1",
     "1000000",
     BY_TABLE,
     7 * ROWS,
     7 * CELLS,
     false},
    {"marks", 2, {"5", "1", "0", 0.7, 0.9}, "2", "1000000", BY_ROWS, 7 * ROWS, 7 * CELLS, true},
    {"marks-parts", 2, {"3", "2", "2", 0.7, 0.9}, "1", "1000000", BY_ROWS, 33, 72, true},
};

static sem_t gone_on; /* "late": worker 0 is as far as it can be alone */

/* ---- a worker -------------------------------------------------------------- */

typedef struct job {
    const trial_t *trial;
    int rank;
    pthread_t thread;
    bool good;
    outer_hand_t hand; /* each worker has one for itself */
    double off[2];     /* of each trainer: greatest difference of what was read */
} job_t;

static double target(int rank, int cell)
{
    return (double)((rank * 5 + cell * 3) % 16) / 4;
}

/* A step of least squares. */
static double delta_of(double x, int rank, int cell)
{
    return -0.1 * (x - target(rank, cell));
}

/* What an end of a clock adds. */
static double mark_of(int rank, int cell)
{
    return 0.05 * target(rank + 1, cell) + 0.01;
}

static void hand_step(job_t *job)
{
    for (int w = 0; w < job->trial->workers; w++) {
        for (int i = 0; i < CELLS; i++) {
            outer_hand_add(&job->hand, w, i, delta_of(job->hand.x[w][i], w, i));
        }
    }
}

static void hand_mark(job_t *job)
{
    for (int w = 0; job->trial->marks && w < job->trial->workers; w++) {
        for (int i = 0; i < CELLS; i++) {
            outer_hand_add(&job->hand, w, i, mark_of(w, i));
        }
    }
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    const job_t *job = user;
    psd_status_t rc = PSD_OK;

    (void)block;
    if (job->trial->ask == BY_TABLE) {
        return psd_loader_table(loader, 0, err);
    }
    if (job->trial->ask == BY_ROWS) {
        return psd_loader_rows(loader, 0, outer_rows, ROWS, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < CELLS; i++) {
        rc = psd_loader_element(loader, 0, i / OUTER_COLS, i % OUTER_COLS, err);
    }
    return rc;
}

/* Each trainer has some cells. An add shows at once. */
static psd_status_t step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    job_t *job = user;
    double *off = &job->off[psd_trainer_id(trainer)];
    size_t first = 0;
    size_t end = 0;

    (void)block;
    (void)err;
    psd_trainer_share(trainer, CELLS, &first, &end);
    for (size_t i = first; i < end; i++) {
        uint64_t row = i / OUTER_COLS;
        uint32_t col = i % OUTER_COLS;
        double x = psd_trainer_get_f64(trainer, 0, row, col);
        double delta = delta_of(job->hand.x[job->rank][i], job->rank, (int)i);

        *off = fmax(*off, fabs(x - job->hand.x[job->rank][i]));
        psd_trainer_add_f64(trainer, 0, row, col, delta);
        *off = fmax(*off, fabs(psd_trainer_get_f64(trainer, 0, row, col) - (x + delta)));
    }
    return PSD_OK;
}

static psd_status_t mark(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    const job_t *job = user;
    size_t first = 0;
    size_t end = 0;

    (void)block;
    (void)err;
    psd_trainer_share(trainer, CELLS, &first, &end);
    for (size_t i = first; i < end; i++) {
        psd_trainer_add_f64(trainer, 0, i / OUTER_COLS, i % OUTER_COLS, mark_of(job->rank, (int)i));
    }
    return PSD_OK;
}

static bool configure(psd_train_t *train, const job_t *job, psd_error_t *err)
{
    const trial_t *trial = job->trial;
    char rank[8];
    char workers[8];
    const char *const pairs[][2] = {{"job", trial->name},
                                    {"worker", rank},
                                    {"workers", workers},
                                    {"pipeline", "off"},
                                    {"lock", "locked"},
                                    {"trainers", trial->trainers},
                                    {"keep-bytes", trial->keep_bytes}};

    (void)snprintf(rank, sizeof rank, "%d", job->rank);
    (void)snprintf(workers, sizeof workers, "%d", trial->workers);
    CHECK(outer_set(train, pairs, sizeof pairs / sizeof *pairs, err));
    CHECK(outer_set_rule(train, &trial->rule, err));
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK(outer_make_table(train, trial->name, &trial->rule, err));
    CHECK_ERROR(psd_train_load(train, 0, "no-such-file", err), PSD_INVALID,
                trial->rule.alpha > 0 ? "which would change first values" : "and one loads them",
                err);
    CHECK_OK(psd_train_config_end(train, err), err);
    return true;
}

static bool run_clock(job_t *job, psd_train_t *train, psd_error_t *err)
{
    CHECK_OK(psd_train_clock_begin(train, err), err);
    hand_mark(job);
    for (int k = 0; k < BLOCKS; k++) {
        CHECK_OK(psd_train_push_block(train, NULL, NULL, OUTER_CALL_MS, err), err);
        CHECK_OK(psd_train_wait(train, OUTER_CALL_MS, err), err); /* it looks at the hand */
        hand_step(job);
    }
    CHECK_OK(psd_train_clock_end(train, err), err);
    hand_mark(job);
    outer_hand_end_clock(&job->hand);
    return true;
}

static bool run(job_t *job, psd_train_t *train, psd_error_t *err)
{
    const trial_t *trial = job->trial;
    bool is_late = strcmp(trial->name, "late") == 0;
    uint64_t n_adds = CLOCKS * CELLS * (uint64_t)(trial->marks ? BLOCKS + 2 : BLOCKS);

    outer_hand_init(&job->hand, &trial->rule, trial->workers);
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_STEP, step);
    if (trial->marks) {
        psd_train_on(train, PSD_TRAIN_CLOCK_BEGIN, mark);
        psd_train_on(train, PSD_TRAIN_CLOCK_END, mark);
    }
    CHECK(configure(train, job, err));
    CHECK_OK(psd_train_begin(train, err), err);
    if (is_late && job->rank > 0) {
        (void)sem_wait(&gone_on);
    }
    for (int i = 0; i < CLOCKS; i++) {
        if (is_late && job->rank == 0 && i == LATE_CLOCKS) {
            (void)sem_post(&gone_on);
        }
        CHECK(run_clock(job, train, err));
    }
    CHECK_OK(psd_train_end(train, OUTER_CALL_MS, err), err);
    outer_hand_finish(&job->hand);
    CHECK(fmax(job->off[0], job->off[1]) < 1e-12);
    CHECK(psd_train_count(train, "clocks") == CLOCKS);
    CHECK(psd_train_count(train, "adds") == n_adds);
    CHECK(psd_train_count(train, "rows-pulled") == trial->rows_pulled);
    CHECK(psd_train_count(train, "entries-pushed") == trial->n_pushed);
    return true;
}

static void *run_worker(void *arg)
{
    job_t *job = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(job);

    job->good = run(job, train, err);
    if (!job->good) {
        (void)sem_post(&gone_on); /* nobody waits for one that has failed */
    }
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

static bool is_as_by_hand(const trial_t *trial)
{
    job_t jobs[OUTER_WORKERS_MAX];
    bool good = true;

    for (int i = 0; i < trial->workers; i++) {
        jobs[i] = (job_t){.trial = trial, .rank = i};
        CHECK(pthread_create(&jobs[i].thread, NULL, run_worker, &jobs[i]) == 0);
    }
    for (int i = 0; i < trial->workers; i++) {
        (void)pthread_join(jobs[i].thread, NULL);
        good = good && jobs[i].good;
    }
    if (!good) {
        (void)fprintf(stderr, "trial %s\n", trial->name);
    }
    return good && outer_hand_check_table(&jobs[0].hand, trial->name);
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, NULL);

    outer_endpoint = daemon.control;
    ok = ok && sem_init(&gone_on, 0, 0) == 0;
    for (size_t i = 0; ok && i < sizeof trials / sizeof *trials; i++) {
        ok = is_as_by_hand(&trials[i]);
    }
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
