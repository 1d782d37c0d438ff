/* SPDX-License-Identifier: Apache-2.0 */
/* Asking: a question goes to all nodes that are up, the answers come one by
 * one. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overseer/overseer_state.h"

#define ANSWER_WITHIN_MS 5000 /* a node that is up and takes longer is stuck */
#define QUESTIONS_MAX 4096
#define LOOK_AFTER_MS 200 /* prompt nodes have answered by then */

void ps_question_destroy(ps_question_t **self_p)
{
    ps_question_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_answers_done(&self->answers);
    ps_buffer_done(&self->words);
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

/* A node that is silent is not asked; when it may go on serving the job that is
 * asked about, or will, its answer is missing. */
static void miss_silent(const ps_overseer_t *self, ps_question_t *question)
{
    const ps_registry_t *registry = self->is.registry;

    for (size_t i = 0; question->job != 0 && i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);
        const ps_overseen_t *known = ps_overseen_find(self, node->incarnation);

        if ((known == NULL || known->state != PS_HEALTH_UP) &&
            ps_registry_serves_job(registry, node->incarnation, question->job)) {
            miss(question, node->name, "is silent");
        }
    }
}

static void ask_all(ps_overseer_t *self, ps_question_t *question)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_overseen_t *node = &self->nodes[i];

        if (node->state != PS_HEALTH_UP) {
            continue;
        }
        if (ps_overseen_note_question(node, question->serial)) {
            question->waits[question->n_waits++] = node->incarnation;
        } else {
            miss(question, node->name, "could not be asked");
        }
    }
    miss_silent(self, question);
}

psd_status_t ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job, const char *words,
                             void *context, uint64_t now_ms, psd_error_t *err)
{
    PSD_AUTO(ps_question_destroy) ps_question_t *question = NULL;

    if (self->n_questions >= QUESTIONS_MAX) {
        return psd_error_set(err, PSD_BUSY, "%d questions wait for nodes, no more are allowed",
                             QUESTIONS_MAX);
    }
    question = ps_alloc(1, sizeof *question);
    if (question != NULL) {
        question->waits = ps_alloc(self->n_nodes, sizeof *question->waits);
    }
    if (question == NULL || question->waits == NULL ||
        !ps_buffer_append(&question->words, words, strlen(words)) ||
        !ps_grow(&self->questions, &self->questions_capacity, self->n_questions + 1,
                 sizeof(ps_question_t *))) {
        return psd_error_set(err, PSD_NOMEM, "no memory to ask the nodes");
    }
    question->serial = ++self->last_serial; /* ascending: find relies on it */
    question->kind = kind;
    question->job = job;
    question->asked_ms = now_ms;
    question->deadline_ms = now_ms + ANSWER_WITHIN_MS;
    question->context = context;
    self->questions[self->n_questions++] = question;
    ask_all(self, question);
    self->n_done += question->n_waits == 0 ? 1 : 0;
    question = NULL;
    return PSD_OK;
}

void ps_overseer_be_brief(ps_overseer_t *self, const void *context)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        if (self->questions[i]->context == context) {
            self->questions[i]->brief = true;
        }
    }
}

static ps_question_t *find(const ps_overseer_t *self, uint64_t serial)
{
    size_t low = 0;
    size_t high = self->n_questions;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->questions[middle]->serial < serial) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < self->n_questions && self->questions[low]->serial == serial ? self->questions[low]
                                                                             : NULL;
}

const ps_question_t *ps_overseer_question(const ps_overseer_t *self, uint64_t serial)
{
    return find(self, serial);
}

static ps_question_t *take_out(ps_overseer_t *self, size_t i)
{
    ps_question_t *question = self->questions[i];

    self->n_questions--;
    memmove(&self->questions[i], &self->questions[i + 1],
            (self->n_questions - i) * sizeof(ps_question_t *));
    self->n_done -= question->n_waits == 0 ? 1 : 0;
    if (question->n_waits > 0 || question->gave_up) { /* else no node has it to answer */
        ps_overseen_withdraw(self, question->serial);
    }
    return question;
}

ps_question_t *ps_overseer_next_done(ps_overseer_t *self)
{
    for (size_t i = 0; self->n_done > 0 && i < self->n_questions; i++) {
        if (self->questions[i]->n_waits == 0) {
            return take_out(self, i);
        }
    }
    return NULL;
}

ps_question_t *ps_overseer_take_question(ps_overseer_t *self)
{
    return self->n_questions == 0 ? NULL : take_out(self, 0);
}

/* The node's place among those that are waited for; n_waits: it is not. */
static size_t place_of(const ps_question_t *self, uint64_t incarnation)
{
    size_t i = 0;

    while (i < self->n_waits && self->waits[i] != incarnation) {
        i++;
    }
    return i;
}

static void wait_no_longer(ps_overseer_t *self, ps_question_t *question, size_t at)
{
    question->waits[at] = question->waits[--question->n_waits];
    self->n_done += question->n_waits == 0 ? 1 : 0;
}

void ps_overseen_give_up(ps_overseer_t *self, const ps_overseen_t *node)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];
        size_t at = place_of(question, node->incarnation);

        if (at < question->n_waits) {
            wait_no_longer(self, question, at);
            question->gave_up = true;
            miss(question, node->name, "is silent");
        }
    }
}

/* Whether the node is not waited for any longer. */
static bool is_overdue(const ps_overseer_t *self, const ps_question_t *question,
                       uint64_t incarnation, uint64_t now_ms, bool here_hangs)
{
    if (question->deadline_ms <= now_ms) {
        return true;
    }
    if (!question->brief || now_ms < question->asked_ms + LOOK_AFTER_MS) {
        return false;
    }
    return incarnation == self->is.incarnation ? here_hangs
                                               : now_ms >= question->asked_ms + PS_BRIEF_MS;
}

void ps_overseer_expire(ps_overseer_t *self, uint64_t now_ms, bool here_hangs)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_t *question = self->questions[i];

        for (size_t k = question->n_waits; k > 0; k--) {
            uint64_t incarnation = question->waits[k - 1];
            const ps_overseen_t *node = ps_overseen_find(self, incarnation);

            if (is_overdue(self, question, incarnation, now_ms, here_hangs)) {
                miss(question, node == NULL ? "?" : node->name, "has not answered in time");
                wait_no_longer(self, question, k - 1);
                question->gave_up = true;
            }
        }
    }
}

void ps_overseer_answered(ps_overseer_t *self, uint64_t incarnation, uint64_t serial,
                          psd_status_t status, ps_answers_t *answers)
{
    ps_overseen_t *node = ps_overseen_find(self, incarnation);
    bool lacks_jobs = node != NULL && ps_overseen_end_question(node, serial);
    ps_question_t *question = find(self, serial);
    size_t at = question == NULL ? 0 : place_of(question, incarnation);

    if (node == NULL || question == NULL || at == question->n_waits) {
        return;
    }
    wait_no_longer(self, question, at);
    if (status != PSD_OK || !ps_answers_join(&question->answers, answers)) {
        miss(question, node->name, "could not answer");
    } else if (lacks_jobs) {
        miss(question, node->name, "has not applied a job's state");
    }
}
