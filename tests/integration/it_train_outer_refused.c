/* SPDX-License-Identifier: Apache-2.0 */
/* What outer steps of a training cannot go with is refused by name: jobs,
 * tables, first values, and workers that would not take them alike. */
#include <psd_train.h>
#include <pthread.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define COLS 2
#define START 1.0
#define WISHES 4 /* columns of the table of a meeting */

static const char *endpoint;

/* What a job and its table are; the others' part of the table is as it should be. */
typedef struct wish {
    const char *name; /* of both */
    const char *max_delay;
    const char *type, *updater, *combine;
    const char *part; /* of the refusal */
} wish_t;

static const wish_t refused[] = {
    {"delayed", "2", "f64", "nesterov", "clock-mean",
     "max-delay of the job is 2, and outer-every 3; allowed: max-delay 0"},
    {"each", "0", "f32", "nesterov", "each",
     "table \"each\" has combine each; allowed with outer-every: clock-mean"},
    {"assigned", "0", "f64", "assign", "clock-mean",
     "table \"assigned\" has updater assign; allowed with outer-every: add"},
    {"short", "0", "i32", "add", "clock-mean",
     "table \"short\" has type i32; allowed with outer-every: f32, f64"},
    {"long", "0", "i64", "add", "clock-mean",
     "table \"long\" has type i64; allowed with outer-every: f32, f64"},
};

static bool set_all(psd_train_t *train, const char *const (*pairs)[2], size_t n, psd_error_t *err)
{
    CHECK_OK(psd_train_set(train, "endpoint", endpoint, err), err);
    for (size_t i = 0; i < n; i++) {
        CHECK_OK(psd_train_set(train, pairs[i][0], pairs[i][1], err), err);
    }
    return true;
}

static bool set_job(psd_train_t *train, const wish_t *wish, psd_error_t *err)
{
    const char *const pairs[][2] = {{"job", wish->name},   {"worker", "0"},
                                    {"workers", "1"},      {"max-delay", wish->max_delay},
                                    {"lock", "lock-free"}, {"outer-every", "3"}};

    return set_all(train, pairs, sizeof pairs / sizeof *pairs, err);
}

static bool make_table(psd_train_t *train, const wish_t *wish, psd_status_t *ret_rc,
                       psd_error_t *err)
{
    const char *const pairs[][2] = {{"rows", "6"},
                                    {"cols", "2"},
                                    {"type", wish->type},
                                    {"init", "constant:1"},
                                    {"updater", wish->updater},
                                    {"combine", wish->combine}};
    psd_spec_t *spec = psd_spec_new();
    uint32_t table = 0;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK_OK(psd_spec_set(spec, pairs[i][0], pairs[i][1], err), err);
    }
    *ret_rc = psd_train_table(train, wish->name, spec, &table, err);
    psd_spec_destroy(&spec);
    return true;
}

static bool is_refused(const wish_t *wish)
{
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);
    psd_status_t rc = PSD_OK;

    CHECK(set_job(train, wish, err));
    rc = psd_train_config_begin(train, err);
    if (rc == PSD_OK) {
        CHECK(make_table(train, wish, &rc, err));
    }
    CHECK_ERROR(rc, PSD_INVALID, wish->part, err);
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

/* ---- the meeting ----------------------------------------------------------- */

/* Two workers that do not take outer steps alike hear it both. */
typedef struct unlike {
    const char *job, *rank, *every, *fragments;
    const char *part;
    pthread_t thread;
    bool good;
} unlike_t;

static bool run_unlike(const unlike_t *self, psd_train_t *train, psd_error_t *err)
{
    const char *const pairs[][2] = {{"job", self->job},
                                    {"worker", self->rank},
                                    {"workers", "2"},
                                    {"max-delay", "0"},
                                    {"lock", "locked"},
                                    {"outer-every", self->every},
                                    {"outer-fragments", self->fragments}};

    CHECK(set_all(train, pairs, sizeof pairs / sizeof *pairs, err));
    CHECK_ERROR(psd_train_config_begin(train, err), PSD_INVALID, self->part, err);
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

/* They leave no options to a later meeting: it took those of a worker that was
 * lost before it wrote its own for what that worker wants. */
static bool is_empty(const char *table_name)
{
    static const uint64_t rows[] = {0, 1};
    int32_t values[2 * WISHES];
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;

    CHECK_OK(psd_connect(endpoint, NULL, &client, err), err);
    CHECK_OK(psd_table_open(client, table_name, &table, err), err);
    CHECK_OK(psd_pull(table, rows, 2, values, sizeof values / sizeof *values, err), err);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        CHECK(values[i] == 0);
    }
    psd_table_close(&table);
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

static bool are_compared(unlike_t workers[2], const char *table_name)
{
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&workers[i].thread, NULL, run_unlike_worker, &workers[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        (void)pthread_join(workers[i].thread, NULL);
    }
    return workers[0].good && workers[1].good && is_empty(table_name);
}

static bool refuses_unlike_workers(void)
{
    unlike_t every[] = {
        {.job = "every",
         .rank = "0",
         .every = "5",
         .fragments = "1",
         .part = "agree with the other workers: outer-every is 5, and 3 in worker 1; allowed: the "
                 "same in all workers"},
        {.job = "every",
         .rank = "1",
         .every = "3",
         .fragments = "1",
         .part = "outer-every is 3, and 5 in worker 0; allowed: the same in all workers"}};
    unlike_t fragments[] = {{.job = "fragments",
                             .rank = "0",
                             .every = "5",
                             .fragments = "1",
                             .part = "outer-fragments is 1, and 2 in worker 1"},
                            {.job = "fragments",
                             .rank = "1",
                             .every = "5",
                             .fragments = "2",
                             .part = "outer-fragments is 2, and 1 in worker 0"}};

    return are_compared(every, "every.agree2.2") && are_compared(fragments, "fragments.agree2.2");
}

/* ---- first values ---------------------------------------------------------- */

/* The mean over the workers to updater add, else none. */
static bool takes_first_values(const wish_t *wish)
{
    const uint64_t row = 2;
    const double values[COLS] = {3, 4};
    double after[COLS];
    psd_error_t *err = psd_error_new();
    psd_train_t *train = psd_train_new(NULL);
    psd_status_t rc = PSD_OK;

    CHECK(set_job(train, wish, err));
    CHECK_OK(psd_train_config_begin(train, err), err);
    CHECK(make_table(train, wish, &rc, err));
    CHECK_OK(rc, err);
    rc = psd_train_add_to_server(train, 0, &row, 1, values, COLS, err);
    CHECK(rc == (wish->part == NULL ? PSD_OK : PSD_INVALID));
    CHECK(wish->part == NULL || strstr(psd_error_text(err), wish->part) != NULL);
    CHECK_OK(psd_train_config_end(train, err), err);
    CHECK_OK(psd_pull(psd_train_table_handle(train, 0), &row, 1, after, COLS, err), err);
    for (int i = 0; i < COLS; i++) {
        CHECK(after[i] == START + (wish->part == NULL ? values[i] : 0));
    }
    psd_train_destroy(&train);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    const wish_t added = {"first-added", "0", "f64", "add", "clock-mean", NULL};
    const wish_t not_added = {"first-refused",
                              "0",
                              "f64",
                              "nesterov",
                              "clock-mean",
                              "table \"first-refused\" has updater nesterov, which would "
                              "change first values; allowed: updater add or assign"};
    daemon_t daemon = {.pid = 0};
    bool good = daemon_start(&daemon, NULL);

    endpoint = daemon.control;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        RUN(is_refused(&refused[i]));
    }
    RUN(refuses_unlike_workers());
    RUN(takes_first_values(&added));
    RUN(takes_first_values(&not_added));
    daemon_drop(&daemon, !good);
    return good ? 0 : 1;
}
