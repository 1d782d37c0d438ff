/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: beginning one, waiting for it, finding the newest, dropping. */
#include "client/job/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "client/requests/wait.h"

#define LIST_MAX 1048576
#define JOBS_MAX 65536
#define MANIFEST_MAX (SIZE_MAX / 2)

/* ---- questions ---- */

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a checkpoint");
}

ps_doc_t *ps_checkpoint_question(const char *op, const char *name, const char *key,
                                 const char *value)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_question_new(op);
    ps_doc_t *question = NULL;

    if (doc != NULL && ps_doc_set_text(doc, "name", name) &&
        (value == NULL || ps_doc_set_text(doc, key, value))) {
        question = doc;
        doc = NULL;
    }
    return question;
}

psd_status_t ps_checkpoint_ask(psd_client_t *client, ps_doc_t *question, uint64_t *ret_number,
                               psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    psd_status_t rc = ps_question_ask(client, question, client->options.timeout_ms, 0, &reply, err);

    return rc == PSD_OK ? ps_doc_get_u64(reply, "number", 1, UINT64_MAX, ret_number, err) : rc;
}

/* ---- waiting ---- */

typedef struct progress {
    bool is_done;
    uint64_t done;
    uint64_t of;
} progress_t;

static psd_status_t look(psd_client_t *client, uint64_t number, progress_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *question = ps_question_new("checkpoint_look");
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    psd_status_t rc = PSD_OK;

    if (question == NULL || !ps_doc_set_u64(question, "number", number)) {
        return no_memory(err);
    }
    rc = ps_question_ask(client, question, client->options.timeout_ms, 0, &reply, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_bool(reply, "is_done", &ret->is_done, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(reply, "done", 0, UINT64_MAX, &ret->done, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(reply, "of", 0, UINT64_MAX, &ret->of, err);
    }
    return rc;
}

psd_status_t ps_checkpoint_end(psd_client_t *client, uint64_t number, uint64_t until_ms,
                               psd_error_t *err)
{
    progress_t progress = {.is_done = false};

    for (;;) {
        psd_status_t rc = look(client, number, &progress, err);

        if (rc != PSD_OK || progress.is_done) {
            return rc;
        }
        if (ps_now_ms() >= until_ms) {
            return psd_error_set(err, PSD_DEADLINE, "%" PRIu64 " of %" PRIu64 " files are done",
                                 progress.done, progress.of);
        }
        ps_wait_ms(client, PS_CHECKPOINT_LOOK_MS);
    }
}

psd_status_t psd_checkpoint_start(psd_client_t *client, const char *name, const char *job,
                                  uint64_t *ret_number, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = NULL;

    if (name == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "the name of a checkpoint is "
                             "NULL");
    }
    question = ps_checkpoint_question("checkpoint_create", name, "job", job);
    if (question == NULL) {
        return no_memory(err);
    }
    return psd_error_wrap(err, ps_checkpoint_ask(client, question, ret_number, err),
                          "checkpoint \"%s\"", name);
}

psd_status_t psd_checkpoint_wait(psd_client_t *client, uint64_t number, uint32_t timeout_ms,
                                 psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    return psd_error_wrap(err, ps_checkpoint_end(client, number, ps_now_ms() + timeout_ms, err),
                          "checkpoint number %" PRIu64, number);
}

/* ---- finding ---- */

/* N of NAME-N; 0: it is none of the series. */
static uint64_t number_of(const char *text, const char *name)
{
    size_t size = strlen(name);
    uint64_t number = 0;

    return strncmp(text, name, size) == 0 && text[size] == '-' &&
                   ps_text_u64(text + size + 1, &number)
               ? number
               : 0;
}

/* How good a match it is, 0 for none: the name itself is the best one; of a
 * series the greatest number; of all the youngest. */
static uint64_t rank(const ps_doc_t *item, const char *found, const char *name)
{
    uint64_t created = 0;

    if (name != NULL) {
        return strcmp(found, name) == 0 ? UINT64_MAX : number_of(found, name);
    }
    return ps_doc_get_u64_or(item, "created_unix_ms", 0, UINT64_MAX, 0, &created, NULL) == PSD_OK
               ? created
               : 0;
}

/* The name of the best one; borrowed from the list. */
static psd_status_t choose(const ps_doc_t *list, const char *name, const char **ret_name,
                           psd_error_t *err)
{
    uint64_t best = 0;
    psd_status_t rc = PSD_OK;

    *ret_name = NULL;
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(list); i++) {
        const ps_doc_t *item = NULL;
        const char *found = "";
        const char *state = "";

        rc = ps_doc_at_object(list, i, &item, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(item, "name", PS_CHECKPOINT_NAME_SIZE - 1, &found, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(item, "state", PS_NAME_MAX, &state, err);
        }
        if (rc == PSD_OK && strcmp(state, "whole") == 0 && rank(item, found, name) > best) {
            best = rank(item, found, name);
            *ret_name = found;
        }
    }
    if (rc == PSD_OK && *ret_name == NULL) {
        return name == NULL
                   ? psd_error_set(err, PSD_NO_CHECKPOINT, "there is no complete checkpoint")
                   : psd_error_set(err, PSD_NO_CHECKPOINT,
                                   "there is no complete checkpoint \"%s\", nor one of a series "
                                   "\"%s-1\", \"%s-2\", …",
                                   name, name, name);
    }
    return rc;
}

/* The first of its jobs; of several, as pscli never makes them, the others are
 * reached by their names. */
static psd_status_t read_job(psd_checkpoint_t *self, psd_error_t *err)
{
    const ps_doc_t *jobs = NULL;
    const ps_doc_t *job = NULL;
    const char *name = "";
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(self->manifest, "jobs")) {
        return PSD_OK;
    }
    rc = ps_doc_get_array(self->manifest, "jobs", JOBS_MAX, &jobs, err);
    if (rc == PSD_OK && ps_doc_count(jobs) > 0) {
        rc = ps_doc_at_object(jobs, 0, &job, err);
    }
    if (rc == PSD_OK && job != NULL) {
        rc = ps_doc_get_text(job, "job", PS_NAME_MAX, &name, err);
    }
    if (rc == PSD_OK && job != NULL) {
        rc = ps_doc_get_u64(job, "clock", 0, UINT64_MAX, &self->clock, err);
    }
    (void)snprintf(self->job, sizeof self->job, "%s", name);
    return rc;
}

static psd_status_t inspect(psd_client_t *client, const char *name, psd_checkpoint_t *ret,
                            psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *question = ps_checkpoint_question("checkpoint_inspect", name, NULL, NULL);
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const char *text = "";
    psd_status_t rc = PSD_OK;

    if (question == NULL) {
        return no_memory(err);
    }
    rc = ps_question_ask(client, question, client->options.timeout_ms, 0, &reply, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(reply, "manifest", MANIFEST_MAX, &text, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_parse((ps_bytes_t){(const uint8_t *)text, strlen(text)}, &ret->manifest, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(ret->manifest, "created_unix_ms", 0, UINT64_MAX, &ret->unix_ms, err);
    }
    (void)snprintf(ret->name, sizeof ret->name, "%s", name);
    return rc == PSD_OK ? read_job(ret, err) : rc;
}

psd_status_t ps_checkpoint_find(psd_client_t *client, const char *name, psd_checkpoint_t **ret,
                                psd_error_t *err)
{
    PSD_AUTO(psd_checkpoint_destroy)
    psd_checkpoint_t *found = ps_alloc(1, sizeof *found);
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *question = ps_question_new("checkpoint_list");
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *list = NULL;
    const char *chosen = NULL;
    psd_status_t rc = PSD_OK;

    if (found == NULL || question == NULL) {
        return no_memory(err);
    }
    rc = ps_question_ask(client, question, client->options.timeout_ms, 0, &reply, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(reply, "checkpoints", LIST_MAX, &list, err);
    }
    if (rc == PSD_OK) {
        rc = choose(list, name, &chosen, err);
    }
    if (rc == PSD_OK) {
        rc = psd_error_wrap(err, inspect(client, chosen, found, err), "checkpoint \"%s\"", chosen);
    }
    if (rc == PSD_OK) {
        *ret = found;
        found = NULL; /* ownership moves to the caller */
    }
    return rc;
}

psd_status_t psd_checkpoint_newest(psd_client_t *client, const char *name,
                                   psd_checkpoint_t **ret_checkpoint, psd_error_t *err)
{
    return ps_client_enter(client, err) != PSD_OK
               ? PSD_CLOSED
               : ps_checkpoint_find(client, name, ret_checkpoint, err);
}

void psd_checkpoint_destroy(psd_checkpoint_t **self_p)
{
    if (self_p != NULL && *self_p != NULL) {
        ps_doc_destroy(&(*self_p)->manifest);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

const char *psd_checkpoint_name(const psd_checkpoint_t *self)
{
    return self->name;
}

const char *psd_checkpoint_job(const psd_checkpoint_t *self)
{
    return self->job;
}

uint64_t psd_checkpoint_clock(const psd_checkpoint_t *self)
{
    return self->clock;
}

uint64_t psd_checkpoint_unix_ms(const psd_checkpoint_t *self)
{
    return self->unix_ms;
}

/* ---- dropping ---- */

psd_status_t psd_checkpoint_drop(psd_client_t *client, const char *name, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = NULL;

    if (name == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "the name of a checkpoint is "
                             "NULL");
    }
    question = ps_checkpoint_question("checkpoint_drop", name, NULL, NULL);
    return question == NULL
               ? no_memory(err)
               : ps_question_ask(client, question, client->options.timeout_ms, 0, NULL, err);
}
