/* SPDX-License-Identifier: Apache-2.0 */
/* How updates travel to a node: as JSON through the control port, or through
 * the pipes of the local shards. */
#include <string.h>

#include "base/alloc.h"
#include "daemon/nodes/fleet_doc.h"
#include "daemon/nodes/fleet_inner.h"

static ps_doc_t *new_message(const char *op, uint64_t serial)
{
    ps_doc_t *doc = ps_doc_new();

    if (doc != NULL && (!ps_doc_set_u64(doc, "v", 1) || !ps_doc_set_text(doc, "op", op) ||
                        !ps_doc_set_u64(doc, "serial", serial))) {
        ps_doc_destroy(&doc);
    }
    return doc;
}

static bool send_doc(ps_fleet_t *self, uint64_t conn, const ps_doc_t *doc)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    return ps_doc_print(doc, &text) &&
           ps_socket_send_text(self->is.port, conn,
                               (ps_bytes_t){.data = text.data, .size = text.size}, NULL) == PSD_OK;
}

/* ---- to other nodes ---- */

static bool fill_known(const ps_fleet_t *self, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "tables");
    bool done = array != NULL;

    for (size_t i = 0; done && i < ps_registry_n_tables(self->is.registry); i++) {
        done = ps_doc_append_u64(array, ps_registry_table_at(self->is.registry, i)->id);
    }
    return done;
}

static bool fill_question(const ps_question_t *question, ps_doc_t *doc)
{
    const ps_inquiry_t *inquiry = question->context;

    return ps_doc_set_text(doc, "kind", ps_call_name((ps_call_kind_t)question->kind)) &&
           ps_doc_set_u64(doc, "job", question->job) &&
           (inquiry->words == NULL || ps_doc_set_text(doc, "words", inquiry->words));
}

/* The newest state. false: no memory. *gone: there is nothing to send. */
static bool fill(const ps_fleet_t *self, const ps_sending_round_t *tell, ps_doc_t *doc, bool *gone)
{
    const ps_table_t *table = NULL;
    const ps_job_t *job = NULL;
    const ps_question_t *question = NULL;

    switch (tell->kind) {
    case PS_TELL_KNOWN:
        return fill_known(self, doc);
    case PS_TELL_SESSIONS:
        return ps_doc_set_u64(doc, "session", ps_overseer_sessions(self->overseer));
    case PS_TELL_DROP:
        return ps_doc_set_u64(doc, "table", tell->id);
    case PS_TELL_TABLE:
        table = ps_registry_table_by_id(self->is.registry, tell->id);
        *gone = table == NULL;
        return table == NULL || ps_told_table_to_doc(table, doc);
    case PS_TELL_JOB:
        job = ps_registry_job_by_id(self->is.registry, tell->id);
        *gone = job == NULL;
        return job == NULL || ps_job_to_doc(job, doc);
    case PS_TELL_ASK:
        question = ps_overseer_question(self->overseer, tell->question);
        *gone = question == NULL;
        return question == NULL || fill_question(question, doc);
    case PS_TELL_COUNT:
    default:
        *gone = true;
        return true;
    }
}

static ps_sent_t send_there(ps_fleet_t *self, const ps_sending_round_t *tell)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = new_message(ps_tell_op(tell->kind), tell->serial);
    bool gone = false;

    if (doc == NULL || !fill(self, tell, doc, &gone)) {
        return PS_SENT_NOT;
    }
    if (gone) {
        return PS_SENT_GONE;
    }
    return send_doc(self, tell->conn, doc) ? PS_SENT : PS_SENT_NOT;
}

/* ---- to the local shards ---- */

static psd_status_t send_table(ps_fleet_t *self, const ps_table_t *table, uint64_t *ret_serial)
{
    ps_table_t bound = *table; /* its arrays stay borrowed */
    psd_status_t rc = ps_plugins_bind(self->is.plugins, &bound.spec, self->err);

    return rc == PSD_OK ? ps_shards_send_table(self->is.shards, &bound, ret_serial, self->err) : rc;
}

static ps_sent_t send_here(ps_fleet_t *self, const ps_sending_round_t *tell, uint64_t *ret_local)
{
    const ps_registry_t *registry = self->is.registry;
    const ps_table_t *table = NULL;
    const ps_job_t *job = NULL;
    const ps_question_t *question = NULL;
    const ps_inquiry_t *inquiry = NULL;
    psd_status_t rc = PSD_OK;

    switch (tell->kind) {
    case PS_TELL_DROP:
        rc = ps_shards_send_drop(self->is.shards, tell->id, ret_local, self->err);
        break;
    case PS_TELL_TABLE:
        table = ps_registry_table_by_id(registry, tell->id);
        if (table == NULL) {
            return PS_SENT_GONE;
        }
        rc = send_table(self, table, ret_local);
        break;
    case PS_TELL_JOB:
        job = ps_registry_job_by_id(registry, tell->id);
        if (job == NULL) {
            return PS_SENT_GONE;
        }
        rc = ps_shards_send_job(self->is.shards, job, ret_local, self->err);
        break;
    case PS_TELL_ASK:
        question = ps_overseer_question(self->overseer, tell->question);
        if (question == NULL) {
            return PS_SENT_GONE;
        }
        inquiry = question->context;
        rc = inquiry->words != NULL
                 ? ps_shards_send_words(self->is.shards, inquiry->words, ret_local, self->err)
                 : ps_shards_send_ask(self->is.shards, (ps_call_kind_t)question->kind,
                                      question->job, ret_local, self->err);
        break;
    case PS_TELL_KNOWN:    /* these shards miss no drop … */
    case PS_TELL_SESSIONS: /* … and know every session */
    case PS_TELL_COUNT:
    default:
        return PS_SENT_GONE;
    }
    if (rc == PSD_OK) {
        return PS_SENT;
    }
    return rc == PSD_BUSY || rc == PSD_NOMEM ? PS_SENT_NOT : PS_SENT_REFUSED;
}

void ps_fleet_send_due(ps_fleet_t *self)
{
    ps_sending_round_t round = {0};
    uint64_t now_ms = ps_now_ms();

    while (ps_overseer_next(self->overseer, now_ms, &round)) {
        uint64_t local = 0;
        ps_sent_t sent = PS_SENT_NOT;

        psd_error_clear(self->err);
        sent = round.here ? send_here(self, &round, &local) : send_there(self, &round);
        if (ps_overseer_sent(self->overseer, &round, sent, local, psd_error_status(self->err),
                             psd_error_text(self->err))) {
            ps_fleet_log_refusal(round.name, round.kind, round.id, psd_error_status(self->err),
                                 psd_error_text(self->err));
        }
    }
}

/* ---- fences ---- */

void ps_fleet_fence(ps_fleet_t *self, const ps_copy_t *copy, uint32_t table, uint32_t partition,
                    uint64_t epoch)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    uint64_t conn = 0;
    uint64_t serial = 0;
    bool here = false;
    bool sent = false;

    if (!ps_overseer_find(self->overseer, copy->incarnation, &conn, &here)) {
        return;
    }
    if (here) {
        const ps_shards_fence_t fence = {copy->shard, table, partition, epoch};

        sent = ps_shards_send_fence(self->is.shards, &fence, &serial, NULL) == PSD_OK;
    } else {
        doc = new_message("tell_fence", ps_overseer_next_serial(self->overseer));
        sent = doc != NULL && ps_doc_set_u64(doc, "shard", copy->shard) &&
               ps_doc_set_u64(doc, "table", table) && ps_doc_set_u64(doc, "partition", partition) &&
               ps_doc_set_u64(doc, "epoch", epoch) && send_doc(self, conn, doc);
    }
    (void)sent; /* the registry asks again */
}
