/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's side of the server. */
#include "job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../program/launch.h"
#include "../program/number.h"

#define WORKERS_MAX 4096
/* How long a worker that cannot start, or go on, tries to report it. */
#define LEAVE_MS 2000
#define HASH_LENGTH 9 /* "-89abcdef" */

static const char *const ACKS[] = {"memory", "replica", "disk"};

/* text: NULL is the preset. */
static psd_status_t read_number(const char *name, const char *text, uint32_t preset,
                                uint32_t *ret_value, psd_error_t *err)
{
    uint64_t value = preset;

    if (text != NULL && (!ex_number_u64(text, &value) || value > WORKERS_MAX)) {
        return psd_error_set(err, PSD_USAGE, "%s \"%s\" is not a whole number from 0 to %d", name,
                             text, WORKERS_MAX);
    }
    *ret_value = (uint32_t)value;
    return PSD_OK;
}

psd_status_t ex_job_rank(uint32_t *ret_worker, uint32_t *ret_n_workers, psd_error_t *err)
{
    psd_status_t rc = read_number("PSD_WORKER", ex_launch_rank(), 0, ret_worker, err);

    if (rc == PSD_OK) {
        rc = read_number("PSD_WORKERS", ex_launch_size(), 1, ret_n_workers, err);
    }
    if (rc == PSD_OK && *ret_worker >= *ret_n_workers) {
        rc = psd_error_set(err, PSD_USAGE,
                           "PSD_WORKER %" PRIu32 " is not below PSD_WORKERS %" PRIu32, *ret_worker,
                           *ret_n_workers);
    }
    return rc;
}

/* Parses max_delay as psd_join does, which has refused what is not a number. */
static int32_t delay_of(const ex_job_options_t *options)
{
    const char *text = getenv("PSD_MAX_DELAY");
    int64_t delay = options->max_delay;

    if (options->max_delay == PSD_DELAY_ENV && (text == NULL || !ex_number_i64(text, &delay))) {
        delay = 0;
    }
    return (int32_t)delay;
}

/* As psd_join finds it, which refuses what is not a name. */
static void find_name(char ret_name[EX_NAME_SIZE])
{
    const char *text = getenv("PSD_JOB");

    (void)snprintf(ret_name, EX_NAME_SIZE, "%s", text == NULL || *text == '\0' ? "default" : text);
}

static void say_wait(void *user, const char *what)
{
    (void)user;
    (void)fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
}

static psd_status_t connect_client(const ex_job_options_t *options, psd_client_t **ret_client,
                                   psd_error_t *err)
{
    psd_options_t *how = psd_options_new();
    psd_status_t rc = PSD_OK;

    if (how == NULL) {
        return psd_error_set(err, PSD_NOMEM, "connect");
    }
    psd_options_set_timeout_ms(how, options->timeout_ms);
    psd_options_set_on_wait(how, say_wait, NULL);
    rc = psd_connect(NULL, how, ret_client, err);
    psd_options_destroy(&how);
    return rc;
}

psd_status_t ex_job_open(ex_job_t *self, const ex_job_options_t *options, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    self->options = options;
    rc = ex_job_rank(&self->worker, &self->n_workers, err);
    if (rc == PSD_OK) {
        rc = connect_client(options, &self->client, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = psd_join(self->client, NULL, self->worker, self->n_workers, options->max_delay, err);
    if (rc != PSD_OK) {
        ex_job_close(self);
        return rc;
    }
    self->err = err;
    self->is_member = true;
    self->max_delay = delay_of(options);
    find_name(self->name);
    return PSD_OK;
}

static psd_status_t fill_spec(const ex_job_options_t *options, const char *const *pairs,
                              psd_spec_t *spec, psd_error_t *err)
{
    uint32_t ack = options->ack;
    char replicas[16];
    psd_status_t rc = PSD_OK;

    if (ack == EX_NOT_CHOSEN) {
        ack = options->replicas > 1 ? 1 : 0;
    }
    (void)snprintf(replicas, sizeof(replicas), "%" PRIu32, options->replicas);
    rc = psd_spec_set(spec, "replicas", replicas, err);
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "ack", ACKS[ack], err);
    }
    for (; rc == PSD_OK && *pairs != NULL; pairs += 2) {
        rc = psd_spec_set(spec, pairs[0], pairs[1], err);
    }
    return rc;
}

static psd_status_t ensure(const ex_job_options_t *options, psd_client_t *client, const char *name,
                           const char *const *pairs, psd_table_t **ret_table, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = PSD_OK;

    if (spec == NULL) {
        return psd_error_set(err, PSD_NOMEM, "spec of table \"%s\"", name);
    }
    rc = fill_spec(options, pairs, spec, err);
    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, name, spec, ret_table, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

psd_status_t ex_job_ensure(ex_job_t *self, const char *name, const char *const *pairs,
                           psd_table_t **ret_table, psd_error_t *err)
{
    return ensure(self->options, self->client, name, pairs, ret_table, err);
}

psd_status_t ex_job_look_for(ex_job_t *self, const char *name, psd_error_t *err)
{
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    if (self->worker != 0) {
        return PSD_OK;
    }
    rc = psd_table_open(self->client, name, &table, err);
    psd_table_close(&table);
    if (rc == PSD_NO_TABLE) {
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        (void)snprintf(self->old_table, sizeof self->old_table, "%s", name);
    }
    return rc;
}

void ex_job_tell_old(const ex_job_t *self)
{
    if (self->old_table[0] != '\0') {
        (void)fprintf(
            stderr,
            "%s: table \"%s\" exists already and is used as it is; --table names another one\n",
            program_invocation_short_name, self->old_table);
    }
}

/* FNV-1a of both, with the end of the first one. */
static uint32_t hash_names(const char *table, const char *job)
{
    const char *const names[] = {table, job};
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < EX_COUNT(names); i++) {
        for (size_t k = 0; k <= strlen(names[i]); k++) {
            hash = (hash ^ (unsigned char)names[i][k]) * 16777619U;
        }
    }
    return hash;
}

void ex_job_name_scratch(const ex_job_t *self, const char *table, const char *what,
                         char ret_name[EX_NAME_SIZE])
{
    int room = EX_NAME_SIZE - 2 - (int)strlen(what); /* a dash, the end */
    char both[2 * EX_NAME_SIZE];
    int length = snprintf(both, sizeof both, "%s.%s", table, self->name);

    /* Table "a" of job "b.c" is not table "a.b" of job "c". */
    if (length <= room && strchr(table, '.') == NULL) {
        (void)snprintf(ret_name, EX_NAME_SIZE, "%.*s-%s", room, both, what);
    } else {
        (void)snprintf(ret_name, EX_NAME_SIZE, "%.*s-%08" PRIx32 "-%s", room - HASH_LENGTH, both,
                       hash_names(table, self->name), what);
    }
}

psd_status_t ex_job_prepare(ex_job_t *self, const char *name, const char *const *pairs,
                            psd_error_t *err)
{
    psd_client_t *maker = NULL; /* not a worker: no clock marks the tables that it opens */
    psd_table_t *table = NULL;
    psd_status_t rc = ex_job_drop(self, name, err);

    if (rc == PSD_OK) {
        rc = connect_client(self->options, &maker, err);
    }
    if (rc == PSD_OK) {
        rc = ensure(self->options, maker, name, pairs, &table, err);
    }
    psd_table_close(&table);
    psd_close(&maker);
    return rc;
}

psd_status_t ex_job_drop(ex_job_t *self, const char *name, psd_error_t *err)
{
    psd_status_t rc = psd_table_drop(self->client, name, err);

    if (rc == PSD_NO_TABLE) {
        psd_error_clear(err);
        rc = PSD_OK;
    }
    return rc;
}

bool ex_job_is_first(const ex_job_t *self)
{
    return psd_first_worker(self->client) == self->worker;
}

psd_status_t ex_job_barrier(ex_job_t *self, psd_error_t *err)
{
    return psd_barrier(self->client, self->options->timeout_ms, err);
}

psd_status_t ex_job_meet(ex_job_t *self, psd_error_t *err)
{
    psd_status_t rc = psd_wait_all(self->client, self->options->timeout_ms, err);

    if (rc == PSD_OK) {
        rc = psd_clock(self->client, err);
    }
    return rc == PSD_OK ? ex_job_barrier(self, err) : rc;
}

psd_status_t ex_job_reduce(ex_job_t *self, const char *name, const char *updater, double *values,
                           size_t n, psd_error_t *err)
{
    const uint64_t row = 0;
    char cols[24];
    const char *const pairs[] = {"rows", "1",   "cols",    cols,    "partitions", "1",
                                 "type", "f64", "updater", updater, NULL};
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    (void)snprintf(cols, sizeof(cols), "%zu", n);
    if (ex_job_is_first(self)) {
        rc = ex_job_prepare(self, name, pairs, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_barrier(self, err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_open(self->client, name, &table, err);
    }
    if (rc == PSD_OK) {
        rc = psd_push(table, &row, 1, values, n, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(self, err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull(table, &row, 1, values, n, err);
    }
    psd_table_close(&table);
    /* No worker may still need it when it is dropped; while it exists, each
     * clock of the job marks it too. */
    if (rc == PSD_OK) {
        rc = ex_job_barrier(self, err);
    }
    if (rc == PSD_OK && ex_job_is_first(self)) {
        rc = ex_job_drop(self, name, err);
    }
    return rc;
}

psd_status_t ex_job_wait(const ex_job_t *self, psd_ticket_t *ticket, psd_error_t *err)
{
    psd_ticket_t ending = *ticket;

    *ticket = 0;
    if (ending == 0) {
        return PSD_OK;
    }
    return psd_wait(self->client, ending, self->options->timeout_ms, err);
}

void ex_job_give_up(ex_job_t *self)
{
    psd_status_t left = psd_leave(self->client, LEAVE_MS, NULL);

    (void)left; /* the error that made it give up counts */
    self->is_member = false;
}

static void tell_lost(const ex_job_t *self)
{
    uint32_t n_lost = psd_lost_workers(self->client);

    if (n_lost > 0 && ex_job_is_first(self)) {
        (void)fprintf(stderr,
                      "%s: %" PRIu32 " of %" PRIu32
                      " workers failed: only the finished part of their data is trained\n",
                      program_invocation_short_name, n_lost, self->n_workers);
    }
}

psd_status_t ex_job_leave(ex_job_t *self, psd_error_t *err)
{
    psd_status_t rc = psd_leave(self->client, self->options->timeout_ms, err);

    self->is_member = rc != PSD_OK;
    if (rc == PSD_OK) {
        tell_lost(self);
    }
    return rc;
}

void ex_job_close(ex_job_t *self)
{
    if (self->client != NULL && self->is_member) {
        const char *why = self->err == NULL ? NULL : psd_error_text(self->err);
        psd_status_t failed = psd_fail(self->client, why, LEAVE_MS, NULL);

        (void)failed; /* the registry then declares it lost */
        self->is_member = false;
    }
    psd_close(&self->client);
}
