/* SPDX-License-Identifier: Apache-2.0 */
/* Asking: a question goes to all nodes that are up, the answers come one by
 * one. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/nodes/fleet_doc.h"
#include "daemon/nodes/fleet_inner.h"
#include "daemon/nodes/sizes.h"

#define ANSWER_WITHIN_MS                                \
    5000 /* a node that is up and takes longer is stuck \
          */
#define QUESTIONS_MAX 4096
#define LOOK_AFTER_MS 200 /* who answers at once has answered */

void ps_question_destroy(ps_question_t **self_p)
{
    ps_question_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_answers_done(&self->answers);
    ps_free(self->words);
    ps_free(self->waits);
    ps_free(self);
    *self_p = NULL;
}

/* The first node that did not answer is the one that is named. */
static void miss(ps_question_t *self, const char *node, const char *why)
{
    if (self->missing[0] == '\0') {
        (void)snprintf(self->missing, sizeof self->missing, "node %s %s", node, why);
    }
}

/* ---- asking ---- */

/* A node that is silent is not asked; when it may go on serving the job that is
 * asked about, or will, its answer is missing. */
static void miss_silent(const ps_fleet_t *self, ps_question_t *question)
{
    const ps_registry_t *registry = self->is.registry;

    for (size_t i = 0; question->job != 0 && i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);

        if (ps_fleet_look(self, node).state != PS_FLEET_UP &&
            ps_registry_serves_job(registry, node->incarnation, question->job)) {
            miss(question, node->name, "is silent");
        }
    }
}

static void ask_all(ps_fleet_t *self, ps_question_t *question)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_node_t *node = &self->nodes[i];

        if (node->state != PS_FLEET_UP) {
            continue;
        }
        if (ps_fleet_note_question(node, question)) {
            question->waits[question->n_waits++] = node->incarnation;
            ps_fleet_send_due(self, node);
        } else {
            miss(question, node->name, "could not be asked");
        }
    }
    miss_silent(self, question);
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
    PSD_AUTO(ps_question_destroy)
    ps_question_t *question = ps_alloc(1, sizeof *question);

    if (self->n_questions >= QUESTIONS_MAX) {
        return psd_error_set(err, PSD_BUSY, "%d questions wait for nodes, no more are allowed",
                             QUESTIONS_MAX);
    }
    if (question != NULL) {
        question->waits = ps_alloc(self->n_nodes, sizeof *question->waits);
        question->words = words == NULL ? NULL : copy_words(words);
    }
    if (question == NULL || question->waits == NULL || (words != NULL && question->words == NULL) ||
        !ps_grow(&self->questions, &self->questions_capacity, self->n_questions + 1,
                 sizeof(ps_question_t *))) {
        return psd_error_set(err, PSD_NOMEM, "no memory to ask the nodes");
    }
    question->serial = ++self->last_serial;
    question->kind = kind;
    question->job = job;
    question->asked_ms = ps_now_ms();
    question->deadline_ms = question->asked_ms + ANSWER_WITHIN_MS;
    question->context = context;
    self->questions[self->n_questions++] = question;
    ask_all(self, question);
    question = NULL;
    return PSD_OK;
}

void ps_fleet_be_brief(ps_fleet_t *self, const void *context)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        if (self->questions[i]->context == context) {
            self->questions[i]->brief = true;
        }
    }
}

ps_question_t *ps_fleet_question(const ps_fleet_t *self, uint64_t serial)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        if (self->questions[i]->serial == serial) {
            return self->questions[i];
        }
    }
    return NULL;
}

ps_question_t *ps_fleet_next_done(ps_fleet_t *self)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];

        if (question->n_waits > 0) {
            continue;
        }
        self->n_questions--;
        memmove(&self->questions[i], &self->questions[i + 1],
                (self->n_questions - i) * sizeof(ps_question_t *));
        ps_fleet_withdraw(self, question->serial);
        return question;
    }
    return NULL;
}

/* ---- answers ---- */

/* The node's place among those that are waited for; n_waits: it is not. */
static size_t place_of(const ps_question_t *self, uint64_t incarnation)
{
    size_t i = 0;

    while (i < self->n_waits && self->waits[i] != incarnation) {
        i++;
    }
    return i;
}

void ps_fleet_give_up(ps_fleet_t *self, const ps_fleet_node_t *node)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];
        size_t at = place_of(question, node->incarnation);

        if (at < question->n_waits) {
            question->waits[at] = question->waits[--question->n_waits];
            miss(question, node->name, "is silent");
        }
    }
}

/* Whether the node is not waited for any longer. */
static bool is_overdue(const ps_fleet_t *self, const ps_question_t *question, uint64_t incarnation,
                       uint64_t now_ms)
{
    ps_late_t late;

    if (question->deadline_ms <= now_ms) {
        return true;
    }
    if (!question->brief || now_ms < question->asked_ms + LOOK_AFTER_MS) {
        return false;
    }
    if (incarnation != self->is.incarnation) {
        return now_ms >= question->asked_ms + PS_BRIEF_MS;
    }
    return self->is.turns != NULL && ps_turns_late(ps_turns_page(self->is.turns), &late, 1) > 0;
}

void ps_fleet_expire(ps_fleet_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];

        for (size_t k = question->n_waits; k > 0; k--) {
            const ps_fleet_node_t *node = ps_fleet_find(self, question->waits[k - 1]);

            if (is_overdue(self, question, question->waits[k - 1], now_ms)) {
                miss(question, node == NULL ? "?" : node->name, "has not answered in time");
                question->waits[k - 1] = question->waits[--question->n_waits];
            }
        }
    }
}

/* A job that the node could not take in: it goes on without its news. */
static bool lacks_jobs(const ps_fleet_node_t *node)
{
    for (size_t i = 0; i < node->n_tells; i++) {
        if (node->tells[i].kind == PS_TELL_JOB && node->tells[i].status != PSD_OK) {
            return true;
        }
    }
    return false;
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

void ps_fleet_answered(ps_fleet_t *self, ps_fleet_node_t *node, ps_tell_t *tell,
                       psd_status_t status, ps_answers_t *answers)
{
    ps_question_t *question = ps_fleet_question(self, tell->question);
    size_t at = question == NULL ? 0 : place_of(question, node->incarnation);

    ps_fleet_told(node, tell, PSD_OK, "");
    if (question == NULL || at == question->n_waits) {
        return;
    }
    question->waits[at] = question->waits[--question->n_waits];
    if (status != PSD_OK || !join_answers(&question->answers, answers)) {
        miss(question, node->name, "could not answer");
    } else if (lacks_jobs(node)) {
        miss(question, node->name, "could not take in a job");
    }
}

/* ---- what other nodes say ---- */

static ps_tell_t *find_tell(ps_fleet_node_t *node, uint64_t serial)
{
    for (size_t i = 0; i < node->n_tells; i++) {
        if (node->tells[i].serial == serial) {
            return &node->tells[i];
        }
    }
    return NULL;
}

static psd_status_t take_shards(ps_fleet_t *self, ps_fleet_node_t *node, ps_tell_t *tell,
                                const ps_doc_t *doc, psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t answers = {0};
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "shards", PS_NODE_SHARDS_MAX, &array, err);

    if (rc == PSD_OK) {
        rc = ps_answers_from_doc(array, node->incarnation, ps_now_ms(), &answers, err);
    }
    ps_fleet_answered(self, node, tell, rc, &answers);
    return rc;
}

psd_status_t ps_fleet_take_answer(ps_fleet_t *self, uint64_t incarnation, const ps_doc_t *doc,
                                  psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t none = {0};
    ps_fleet_node_t *node = ps_fleet_find(self, incarnation);
    ps_tell_t *tell = NULL;
    const char *text = NULL;
    uint64_t serial = 0;
    uint64_t status = 0;
    psd_status_t rc = PSD_OK;

    if (node == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "no such node has come");
    }
    rc = ps_doc_get_u64(doc, "serial", 1, UINT64_MAX, &serial, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "result", 0, UINT16_MAX, 0, &status, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "text", 2000, "", &text, err);
    }
    tell = rc == PSD_OK ? find_tell(node, serial) : NULL;
    if (tell == NULL) {
        return rc; /* an answer that nobody waits for any more */
    }
    if (tell->kind == PS_TELL_ASK && status == PSD_OK) {
        rc = take_shards(self, node, tell, doc, err);
    } else if (tell->kind == PS_TELL_ASK) {
        ps_fleet_answered(self, node, tell, (psd_status_t)status, &none);
    } else {
        ps_fleet_told(node, tell, (psd_status_t)status, text);
    }
    ps_fleet_send_due(self, node); /* there is room for more */
    return rc;
}

/* ---- what the shards that are here say ---- */

static ps_tell_t *find_local(ps_fleet_node_t *here, uint64_t local)
{
    for (size_t i = 0; i < here->n_tells; i++) {
        if (here->tells[i].flying && here->tells[i].local == local) {
            return &here->tells[i];
        }
    }
    return NULL;
}

void ps_fleet_take_shards(ps_fleet_t *self)
{
    ps_fleet_node_t *here = &self->nodes[0];
    ps_shards_done_t done;

    ps_shards_take(self->is.shards, ps_now_ms());
    while (ps_shards_next_done(self->is.shards, &done)) {
        ps_tell_t *tell = find_local(here, done.serial);

        if (done.serial == self->look) {
            self->look = 0;
            ps_sizes_learn_here(self->is.registry, self->is.incarnation, &done.answers);
        }
        if (tell != NULL && tell->kind == PS_TELL_ASK) {
            ps_fleet_answered(self, here, tell, done.status, &done.answers);
        } else if (tell != NULL) {
            ps_fleet_told(here, tell, done.status, done.text);
        }
        ps_shards_done_done(&done);
    }
    ps_fleet_send_due(self, here);
}
