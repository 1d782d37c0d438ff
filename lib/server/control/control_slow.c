/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest requests of all shards. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/facts/slow_log.h"
#include "server/state/control_inner.h"

#define LIMIT_MAX 10000
#define ENTRIES_MAX 1024 /* of a shard: another build may keep more */

typedef struct found {
    const ps_doc_t *doc; /* of its shard's answer */
    const ps_shard_answer_t *answer;
    uint64_t total_us;
} found_t;

typedef struct founds {
    ps_doc_t **answers; /* owned; read */
    size_t n_answers;
    found_t *at; /* owned */
    size_t n;
    size_t capacity;
} founds_t;

static void founds_done(founds_t *self)
{
    for (size_t i = 0; i < self->n_answers; i++) {
        ps_doc_destroy(&self->answers[i]);
    }
    ps_free(self->answers);
    ps_free(self->at);
}

/* ---- gathered ---- */

/* Errors: PSD_PROTO the answer is none, and nothing of it counts; PSD_NOMEM. */
static psd_status_t take(founds_t *self, const ps_doc_t *doc, const ps_shard_answer_t *answer,
                         psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    size_t n_before = self->n;
    psd_status_t rc = ps_doc_get_array(doc, "slow", ENTRIES_MAX, &array, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i++) {
        found_t found = {.answer = answer};

        rc = ps_doc_at_object(array, i, &found.doc, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(found.doc, "total_us", 0, UINT64_MAX, &found.total_us, err);
        }
        if (rc == PSD_OK && !ps_grow(&self->at, &self->capacity, self->n + 1, sizeof *self->at)) {
            rc = ps_control_no_memory(err);
        }
        if (rc == PSD_OK) {
            self->at[self->n++] = found;
        }
    }
    self->n = rc == PSD_OK ? self->n : n_before;
    return rc;
}

static psd_status_t gather(founds_t *self, const ps_answers_t *answers, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->answers = ps_alloc(answers->n + 1, sizeof *self->answers);
    if (self->answers == NULL) {
        return ps_control_no_memory(err);
    }
    for (size_t i = 0; rc == PSD_OK && i < answers->n; i++) {
        const ps_shard_answer_t *answer = &answers->at[i];
        ps_doc_t **doc = &self->answers[self->n_answers];

        if (answer->words.size == 0) {
            continue;
        }
        rc = ps_doc_parse((ps_bytes_t){answer->words.data, answer->words.size}, doc, err);
        if (rc == PSD_OK) {
            self->n_answers++;
            rc = take(self, *doc, answer, err);
        }
        if (rc != PSD_OK && rc != PSD_NOMEM) { /* one shard hides no other */
            psd_error_clear(err);
            rc = PSD_OK;
        }
    }
    return rc;
}

static int by_time(const void *left, const void *right)
{
    const found_t *a = left;
    const found_t *b = right;

    return a->total_us < b->total_us ? 1 : a->total_us > b->total_us ? -1 : 0;
}

/* ---- answered ---- */

static bool copy_numbers(const ps_doc_t *from, ps_doc_t *to)
{
    static const char *const KEYS[] = {"ago_ms",   "partition", "session",   "request",  "rows",
                                       "bytes",    "worker",    "clock",     "total_us", "gate_us",
                                       "queue_us", "work_us",   "copies_us", "flush_us"};
    bool done = true;

    for (size_t i = 0; done && i < sizeof KEYS / sizeof KEYS[0]; i++) {
        uint64_t value = 0;

        done = ps_doc_get_u64(from, KEYS[i], 0, UINT64_MAX, &value, NULL) != PSD_OK ||
               ps_doc_set_u64(to, KEYS[i], value);
    }
    return done;
}

static bool copy_text(const ps_doc_t *from, const char *key, ps_doc_t *to)
{
    const char *text = NULL;

    return !ps_doc_has(from, key) ||
           ps_doc_get_text(from, key, PS_NAME_MAX, &text, NULL) != PSD_OK ||
           ps_doc_set_text(to, key, text);
}

/* By name; by its number when it is gone. */
static bool add_job(const ps_registry_t *registry, const ps_doc_t *from, ps_doc_t *to)
{
    const ps_job_t *job = NULL;
    uint64_t id = 0;
    char number[24];

    if (ps_doc_get_u64(from, "job", 1, UINT32_MAX, &id, NULL) != PSD_OK) {
        return true;
    }
    job = ps_registry_job_by_id(registry, (uint32_t)id);
    (void)snprintf(number, sizeof number, "%" PRIu64, id);
    return ps_doc_set_text(to, "job", job == NULL ? number : job->name);
}

static bool add(const ps_registry_t *registry, const found_t *found, const ps_table_t *table,
                ps_doc_t *array)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(registry, found->answer->incarnation);
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && copy_text(found->doc, "kind", doc) &&
           ps_doc_set_text(doc, "table", table->spec.name) &&
           ps_doc_set_text(doc, "node", node == NULL ? "" : node->name) &&
           ps_doc_set_u64(doc, "shard", found->answer->shard) &&
           add_job(registry, found->doc, doc) && copy_numbers(found->doc, doc) &&
           copy_text(found->doc, "held_for", doc);
}

/* Of tables that are still there, and that the caller may see. */
static bool is_shown(const ps_control_t *self, const ps_control_request_t *request,
                     const found_t *found, const char *only, const ps_table_t **ret_table)
{
    uint64_t id = 0;

    if (ps_doc_get_u64(found->doc, "table", 1, UINT32_MAX, &id, NULL) != PSD_OK) {
        return false;
    }
    *ret_table = ps_registry_table_by_id(self->is.registry, (uint32_t)id);
    return *ret_table != NULL && (only == NULL || strcmp((*ret_table)->spec.name, only) == 0) &&
           ps_control_sees(self, request, PS_OBJECT_TABLE, (*ret_table)->spec.name);
}

/* The table that is asked for. A caller without a right to it does not hear whether it exists. */
static psd_status_t find_only(const ps_control_t *self, const ps_control_request_t *request,
                              const char **ret_name, psd_error_t *err)
{
    const ps_table_t *table = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_control_may_also(self, request, PS_VERB_LOOK, PS_OBJECT_TABLE, name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_find_table(self, request->doc, "name", &table, err);
    }
    *ret_name = table == NULL ? NULL : table->spec.name;
    return rc;
}

psd_status_t ps_control_slow(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(founds_done) founds_t founds = {0};
    const ps_table_t *table = NULL;
    const char *only = NULL;
    ps_doc_t *array = NULL;
    uint64_t limit = 0;
    uint64_t n = 0;
    psd_status_t rc =
        ps_doc_get_u64_or(request->doc, "limit", 1, LIMIT_MAX, LIMIT_MAX, &limit, err);

    if (rc == PSD_OK && ps_doc_has(request->doc, "name")) {
        rc = find_only(self, request, &only, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (request->step == 0) {
        return ps_control_ask(request, PS_CALL_SLOW, 0);
    }
    rc = gather(&founds, request->answers, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (founds.n > 0) {
        qsort(founds.at, founds.n, sizeof *founds.at, by_time);
    }
    array = ps_doc_add_array(request->reply, "slow");
    for (size_t i = 0; array != NULL && i < founds.n && n < limit; i++) {
        if (is_shown(self, request, &founds.at[i], only, &table)) {
            n++;
            array = add(self->is.registry, &founds.at[i], table, array) ? array : NULL;
        }
    }
    return array != NULL && ps_doc_set_text(request->reply, "missing", request->missing)
               ? PSD_OK
               : ps_control_no_memory(err);
}
