/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training gains by loading ahead, and what adding costs.
 *
 *     train_cost          prints both; exit code 1 when a bound is not kept
 *
 * Pipeline: a load call-back and a step that take as long as each other, one
 * after the other and together: the run may take 60 % of load + train.
 * Adding: 16 trainers make 10^6 adds each on 1000 cells in a clock: at most
 * 16000 values may leave the process, and the sums are exact.
 * Scattered: 1, 2 and 8 trainers make 10^5 adds each on 10^6 rows of hash keys,
 * a clock for a block: how long the block takes, and the trainers' steps in it;
 * the rest is adding up, the push and its acknowledgement. No bound.
 */
#include <psd_train.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define CALL_MS 60000
#define RUNS 5
#define BLOCKS 40
#define EACH_MS 20 /* a load, and a step */
#define TRAINERS "16"
#define ADDS 1000000
#define CELLS 1000
#define CLOCKS 3
#define SCATTERED 100000 /* adds of each trainer */
#define ROWS 1000000
#define SCATTERED_CLOCKS 15

static const char *endpoint;

static double now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* As reading from a disk, or a device that computes, would take it. */
static void pass_time(void)
{
    const struct timespec time = {.tv_nsec = EACH_MS * 1000000L};

    (void)nanosleep(&time, NULL);
}

static psd_status_t load_slowly(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    pass_time();
    return psd_loader_table(loader, 0, err);
}

static psd_status_t step_slowly(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    (void)err;
    pass_time();
    for (uint64_t row = 0; row < CELLS; row++) {
        psd_trainer_add_i64(trainer, 0, row, 0, 1);
    }
    return PSD_OK;
}

static psd_status_t add_much(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    uint64_t row = psd_trainer_id(trainer) % CELLS;

    (void)user;
    (void)block;
    (void)err;
    for (int i = 0; i < ADDS; i++) {
        psd_trainer_add_i64(trainer, 0, row, 0, 1);
        row = row + 1 == CELLS ? 0 : row + 1;
    }
    return PSD_OK;
}

static psd_status_t add_scattered(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    _Atomic uint64_t *last_us = user; /* when the last one was ready */
    uint64_t state = psd_trainer_id(trainer) + 7919U;

    (void)block;
    (void)err;
    for (int i = 0; i < SCATTERED; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
        psd_trainer_add_i64(trainer, 0, (state >> 33) % ROWS, 0, 1);
    }
    *last_us = (uint64_t)(now_ms() * 1e3);
    return PSD_OK;
}

static bool begin(psd_train_t *train, const char *name, const char *keys,
                  const char *const *options, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;

    CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(train, "job", name, err), err);
    for (; *options != NULL; options += 2) {
        CHECK_OK(psd_train_set(train, options[0], options[1], err), err);
    }
    CHECK_OK(psd_train_config_begin(train, err), err);
    if (strcmp(keys, "range") == 0) {
        CHECK_OK(psd_spec_set(spec, "rows", "1000", err), err);
    }
    CHECK_OK(psd_spec_set(spec, "keys", keys, err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_train_table(train, name, spec, &table, err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    psd_spec_destroy(&spec);
    CHECK_OK(psd_train_begin(train, err), err);
    return true;
}

static bool run_clock(psd_train_t *train, int n_blocks, psd_error_t *err)
{
    CHECK_OK(psd_train_clock_begin(train, err), err);
    for (int i = 0; i < n_blocks; i++) {
        CHECK_OK(psd_train_push_block(train, NULL, NULL, CALL_MS, err), err);
    }
    CHECK_OK(psd_train_clock_end(train, err), err);
    return true;
}

/* ---- the pipeline -------------------------------------------------------- */

static bool time_run(int number, const char *pipeline, double *ret_ms, psd_error_t *err)
{
    psd_train_t *train = psd_train_new(NULL);
    char name[40];
    double start_ms = 0;

    (void)snprintf(name, sizeof name, "pipeline.%s.%d", pipeline, number);
    psd_train_on_load(train, load_slowly);
    psd_train_on(train, PSD_TRAIN_STEP, step_slowly);
    CHECK(begin(train, name, "range", (const char *const[]){"pipeline", pipeline, NULL}, err));
    start_ms = now_ms();
    for (int i = 0; i < BLOCKS / 4; i++) {
        CHECK(run_clock(train, 4, err));
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    *ret_ms = now_ms() - start_ms;
    psd_train_destroy(&train);
    return true;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;

    return a < b ? -1 : a > b;
}

static bool measure_pipeline(psd_error_t *err)
{
    double with[RUNS];
    double without[RUNS];
    double both = 2.0 * BLOCKS * EACH_MS;

    for (int i = 0; i < RUNS; i++) {
        CHECK(time_run(i, "on", &with[i], err));
        CHECK(time_run(i, "off", &without[i], err));
    }
    qsort(with, RUNS, sizeof *with, compare);
    qsort(without, RUNS, sizeof *without, compare);
    (void)printf("load + train of %d blocks: %.0f ms\n"
                 "pipeline on:  %.0f ms (%.1f %%), of %d runs %.0f..%.0f\n"
                 "pipeline off: %.0f ms (%.1f %%), of %d runs %.0f..%.0f\n",
                 BLOCKS, both, with[RUNS / 2], 100 * with[RUNS / 2] / both, RUNS, with[0],
                 with[RUNS - 1], without[RUNS / 2], 100 * without[RUNS / 2] / both, RUNS,
                 without[0], without[RUNS - 1]);
    CHECK(with[RUNS / 2] <= 0.6 * both);
    return true;
}

/* ---- adding -------------------------------------------------------------- */

static bool check_sums(psd_train_t *train, psd_error_t *err)
{
    uint64_t rows[CELLS];
    int64_t values[CELLS];
    int64_t sum = 0;

    for (uint64_t i = 0; i < CELLS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_pull(psd_train_table_handle(train, 0), rows, CELLS, values, CELLS, err), err);
    for (size_t i = 0; i < CELLS; i++) {
        CHECK(values[i] == INT64_C(16) * ADDS / CELLS * CLOCKS);
        sum += values[i];
    }
    CHECK(sum == INT64_C(16) * ADDS * CLOCKS);
    return true;
}

static bool measure_adds(psd_error_t *err)
{
    psd_train_t *train = psd_train_new(NULL);
    double start_ms = 0;
    double run_ms = 0;
    uint64_t n_entries = 0;

    psd_train_on(train, PSD_TRAIN_STEP, add_much);
    CHECK(begin(train, "adds", "range", (const char *const[]){"trainers", TRAINERS, NULL}, err));
    start_ms = now_ms();
    for (int i = 0; i < CLOCKS; i++) {
        CHECK(run_clock(train, 1, err));
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    run_ms = now_ms() - start_ms;
    n_entries = psd_train_count(train, "entries-pushed") / CLOCKS;
    (void)printf("16 trainers x %d adds on %d cells a clock: %llu values leave "
                 "the process, %.1f ms a clock, %.1f ns an add\n",
                 ADDS, CELLS, (unsigned long long)n_entries, run_ms / CLOCKS,
                 run_ms * 1e6 / CLOCKS / 16 / ADDS);
    CHECK(n_entries <= 16000);
    CHECK(psd_train_count(train, "adds") == UINT64_C(16) * ADDS * CLOCKS);
    CHECK(check_sums(train, err));
    psd_train_destroy(&train);
    return true;
}

static bool measure_scattered(const char *trainers, psd_error_t *err)
{
    _Atomic uint64_t last_us = 0;
    psd_train_t *train = psd_train_new(&last_us);
    double block_ms[SCATTERED_CLOCKS];
    double step_ms[SCATTERED_CLOCKS];
    char name[32];

    (void)snprintf(name, sizeof name, "scattered.%s", trainers);
    psd_train_on(train, PSD_TRAIN_STEP, add_scattered);
    CHECK(begin(train, name, "hash", (const char *const[]){"trainers", trainers, NULL}, err));
    for (int i = 0; i < SCATTERED_CLOCKS; i++) {
        double start_ms = now_ms();

        CHECK(run_clock(train, 1, err));
        CHECK_OK(psd_train_wait(train, CALL_MS, err), err);
        block_ms[i] = now_ms() - start_ms;
        step_ms[i] = (double)last_us / 1e3 - start_ms;
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    qsort(block_ms, SCATTERED_CLOCKS, sizeof *block_ms, compare);
    qsort(step_ms, SCATTERED_CLOCKS, sizeof *step_ms, compare);
    (void)printf("%s trainers x %d adds on %d rows: a block %.1f ms, of which "
                 "steps %.1f ms\n",
                 trainers, SCATTERED, ROWS, block_ms[SCATTERED_CLOCKS / 2],
                 step_ms[SCATTERED_CLOCKS / 2]);
    psd_train_destroy(&train);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    psd_error_t *err = psd_error_new();
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && measure_adds(err) && measure_scattered("1", err) && measure_scattered("2", err) &&
         measure_scattered("8", err) && measure_pipeline(err);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
