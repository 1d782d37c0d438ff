/* SPDX-License-Identifier: Apache-2.0 */
/* The overseer's shell: the clock, the log, answers of nodes and shards. */
#include "daemon/nodes/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/fleet_doc.h"
#include "daemon/nodes/fleet_inner.h"
#include "daemon/nodes/sizes.h"

psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet, psd_error_t *err)
{
    PSD_AUTO(ps_fleet_destroy) ps_fleet_t *self = ps_alloc(1, sizeof *self);
    const ps_overseer_args_t core = {.registry = args->registry,
                                     .node = args->node,
                                     .incarnation = args->incarnation,
                                     .suspect_after_ms = args->suspect_after_ms};
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->is = *args;
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the nodes");
    }
    rc = ps_overseer_new(&core, ps_now_ms(), &self->overseer, err);
    if (rc == PSD_OK) {
        *ret_fleet = self;
        self = NULL;
    }
    return rc;
}

/* The result of the question, which it destroys. */
static ps_inquiry_t *inquiry_of(ps_question_t *question)
{
    ps_inquiry_t *inquiry = question->context;

    memcpy(inquiry->missing, question->missing, sizeof inquiry->missing);
    ps_question_destroy(&question);
    return inquiry;
}

void ps_fleet_destroy(ps_fleet_t **self_p)
{
    ps_fleet_t *self = *self_p;
    ps_question_t *question = NULL;

    if (self == NULL) {
        return;
    }
    while (self->overseer != NULL &&
           (question = ps_overseer_take_question(self->overseer)) != NULL) {
        ps_inquiry_t *inquiry = inquiry_of(question);

        ps_inquiry_destroy(&inquiry);
    }
    ps_overseer_destroy(&self->overseer);
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

/* ---- membership ---- */

ps_sight_t ps_fleet_look(const ps_fleet_t *self, const ps_node_t *node)
{
    return ps_overseer_look(self->overseer, node, ps_now_ms());
}

static void log_news(const ps_sight_news_t *news)
{
    if (news->state == PS_HEALTH_UP) {
        ps_log(PS_LOG_INFO, "node_up", "node=%s", news->name);
        return;
    }
    ps_log(PS_LOG_WARN, news->state == PS_HEALTH_DOWN ? "node_down" : "node_suspect",
           "node=%s silent_ms=%" PRIu64
           " hint=\"partitions with no copy elsewhere cannot be used until it "
           "is back\"",
           news->name, news->silent_ms);
}

bool ps_fleet_next_news(ps_fleet_t *self, ps_sight_news_t *ret_news)
{
    while (ps_overseer_next_news(self->overseer, ret_news)) {
        bool is_own = strcmp(ret_news->name, self->is.node) == 0;

        if (!is_own) {
            log_news(ret_news);
        }
        if (ret_news->before != 0) {
            return true;
        }
    }
    return false;
}

psd_status_t ps_fleet_add(ps_fleet_t *self, const ps_node_t *node, uint64_t conn, psd_error_t *err)
{
    psd_status_t rc = ps_overseer_add(self->overseer, node, conn, err);

    ps_fleet_send_due(self);
    return rc;
}

void ps_fleet_set_files_out(ps_fleet_t *self, uint64_t incarnation, bool is_out)
{
    ps_overseer_set_files_out(self->overseer, incarnation, is_out);
}

void ps_fleet_set_damage(ps_fleet_t *self, uint64_t incarnation, const char *text)
{
    ps_overseer_set_damage(self->overseer, incarnation, text);
}

psd_status_t ps_fleet_hear(ps_fleet_t *self, uint64_t incarnation, uint64_t conn, psd_error_t *err)
{
    return ps_overseer_hear(self->overseer, incarnation, conn, err);
}

psd_status_t ps_fleet_beat(ps_fleet_t *self, uint64_t incarnation, uint64_t max_epoch,
                           psd_error_t *err)
{
    psd_status_t rc = ps_overseer_beat(self->overseer, incarnation, max_epoch, ps_now_ms(), err);

    ps_fleet_send_due(self);
    return rc;
}

/* ---- sending ---- */

void ps_fleet_tell_table(ps_fleet_t *self, uint32_t table)
{
    ps_overseer_tell_table(self->overseer, table);
    ps_fleet_send_due(self);
}

void ps_fleet_tell_job(ps_fleet_t *self, uint32_t job)
{
    ps_overseer_tell_job(self->overseer, job);
    ps_fleet_send_due(self);
}

void ps_fleet_tell_sessions(ps_fleet_t *self, uint64_t session)
{
    ps_overseer_tell_sessions(self->overseer, session);
    ps_fleet_send_due(self);
}

bool ps_fleet_reserve(ps_fleet_t *self)
{
    return ps_overseer_reserve(self->overseer);
}

void ps_fleet_tell_drop(ps_fleet_t *self, uint32_t table)
{
    ps_overseer_tell_drop(self->overseer, table);
    ps_fleet_send_due(self);
}

psd_status_t ps_fleet_refusal(const ps_fleet_t *self, uint32_t table, psd_error_t *err)
{
    return ps_overseer_refusal(self->overseer, table, err);
}

void ps_fleet_log_refusal(const char *node, ps_tell_kind_t kind, uint32_t id, psd_status_t status,
                          const char *text)
{
    char quoted[512];

    ps_log(PS_LOG_ERROR, "node_update_failed",
           "node=%s what=%s id=%" PRIu32 " status=%s reason=%s hint=\"retrying\"", node,
           ps_tell_op(kind), id, psd_status_name(status),
           ps_log_quote(text, quoted, sizeof quoted));
}

/* ---- asking ---- */

void ps_inquiry_destroy(ps_inquiry_t **self_p)
{
    ps_inquiry_t *self = *self_p;

    if (self != NULL) {
        ps_answers_done(&self->answers);
        ps_free(self->words);
        ps_free(self);
        *self_p = NULL;
    }
}

/* NULL: no memory. */
static char *copy_words(const char *words)
{
    size_t size = strlen(words) + 1;
    char *copy = ps_alloc(size, 1);

    if (copy != NULL) {
        memcpy(copy, words, size);
    }
    return copy;
}

psd_status_t ps_fleet_ask(ps_fleet_t *self, ps_call_kind_t kind, uint32_t job, const char *words,
                          void *context, psd_error_t *err)
{
    PSD_AUTO(ps_inquiry_destroy) ps_inquiry_t *inquiry = ps_alloc(1, sizeof *inquiry);
    psd_status_t rc = PSD_OK;

    if (inquiry != NULL) {
        inquiry->context = context;
        inquiry->words = words == NULL ? NULL : copy_words(words);
    }
    if (inquiry == NULL || (words != NULL && inquiry->words == NULL)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to ask the nodes");
    }
    rc = ps_overseer_ask(self->overseer, (int)kind, job, inquiry, ps_now_ms(), err);
    if (rc == PSD_OK) {
        self->last = inquiry;
        inquiry = NULL;
        ps_fleet_send_due(self);
    }
    return rc;
}

void ps_fleet_be_brief(ps_fleet_t *self, const void *context)
{
    if (self->last != NULL && self->last->context == context) {
        ps_overseer_be_brief(self->overseer, self->last);
    }
}

ps_inquiry_t *ps_fleet_next_done(ps_fleet_t *self)
{
    ps_question_t *question = ps_overseer_next_done(self->overseer);
    ps_inquiry_t *inquiry = question == NULL ? NULL : inquiry_of(question);

    if (inquiry != NULL && inquiry == self->last) {
        self->last = NULL;
    }
    return inquiry;
}

/* Moves the calls over. false: no memory. */
static bool join_answers(ps_answers_t *to, ps_answers_t *from)
{
    size_t capacity = to->n_calls;

    if (from->n_calls == 0) {
        return true;
    }
    if (!ps_grow(&to->calls, &capacity, (size_t)to->n_calls + from->n_calls,
                 sizeof(ps_shard_call_t *))) {
        return false;
    }
    for (uint32_t i = 0; i < from->n_calls; i++) {
        to->calls[to->n_calls++] = from->calls[i];
        from->calls[i] = NULL;
    }
    return true;
}

/* The node has answered `tell`. status not OK: it could not do it. Takes the
 * calls out of answers. */
static void take_answers(ps_fleet_t *self, uint64_t incarnation, const ps_tell_view_t *tell,
                         psd_status_t status, ps_answers_t *answers)
{
    const ps_question_t *question = ps_overseer_question(self->overseer, tell->question);
    ps_inquiry_t *inquiry = question == NULL ? NULL : question->context;
    const char *missing = NULL;

    if (status != PSD_OK || (ps_overseer_awaits(self->overseer, incarnation, tell->question) &&
                             inquiry != NULL && !join_answers(&inquiry->answers, answers))) {
        missing = "could not answer";
    }
    ps_overseer_answered(self->overseer, incarnation, tell->question, missing);
}

static void take_told(ps_fleet_t *self, uint64_t incarnation, const ps_tell_view_t *tell,
                      psd_status_t status, const char *text)
{
    if (ps_overseer_told(self->overseer, incarnation, tell->serial, status, text)) {
        ps_fleet_log_refusal(tell->node, tell->kind, tell->id, status, text);
    }
}

/* ---- answers of other nodes ---- */

static psd_status_t take_asked(ps_fleet_t *self, uint64_t incarnation, const ps_tell_view_t *tell,
                               psd_status_t status, const ps_doc_t *doc, psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t answers = {0};
    const ps_doc_t *array = NULL;
    psd_status_t rc = PSD_OK;

    if (status == PSD_OK) {
        rc = ps_doc_get_array(doc, "shards", PS_NODE_SHARDS_MAX, &array, err);
        if (rc == PSD_OK) {
            rc = ps_answers_from_doc(array, incarnation, ps_now_ms(), &answers, err);
        }
        status = rc;
    }
    take_answers(self, incarnation, tell, status, &answers);
    return rc;
}

psd_status_t ps_fleet_take_answer(ps_fleet_t *self, uint64_t incarnation, const ps_doc_t *doc,
                                  psd_error_t *err)
{
    ps_tell_view_t tell;
    const char *text = NULL;
    uint64_t conn = 0;
    uint64_t serial = 0;
    uint64_t status = 0;
    bool here = false;
    psd_status_t rc = PSD_OK;

    if (!ps_overseer_find(self->overseer, incarnation, &conn, &here)) {
        return psd_error_set(err, PSD_NO_NODE, "no such node has come");
    }
    rc = ps_doc_get_u64(doc, "serial", 1, UINT64_MAX, &serial, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "result", 0, UINT16_MAX, 0, &status, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "text", 2000, "", &text, err);
    }
    if (rc != PSD_OK || !ps_overseer_find_tell(self->overseer, incarnation, serial, &tell)) {
        return rc; /* a late answer; its question is gone */
    }
    if (tell.kind == PS_TELL_ASK) {
        rc = take_asked(self, incarnation, &tell, (psd_status_t)status, doc, err);
    } else {
        take_told(self, incarnation, &tell, (psd_status_t)status, text);
    }
    ps_fleet_send_due(self); /* there is room for more */
    return rc;
}

/* ---- answers of the local shards, and time ---- */

void ps_fleet_take_shards(ps_fleet_t *self)
{
    ps_shards_done_t done;
    ps_tell_view_t tell;

    ps_shards_take(self->is.shards, ps_now_ms());
    while (ps_shards_next_done(self->is.shards, &done)) {
        if (done.serial == self->look) {
            self->look = 0;
            ps_sizes_learn_here(self->is.registry, self->is.incarnation, &done.answers);
        }
        if (!ps_overseer_find_local(self->overseer, done.serial, &tell)) {
            ps_shards_done_done(&done);
            continue;
        }
        if (tell.kind == PS_TELL_ASK) {
            take_answers(self, self->is.incarnation, &tell, done.status, &done.answers);
        } else {
            take_told(self, self->is.incarnation, &tell, done.status, done.text);
        }
        ps_shards_done_done(&done);
    }
    ps_fleet_send_due(self);
}

void ps_fleet_tick(ps_fleet_t *self)
{
    uint64_t now_ms = ps_now_ms();
    ps_late_t late;
    bool hangs = ps_overseer_is_in_haste(self->overseer) && self->is.turns != NULL &&
                 ps_turns_late(ps_turns_page(self->is.turns), &late, 1) > 0;

    ps_overseer_tick(self->overseer, now_ms, hangs);
    ps_fleet_send_due(self);
    if (ps_overseer_n_nodes(self->overseer) > 1 && self->look == 0 && now_ms >= self->look_ms) {
        self->look_ms = now_ms + PS_SIZES_EVERY_MS;
        if (ps_shards_send_ask(self->is.shards, PS_CALL_SIZES, 0, &self->look, NULL) != PSD_OK) {
            self->look = 0; /* retried at the next tick */
        }
    }
}

uint64_t ps_fleet_deadline(const ps_fleet_t *self)
{
    return ps_overseer_deadline(self->overseer);
}
