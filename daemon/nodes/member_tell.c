/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the registry's updates and questions to the node's shards. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/fleet_doc.h"
#include "daemon/nodes/member_inner.h"

#define WORDS_MAX (8 << 20) /* bytes of what is asked about a checkpoint */
#define TABLES_MAX 65536

/* ---- tables ---- */

static bool has_table(const ps_member_t *self, uint32_t table)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        if (self->tables[i] == table) {
            return true;
        }
    }
    return false;
}

static void see_epochs(ps_member_t *self, const ps_table_t *table)
{
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        if (table->copies[i].epoch > self->max_epoch) {
            self->max_epoch = table->copies[i].epoch;
        }
    }
}

static psd_status_t do_table(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                             psd_error_t *err)
{
    PSD_AUTO(ps_told_table_done) ps_table_t table = {0};
    ps_table_t bound;
    psd_status_t rc = ps_told_table_from_doc(doc, &table, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!has_table(self, table.id)) {
        if (!ps_grow(&self->tables, &self->tables_capacity, self->n_tables + 1,
                     sizeof *self->tables)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a table");
        }
        self->tables[self->n_tables++] = table.id;
    }
    bound = table; /* its arrays stay borrowed */
    rc = ps_plugins_bind(self->is.plugins, &bound.spec, err);
    if (rc == PSD_OK) {
        rc = ps_shards_send_table(self->is.shards, &bound, &delivery->local, err);
    }
    if (rc == PSD_OK) {
        see_epochs(self, &table);
        ps_member_await(self, delivery);
    }
    return rc;
}

static psd_status_t send_drop(ps_member_t *self, uint32_t table, const ps_delivery_t *like,
                              psd_error_t *err)
{
    ps_delivery_t delivery = {.serial = like->serial, .drop = table};
    psd_status_t rc = ps_shards_send_drop(self->is.shards, table, &delivery.local, err);

    if (rc == PSD_OK) {
        ps_member_await(self, &delivery);
    }
    return rc;
}

static psd_status_t do_drop(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                            psd_error_t *err)
{
    uint64_t id = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "table", 1, UINT32_MAX, &id, err);

    return rc == PSD_OK ? send_drop(self, (uint32_t)id, delivery, err) : rc;
}

static bool has_number(const ps_doc_t *array, uint32_t wanted)
{
    for (size_t i = 0; i < ps_doc_count(array); i++) {
        uint64_t number = 0;

        if (ps_doc_at_u64(array, i, &number, NULL) == PSD_OK && number == wanted) {
            return true;
        }
    }
    return false;
}

/* Tables that the registry no longer has were dropped while this node was away. */
static psd_status_t do_known(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                             psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    size_t before = self->n_deliveries;
    psd_status_t rc = ps_doc_get_array(doc, "tables", TABLES_MAX, &array, err);

    if (rc == PSD_OK) {
        rc = ps_member_expect(self, self->n_tables, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n_tables; i++) {
        if (!has_number(array, self->tables[i])) {
            rc = send_drop(self, self->tables[i], delivery, err);
        }
    }
    if (rc == PSD_OK && self->n_deliveries == before) {
        ps_member_answer(self, delivery->serial, PSD_OK, "");
    }
    return rc;
}

/* ---- the rest ---- */

static psd_status_t do_sessions(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                                psd_error_t *err)
{
    uint64_t session = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "session", 0, INT64_MAX, &session, err);

    if (rc == PSD_OK) {
        ps_shards_set_last_session(self->is.shards, session);
        ps_member_answer(self, delivery->serial, PSD_OK, "");
    }
    return rc;
}

static psd_status_t do_job(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                           psd_error_t *err)
{
    PSD_AUTO(ps_job_done) ps_job_t job = {0};
    psd_status_t rc = ps_job_from_doc(doc, &job, err);

    if (rc == PSD_OK) {
        rc = ps_shards_send_job(self->is.shards, &job, &delivery->local, err);
    }
    if (rc == PSD_OK) {
        ps_member_await(self, delivery);
    }
    return rc;
}

static psd_status_t read_question(const ps_doc_t *doc, ps_call_kind_t *ret_kind, uint32_t *ret_job,
                                  psd_error_t *err)
{
    static const ps_call_kind_t KINDS[] = {PS_CALL_INSPECT, PS_CALL_WAITING, PS_CALL_CLOCKS,
                                           PS_CALL_CHECKPOINT};
    const char *word = NULL;
    uint64_t job = 0;
    psd_status_t rc = ps_doc_get_text(doc, "kind", 32, &word, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "job", 0, UINT32_MAX, &job, err);
    }
    *ret_job = (uint32_t)job;
    for (size_t i = 0; rc == PSD_OK && i < sizeof KINDS / sizeof KINDS[0]; i++) {
        if (strcmp(word, ps_call_name(KINDS[i])) == 0) {
            *ret_kind = KINDS[i];
            return PSD_OK;
        }
    }
    return rc == PSD_OK ? psd_error_set(err, PSD_PROTO,
                                        "kind of a question; allowed: INSPECT, "
                                        "WAITING, CLOCKS, CHECKPOINT")
                        : rc;
}

static psd_status_t do_ask(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                           psd_error_t *err)
{
    ps_call_kind_t kind = PS_CALL_INSPECT;
    const char *words = NULL;
    uint32_t job = 0;
    psd_status_t rc = read_question(doc, &kind, &job, err);

    if (rc == PSD_OK && kind == PS_CALL_CHECKPOINT) {
        rc = ps_doc_get_text(doc, "words", WORDS_MAX, &words, err);
        if (rc == PSD_OK) {
            rc = ps_shards_send_words(self->is.shards, words, &delivery->local, err);
        }
    } else if (rc == PSD_OK) {
        rc = ps_shards_send_ask(self->is.shards, kind, job, &delivery->local, err);
    }
    if (rc == PSD_OK) {
        delivery->asks = true;
        ps_member_await(self, delivery);
    }
    return rc;
}

/* The shard answers with a report. */
static psd_status_t do_fence(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                             psd_error_t *err)
{
    uint64_t shard = 0;
    uint64_t table = 0;
    uint64_t partition = 0;
    ps_shards_fence_t fence = {0};
    psd_status_t rc = ps_doc_get_u64(doc, "shard", 0, PS_NODE_SHARDS_MAX - 1, &shard, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "table", 1, UINT32_MAX, &table, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "partition", 0, UINT32_MAX, &partition, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "epoch", 1, INT64_MAX, &fence.epoch, err);
    }
    fence.shard = (uint32_t)shard;
    fence.table = (uint32_t)table;
    fence.partition = (uint32_t)partition;
    return rc == PSD_OK ? ps_shards_send_fence(self->is.shards, &fence, &delivery->local, err) : rc;
}

static const struct {
    const char *op;
    psd_status_t (*run)(ps_member_t *self, const ps_doc_t *doc, ps_delivery_t *delivery,
                        psd_error_t *err);
} TELLS[] = {
    {"tell_known", do_known}, {"tell_sessions", do_sessions}, {"tell_table", do_table},
    {"tell_drop", do_drop},   {"tell_job", do_job},           {"tell_fence", do_fence},
    {"ask", do_ask},
};

static psd_status_t obey(ps_member_t *self, const char *op, const ps_doc_t *doc, uint64_t serial,
                         psd_error_t *err)
{
    ps_delivery_t delivery = {.serial = serial};
    psd_status_t rc = ps_member_expect(self, 1, err);

    for (size_t i = 0; rc == PSD_OK && i < sizeof TELLS / sizeof TELLS[0]; i++) {
        if (strcmp(op, TELLS[i].op) == 0) {
            return TELLS[i].run(self, doc, &delivery, err);
        }
    }
    return rc == PSD_OK ? psd_error_set(err, PSD_UNSUPPORTED, "unknown") : rc;
}

void ps_member_obey(ps_member_t *self, const char *op, const ps_doc_t *doc)
{
    char quoted[512];
    uint64_t serial = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "serial", 1, UINT64_MAX, &serial, self->err);

    if (rc == PSD_OK) {
        rc = obey(self, op, doc, serial, self->err);
    }
    if (rc == PSD_OK) {
        return;
    }
    ps_log(PS_LOG_ERROR, "registry_not_obeyed", "op=%s status=%s reason=%s",
           ps_log_quote(op, quoted, 64), psd_status_name(rc),
           ps_log_quote(psd_error_text(self->err), quoted + 64, 448));
    if (serial != 0) {
        ps_member_answer(self, serial, rc, psd_error_text(self->err));
    }
    psd_error_clear(self->err);
}
