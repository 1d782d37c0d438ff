/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes say about tables that the registry does not know. */
#include "server/control/unknown.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/facts/table_doc.h"

#define TABLES_MAX ((size_t)1 << 20)
#define NUMBER_SIZE 12

static void unknown_done(ps_unknown_t *self)
{
    ps_table_spec_done(&self->spec);
    ps_free(self->found);
}

void ps_unknowns_done(ps_unknowns_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        unknown_done(&self->at[i]);
    }
    ps_free(self->at);
    *self = (ps_unknowns_t){0};
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for tables");
}

/* The entry of that table, a new one if need be; takes the spec. */
static psd_status_t get(ps_unknowns_t *self, uint32_t id, ps_table_spec_t *spec, ps_unknown_t **ret,
                        psd_error_t *err)
{
    size_t at = 0;

    while (at < self->n && self->at[at].id <= id) {
        if (self->at[at].id == id && strcmp(self->at[at].spec.name, spec->name) == 0) {
            *ret = &self->at[at];
            return PSD_OK;
        }
        at++;
    }
    if (!ps_grow(&self->at, &self->capacity, self->n + 1, sizeof *self->at)) {
        return no_memory(err);
    }
    memmove(&self->at[at + 1], &self->at[at], (self->n - at) * sizeof *self->at);
    self->at[at] = (ps_unknown_t){.id = id, .spec = *spec};
    *spec = (ps_table_spec_t){.n_rows = 0};
    self->n++;
    *ret = &self->at[at];
    return PSD_OK;
}

static psd_status_t read_copy(const ps_doc_t *doc, uint32_t n_partitions, ps_found_t *found,
                              psd_error_t *err)
{
    uint64_t partition = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "partition", 0, n_partitions - 1, &partition, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "epoch", 0, INT64_MAX - 1, &found->epoch, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "lsn", 0, UINT64_MAX, &found->lsn, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "lsn_epoch", 0, UINT64_MAX, &found->lsn_epoch, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_bool(doc, "whole", &found->whole, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "rows", 0, UINT64_MAX, &found->rows, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "bytes", 0, UINT64_MAX, &found->bytes, err);
    }
    found->partition = (uint32_t)partition;
    return rc;
}

static psd_status_t read_copies(const ps_doc_t *doc, const ps_shard_answer_t *answer,
                                ps_unknown_t *table, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "partitions", PS_TABLE_PARTITIONS_MAX, &array, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i++) {
        ps_found_t found = {.incarnation = answer->incarnation, .shard = answer->shard};
        const ps_doc_t *item = NULL;

        rc = ps_doc_at_object(array, i, &item, err);
        if (rc == PSD_OK) {
            rc = read_copy(item, table->spec.n_partitions, &found, err);
        }
        if (rc == PSD_OK &&
            !ps_grow(&table->found, &table->capacity, table->n_found + 1, sizeof found)) {
            rc = no_memory(err);
        }
        if (rc == PSD_OK) {
            table->found[table->n_found++] = found;
        }
    }
    return rc;
}

static psd_status_t read_table(ps_unknowns_t *self, const ps_doc_t *doc,
                               const ps_shard_answer_t *answer, psd_error_t *err)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {.n_rows = 0};
    const ps_doc_t *of = NULL;
    ps_unknown_t *table = NULL;
    uint64_t id = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "id", 1, UINT32_MAX, &id, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_object(doc, "spec", &of, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_spec_from_doc(of, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_spec_check(&spec, err);
    }
    if (rc == PSD_OK) {
        rc = get(self, (uint32_t)id, &spec, &table, err);
    }
    return rc == PSD_OK ? read_copies(doc, answer, table, err) : rc;
}

static psd_status_t read_answer(ps_unknowns_t *self, const ps_shard_answer_t *answer,
                                psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_parse((ps_bytes_t){answer->words.data, answer->words.size}, &doc, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "tables", TABLES_MAX, &array, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i++) {
        const ps_doc_t *item = NULL;

        rc = ps_doc_at_object(array, i, &item, err);
        if (rc == PSD_OK) {
            rc = read_table(self, item, answer, err);
        }
    }
    return rc;
}

psd_status_t ps_unknowns_gather(const ps_answers_t *answers, ps_unknowns_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_unknowns_done) ps_unknowns_t self = {0};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < answers->n; i++) {
        rc = read_answer(&self, &answers->at[i], err);
    }
    if (rc == PSD_OK) {
        *ret = self; /* ownership moves */
        self = (ps_unknowns_t){0};
    }
    return rc;
}

psd_status_t ps_unknowns_find(const ps_unknowns_t *self, const char *name, const ps_unknown_t **ret,
                              psd_error_t *err)
{
    const ps_unknown_t *found = NULL;
    size_t n = 0;

    for (size_t i = 0; i < self->n; i++) {
        char number[NUMBER_SIZE];

        (void)snprintf(number, sizeof number, "%" PRIu32, self->at[i].id);
        if (strcmp(self->at[i].spec.name, name) == 0 || strcmp(number, name) == 0) {
            found = &self->at[i];
            n++;
        }
    }
    if (n == 0) {
        return psd_error_set(err, PSD_NO_TABLE, "no node that is up keeps a table \"%.80s\" aside",
                             name);
    }
    if (n > 1) {
        return psd_error_set(err, PSD_INVALID,
                             "%zu tables \"%.80s\" are kept aside; name one by its number", n,
                             name);
    }
    *ret = found;
    return PSD_OK;
}
