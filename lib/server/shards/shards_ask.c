/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the shards: questions go out in order, it takes answers and reports
 * as they come. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "base/log.h"
#include "server/shards/shards_inner.h"

#define ANSWER_WITHIN_MS 20000 /* a shard that takes longer is stuck */
/* Questions at the shards at a time: all answers fit into a pipe (which holds
 * 1000), so that no shard waits for the control part. */
#define UNDER_WAY_MAX 128
#define WAITS_FOR_ROOM UINT64_MAX

void ps_shards_done_done(ps_shards_done_t *self)
{
    ps_answers_done(&self->answers);
    *self = (ps_shards_done_t){0};
}

/* ---- questions ---- */

static void asked_destroy(ps_asked_t **self_p)
{
    ps_asked_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; self->calls != NULL && i < self->n; i++) {
        ps_shard_call_destroy(&self->calls[i]);
    }
    ps_free(self->calls);
    ps_free(self->is_back);
    ps_free(self->answers);
    ps_free(self->copies);
    ps_free(self);
    *self_p = NULL;
}

void ps_shards_forget_asked(ps_shards_t *self)
{
    for (size_t i = 0; i < self->n_asked; i++) {
        ps_asked_t *asked = self->asked[i];

        for (uint32_t k = 0; i < self->n_under_way && k < asked->n; k++) {
            ps_handover_take(asked->calls[k]);
        }
        asked_destroy(&self->asked[i]);
    }
    for (size_t i = 0; i < self->n_ended; i++) {
        ps_shards_done_done(&self->ended[i]);
    }
    ps_free(self->asked);
    ps_free(self->ended);
    ps_free(self->reports);
}

/* A question to n shards from `first` on, without its calls. It allocates
 * everything that its end will need. */
static psd_status_t new_asked(ps_shards_t *self, ps_call_kind_t kind, uint32_t first, uint32_t n,
                              ps_asked_t **ret_asked, psd_error_t *err)
{
    PSD_AUTO(asked_destroy) ps_asked_t *asked = NULL;

    if (self->n_asked >= PS_SHARDS_ASKED_MAX) {
        return psd_error_set(err, PSD_BUSY, "%d requests wait for the shards; no more are allowed",
                             PS_SHARDS_ASKED_MAX);
    }
    asked = ps_alloc(1, sizeof *asked);
    if (asked != NULL) {
        asked->kind = kind;
        asked->first = first;
        asked->n = n;
        asked->sent_ms = WAITS_FOR_ROOM;
        asked->calls = ps_alloc(n, sizeof *asked->calls);
        asked->is_back = ps_alloc(n, sizeof *asked->is_back);
        asked->answers = ps_alloc(n, sizeof *asked->answers);
    }
    if (asked == NULL || asked->calls == NULL || asked->is_back == NULL || asked->answers == NULL ||
        !ps_grow(&self->asked, &self->asked_capacity, self->n_asked + 1, sizeof *self->asked) ||
        !ps_grow(&self->ended, &self->ended_capacity, self->n_ended + self->n_asked + 1,
                 sizeof *self->ended)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to ask the shards");
    }
    *ret_asked = asked;
    asked = NULL;
    return PSD_OK;
}

static void send_calls(ps_shards_t *self, ps_asked_t *asked, uint64_t now_ms)
{
    asked->sent_ms = now_ms;
    for (uint32_t i = 0; i < asked->n; i++) {
        ps_shard_call_t *call = asked->calls[i];

        call->serial = asked->serial;
        ps_handover_give(call);
        ps_shard_pipe_send(self->threads[asked->first + i].pipe, PS_LETTER_CALL, call);
    }
}

/* Sends as much as the pipes have room for. */
static void send_due(ps_shards_t *self, uint64_t now_ms)
{
    while (self->n_under_way < self->n_asked && self->n_under_way < UNDER_WAY_MAX) {
        send_calls(self, self->asked[self->n_under_way++], now_ms);
    }
}

/* Takes the question, whose calls are there. */
static uint64_t add_asked(ps_shards_t *self, ps_asked_t **asked_p)
{
    ps_asked_t *asked = *asked_p;

    *asked_p = NULL;
    asked->serial = ++self->last_serial;
    self->asked[self->n_asked++] = asked;
    send_due(self, ps_now_ms());
    return asked->serial;
}

psd_status_t ps_shards_send_ask(ps_shards_t *self, ps_call_kind_t kind, uint32_t job_id,
                                uint64_t *ret_serial, psd_error_t *err)
{
    PSD_AUTO(asked_destroy) ps_asked_t *asked = NULL;
    psd_status_t rc = new_asked(self, kind, 0, self->n_shards, &asked, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_new(kind, job_id, &asked->calls[i], err);
    }
    if (rc == PSD_OK) {
        *ret_serial = add_asked(self, &asked);
    }
    return rc;
}

psd_status_t ps_shards_send_words(ps_shards_t *self, ps_bytes_t words, uint64_t *ret_serial,
                                  psd_error_t *err)
{
    PSD_AUTO(asked_destroy) ps_asked_t *asked = NULL;
    psd_status_t rc = new_asked(self, PS_CALL_CHECKPOINT, 0, self->n_shards, &asked, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_new(PS_CALL_CHECKPOINT, 0, &asked->calls[i], err);
        if (rc == PSD_OK && !ps_buffer_append(&asked->calls[i]->words, words.data, words.size)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory to ask the shards");
        }
    }
    if (rc == PSD_OK) {
        *ret_serial = add_asked(self, &asked);
    }
    return rc;
}

/* The copies of all partitions, once for all calls. */
static psd_status_t copy_copies(const ps_table_t *table, ps_asked_t *asked, psd_error_t *err)
{
    if (table->copies == NULL) {
        return PSD_OK;
    }
    asked->copies = ps_alloc_raw(table->spec.n_partitions, sizeof *asked->copies);
    if (asked->copies == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the copies of %s", table->spec.name);
    }
    memcpy(asked->copies, table->copies, table->spec.n_partitions * sizeof *asked->copies);
    return PSD_OK;
}

psd_status_t ps_shards_send_table(ps_shards_t *self, const ps_table_t *table, uint64_t *ret_serial,
                                  psd_error_t *err)
{
    PSD_AUTO(asked_destroy) ps_asked_t *asked = NULL;
    psd_status_t rc = new_asked(self, PS_CALL_TABLE, 0, self->n_shards, &asked, err);

    if (rc == PSD_OK) {
        rc = copy_copies(table, asked, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_table(table, asked->copies, &asked->calls[i], err);
    }
    if (rc == PSD_OK) {
        *ret_serial = add_asked(self, &asked);
    }
    return rc;
}

/* A call about a table to each shard. */
static psd_status_t send_about(ps_shards_t *self, ps_call_kind_t kind, uint32_t table,
                               uint64_t *ret_serial, psd_error_t *err)
{
    PSD_AUTO(asked_destroy) ps_asked_t *asked = NULL;
    psd_status_t rc = new_asked(self, kind, 0, self->n_shards, &asked, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_new(kind, 0, &asked->calls[i], err);
        if (rc == PSD_OK) {
            asked->calls[i]->table = table;
        }
    }
    if (rc == PSD_OK) {
        *ret_serial = add_asked(self, &asked);
    }
    return rc;
}

psd_status_t ps_shards_send_drop(ps_shards_t *self, uint32_t table, uint64_t *ret_serial,
                                 psd_error_t *err)
{
    return send_about(self, PS_CALL_DROP, table, ret_serial, err);
}

psd_status_t ps_shards_send_aside(ps_shards_t *self, uint32_t table, uint64_t *ret_serial,
                                  psd_error_t *err)
{
    return send_about(self, PS_CALL_ASIDE, table, ret_serial, err);
}

psd_status_t ps_shards_send_job(ps_shards_t *self, const ps_job_t *job, uint64_t *ret_serial,
                                psd_error_t *err)
{
    PSD_AUTO(asked_destroy) ps_asked_t *asked = NULL;
    psd_status_t rc = new_asked(self, PS_CALL_JOB, 0, self->n_shards, &asked, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_job(job, &asked->calls[i], err);
    }
    if (rc == PSD_OK) {
        *ret_serial = add_asked(self, &asked);
    }
    return rc;
}

psd_status_t ps_shards_send_fence(ps_shards_t *self, const ps_copy_fence_t *fence,
                                  uint64_t *ret_serial, psd_error_t *err)
{
    PSD_AUTO(asked_destroy) ps_asked_t *asked = NULL;
    psd_status_t rc = PSD_OK;

    if (fence->shard >= self->n_shards) {
        return psd_error_set(err, PSD_INVALID, "shard is %" PRIu32 "; allowed: 0..%" PRIu32,
                             fence->shard, self->n_shards - 1);
    }
    rc = new_asked(self, PS_CALL_FENCE, fence->shard, 1, &asked, err);
    if (rc == PSD_OK) {
        rc = ps_shard_call_new(PS_CALL_FENCE, 0, &asked->calls[0], err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    asked->calls[0]->table = fence->table;
    asked->calls[0]->partition = fence->partition;
    asked->calls[0]->epoch = fence->epoch;
    *ret_serial = add_asked(self, &asked);
    return PSD_OK;
}

/* ---- answers ---- */

/* The first failure is the question's. */
static void judge(const ps_asked_t *asked, ps_shards_done_t *done)
{
    for (uint32_t i = 0; i < asked->n && done->status == PSD_OK; i++) {
        const ps_shard_call_t *call = asked->calls[i];
        uint32_t shard = asked->first + i;

        if (!asked->is_back[i]) {
            ps_log(PS_LOG_ERROR, "shard_silent", "shard=%" PRIu32 " ms=%d", shard,
                   ANSWER_WITHIN_MS);
            done->status = PSD_BUSY;
            (void)snprintf(done->text, sizeof done->text,
                           "shard %" PRIu32 " has not answered for %d ms", shard, ANSWER_WITHIN_MS);
        } else if (call->status != PSD_OK) {
            done->status = call->status;
            (void)snprintf(done->text, sizeof done->text, "shard %" PRIu32 ": %s", shard,
                           call->text);
        }
    }
}

/* What the calls that are here answer becomes the question's. */
static void end(ps_shards_t *self, ps_asked_t *asked)
{
    ps_shards_done_t *done = &self->ended[self->n_ended++];

    *done = (ps_shards_done_t){.serial = asked->serial, .kind = asked->kind};
    asked->is_ended = true;
    judge(asked, done);
    if (asked->n_back < asked->n) {
        return; /* the answers stay until the late calls are back */
    }
    done->answers = (ps_answers_t){.at = asked->answers, .n = asked->n};
    asked->answers = NULL;
    for (uint32_t i = 0; i < asked->n; i++) {
        done->answers.at[i] = asked->calls[i]->answer;
        asked->calls[i]->answer = (ps_shard_answer_t){0};
    }
}

/* Takes out the question at `at`: all calls are back. */
static void remove_asked(ps_shards_t *self, size_t at)
{
    asked_destroy(&self->asked[at]);
    self->n_asked--;
    self->n_under_way--;
    memmove(&self->asked[at], &self->asked[at + 1], (self->n_asked - at) * sizeof *self->asked);
}

static void take_call(ps_shards_t *self, uint32_t shard, ps_shard_call_t *call)
{
    size_t at = 0;
    ps_asked_t *asked = NULL;

    ps_handover_take(call);
    while (self->asked[at]->serial != call->serial) {
        at++; /* a call that comes back was sent, and is kept */
    }
    asked = self->asked[at];
    call->answer.incarnation = self->threads[shard].route.incarnation;
    call->answer.shard = shard;
    asked->is_back[shard - asked->first] = true;
    asked->n_back++;
    if (asked->n_back < asked->n) {
        return;
    }
    if (!asked->is_ended) {
        end(self, asked);
    }
    remove_asked(self, at);
}

static void take_news(ps_shards_t *self, ps_shard_news_t *news)
{
    ps_handover_take(news);
    for (uint32_t i = 0; i < news->n_letter; i++) {
        if (self->n_reports >= PS_SHARDS_REPORTS_MAX ||
            !ps_grow(&self->reports, &self->reports_capacity, self->n_reports + 1,
                     sizeof *self->reports)) {
            break;
        }
        self->reports[self->n_reports++] = news->letter[i];
    }
    ps_shard_news_give_back(news);
}

/* One message out of the pipe. false: there is none. */
static bool take_one(ps_shards_t *self, uint32_t shard)
{
    ps_letter_t letter;

    if (!ps_shard_pipe_take(ps_shards_handle(self, shard), &letter)) {
        return false;
    }
    if (letter.kind == PS_LETTER_NEWS) {
        take_news(self, letter.pointer);
    } else {
        take_call(self, shard, letter.pointer);
    }
    return true;
}

/* Questions that timed out end without the late answers. */
static void end_overdue(ps_shards_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n_under_way; i++) {
        ps_asked_t *asked = self->asked[i];

        if (!asked->is_ended && asked->sent_ms + ANSWER_WITHIN_MS <= now_ms) {
            end(self, asked);
        }
    }
}

void *ps_shards_handle(const ps_shards_t *self, uint32_t i)
{
    return self->threads[i].pipe;
}

void ps_shards_take(ps_shards_t *self, uint64_t now_ms)
{
    for (uint32_t i = 0; i < self->n_shards; i++) {
        while (take_one(self, i)) {
        }
    }
    end_overdue(self, now_ms);
    send_due(self, now_ms);
}

bool ps_shards_next_done(ps_shards_t *self, ps_shards_done_t *ret_done)
{
    if (self->n_ended == 0) {
        return false;
    }
    *ret_done = self->ended[0];
    self->n_ended--;
    memmove(&self->ended[0], &self->ended[1], self->n_ended * sizeof *self->ended);
    return true;
}

bool ps_shards_next_report(ps_shards_t *self, ps_report_t *ret_report)
{
    if (self->n_reports == 0) {
        return false;
    }
    *ret_report = self->reports[0];
    self->n_reports--;
    memmove(&self->reports[0], &self->reports[1], self->n_reports * sizeof *self->reports);
    return true;
}
