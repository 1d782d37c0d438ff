/* SPDX-License-Identifier: Apache-2.0 */
/* First values come once, whenever a worker is lost: before it added them,
 * while it did, or after that; or an error says that it is not known. */
#include <psd_train.h>
#include <pthread.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define CALL_MS 60000
#define ROWS 4

static const char *endpoint;

/* One life of a worker. */
typedef struct life {
    const char *job;
    const char *max_delay;
    const char *rank;
    const char *workers;
    psd_train_t *train;
    pthread_t thread;
    bool good;
} life_t;

static bool join_job(life_t *life, psd_error_t *err)
{
    life->train = psd_train_new(NULL);
    CHECK_OK(psd_train_set(life->train, "endpoint", endpoint, err), err);
    CHECK_OK(psd_train_set(life->train, "job", life->job, err), err);
    CHECK_OK(psd_train_set(life->train, "max-delay", life->max_delay, err), err);
    CHECK_OK(psd_train_set(life->train, "worker", life->rank, err), err);
    CHECK_OK(psd_train_set(life->train, "workers", life->workers, err), err);
    CHECK_OK(psd_train_config_begin(life->train, err), err);
    return true;
}

/* Behind it the worker has the table of the job's name. */
static bool begin(life_t *life, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 1;

    CHECK(join_job(life, err));
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_train_table(life->train, life->job, spec, &table, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static psd_status_t add(const life_t *life, psd_error_t *err)
{
    const uint64_t rows[ROWS] = {0, 1, 2, 3};
    const float values[ROWS] = {5, 6, 7, 8};
    psd_status_t rc = psd_train_add_to_server(life->train, 0, rows, 2, values, 2, err);

    return rc == PSD_OK ? psd_train_add_to_server(life->train, 0, rows + 2, 2, values + 2, 2, err)
                        : rc;
}

/* The table has the values once. */
static bool have_come(const life_t *life, psd_error_t *err)
{
    const uint64_t rows[ROWS] = {0, 1, 2, 3};
    float values[ROWS] = {0};

    CHECK_OK(psd_pull(psd_train_table_handle(life->train, 0), rows, ROWS, values, ROWS, err), err);
    for (int i = 0; i < ROWS; i++) {
        CHECK(values[i] == (float)(5 + i));
    }
    return true;
}

/* An updater takes them for gradients, and other values would be in the table. */
static bool refuses_another_updater(psd_error_t *err)
{
    const char *text = "table \"steps\" has updater sgd, which would change first values; allowed: "
                       "updater add or assign";
    life_t life = {.job = "steps", .max_delay = "0", .rank = "0", .workers = "1"};
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 1;

    CHECK(join_job(&life, err));
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "updater", "sgd", err), err);
    CHECK_OK(psd_train_table(life.train, life.job, spec, &table, err), err);
    CHECK(add(&life, err) == PSD_INVALID && strstr(psd_error_text(err), text) != NULL);
    CHECK(psd_train_load(life.train, 0, "none", err) == PSD_INVALID);
    CHECK(strstr(psd_error_text(err), text) != NULL);
    psd_spec_destroy(&spec);
    psd_train_destroy(&life.train);
    return true;
}

/* A life that does all; it ends in the middle of its job. */
static bool live(life_t *life, psd_error_t *err)
{
    CHECK(begin(life, err));
    CHECK_OK(add(life, err), err);
    CHECK_OK(psd_train_config_end(life->train, err), err);
    CHECK(have_come(life, err));
    psd_train_destroy(&life->train);
    return true;
}

static bool once_in_a_job_that_starts_again(const char *max_delay, psd_error_t *err)
{
    char job[40];
    life_t life = {.job = job, .max_delay = max_delay, .rank = "0", .workers = "1"};

    (void)snprintf(job, sizeof job, "again.%s", max_delay);
    CHECK(live(&life, err) && live(&life, err));
    /* A table that was dropped begins anew. */
    CHECK(begin(&life, err));
    CHECK_OK(psd_table_drop(psd_train_client(life.train), job, err), err);
    psd_train_destroy(&life.train);
    CHECK(live(&life, err) && live(&life, err));
    return true;
}

static bool in_part_is_an_error(psd_error_t *err)
{
    life_t life = {.job = "part", .max_delay = "0", .rank = "0", .workers = "1"};
    const uint64_t far = 100;
    const float value = 1;

    CHECK(begin(&life, err));
    CHECK_OK(add(&life, err), err);
    psd_train_destroy(&life.train);
    for (int i = 0; i < 2; i++) {
        CHECK(begin(&life, err));
        CHECK_ERROR(add(&life, err), PSD_FAILED,
                    "it is not known whether those of worker 0 have arrived", err);
        if (i == 1) {
            CHECK_OK(psd_table_drop(psd_train_client(life.train), "part", err), err);
        }
        psd_train_destroy(&life.train);
    }
    CHECK(live(&life, err));
    /* Nor is what was refused taken for what has come. */
    life.job = "refused";
    CHECK(begin(&life, err));
    CHECK_ERROR(psd_train_add_to_server(life.train, 0, &far, 1, &value, 1, err), PSD_RANGE, "100",
                err);
    CHECK_OK(psd_train_config_end(life.train, err), err);
    psd_train_destroy(&life.train);
    CHECK(begin(&life, err));
    CHECK_ERROR(add(&life, err), PSD_FAILED, "it is not known", err);
    psd_train_destroy(&life.train);
    return true;
}

static void *run_join(void *arg)
{
    life_t *life = arg;
    psd_error_t *err = psd_error_new();

    life->good = begin(life, err);
    psd_error_destroy(&err);
    return NULL;
}

/* Worker 0 of two is lost before it adds; worker 1 goes on; 0 comes again. */
static bool come_late(const char *max_delay, psd_error_t *err)
{
    char job[40];
    life_t lives[] = {{.job = job, .max_delay = max_delay, .rank = "0", .workers = "2"},
                      {.job = job, .max_delay = max_delay, .rank = "1", .workers = "2"}};

    (void)snprintf(job, sizeof job, "late.%s", max_delay);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&lives[i].thread, NULL, run_join, &lives[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(lives[i].thread, NULL);
    }
    CHECK(lives[0].good && lives[1].good);
    psd_train_destroy(&lives[0].train);
    CHECK_OK(psd_train_config_end(lives[1].train, err), err);
    CHECK(begin(&lives[0], err));
    CHECK_OK(add(&lives[0], err), err);
    CHECK_OK(psd_train_config_end(lives[0].train, err), err);
    psd_train_destroy(&lives[0].train);
    CHECK_OK(psd_clock(psd_train_client(lives[1].train), err), err);
    CHECK(have_come(&lives[1], err));
    CHECK(begin(&lives[0], err));
    CHECK_OK(add(&lives[0], err), err);
    CHECK_OK(psd_train_config_end(lives[0].train, err), err);
    psd_train_destroy(&lives[0].train);
    CHECK_OK(psd_clock(psd_train_client(lives[1].train), err), err);
    CHECK(have_come(&lives[1], err));
    psd_train_destroy(&lives[1].train);
    return true;
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    psd_error_t *err = psd_error_new();
    bool ok = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    ok = ok && once_in_a_job_that_starts_again("0", err);
    ok = ok && once_in_a_job_that_starts_again("2", err);
    ok = ok && in_part_is_an_error(err);
    ok = ok && refuses_another_updater(err);
    ok = ok && come_late("0", err) && come_late("2", err);
    daemon_drop(&daemon, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
