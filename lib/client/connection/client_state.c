/* SPDX-License-Identifier: Apache-2.0 */
/* A client's state: empty, broken or not, and the tables that it knows. */
#include "client/connection/client_state.h"

#include <stdio.h>

#include "transport/threads/fork.h"

void ps_client_break(psd_client_t *self, psd_status_t status, const char *text)
{
    if (self->broken == PSD_OK) {
        self->broken = status == PSD_OK ? PSD_FAILED : status;
        (void)snprintf(self->broken_text, sizeof self->broken_text, "%s", text);
    }
}

bool ps_client_is_forked(const psd_client_t *self)
{
    return ps_fork_is_since(self->n_forks);
}

psd_status_t ps_client_enter(const psd_client_t *self, psd_error_t *err)
{
    psd_error_clear(err);
    return ps_client_is_forked(self) ? ps_fork_error("client", err) : PSD_OK;
}

psd_status_t ps_client_check(const psd_client_t *self, psd_error_t *err)
{
    const char *text = self->broken_text;
    psd_status_t broken = self->broken;

    if (broken == PSD_OK && self->session != NULL) {
        broken = ps_session_broken(self->session, &text);
    }
    if (broken == PSD_OK) {
        return PSD_OK;
    }
    return psd_error_set(err, broken == PSD_ROWS_LOST || broken == PSD_DENIED ? broken : PSD_CLOSED,
                         "client is broken: %s: %s", psd_status_text(broken), text);
}

void ps_client_init(psd_client_t *self)
{
    self->n_forks = ps_fork_count();
    TAILQ_INIT(&self->questions);
    TAILQ_INIT(&self->busy);
    TAILQ_INIT(&self->held);
    TAILQ_INIT(&self->sent);
    TAILQ_INIT(&self->by_peer);
    TAILQ_INIT(&self->ended);
    TAILQ_INIT(&self->spare);
    TAILQ_INIT(&self->open_tickets);
    TAILQ_INIT(&self->done_tickets);
    TAILQ_INIT(&self->idle_tickets);
    TAILQ_INIT(&self->drafts);
    self->expire_ms = UINT64_MAX;
    self->tell_ms = UINT64_MAX;
    self->doubt_ms = UINT64_MAX;
    self->routes_due_ms = UINT64_MAX;
}

size_t ps_client_n_unknown(const psd_client_t *client)
{
    return ps_session_pending(client->session, false) + client->n_waiting;
}

ps_known_table_t *ps_known_table(const psd_client_t *self, uint32_t id)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        if (self->tables[i]->id == id) {
            return self->tables[i];
        }
    }
    return NULL;
}

void ps_client_mark_ended(psd_client_t *client, uint32_t table, psd_status_t status)
{
    ps_client_worker_t *self = &client->worker;
    ps_known_table_t *known = NULL;

    if (status == PSD_NO_TABLE) {
        known = ps_known_table(client, table);
    }
    if (known != NULL) { /* its number is never used again */
        known->in_job = false;
    }
    if (self->beat != NULL && self->ended == PSD_OK &&
        (status == PSD_JOB_STOPPED || status == PSD_WORKER_LOST)) {
        self->ended = status;
    }
}
