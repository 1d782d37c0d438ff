/* SPDX-License-Identifier: Apache-2.0 */
/* Asks again until the answer is the one that is waited for. A client of libpsd asks: it
 * finds the registry, which may be another node, and may move. */
#include "server/embed/embed_ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "psd/client.h"
#include "transport/threads/clock.h"
#include "wire/messages/doc.h"

#define LOOK_MS 50      /* between two questions */
#define ANSWER_MS 1000  /* at least, for an answer: it says what is left … */
#define ONE_MS 5000     /* … and at most, for one question */
#define SILENT_MS 60000 /* nobody answered for so long: the registry is gone */
#define TEXT_SIZE 512
#define NODES_MAX 65536

typedef struct asking {
    psd_client_t *client; /* owned */
    uint64_t until_ms;
    uint64_t answered_ms; /* the last answer, or the beginning */
    char left[TEXT_SIZE]; /* what is waited for */
} asking_t;

/* One question. *ret_done: it is what was waited for; else self->left says what is left. */
typedef psd_status_t ask_t(asking_t *self, const char *about, bool *ret_done, psd_error_t *err);

static uint32_t time_left(const asking_t *self)
{
    uint64_t now_ms = ps_now_ms();

    return now_ms < self->until_ms ? (uint32_t)(self->until_ms - now_ms) : 0;
}

/* {"op":op,key:value} */
static psd_status_t ask(const asking_t *self, const char *op, const char *key, const char *value,
                        ps_doc_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    uint32_t timeout_ms = time_left(self);
    char *reply = NULL;
    psd_status_t rc = PSD_OK;

    timeout_ms = timeout_ms < ANSWER_MS ? ANSWER_MS : timeout_ms > ONE_MS ? ONE_MS : timeout_ms;
    if (question == NULL || !ps_doc_set_text(question, "op", op) ||
        !ps_doc_set_text(question, key, value) || !ps_doc_print(question, &text) ||
        !ps_buffer_append(&text, "", 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = psd_request(self->client, (const char *)text.data, timeout_ms, &reply, err);
    if (rc == PSD_OK) {
        rc = ps_doc_parse((ps_bytes_t){.data = (const uint8_t *)reply, .size = strlen(reply)},
                          ret_reply, err);
    }
    psd_free(reply);
    return rc;
}

static psd_status_t ask_drain(asking_t *self, const char *node, bool *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *left = NULL;
    const char *why = "";
    uint64_t copies = 0;
    psd_status_t rc = ask(self, "node_drain", "name", node, &reply, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_object(reply, "left", &left, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(left, "copies", 0, UINT64_MAX, &copies, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(reply, "why", TEXT_SIZE - 100, &why, err);
    }
    if (rc == PSD_OK) {
        (void)snprintf(self->left, sizeof self->left, "%" PRIu64 " copies are left%s%.400s", copies,
                       why[0] == '\0' ? "" : ": ", why);
        *ret_done = copies == 0;
    }
    return rc;
}

static psd_status_t ask_job(asking_t *self, const char *job, bool *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *found = NULL;
    const char *state = "";
    psd_status_t rc = ask(self, "job_state", "job", job, &reply, err);

    if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        (void)snprintf(self->left, sizeof self->left, "no worker has joined job %.64s", job);
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_object(reply, "job", &found, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(found, "state", 63, &state, err);
    }
    if (rc == PSD_OK) {
        (void)snprintf(self->left, sizeof self->left, "job %.64s is %s", job, state);
        *ret_done = strcmp(state, "running") != 0;
    }
    return rc;
}

static psd_status_t ask_begun(asking_t *self, const char *job, bool *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    psd_status_t rc = ask(self, "job_state", "job", job, &reply, err);

    *ret_done = rc == PSD_OK;
    (void)snprintf(self->left, sizeof self->left, "no worker has joined job %.64s", job);
    if (rc == PSD_NO_JOB) {
        psd_error_clear(err);
        rc = PSD_OK;
    }
    return rc;
}

static psd_status_t ask_alone(asking_t *self, const char *node, bool *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_doc_t *nodes = NULL;
    psd_status_t rc = ask(self, "node_list", "for", node, &reply, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_array(reply, "nodes", NODES_MAX, &nodes, err);
    }
    *ret_done = rc == PSD_OK;
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(nodes); i++) {
        const ps_doc_t *one = NULL;
        const char *name = "";
        const char *state = "";

        rc = ps_doc_at_object(nodes, i, &one, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(one, "name", TEXT_SIZE - 100, &name, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(one, "state", TEXT_SIZE - 100, &state, err);
        }
        if (rc == PSD_OK && strcmp(name, node) != 0 && strcmp(state, "down") != 0) {
            (void)snprintf(self->left, sizeof self->left, "node %.64s is %.32s", name, state);
            *ret_done = false;
        }
    }
    return rc;
}

/* The registry may be on its way to another node. */
static bool may_pass(const asking_t *self, psd_status_t rc)
{
    bool is_silence = rc == PSD_DEADLINE || rc == PSD_CONNECT || rc == PSD_NOT_LEADER;

    return is_silence && time_left(self) > 0 && ps_now_ms() < self->answered_ms + SILENT_MS;
}

static psd_status_t ask_until(const char *endpoint, ask_t *one, const char *about,
                              uint32_t timeout_ms, psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    asking_t self = {.until_ms = ps_now_ms() + timeout_ms, .answered_ms = ps_now_ms()};
    bool done = false;
    PSD_AUTO(psd_options_destroy) psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    if (options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    psd_options_set_timeout_ms(options, timeout_ms < ANSWER_MS   ? ANSWER_MS
                                        : timeout_ms > SILENT_MS ? SILENT_MS
                                                                 : timeout_ms);
    rc = psd_connect(endpoint, options, &self.client, err);
    while (rc == PSD_OK && !done) {
        rc = one(&self, about, &done, err);
        if (rc == PSD_OK) {
            self.answered_ms = ps_now_ms();
        } else if (may_pass(&self, rc)) {
            done = false;
            psd_error_clear(err);
            rc = PSD_OK;
        }
        if (rc == PSD_OK && !done && time_left(&self) == 0) {
            rc = psd_error_set(err, PSD_DEADLINE, "%s after %" PRIu32 " ms", self.left, timeout_ms);
        }
        if (rc == PSD_OK && !done) {
            (void)nanosleep(&gap, NULL);
        }
    }
    psd_close(&self.client);
    return rc;
}

psd_status_t ps_embed_ask_drain(const char *endpoint, const char *node, uint32_t timeout_ms,
                                psd_error_t *err)
{
    return ask_until(endpoint, ask_drain, node, timeout_ms, err);
}

psd_status_t ps_embed_ask_job(const char *endpoint, const char *job, uint32_t timeout_ms,
                              psd_error_t *err)
{
    return ask_until(endpoint, ask_job, job, timeout_ms, err);
}

psd_status_t ps_embed_ask_begun(const char *endpoint, const char *job, uint32_t timeout_ms,
                                psd_error_t *err)
{
    return ask_until(endpoint, ask_begun, job, timeout_ms, err);
}

psd_status_t ps_embed_ask_alone(const char *endpoint, const char *node, uint32_t timeout_ms,
                                psd_error_t *err)
{
    return ask_until(endpoint, ask_alone, node, timeout_ms, err);
}
