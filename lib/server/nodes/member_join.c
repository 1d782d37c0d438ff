/* SPDX-License-Identifier: Apache-2.0 */
/* How a node joins a cluster. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/nodes/member_inner.h"
#include "wire/messages/formats.h"
#include "wire/messages/reply.h"

#define ANSWER_MS 1000  /* timeout for one node's answer … */
#define KEY_MS 4000     /* … whose key may be another one, which takes longer to tell */
#define LOOK_MS 200     /* between two looks why a link is not let in */
#define COMING_MS 30000 /* for a registry that starts at the same time */
#define TELL_MS 30000   /* from the first line about a silent registry to the next; doubles … */
#define TELL_MAX_MS 600000
#define NOTIFY_MS 5000     /* between two words to the host, … */
#define EXTEND_US 60000000 /* … each of which allows the start so much longer */
#define PATIENCE_MS 5000   /* for an earlier life of the node to be forgotten */
#define AGAIN_MS 100       /* between two tries of that */

/* A join under way. */
typedef struct joining {
    ps_member_t *member;
    const ps_socket_args_t *socket;
    ps_finder_t finder;
    uint64_t until_ms; /* UINT64_MAX: without limit */
    /* words about a registry that is silent */
    uint64_t tell_ms; /* when the next one is due; 0: none was said */
    uint64_t gap_ms;  /* to the one after that */
    uint64_t notify_ms;
} joining_t;

/* {"v":1,"id":…,"op":"node_join","versions":…,…}: in JSON, so that two builds of
 * different format can name that. NULL: no memory. */
static ps_doc_t *new_join(ps_member_t *self)
{
    ps_doc_t *doc = ps_doc_new();
    ps_doc_t *versions = NULL;

    if (doc == NULL || !ps_doc_set_u64(doc, "v", 1) ||
        !ps_doc_set_u64(doc, "id", ++self->last_id) || !ps_doc_set_text(doc, "op", "node_join")) {
        ps_doc_destroy(&doc);
        return NULL;
    }
    versions = ps_doc_add_array(doc, "versions");
    if (versions == NULL || !ps_doc_append_u64(versions, PS_NODE_FORMAT) ||
        !ps_doc_append_u64(versions, PS_NODE_FORMAT) || !ps_doc_set_text(doc, "name", self->name) ||
        !ps_doc_set_u64(doc, "incarnation", self->incarnation) ||
        !ps_doc_set_id(doc, "secret", &self->secret) ||
        (self->key != NULL && !ps_doc_set_text(doc, "key", self->key)) ||
        (self->any_name && !ps_doc_set_bool(doc, "any_name", true))) {
        ps_doc_destroy(&doc);
    }
    return doc;
}

static psd_status_t send_join(ps_member_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = new_join(self);
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (doc == NULL || !ps_doc_print(doc, &text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to join a cluster");
    }
    return ps_socket_send_text(self->link, 0, (ps_bytes_t){.data = text.data, .size = text.size},
                               err);
}

static bool shall_end(const ps_member_t *self)
{
    struct pollfd end = {.fd = self->host->end_fd, .events = POLLIN};

    return poll(&end, 1, 0) > 0;
}

/* Why the link is not let in. A node that has joined waits: what answers there may be another
 * program, until its registry is there again. */
static psd_status_t check_denial(ps_member_t *self, psd_error_t *err)
{
    ps_denial_t denial = self->rights == NULL ? PS_DENIAL_NONE : ps_socket_denial(self->link);

    return denial == PS_DENIAL_NONE
               ? PSD_OK
               : psd_error_set(err, self->has_joined ? PSD_CONNECT : PSD_DENIED, "%s",
                               ps_denial_text(denial));
}

static uint64_t wait_for_ms(const ps_member_t *self, uint64_t left_ms)
{
    return self->rights != NULL && left_ms > LOOK_MS ? LOOK_MS : left_ms;
}

/* The answer to the last question. Errors: PSD_CONNECT none by then, or psd
 * shall end; PSD_DENIED it is not let in. */
static psd_status_t wait_answer(ps_member_t *self, uint64_t deadline_ms, ps_doc_t **ret_doc,
                                psd_error_t *err)
{
    uint64_t began_ms = ps_now_ms();

    for (;;) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t now_ms = ps_now_ms();
        uint64_t conn = 0;
        bool ready = false;
        bool got = false;
        psd_status_t rc = PSD_OK;

        rc = check_denial(self, err);
        if (rc != PSD_OK) {
            return rc;
        }
        if (now_ms >= deadline_ms || shall_end(self)) {
            return psd_error_set(err, PSD_CONNECT, "no answer within %" PRIu64 " ms",
                                 now_ms - began_ms);
        }
        rc = ps_socket_wait(&self->link, 1, wait_for_ms(self, deadline_ms - now_ms), &ready, err);
        if (rc == PSD_OK) {
            rc = ps_socket_receive_text(self->link, &got, &conn, &text, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        if (got) {
            return ps_doc_parse((ps_bytes_t){.data = text.data, .size = text.size}, ret_doc, err);
        }
    }
}

static psd_status_t read_joined(const ps_doc_t *doc, ps_joined_t *joined, psd_error_t *err)
{
    const ps_doc_t *cluster = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_object(doc, "cluster", &cluster, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(cluster, "name", PS_NAME_MAX, &name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(cluster, "uuid", &joined->cluster, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "session", 0, INT64_MAX, &joined->session, err);
    }
    if (rc == PSD_OK) {
        memcpy(joined->cluster_name, name, strlen(name) + 1);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "name")) {
        rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, &name, err);
        if (rc == PSD_OK) {
            (void)snprintf(joined->node, sizeof joined->node, "%s", name);
        }
    }
    return rc;
}

/* The registry's own address, as it calls itself: clients of this node go there. */
static void take_leader(ps_member_t *self, const ps_doc_t *doc, ps_joined_t *joined)
{
    const char *node = "";

    if (ps_doc_get_text(doc, "node", PS_NAME_MAX, &node, NULL) != PSD_OK) {
        node = "";
    }
    ps_members_from_doc(&joined->members, doc);
    self->leader = (ps_address_t){.said = PS_SAID_NOTHING};
    (void)snprintf(self->leader.node, sizeof self->leader.node, "%s", node);
    (void)snprintf(self->leader.endpoint, sizeof self->leader.endpoint, "%s", self->registry);
    for (size_t i = 0; i < joined->members.n; i++) {
        if (strcmp(joined->members.items[i].node, node) == 0) {
            self->leader = joined->members.items[i];
        }
    }
}

/* One question and its answer. PSD_NOT_LEADER: the finder knows more now. */
static psd_status_t ask_join(joining_t *self, ps_joined_t *joined, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    bool may_differ = self->member->rights != NULL && !self->member->has_joined;
    uint64_t deadline_ms = ps_now_ms() + (may_differ ? KEY_MS : ANSWER_MS);
    psd_status_t rc = send_join(self->member, err);

    ps_finder_asked(&self->finder, ps_now_ms());
    if (ps_finder_due_ms(&self->finder) < UINT64_MAX) { /* there are others to ask */
        deadline_ms = ps_finder_due_ms(&self->finder);
    }
    if (rc == PSD_OK) {
        rc = wait_answer(self->member, deadline_ms, &reply, err);
    }
    if (rc == PSD_OK) {
        rc = ps_reply_status(reply, err);
    }
    if (reply != NULL) {
        (void)ps_finder_heard(&self->finder, reply, ps_now_ms());
    }
    if (rc == PSD_OK) {
        rc = read_joined(reply, joined, err);
    }
    if (rc == PSD_OK) {
        take_leader(self->member, reply, joined);
    }
    return rc;
}

/* Registries of builds before PS_NODE_FORMAT 4 do not say what to do. */
static psd_status_t refuse_join(const char *url, psd_status_t rc, psd_error_t *err)
{
    return psd_error_wrap(err, rc, "cannot join the cluster at %s%s", url,
                          rc == PSD_VERSION && strstr(psd_error_text(err), "stop all") == NULL
                              ? " (" PS_NODE_FORMAT_HINT ")"
                              : "");
}

/* A wait that ends at once when psd shall end. */
static psd_status_t wait_ms(joining_t *self, uint64_t time_ms, psd_error_t *err)
{
    bool ready = false;

    return ps_socket_wait(&self->member->link, 1, time_ms, &ready, err);
}

/* Asks the node at the finder's address. */
static psd_status_t join_one(joining_t *self, ps_joined_t *joined, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    ps_member_t *member = self->member;
    ps_socket_args_t args = *self->socket;
    psd_status_t rc = PSD_OK;

    args.is_watched = member->rights != NULL;
    ps_socket_drop(&member->link);
    (void)snprintf(member->registry, sizeof member->registry, "%s",
                   ps_finder_endpoint(&self->finder));
    rc = ps_socket_connect(member->registry, &args, &member->link, err);
    if (rc == PSD_OK) {
        ps_socket_wake_by(member->link, member->host->end_fd);
        rc = ask_join(self, joined, err);
    }
    /* After a quick restart the registry still takes the earlier life for alive. A node that
     * needs a token has had none. */
    while (rc == PSD_DENIED && (member->rights == NULL || member->has_joined) &&
           ps_now_ms() < until_ms && !shall_end(member)) {
        psd_error_clear(err);
        rc = wait_ms(self, AGAIN_MS, err);
        if (rc == PSD_OK) {
            rc = ask_join(self, joined, err);
        }
    }
    return rc == PSD_OK ? PSD_OK : refuse_join(member->registry, rc, err);
}

static bool has_asked_all(const joining_t *self)
{
    for (size_t i = 0; i < self->finder.n; i++) {
        if (self->finder.items[i].said == PS_SAID_NOTHING) {
            return false;
        }
    }
    return true;
}

/* A start that may last tells that it goes on. */
static void notify(const joining_t *self, const char *why)
{
    const ps_server_host_t *host = self->member->host;
    char text[PS_FINDER_TEXT + 100];
    size_t size = 0;

    if (host->notify == NULL) {
        return;
    }
    size = (size_t)snprintf(text, sizeof text, "STATUS=waits for the registry: %.*s",
                            PS_FINDER_TEXT, why);
    if (self->until_ms == UINT64_MAX) {
        (void)snprintf(text + size, sizeof text - size, "\nEXTEND_TIMEOUT_USEC=%d", EXTEND_US);
    }
    host->notify(text);
}

/* Tells the log and the host what the node waits for. */
static void tell_wait(joining_t *self)
{
    uint64_t now_ms = ps_now_ms();
    char why[PS_FINDER_TEXT];
    char quoted[2 * PS_FINDER_TEXT];

    ps_finder_print(&self->finder, why);
    if (now_ms >= self->notify_ms) {
        self->notify_ms = now_ms + NOTIFY_MS;
        notify(self, why);
    }
    if (now_ms < self->tell_ms || !has_asked_all(self)) {
        return;
    }
    self->gap_ms = self->tell_ms == 0               ? TELL_MS
                   : self->gap_ms * 2 < TELL_MAX_MS ? self->gap_ms * 2
                                                    : TELL_MAX_MS;
    self->tell_ms = now_ms + self->gap_ms;
    if (self->until_ms == UINT64_MAX) {
        ps_log(PS_LOG_WARN, "registry_silent",
               "reason=%s hint=\"this node serves nothing until the registry answers; then it "
               "goes on by itself\"",
               ps_log_quote(why, quoted, sizeof quoted));
    } else {
        ps_log(PS_LOG_WARN, "registry_silent", "reason=%s hint=\"retrying for %d s\"",
               ps_log_quote(why, quoted, sizeof quoted), COMING_MS / 1000);
    }
}

/* Until it is time to ask at the finder's next address. */
static psd_status_t go_on(joining_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    bool moved = false;

    while (rc == PSD_OK && !shall_end(self->member) && self->finder.step_ms < UINT64_MAX &&
           !ps_finder_look(&self->finder, ps_now_ms(), &moved)) {
        uint64_t now_ms = ps_now_ms();
        uint64_t due_ms = ps_finder_due_ms(&self->finder);

        rc = wait_ms(self, due_ms > now_ms ? due_ms - now_ms : 0, err);
    }
    return rc;
}

/* Machines that are switched on together start in any order, so there may be no
 * registry yet. */
static psd_status_t join_any(joining_t *self, ps_joined_t *joined, psd_error_t *err)
{
    for (;;) {
        char why[PS_FINDER_TEXT];
        bool moved = false;
        psd_status_t rc = join_one(self, joined, err);

        if (rc != PSD_CONNECT && rc != PSD_NOT_LEADER) {
            return rc;
        }
        psd_error_clear(err);
        if (shall_end(self->member)) {
            return psd_error_set(err, PSD_INTERRUPTED, "it was told to end");
        }
        (void)ps_finder_look(&self->finder, ps_now_ms(), &moved); /* it may have been silent */
        ps_finder_print(&self->finder, why);
        if (ps_now_ms() >= self->until_ms) {
            return psd_error_set(err, PSD_CONNECT,
                                 "cannot join the cluster: waited %d s for the registry: %s",
                                 COMING_MS / 1000, why);
        }
        if (self->finder.n_hops == 0) {
            tell_wait(self);
        }
        rc = go_on(self, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
}

/* With keys, nothing is said to what has no key, or another one. */
static bool may_ask(const joining_t *self, const char *endpoint)
{
    return self->member->rights == NULL || strncmp(endpoint, "tcp://", strlen("tcp://")) != 0 ||
           strchr(endpoint, '#') != NULL;
}

static psd_status_t refuse_nameless(const char *url, psd_error_t *err)
{
    return psd_error_set(err, PSD_CONFIG,
                         "cannot join the cluster at %s: security.level is encrypt, and this node "
                         "has no token; an admin there makes one, \"pscli node invite NAME\", and "
                         "\"psd --token-file FILE\" takes it",
                         url);
}

/* The addresses to ask: the token's alone, or those that the user gave, then those of the
 * last life. */
static psd_status_t begin(joining_t *self, const ps_config_t *config, const ps_member_self_t *who,
                          psd_error_t *err)
{
    const ps_text_list_t *urls = &config->cluster.join;
    const ps_members_t *known = who->members;
    const char *ask[2 * PS_FINDER_MAX];
    const char *node[2 * PS_FINDER_MAX];
    size_t n_given = 0;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (who->only != NULL) {
        return ps_finder_init(&self->finder, who->only, err);
    }
    for (size_t i = 0; i < urls->n_items && n < PS_FINDER_MAX; i++) {
        if (may_ask(self, urls->items[i])) {
            node[n] = "";
            ask[n++] = urls->items[i];
        }
    }
    n_given = n;
    for (size_t i = 0; i < known->n && n < 2 * PS_FINDER_MAX; i++) {
        if (may_ask(self, known->items[i].endpoint)) {
            node[n] = known->items[i].node;
            ask[n++] = known->items[i].endpoint;
        }
    }
    if (n == 0) {
        return refuse_nameless(urls->n_items > 0 ? urls->items[0] : known->items[0].endpoint, err);
    }
    rc = ps_finder_init(&self->finder, ask[0], err);
    for (size_t i = n_given == 0 ? 0 : 1; rc == PSD_OK && i < n; i++) {
        ps_finder_add(&self->finder, node[i], ask[i], i < n_given);
    }
    return rc;
}

static psd_status_t join(ps_member_t *member, const ps_config_t *config,
                         const ps_socket_args_t *socket, const ps_member_self_t *who,
                         ps_joined_t *joined, psd_error_t *err)
{
    joining_t self = {.member = member,
                      .socket = socket,
                      .until_ms = who->has_joined ? UINT64_MAX : ps_now_ms() + COMING_MS};
    psd_status_t rc = begin(&self, config, who, err);

    return rc == PSD_OK ? join_any(&self, joined, err) : rc;
}

psd_status_t ps_member_join(const ps_config_t *config, const ps_socket_args_t *socket,
                            const ps_member_self_t *who, const ps_server_host_t *host,
                            ps_member_t **ret_member, ps_joined_t *ret_joined, psd_error_t *err)
{
    PSD_AUTO(ps_member_destroy) ps_member_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->host = host;
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to join a cluster");
    }
    (void)snprintf(self->name, sizeof self->name, "%s", who->name);
    self->incarnation = who->incarnation;
    self->secret = who->secret;
    self->any_name = who->any_name;
    self->key = who->key;
    self->has_joined = who->has_joined;
    self->rights = who->rights;
    self->heartbeat_ms = config->cluster.heartbeat;
    self->weight = (uint32_t)config->node.weight;
    rc = join(self, config, socket, who, ret_joined, err);
    self->host = NULL;
    self->key = NULL;
    if (rc != PSD_OK) {
        return rc;
    }
    self->cluster = ret_joined->cluster;
    if (ret_joined->node[0] == '\0') {
        (void)snprintf(ret_joined->node, sizeof ret_joined->node, "%s", self->name);
    }
    memcpy(self->name, ret_joined->node, sizeof self->name);
    *ret_member = self;
    self = NULL;
    return PSD_OK;
}
