/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the control port. One is waited for at a time; a question that
 * stays unanswered is asked again under the same id, which the node knows. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"
#include "client/job/job.h"

#define ASK_AGAIN_MS 1000 /* doubles with each try */
#define ASK_AGAIN_MAX_MS 8000
#define BUSY_MS 100   /* between two tries of what could not be done */
#define TEXT_MAX 4096 /* of a refusal's message */
#define OP_MAX 64     /* of the name of a question */

ps_doc_t *ps_control_new(const char *op)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *question = NULL;

    if (doc != NULL && ps_doc_set_text(doc, "op", op)) {
        question = doc;
        doc = NULL;
    }
    return question;
}

ps_doc_t *ps_control_hello(const ps_id_t *client)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_control_new("hello");
    ps_doc_t *versions = NULL;
    ps_doc_t *hello = NULL;

    if (doc == NULL) {
        return NULL;
    }
    versions = ps_doc_add_array(doc, "versions");
    if (versions != NULL && ps_doc_append_u64(versions, PS_VERSION_MIN) &&
        ps_doc_append_u64(versions, PS_VERSION) && ps_doc_set_id(doc, "client", client)) {
        hello = doc;
        doc = NULL;
    }
    return hello;
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

    if (rc == PSD_BUSY) { /* lost; it is asked again */
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

/* Waits until the reply is there; asks again when that takes long. */
static psd_status_t wait_for_reply(psd_client_t *self, const ps_buffer_t *text,
                                   uint64_t deadline_ms, psd_error_t *err)
{
    uint64_t again_ms = ASK_AGAIN_MS;

    while (self->reply == NULL) {
        uint64_t ask_ms = ps_now_ms() + again_ms;

        while (self->reply == NULL && ps_now_ms() < earlier(deadline_ms, ask_ms)) {
            ps_pump(self, earlier(deadline_ms, ask_ms));
            if (self->broken != PSD_OK) {
                return ps_client_check(self, err);
            }
        }
        if (self->reply == NULL && ps_now_ms() >= deadline_ms) {
            return PSD_DEADLINE;
        }
        if (self->reply == NULL) {
            psd_status_t rc = send_text(self, text, err);

            if (rc != PSD_OK) {
                return rc;
            }
        }
        again_ms = earlier(again_ms * 2, ASK_AGAIN_MAX_MS);
    }
    return PSD_OK;
}

static psd_status_t ask(psd_client_t *self, ps_doc_t *question, uint64_t deadline_ms,
                        psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    psd_status_t rc = finish_question(self, question, &text, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_doc_destroy(&self->reply);
    self->asked = self->last_ask;
    rc = send_text(self, &text, err);
    if (rc == PSD_OK) {
        ps_pump(self, 0); /* an answer may be there with no time to wait */
        rc = wait_for_reply(self, &text, deadline_ms, err);
    }
    self->asked = 0;
    return rc;
}

psd_status_t ps_control_ask(psd_client_t *self, ps_doc_t *question, uint32_t timeout_ms,
                            uint32_t grace_ms, ps_doc_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const char *op = NULL;
    psd_status_t rc = ps_client_check(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (question == NULL || !ps_doc_set_u64(question, "timeout_ms", timeout_ms)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_doc_get_text_or(question, "op", OP_MAX, "request", &op, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ask(self, question, ps_now_ms() + timeout_ms + grace_ms, err);
    if (rc == PSD_DEADLINE) {
        return psd_error_set(err, rc, "%s: no answer from %s within %" PRIu32 " ms", op,
                             self->endpoint, timeout_ms);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    reply = self->reply;
    self->reply = NULL;
    rc = ps_reply_status(reply, err);
    if (ret_reply != NULL) {
        *ret_reply = reply;
        reply = NULL;
    }
    return rc;
}

/* Sleeps, with an eye on what comes. */
static void pause_until(psd_client_t *self, uint64_t until_ms)
{
    while (ps_now_ms() < until_ms && self->broken == PSD_OK) {
        ps_pump(self, until_ms);
    }
}

psd_status_t ps_control_insist(psd_client_t *self, ps_doc_t *question, ps_doc_t **ret_reply,
                               psd_error_t *err)
{
    uint64_t deadline_ms = ps_now_ms() + self->options.timeout_ms;
    psd_status_t rc = PSD_BUSY;

    for (;;) {
        uint64_t now_ms = ps_now_ms();
        uint32_t left_ms = now_ms < deadline_ms ? (uint32_t)(deadline_ms - now_ms) : 0;

        rc = ps_control_ask(self, question, left_ms, 0, ret_reply, err);
        if (rc != PSD_BUSY || ps_now_ms() + BUSY_MS >= deadline_ms) {
            return rc;
        }
        ps_doc_destroy(ret_reply);
        psd_error_clear(err);
        pause_until(self, ps_now_ms() + BUSY_MS);
    }
}

static void take_reply(psd_client_t *self, ps_doc_t **reply_p)
{
    uint64_t id = 0;

    if (ps_doc_get_u64(*reply_p, "id", 1, UINT64_MAX, &id, NULL) != PSD_OK) {
        return;
    }
    if (id == self->asked && self->reply == NULL) {
        self->reply = *reply_p;
        *reply_p = NULL;
    } else if (id == self->tables_asked) {
        self->tables_asked = 0;
        ps_membership_tables(self, *reply_p);
    } else if (id == self->idle_asked) {
        ps_idle_learn(self, *reply_p);
    } else if (id == self->identity_asked ||
               (self->identity_asked != 0 && id >= self->identity_first &&
                id < self->identity_asked && ps_doc_has(*reply_p, "session"))) {
        ps_identity_learn(self, *reply_p);
    } else if (id == self->routes_asked || ps_doc_has(*reply_p, "places")) {
        /* Also to an older question: places only grow newer. */
        self->routes_asked = id == self->routes_asked ? 0 : self->routes_asked;
        ps_reroute_learn(self, *reply_p);
    }
}

void ps_control_receive(psd_client_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    for (;;) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = ps_socket_receive_text(self->control, &got, &conn, &text, NULL);

        if (rc == PSD_PROTO) {
            continue; /* no reply of ours; whoever waits has a deadline */
        }
        if (rc != PSD_OK || !got) {
            return;
        }
        if (ps_doc_parse((ps_bytes_t){text.data, text.size}, &reply, NULL) == PSD_OK) {
            take_reply(self, &reply);
        }
    }
}

/* The status of that name; PSD_PROTO when there is none. */
static psd_status_t status_of(const char *name)
{
#define STATUS_NUMBER(NAME, number, code, exit, text, hint) PSD_##NAME,
    static const psd_status_t statuses[] = {PSD_STATUS_MAP(STATUS_NUMBER)};
#undef STATUS_NUMBER

    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (strcmp(name, psd_status_name(statuses[i])) == 0) {
            return statuses[i];
        }
    }
    return PSD_PROTO;
}

psd_status_t ps_reply_status(const ps_doc_t *reply, psd_error_t *err)
{
    const ps_doc_t *error = NULL;
    const char *name = "";
    const char *message = "";
    psd_status_t status = PSD_OK;
    psd_status_t rc = ps_doc_get_text(reply, "status", 64, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    status = status_of(name);
    if (status == PSD_OK) {
        return PSD_OK;
    }
    if (ps_doc_get_object(reply, "error", &error, NULL) != PSD_OK ||
        ps_doc_get_text(error, "message", TEXT_MAX, &message, NULL) != PSD_OK) {
        message = psd_status_text(status);
    }
    return psd_error_set(err, status, "%s", message);
}
