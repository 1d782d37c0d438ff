/* SPDX-License-Identifier: Apache-2.0 */
/* Asking: a question goes to all nodes that are up, the answers come one by
 * one. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/fleet_doc.h"
#include "daemon/fleet_inner.h"

#define ANSWER_WITHIN_MS                                \
    5000 /* a node that is up and takes longer is stuck \
          */
#define QUESTIONS_MAX 4096

void
ps_question_destroy(ps_question_t **self_p)
{
    ps_question_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_answers_done(&self->answers);
    ps_free(self->waits);
    ps_free(self);
    *self_p = NULL;
}

static bool
send_question(ps_fleet_t *self,
              const ps_fleet_node_t *node,
              const ps_question_t *question)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *doc = ps_fleet_message("ask", question->serial);

    return doc != NULL &&
           ps_doc_set_text(doc, "kind", ps_call_name(question->kind)) &&
           ps_doc_set_u64(doc, "job", question->job) &&
           ps_fleet_send(self, node, doc);
}

/* The first node that did not answer is the one that is named. */
static void
miss(ps_question_t *self, const char *node, const char *why)
{
    if (self->missing[0] == '\0') {
        (void)snprintf(self->missing, sizeof self->missing, "node %s %s", node,
                       why);
    }
}

/* Asks the other nodes. What could not be sent counts as not answered. */
static void
ask_others(ps_fleet_t *self, ps_question_t *question)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_fleet_node_t *node = &self->nodes[i];

        if (node->state != PS_FLEET_UP) {
            continue;
        }
        if (send_question(self, node, question)) {
            question->waits[question->n_waits++] = node->incarnation;
        } else {
            miss(question, node->name, "could not be asked");
        }
    }
}

psd_status_t
ps_fleet_ask(ps_fleet_t *self,
             ps_call_kind_t kind,
             uint32_t job,
             void *context,
             psd_error_t *err)
{
    PSD_AUTO(ps_question_destroy)
    ps_question_t *question = ps_alloc(1, sizeof *question);
    psd_status_t rc = PSD_OK;

    if (self->n_questions >= QUESTIONS_MAX) {
        return psd_error_set(err, PSD_BUSY,
                             "%d questions wait for nodes, no more are allowed",
                             QUESTIONS_MAX);
    }
    if (question != NULL) {
        question->waits = ps_alloc(self->n_nodes, sizeof *question->waits);
    }
    if (question == NULL || question->waits == NULL ||
        !ps_grow(&self->questions, &self->questions_capacity,
                 self->n_questions + 1, sizeof(ps_question_t *))) {
        return psd_error_set(err, PSD_NOMEM, "no memory to ask the nodes");
    }
    question->serial = ++self->last_serial;
    question->kind = kind;
    question->job = job;
    question->deadline_ms = ps_now_ms() + ANSWER_WITHIN_MS;
    question->context = context;
    ask_others(self, question); /* they work while our shards do */
    rc = ps_shards_ask(self->is.shards, kind, job, &question->answers, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->questions[self->n_questions++] = question;
    question = NULL;
    return PSD_OK;
}

ps_question_t *
ps_fleet_next_done(ps_fleet_t *self)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];

        if (question->n_waits > 0) {
            continue;
        }
        self->n_questions--;
        memmove(&self->questions[i], &self->questions[i + 1],
                (self->n_questions - i) * sizeof(ps_question_t *));
        return question;
    }
    return NULL;
}

/* The node's place among those that are waited for; n_waits: it is not. */
static size_t
place_of(const ps_question_t *self, uint64_t incarnation)
{
    size_t i = 0;

    while (i < self->n_waits && self->waits[i] != incarnation) {
        i++;
    }
    return i;
}

void
ps_fleet_give_up(ps_fleet_t *self, const ps_fleet_node_t *node)
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

void
ps_fleet_expire(ps_fleet_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];

        if (question->n_waits > 0 && question->deadline_ms <= now_ms) {
            const ps_fleet_node_t *node =
                ps_fleet_find(self, question->waits[0]);

            miss(question, node == NULL ? "?" : node->name,
                 "has not answered in time");
            question->n_waits = 0;
        }
    }
}

static psd_status_t
take_shards(ps_question_t *question,
            uint64_t incarnation,
            const ps_doc_t *doc,
            psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc =
        ps_doc_get_array(doc, "shards", PS_NODE_SHARDS_MAX, &array, err);

    return rc == PSD_OK ? ps_answers_from_doc(array, incarnation, ps_now_ms(),
                                              &question->answers, err)
                        : rc;
}

/* Answers to older questions, which nobody waits for any more, are dropped. */
static psd_status_t
answer_question(ps_fleet_t *self,
                const ps_fleet_node_t *node,
                uint64_t serial,
                const ps_doc_t *doc,
                psd_error_t *err)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];
        size_t at = place_of(question, node->incarnation);
        psd_status_t rc = PSD_OK;

        if (question->serial != serial || at == question->n_waits) {
            continue;
        }
        question->waits[at] = question->waits[--question->n_waits];
        rc = take_shards(question, node->incarnation, doc, err);
        if (rc != PSD_OK) {
            miss(question, node->name, "has answered what is not understood");
        }
        return rc;
    }
    return PSD_OK;
}

psd_status_t
ps_fleet_take_answer(ps_fleet_t *self,
                     uint64_t incarnation,
                     const ps_doc_t *doc,
                     psd_error_t *err)
{
    ps_fleet_node_t *node = ps_fleet_find(self, incarnation);
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
    if (rc != PSD_OK ||
        ps_fleet_told(node, serial, (psd_status_t)status, text)) {
        return rc;
    }
    return answer_question(self, node, serial, doc, err);
}
