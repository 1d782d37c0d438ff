/* SPDX-License-Identifier: Apache-2.0 */
/* Makers, workers, greeters, and what they were told. */
#include "churn.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"

#define QUEUE "slices"
#define STAY 3 /* slices that one who comes and goes takes */
#define PAUSE_MS 20
#define FEW_MAX 20 /* tries of a table; psd itself waits for a node that is silent */

static void rest(void)
{
    const struct timespec span = {.tv_nsec = PAUSE_MS * 1000000L};

    (void)nanosleep(&span, NULL);
}

static bool goes_on(const churn_thread_t *self)
{
    return !atomic_load(&self->churn->stop) && atomic_load(&self->churn->n_failed) == 0;
}

/* Counts a call that failed. */
static bool is_good(churn_thread_t *self, psd_status_t rc, const char *call, psd_error_t *err)
{
    if (rc == PSD_OK) {
        self->n_changes++;
        return true;
    }
    if (rc == PSD_TABLE_EXISTS || rc == PSD_NO_TABLE) {
        (void)atomic_fetch_add(&self->churn->n_twice, 1);
    }
    (void)atomic_fetch_add(&self->churn->n_failed, 1);
    (void)fprintf(stderr, "%s failed: %s: %s\n", call, psd_status_name(rc), psd_error_text(err));
    return false;
}

psd_status_t churn_connect(const char *endpoints, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    psd_options_set_timeout_ms(options, CHURN_CALL_MS);
    psd_options_set_wait(options, true);
    rc = psd_connect(endpoints, options, ret_client, err);
    psd_options_destroy(&options);
    return rc;
}

psd_status_t churn_make_table(psd_client_t *client, const char *name, uint64_t rows,
                              const char *replicas, const char *ack, psd_error_t *err)
{
    const char *const words[][2] = {
        {"type", "i64"}, {"partitions", "2"}, {"replicas", replicas}, {"ack", ack}};
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    char text[24];
    psd_status_t rc = PSD_OK;

    (void)snprintf(text, sizeof text, "%" PRIu64, rows);
    rc = psd_spec_set(spec, "rows", text, err);
    for (size_t i = 0; i < sizeof words / sizeof *words && rc == PSD_OK; i++) {
        rc = psd_spec_set(spec, words[i][0], words[i][1], err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_create(client, name, spec, &table, err);
    }
    for (unsigned i = 0; i < FEW_MAX && rc == PSD_FEW_NODES; i++) { /* one waits for a processor */
        rest();
        psd_error_clear(err);
        rc = psd_table_create(client, name, spec, &table, err);
    }
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return rc;
}

/* ---- tables ---- */

static void make_and_drop(churn_thread_t *self, psd_client_t *client, psd_error_t *err)
{
    while (goes_on(self)) {
        char name[32];

        (void)snprintf(name, sizeof name, "m%u-%" PRIu64, self->number, self->n_made);
        if (!is_good(self, churn_make_table(client, name, 8, "2", "replica", err), "table create",
                     err)) {
            return;
        }
        if (self->n_made % 2 == 1 &&
            !is_good(self, psd_table_drop(client, name, err), "table drop", err)) {
            return;
        }
        self->n_made++;
        rest();
    }
}

/* ---- session numbers ---- */

static void greet(churn_thread_t *self, psd_client_t *client, psd_error_t *err)
{
    churn_t *churn = self->churn;

    while (goes_on(self) && churn->n_sessions < CHURN_SESSIONS_MAX) {
        char question[160];
        char *reply = NULL;
        json_t *doc = NULL;

        (void)snprintf(question, sizeof question,
                       "{\"op\":\"hello\",\"versions\":[1,1],"
                       "\"client\":\"00000000-0000-4000-8000-%012zu\"}",
                       churn->n_sessions + 1);
        if (!is_good(self, psd_request(client, question, CHURN_CALL_MS, &reply, err), "hello",
                     err)) {
            return;
        }
        doc = json_loads(reply, 0, NULL);
        churn->sessions[churn->n_sessions++] =
            (uint64_t)json_integer_value(json_object_get(doc, "session"));
        json_decref(doc);
        psd_free(reply);
        rest();
    }
}

/* ---- workers ---- */

static psd_status_t do_slice(churn_thread_t *self, psd_work_t *work, psd_table_t *table,
                             psd_error_t *err)
{
    const int64_t one = 1;
    uint64_t epoch = 0;
    uint64_t row = 0;
    uint32_t slice = 0;
    psd_status_t rc = psd_work_next(work, CHURN_CALL_MS, &epoch, &slice, err);

    row = slice;
    if (rc == PSD_OK) {
        rc = psd_push(table, &row, 1, &one, 1, err);
    }
    if (rc == PSD_OK) {
        rc = psd_work_done(work, epoch, slice, CHURN_CALL_MS, err);
    }
    self->done[slice] += rc == PSD_OK ? 1 : 0;
    return rc;
}

/* One life as a worker; without end for one that stays. */
static psd_status_t live(churn_thread_t *self, psd_client_t *client, psd_error_t *err)
{
    char name[16];
    psd_table_t *table = NULL;
    psd_work_t *work = NULL;
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "job%u", self->job);
    rc = psd_join(client, name, self->number, CHURN_STEADY, -1, err);
    if (rc == PSD_OK) {
        rc = psd_table_open(client, name, &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_work_open(client, QUEUE, CHURN_SLICES, 0, &work, err);
    }
    for (unsigned i = 0; rc == PSD_OK && goes_on(self) && (self->number < CHURN_STEADY || i < STAY);
         i++) {
        rc = do_slice(self, work, table, err);
        self->n_changes += rc == PSD_OK ? 1 : 0;
        rest();
    }
    psd_work_close(&work);
    psd_table_close(&table);
    return rc == PSD_OK ? psd_leave(client, CHURN_CALL_MS, err) : rc;
}

static void work_on(churn_thread_t *self, psd_client_t *client, psd_error_t *err)
{
    while (goes_on(self) && is_good(self, live(self, client, err), "work", err)) {
    }
}

/* ---- the threads ---- */

static void *run(void *argument)
{
    churn_thread_t *self = argument;
    size_t at = (size_t)(self - self->churn->each);
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;

    if (is_good(self, churn_connect(self->churn->endpoints, &client, err), "connect", err)) {
        if (at < CHURN_MAKERS) {
            make_and_drop(self, client, err);
        } else if (at < CHURN_MAKERS + CHURN_GREETERS) {
            greet(self, client, err);
        } else {
            work_on(self, client, err);
        }
    }
    psd_close(&client);
    psd_error_destroy(&err);
    return NULL;
}

static bool make_tables(const char *endpoints)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;

    CHECK_OK(churn_connect(endpoints, &client, err), err);
    for (unsigned i = 0; i < CHURN_JOBS; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "job%u", i);
        CHECK_OK(churn_make_table(client, name, CHURN_SLICES, "3", "disk", err), err);
    }
    psd_close(&client);
    psd_error_destroy(&err);
    return true;
}

bool churn_start(churn_t *self, const char *endpoints)
{
    self->endpoints = endpoints;
    self->sessions = calloc(CHURN_SESSIONS_MAX, sizeof *self->sessions);
    CHECK(self->sessions != NULL && make_tables(endpoints));
    for (unsigned i = 0; i < CHURN_THREADS; i++) {
        churn_thread_t *each = &self->each[i];
        unsigned worker = i - CHURN_MAKERS - CHURN_GREETERS; /* of all jobs */

        each->churn = self;
        each->number = i;
        if (i >= CHURN_MAKERS + CHURN_GREETERS) {
            each->number = worker % (CHURN_STEADY + 1);
            each->job = worker / (CHURN_STEADY + 1);
        }
        each->runs = pthread_create(&each->thread, NULL, run, each) == 0;
        CHECK(each->runs);
    }
    return true;
}

bool churn_stop(churn_t *self)
{
    atomic_store(&self->stop, true);
    for (unsigned i = 0; i < CHURN_THREADS; i++) {
        if (self->each[i].runs) {
            (void)pthread_join(self->each[i].thread, NULL);
            self->each[i].runs = false;
        }
    }
    return atomic_load(&self->n_failed) == 0;
}

/* ---- the book ---- */

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static bool check_sessions(churn_t *self)
{
    unsigned n_twice = 0;

    qsort(self->sessions, self->n_sessions, sizeof *self->sessions, compare);
    for (size_t i = 1; i < self->n_sessions; i++) {
        n_twice += self->sessions[i] == self->sessions[i - 1] ? 1 : 0;
    }
    (void)printf("%zu session numbers, %u given twice\n", self->n_sessions, n_twice);
    return n_twice == 0;
}

/* Those that were made and not dropped are there, and none that was dropped. */
static bool check_tables(churn_t *self, psd_client_t *client, psd_error_t *err)
{
    uint64_t n_lost = 0;
    uint64_t n_made = 0;

    for (unsigned i = 0; i < CHURN_MAKERS; i++) {
        for (uint64_t k = 0; k < self->each[i].n_made; k++) {
            psd_table_t *table = NULL;
            psd_status_t rc = PSD_OK;
            char name[32];

            (void)snprintf(name, sizeof name, "m%u-%" PRIu64, i, k);
            rc = psd_table_open(client, name, &table, err);
            psd_table_close(&table);
            psd_error_clear(err);
            if (rc != (k % 2 == 0 ? PSD_OK : PSD_NO_TABLE)) {
                (void)fprintf(stderr, "table %s: %s\n", name, psd_status_name(rc));
                n_lost++;
            }
        }
        n_made += self->each[i].n_made;
    }
    (void)printf("%" PRIu64 " tables made, half of them dropped, %" PRIu64
                 " not as acknowledged, %u done twice\n",
                 n_made, n_lost, atomic_load(&self->n_twice));
    return n_lost == 0;
}

static bool check_job(churn_t *self, unsigned job, psd_client_t *client, psd_error_t *err)
{
    char name[16];
    uint64_t rows[CHURN_SLICES];
    int64_t values[CHURN_SLICES];
    uint64_t done[CHURN_SLICES] = {0};
    psd_table_t *table = NULL;
    unsigned n_wrong = 0;

    (void)snprintf(name, sizeof name, "job%u", job);
    for (uint64_t k = 0; k < CHURN_SLICES; k++) {
        rows[k] = k;
        for (unsigned i = CHURN_MAKERS + CHURN_GREETERS; i < CHURN_THREADS; i++) {
            done[k] += self->each[i].job == job ? self->each[i].done[k] : 0;
        }
    }
    CHECK_OK(psd_table_open(client, name, &table, err), err);
    CHECK_OK(psd_pull(table, rows, CHURN_SLICES, values, CHURN_SLICES, err), err);
    psd_table_close(&table);
    for (unsigned k = 0; k < CHURN_SLICES; k++) { /* epochs that are over count all slices */
        uint64_t least = done[0] > 0 ? done[0] - 1 : 0;

        if (values[k] != (int64_t)done[k] || done[k] < least || done[k] > done[0] + 1) {
            (void)fprintf(stderr, "%s, slice %u: counted %" PRIu64 " times, pushed %" PRId64 "\n",
                          name, k, done[k], values[k]);
            n_wrong++;
        }
    }
    (void)printf("%s: %" PRIu64 " epochs, %u slices not counted once\n", name, done[0], n_wrong);
    return n_wrong == 0;
}

bool churn_check(churn_t *self)
{
    psd_error_t *err = psd_error_new();
    psd_client_t *client = NULL;
    bool good = check_sessions(self);

    CHECK_OK(churn_connect(self->endpoints, &client, err), err);
    good = check_tables(self, client, err) && good;
    for (unsigned i = 0; i < CHURN_JOBS; i++) {
        good = check_job(self, i, client, err) && good;
    }
    psd_close(&client);
    psd_error_destroy(&err);
    free(self->sessions);
    self->sessions = NULL;
    return good && atomic_load(&self->n_failed) == 0;
}
