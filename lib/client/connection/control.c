/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the control port. When no answer comes, the client retries with
 * the same id, by which the node recognises the question. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"

#define ASK_AGAIN_MS 1000 /* doubles with each try */
#define ASK_AGAIN_MAX_MS 8000

ps_doc_t *ps_question_new(const char *op)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *question = NULL;

    if (doc != NULL && ps_doc_set_text(doc, "op", op)) {
        question = doc;
        doc = NULL;
    }
    return question;
}

ps_doc_t *ps_question_hello(const ps_id_t *client, bool is_guest)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_question_new("hello");
    ps_doc_t *versions = NULL;
    ps_doc_t *hello = NULL;

    if (doc == NULL) {
        return NULL;
    }
    versions = ps_doc_add_array(doc, "versions");
    if (versions != NULL && ps_doc_append_u64(versions, PS_VERSION_MIN) &&
        ps_doc_append_u64(versions, PS_VERSION) && ps_doc_set_id(doc, "client", client) &&
        (!is_guest || ps_doc_set_bool(doc, "guest", true))) {
        hello = doc;
        doc = NULL;
    }
    return hello;
}

bool ps_control_name_job(const psd_client_t *client, ps_doc_t *question)
{
    return ps_doc_set_text(question, "job", client->worker.job) &&
           ps_doc_set_u64(question, "job_id", client->worker.stamp.job);
}

static psd_status_t finish_question(psd_client_t *self, ps_doc_t *question, ps_buffer_t *text,
                                    psd_error_t *err)
{
    uint64_t id = self->last_ask + 1;

    if (!ps_doc_set_u64(question, "v", 1) || !ps_doc_set_u64(question, "id", id) ||
        (self->number != 0 && !ps_doc_set_u64(question, "session", self->number)) ||
        !ps_doc_print(question, text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    self->last_ask = id;
    return PSD_OK;
}

static psd_status_t send_text(psd_client_t *self, const ps_buffer_t *text, psd_error_t *err)
{
    ps_bytes_t bytes = {.data = text->data, .size = text->size};
    psd_status_t rc = ps_socket_send_text(self->control, 0, bytes, err);

    if (rc == PSD_BUSY) { /* lost; it is retried */
        psd_error_clear(err);
        return PSD_OK;
    }
    return rc;
}

psd_status_t ps_control_send(psd_client_t *self, ps_doc_t *question, uint64_t *ret_id,
                             psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    psd_status_t rc = finish_question(self, question, &text, err);

    if (rc == PSD_OK) {
        rc = send_text(self, &text, err);
    }
    if (rc == PSD_OK) {
        *ret_id = self->last_ask;
    }
    return rc;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- questions that a call waits for ------------------------------------- */

void ps_question_drop(psd_client_t *client, ps_client_question_t *self)
{
    if (self->is_asked) {
        TAILQ_REMOVE(&client->questions, self, in_list);
        self->is_asked = false;
    }
    ps_buffer_done(&self->text);
    ps_doc_destroy(&self->reply);
}

psd_status_t ps_question_begin(psd_client_t *client, ps_doc_t *doc, uint32_t timeout_ms,
                               uint32_t grace_ms, ps_client_question_t *ret, psd_error_t *err)
{
    const char *op = NULL;
    psd_status_t rc = ps_client_check(client, err);

    *ret = (ps_client_question_t){.timeout_ms = timeout_ms};
    if (rc != PSD_OK) {
        return rc;
    }
    if (doc == NULL || !ps_doc_set_u64(doc, "timeout_ms", timeout_ms)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_doc_get_text_or(doc, "op", PS_QUESTION_OP_MAX, "request", &op, err);
    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(ret->op, sizeof ret->op, "%s", op);
    ret->deadline_ms = ps_now_ms() + timeout_ms + grace_ms;
    rc = finish_question(client, doc, &ret->text, err);
    if (rc == PSD_OK) {
        ret->id = client->last_ask;
        rc = send_text(client, &ret->text, err);
    }
    if (rc != PSD_OK) {
        ps_question_drop(client, ret);
        return rc;
    }
    ret->again_ms = ASK_AGAIN_MS;
    ret->ask_ms = ps_now_ms() + ASK_AGAIN_MS;
    ret->is_asked = true;
    TAILQ_INSERT_TAIL(&client->questions, ret, in_list);
    return PSD_OK;
}

psd_status_t ps_question_look(psd_client_t *client, ps_client_question_t *self, bool *ret_over,
                              psd_error_t *err)
{
    uint64_t now_ms = ps_now_ms();
    psd_status_t rc = PSD_OK;

    if (client->broken != PSD_OK) {
        rc = ps_client_check(client, err);
    } else if (self->reply == NULL && now_ms < self->deadline_ms && now_ms >= self->ask_ms) {
        rc = send_text(client, &self->text, err);
        self->again_ms = earlier(self->again_ms * 2, ASK_AGAIN_MAX_MS);
        self->ask_ms = now_ms + self->again_ms;
    }
    if (rc != PSD_OK) {
        ps_question_drop(client, self);
    }
    *ret_over = self->reply != NULL || now_ms >= self->deadline_ms;
    return rc;
}

void ps_questions_repeat(psd_client_t *client)
{
    ps_client_question_t *question = NULL;

    TAILQ_FOREACH(question, &client->questions, in_list)
    {
        if (question->reply == NULL && send_text(client, &question->text, NULL) == PSD_OK) {
            question->again_ms = ASK_AGAIN_MS;
            question->ask_ms = ps_now_ms() + ASK_AGAIN_MS;
        }
    }
}

uint64_t ps_question_wake_ms(const ps_client_question_t *self)
{
    return earlier(self->deadline_ms, self->ask_ms);
}

psd_status_t ps_question_end(psd_client_t *client, ps_client_question_t *self, ps_doc_t **ret_reply,
                             psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = self->reply;
    psd_status_t rc = PSD_OK;

    self->reply = NULL;
    ps_question_drop(client, self);
    if (reply == NULL) {
        char why[PS_FINDER_TEXT];

        ps_registry_reason(client, why);
        return why[0] == '\0'
                   ? psd_error_set(err, PSD_DEADLINE, "%s: no answer from %s within %" PRIu32 " ms",
                                   self->op, client->endpoint, self->timeout_ms)
                   : psd_error_set(err, PSD_DEADLINE, "%s: no answer within %" PRIu32 " ms; %s",
                                   self->op, self->timeout_ms, why);
    }
    rc = ps_reply_status(reply, err);
    if (ret_reply != NULL) {
        *ret_reply = reply;
        reply = NULL;
    }
    return rc;
}

/* The question that waits for this answer; NULL: none does. */
static ps_client_question_t *find_question(const psd_client_t *self, uint64_t id)
{
    ps_client_question_t *question = NULL;

    TAILQ_FOREACH(question, &self->questions, in_list)
    {
        if (question->id == id && question->reply == NULL) {
            return question;
        }
    }
    return NULL;
}

static void take_reply(psd_client_t *self, ps_doc_t **reply_p, ps_on_reply_t *on_other)
{
    ps_client_question_t *question = NULL;
    uint64_t id = 0;

    if (ps_doc_get_u64(*reply_p, "id", 1, UINT64_MAX, &id, NULL) != PSD_OK ||
        !ps_registry_heard(self, *reply_p)) {
        return;
    }
    question = find_question(self, id);
    if (question != NULL) {
        question->reply = *reply_p;
        *reply_p = NULL;
    } else {
        on_other(self, id, *reply_p);
    }
}

void ps_questions_receive(psd_client_t *self, ps_on_reply_t *on_other)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    for (;;) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = ps_socket_receive_text(self->control, &got, &conn, &text, NULL);

        if (rc == PSD_PROTO) {
            continue; /* not our reply; the call that waits has a deadline */
        }
        if (rc != PSD_OK || !got) {
            return;
        }
        if (ps_doc_parse((ps_bytes_t){text.data, text.size}, &reply, NULL) == PSD_OK) {
            take_reply(self, &reply, on_other);
        }
    }
}
