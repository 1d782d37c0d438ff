/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints through the C interface: a worker makes one of its own job while
 * it works; the newest of a series is found; the job is taken back to it while
 * its worker lives, and goes on with exactly the slices that were left and one
 * epoch more. One that fails is not there. */
#include <psd.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define SLICES 3
#define EPOCHS 2
#define MANY_MS 60000

static const char config[] = "workers:\n"
                             "  heartbeat_ms: 100\n"
                             "  lost_after_ms: 15000\n";

typedef struct part {
    psd_client_t *client;
    psd_table_t *table;
    psd_work_t *work;
} part_t;

static bool connect_to(const char *endpoint, psd_client_t **ret, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, MANY_MS);
    CHECK_OK(psd_connect(endpoint, options, ret, err), err);
    psd_options_destroy(&options);
    return true;
}

static bool begin(part_t *part, const char *endpoint, uint64_t n_epochs, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK(connect_to(endpoint, &part->client, err));
    CHECK_OK(psd_spec_set(spec, "rows", "3", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_join(part->client, "j", 0, 1, 0, err), err);
    CHECK_OK(psd_table_ensure(part->client, "t", spec, &part->table, err), err);
    CHECK_OK(psd_work_open(part->client, "in", SLICES, n_epochs, &part->work, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static void end(part_t *part)
{
    psd_work_close(&part->work);
    psd_table_close(&part->table);
    psd_close(&part->client);
}

/* Adds 1 to the row of a slice. Epoch 0: there is none any more. */
static bool do_slice(const part_t *part, uint64_t *ret_epoch, psd_error_t *err)
{
    const int64_t one = 1;
    uint32_t slice = 0;
    uint64_t row = 0;

    CHECK_OK(psd_work_next(part->work, MANY_MS, ret_epoch, &slice, err), err);
    if (*ret_epoch == 0) {
        return true;
    }
    row = slice;
    CHECK_OK(psd_push(part->table, &row, 1, &one, 1, err), err);
    CHECK_OK(psd_work_done(part->work, *ret_epoch, slice, MANY_MS, err), err);
    CHECK_OK(psd_clock(part->client, err), err);
    return true;
}

static bool has_rows(psd_client_t *client, int64_t a, int64_t b, int64_t c)
{
    static const uint64_t rows[SLICES] = {0, 1, 2};
    psd_error_t *err = psd_error_new();
    psd_table_t *table = NULL;
    int64_t values[SLICES] = {0};

    CHECK_OK(psd_table_open(client, "t", &table, err), err);
    CHECK_OK(psd_pull(table, rows, SLICES, values, SLICES, err), err);
    CHECK(values[0] == a && values[1] == b && values[2] == c);
    psd_table_close(&table);
    psd_error_destroy(&err);
    return true;
}

static bool bad_ones_are_refused(psd_client_t *boss, psd_error_t *err)
{
    psd_checkpoint_t *found = NULL;
    uint64_t number = 0;

    CHECK_ERROR(psd_checkpoint_newest(boss, NULL, &found, err), PSD_NO_CHECKPOINT,
                "no complete checkpoint", err);
    CHECK_ERROR(psd_checkpoint_newest(boss, "n", &found, err), PSD_NO_CHECKPOINT, "series \"n-1\"",
                err);
    CHECK(found == NULL);
    CHECK_ERROR(psd_checkpoint_start(boss, NULL, NULL, &number, err), PSD_INVALID, "NULL", err);
    CHECK_ERROR(psd_checkpoint_start(boss, "a/b", NULL, &number, err), PSD_INVALID,
                "allowed: 1..100", err);
    CHECK_ERROR(psd_checkpoint_start(boss, "n-1", "none", &number, err), PSD_NO_JOB, "none", err);
    CHECK_ERROR(psd_checkpoint_start(boss, "n-1", NULL, &number, err), PSD_NO_TABLE, "no table",
                err);
    CHECK_ERROR(psd_checkpoint_wait(boss, 7, 0, err), PSD_INVALID, "number 7: ", err);
    CHECK_ERROR(psd_checkpoint_drop(boss, "n-1", err), PSD_NO_CHECKPOINT, "n-1", err);
    CHECK_ERROR(psd_checkpoint_drop(boss, NULL, err), PSD_INVALID, "NULL", err);
    CHECK_ERROR(psd_checkpoint_resume(boss, "n", "j", 0, 0, MANY_MS, err), PSD_NO_CHECKPOINT,
                "\"n\"", err);
    CHECK_ERROR(psd_checkpoint_resume(boss, "n", NULL, 0, 0, MANY_MS, err), PSD_INVALID, "NULL",
                err);
    CHECK(number == 0);
    return true;
}

/* A worker looks after each of its clocks. */
static bool worker_makes_one(const part_t *part, psd_client_t *boss, psd_error_t *err)
{
    psd_status_t rc = PSD_DEADLINE;
    uint64_t number = 0;
    uint64_t other = 0;

    CHECK_OK(psd_checkpoint_start(part->client, "n-1", "j", &number, err), err);
    CHECK_ERROR(psd_checkpoint_start(boss, "n-2", NULL, &other, err), PSD_BUSY,
                "\"n-1\" is in progress", err);
    CHECK_ERROR(psd_checkpoint_wait(part->client, number, 0, err), PSD_DEADLINE, "files are done",
                err);
    while (rc == PSD_DEADLINE) {
        psd_error_clear(err);
        CHECK_OK(psd_clock(part->client, err), err);
        rc = psd_checkpoint_wait(part->client, number, 0, err);
    }
    CHECK_OK(rc, err);
    CHECK_ERROR(psd_checkpoint_start(boss, "n-1", NULL, &other, err), PSD_CHECKPOINT_EXISTS, "n-1",
                err);
    return true;
}

/* Its clock; UINT64_MAX: something is wrong. */
static uint64_t clock_of(psd_client_t *client, const char *which, const char *name, const char *job)
{
    psd_error_t *err = psd_error_new();
    psd_checkpoint_t *found = NULL;
    uint64_t clock = UINT64_MAX;

    if (psd_checkpoint_newest(client, which, &found, err) != PSD_OK) {
        (void)fprintf(stderr, "%s\n", psd_error_text(err));
    } else if (strcmp(psd_checkpoint_name(found), name) == 0 &&
               strcmp(psd_checkpoint_job(found), job) == 0 &&
               psd_checkpoint_unix_ms(found) > 1700000000000) {
        clock = psd_checkpoint_clock(found);
    }
    psd_checkpoint_destroy(&found);
    psd_error_destroy(&err);
    return clock;
}

static bool newest_is_found(psd_client_t *boss, uint64_t clock, psd_error_t *err)
{
    uint64_t number = 0;

    CHECK_OK(psd_checkpoint_start(boss, "n-12", NULL, &number, err), err);
    CHECK_OK(psd_checkpoint_wait(boss, number, MANY_MS, err), err);
    CHECK(clock_of(boss, "n", "n-12", "") == 0);
    CHECK(clock_of(boss, NULL, "n-12", "") == 0);
    CHECK(clock_of(boss, "n-1", "n-1", "j") == clock); /* no series of its own */
    CHECK_ERROR(psd_checkpoint_resume(boss, "n", "j", 0, 0, MANY_MS, err), PSD_NO_JOB,
                "\"n-12\": it has no job \"j\"", err);
    CHECK_OK(psd_checkpoint_drop(boss, "n-12", err), err);
    CHECK(clock_of(boss, "n", "n-1", "j") == clock);
    return true;
}

static bool job_goes_back(part_t *part, psd_client_t *boss, psd_error_t *err)
{
    CHECK_ERROR(psd_checkpoint_resume(part->client, "n", "j", 0, 0, MANY_MS, err), PSD_INVALID,
                "the client is worker 0 of job \"j\"", err);
    CHECK_ERROR(psd_checkpoint_resume(boss, "n", "j", 0, 0, 6000, err), PSD_DEADLINE,
                "worker 0 neither ended", err);
    CHECK(has_rows(boss, 1, 1, 1)); /* nothing is dropped yet */
    end(part);                      /* without a word: it is declared lost */
    CHECK_OK(psd_checkpoint_resume(boss, "n", "j", 0, EPOCHS + 1, MANY_MS, err), err);
    CHECK(has_rows(boss, 1, 0, 0));
    return true;
}

static bool job_goes_on(part_t *part, const char *endpoint, uint64_t clock, psd_error_t *err)
{
    uint64_t epoch = 1;
    int n = 0;

    CHECK(begin(part, endpoint, EPOCHS + 1, err));
    CHECK(psd_clock_count(part->client) == clock);
    while (epoch != 0) {
        CHECK(do_slice(part, &epoch, err));
        n += epoch == 0 ? 0 : 1;
    }
    CHECK(n == SLICES * (EPOCHS + 1) - 1);
    return true;
}

/* A checkpoint that waits for a clock of a job that ends fails, and leaves
 * nothing. */
static bool one_fails(part_t *part, psd_client_t *boss, uint64_t clock, psd_error_t *err)
{
    uint64_t number = 0;

    CHECK_OK(psd_checkpoint_start(boss, "n-2", "j", &number, err), err);
    CHECK_OK(psd_leave(part->client, MANY_MS, err), err);
    CHECK_ERROR(psd_checkpoint_wait(boss, number, MANY_MS, err), PSD_BUSY, "the job has ended",
                err);
    CHECK_ERROR(psd_checkpoint_drop(boss, "n-2", err), PSD_NO_CHECKPOINT, "n-2", err);
    CHECK(clock_of(boss, "n", "n-1", "j") == clock);
    end(part);
    return true;
}

static bool work(const char *endpoint)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *boss = NULL;
    part_t part = {.client = NULL};
    uint64_t epoch = 0;
    uint64_t clock = 0;

    CHECK(connect_to(endpoint, &boss, err));
    CHECK(bad_ones_are_refused(boss, err));
    CHECK(begin(&part, endpoint, EPOCHS, err));
    CHECK(do_slice(&part, &epoch, err));
    CHECK(worker_makes_one(&part, boss, err));
    clock = clock_of(boss, "n", "n-1", "j");
    CHECK(clock >= 1 && clock <= psd_clock_count(part.client));
    CHECK(do_slice(&part, &epoch, err));
    CHECK(do_slice(&part, &epoch, err));
    CHECK(newest_is_found(boss, clock, err));
    CHECK(job_goes_back(&part, boss, err));
    CHECK(job_goes_on(&part, endpoint, clock, err));
    CHECK(one_fails(&part, boss, clock, err));
    CHECK(has_rows(boss, EPOCHS + 1, EPOCHS + 1, EPOCHS + 1));
    psd_close(&boss);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    daemon_t daemon;
    bool good = daemon_start(&daemon, config);

    good = good && work(daemon.control);
    daemon_drop(&daemon, !good);
    return good ? 0 : 1;
}
