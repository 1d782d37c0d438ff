/* SPDX-License-Identifier: Apache-2.0 */
/* Creating, opening and dropping tables, and the list of known tables. */
#include "client/requests/table.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "client/requests/lend.h"
#include "client/requests/marks.h"
#include "client/slices/sparsify.h"
#include "protocol/facts/table_filter.h"
#include "client/requests/spec.h"
#include "client/requests/wait.h"
#include "protocol/facts/table_doc.h"

/* ---- known tables -------------------------------------------------------- */

psd_status_t ps_known_table_add(psd_client_t *self, uint32_t id, const char *name,
                                uint32_t n_partitions, ps_known_table_t **ret_table,
                                psd_error_t *err)
{
    ps_known_table_t *known = ps_known_table(self, id);

    if (known != NULL) {
        *ret_table = known;
        return PSD_OK;
    }
    known = ps_alloc(1, sizeof *known);
    if (known != NULL) {
        known->queues = ps_alloc_raw(n_partitions, sizeof *known->queues);
    }
    if (known == NULL || known->queues == NULL ||
        !ps_grow(&self->tables, &self->tables_capacity, self->n_tables + 1,
                 sizeof(ps_known_table_t *))) {
        if (known != NULL) {
            ps_free(known->queues);
        }
        ps_free(known);
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    self->tables[self->n_tables++] = known;
    known->id = id;
    known->n_partitions = n_partitions;
    (void)snprintf(known->name, sizeof known->name, "%s", name);
    for (uint32_t i = 0; i < n_partitions; i++) {
        ps_queue_init(&known->queues[i], known, i);
    }
    *ret_table = known;
    return PSD_OK;
}

static psd_status_t learn_routes(psd_client_t *self, const ps_doc_t *from, uint32_t id,
                                 const ps_table_spec_t *spec, ps_known_table_t **ret_table,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    const ps_doc_t *array = NULL;
    uint32_t n = 0;
    psd_status_t rc = ps_doc_get_array(from, "routes", PS_TABLE_PARTITIONS_MAX, &array, err);

    if (rc == PSD_OK) {
        rc = ps_routes_from_doc(array, &routes, &n, err);
    }
    if (rc == PSD_OK && n != spec->n_partitions) {
        return psd_error_set(err, PSD_PROTO,
                             "table \"%s\" has %" PRIu32 " partitions and "
                             "%" PRIu32 " routes",
                             spec->name, spec->n_partitions, n);
    }
    if (rc == PSD_OK) {
        rc = ps_session_routes(self->session, id, routes, n, err);
    }
    if (rc == PSD_OK) {
        rc = ps_known_table_add(self, id, spec->name, spec->n_partitions, ret_table, err);
    }
    if (rc == PSD_OK) {
        ps_lend_learn(self, id, spec, routes, n);
    }
    return rc;
}

psd_status_t ps_table_learn(psd_client_t *self, const ps_doc_t *from, ps_table_spec_t *ret_spec,
                            ps_known_table_t **ret_table, psd_error_t *err)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {.n_rows = 0};
    const ps_doc_t *table = NULL;
    uint64_t id = 0;
    psd_status_t rc = ps_doc_get_object(from, "table", &table, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(table, "id", 1, UINT32_MAX, &id, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_spec_from_doc(table, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_spec_check(&spec, err); /* settled by the cluster */
    }
    if (rc == PSD_OK) {
        rc = learn_routes(self, from, (uint32_t)id, &spec, ret_table, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (ret_spec != NULL) {
        *ret_spec = spec;
        spec = (ps_table_spec_t){.n_rows = 0};
    }
    return PSD_OK;
}

/* ---- asking -------------------------------------------------------------- */

/* Takes a reply with table and routes; a worker's table belongs to its job. */
static psd_status_t take_table(psd_client_t *client, const ps_doc_t *reply,
                               ps_table_spec_t *ret_spec, ps_known_table_t **ret_table,
                               psd_error_t *err)
{
    psd_status_t rc = ps_node_names_from_doc(ps_session_names(client->session), reply, err);

    if (rc == PSD_OK) {
        rc = ps_table_learn(client, reply, ret_spec, ret_table, err);
    }
    if (rc == PSD_OK && client->worker.beat != NULL) {
        rc = ps_mark_table(client, *ret_table, err);
    }
    return rc;
}

/* Opens a table, for the job if this client is a worker. op: how; with
 * table_open the node creates the table from the spec when there is none. */
static psd_status_t ask(psd_client_t *client, const char *op, const char *name,
                        const ps_table_spec_t *spec, ps_table_spec_t *ret_spec,
                        ps_known_table_t **ret_table, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new(op);
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    ps_doc_t *doc = NULL;
    psd_status_t rc = PSD_OK;

    if (question == NULL || !ps_doc_set_text(question, "name", name) ||
        (client->worker.beat != NULL && !ps_control_name_job(client, question))) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    doc = spec == NULL ? NULL : ps_doc_add_object(question, "spec");
    if (spec != NULL && (doc == NULL || !ps_table_spec_to_doc(spec, doc))) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_control_insist(client, question, &reply, err);
    if (rc == PSD_OK) {
        rc = take_table(client, reply, ret_spec, ret_table, err);
    }
    return rc;
}

psd_status_t ps_table_ask_open(psd_client_t *client, const char *name, ps_table_spec_t *ret_spec,
                               ps_known_table_t **ret_table, psd_error_t *err)
{
    return ask(client, "table_open", name, NULL, ret_spec, ret_table, err);
}

static psd_status_t check_name(const char *name, psd_error_t *err)
{
    if (name != NULL && ps_text_is_name(name)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "name is \"%.80s\"; allowed: letters, digits and "
                         "_ . -, at most %d, first no dot or dash",
                         name == NULL ? "" : name, PS_NAME_MAX);
}

/* ---- handles ------------------------------------------------------------- */

/* A handle of what the question is answered with. */
static psd_status_t open_handle(psd_client_t *client, const char *op, const char *name,
                                const ps_table_spec_t *spec, psd_table_t **ret_table,
                                psd_error_t *err)
{
    PSD_AUTO(psd_table_close) psd_table_t *self = NULL;
    psd_status_t rc = PSD_OK;

    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table");
    }
    self->client = client;
    rc = ask(client, op, name, spec, &self->spec, &self->known, err);
    if (rc == PSD_OK) {
        rc = ps_table_filter_get(&self->spec, &self->filter, err);
    }
    if (rc == PSD_OK) {
        *ret_table = self;
        self = NULL;
    }
    return rc;
}

/* The same of a table that may have to be made. */
static psd_status_t open_or_make(psd_client_t *client, const char *op, const char *name,
                                 const psd_spec_t *spec, psd_table_t **ret_table, psd_error_t *err)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t named = {.n_rows = 0};
    psd_status_t rc = check_name(name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (spec == NULL) {
        ps_table_spec_init(&named);
    } else {
        rc = ps_table_spec_copy(&spec->spec, &named, err);
    }
    if (rc == PSD_OK && (spec == NULL || !spec->combine_set)) {
        rc = ps_spec_settle_combine(&named,
                                    client->worker.has_overlay && !client->worker.is_timed
                                        ? PS_COMBINE_CLOCK_SUM
                                        : PS_COMBINE_EACH,
                                    err);
    }
    if (rc == PSD_OK && (spec == NULL || !spec->replicas_set)) {
        rc = ps_spec_settle_replicas(&named, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(named.name, sizeof named.name, "%s", name);
    return open_handle(client, op, name, &named, ret_table, err);
}

psd_status_t psd_table_create(psd_client_t *client, const char *name, const psd_spec_t *spec,
                              psd_table_t **ret_table, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = open_or_make(client, "table_create", name, spec, ret_table, err);

    return rc == PSD_OK
               ? rc
               : psd_error_wrap(err, rc, "create table \"%.80s\"", name == NULL ? "" : name);
}

psd_status_t psd_table_open(psd_client_t *client, const char *name, psd_table_t **ret_table,
                            psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = check_name(name, err);

    if (rc == PSD_OK) {
        rc = open_handle(client, "table_open", name, NULL, ret_table, err);
    }
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "open table \"%.80s\"", name == NULL ? "" : name);
}

/* The first difference between an existing table and the spec. */
static psd_status_t check_agrees(const psd_table_t *self, const psd_spec_t *spec, psd_error_t *err)
{
    enum { KEYS, ROWS, COLS, TYPE, UPDATER, COMBINE, N };

    static const char *const what[N] = {"keys", "rows", "cols", "type", "updater", "combine"};
    const ps_table_spec_t *const specs[2] = {&self->spec, &spec->spec};
    char texts[2][N][PS_SPEC_TEXT_SIZE];

    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(texts[i][KEYS], PS_SPEC_TEXT_SIZE, "%s", ps_keys_name(specs[i]->keys));
        (void)snprintf(texts[i][ROWS], PS_SPEC_TEXT_SIZE, "%" PRIu64, specs[i]->n_rows);
        (void)snprintf(texts[i][COLS], PS_SPEC_TEXT_SIZE, "%" PRIu32, specs[i]->n_cols);
        (void)snprintf(texts[i][TYPE], PS_SPEC_TEXT_SIZE, "%s", ps_type_name(specs[i]->type));
        ps_updater_spec_format(&specs[i]->updater, texts[i][UPDATER]);
        (void)snprintf(texts[i][COMBINE], PS_SPEC_TEXT_SIZE, "%s",
                       spec->combine_set ? ps_combine_name(specs[i]->combine) : "");
    }
    for (size_t i = 0; i < N; i++) {
        if (strcmp(texts[0][i], texts[1][i]) != 0) {
            return psd_error_set(
                err, PSD_TABLE_EXISTS,
                "table \"%s\" exists with %s %s, not %s; drop it, or choose another name",
                self->spec.name, what[i], texts[0][i], texts[1][i]);
        }
    }
    return PSD_OK;
}

psd_status_t psd_table_ensure(psd_client_t *client, const char *name, const psd_spec_t *spec,
                              psd_table_t **ret_table, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(psd_table_close) psd_table_t *self = NULL;
    psd_status_t rc = open_or_make(client, "table_open", name, spec, &self, err);

    if (rc == PSD_OK && spec != NULL) {
        assert(self != NULL);
        rc = check_agrees(self, spec, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "ensure table \"%.80s\"", name == NULL ? "" : name);
    }
    *ret_table = self;
    self = NULL;
    return PSD_OK;
}

void psd_table_close(psd_table_t **self_p)
{
    if (self_p != NULL && *self_p != NULL) {
        ps_table_spec_done(&(*self_p)->spec);
        ps_sparsify_destroy(&(*self_p)->thin);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

psd_status_t psd_table_drop(psd_client_t *client, const char *name, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = NULL;
    psd_status_t rc = check_name(name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    question = ps_question_new("table_drop");
    if (question == NULL || !ps_doc_set_text(question, "name", name)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_question_ask(client, question, client->options.timeout_ms, 0, NULL, err);
    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "drop table \"%s\"", name);
}

const char *psd_table_name(const psd_table_t *self)
{
    return self->spec.name;
}

const char *psd_table_type(const psd_table_t *self)
{
    return ps_type_name(self->spec.type);
}

size_t psd_table_value_size(const psd_table_t *self)
{
    return ps_type_size(self->spec.type);
}

uint64_t psd_table_rows(const psd_table_t *self)
{
    return self->spec.keys == PS_KEYS_RANGE ? self->spec.n_rows : 0;
}

uint32_t psd_table_cols(const psd_table_t *self)
{
    return self->spec.n_cols;
}
