/* SPDX-License-Identifier: Apache-2.0 */
/* Four worker processes, 200 clocks: nothing is lost, nobody runs ahead of the
 * bound, and with max_delay 0 the same job ends with the same bytes, also when
 * its clocks end with a push, and when a clock's deltas are added up first. */
#include <math.h>
#include <psd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"

#define WORKERS 4
#define CLOCKS 200
#define CLOCKS_SUMMED 40
#define ROWS 10000
#define PER_CLOCK 1000
#define LOOK_EVERY 20 /* clocks between two looks at the whole table */

/* What the workers of one run share; made before they are. */
typedef struct shared {
    _Atomic uint64_t finished[WORKERS]; /* counted before the mark is sent */
    _Atomic uint64_t widest;            /* spread seen at a served pull */
} shared_t;

typedef struct run {
    const char *endpoint;
    const char *name; /* of the job and of its table */
    int32_t max_delay;
    bool is_float; /* deltas of all sizes, whose sum depends on the order */
    bool joined;   /* clocks end with a push, some with one that is refused */
    unsigned naps; /* seed of the pauses only */
    uint64_t n_clocks;
    const char *combine; /* of the table */
    shared_t *shared;
} run_t;

/* xorshift64* (Vigna, 2016) */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static void nap(uint64_t *state)
{
    struct timespec time = {.tv_nsec = (long)(next_random(state) % 1500000)};

    if (next_random(state) % 4 == 0) {
        (void)nanosleep(&time, NULL);
    }
}

/* Everybody has finished as many clocks as the bound asks for. */
static bool bound_holds(const run_t *run, uint64_t clock)
{
    for (int i = 0; i < WORKERS; i++) {
        uint64_t other = atomic_load(&run->shared->finished[i]);

        if (clock > other && clock - other > run->shared->widest) {
            run->shared->widest = clock - other;
        }
        CHECK(run->max_delay < 0 || other + (uint64_t)run->max_delay >= clock);
    }
    return true;
}

/* The sum of the whole table says which clocks are in it. */
static bool sum_fits(const run_t *run, psd_client_t *client, psd_table_t *table, uint64_t clock,
                     psd_error_t *err)
{
    static int64_t values[ROWS];
    const int64_t per_clock = (int64_t)WORKERS * PER_CLOCK;
    int64_t least = 0;
    int64_t sum = 0;
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(all);
    CHECK_OK(psd_pull_start(table, all, values, ROWS, NULL, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, 60000, err), err);
    psd_select_destroy(&all);
    for (int i = 0; i < ROWS; i++) {
        sum += values[i];
    }
    if (run->max_delay == 0) {
        CHECK(sum == (int64_t)clock * per_clock);
    } else if (run->max_delay > 0 && clock > (uint64_t)run->max_delay) {
        least = (int64_t)(clock - (uint64_t)run->max_delay) * per_clock;
        CHECK(sum >= least);
    }
    return true;
}

static void make_deltas(const run_t *run, uint64_t *state, uint64_t *rows, void *deltas)
{
    for (size_t i = 0; i < PER_CLOCK; i++) {
        rows[i] = next_random(state) % ROWS;
        if (run->is_float) {
            ((float *)deltas)[i] = (float)(int64_t)next_random(state) / 1e12F;
        } else {
            ((int64_t *)deltas)[i] = 1;
        }
    }
}

/* A push, and the end of the clock with it; of every third with one behind it
 * that the server does not take. */
static bool end_with_push(const run_t *run, psd_client_t *client, psd_table_t *table,
                          const uint64_t *rows, const void *deltas, psd_error_t *err)
{
    const float nan = NAN;
    bool is_bad = run->is_float && psd_clock_count(client) % 3 == 2;
    psd_call_t *call = psd_call_new();
    psd_select_t *select = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_call_set_ends_clock(call, true);
    psd_select_rows(select, rows, is_bad ? 1 : PER_CLOCK);
    if (is_bad) {
        CHECK_OK(psd_push(table, rows, PER_CLOCK, deltas, PER_CLOCK, err), err);
    }
    CHECK_OK(psd_push_start(table, select, is_bad ? &nan : deltas, is_bad ? 1 : PER_CLOCK, call,
                            &ticket, err),
             err);
    CHECK(psd_wait(client, ticket, 60000, err) == (is_bad ? PSD_NOT_FINITE : PSD_OK));
    psd_error_clear(err);
    psd_select_destroy(&select);
    psd_call_destroy(&call);
    return true;
}

static bool work(const run_t *run, uint32_t worker, psd_client_t *client, psd_error_t *err)
{
    uint64_t rows[PER_CLOCK];
    int64_t deltas[PER_CLOCK];
    int64_t values[PER_CLOCK];
    uint64_t state = 1000 + worker; /* of rows and deltas: always the same */
    uint64_t naps = run->naps * 100 + worker + 1;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_connect(run->endpoint, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "10000", err), err);
    CHECK_OK(psd_spec_set(spec, "type", run->is_float ? "f32" : "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "combine", run->combine, err), err);
    CHECK_OK(psd_join(client, run->name, worker, WORKERS, run->max_delay, err), err);
    CHECK_OK(psd_table_ensure(client, run->name, spec, &table, err), err);
    for (uint64_t clock = 0; clock < run->n_clocks; clock++) {
        make_deltas(run, &state, rows, deltas);
        CHECK_OK(psd_pull(table, rows, PER_CLOCK, values, PER_CLOCK, err), err);
        CHECK(bound_holds(run, clock));
        nap(&naps);
        if (!run->is_float && clock % LOOK_EVERY == 0) {
            CHECK(sum_fits(run, client, table, clock, err));
        }
        if (run->joined && clock % 4 > 0) {
            nap(&naps);
            atomic_fetch_add(&run->shared->finished[worker], 1);
            CHECK(end_with_push(run, client, table, rows, deltas, err));
        } else {
            CHECK_OK(psd_push(table, rows, PER_CLOCK, deltas, PER_CLOCK, err), err);
            nap(&naps);
            atomic_fetch_add(&run->shared->finished[worker], 1);
            CHECK_OK(psd_clock(client, err), err);
        }
        CHECK(psd_clock_count(client) == clock + 1);
    }
    CHECK_OK(psd_leave(client, 60000, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static bool run_job(const run_t *run)
{
    pid_t pids[WORKERS];
    bool ok = true;

    (void)fflush(NULL);
    memset((void *)run->shared, 0, sizeof *run->shared);
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            psd_error_t *err = psd_error_new();
            bool done = work(run, i, NULL, err);

            psd_error_destroy(&err);
            _exit(done ? 0 : 1);
        }
    }
    for (int i = 0; i < WORKERS; i++) {
        int status = 0;

        ok = pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) &&
             WEXITSTATUS(status) == 0 && ok;
    }
    return ok;
}

/* The whole table, in a process of its own: this one must not have threads
 * when it forks. */
static bool read_table(const run_t *run, void *values)
{
    int status = 0;
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        psd_error_t *err = psd_error_new();
        psd_client_t *client = NULL;
        psd_table_t *table = NULL;
        psd_select_t *all = psd_select_new();
        psd_ticket_t ticket = 0;
        bool ok = false;

        psd_select_all_rows(all);
        ok = psd_connect(run->endpoint, NULL, &client, err) == PSD_OK &&
             psd_table_open(client, run->name, &table, err) == PSD_OK &&
             psd_pull_start(table, all, values, ROWS, NULL, &ticket, err) == PSD_OK &&
             psd_wait(client, ticket, 60000, err) == PSD_OK;
        if (!ok) {
            (void)fprintf(stderr, "%s\n", psd_error_text(err));
        }
        psd_select_destroy(&all);
        psd_table_close(&table);
        psd_close(&client);
        psd_error_destroy(&err);
        _exit(ok ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static bool adds_up(run_t *run, int64_t *values)
{
    int64_t sum = 0;

    CHECK(run_job(run));
    CHECK(read_table(run, values));
    for (int i = 0; i < ROWS; i++) {
        sum += values[i];
    }
    CHECK(sum == (int64_t)(WORKERS * run->n_clocks * PER_CLOCK));
    (void)printf("%s: sum %lld, widest spread %llu\n", run->name, (long long)sum,
                 (unsigned long long)run->shared->widest);
    return true;
}

static bool repeats_exactly(run_t *run, char *values)
{
    enum { SIZE = ROWS * sizeof(float) };
    static char first[SIZE];

    run->max_delay = 0;
    run->is_float = true;
    run->name = "again1";
    run->naps = 7;
    CHECK(run_job(run));
    CHECK(read_table(run, values));
    memcpy(first, values, SIZE);
    run->name = "again2";
    run->naps = 8;
    run->joined = true;
    CHECK(run_job(run));
    CHECK(read_table(run, values));
    CHECK(memcmp(first, values, SIZE) == 0);
    return true;
}

/* The same of sums: other bits, but the same at each run. */
static bool sums_repeat_exactly(run_t *run, char *values)
{
    enum { SIZE = ROWS * sizeof(float) };
    static char first[SIZE];

    run->n_clocks = CLOCKS_SUMMED;
    run->combine = "clock-mean";
    run->name = "mean1";
    run->joined = false;
    CHECK(run_job(run));
    CHECK(read_table(run, values));
    memcpy(first, values, SIZE);
    run->name = "mean2";
    run->naps = 9;
    run->joined = true;
    CHECK(run_job(run));
    CHECK(read_table(run, values));
    CHECK(memcmp(first, values, SIZE) == 0);
    return true;
}

static void *share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    shared_t *shared = share(sizeof *shared);
    int64_t *values = share(ROWS * sizeof *values);
    bool ok = shared != NULL && values != NULL && daemon_start(&daemon, NULL);
    run_t run = {.endpoint = daemon.control,
                 .shared = shared,
                 .naps = 1,
                 .n_clocks = CLOCKS,
                 .combine = "each"};

    run.name = "bsp";
    run.max_delay = 0;
    ok = ok && adds_up(&run, values);
    run.name = "ssp";
    run.max_delay = 2;
    run.joined = true;
    ok = ok && adds_up(&run, values);
    run.name = "asp";
    run.max_delay = -1;
    ok = ok && adds_up(&run, values);
    run.joined = false;
    ok = ok && repeats_exactly(&run, (char *)values);
    ok = ok && sums_repeat_exactly(&run, (char *)values);
    run.name = "sums";
    run.is_float = false;
    run.combine = "clock-sum";
    ok = ok && adds_up(&run, values);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
