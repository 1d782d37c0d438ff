/* SPDX-License-Identifier: Apache-2.0 */
/* A partition has forgotten this client, or it is a guest: it asks the registry for a
 * session, and does not wait for the answer. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"

#define ASK_AGAIN_MS 1000

/* Reports it to on_wait, once. */
static void tell(psd_client_t *self, uint32_t table, uint32_t partition)
{
    const ps_known_table_t *known = ps_known_table(self, table);
    char text[PS_NAME_MAX + 160];

    if (self->told_forgotten || self->options.on_wait == NULL) {
        return;
    }
    self->told_forgotten = true;
    (void)snprintf(text, sizeof text,
                   "partition %" PRIu32
                   " of table %s evicted this client's session, as more than limits.sessions "
                   "clients came since; it continues there under a new one",
                   partition, known == NULL ? "?" : known->name);
    self->options.on_wait(self->options.on_wait_user, text);
}

void ps_identity_look(psd_client_t *self)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *hello = NULL;
    uint32_t table = 0;
    uint32_t partition = 0;
    uint64_t id = 0;

    if (self->session == NULL || self->now_ms < self->identity_due_ms ||
        !ps_session_wants_identity(self->session, &table, &partition)) {
        return;
    }
    tell(self, table, partition);
    self->identity_due_ms = self->now_ms + ASK_AGAIN_MS;
    if (self->identity_asked == 0 &&
        ps_random(&self->next_id, sizeof self->next_id, NULL) != PSD_OK) {
        return;
    }
    hello = ps_question_hello(&self->next_id, false);
    if (hello != NULL && ps_control_send(self, hello, &id, NULL) == PSD_OK) {
        /* A repeated hello counts as one; either answer will do. */
        self->identity_first = self->identity_asked == 0 ? id : self->identity_first;
        self->identity_asked = id;
    }
}

void ps_identity_take_level(psd_client_t *self, const ps_doc_t *reply)
{
    const char *level = "";

    self->encrypts = ps_doc_get_text_or(reply, "level", PS_NAME_MAX, "", &level, NULL) == PSD_OK &&
                     strcmp(level, "encrypt") == 0;
}

bool ps_identity_learn(psd_client_t *self, uint64_t id, const ps_doc_t *reply)
{
    ps_identity_t added = {.client = self->next_id};
    uint32_t table = 0;
    uint32_t partition = 0;

    if (id != self->identity_asked &&
        (self->identity_asked == 0 || id < self->identity_first || id > self->identity_asked ||
         !ps_doc_has(reply, "session"))) {
        return false;
    }
    self->identity_asked = 0;
    self->identity_due_ms = 0;
    if (ps_reply_status(reply, NULL) == PSD_OK &&
        ps_doc_get_u64(reply, "session", 1, UINT64_MAX, &added.session, NULL) == PSD_OK &&
        ps_session_wants_identity(self->session, &table, &partition)) {
        psd_status_t rc = ps_session_add_identity(self->session, &added, NULL);

        (void)rc; /* without memory it is asked again */
    } else {
        self->identity_due_ms = self->now_ms + ASK_AGAIN_MS;
    }
    return true;
}

/* ---- guests ---- */

bool ps_client_is_guest(const psd_client_t *self)
{
    return self->number >= PS_GUEST_FIRST;
}

uint64_t ps_guest_number(const ps_id_t *client)
{
    uint64_t number = 0;

    memcpy(&number, client, sizeof number);
    return number | PS_GUEST_FIRST;
}

void ps_guest_look(psd_client_t *self)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *hello = NULL;
    uint64_t id = 0;

    if (self->session == NULL || !ps_client_is_guest(self) || self->now_ms < self->guest_due_ms) {
        return;
    }
    self->guest_due_ms = self->now_ms + ASK_AGAIN_MS;
    hello = ps_question_hello(&self->id, false);
    if (hello != NULL && ps_control_send(self, hello, &id, NULL) == PSD_OK) {
        self->guest_first = self->guest_first == 0 ? id : self->guest_first;
        self->guest_asked = id;
    }
}

bool ps_guest_learn(psd_client_t *self, uint64_t id, const ps_doc_t *reply)
{
    uint64_t number = 0;

    if (self->guest_asked == 0 || id < self->guest_first || id > self->guest_asked ||
        !ps_doc_has(reply, "heartbeat_ms")) {
        return false;
    }
    if (ps_client_is_guest(self) && ps_reply_status(reply, NULL) == PSD_OK &&
        ps_doc_get_u64(reply, "session", 1, PS_GUEST_FIRST - 1, &number, NULL) == PSD_OK) {
        (void)!ps_doc_get_u64(reply, "heartbeat_ms", 1, 3600000, &self->heartbeat_ms, NULL);
        ps_identity_take_level(self, reply);
        self->number = number;
        self->guest_asked = 0;
        self->finder.patience_max_ms = PS_FINDER_PATIENCE_MAX_MS;
        ps_session_settle(self->session, self->now_ms, number, &self->outbox);
    }
    return true;
}
