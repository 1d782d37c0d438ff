/* SPDX-License-Identifier: Apache-2.0 */
#include "queue_run.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "support/check.h"

#define PATIENCE 600 /* times that something is tried */

const char *queue_endpoint;

bool queue_set_options(const queue_run_t *run, psd_train_t *train, psd_error_t *err)
{
    CHECK_OK(psd_train_set(train, "endpoint", queue_endpoint, err), err);
    CHECK_OK(psd_train_set(train, "job", run->job, err), err);
    CHECK_OK(psd_train_set(train, "worker", run->rank, err), err);
    CHECK_OK(psd_train_set(train, "workers", run->workers, err), err);
    CHECK_OK(psd_train_set(train, "max-delay", run->max_delay, err), err);
    CHECK_OK(psd_train_set(train, "trainers", "2", err), err);
    if (run->queue != NULL) {
        CHECK_OK(psd_train_set(train, "queue", run->queue, err), err);
        CHECK_OK(psd_train_set(train, "slices", run->slices, err), err);
        CHECK_OK(psd_train_set(train, "epochs", run->epochs, err), err);
    }
    return true;
}

/* A rank is free again when the one that died is declared lost. */
psd_train_t *queue_join(queue_run_t *run, psd_error_t *err)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    psd_status_t rc = PSD_WORKER_EXISTS;
    psd_train_t *train = NULL;

    for (int i = 0; i < PATIENCE && rc == PSD_WORKER_EXISTS; i++) {
        psd_train_destroy(&train);
        psd_error_clear(err);
        train = psd_train_new(run);
        if (!queue_set_options(run, train, err)) {
            break;
        }
        rc = psd_train_config_begin(train, err);
        if (rc == PSD_WORKER_EXISTS) {
            (void)nanosleep(&pause, NULL);
        }
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "join: %s\n", psd_error_text(err));
        psd_train_destroy(&train);
    }
    return train;
}

bool queue_configure(psd_train_t *train, const char *table, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    uint32_t number = 0;

    CHECK_OK(psd_spec_set(spec, "rows", "48", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_train_table(train, table, spec, &number, err), err);
    CHECK_OK(psd_train_config_end(train, err), err);
    psd_spec_destroy(&spec);
    return true;
}

static psd_status_t queue_load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    return psd_loader_rows(loader, 0, block, 1, err);
}

psd_status_t queue_step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    queue_run_t *run = user;
    const uint64_t *row = block;

    if (atomic_load(&run->dies)) {
        (void)raise(SIGKILL);
    }
    if (atomic_load(&run->fails)) {
        return psd_error_set(err, PSD_FAILED, "weights explode");
    }
    psd_trainer_add_i64(trainer, 0, *row, 0, 1);
    return PSD_OK;
}

bool queue_begin(psd_train_t *train, const char *table, psd_error_t *err)
{
    CHECK(queue_configure(train, table, err));
    psd_train_on_load(train, queue_load);
    psd_train_on(train, PSD_TRAIN_STEP, queue_step);
    CHECK_OK(psd_train_begin(train, err), err);
    return true;
}

bool queue_push(psd_train_t *train, uint64_t row, psd_error_t *err)
{
    uint64_t *block = malloc(sizeof *block);

    *block = row;
    CHECK_OK(psd_train_push_block(train, block, free, CALL_MS, err), err);
    return true;
}

bool queue_next(psd_train_t *train, uint32_t *ret_row, psd_error_t *err)
{
    psd_status_t rc = PSD_DEADLINE;
    uint64_t epoch = 0;
    uint32_t slice = 0;

    for (int i = 0; i < PATIENCE && rc == PSD_DEADLINE; i++) {
        psd_error_clear(err);
        rc = psd_train_next_slice(train, 300, &epoch, &slice, err);
    }
    CHECK_OK(rc, err);
    *ret_row = epoch == 0 ? ROWS : (uint32_t)(epoch - 1) * SLICES + slice;
    return true;
}

bool queue_is_told(psd_client_t *client, const char *job, const char *part, psd_error_t *err)
{
    char question[100];
    char *reply = NULL;
    bool found = false;

    (void)snprintf(question, sizeof question, "{\"op\":\"job_inspect\",\"job\":\"%s\"}", job);
    CHECK_OK(psd_request(client, question, CALL_MS, &reply, err), err);
    found = strstr(reply, part) != NULL;
    if (!found) {
        (void)fprintf(stderr, "no %s in %s\n", part, reply);
    }
    psd_free(reply);
    return found;
}

bool queue_pull_all(psd_client_t *client, const char *table_name, int64_t ret_values[ROWS],
                    psd_error_t *err)
{
    psd_table_t *table = NULL;
    uint64_t rows[ROWS];

    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
    }
    CHECK_OK(psd_table_open(client, table_name, &table, err), err);
    CHECK_OK(psd_pull(table, rows, ROWS, ret_values, ROWS, err), err);
    psd_table_close(&table);
    return true;
}

bool queue_ended_with(pid_t pid, int exit_code, int signal_number)
{
    int status = 0;

    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(signal_number == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == signal_number));
    CHECK(signal_number != 0 || (WIFEXITED(status) && WEXITSTATUS(status) == exit_code));
    return true;
}
