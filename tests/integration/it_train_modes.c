/* SPDX-License-Identifier: Apache-2.0 */
/* What the options of a training promise: without a pipeline the bits of a
 * sequential program; with one, a block is loaded while the one before is
 * trained on; what a cache shows of adds under each lock; elements; many adds
 * that become few. */
#include <psd_train.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define CALL_MS 60000
#define ROWS 64
#define BLOCKS 12
#define TRAINERS 4
#define ADDS 20000 /* of each trainer, to each of CELLS */
#define CELLS 10

static const char *endpoint;

typedef struct block {
    uint64_t number; /* from 1 */
    uint64_t rows[ROWS / 2];
} block_t;

typedef struct test {
    psd_train_t *train;
    block_t blocks[BLOCKS];
    atomic_int n_bad;
    atomic_ullong loading; /* the newest block that a load was called for */
    atomic_ullong stepped; /* the newest block whose step has ended */
    int64_t expected[3];   /* in the cache behind all adds: least, most */
    pthread_barrier_t meeting;
} test_t;

/* One worker, its table "NAME" of ROWS rows, and pairs of option and value up
 * to NULL. */
static bool begin(test_t *test, const char *name, const char *cols, const char *type,
                  const char *const *options, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;

    for (uint64_t i = 0; i < BLOCKS; i++) {
        test->blocks[i].number = i + 1;
        for (uint64_t k = 0; k < ROWS / 2; k++) {
            test->blocks[i].rows[k] = (k * (2 * i + 1) + i) % ROWS;
        }
    }
    CHECK_OK(psd_train_set(test->train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(test->train, "job", name, err), err);
    for (; *options != NULL; options += 2) {
        CHECK_OK(psd_train_set(test->train, options[0], options[1], err), err);
    }
    CHECK_OK(psd_train_config_begin(test->train, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "64", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", cols, err), err);
    CHECK_OK(psd_spec_set(spec, "type", type, err), err);
    CHECK_OK(psd_train_table(test->train, name, spec, &table, err), err);
    CHECK_OK(psd_train_config_end(test->train, err), err);
    psd_spec_destroy(&spec);
    CHECK_OK(psd_train_begin(test->train, err), err);
    return true;
}

/* Feeds all blocks, two a clock. */
static bool feed(test_t *test, psd_error_t *err)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 2 == 0) {
            CHECK_OK(psd_train_clock_begin(test->train, err), err);
        }
        CHECK_OK(psd_train_push_block(test->train, &test->blocks[i], NULL, CALL_MS, err), err);
        if (i % 2 == 1) {
            CHECK_OK(psd_train_clock_end(test->train, err), err);
        }
    }
    CHECK_OK(psd_train_end(test->train, CALL_MS, err), err);
    CHECK(test->n_bad == 0);
    return true;
}

/* A clock of n blocks without anything in them. */
static bool feed_empty(test_t *test, int n, psd_error_t *err)
{
    CHECK_OK(psd_train_clock_begin(test->train, err), err);
    for (int i = 0; i < n; i++) {
        CHECK_OK(psd_train_push_block(test->train, NULL, NULL, CALL_MS, err), err);
    }
    CHECK_OK(psd_train_clock_end(test->train, err), err);
    CHECK_OK(psd_train_end(test->train, CALL_MS, err), err);
    CHECK(test->n_bad == 0);
    return true;
}

static bool read_table(test_t *test, void *values, size_t n_values, psd_error_t *err)
{
    psd_select_t *all = psd_select_new();
    psd_client_t *client = psd_train_client(test->train);
    psd_ticket_t ticket = 0;

    CHECK(client != NULL);
    psd_select_all_rows(all);
    CHECK_OK(psd_pull_start(psd_train_table_handle(test->train, 0), all, values, n_values, NULL,
                            &ticket, err),
             err);
    CHECK_OK(psd_wait(client, ticket, CALL_MS, err), err);
    psd_select_destroy(&all);
    return true;
}

static psd_status_t load_rows(void *user, psd_loader_t *loader, void *block_p, psd_error_t *err)
{
    const block_t *block = block_p;
    test_t *test = user;

    atomic_store(&test->loading, block->number);
    return psd_loader_rows(loader, 0, block->rows, ROWS / 2, err);
}

/* ---- the bits of a sequential program ------------------------------------ */

static float delta_of(float value, uint64_t block, uint64_t row)
{
    return 0.3F * ((float)row + 1.1F) / ((float)block + 0.7F) - value * 0.37F;
}

static psd_status_t learn(void *user, psd_trainer_t *trainer, void *block_p, psd_error_t *err)
{
    const block_t *block = block_p;
    size_t first = 0;
    size_t end = 0;

    (void)user;
    (void)err;
    psd_trainer_share(trainer, ROWS / 2, &first, &end);
    for (size_t i = first; i < end; i++) {
        const float *value = psd_trainer_row(trainer, 0, block->rows[i]);
        float delta = 0;

        if (value != NULL) {
            delta = delta_of(*value, block->number, block->rows[i]);
        }
        psd_trainer_add_row(trainer, 0, block->rows[i], &delta, 1);
    }
    return PSD_OK;
}

/* The same with pulls and pushes. */
static bool learn_alone(const test_t *test, const char *name, int32_t max_delay, float *ret_values,
                        psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    uint64_t rows[ROWS];
    float values[ROWS];
    float deltas[ROWS];

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_join(client, name, 0, 1, max_delay, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "64", err), err);
    CHECK_OK(psd_table_ensure(client, name, spec, &table, err), err);
    for (size_t i = 0; i < BLOCKS; i++) {
        const block_t *block = &test->blocks[i];

        CHECK_OK(psd_pull(table, block->rows, ROWS / 2, values, ROWS / 2, err), err);
        for (size_t k = 0; k < ROWS / 2; k++) {
            deltas[k] = delta_of(values[k], block->number, block->rows[k]);
        }
        CHECK_OK(psd_push(table, block->rows, ROWS / 2, deltas, ROWS / 2, err), err);
        if (i % 2 == 1) {
            CHECK_OK(psd_clock(client, err), err);
        }
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_pull(table, rows, ROWS, ret_values, ROWS, err), err);
    CHECK_OK(psd_leave(client, CALL_MS, err), err);
    psd_spec_destroy(&spec);
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

static bool equals_alone(const char *max_delay, const char *trainers, psd_error_t *err)
{
    static test_t test;
    char name[40];
    char other[64];
    float values[ROWS];
    float wanted[ROWS];

    (void)snprintf(name, sizeof name, "exact.%s.%s", max_delay, trainers);
    (void)snprintf(other, sizeof other, "%s.alone", name);
    test.train = psd_train_new(&test);
    psd_train_on_load(test.train, load_rows);
    psd_train_on(test.train, PSD_TRAIN_STEP, learn);
    CHECK(begin(&test, name, "1", "f32",
                (const char *const[]){"pipeline", "off", "trainers", trainers, "max-delay",
                                      max_delay, NULL},
                err));
    CHECK(feed(&test, err));
    CHECK(read_table(&test, values, ROWS, err));
    psd_train_destroy(&test.train);
    CHECK(learn_alone(&test, other, max_delay[0] == '-' ? -1 : 0, wanted, err));
    CHECK(memcmp(values, wanted, sizeof values) == 0);
    CHECK(values[1] != 0);
    return true;
}

/* ---- the pipeline -------------------------------------------------------- */

/* True when that many have been pulled, soon enough. */
static bool wait_pulled(const test_t *test, uint64_t n)
{
    const struct timespec step = {.tv_nsec = 1000000};

    for (int i = 0; i < CALL_MS; i++) {
        if (psd_train_count(test->train, "rows-pulled") >= n &&
            atomic_load(&test->loading) * (ROWS / 2) >= n) {
            return true;
        }
        (void)nanosleep(&step, NULL);
    }
    return false;
}

/* A block's step goes on only when the next block has been asked for: without
 * overlap it would never end. What it sees is older by one block, exactly. */
static psd_status_t step_in_pipeline(void *user, psd_trainer_t *trainer, void *block_p,
                                     psd_error_t *err)
{
    const block_t *block = block_p;
    test_t *test = user;
    uint64_t next = block->number < BLOCKS ? block->number + 1 : block->number;
    int64_t seen = block->number < 2 ? 0 : (int64_t)block->number - 2;

    if (!wait_pulled(test, next * (ROWS / 2))) {
        return psd_error_set(err, PSD_FAILED, "the next block is not loaded");
    }
    for (size_t i = 0; i < ROWS / 2; i++) {
        if (psd_trainer_get_i64(trainer, 0, block->rows[i], 0) != seen) {
            atomic_fetch_add(&test->n_bad, 1);
        }
    }
    for (uint64_t row = 0; row < ROWS; row++) {
        psd_trainer_add_i64(trainer, 0, row, 0, 1);
    }
    return PSD_OK;
}

static bool overlaps(psd_error_t *err)
{
    static test_t test;

    test.train = psd_train_new(&test);
    psd_train_on_load(test.train, load_rows);
    psd_train_on(test.train, PSD_TRAIN_STEP, step_in_pipeline);
    CHECK(begin(&test, "overlap", "1", "i64", (const char *const[]){"max-delay", "-1", NULL}, err));
    CHECK(feed(&test, err));
    psd_train_destroy(&test.train);
    return true;
}

/* Without it the next block is not looked at before the push of this one. */
static psd_status_t step_alone(void *user, psd_trainer_t *trainer, void *block_p, psd_error_t *err)
{
    const block_t *block = block_p;
    test_t *test = user;

    (void)err;
    if (atomic_load(&test->loading) != block->number ||
        psd_trainer_get_i64(trainer, 0, block->rows[0], 0) != (int64_t)block->number - 1) {
        atomic_fetch_add(&test->n_bad, 1);
    }
    for (uint64_t row = 0; row < ROWS; row++) {
        psd_trainer_add_i64(trainer, 0, row, 0, 1);
    }
    return PSD_OK;
}

static const char *const FRESH[] = {"max-delay", "-1", "pipeline", "off", NULL};

static bool takes_turns(psd_error_t *err)
{
    static test_t test;

    test.train = psd_train_new(&test);
    psd_train_on_load(test.train, load_rows);
    psd_train_on(test.train, PSD_TRAIN_STEP, step_alone);
    CHECK(begin(&test, "turns", "1", "i64", FRESH, err));
    CHECK(feed(&test, err));
    psd_train_destroy(&test.train);
    return true;
}

/* ---- locks --------------------------------------------------------------- */

static psd_status_t load_all(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    return psd_loader_table(loader, 0, err);
}

static psd_status_t add_ones(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    const int64_t one = 1;
    test_t *test = user;

    (void)block;
    (void)err;
    for (uint64_t i = 0; i < ADDS; i++) {
        for (uint64_t row = 0; row < CELLS; row++) {
            if (i % 2 == 0) {
                psd_trainer_add_i64(trainer, 0, row, 0, 1);
            } else {
                psd_trainer_add_row(trainer, 0, row, &one, 1);
            }
        }
    }
    (void)pthread_barrier_wait(&test->meeting);
    for (uint64_t row = 0; row < CELLS; row++) {
        int64_t value = psd_trainer_get_i64(trainer, 0, row, 0);
        int64_t copy = 0;

        if (!psd_trainer_get_row(trainer, 0, row, &copy, 1) || copy != value ||
            value < test->expected[0] || value > test->expected[1]) {
            atomic_fetch_add(&test->n_bad, 1);
        }
    }
    return PSD_OK;
}

/* The server is exact whatever the lock; the cache has at least and at most. */
static bool adds_up(const char *lock, int64_t least, int64_t most, psd_error_t *err)
{
    static test_t test;
    int64_t values[ROWS];

    test = (test_t){.expected = {least, most}};
    CHECK(pthread_barrier_init(&test.meeting, NULL, TRAINERS) == 0);
    test.train = psd_train_new(&test);
    psd_train_on_load(test.train, load_all);
    psd_train_on(test.train, PSD_TRAIN_STEP, add_ones);
    CHECK(begin(&test, lock, "1", "i64", (const char *const[]){"lock", lock, "trainers", "4", NULL},
                err));
    CHECK(feed_empty(&test, 1, err));
    CHECK(psd_train_count(test.train, "adds") == (uint64_t)TRAINERS * ADDS * CELLS);
    CHECK(psd_train_count(test.train, "entries-pushed") == CELLS);
    CHECK(read_table(&test, values, ROWS, err));
    for (int i = 0; i < ROWS; i++) {
        CHECK(values[i] == (i < CELLS ? TRAINERS * ADDS : 0));
    }
    psd_train_destroy(&test.train);
    (void)pthread_barrier_destroy(&test.meeting);
    return true;
}

/* ---- elements ------------------------------------------------------------ */

#define COLS 500

static psd_status_t load_elements(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    (void)user;
    (void)block;
    for (uint64_t row = 0; rc == PSD_OK && row < ROWS; row++) {
        for (uint32_t col = 7; rc == PSD_OK && col < COLS; col += 100) {
            rc = psd_loader_element(loader, 0, row, col, err);
        }
    }
    return rc;
}

static psd_status_t check_elements(void *user, psd_trainer_t *trainer, void *block,
                                   psd_error_t *err)
{
    test_t *test = user;

    (void)block;
    (void)err;
    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint32_t col = 7; col < COLS; col += 100) {
            double wanted =
                psd_train_count(test->train, "blocks") == 0 ? 0 : (double)row * 1000 + (double)col;

            if (psd_trainer_get_f64(trainer, 0, row, col) != wanted) {
                atomic_fetch_add(&test->n_bad, 1);
            }
            psd_trainer_add_f64(trainer, 0, row, col, (double)row * 1000 + (double)col);
        }
        psd_trainer_add_f64(trainer, 0, row, 8, 1); /* not asked for */
    }
    return PSD_OK;
}

static bool elements_come_by_themselves(psd_error_t *err)
{
    static test_t test;

    test.train = psd_train_new(&test);
    psd_train_on_load(test.train, load_elements);
    psd_train_on(test.train, PSD_TRAIN_STEP, check_elements);
    CHECK(begin(&test, "elements", "500", "f64", FRESH, err));
    CHECK(feed_empty(&test, 2, err));
    CHECK(psd_train_count(test.train, "cells-pulled") == 2 * ROWS * 5);
    CHECK(psd_train_count(test.train, "rows-pulled") == 0);
    psd_train_destroy(&test.train);
    return true;
}

/* A row is added of which all, or some elements, are here. */
static psd_status_t add_whole_rows(void *user, psd_trainer_t *trainer, void *block,
                                   psd_error_t *err)
{
    test_t *test = user;
    double deltas[COLS];

    (void)block;
    (void)err;
    for (uint64_t row = 0; row < ROWS; row++) {
        for (uint32_t col = 0; col < COLS; col++) {
            deltas[col] = (double)row * 1000 + (double)col + 1;
        }
        psd_trainer_add_row(trainer, 0, row, deltas, COLS);
        for (uint32_t col = 7; col < COLS; col += 100) {
            if (psd_trainer_get_f64(trainer, 0, row, col) != deltas[col]) {
                atomic_fetch_add(&test->n_bad, 1);
            }
        }
    }
    return PSD_OK;
}

static bool rows_reach(const char *lock, psd_train_load_t *load, psd_error_t *err)
{
    static test_t test;
    static double values[ROWS * COLS];
    const char *name = load == load_all ? "rows.whole" : "rows.elements";

    test.train = psd_train_new(&test);
    psd_train_on_load(test.train, load);
    psd_train_on(test.train, PSD_TRAIN_STEP, add_whole_rows);
    CHECK(begin(&test, name, "500", "f64", (const char *const[]){"lock", lock, NULL}, err));
    CHECK(feed_empty(&test, 1, err));
    CHECK(read_table(&test, values, (size_t)ROWS * COLS, err));
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++) {
        CHECK(values[i] == (double)(i / COLS * 1000 + i % COLS + 1));
    }
    psd_train_destroy(&test.train);
    return true;
}

/* Each row's elements are of columns of their own, so that each row is a pull,
 * and most of them go out when their parcel has long been started. */
#define LONELY 4000
#define LONELY_COLS 5000

static uint32_t lonely_col(uint64_t row, uint32_t number)
{
    return (uint32_t)((row * 7 + (uint64_t)number * 1301) % LONELY_COLS);
}

static psd_status_t load_lonely(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    (void)user;
    (void)block;
    for (uint64_t row = 0; rc == PSD_OK && row < LONELY; row++) {
        for (uint32_t i = 0; rc == PSD_OK && i < 3; i++) {
            rc = psd_loader_element(loader, 0, row, lonely_col(row, i), err);
        }
    }
    return rc;
}

static psd_status_t check_lonely(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    test_t *test = user;

    (void)block;
    (void)err;
    for (uint64_t row = 0; row < LONELY; row++) {
        for (uint32_t i = 0; i < 3; i++) {
            if (psd_trainer_get_i64(trainer, 0, row, lonely_col(row, i)) != 7) {
                atomic_fetch_add(&test->n_bad, 1);
            }
        }
    }
    return PSD_OK;
}

static bool elements_come_in_many_pulls(psd_error_t *err)
{
    static test_t test;
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;

    test.train = psd_train_new(&test);
    psd_train_on_load(test.train, load_lonely);
    psd_train_on(test.train, PSD_TRAIN_STEP, check_lonely);
    CHECK_OK(psd_train_set(test.train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(test.train, "job", "lonely", err), err);
    CHECK_OK(psd_train_config_begin(test.train, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "4000", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "5000", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i32", err), err);
    CHECK_OK(psd_spec_set(spec, "init", "constant:7", err), err);
    CHECK_OK(psd_train_table(test.train, "lonely", spec, &table, err), err);
    psd_spec_destroy(&spec);
    CHECK_OK(psd_train_config_end(test.train, err), err);
    CHECK_OK(psd_train_begin(test.train, err), err);
    CHECK(feed_empty(&test, 1, err));
    psd_train_destroy(&test.train);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    psd_error_t *err = psd_error_new();
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && equals_alone("0", "1", err) && equals_alone("-1", "1", err) &&
         equals_alone("0", "3", err) && equals_alone("-1", "3", err);
    ok = ok && overlaps(err) && takes_turns(err);
    ok = ok && adds_up("immutable", 0, 0, err);
    ok = ok && adds_up("lock-free", 1, TRAINERS * ADDS, err);
    ok = ok && adds_up("locked", TRAINERS * ADDS, TRAINERS * ADDS, err);
    ok = ok && elements_come_by_themselves(err);
    ok = ok && rows_reach("lock-free", load_elements, err);
    ok = ok && rows_reach("locked", load_all, err);
    ok = ok && elements_come_in_many_pulls(err);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
