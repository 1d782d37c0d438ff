/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry tells and asks a node, done with its shards. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/fleet_doc.h"
#include "daemon/member_inner.h"
#include "protocol/table_doc.h"

#define TABLES_MAX 65536

/* ---- tables ---- */

static size_t
place_of(const ps_member_t *self, uint32_t table)
{
    size_t i = 0;

    while (i < self->n_tables && self->tables[i] != table) {
        i++;
    }
    return i;
}

static psd_status_t
drop(ps_member_t *self, uint32_t table, psd_error_t *err)
{
    psd_status_t rc = ps_shards_tell_drop(self->is.shards, table, err);
    size_t at = place_of(self, table);

    if (rc == PSD_OK && at < self->n_tables) {
        self->tables[at] = self->tables[--self->n_tables];
    }
    return rc;
}

static psd_status_t
take_table(ps_member_t *self, ps_table_t *table, psd_error_t *err)
{
    ps_table_t bound = *table; /* its arrays stay borrowed */
    psd_status_t rc = PSD_OK;

    if (place_of(self, table->id) == self->n_tables) {
        if (!ps_grow(&self->tables, &self->tables_capacity, self->n_tables + 1,
                     sizeof *self->tables)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a table");
        }
        self->tables[self->n_tables++] = table->id;
    }
    rc = ps_plugins_bind(self->is.plugins, &bound.spec, err);
    return rc == PSD_OK ? ps_shards_tell_table(self->is.shards, &bound, err)
                        : rc;
}

static psd_status_t
do_table(ps_member_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t owner = {0};
    ps_table_t *table = &owner.table;
    const ps_doc_t *spec = NULL;
    const ps_doc_t *routes = NULL;
    uint64_t id = 0;
    uint32_t n = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "table", 1, UINT32_MAX, &id, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_object(doc, "spec", &spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_spec_from_doc(spec, &table->spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "routes", PS_TABLE_PARTITIONS_MAX, &routes,
                              err);
    }
    if (rc == PSD_OK) {
        rc = ps_routes_from_doc(routes, &table->routes, &n, err);
    }
    if (rc == PSD_OK && n != table->spec.n_partitions) {
        rc = psd_error_set(err, PSD_PROTO,
                           "table %s has %" PRIu32 " routes for %" PRIu32
                           " partitions",
                           table->spec.name, n, table->spec.n_partitions);
    }
    table->id = (uint32_t)id;
    return rc == PSD_OK ? take_table(self, table, err) : rc;
}

static psd_status_t
do_drop(ps_member_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    uint64_t id = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "table", 1, UINT32_MAX, &id, err);

    return rc == PSD_OK ? drop(self, (uint32_t)id, err) : rc;
}

static bool
has_number(const ps_doc_t *array, uint32_t wanted)
{
    for (size_t i = 0; i < ps_doc_count(array); i++) {
        uint64_t number = 0;

        if (ps_doc_at_u64(array, i, &number, NULL) == PSD_OK &&
            number == wanted) {
            return true;
        }
    }
    return false;
}

/* What the registry does not have any more was dropped unheard. */
static psd_status_t
do_known(ps_member_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "tables", TABLES_MAX, &array, err);

    for (size_t i = self->n_tables; rc == PSD_OK && i > 0; i--) {
        if (!has_number(array, self->tables[i - 1])) {
            rc = drop(self, self->tables[i - 1], err);
        }
    }
    return rc;
}

/* ---- the rest ---- */

static psd_status_t
do_sessions(ps_member_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    uint64_t session = 0;
    psd_status_t rc =
        ps_doc_get_u64(doc, "session", 0, INT64_MAX, &session, err);

    if (rc == PSD_OK) {
        ps_shards_set_last_session(self->is.shards, session);
    }
    return rc;
}

static psd_status_t
do_job(ps_member_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    PSD_AUTO(ps_job_done) ps_job_t job = {0};
    psd_status_t rc = ps_job_from_doc(doc, &job, err);

    return rc == PSD_OK ? ps_shards_tell_job(self->is.shards, &job, err) : rc;
}

/* ---- answers ---- */

static ps_doc_t *
new_answer(ps_member_t *self, uint64_t serial)
{
    ps_doc_t *doc = ps_member_message(self, "node_answer");

    if (doc != NULL && !ps_doc_set_u64(doc, "serial", serial)) {
        ps_doc_destroy(&doc);
    }
    return doc;
}

/* Asked again, when this answer does not go out. */
static void
answer(ps_member_t *self, uint64_t serial, psd_status_t rc)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = new_answer(self, serial);

    if (doc == NULL || !ps_doc_set_u64(doc, "result", (uint64_t)rc) ||
        !ps_doc_set_text(doc, "text",
                         rc == PSD_OK ? "" : psd_error_text(self->err)) ||
        !ps_member_send(self, doc)) {
        ps_log(PS_LOG_WARN, "registry_not_answered", "serial=%" PRIu64, serial);
    }
}

static psd_status_t
read_question(const ps_doc_t *doc,
              ps_call_kind_t *ret_kind,
              uint32_t *ret_job,
              psd_error_t *err)
{
    static const ps_call_kind_t KINDS[] = {PS_CALL_INSPECT, PS_CALL_WAITING,
                                           PS_CALL_CLOCKS};
    const char *word = NULL;
    uint64_t job = 0;
    psd_status_t rc = ps_doc_get_text(doc, "kind", 32, &word, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "job", 0, UINT32_MAX, &job, err);
    }
    *ret_job = (uint32_t)job;
    for (size_t i = 0; rc == PSD_OK && i < sizeof KINDS / sizeof KINDS[0];
         i++) {
        if (strcmp(word, ps_call_name(KINDS[i])) == 0) {
            *ret_kind = KINDS[i];
            return PSD_OK;
        }
    }
    return rc == PSD_OK ? psd_error_set(err, PSD_PROTO,
                                        "kind of a question; allowed: INSPECT, "
                                        "WAITING, CLOCKS")
                        : rc;
}

static psd_status_t
answer_question(ps_member_t *self,
                uint64_t serial,
                const ps_doc_t *doc,
                psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t answers = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    ps_call_kind_t kind = PS_CALL_INSPECT;
    uint32_t job = 0;
    psd_status_t rc = read_question(doc, &kind, &job, err);

    if (rc == PSD_OK) {
        rc = ps_shards_ask(self->is.shards, kind, job, &answers, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    reply = new_answer(self, serial);
    if (reply == NULL ||
        !ps_answers_to_doc(&answers, ps_now_ms(),
                           ps_doc_add_array(reply, "shards")) ||
        !ps_member_send(self, reply)) {
        return psd_error_set(err, PSD_NOMEM, "no answer could be sent");
    }
    return PSD_OK;
}

void
ps_member_obey(ps_member_t *self, const char *op, const ps_doc_t *doc)
{
    static const struct {
        const char *op;
        psd_status_t (*run)(ps_member_t *self,
                            const ps_doc_t *doc,
                            psd_error_t *err);
    } TELLS[] = {
        {"tell_known", do_known}, {"tell_sessions", do_sessions},
        {"tell_table", do_table}, {"tell_drop", do_drop},
        {"tell_job", do_job},
    };
    char quoted[512];
    uint64_t serial = 0;
    psd_status_t rc =
        ps_doc_get_u64(doc, "serial", 1, UINT64_MAX, &serial, self->err);

    if (rc == PSD_OK && strcmp(op, "ask") == 0) {
        rc = answer_question(self, serial, doc, self->err);
    }
    for (size_t i = 0; rc == PSD_OK && i < sizeof TELLS / sizeof TELLS[0];
         i++) {
        if (strcmp(op, TELLS[i].op) == 0) {
            rc = TELLS[i].run(self, doc, self->err);
            answer(self, serial, rc);
        }
    }
    if (rc != PSD_OK) {
        ps_log(PS_LOG_ERROR, "registry_not_obeyed", "op=%s status=%s reason=%s",
               ps_log_quote(op, quoted, 64), psd_status_name(rc),
               ps_log_quote(psd_error_text(self->err), quoted + 64, 448));
        psd_error_clear(self->err);
    }
}
