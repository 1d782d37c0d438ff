/* SPDX-License-Identifier: Apache-2.0 */
/* Outer steps of a training on a real psd: each worker trains a regression of
 * its own for some clocks, and then sends what it has changed. All that the
 * workers read, and what the table has at the end, is what the same steps by
 * hand give; so many values are sent and fetched as outer steps need. With an
 * overlap a worker goes on while the others have not sent yet. With the pipeline
 * no block mixes what two outer steps have made. */
#include <psd_train.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define CALL_MS 60000
#define WORKERS_MAX 4
#define ROWS 6
#define COLS 2
#define CELLS (ROWS * COLS)
#define CLOCKS 32
#define BLOCKS 2 /* of a clock: steps of the regression */
#define START 1.0
#define LATE_CLOCKS 8 /* of trial "late": every + overlap */

typedef enum ask { BY_ROWS = 0, BY_TABLE = 1, BY_ELEMENTS = 2 } ask_t;

/* What is set. The updater is nesterov with alpha and momentum; alpha 0: add. */
typedef struct trial {
    const char *name;
    int workers;
    const char *every, *fragments, *overlap;
    double alpha, momentum;
    const char *trainers, *keep_bytes;
    ask_t ask;
    uint64_t rows_pulled; /* by each worker */
    uint64_t n_pushed;    /* values, by each worker; without outer steps 32 * CELLS */
} trial_t;

static const trial_t trials[] = {
    {"plain", 3, "5", "1", "0", 0.7, 0.9, "1", "1000000", BY_ROWS, 7 * ROWS, 7 * CELLS},
    {"average", 4, "1", "1", "0", 1, 0, "2", "1000000", BY_ROWS, 32 * ROWS, 32 * CELLS},
    {"add", 2, "5", "1", "0", 0, 0, "1", "1000000", BY_ROWS, 7 * ROWS, 7 * CELLS},
    {"whole", 2, "5", "1", "0", 0.7, 0.9, "2", "1000000", BY_TABLE, 7 * ROWS, 7 * CELLS},
    {"unkept", 2, "5", "1", "0", 0.7, 0.9, "1", "0", BY_ROWS, 64 * ROWS, 7 * CELLS},
    {"elements", 2, "8", "1", "0", 0.7, 0.9, "1", "1000000", BY_ELEMENTS, 0, 4 * CELLS},
    {"parts", 3, "2", "4", "0", 0.7, 0.9, "1", "1000000", BY_ROWS, 29, 58},
    {"late", 2, "5", "1", "3", 0.7, 0.9, "2", "1000000", BY_ROWS, 6 * ROWS, 7 * CELLS},
    {"late-parts", 4, "3", "2", "2", 0.7, 0.9, "1", "1000000", BY_ROWS, 33, 72},
    {"late-whole", 2, "5", "1", "1", 0.7, 0.9, "1", "1000000", BY_TABLE, 7 * ROWS, 7 * CELLS},
};

static const char *endpoint;
static sem_t gone_on; /* "late": worker 0 is as far as it can be alone */

/* ---- by hand --------------------------------------------------------------- */

/* All workers and the table; each worker has such a one for itself. */
typedef struct hand {
    const trial_t *trial;
    uint64_t every, fragments, overlap;
    uint64_t inner; /* clocks of the training */
    uint64_t outer; /* outer steps */
    double table[CELLS];
    double s[CELLS]; /* of nesterov */
    double x[WORKERS_MAX][CELLS];
    double drift[WORKERS_MAX][CELLS]; /* what a worker added since it was sent */
} hand_t;

static void hand_init(hand_t *self, const trial_t *trial)
{
    *self = (hand_t){.trial = trial,
                     .every = strtoul(trial->every, NULL, 10),
                     .fragments = strtoul(trial->fragments, NULL, 10),
                     .overlap = strtoul(trial->overlap, NULL, 10)};
    for (int i = 0; i < CELLS; i++) {
        self->table[i] = START;
        for (int w = 0; w < WORKERS_MAX; w++) {
            self->x[w][i] = START;
        }
    }
}

static double target(int rank, int cell)
{
    return (double)((rank * 5 + cell * 3) % 16) / 4;
}

/* A step of least squares. */
static double delta_of(double x, int rank, int cell)
{
    return -0.1 * (x - target(rank, cell));
}

static void hand_step(hand_t *self)
{
    for (int w = 0; w < self->trial->workers; w++) {
        for (int i = 0; i < CELLS; i++) {
            double delta = delta_of(self->x[w][i], w, i);

            self->x[w][i] += delta;
            self->drift[w][i] += delta;
        }
    }
}

/* The outer step of one cell; all workers have ended the clock. */
static void hand_send(hand_t *self, int i)
{
    const trial_t *trial = self->trial;
    double g = 0;

    for (int w = 0; w < trial->workers; w++) {
        g -= self->drift[w][i];
        self->drift[w][i] = 0;
    }
    g /= trial->workers;
    self->s[i] = trial->momentum * self->s[i] + g;
    self->table[i] -= trial->alpha == 0 ? g : trial->alpha * (g + trial->momentum * self->s[i]);
}

static bool is_turn(const hand_t *self, int i, uint64_t step)
{
    return (uint64_t)(i / COLS) % self->fragments == step % self->fragments;
}

static void hand_end_clock(hand_t *self)
{
    uint64_t inner = ++self->inner % self->every;

    for (int i = 0; inner == 0 && i < CELLS; i++) {
        if (is_turn(self, i, self->outer)) {
            hand_send(self, i);
        }
    }
    self->outer += inner == 0 ? 1 : 0;
    for (int i = 0; self->outer > 0 && inner == self->overlap && i < CELLS; i++) {
        for (int w = 0; is_turn(self, i, self->outer - 1) && w < self->trial->workers; w++) {
            self->x[w][i] = self->table[i] + self->drift[w][i];
        }
    }
}

/* All that was not sent; a cell that no worker has changed since stays. */
static void hand_finish(hand_t *self)
{
    for (int i = 0; i < CELLS; i++) {
        if (self->drift[0][i] != 0) {
            hand_send(self, i);
        }
    }
}

/* ---- a worker -------------------------------------------------------------- */

typedef struct job {
    const trial_t *trial;
    int rank;
    pthread_t thread;
    bool good;
    hand_t hand;
    double off[2]; /* of each trainer: greatest difference of what was read */
} job_t;

static const uint64_t all_rows[ROWS] = {0, 1, 2, 3, 4, 5};

static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    const job_t *job = user;
    psd_status_t rc = PSD_OK;

    (void)block;
    if (job->trial->ask == BY_TABLE) {
        return psd_loader_table(loader, 0, err);
    }
    if (job->trial->ask == BY_ROWS) {
        return psd_loader_rows(loader, 0, all_rows, ROWS, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < CELLS; i++) {
        rc = psd_loader_element(loader, 0, i / COLS, i % COLS, err);
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
        double x = psd_trainer_get_f64(trainer, 0, i / COLS, i % COLS);
        double delta = delta_of(job->hand.x[job->rank][i], job->rank, (int)i);

        *off = fmax(*off, fabs(x - job->hand.x[job->rank][i]));
        psd_trainer_add_f64(trainer, 0, i / COLS, i % COLS, delta);
        *off = fmax(*off, fabs(psd_trainer_get_f64(trainer, 0, i / COLS, i % COLS) - (x + delta)));
    }
    return PSD_OK;
}

static bool set_all(psd_train_t *train, const job_t *job, psd_error_t *err)
{
    const trial_t *trial = job->trial;
    char rank[8];
    char workers[8];
    const char *const pairs[][2] = {{"endpoint", endpoint},
                                    {"job", trial->name},
                                    {"worker", rank},
                                    {"workers", workers},
                                    {"max-delay", "0"},
                                    {"pipeline", "off"},
                                    {"lock", "locked"},
                                    {"trainers", trial->trainers},
                                    {"keep-bytes", trial->keep_bytes},
                                    {"outer-every", trial->every},
                                    {"outer-fragments", trial->fragments},
                                    {"outer-overlap", trial->overlap}};

    (void)snprintf(rank, sizeof rank, "%d", job->rank);
    (void)snprintf(workers, sizeof workers, "%d", trial->workers);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    return true;
}

static bool make_table(psd_train_t *train, const char *name, const char *updater,
                       const char *combine, psd_status_t *ret_rc, psd_error_t *err)
{
    const char *const pairs[][2] = {{"rows", "6"},        {"cols", "2"},
                                    {"type", "f64"},      {"init", "constant:1"},
                                    {"updater", updater}, {"combine", combine}};
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_spec_set(spec, pairs[i][0], pairs[i][1], err), err);
    }
    *ret_rc = psd_train_table(train, name, spec, &table, err);
    psd_spec_destroy(&spec);
    return true;
}

static bool configure(psd_train_t *train, const job_t *job, psd_error_t *err)
{
    const trial_t *trial = job->trial;
    char updater[64] = "add";
    psd_status_t rc = PSD_OK;

    CHECK(set_all(train, job, err));
    if (trial->alpha > 0) {
        (void)snprintf(updater, sizeof updater, "nesterov:alpha=%g,momentum=%g", trial->alpha,
                       trial->momentum);
    }
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK(make_table(train, trial->name, updater, "clock-mean", &rc, err));
    CHECK_OK(rc, err);
    CHECK(psd_train_load(train, 0, "no-such-file", err) == PSD_INVALID);
    CHECK(strstr(psd_error_text(err),
                 trial->alpha > 0 ? "which first values would run" : "and one loads them") != NULL);
    CHECK_OK(psd_train_config_end(train, err), err);
    return true;
}

static bool run(job_t *job, psd_train_t *train, psd_error_t *err)
{
    bool is_late = strcmp(job->trial->name, "late") == 0;

    hand_init(&job->hand, job->trial);
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_STEP, step);
    CHECK(configure(train, job, err));
    CHECK_OK(psd_train_begin(train, err), err);
    if (is_late && job->rank > 0) {
        (void)sem_wait(&gone_on);
    }
    for (int i = 0; i < CLOCKS; i++) {
        if (is_late && job->rank == 0 && i == LATE_CLOCKS) {
            (void)sem_post(&gone_on);
        }
        CHECK_OK(psd_train_clock_begin(train, err), err);
        for (int k = 0; k < BLOCKS; k++) {
            CHECK_OK(psd_train_push_block(train, NULL, NULL, CALL_MS, err), err);
            CHECK_OK(psd_train_wait(train, CALL_MS, err), err); /* it looks at the hand */
            hand_step(&job->hand);
        }
        CHECK_OK(psd_train_clock_end(train, err), err);
        hand_end_clock(&job->hand);
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    hand_finish(&job->hand);
    CHECK(fmax(job->off[0], job->off[1]) < 1e-12);
    CHECK(psd_train_count(train, "clocks") == CLOCKS);
    CHECK(psd_train_count(train, "adds") == CLOCKS * BLOCKS * CELLS);
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
    if (!job->good) {
        (void)sem_post(&gone_on); /* nobody waits for one that has failed */
    }
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

/* What all workers have left in the table. */
static bool check_table(const hand_t *hand)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    double values[CELLS];

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, hand->trial->name, &table, err), err);
    CHECK_OK(psd_pull(table, all_rows, ROWS, values, CELLS, err), err);
    for (int i = 0; i < CELLS; i++) {
        CHECK(fabs(values[i] - hand->table[i]) < 1e-12);
        CHECK(fabs(values[i] - START) > 0.01);
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool is_as_by_hand(const trial_t *trial)
{
    job_t jobs[WORKERS_MAX];
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
    return good && check_table(&jobs[0].hand);
}

/* ---- with the pipeline ----------------------------------------------------- */

#define PIPED_EVERY 4
#define PIPED_STEPS (PIPED_EVERY * BLOCKS) /* of an outer step */
#define PIPED_N (CLOCKS * BLOCKS)

/* Each block of worker 0 adds 1 to each cell, of worker 1 adds 3, and alpha and
 * momentum are 1/2: all numbers are exact. */
typedef struct piped {
    int rank;
    pthread_t thread;
    bool good;
    double starts[CLOCKS / PIPED_EVERY + 1]; /* of a cell, after outer steps */
    atomic_int n_bad;
} piped_t;

static uint64_t numbers[PIPED_N];

static void find_starts(piped_t *job)
{
    double g = -2.0 * PIPED_STEPS; /* the mean of both */
    double s = 0;

    job->starts[0] = START;
    for (int i = 0; i < CLOCKS / PIPED_EVERY; i++) {
        s = 0.5 * s + g;
        job->starts[i + 1] = job->starts[i] - 0.5 * (g + 0.5 * s);
    }
}

static psd_status_t load_piped(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    return psd_loader_rows(loader, 0, all_rows, ROWS, err);
}

/* A block sees all blocks before it, but perhaps not the last one; the first
 * of an outer step sees what came of the step before. */
static psd_status_t step_piped(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    piped_t *job = user;
    uint64_t number = *(uint64_t *)block;
    uint64_t before = number % PIPED_STEPS;
    double each = job->rank == 0 ? 1 : 3;
    double most = job->starts[number / PIPED_STEPS] + (double)before * each;
    size_t first = 0;
    size_t end = 0;

    (void)err;
    psd_trainer_share(trainer, CELLS, &first, &end);
    for (size_t i = first; i < end; i++) {
        double x = psd_trainer_get_f64(trainer, 0, i / COLS, i % COLS);

        job->n_bad += x != most && (x != most - each || before == 0);
        psd_trainer_add_f64(trainer, 0, i / COLS, i % COLS, each);
    }
    return PSD_OK;
}

static bool run_piped(piped_t *job, psd_train_t *train, psd_error_t *err)
{
    const char *const pairs[][2] = {
        {"endpoint", endpoint}, {"job", "piped"},    {"worker", job->rank == 0 ? "0" : "1"},
        {"workers", "2"},       {"max-delay", "0"},  {"lock", "lock-free"},
        {"trainers", "3"},      {"outer-every", "4"}};
    psd_status_t rc = PSD_OK;

    find_starts(job);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    psd_train_on_load(train, load_piped);
    psd_train_on(train, PSD_TRAIN_STEP, step_piped);
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK(make_table(train, "piped", "nesterov:alpha=0.5,momentum=0.5", "clock-mean", &rc, err));
    CHECK_OK(rc, err);
    CHECK_OK(psd_train_config_end(train, err), err);
    CHECK_OK(psd_train_begin(train, err), err);
    for (uint64_t i = 0; i < PIPED_N; i++) {
        if (i % BLOCKS == 0) {
            CHECK_OK(psd_train_clock_begin(train, err), err);
        }
        CHECK_OK(psd_train_push_block(train, &numbers[i], NULL, CALL_MS, err), err);
        if (i % BLOCKS == BLOCKS - 1) {
            CHECK_OK(psd_train_clock_end(train, err), err);
        }
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    CHECK(job->n_bad == 0);
    CHECK(psd_train_count(train, "rows-pulled") == CLOCKS / PIPED_EVERY * ROWS);
    CHECK(psd_train_count(train, "entries-pushed") == CLOCKS / PIPED_EVERY * CELLS);
    return true;
}

static void *run_piped_worker(void *arg)
{
    piped_t *job = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(job);

    job->good = run_piped(job, train, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

static bool is_piped(void)
{
    static const trial_t trial = {.name = "piped"};
    piped_t jobs[2] = {{.rank = 0}, {.rank = 1}};
    hand_t hand = {.trial = &trial};

    for (uint64_t i = 0; i < PIPED_N; i++) {
        numbers[i] = i;
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&jobs[i].thread, NULL, run_piped_worker, &jobs[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(jobs[i].thread, NULL);
    }
    for (int i = 0; i < CELLS; i++) {
        hand.table[i] = jobs[0].starts[CLOCKS / PIPED_EVERY];
    }
    return jobs[0].good && jobs[1].good && check_table(&hand);
}

/* ---- what is refused ------------------------------------------------------- */

static bool expect_refusal(const char *name, const char *max_delay, const char *updater,
                           const char *combine, const char *part)
{
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);
    const char *const pairs[][2] = {
        {"endpoint", endpoint},   {"job", name},         {"worker", "0"},     {"workers", "1"},
        {"max-delay", max_delay}, {"lock", "lock-free"}, {"outer-every", "3"}};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    rc = psd_train_config_begin(train, err);
    if (rc == PSD_OK) {
        CHECK(make_table(train, name, updater, combine, &rc, err));
    }
    CHECK(rc == PSD_INVALID);
    if (strstr(psd_error_text(err), part) == NULL) {
        (void)fprintf(stderr, "not \"%s\": %s\n", part, psd_error_text(err));
        return false;
    }
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

/* Two workers that do not take outer steps alike hear it both. */
typedef struct unlike {
    const char *rank, *every, *fragments;
    const char *part;
    pthread_t thread;
    bool good;
} unlike_t;

static bool run_unlike(const unlike_t *self, psd_train_t *train, psd_error_t *err)
{
    const char *const pairs[][2] = {
        {"endpoint", endpoint},       {"job", "unlike"},
        {"worker", self->rank},       {"workers", "2"},
        {"max-delay", "0"},           {"lock", "locked"},
        {"outer-every", self->every}, {"outer-fragments", self->fragments}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    CHECK(psd_train_config_begin(train, err) == PSD_INVALID);
    CHECK(strstr(psd_error_text(err), self->part) != NULL);
    return true;
}

static void *run_unlike_worker(void *arg)
{
    unlike_t *self = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);

    self->good = run_unlike(self, train, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

static bool are_compared(unlike_t *workers)
{
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&workers[i].thread, NULL, run_unlike_worker, &workers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
    return workers[0].good && workers[1].good;
}

static bool refuses_unlike_workers(void)
{
    unlike_t every[] = {
        {.rank = "0",
         .every = "5",
         .fragments = "1",
         .part = "outer-every is 5, and 3 in worker 1; allowed: the same in all workers"},
        {.rank = "1",
         .every = "3",
         .fragments = "1",
         .part = "outer-every is 3, and 5 in worker 0; allowed: the same in all workers"}};
    unlike_t fragments[] = {{.rank = "0",
                             .every = "5",
                             .fragments = "1",
                             .part = "outer-fragments is 1, and 2 in worker 1"},
                            {.rank = "1",
                             .every = "5",
                             .fragments = "2",
                             .part = "outer-fragments is 2, and 1 in worker 0"}};

    return are_compared(every) && are_compared(fragments);
}

/* First values: the mean over the workers to updater add, else none. */
static bool takes_first_values(const char *name, const char *updater, const char *part)
{
    const uint64_t row = 2;
    const double values[COLS] = {3, 4};
    double after[COLS];
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);
    const char *const pairs[][2] = {
        {"endpoint", endpoint}, {"job", name},         {"worker", "0"},     {"workers", "1"},
        {"max-delay", "0"},     {"lock", "lock-free"}, {"outer-every", "3"}};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK(make_table(train, name, updater, "clock-mean", &rc, err));
    CHECK_OK(rc, err);
    rc = psd_train_add_to_server(train, 0, &row, 1, values, COLS, err);
    CHECK(rc == (part == NULL ? PSD_OK : PSD_INVALID));
    CHECK(part == NULL || strstr(psd_error_text(err), part) != NULL);
    CHECK_OK(psd_train_config_end(train, err), err);
    CHECK_OK(psd_pull(psd_train_table_handle(train, 0), &row, 1, after, COLS, err), err);
    for (int i = 0; i < COLS; i++) {
        CHECK(after[i] == START + (part == NULL ? values[i] : 0));
    }
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && sem_init(&gone_on, 0, 0) == 0;
    for (size_t i = 0; ok && i < sizeof trials / sizeof *trials; i++) {
        ok = is_as_by_hand(&trials[i]);
    }
    ok = ok && is_piped() &&
         expect_refusal("delayed", "2", "nesterov", "clock-mean",
                        "max-delay of the job is 2, and outer-every 3; allowed: max-delay 0") &&
         expect_refusal("each", "0", "nesterov", "each",
                        "table \"each\" has combine each; allowed with outer-every: clock-mean") &&
         expect_refusal("assigned", "0", "assign", "clock-mean",
                        "table \"assigned\" has updater assign; allowed with outer-every: add") &&
         refuses_unlike_workers() && takes_first_values("first-added", "add", NULL) &&
         takes_first_values("first-refused", "nesterov",
                            "table \"first-refused\" has updater nesterov, which first values "
                            "would run; allowed with outer-every: updater add");
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
