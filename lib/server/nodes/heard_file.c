/* SPDX-License-Identifier: Apache-2.0 */
/* What a node remembers of its registry, as a file. */
#include "server/nodes/heard_file.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "server/config/sealed.h"

#define HEARD "heard.json"
#define ASIDE_MAX ((size_t)1 << 20)

void ps_heard_file_done(ps_heard_file_t *self)
{
    ps_heard_done(&self->heard);
    *self = (ps_heard_file_t){.is_there = false};
}

/* ---- reading ---- */

static psd_status_t read_cluster(const ps_doc_t *doc, ps_heard_file_t *self, psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_id(doc, "cluster", &self->cluster, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "cluster_name", PS_NAME_MAX, &name, err);
    }
    if (rc == PSD_OK && !ps_text_is_name(name)) {
        rc = psd_error_set(err, PSD_INVALID, "cluster_name is not a name");
    }
    if (rc == PSD_OK) {
        memcpy(self->name, name, strlen(name) + 1);
    }
    return rc;
}

static psd_status_t read_numbers(const ps_doc_t *doc, ps_heard_t *heard, psd_error_t *err)
{
    uint64_t table = 0;
    uint64_t job = 0;
    psd_status_t rc = ps_doc_get_id(doc, "lineage", &heard->at.lineage, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "term", 0, INT64_MAX, &heard->at.term, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "index", 0, INT64_MAX, &heard->at.index, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "session", 0, INT64_MAX, &heard->session, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "last_table", 0, UINT32_MAX, &table, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "last_job", 0, UINT32_MAX, &job, err);
    }
    heard->last_table = (uint32_t)table;
    heard->last_job = (uint32_t)job;
    return rc;
}

static psd_status_t read_past(const ps_doc_t *doc, ps_heard_t *heard, psd_error_t *err)
{
    const ps_doc_t *past = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "past", PS_PAST_MAX, &past, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(past); i++) {
        const char *text = NULL;

        rc = ps_doc_at_text(past, i, PS_ID_TEXT_SIZE - 1, &text, err);
        if (rc == PSD_OK && !ps_id_parse(text, &heard->past[i])) {
            rc = psd_error_set(err, PSD_INVALID, "past[%zu] is not a UUID", i);
        }
        heard->n_past += rc == PSD_OK ? 1 : 0;
    }
    return rc;
}

static psd_status_t read_aside(const ps_doc_t *doc, ps_heard_t *heard, psd_error_t *err)
{
    const ps_doc_t *aside = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "aside", ASIDE_MAX, &aside, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(aside); i++) {
        uint64_t table = 0;

        rc = ps_doc_at_u64(aside, i, &table, err);
        if (rc == PSD_OK && (table == 0 || table > UINT32_MAX)) {
            rc = psd_error_set(err, PSD_INVALID, "aside[%zu] is not a table", i);
        }
        if (rc == PSD_OK && !ps_heard_put_aside(heard, (uint32_t)table)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for " HEARD);
        }
    }
    return rc;
}

psd_status_t ps_heard_file_read(const char *dir, ps_heard_file_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_heard_file_done) ps_heard_file_t self = {.is_there = true};
    psd_status_t rc = ps_sealed_read(dir, HEARD, &doc, err);

    if (rc != PSD_OK || doc == NULL) {
        *ret = (ps_heard_file_t){.is_there = false};
        return rc;
    }
    rc = read_cluster(doc, &self, err);
    if (rc == PSD_OK) {
        rc = read_numbers(doc, &self.heard, err);
    }
    if (rc == PSD_OK) {
        rc = read_past(doc, &self.heard, err);
    }
    if (rc == PSD_OK) {
        rc = read_aside(doc, &self.heard, err);
    }
    if (rc != PSD_OK) {
        return ps_sealed_blame(dir, HEARD, rc, err);
    }
    *ret = self; /* ownership moves */
    self = (ps_heard_file_t){.is_there = false};
    return PSD_OK;
}

/* ---- writing ---- */

static bool fill(const ps_heard_file_t *self, ps_doc_t *doc)
{
    const ps_heard_t *heard = &self->heard;
    ps_doc_t *past = NULL;
    ps_doc_t *aside = NULL;
    bool done = ps_doc_set_id(doc, "cluster", &self->cluster) &&
                ps_doc_set_text(doc, "cluster_name", self->name) &&
                ps_doc_set_id(doc, "lineage", &heard->at.lineage) &&
                ps_doc_set_u64(doc, "term", heard->at.term) &&
                ps_doc_set_u64(doc, "index", heard->at.index) &&
                ps_doc_set_u64(doc, "session", heard->session) &&
                ps_doc_set_u64(doc, "last_table", heard->last_table) &&
                ps_doc_set_u64(doc, "last_job", heard->last_job);

    past = done ? ps_doc_add_array(doc, "past") : NULL;
    aside = past == NULL ? NULL : ps_doc_add_array(doc, "aside");
    done = aside != NULL;
    for (size_t i = 0; done && i < heard->n_past; i++) {
        char text[PS_ID_TEXT_SIZE];

        ps_id_format(&heard->past[i], text);
        done = ps_doc_append_text(past, text);
    }
    for (size_t i = 0; done && i < heard->n_aside; i++) {
        done = ps_doc_append_u64(aside, heard->aside[i]);
    }
    return done;
}

psd_status_t ps_heard_file_write(const char *dir, const ps_heard_file_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    return doc != NULL && fill(self, doc) ? ps_sealed_write(dir, HEARD, doc, err)
                                          : psd_error_set(err, PSD_NOMEM, "no memory for " HEARD);
}
