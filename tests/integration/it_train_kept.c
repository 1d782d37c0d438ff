/* SPDX-License-Identifier: Apache-2.0 */
/* Trainings that keep rows, on a real psd: one worker reads the bits that it
 * would read without; what is there is not asked for again; rows that are
 * intended are there when their clock begins; of others' pushes nothing is
 * missed that is older than allowed. */
#include <psd_train.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define CALL_MS 60000
#define ROWS 64
#define COLS 3
#define CLOCKS 30
#define BLOCKS 2 /* of a clock */
#define READS 12 /* rows of a block */

static const char *endpoint;

/* What is set, and what is to come of it. */
typedef struct trial {
    const char *name;
    const char *pipeline;
    const char *fetch_every;
    const char *push_every;
    const char *staleness;
    const char *keep_bytes;
    const char *max_delay;
} trial_t;

typedef struct job {
    const trial_t *trial;
    float sums[ROWS * COLS]; /* what the worker must read */
    double n_read;           /* a sum over all that was read */
    int n_bad;
} job_t;

typedef struct block {
    uint64_t number;
    uint64_t rows[READS];
} block_t;

/* Rows of which many come again, in no order; the same in each trial. */
static block_t *make_block(uint64_t number)
{
    block_t *block = calloc(1, sizeof *block);

    block->number = number;
    for (uint64_t i = 0; i < READS; i++) {
        uint64_t mixed = (number * 31 + i * i * 17 + 7) % 97;

        block->rows[i] = mixed % (i % 3 == 0 ? ROWS : 9);
    }
    return block;
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block_p, psd_error_t *err)
{
    const block_t *block = block_p;

    (void)user;
    return psd_loader_rows(loader, 0, block->rows, READS, err);
}

/* Learns from all that it reads, so that a bit that differs is seen. */
static psd_status_t step(void *user, psd_trainer_t *trainer, void *block_p, psd_error_t *err)
{
    const block_t *block = block_p;
    job_t *job = user;

    (void)err;
    for (uint64_t i = 0; i < READS; i++) {
        uint64_t row = block->rows[i];
        uint32_t col = (uint32_t)(row % COLS);
        double value = psd_trainer_get_f64(trainer, 0, row, col);

        job->n_read += value * (double)(i + 1);
        psd_trainer_add_f64(trainer, 0, row, col, 0.1 - value / 64 + (double)block->number * 1e-3);
    }
    return PSD_OK;
}

static bool set_all(psd_train_t *train, const trial_t *trial, psd_error_t *err)
{
    const char *const pairs[][2] = {{"endpoint", endpoint},
                                    {"job", trial->name},
                                    {"worker", "0"},
                                    {"workers", "1"},
                                    {"max-delay", trial->max_delay},
                                    {"pipeline", trial->pipeline},
                                    {"fetch-every", trial->fetch_every},
                                    {"push-every", trial->push_every},
                                    {"staleness", trial->staleness},
                                    {"keep-bytes", trial->keep_bytes}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    return true;
}

static bool configure(psd_train_t *train, const trial_t *trial, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 7;

    CHECK(set_all(train, trial, err));
    CHECK_OK(psd_spec_set(spec, "rows", "64", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "3", err), err);
    CHECK_OK(psd_spec_set(spec, "init", "uniform:-1,1", err), err);
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK_OK(psd_train_table(train, trial->name, spec, &table, err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    psd_spec_destroy(&spec);
    return true;
}

/* One run of the trial; each clock is done before the next one is pushed. */
static bool run(const trial_t *trial, job_t *job, uint64_t *ret_pulled)
{
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(job);
    uint64_t rows[ROWS];
    uint64_t number = 0;

    job->trial = trial;
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_STEP, step);
    CHECK(configure(train, trial, err));
    CHECK_OK(psd_train_begin(train, err), err);
    for (int i = 0; i < CLOCKS; i++) {
        CHECK_OK(psd_train_clock_begin(train, err), err);
        for (int k = 0; k < BLOCKS; k++) {
            CHECK_OK(psd_train_push_block(train, make_block(++number), free, CALL_MS, err), err);
        }
        CHECK_OK(psd_train_clock_end(train, err), err);
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    CHECK(psd_train_count(train, "rows-asked") == CLOCKS * BLOCKS * READS);
    *ret_pulled = psd_train_count(train, "rows-pulled");
    for (uint64_t row = 0; row < ROWS; row++) {
        rows[row] = row;
    }
    CHECK_OK(psd_pull(psd_train_table_handle(train, 0), rows, ROWS, job->sums, ROWS * COLS, err),
             err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

/* A worker alone, without the pipeline, reads what the server has, to the bit:
 * it is the only one that changes it. Fewer rows travel. */
static bool keep_alone(void)
{
    static const trial_t trials[] = {{"plain", "off", "1", "1", "off", "1000", "-1"},
                                     {"clocks", "off", "1", "1", "2", "1000000", "-1"},
                                     {"little", "off", "1", "1", "2", "1000", "-1"},
                                     {"none", "off", "1", "1", "5", "0", "-1"},
                                     {"blocks", "off", "4", "1", "off", "1000000", "-1"},
                                     {"one", "off", "1", "1", "off", "1000000", "-1"}};
    job_t plain = {.n_bad = 0};
    uint64_t n_plain = 0;

    CHECK(run(&trials[0], &plain, &n_plain));
    for (size_t i = 1; i < sizeof trials / sizeof *trials; i++) {
        job_t job = {.n_bad = 0};
        uint64_t n = 0;
        bool fewer = i != 3 && i != 5;

        CHECK(run(&trials[i], &job, &n));
        CHECK(memcmp(job.sums, plain.sums, sizeof job.sums) == 0);
        CHECK(memcmp(&job.n_read, &plain.n_read, sizeof job.n_read) == 0);
        CHECK(fewer ? n < n_plain : n == n_plain);
    }
    return true;
}

/* Under BSP own pushes count from the end of the clock on; one push a clock has
 * the same bits. */
static bool keep_under_bsp(void)
{
    static const trial_t trials[] = {{"bsp-plain", "off", "1", "0", "off", "1000000", "0"},
                                     {"bsp-clocks", "off", "1", "0", "3", "1000000", "0"},
                                     {"bsp-now", "off", "1", "0", "0", "1000000", "0"}};
    job_t jobs[3] = {{.n_bad = 0}};
    uint64_t n[3] = {0};

    for (size_t i = 0; i < 3; i++) {
        CHECK(run(&trials[i], &jobs[i], &n[i]));
        CHECK(memcmp(jobs[i].sums, jobs[0].sums, sizeof jobs[i].sums) == 0);
        CHECK(memcmp(&jobs[i].n_read, &jobs[0].n_read, sizeof(double)) == 0);
    }
    CHECK(n[1] < n[2] && n[2] < n[0]);
    return true;
}

/* ---- intents ------------------------------------------------------------- */

#define FIRST_INTENDED 10
#define INTENDED 10

/* Reads what is intended, and adds elsewhere. */
static psd_status_t load_intended(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    uint64_t rows[INTENDED];

    (void)user;
    (void)block;
    for (uint64_t i = 0; i < INTENDED; i++) {
        rows[i] = FIRST_INTENDED + i;
    }
    return psd_loader_rows(loader, 0, rows, INTENDED, err);
}

static psd_status_t step_intended(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    (void)err;
    for (uint64_t i = 0; i < INTENDED; i++) {
        (void)psd_trainer_get_f64(trainer, 0, FIRST_INTENDED + i, 1);
    }
    psd_trainer_add_f64(trainer, 0, 0, 0, 1);
    return PSD_OK;
}

static bool run_clock(psd_train_t *train, bool reads, psd_error_t *err)
{
    CHECK_OK(psd_train_clock_begin(train, err), err);
    if (reads) {
        CHECK_OK(psd_train_push_block(train, NULL, NULL, CALL_MS, err), err);
    }
    CHECK_OK(psd_train_clock_end(train, err), err);
    CHECK_OK(psd_train_wait(train, CALL_MS, err), err);
    return true;
}

/* What cannot be is said. */
static bool refuse_intents(psd_train_t *train, psd_error_t *err)
{
    uint64_t rows[ROWS];
    const uint64_t far = ROWS;

    for (uint64_t row = 0; row < ROWS; row++) {
        rows[row] = row;
    }
    CHECK_ERROR(psd_train_intent(train, 0, rows, 40, 1, 2, err), PSD_LIMIT, "keep-bytes", err);
    CHECK_ERROR(psd_train_intent(train, 0, &far, 1, 1, 2, err), PSD_RANGE, "row 64", err);
    CHECK_ERROR(psd_train_intent(train, 1, rows, 1, 1, 2, err), PSD_INVALID, "there are 1", err);
    CHECK_ERROR(psd_train_intent(train, 0, rows, 1, 3, 2, err), PSD_INVALID, "from clock 3", err);
    return true;
}

/* Clocks 3 to 6 read 10 rows: those of 3 and 4 come in clock 2, of 5 and 6 in
 * clock 4; no block waits for a pull of its own. */
static bool fetch_ahead(void)
{
    static const trial_t trial = {"ahead", "off", "1", "1", "2", "4000", "-1"};
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);
    uint64_t rows[2 * INTENDED];
    const uint64_t pulled[] = {0, 0, 10, 10, 20, 20, 20, 20, 30};

    for (uint64_t i = 0; i < 2 * INTENDED; i++) { /* each comes once anyway */
        rows[i] = FIRST_INTENDED + i % INTENDED;
    }
    psd_train_on_load(train, load_intended);
    psd_train_on(train, PSD_TRAIN_STEP, step_intended);
    CHECK(configure(train, &trial, err));
    CHECK_ERROR(psd_train_intent(train, 0, rows, 1, 1, 2, err), PSD_INVALID, "psd_train_begin",
                err);
    CHECK_OK(psd_train_begin(train, err), err);
    CHECK(refuse_intents(train, err));
    CHECK_OK(psd_train_intent(train, 0, rows, 2 * INTENDED, 3, 6, err), err);
    for (uint64_t clock = 1; clock <= 6; clock++) {
        CHECK(run_clock(train, clock >= 3, err));
        CHECK(psd_train_count(train, "rows-pulled") == pulled[clock]);
    }
    CHECK(run_clock(train, false, err));
    CHECK(run_clock(train, true, err)); /* too old, and nobody's intent */
    CHECK(psd_train_count(train, "rows-pulled") == pulled[8]);
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

/* There is room for the rows of one intent, not of two: one that is over takes
 * none, and what it read stays. */
static bool intend_again(void)
{
    static const trial_t trial = {"again", "off", "1", "1", "2", "2500", "-1"};
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);
    uint64_t rows[INTENDED];
    uint64_t n_pulled = 0;

    for (uint64_t i = 0; i < INTENDED; i++) {
        rows[i] = FIRST_INTENDED + i;
    }
    psd_train_on_load(train, load_intended);
    psd_train_on(train, PSD_TRAIN_STEP, step_intended);
    CHECK(configure(train, &trial, err));
    CHECK_OK(psd_train_begin(train, err), err);
    for (uint64_t clock = 1; clock <= 2; clock++) {
        CHECK_OK(psd_train_intent(train, 0, rows, INTENDED, clock, clock, err), err);
        CHECK_ERROR(psd_train_intent(train, 0, rows, INTENDED, 2, 2, err), PSD_LIMIT, "keep-bytes",
                    err);
        CHECK(run_clock(train, true, err));
    }
    n_pulled = psd_train_count(train, "rows-pulled");
    CHECK(run_clock(train, true, err));
    CHECK(psd_train_count(train, "rows-pulled") == n_pulled);
    CHECK_OK(psd_train_intent(train, 0, rows, INTENDED, 1, 2, err), err);
    CHECK_OK(psd_train_intent(train, 0, rows, INTENDED, 4, 4, err), err);
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

/* ---- two workers --------------------------------------------------------- */

#define STALENESS 2
#define DELAY 1

typedef struct peer {
    int rank;
    const char *pipeline;
    const char *name;
    pthread_t thread;
    bool good;
    int n_bad;
} peer_t;

static psd_status_t load_both(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    const uint64_t rows[] = {0, 1};

    (void)user;
    (void)block;
    return psd_loader_rows(loader, 0, rows, 2, err);
}

/* Each clock is a block, and adds one to the worker's own row. */
static psd_status_t step_both(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    peer_t *peer = user;
    double clock = (double)*(const uint64_t *)block;
    double late = strcmp(peer->pipeline, "on") == 0 ? 1 : 0;
    double own = psd_trainer_get_f64(trainer, 0, (uint64_t)peer->rank, 0) - peer->rank;
    double other = psd_trainer_get_f64(trainer, 0, 1 - (uint64_t)peer->rank, 0) - (1 - peer->rank);

    (void)err;
    if (own < clock - 1 - late || own > clock - 1 || other < clock - 1 - late - STALENESS - DELAY ||
        other > CLOCKS) {
        (void)fprintf(stderr, "worker %d, clock %g: own %g, other %g\n", peer->rank, clock, own,
                      other);
        peer->n_bad++;
    }
    psd_trainer_add_f64(trainer, 0, (uint64_t)peer->rank, 0, 1);
    return PSD_OK;
}

static bool work_as_peer(peer_t *peer, psd_train_t *train, psd_error_t *err)
{
    const char *rank = peer->rank == 0 ? "0" : "1";
    const char *const pairs[][2] = {{"endpoint", endpoint},
                                    {"job", peer->name},
                                    {"worker", rank},
                                    {"workers", "2"},
                                    {"max-delay", "1"},
                                    {"staleness", "2"},
                                    {"pipeline", peer->pipeline}};
    psd_spec_t *spec = psd_spec_new();
    const uint64_t row = (uint64_t)peer->rank;
    const float first = (float)peer->rank;
    uint32_t table = 7;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    CHECK_OK(psd_spec_set(spec, "rows", "2", err), err);
    psd_train_on_load(train, load_both);
    psd_train_on(train, PSD_TRAIN_STEP, step_both);
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK_OK(psd_train_table(train, peer->name, spec, &table, err), err);
    CHECK_OK(psd_train_add_to_server(train, 0, &row, 1, &first, 1, err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    psd_spec_destroy(&spec);
    CHECK_OK(psd_train_begin(train, err), err);
    for (uint64_t clock = 1; clock <= CLOCKS; clock++) {
        uint64_t *block = malloc(sizeof *block);

        *block = clock;
        CHECK_OK(psd_train_clock_begin(train, err), err);
        CHECK_OK(psd_train_push_block(train, block, free, CALL_MS, err), err);
        CHECK_OK(psd_train_clock_end(train, err), err);
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    CHECK(peer->n_bad == 0);
    /* A row is asked for every third clock at most when nothing spoils it; its
     * own may be spoiled. */
    CHECK(psd_train_count(train, "rows-pulled") < 2 * CLOCKS);
    return true;
}

static void *run_peer(void *arg)
{
    peer_t *peer = arg;
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(peer);

    peer->good = work_as_peer(peer, train, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return NULL;
}

static bool keep_together(const char *name, const char *pipeline)
{
    peer_t peers[2];

    for (int i = 0; i < 2; i++) {
        peers[i] = (peer_t){.rank = i, .name = name, .pipeline = pipeline};
        CHECK(pthread_create(&peers[i].thread, NULL, run_peer, &peers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(peers[i].thread, NULL);
    }
    CHECK(peers[0].good && peers[1].good);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && keep_alone();
    ok = ok && keep_under_bsp();
    ok = ok && fetch_ahead();
    ok = ok && intend_again();
    ok = ok && keep_together("together", "off");
    ok = ok && keep_together("together-on", "on");
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
