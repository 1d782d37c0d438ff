/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a job back to one of its checkpoints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "client/job/checkpoint.h"
#include "client/job/job.h"
#include "client/requests/wait.h"

#define TABLES_MAX 65536
#define JOBS_MAX 65536

typedef struct resume {
    psd_client_t *client;
    const psd_checkpoint_t *from;
    const char *job;
    uint64_t until_ms;
} resume_t;

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a checkpoint");
}

static psd_status_t ask(const resume_t *self, ps_doc_t *question, ps_doc_t **ret_reply,
                        psd_error_t *err)
{
    return question == NULL ? no_memory(err)
                            : ps_question_ask(self->client, question,
                                              self->client->options.timeout_ms, 0, ret_reply, err);
}

/* Begins work on the checkpoint and waits for its end. */
static psd_status_t work(const resume_t *self, const char *op, const char *key, const char *value,
                         psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *question = ps_checkpoint_question(op, self->from->name, key, value);
    uint64_t number = 0;
    psd_status_t rc =
        question == NULL ? no_memory(err) : ps_checkpoint_ask(self->client, question, &number, err);

    return rc == PSD_OK ? ps_checkpoint_end(self->client, number, self->until_ms, err) : rc;
}

/* ---- the checkpoint ---- */

static psd_status_t check_job(const resume_t *self, psd_error_t *err)
{
    const ps_doc_t *jobs = NULL;
    psd_status_t rc = ps_doc_has(self->from->manifest, "jobs")
                          ? ps_doc_get_array(self->from->manifest, "jobs", JOBS_MAX, &jobs, err)
                          : PSD_OK;

    for (size_t i = 0; rc == PSD_OK && jobs != NULL && i < ps_doc_count(jobs); i++) {
        const ps_doc_t *job = NULL;
        const char *name = "";

        rc = ps_doc_at_object(jobs, i, &job, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(job, "job", PS_NAME_MAX, &name, err);
        }
        if (rc == PSD_OK && strcmp(name, self->job) == 0) {
            return PSD_OK;
        }
    }
    return rc == PSD_OK
               ? psd_error_set(err, PSD_NO_JOB,
                               "it has no job \"%s\": it was not made with that job", self->job)
               : rc;
}

typedef psd_status_t on_table_t(const resume_t *self, const char *table, psd_error_t *err);

static psd_status_t each_table(const resume_t *self, on_table_t *on_table, psd_error_t *err)
{
    const ps_doc_t *tables = NULL;
    psd_status_t rc = ps_doc_get_array(self->from->manifest, "tables", TABLES_MAX, &tables, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        const ps_doc_t *spec = NULL;
        const char *name = "";

        rc = ps_doc_at_object(tables, i, &table, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_object(table, "spec", &spec, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(spec, "name", PS_NAME_MAX, &name, err);
        }
        if (rc == PSD_OK) {
            rc = psd_error_wrap(err, on_table(self, name, err), "table \"%s\"", name);
        }
    }
    return rc;
}

static psd_status_t drop_table(const resume_t *self, const char *table, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *question = ps_checkpoint_question("table_drop", table, NULL, NULL);
    psd_status_t rc = ask(self, question, NULL, err);

    if (rc == PSD_NO_TABLE) {
        psd_error_clear(err);
        return PSD_OK;
    }
    return rc;
}

static psd_status_t restore_table(const resume_t *self, const char *table, psd_error_t *err)
{
    return work(self, "checkpoint_restore", "table", table, err);
}

/* ---- the job that is there ---- */

/* "0, 2": the workers that have neither ended nor were lost. */
static psd_status_t name_live(const ps_doc_t *job, ps_buffer_t *names, psd_error_t *err)
{
    const ps_doc_t *workers = NULL;
    psd_status_t rc = ps_doc_get_array(job, "workers", PS_WORKERS_MAX, &workers, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(workers); i++) {
        const ps_doc_t *worker = NULL;
        const char *state = "";
        uint64_t number = 0;

        rc = ps_doc_at_object(workers, i, &worker, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(worker, "state", PS_NAME_MAX, &state, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(worker, "worker", 0, PS_WORKERS_MAX, &number, err);
        }
        if (rc == PSD_OK && strcmp(state, "finished") != 0 && strcmp(state, "lost") != 0 &&
            !ps_buffer_print(names, "%s%" PRIu64, names->size == 0 ? "" : ", ", number)) {
            rc = no_memory(err);
        }
    }
    return rc;
}

/* The node's view of the job: whether it runs, and which workers are left. No
 * job: none. */
static psd_status_t look_at_job(const resume_t *self, bool *ret_runs, ps_buffer_t *names,
                                psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("job_inspect");
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *job = NULL;
    const char *name = "";
    const char *state = "";
    psd_status_t rc = PSD_OK;

    *ret_runs = false;
    names->size = 0;
    if (question == NULL || !ps_doc_set_text(question, "job", self->job)) {
        return no_memory(err);
    }
    rc = ask(self, question, &reply, err);
    if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_object(reply, "job", &job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(job, "name", PS_NAME_MAX, &name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(job, "state", PS_NAME_MAX, &state, err);
    }
    if (rc != PSD_OK || strcmp(name, self->job) != 0) {
        return rc; /* a word of digits has found another one, by its number */
    }
    *ret_runs = strcmp(state, "running") == 0;
    return name_live(job, names, err);
}

static psd_status_t stop_job(const resume_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("job_stop");

    if (question == NULL || !ps_doc_set_text(question, "job", self->job)) {
        return no_memory(err);
    }
    return ask(self, question, NULL, err);
}

static psd_status_t end_job(const resume_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t names = {.size = 0};
    bool runs = false;
    psd_status_t rc = look_at_job(self, &runs, &names, err);

    if (rc == PSD_OK && runs) {
        rc = stop_job(self, err);
    }
    while (rc == PSD_OK && names.size > 0) {
        if (ps_now_ms() >= self->until_ms) {
            return psd_error_set(
                err, PSD_DEADLINE,
                "job \"%s\" was stopped; worker %s neither ended nor was declared lost", self->job,
                (const char *)names.data);
        }
        ps_wait_ms(self->client, PS_CHECKPOINT_LOOK_MS);
        rc = look_at_job(self, &runs, &names, err);
    }
    return rc;
}

static psd_status_t restore_job(const resume_t *self, uint32_t n_workers, uint64_t n_epochs,
                                psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *question =
        ps_checkpoint_question("checkpoint_restore", self->from->name, "job", self->job);

    if (question == NULL || (n_workers != 0 && !ps_doc_set_u64(question, "workers", n_workers)) ||
        (n_epochs != 0 && !ps_doc_set_u64(question, "epochs", n_epochs))) {
        return no_memory(err);
    }
    return ask(self, question, NULL, err);
}

/* ---- all of it ---- */

static psd_status_t check(const psd_client_t *client, const char *name, const char *job,
                          psd_error_t *err)
{
    if (name == NULL || job == NULL) {
        return psd_error_set(err, PSD_INVALID, "the name of a checkpoint or job is NULL");
    }
    return client->worker.beat == NULL
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "the client is worker %" PRIu32 " of job "
                               "\"%s\"; allowed: one that has left",
                               client->worker.stamp.worker, client->worker.job);
}

psd_status_t psd_checkpoint_resume(psd_client_t *client, const char *name, const char *job,
                                   uint32_t n_workers, uint64_t n_epochs, uint32_t timeout_ms,
                                   psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(psd_checkpoint_destroy) psd_checkpoint_t *from = NULL;
    resume_t self = {.client = client, .job = job, .until_ms = ps_now_ms() + timeout_ms};
    psd_status_t rc = check(client, name, job, err);

    if (rc == PSD_OK) {
        rc = ps_checkpoint_find(client, name, &from, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self.from = from;
    rc = check_job(&self, err);
    if (rc == PSD_OK) { /* before anything is gone */
        rc = work(&self, "checkpoint_verify", NULL, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = end_job(&self, err);
    }
    if (rc == PSD_OK) {
        rc = each_table(&self, drop_table, err);
    }
    if (rc == PSD_OK) {
        rc = each_table(&self, restore_table, err);
    }
    if (rc == PSD_OK) {
        rc = restore_job(&self, n_workers, n_epochs, err);
    }
    return psd_error_wrap(err, rc, "resume from checkpoint \"%s\"", from->name);
}
