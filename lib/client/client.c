/* SPDX-License-Identifier: Apache-2.0 */
/* A client of a cluster: its beginning and its end. */
#include "psd/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/connection/private_server.h"
#include "client/job/job.h"
#include "client/requests/draft.h"
#include "client/requests/wait.h"
#include "transport/threads/fork.h"

#define RESEND_MS 250
#define LOOK_MS 30   /* without a WELCOME, before checking whether anybody listens */
#define TOLD_MS 1000 /* without a WELCOME, before the report to on_wait */
#define WHY_MS 200   /* to find out why there is none */

/* ---- connecting ---------------------------------------------------------- */

static psd_status_t make(const char *endpoint, const psd_options_t *options,
                         psd_client_t **ret_client, psd_error_t *err)
{
    PSD_AUTO(psd_close) psd_client_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    ps_client_init(self);
    if (options != NULL) {
        self->options = *options;
    }
    rc = ps_options_resolve(&self->options, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->endpoint = ps_strdup(endpoint);
    self->scratch = psd_error_new();
    if (self->endpoint == NULL || self->scratch == NULL ||
        !ps_grow(&self->polled, &self->polled_capacity, 1, sizeof(ps_socket_t *)) ||
        !ps_grow(&self->ready, &self->ready_capacity, 1, sizeof *self->ready)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    rc = ps_random(&self->id, sizeof self->id, err);
    if (rc == PSD_OK) {
        rc = ps_curve_keys(&self->keys, &self->has_keys, &self->key_watch, err);
    }
    if (rc == PSD_OK) {
        rc = ps_context_new(1, &self->context, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_open(self, err);
    }
    if (rc == PSD_OK) {
        *ret_client = self;
        self = NULL;
    }
    return rc;
}

static psd_status_t read_welcome(psd_client_t *self, const ps_doc_t *reply, psd_error_t *err)
{
    const ps_doc_t *cluster = NULL;
    bool is_guest = false;
    psd_status_t rc = ps_doc_get_object(reply, "cluster", &cluster, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_id(cluster, "uuid", &self->cluster, err);
    }
    if (rc == PSD_OK && ps_doc_has(reply, "guest")) {
        rc = ps_doc_get_bool(reply, "guest", &is_guest, err);
    }
    if (rc == PSD_OK && is_guest) {
        self->number = ps_guest_number(&self->id);
        /* It goes round for good: what it asks is not to wait for long where nobody is. */
        self->finder.patience_max_ms = PS_FINDER_PATIENCE_MS;
        self->finder.patience_ms = PS_FINDER_PATIENCE_MS;
    } else if (rc == PSD_OK) {
        rc = ps_doc_get_u64(reply, "session", 1, PS_GUEST_FIRST - 1, &self->number, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(reply, "heartbeat_ms", 1, 3600000, &self->heartbeat_ms, err);
    }
    ps_identity_take_level(self, reply);
    return rc;
}

static void tell_guest(const psd_client_t *self)
{
    char why[PS_FINDER_TEXT];
    char what[PS_FINDER_TEXT + 120];

    if (ps_client_is_guest(self) && self->options.on_wait != NULL) {
        ps_registry_reason(self, why);
        (void)snprintf(what, sizeof what,
                       "the registry has no leader: this client only reads until there is one%s%s",
                       why[0] == '\0' ? "" : "; ", why);
        self->options.on_wait(self->options.on_wait_user, what);
    }
}

/* Reports why there is no answer, and how long the call goes on waiting. */
static void tell_wait(const psd_client_t *self, const char *why, uint32_t left_ms)
{
    char what[PS_FINDER_TEXT + 400];

    (void)snprintf(what, sizeof what, "%.300s: no answer for %g s%s%s; waiting %g s more",
                   self->endpoint, TOLD_MS / 1000.0, why[0] == '\0' ? "" : ": ", why,
                   left_ms / 1000.0);
    self->options.on_wait(self->options.on_wait_user, what);
}

static uint32_t left_until(uint64_t deadline_ms)
{
    uint64_t now_ms = ps_now_ms();

    return now_ms < deadline_ms ? (uint32_t)(deadline_ms - now_ms) : 0;
}

/* Asks for a WELCOME, in three steps: after LOOK_MS it checks whether anybody
 * listens there, and after TOLD_MS it reports the wait. A repeated hello counts
 * as one. */
static psd_status_t say_hello(psd_client_t *self, ps_doc_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *hello = ps_question_hello(&self->id, !self->options.no_guest);
    const uint32_t steps_ms[] = {LOOK_MS, TOLD_MS, UINT32_MAX};
    const uint64_t start_ms = ps_now_ms();
    const uint64_t deadline_ms = start_ms + self->options.timeout_ms;
    psd_status_t rc = PSD_DEADLINE;

    for (size_t i = 0; i < 3 && rc == PSD_DEADLINE && *ret_reply == NULL; i++) {
        uint64_t until_ms = start_ms + steps_ms[i];
        char why[PS_FINDER_TEXT];

        psd_error_clear(err);
        rc = ps_question_ask(self, hello,
                             left_until(until_ms < deadline_ms ? until_ms : deadline_ms), 0,
                             ret_reply, err);
        if (rc != PSD_DEADLINE || *ret_reply != NULL || until_ms >= deadline_ms) {
            return rc;
        }
        if (ps_registry_is_refused(self, WHY_MS, why)) {
            psd_error_clear(err);
            return psd_error_set(err, PSD_CONNECT, "%s", why);
        }
        if (steps_ms[i] == TOLD_MS && self->options.on_wait != NULL) {
            tell_wait(self, why, left_until(deadline_ms));
        }
    }
    return rc;
}

static psd_status_t greet(psd_client_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    char why[PS_FINDER_TEXT];
    psd_status_t rc = say_hello(self, &reply, err);

    if (rc == PSD_DEADLINE && reply == NULL) {
        psd_error_clear(err);
        if (ps_registry_is_refused(
                self, self->options.timeout_ms < WHY_MS ? self->options.timeout_ms : WHY_MS, why)) {
            return psd_error_set(err, PSD_CONNECT, "%s", why);
        }
        return self->finder.n > 1
                   ? psd_error_set(err, ps_finder_status(&self->finder),
                                   "no answer within %" PRIu32 " ms; %s", self->options.timeout_ms,
                                   why)
                   : psd_error_set(err, PSD_CONNECT, "no answer from %s within %" PRIu32 " ms%s%s",
                                   self->endpoint, self->options.timeout_ms,
                                   why[0] == '\0' ? "" : ": ", why);
    }
    if (rc == PSD_OK) {
        rc = read_welcome(self, reply, err);
    }
    return rc;
}

psd_status_t ps_client_connect(const char *endpoint, const psd_options_t *options,
                               psd_client_t **ret_client, psd_error_t *err)
{
    PSD_AUTO(psd_close) psd_client_t *self = NULL;
    ps_session_args_t args = {.resend_ms = RESEND_MS};
    psd_status_t rc = make(endpoint, options, &self, err);

    if (rc == PSD_OK) {
        rc = greet(self, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "connect to %.300s", endpoint);
    }
    args.cluster = self->cluster;
    args.client = self->id;
    args.session = self->number;
    args.filters = PS_FILTER_BITS_ALL | PS_SPEAKS_TIMES | PS_SPEAKS_BUNDLES;
    rc = ps_session_new(&args, &self->session, err);
    if (rc == PSD_OK) {
        tell_guest(self);
        *ret_client = self;
        self = NULL;
    }
    return rc;
}

/* ---- closing ------------------------------------------------------------- */

static void free_tables(psd_client_t *self)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_free(self->tables[i]->queues);
        ps_free(self->tables[i]);
    }
    ps_free(self->tables);
}

void psd_close(psd_client_t **client_p)
{
    psd_client_t *self = client_p == NULL ? NULL : *client_p;
    bool is_last = false;

    if (self == NULL) {
        return;
    }
    *client_p = NULL;
    /* Of a client that was made before a fork the server is the parent's. */
    is_last = self->is_private && !ps_fork_is_since(self->n_forks);
    ps_membership_end(self);
    ps_links_close(self);
    ps_socket_close(&self->control);
    ps_context_destroy(&self->context); /* no thread reads payloads now */
    ps_slice_requests_done(self);
    ps_tickets_done(self);
    ps_outbox_done(&self->outbox);
    ps_outbox_done(&self->batch);
    ps_session_destroy(&self->session);
    ps_drafts_done(self); /* no payload is left */
    psd_error_destroy(&self->scratch);
    free_tables(self);
    ps_free(self->endpoint);
    ps_key_pair_done(&self->keys);
    ps_free(self);
    if (is_last) {
        ps_private_server_release();
    }
}
