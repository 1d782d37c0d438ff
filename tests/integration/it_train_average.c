/* SPDX-License-Identifier: Apache-2.0 */
/* Average-based methods by adding deltas: the mean of the workers' models x_i
 * is x + sum of (x_i - x) / n. Iterative model averaging, whose values are
 * exact here, and consensus ADMM; each worker has one target c_i a column, and
 * the best common model is their mean. */
#include <psd_train.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define CALL_MS 60000
#define WORKERS 4
#define COLS 8
#define CLOCKS 40
#define LOCAL_STEPS 3 /* of gradient descent, between two averages */

static const char *endpoint;

typedef struct job {
    const char *name;
    int rank;
    pthread_t thread;
    bool good;
    double u[COLS];    /* ADMM: scaled dual variables */
    double seen[COLS]; /* what the last step saw */
    double wanted[COLS];
    double off; /* greatest difference from what was wanted */
} job_t;

static double target(int rank, uint32_t col)
{
    return (double)((rank * 5 + (int)col * 3) % 16);
}

static double mean_target(uint32_t col)
{
    double sum = 0;

    for (int i = 0; i < WORKERS; i++) {
        sum += target(i, col);
    }
    return sum / WORKERS;
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    return psd_loader_table(loader, 0, err);
}

/* x_i after some steps from x: halfway to the target each time. */
static double walk(double x, int rank, uint32_t col)
{
    for (int i = 0; i < LOCAL_STEPS; i++) {
        x -= 0.5 * (x - target(rank, col));
    }
    return x;
}

static psd_status_t average(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    job_t *job = user;

    (void)block;
    (void)err;
    for (uint32_t col = 0; col < COLS; col++) {
        double x = psd_trainer_get_f64(trainer, 0, 0, col);
        double next = 0;

        job->seen[col] = x;
        job->off = fmax(job->off, fabs(x - job->wanted[col]));
        for (int i = 0; i < WORKERS; i++) {
            next += walk(x, i, col);
        }
        job->wanted[col] = next / WORKERS;
        psd_trainer_add_f64(trainer, 0, 0, col, (walk(x, job->rank, col) - x) / WORKERS);
    }
    return PSD_OK;
}

/* Boyd et al. 2010, section 7.1.1, with rho 1: the mean of x_i + u_i is z. */
static psd_status_t admm(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    job_t *job = user;

    (void)err;
    for (uint32_t col = 0; col < COLS; col++) {
        double z = psd_trainer_get_f64(trainer, 0, 0, col);
        double x = 0;

        if (block != NULL) { /* the first block has no step before it */
            job->u[col] += job->seen[col] - z;
        }
        x = (target(job->rank, col) + z - job->u[col]) / 2;
        job->seen[col] = x;
        psd_trainer_add_f64(trainer, 0, 0, col, (x + job->u[col] - z) / WORKERS);
    }
    return PSD_OK;
}

static bool run(job_t *job, psd_train_t *train, psd_error_t *err)
{
    bool by_admm = strcmp(job->name, "admm") == 0;
    char rank[8];
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;
    const uint64_t row = 0;
    double values[COLS];

    (void)snprintf(rank, sizeof rank, "%d", job->rank);
    CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(train, "job", job->name, err), err);
    CHECK_OK(psd_train_set(train, "worker", rank, err), err);
    CHECK_OK(psd_train_set(train, "workers", "4", err), err);
    CHECK_OK(psd_train_set(train, "max-delay", "0", err), err);
    CHECK_OK(psd_train_set(train, "pipeline", "off", err), err);
    psd_train_on_load(train, load);
    psd_train_on(train, PSD_TRAIN_STEP, by_admm ? admm : average);
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "1", err), err);
    CHECK_OK(psd_spec_set(spec, "cols", "8", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "f64", err), err);
    CHECK_OK(psd_train_table(train, job->name, spec, &table, err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    psd_spec_destroy(&spec);
    CHECK_OK(psd_train_begin(train, err), err);
    for (int i = 0; i < CLOCKS; i++) {
        CHECK_OK(psd_train_clock_begin(train, err), err);
        CHECK_OK(psd_train_push_block(train, i == 0 ? NULL : &table, NULL, CALL_MS, err), err);
        CHECK_OK(psd_train_clock_end(train, err), err);
    }
    CHECK_OK(psd_train_end(train, CALL_MS, err), err);
    /* Others may not have ended their last clock: any value between is good. */
    CHECK_OK(psd_pull(psd_train_table_handle(train, 0), &row, 1, values, COLS, err), err);
    for (uint32_t col = 0; col < COLS; col++) {
        CHECK(fabs(values[col] - mean_target(col)) < 1e-6);
    }
    CHECK(job->off < 1e-12);
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

static bool finds_the_mean(const char *name)
{
    job_t jobs[WORKERS];
    bool good = true;

    for (int i = 0; i < WORKERS; i++) {
        jobs[i] = (job_t){.name = name, .rank = i};
        CHECK(pthread_create(&jobs[i].thread, NULL, run_worker, &jobs[i]) == 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        (void)pthread_join(jobs[i].thread, NULL);
        good = good && jobs[i].good;
    }
    return good;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && finds_the_mean("average") && finds_the_mean("admm");
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
