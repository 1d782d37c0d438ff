/* SPDX-License-Identifier: Apache-2.0 */
/* The link to the registry: which node's control port it goes to, and how it
 * goes to another one. The questions under way go with it, with their ids. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"
#include "client/connection/discover.h"
#include "transport/sockets/reach.h"

#define HIGH_WATER 1000
#define LINGER_MS 100
#define QUIET_MS 500 /* without a word, before it is asked whether it is there */
#define KEY_REFUSED "it refuses the key of this program"
#define LOOK_MIN_MS 30 /* at each of several addresses */

static psd_status_t connect_to(psd_client_t *self, ps_socket_t **ret_socket, psd_error_t *err)
{
    const ps_socket_args_t args = {.context = self->context,
                                   .high_water = HIGH_WATER,
                                   .frame_bytes = PS_DOC_BYTES_MAX,
                                   .chunk_bytes = PS_DOC_BYTES_MAX,
                                   .linger_ms = LINGER_MS,
                                   .patience_ms = PS_PATIENCE_SMALL_MS,
                                   .keys = self->has_keys ? &self->keys : NULL,
                                   .is_watched = true};

    char endpoint[PS_ENDPOINT_MAX + 1];

    ps_discover(ps_finder_endpoint(&self->finder),
                self->has_keys || self->options.transport == PS_TRANSPORT_TCP, endpoint);
    return ps_socket_connect(endpoint, &args, ret_socket, err);
}

/* Over tcp a psd of this user wants a key; its admin's is in a file. */
static psd_status_t find_key(psd_client_t *self, psd_error_t *err)
{
    char path[PATH_MAX];
    bool found = false;

    if (self->has_keys || self->options.transport != PS_TRANSPORT_TCP) {
        return PSD_OK;
    }
    for (size_t i = 0; !found && i < self->finder.n; i++) {
        found = ps_discover_key(self->finder.items[i].endpoint, path);
    }
    if (!found) {
        return PSD_OK;
    }
    ps_key_watch_begin(&self->key_watch, path);
    self->has_keys = true;
    return ps_key_file_read(path, &self->keys, err);
}

psd_status_t ps_registry_open(psd_client_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_finder_init(&self->finder, self->endpoint, err);

    if (rc == PSD_OK) {
        rc = find_key(self, err);
    }
    return rc == PSD_OK ? connect_to(self, &self->control, err) : rc;
}

/* A question that the registry answers at once; nobody waits for the answer.
 * Others may wait there for long, as a barrier does. */
static void probe(psd_client_t *self)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("routes");
    uint64_t id = 0;

    if (question != NULL && ps_doc_add_array(question, "tables") != NULL &&
        ps_control_send(self, question, &id, NULL) == PSD_OK) {
        ps_finder_asked(&self->finder, self->now_ms);
    }
}

/* Reports that another node than before has the registry. */
static void tell_move(const psd_client_t *self, size_t before)
{
    const ps_address_t *from = &self->finder.items[before];
    const ps_address_t *to = &self->finder.items[self->finder.at];
    char what[2 * PS_ENDPOINT_MAX + 80];

    if (self->options.on_wait == NULL || before == self->finder.at ||
        (from->node[0] != '\0' && strcmp(from->node, to->node) == 0)) {
        return;
    }
    (void)snprintf(what, sizeof what, "the registry has moved from %s to %s", from->endpoint,
                   to->endpoint);
    self->options.on_wait(self->options.on_wait_user, what);
}

bool ps_registry_heard(psd_client_t *self, const ps_doc_t *reply)
{
    size_t before = self->registry_at;

    self->unheard_ms = self->now_ms;
    if (ps_doc_has(reply, "stale")) {
        return true; /* a node's own map: who has the registry is not known by that */
    }
    if (!ps_finder_heard(&self->finder, reply, self->now_ms)) {
        return false;
    }
    if (self->is_registry_lost && self->routes_asked != 0) {
        self->routes_due_ms = self->now_ms; /* it may never have come there */
    }
    self->is_registry_lost = false;
    self->registry_at = self->finder.at;
    if (ps_client_is_guest(self)) {
        /* One that was not asked before may give out sessions. */
        self->guest_due_ms = before != self->registry_at ? self->now_ms : self->guest_due_ms;
    } else if (self->number != 0) {
        tell_move(self, before);
    }
    return true;
}

static bool is_asked(const psd_client_t *self)
{
    return !TAILQ_EMPTY(&self->questions) || self->tables_asked != 0 || self->idle_asked != 0 ||
           self->routes_asked != 0 || self->identity_asked != 0 || self->guest_asked != 0;
}

/* Another address: what was sent to the old one may be lost. */
static bool go_there(psd_client_t *self)
{
    ps_socket_t *socket = NULL;

    psd_error_clear(self->scratch);
    if (connect_to(self, &socket, self->scratch) != PSD_OK) { /* an answer named it so */
        ps_finder_refused(&self->finder, self->finder.at, psd_error_text(self->scratch),
                          self->now_ms);
        return false;
    }
    ps_socket_close(&self->control); /* what is on its way may arrive yet */
    self->control = socket;
    return true;
}

/* There is another key, and a connection by it. Without one (no descriptor is left, for one) the
 * old key stays until the next look. */
static bool take_key(psd_client_t *self)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t old = self->keys;
    ps_socket_t *socket = NULL;

    if (!ps_key_watch_look(&self->key_watch, ps_now_ms(), ps_unix_ms(), &self->keys)) {
        return false;
    }
    if (connect_to(self, &socket, NULL) != PSD_OK) {
        self->keys = old;
        ps_key_watch_undo(&self->key_watch);
        return false;
    }
    ps_socket_close(&self->control); /* what is on its way may arrive yet */
    self->control = socket;
    return true;
}

void ps_registry_look_at_keys(psd_client_t *self)
{
    if (!self->has_keys || self->broken != PSD_OK || !take_key(self)) {
        return;
    }
    self->now_ms = ps_now_ms();
    if (self->options.on_wait != NULL) {
        char what[PATH_MAX + 80];

        (void)snprintf(what, sizeof what, "goes on with the new key in %s", self->key_watch.path);
        self->options.on_wait(self->options.on_wait_user, what);
    }
    ps_questions_repeat(self);
    ps_sender_take_back(self->sender);
    ps_links_rekey(self);
}

/* No address is left that has not refused the key. */
static bool is_denied_by_all(const ps_finder_t *finder)
{
    for (size_t i = 0; i < finder->n; i++) {
        if (finder->items[i].said != PS_SAID_REFUSED ||
            strcmp(finder->items[i].why, KEY_REFUSED) != 0) {
            return false;
        }
    }
    return true;
}

/* It will not be let in there, so that waiting is in vain. */
static void look_for_denial(psd_client_t *self)
{
    ps_denial_t denial = ps_socket_denial(self->control);

    if (denial == PS_DENIAL_NONE) {
        return;
    }
    ps_finder_refused(&self->finder, self->finder.at, KEY_REFUSED, self->now_ms);
    if (is_denied_by_all(&self->finder)) {
        ps_client_break(self, PSD_DENIED, ps_denial_text(denial));
    }
}

/* Its process ended, or the way to it: another node may have the registry by now. */
static void look_for_break(psd_client_t *self)
{
    if (self->finder.n > 1 && self->finder.at == self->finder.found &&
        ps_socket_is_gone(self->control)) {
        self->is_registry_lost = true;
        ps_finder_broke(&self->finder, self->now_ms);
    }
}

void ps_registry_look(psd_client_t *self)
{
    bool moved = false;

    if (!is_asked(self)) {
        self->unheard_ms = 0;
        ps_finder_rest(&self->finder);
        return;
    }
    if (self->unheard_ms == 0) {
        self->unheard_ms = self->now_ms;
    }
    if (self->number == 0) { /* the hello itself is answered at once */
        ps_finder_asked(&self->finder, self->now_ms);
    }
    look_for_denial(self);
    look_for_break(self);
    if (ps_finder_look(&self->finder, self->now_ms, &moved)) {
        self->is_registry_lost = self->is_registry_lost || moved;
        if (moved && !go_there(self)) {
            return;
        }
        ps_questions_repeat(self);
        self->unheard_ms = self->now_ms;
        if (self->number != 0) {
            probe(self);
        } else {
            ps_finder_asked(&self->finder, self->now_ms);
        }
    } else if (self->number != 0 && self->finder.n > 1 && self->finder.asked_ms == UINT64_MAX &&
               self->finder.step_ms == UINT64_MAX && self->now_ms >= self->unheard_ms + QUIET_MS) {
        probe(self);
    }
}

uint64_t ps_registry_due_ms(const psd_client_t *self)
{
    uint64_t due_ms = ps_finder_due_ms(&self->finder);

    return self->unheard_ms == 0 || self->finder.n < 2 || due_ms < UINT64_MAX
               ? due_ms
               : self->unheard_ms + QUIET_MS;
}

/* ---- reasons ---- */

/* Nobody listens there, and the client does not retry. */
static bool is_final(const psd_client_t *self, ps_reach_t outcome)
{
    if (self->options.has_wait) {
        return !self->options.waits &&
               (outcome == PS_REACH_REFUSED || outcome == PS_REACH_REFUSED_HERE);
    }
    return outcome == PS_REACH_REFUSED_HERE;
}

bool ps_registry_is_refused(psd_client_t *self, uint32_t wait_ms, char ret_why[PS_FINDER_TEXT])
{
    ps_finder_t *finder = &self->finder;
    uint32_t each_ms = wait_ms / (uint32_t)finder->n;
    char why[PS_REACH_TEXT] = "";
    bool all = true;

    for (size_t i = 0; i < finder->n; i++) {
        ps_reach_t outcome = PS_REACH_LISTENS;

        if (finder->items[i].said < PS_SAID_NO_LEADER) {
            outcome =
                ps_reach_why(finder->items[i].endpoint,
                             finder->n > 1 && each_ms < LOOK_MIN_MS ? LOOK_MIN_MS : each_ms, why);
        }
        if (outcome == PS_REACH_REFUSED || outcome == PS_REACH_REFUSED_HERE) {
            ps_finder_refused(finder, i, why, ps_now_ms());
        }
        all = is_final(self, outcome) && all;
    }
    if (finder->n > 1) {
        ps_registry_reason(self, ret_why);
    } else {
        (void)snprintf(ret_why, PS_FINDER_TEXT, "%s", why);
    }
    return all;
}

void ps_registry_reason(const psd_client_t *self, char ret_text[PS_FINDER_TEXT])
{
    static const char BEFORE[] = "waits for the registry: ";
    char list[PS_FINDER_TEXT];

    ps_finder_print(&self->finder, list);
    (void)snprintf(ret_text, PS_FINDER_TEXT, "%s%.*s", self->finder.n > 1 ? BEFORE : "",
                   self->finder.n > 1 ? (int)(PS_FINDER_TEXT - sizeof BEFORE) : 0, list);
}
