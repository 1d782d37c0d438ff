/* SPDX-License-Identifier: Apache-2.0 */
/* One question to many nodes at once, without a session. */
#include "cli/run/ask_any.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "protocol/session/finder.h"
#include "transport/sockets/curve.h"
#include "transport/sockets/socket.h"

#define BETTER_MS 300 /* for a better answer after the first one */
#define VAIN_MS 800   /* for a member to answer, when other nodes do */
#define LOOK_MS                                                                                     \
    500 /* between two questions; without an answer, before it is asked whether anybody listens … \
         */
#define REACH_MS 100 /* … which takes so long at each address */
#define SOON_MS 500  /* for a leader, before it is asked whether there is one … */
#define NAME_MS 400  /* … for so long */
#define HIGH_WATER 16
#define REFUSAL_MAX 511

typedef struct round {
    ps_context_t *context; /* owned, as each link */
    ps_key_pair_t keys;    /* of PSD_KEY_FILE … */
    bool has_keys;         /* … if that is set */
    char endpoints[PS_FINDER_MAX][PS_ENDPOINT_MAX + 1];
    ps_socket_t *links[PS_FINDER_MAX];
    size_t n;
    ps_buffer_t question;          /* owned */
    json_t *best;                  /* owned; NULL: no member has answered */
    bool heard;                    /* some node has answered */
    char refusal[REFUSAL_MAX + 1]; /* … that this caller may not ask that; "": none has */
} round_t;

static void round_done(round_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_socket_drop(&self->links[i]);
    }
    ps_context_destroy(&self->context);
    ps_key_pair_done(&self->keys);
    ps_buffer_done(&self->question);
    ps_json_unref(&self->best);
}

static psd_status_t send_question(const round_t *self, size_t i, psd_error_t *err)
{
    return ps_socket_send_text(
        self->links[i], 0, (ps_bytes_t){.data = self->question.data, .size = self->question.size},
        err);
}

/* Asks one more node, unless it is asked already. */
static psd_status_t ask(round_t *self, const char *endpoint, psd_error_t *err)
{
    const ps_socket_args_t args = {.context = self->context,
                                   .high_water = HIGH_WATER,
                                   .frame_bytes = PS_DOC_BYTES_MAX,
                                   .assembly_bytes = PS_DOC_BYTES_MAX,
                                   .chunk_bytes = PS_DOC_BYTES_MAX,
                                   .patience_ms = PS_PATIENCE_SMALL_MS,
                                   .keys = self->has_keys ? &self->keys : NULL,
                                   .is_watched = true};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < self->n; i++) {
        if (strcmp(self->endpoints[i], endpoint) == 0) {
            return PSD_OK;
        }
    }
    if (self->n == PS_FINDER_MAX) {
        return PSD_OK;
    }
    (void)snprintf(self->endpoints[self->n], sizeof self->endpoints[0], "%s", endpoint);
    rc = ps_socket_connect(endpoint, &args, &self->links[self->n], err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->n++;
    return send_question(self, self->n - 1, err);
}

/* They may have been silent, or knew nothing yet. */
static void ask_again(const round_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        (void)!send_question(self, i, NULL); /* it has enough of them in its queue */
    }
}

/* Of two answers of members that do not lead. */
static bool is_newer(const json_t *a, const json_t *b)
{
    const uint64_t term = ps_json_u64(a, "term");
    const uint64_t than = ps_json_u64(b, "term");

    return term > than ||
           (term == than && ps_json_u64(a, "committed") > ps_json_u64(b, "committed"));
}

/* Takes one answer. A node that cannot be reached is no reason to fail: another
 * one may answer. */
static void take(round_t *self, const ps_buffer_t *text)
{
    PSD_AUTO(ps_json_unref)
    json_t *doc = json_loadb((const char *)text->data, text->size, 0, NULL);
    const json_t *member = NULL;
    size_t i = 0;

    self->heard = self->heard || json_is_object(doc);
    if (strcmp(ps_json_text(doc, "status"), psd_status_name(PSD_DENIED)) == 0) {
        (void)snprintf(self->refusal, sizeof self->refusal, "%s",
                       ps_json_text(ps_json_at(doc, "error"), "message"));
    }
    json_array_foreach(ps_json_at(doc, "members"), i, member)
    {
        const char *endpoint = ps_json_text(member, "endpoint");

        if (endpoint[0] != '\0' && strlen(endpoint) <= PS_ENDPOINT_MAX) {
            (void)!ask(self, endpoint, NULL);
        }
    }
    if (strcmp(ps_json_text(doc, "status"), psd_status_name(PSD_OK)) == 0 &&
        (self->best == NULL || !json_is_true(ps_json_at(doc, "stale")) ||
         is_newer(doc, self->best))) {
        ps_json_unref(&self->best);
        self->best = json_incref(doc);
    }
}

/* Takes what has come within that time. */
static psd_status_t receive(round_t *self, uint64_t wait_ms, psd_error_t *err)
{
    bool ready[PS_FINDER_MAX] = {false};
    size_t n = self->n;
    psd_status_t rc = ps_socket_wait(self->links, n, wait_ms, ready, err);

    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t conn = 0;
        bool got = false;

        if (ready[i] &&
            ps_socket_receive_text(self->links[i], &got, &conn, &text, NULL) == PSD_OK && got) {
            take(self, &text);
        }
    }
    return rc;
}

static psd_status_t begin(const ps_cli_t *cli, const char *op, round_t *self, psd_error_t *err)
{
    ps_finder_t finder;
    psd_status_t rc = ps_finder_init(&finder, cli->endpoint, err);

    if (rc == PSD_OK) {
        rc = ps_curve_keys(&self->keys, &self->has_keys, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = ps_context_new(1, &self->context, err);
    }
    if (rc == PSD_OK && !ps_buffer_print(&self->question, "{\"v\":1,\"id\":1,\"op\":\"%s\"}", op)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a request");
    }
    for (size_t i = 0; rc == PSD_OK && i < finder.n; i++) {
        rc = ask(self, finder.items[i].endpoint, err);
    }
    return rc;
}

/* Why none of them lets this program in; NULL: some may yet. */
static const char *denial_of_all(const round_t *self)
{
    ps_denial_t denial = PS_DENIAL_NONE;

    for (size_t i = 0; i < self->n; i++) {
        denial = ps_socket_denial(self->links[i]);
        if (denial == PS_DENIAL_NONE) {
            return NULL;
        }
    }
    return denial == PS_DENIAL_NONE ? NULL : ps_denial_text(denial);
}

static psd_status_t say_nobody(const ps_cli_t *cli, const round_t *self, psd_error_t *err)
{
    const char *denial = self->heard ? NULL : denial_of_all(self);

    if (self->refusal[0] != '\0' || denial != NULL) {
        return psd_error_set(err, PSD_DENIED, "%s", denial != NULL ? denial : self->refusal);
    }
    return self->heard ? psd_error_set(err, PSD_NOT_LEADER,
                                       "no node that answered at %s has a part of the registry",
                                       cli->endpoint)
                       : psd_error_set(err, PSD_CONNECT, "no answer from %s", cli->endpoint);
}

/* Nodes answer, and none of them is a member: more time would hardly help. */
static bool is_vain(const ps_cli_t *cli, const round_t *self, uint64_t began_ms)
{
    return self->best == NULL && self->heard && !ps_args_given(&cli->args, "timeout") &&
           !ps_args_on(&cli->args, "wait") && ps_now_ms() >= began_ms + VAIN_MS;
}

static bool is_stale(const round_t *self)
{
    return self->best == NULL || json_is_true(ps_json_at(self->best, "stale"));
}

/* Until a leader has answered, or no better answer is to be expected. */
static psd_status_t gather(const ps_cli_t *cli, round_t *self, psd_error_t *err)
{
    const bool waits = ps_args_on(&cli->args, "wait");
    const uint64_t began_ms = ps_now_ms();
    uint64_t until_ms = began_ms + cli->timeout_ms;
    uint64_t ask_ms = began_ms + LOOK_MS;
    bool had_any = false;
    psd_status_t rc = PSD_OK;

    for (uint64_t now_ms = began_ms; rc == PSD_OK && now_ms < until_ms && is_stale(self);
         now_ms = ps_now_ms()) {
        const uint64_t left_ms = until_ms - now_ms;

        rc = receive(self, left_ms < LOOK_MS ? left_ms : LOOK_MS, err);
        if (rc == PSD_OK && (self->refusal[0] != '\0' || denial_of_all(self) != NULL)) {
            break;
        }
        if (rc == PSD_OK && (is_vain(cli, self, began_ms) ||
                             (!waits && !self->heard && !ps_cli_is_listened(cli, REACH_MS)))) {
            break;
        }
        if (ps_now_ms() >= ask_ms) {
            ask_again(self);
            ask_ms = ps_now_ms() + LOOK_MS;
        }
        if (self->best != NULL && !had_any) {
            had_any = true;
            until_ms = ps_now_ms() + BETTER_MS < until_ms ? ps_now_ms() + BETTER_MS : until_ms;
        }
    }
    return rc == PSD_OK && self->best == NULL ? say_nobody(cli, self, err) : rc;
}

psd_status_t ps_cli_ask_any(ps_cli_t *cli, const char *op, json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(round_done) round_t self = {0};
    psd_status_t rc = begin(cli, op, &self, err);

    if (rc == PSD_OK) {
        rc = gather(cli, &self, err);
    }
    if (rc == PSD_OK) {
        ps_json_strip(self.best);
        *ret_reply = self.best; /* ownership moves */
        self.best = NULL;
    }
    return rc;
}

bool ps_cli_is_leaderless(ps_cli_t *cli, uint32_t wait_ms, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t silent = {0};
    const uint32_t timeout_ms = cli->timeout_ms;
    const json_t *member = NULL;
    psd_status_t rc = PSD_OK;
    size_t i = 0;

    cli->timeout_ms = wait_ms;
    rc = ps_cli_ask_any(cli, "registry_list", &reply, NULL);
    cli->timeout_ms = timeout_ms;
    if (rc != PSD_OK || !json_is_true(ps_json_at(reply, "stale")) ||
        ps_json_text(reply, "leader")[0] != '\0') {
        return false;
    }
    json_array_foreach(ps_json_at(reply, "members"), i, member)
    {
        if (strcmp(ps_json_text(member, "state"), "silent") == 0 &&
            !ps_buffer_print(&silent, "%s\"%s\"", silent.size == 0 ? "; silent: " : ", ",
                             ps_json_text(member, "node"))) {
            break;
        }
    }
    psd_error_clear(err);
    (void)psd_error_set(err, PSD_NOT_LEADER,
                        "the registry has no leader: %" PRIu64 " of %" PRIu64
                        " voters are up, as node \"%s\" sees it%s",
                        ps_json_u64(reply, "voters_up"), ps_json_u64(reply, "voters"),
                        ps_json_text(reply, "answered_by"),
                        silent.size == 0 ? "" : (const char *)silent.data);
    return true;
}

psd_status_t ps_cli_connect_soon(ps_cli_t *cli, psd_error_t *err)
{
    const uint32_t timeout_ms = cli->timeout_ms;
    psd_status_t rc = PSD_OK;

    if (ps_args_given(&cli->args, "timeout") || ps_args_on(&cli->args, "wait") ||
        timeout_ms <= SOON_MS) {
        return ps_cli_connect(cli, err);
    }
    cli->timeout_ms = SOON_MS;
    rc = ps_cli_connect(cli, err);
    cli->timeout_ms = timeout_ms;
    if (rc != PSD_NOT_LEADER && rc != PSD_DEADLINE && rc != PSD_CONNECT) {
        return rc;
    }
    if (ps_cli_is_leaderless(cli, NAME_MS, err)) {
        return PSD_NOT_LEADER;
    }
    psd_error_clear(err);
    return ps_cli_connect(cli, err);
}
