/* SPDX-License-Identifier: Apache-2.0 */
/* A list of addresses of nodes, and which of them is asked next. */
#include "protocol/session/finder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/messages/reply.h"

static void begin_round(ps_finder_t *self)
{
    self->n_hops = 0;
    self->n_steps = 0;
    self->patience_ms = PS_FINDER_PATIENCE_MS < self->patience_max_ms ? PS_FINDER_PATIENCE_MS
                                                                      : self->patience_max_ms;
    self->pause_ms = PS_FINDER_PAUSE_MS;
}

/* ---- the list ---- */

static bool is_endpoint(const char *text)
{
    return strncmp(text, "tcp://", strlen("tcp://")) == 0 ||
           strncmp(text, "ipc://", strlen("ipc://")) == 0;
}

/* Of an answer, which may say anything: no later call may fail for its form. */
/* "#KEY" may follow the port (ADR 29); whether it is a key, the link says. */
static bool is_learnable(const char *text)
{
    const char *mark = strchr(text, '#');
    const char *port = memrchr(text, ':', mark == NULL ? strlen(text) : (size_t)(mark - text));
    char *end = NULL;
    long number = 0;

    for (const char *at = text; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == ',' || (unsigned char)*at == 0x7F) {
            return false;
        }
    }
    if (strncmp(text, "ipc://", strlen("ipc://")) == 0) {
        return text[strlen("ipc://")] == '/';
    }
    if (strncmp(text, "tcp://", strlen("tcp://")) != 0 || port <= text + strlen("tcp://")) {
        return false;
    }
    number = strtol(port + 1, &end, 10);
    return port[1] >= '1' && port[1] <= '9' && (*end == '\0' || *end == '#') &&
           number <= UINT16_MAX;
}

static psd_status_t add_given(ps_finder_t *self, const char *text, size_t size, size_t place,
                              psd_error_t *err)
{
    char one[PS_ENDPOINT_MAX + 1];

    if (size == 0) {
        return psd_error_set(err, PSD_INVALID,
                             "address %zu of the list is empty; allowed: addresses with one comma "
                             "between them",
                             place);
    }
    if (size > PS_ENDPOINT_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "address %zu of the list has %zu bytes; allowed: 1..%d", place, size,
                             PS_ENDPOINT_MAX);
    }
    if (place > PS_FINDER_GIVEN_MAX) {
        return psd_error_set(err, PSD_INVALID, "the list has more than %d addresses",
                             PS_FINDER_GIVEN_MAX);
    }
    (void)snprintf(one, sizeof one, "%.*s", (int)size, text);
    if (!is_endpoint(one)) {
        return psd_error_set(err, PSD_INVALID,
                             "address %zu of the list is \"%s\"; allowed: tcp://HOST:PORT, "
                             "ipc://PATH",
                             place, one);
    }
    ps_finder_add(self, "", one, true);
    return PSD_OK;
}

psd_status_t ps_finder_init(ps_finder_t *self, const char *list, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    const char *from = list;

    *self = (ps_finder_t){.asked_ms = UINT64_MAX,
                          .step_ms = UINT64_MAX,
                          .found = PS_FINDER_MAX,
                          .patience_max_ms = PS_FINDER_PATIENCE_MAX_MS};
    begin_round(self);
    if (strchr(list, ',') == NULL && strlen(list) <= PS_ENDPOINT_MAX) {
        ps_finder_add(self, "", list, true);
        return PSD_OK;
    }
    for (size_t place = 1; rc == PSD_OK && from != NULL; place++) {
        const char *end = strchr(from, ',');
        size_t size = end == NULL ? strlen(from) : (size_t)(end - from);

        rc = add_given(self, from, size, place, err);
        from = end == NULL ? NULL : end + 1;
    }
    return rc;
}

void ps_finder_add(ps_finder_t *self, const char *node, const char *endpoint, bool is_given)
{
    size_t at = self->n;

    for (size_t i = 0; i < self->n; i++) {
        if (strcmp(self->items[i].endpoint, endpoint) == 0) {
            (void)snprintf(self->items[i].node, sizeof self->items[i].node, "%s",
                           node[0] == '\0' ? self->items[i].node : node);
            return;
        }
        if (node[0] != '\0' && i != self->at && !self->items[i].is_given &&
            strcmp(self->items[i].node, node) == 0) {
            at = i; /* it was started again elsewhere */
        }
    }
    for (size_t i = 0; at == PS_FINDER_MAX && i < self->n; i++) {
        if (!self->items[i].is_given && self->items[i].said != PS_SAID_ANSWER && i != self->at &&
            i != self->found && (self->step_ms == UINT64_MAX || i != self->next)) {
            at = i; /* the list is full, and this one has never had the registry */
        }
    }
    if (at == PS_FINDER_MAX) {
        return;
    }
    self->items[at] = (ps_address_t){.is_given = is_given};
    (void)snprintf(self->items[at].node, sizeof self->items[at].node, "%s", node);
    (void)snprintf(self->items[at].endpoint, sizeof self->items[at].endpoint, "%s", endpoint);
    self->n += at == self->n ? 1 : 0;
}

static bool read_member(const ps_doc_t *doc, ps_address_t *ret)
{
    const char *node = NULL;
    const char *endpoint = NULL;

    if (ps_doc_get_text(doc, "node", PS_NAME_MAX, &node, NULL) != PSD_OK ||
        ps_doc_get_text(doc, "endpoint", PS_ENDPOINT_MAX, &endpoint, NULL) != PSD_OK ||
        !is_learnable(endpoint) || (node[0] != '\0' && !ps_text_is_name(node))) {
        return false;
    }
    *ret = (ps_address_t){.said = PS_SAID_NOTHING};
    (void)snprintf(ret->node, sizeof ret->node, "%s", node);
    (void)snprintf(ret->endpoint, sizeof ret->endpoint, "%s", endpoint);
    return true;
}

/* Adds a member and returns its place; PS_FINDER_MAX: the list is full. */
static size_t learn_one(ps_finder_t *self, const ps_address_t *member)
{
    /* The registry has answered at an address that the user gave: that one will
     * do, and perhaps it is the only one that can be reached from here. */
    if (self->at == self->found && strcmp(self->items[self->at].node, member->node) == 0) {
        return self->at;
    }
    ps_finder_add(self, member->node, member->endpoint, false);
    for (size_t i = 0; i < self->n; i++) {
        if (strcmp(self->items[i].endpoint, member->endpoint) == 0) {
            return i;
        }
    }
    return PS_FINDER_MAX;
}

static void learn(ps_finder_t *self, const ps_doc_t *reply)
{
    ps_members_t members;

    ps_members_from_doc(&members, reply);
    for (size_t i = 0; i < members.n; i++) {
        (void)learn_one(self, &members.items[i]);
    }
}

/* ---- the choice ---- */

const char *ps_finder_endpoint(const ps_finder_t *self)
{
    return self->items[self->at].endpoint;
}

void ps_finder_asked(ps_finder_t *self, uint64_t now_ms)
{
    if (self->asked_ms == UINT64_MAX) {
        self->asked_ms = now_ms;
    }
}

void ps_finder_rest(ps_finder_t *self)
{
    self->asked_ms = UINT64_MAX;
    self->step_ms = UINT64_MAX;
}

/* The first plan counts: a node may answer several questions. */
static void plan(ps_finder_t *self, size_t next, uint32_t n_hops, uint64_t step_ms)
{
    if (self->step_ms == UINT64_MAX) {
        self->step_ms = step_ms;
        self->next = next;
        self->n_hops = n_hops;
    }
}

static void plan_next(ps_finder_t *self, uint64_t step_ms)
{
    plan(self, (self->at + 1) % self->n, 0, step_ms);
}

/* The node that answered calls itself so, in answers that name members. */
static void learn_name(ps_finder_t *self, const ps_doc_t *reply)
{
    const char *node = NULL;

    if (ps_doc_has(reply, "members") &&
        ps_doc_get_text(reply, "node", PS_NAME_MAX, &node, NULL) == PSD_OK) {
        (void)snprintf(self->items[self->at].node, sizeof self->items[self->at].node, "%s", node);
    }
}

bool ps_finder_heard(ps_finder_t *self, const ps_doc_t *reply, uint64_t now_ms)
{
    const ps_doc_t *doc = NULL;
    ps_address_t leader;
    size_t next = PS_FINDER_MAX;

    self->asked_ms = UINT64_MAX;
    learn_name(self, reply);
    if (ps_reply_status(reply, NULL) != PSD_NOT_LEADER) {
        self->found = self->at;
        for (size_t i = 0; i < self->n; i++) { /* it may be there again */
            if (self->items[i].said == PS_SAID_REFUSED) {
                self->items[i].said = PS_SAID_NOTHING;
            }
        }
        self->items[self->at].said = PS_SAID_ANSWER;
        self->step_ms = UINT64_MAX;
        begin_round(self);
        self->patience_ms = PS_FINDER_PATIENCE_FOUND_MS;
        learn(self, reply);
        return true;
    }
    if (self->found == self->at) {
        self->found = PS_FINDER_MAX;
    }
    learn(self, reply);
    if (ps_doc_get_object(reply, "leader", &doc, NULL) == PSD_OK && read_member(doc, &leader)) {
        next = learn_one(self, &leader);
    }
    self->items[self->at].said = next == PS_FINDER_MAX ? PS_SAID_NO_LEADER : PS_SAID_LEADER;
    if (next != PS_FINDER_MAX && next != self->at && self->n_hops < PS_FINDER_HOPS &&
        self->items[next].said != PS_SAID_REFUSED) {
        plan(self, next, self->n_hops + 1, now_ms);
    } else {
        plan_next(self, now_ms + self->pause_ms);
    }
    return false;
}

void ps_finder_refused(ps_finder_t *self, size_t i, const char *why, uint64_t now_ms)
{
    ps_address_t *item = &self->items[i];

    item->said = PS_SAID_REFUSED;
    (void)snprintf(item->why, sizeof item->why, "%s", why);
    if (i == self->at && self->n > 1) { /* all of a round may say no at once */
        plan_next(self, self->n_steps + 1 < self->n ? now_ms : now_ms + self->pause_ms);
    }
}

void ps_finder_broke(ps_finder_t *self, uint64_t now_ms)
{
    begin_round(self);
    self->found = PS_FINDER_MAX;
    ps_finder_refused(self, self->at, "the connection broke", now_ms);
}

/* Asks at `next`. With each round it is slower. */
static void step(ps_finder_t *self)
{
    self->at = self->next;
    self->step_ms = UINT64_MAX;
    self->asked_ms = UINT64_MAX;
    self->n_steps++;
    if (self->n_steps >= self->n) {
        self->n_steps = 0;
        self->patience_ms = self->patience_ms * 2 < self->patience_max_ms ? self->patience_ms * 2
                                                                          : self->patience_max_ms;
        self->pause_ms = self->pause_ms * 2 < PS_FINDER_PAUSE_MAX_MS ? self->pause_ms * 2
                                                                     : PS_FINDER_PAUSE_MAX_MS;
    }
}

bool ps_finder_look(ps_finder_t *self, uint64_t now_ms, bool *ret_moved)
{
    size_t before = self->at;

    if (self->asked_ms != UINT64_MAX && now_ms >= self->asked_ms + self->patience_ms) {
        if (self->items[self->at].said != PS_SAID_REFUSED) {
            self->items[self->at].said = PS_SAID_SILENT;
        }
        if (self->n > 1) { /* else there is nobody else to be asked */
            plan_next(self, now_ms);
        }
    }
    if (now_ms < self->step_ms) {
        return false;
    }
    step(self);
    *ret_moved = self->at != before;
    return true;
}

uint64_t ps_finder_due_ms(const ps_finder_t *self)
{
    uint64_t silent_ms = self->asked_ms == UINT64_MAX || self->n < 2
                             ? UINT64_MAX
                             : self->asked_ms + self->patience_ms;

    return silent_ms < self->step_ms ? silent_ms : self->step_ms;
}

bool ps_finder_is_lost(const ps_finder_t *self)
{
    return self->found != self->at || self->items[self->at].said == PS_SAID_SILENT;
}

psd_status_t ps_finder_status(const ps_finder_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        if (self->items[i].said == PS_SAID_NO_LEADER || self->items[i].said == PS_SAID_LEADER) {
            return PSD_NOT_LEADER;
        }
    }
    return PSD_CONNECT;
}

/* ---- texts ---- */

static const char *said(const ps_address_t *item)
{
    switch (item->said) {
    case PS_SAID_SILENT:
        return "is silent";
    case PS_SAID_REFUSED:
        return "cannot be reached: ";
    case PS_SAID_NO_LEADER:
        return "says there is no leader";
    case PS_SAID_LEADER:
        return "names another node";
    case PS_SAID_ANSWER:
        return "answered last";
    case PS_SAID_NOTHING:
    default:
        return "was not asked yet";
    }
}

void ps_finder_print(const ps_finder_t *self, char ret_text[PS_FINDER_TEXT])
{
    size_t size = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < self->n && size < PS_FINDER_TEXT; i++) {
        const ps_address_t *item = &self->items[i];
        bool has_name = item->node[0] != '\0';

        size += (size_t)snprintf(ret_text + size, PS_FINDER_TEXT - size, "%s%s%s%s%s %s%s",
                                 i == 0 ? "" : ", ", item->endpoint, has_name ? " (node " : "",
                                 item->node, has_name ? ")" : "", said(item),
                                 item->said == PS_SAID_REFUSED ? item->why : "");
    }
}

/* ---- members ---- */

bool ps_member_to_doc(ps_doc_t *doc, const char *node, const char *endpoint)
{
    return ps_doc_set_text(doc, "node", node) && ps_doc_set_text(doc, "endpoint", endpoint);
}

void ps_members_from_doc(ps_members_t *self, const ps_doc_t *doc)
{
    const ps_doc_t *array = NULL;

    self->n = 0;
    if (ps_doc_get_array(doc, "members", PS_FINDER_MAX, &array, NULL) != PSD_OK) {
        return;
    }
    for (size_t i = 0; i < ps_doc_count(array); i++) {
        const ps_doc_t *item = NULL;

        if (ps_doc_at_object(array, i, &item, NULL) == PSD_OK &&
            read_member(item, &self->items[self->n])) {
            self->n++;
        }
    }
}

bool ps_members_to_doc(const ps_members_t *self, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "members");
    bool done = array != NULL;

    for (size_t i = 0; done && i < self->n; i++) {
        ps_doc_t *item = ps_doc_append_object(array);

        done = item != NULL && ps_member_to_doc(item, self->items[i].node, self->items[i].endpoint);
    }
    return done;
}

bool ps_members_equal(const ps_members_t *a, const ps_members_t *b)
{
    bool equal = a->n == b->n;

    for (size_t i = 0; equal && i < a->n; i++) {
        equal = strcmp(a->items[i].node, b->items[i].node) == 0 &&
                strcmp(a->items[i].endpoint, b->items[i].endpoint) == 0;
    }
    return equal;
}
