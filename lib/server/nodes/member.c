/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's shell: the link to the registry, the shards, the log. */
#include "server/nodes/member.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/nodes/heard_file.h"
#include "server/nodes/member_inner.h"
#include "server/nodes/tasks.h"
#include "server/quorum/replica_list.h"
#include "wire/messages/doc.h"

#define HEARD_AGAIN_MS 1000 /* between two tries to write heard.json */
#define BATCH 256
#define SEARCH_MS 100  /* of silence, before another node is asked … */
#define SEARCH_BEATS 2 /* … and in heartbeats */
#define WORD_MS 3000   /* for the registry's decision about damage */
#define LOOK_MS 50
#define OP_BYTES_MAX 64

void ps_member_destroy(ps_member_t **self_p)
{
    ps_member_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_agent_destroy(&self->agent);
    ps_socket_drop(&self->link);
    ps_member_drop_signs(self);
    ps_free(self->shards);
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

/* ---- what the agent wants ---- */

static void log_note(const ps_member_t *self, const ps_agent_note_t *note)
{
    char quoted[2 * sizeof note->text];

    (void)ps_log_quote(note->text, quoted, sizeof quoted);
    switch (note->kind) {
    case PS_AGENT_GONE:
        ps_log(PS_LOG_WARN, "registry_gone",
               "registry=%s silent_ms=%" PRIu64
               " hint=\"partitions are still served; tables and jobs cannot change\"",
               self->registry, note->silent_ms);
        break;
    case PS_AGENT_BACK:
        ps_log(PS_LOG_INFO, "registry_back", "registry=%s", self->registry);
        break;
    case PS_AGENT_REFUSED:
        ps_log(PS_LOG_ERROR, "registry_refuses",
               "what=%s id=%" PRIu64 " registry=%s status=%s reason=%s", note->what, note->serial,
               self->registry, psd_status_name(note->status), quoted);
        break;
    case PS_AGENT_PAST:
        ps_log(PS_LOG_WARN, "registry_of_the_past",
               "registry=%s hint=\"this node follows a later history of the registry, and does not "
               "listen\"",
               self->registry);
        break;
    case PS_AGENT_ASIDE:
        ps_log(PS_LOG_WARN, "table_kept_aside",
               "id=%" PRIu64 " hint=\"the registry does not know it: nobody is served, its rows "
               "stay; pscli cluster registry unknown\"",
               note->serial);
        break;
    case PS_AGENT_NOT_OBEYED:
    default:
        ps_log(PS_LOG_ERROR, "registry_not_obeyed", "op=%s status=%s reason=%s", note->what,
               psd_status_name(note->status), quoted);
        break;
    }
}

bool ps_member_take_invite(ps_member_t *self, ps_node_message_t *ret_invite)
{
    *ret_invite = self->invite;
    self->invite = (ps_node_message_t){.kind = 0};
    return ret_invite->kind != 0;
}

static void run_task(ps_member_t *self, const ps_agent_task_t *task)
{
    uint64_t local = 0;
    psd_status_t rc = PSD_OK;

    if (task->kind == PS_TASK_INVITE) {
        self->invite = *task->message; /* it owns nothing */
        ps_agent_began(self->agent, 0, PSD_OK, "");
        return;
    }
    rc = ps_task_run(self->is.shards, self->is.plugins, task, &local, self->err);
    ps_agent_began(self->agent, local, rc, psd_error_text(self->err));
    psd_error_clear(self->err);
}

/* Before the tasks that follow from it: what is kept aside stays so after a crash. A
 * file that cannot be written is tried again; the older one is the more careful. */
static void store_heard(ps_member_t *self)
{
    const ps_heard_t *heard = NULL;
    ps_heard_file_t file = {.cluster = self->cluster};
    bool is_new = ps_agent_take_heard(self->agent, &heard);
    bool was_due = false;

    if (!is_new && (!self->heard_is_due || ps_now_ms() < self->heard_again_ms)) {
        return;
    }
    file.heard = *heard; /* borrowed */
    (void)snprintf(file.name, sizeof file.name, "%s", self->is.cluster_name);
    was_due = self->heard_is_due;
    self->heard_again_ms = ps_now_ms() + HEARD_AGAIN_MS;
    self->heard_is_due = ps_heard_file_write(self->is.dir, &file, self->err) != PSD_OK;
    if (self->heard_is_due && !was_due) {
        ps_log(PS_LOG_WARN, "heard_not_stored",
               "reason=\"%s\" hint=\"retrying; after a restart this node knows an older registry\"",
               psd_error_text(self->err));
    } else if (was_due && !self->heard_is_due) {
        ps_log(PS_LOG_INFO, "heard_stored", "table=%" PRIu32, file.heard.last_table);
    }
    psd_error_clear(self->err);
}

static void run(ps_member_t *self)
{
    ps_agent_task_t task;
    ps_agent_note_t note;
    ps_bytes_t bytes;

    if (ps_agent_take_joined(self->agent)) {
        ps_shards_joined(self->is.shards);
    }
    while (ps_agent_next_note(self->agent, &note)) {
        log_note(self, &note);
    }
    store_heard(self);
    while (ps_agent_next_task(self->agent, &task)) {
        run_task(self, &task);
    }
    while (self->link != NULL && ps_agent_next_message(self->agent, &bytes)) {
        if (ps_socket_send_text(self->link, 0, bytes, NULL) != PSD_OK) {
            ps_log(PS_LOG_DEBUG, "registry_not_answered", "registry=%s", self->registry);
            ps_agent_unsent(self->agent);
        }
    }
}

/* ---- the life ---- */

psd_status_t ps_member_new(const ps_member_self_t *who, const ps_id_t *cluster,
                           const ps_config_t *config, ps_member_t **ret_member, psd_error_t *err)
{
    ps_member_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL) {
        ps_member_destroy(&self);
        return psd_error_set(err, PSD_NOMEM, "no memory for the node");
    }
    (void)snprintf(self->name, sizeof self->name, "%s", who->name);
    self->incarnation = who->incarnation;
    self->secret = who->secret;
    self->cluster = *cluster;
    self->weight = (uint32_t)config->node.weight;
    self->heartbeat_ms = config->cluster.heartbeat;
    self->rights = who->rights;
    *ret_member = self;
    return PSD_OK;
}

/* The tables that shard i read from its disk count as known to it. */
static psd_status_t know_recovered(ps_member_t *self, uint32_t i, psd_error_t *err)
{
    size_t n = 0;
    const uint32_t *tables = ps_shards_recovered(self->is.shards, i, &n);
    psd_status_t rc = PSD_OK;

    for (size_t k = 0; rc == PSD_OK && k < n; k++) {
        rc = ps_agent_know(self->agent, tables[k], err);
    }
    return rc;
}

static psd_status_t new_agent(ps_member_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_heard_file_done) ps_heard_file_t file = {.is_there = false};
    psd_status_t rc = ps_heard_file_read(self->is.dir, &file, err);
    uint32_t n = ps_shards_n(self->is.shards);
    ps_agent_args_t args = {.node = {.incarnation = self->incarnation,
                                     .secret = self->secret,
                                     .weight = self->weight,
                                     .n_shards = n,
                                     .kept = ps_shards_kept(self->is.shards)},
                            .damage = self->is.damage->text,
                            .cluster = self->cluster,
                            .looks_at_sizes = true,
                            .heard =
                                ps_id_equal(&file.cluster, &self->cluster) ? &file.heard : NULL};

    if (rc != PSD_OK) {
        return rc;
    }
    self->shards = ps_alloc(n, sizeof *self->shards);
    if (self->shards == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to announce the shards");
    }
    for (uint32_t i = 0; i < n; i++) {
        self->shards[i] = *ps_shards_route(self->is.shards, i);
    }
    args.node.shards = self->shards;
    args.heartbeat_ms = self->link == NULL ? 0 : self->heartbeat_ms;
    memcpy(args.node.name, self->name, sizeof args.node.name);
    (void)snprintf(args.node.control, sizeof args.node.control, "%s", self->is.control);
    ps_node_damage_fill(self->is.damage, &args.node);
    return ps_agent_new(&args, ps_now_ms(), &self->agent, err);
}

/* Waits for the answer to the announcement, so that a refused node never reports
 * itself ready. */
static psd_status_t await_word(ps_member_t *self, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + WORD_MS;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && !ps_member_is_announced(self) &&
           ps_agent_refusal(self->agent)[0] == '\0' && ps_now_ms() < until_ms) {
        bool ready = false;

        rc = ps_socket_wait(&self->link, 1, LOOK_MS, &ready, err);
        ps_member_receive(self);
    }
    return rc == PSD_OK ? ps_member_failure(self, err) : rc;
}

psd_status_t ps_member_start(ps_member_t *self, const ps_member_args_t *args, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->is = *args;
    rc = new_agent(self, err);
    for (uint32_t i = 0; rc == PSD_OK && i < ps_shards_n(self->is.shards); i++) {
        rc = know_recovered(self, i, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_agent_tick(self->agent, ps_now_ms());
    run(self);
    return self->is.damage->text[0] == '\0' || self->link == NULL ? PSD_OK : await_word(self, err);
}

void ps_member_search(ps_member_t *self, const ps_socket_args_t *socket)
{
    const char *endpoint = ps_agent_elsewhere(self->agent);
    psd_status_t rc = PSD_OK;

    if (endpoint == NULL && ps_agent_silent_ms(self->agent, ps_now_ms()) <
                                SEARCH_MS + SEARCH_BEATS * self->heartbeat_ms) {
        return;
    }
    if (endpoint == NULL || endpoint[0] == '\0') {
        const ps_seat_t *seat = ps_agent_next_seat(self->agent);

        if (seat == NULL) {
            return;
        }
        endpoint = seat->endpoint;
    }
    rc = ps_member_move(self, endpoint, socket, self->err);
    if (rc != PSD_OK) {
        ps_log(PS_LOG_WARN, "registry_not_reached", "endpoint=%s reason=\"%s\"", endpoint,
               psd_error_text(self->err));
        psd_error_clear(self->err);
    }
}

psd_status_t ps_member_move(ps_member_t *self, const char *registry, const ps_socket_args_t *socket,
                            psd_error_t *err)
{
    ps_socket_t *link = NULL;
    psd_status_t rc = PSD_OK;

    if (registry != NULL) {
        rc = ps_socket_connect(registry, socket, &link, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_socket_drop(&self->link);
    self->link = link;
    if (registry != self->registry) {
        (void)snprintf(self->registry, sizeof self->registry, "%s",
                       registry == NULL ? "" : registry);
    }
    self->leader = (ps_address_t){.said = PS_SAID_NOTHING};
    memcpy(self->leader.endpoint, self->registry, sizeof self->leader.endpoint);
    self->rights_ms = 0;
    self->rights_heard = false;
    ps_agent_move(self->agent, registry == NULL ? 0 : self->heartbeat_ms, ps_now_ms());
    ps_agent_tick(self->agent, ps_now_ms());
    run(self);
    return PSD_OK;
}

bool ps_member_next_message(ps_member_t *self, ps_bytes_t *ret_bytes)
{
    return ps_agent_next_message(self->agent, ret_bytes);
}

void ps_member_take(ps_member_t *self, ps_bytes_t bytes)
{
    ps_agent_take(self->agent, bytes, ps_now_ms());
    run(self);
}

void *ps_member_handle(ps_member_t *self)
{
    return self->link == NULL ? NULL : ps_socket_handle(self->link);
}

ps_socket_t *ps_member_link(const ps_member_t *self)
{
    return self->link;
}

const ps_id_t *ps_member_secret(const ps_member_t *self)
{
    return &self->secret;
}

const char *ps_member_registry(const ps_member_t *self)
{
    return self->registry;
}

size_t ps_member_seats(const ps_member_t *self, const ps_seat_t **ret_seats)
{
    return ps_agent_seats(self->agent, ret_seats);
}

const ps_id_t *ps_member_lineage(const ps_member_t *self)
{
    return ps_agent_lineage(self->agent);
}

bool ps_member_is_heard(const ps_member_t *self)
{
    return ps_agent_is_heard(self->agent);
}

bool ps_member_is_announced(const ps_member_t *self)
{
    return ps_agent_is_announced(self->agent);
}

psd_status_t ps_member_failure(const ps_member_t *self, psd_error_t *err)
{
    const char *refusal = ps_agent_refusal(self->agent);

    return refusal[0] == '\0'
               ? PSD_OK
               : ps_node_damage_wrap(self->is.damage,
                                     psd_error_set(err, PSD_DAMAGED, "%s", refusal), err);
}

void ps_member_receive(ps_member_t *self)
{
    for (int i = 0; self->link != NULL && i < BATCH; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = ps_socket_receive_text(self->link, &got, &conn, &text, NULL);

        if (rc == PSD_OK && !got) {
            break;
        }
        if (rc == PSD_OK && self->rights != NULL && text.size > 0 && text.data[0] == '{') {
            ps_member_take_rights(self, (ps_bytes_t){.data = text.data, .size = text.size});
        } else if (rc == PSD_OK) {
            ps_agent_take(self->agent, (ps_bytes_t){.data = text.data, .size = text.size},
                          ps_now_ms());
        }
    }
    run(self);
}

void ps_member_receive_shards(ps_member_t *self)
{
    ps_shards_done_t done;
    ps_report_t report;

    ps_shards_take(self->is.shards, ps_now_ms());
    while (ps_shards_next_done(self->is.shards, &done)) {
        ps_agent_finished(self->agent, done.serial, done.status, done.text, &done.answers,
                          ps_now_ms());
        ps_shards_done_done(&done);
    }
    while (ps_shards_next_report(self->is.shards, &report)) {
        ps_agent_report(self->agent, &report);
    }
    run(self);
}

void ps_member_set_files_out(ps_member_t *self, bool is_out)
{
    ps_agent_set_files_out(self->agent, is_out);
}

void ps_member_end(ps_member_t *self)
{
    if (self->agent != NULL) {
        ps_agent_end(self->agent);
        run(self);
    }
}

void ps_member_tick(ps_member_t *self)
{
    ps_member_receive(self);
    ps_member_receive_shards(self);
    ps_member_ask_rights(self);
    ps_agent_tick(self->agent, ps_now_ms());
    ps_shards_set_told(self->is.shards, ps_agent_told_job(self->agent),
                       ps_agent_told_table(self->agent));
    run(self);
}

uint64_t ps_member_deadline(const ps_member_t *self)
{
    uint64_t due_ms = ps_agent_deadline(self->agent);

    if (self->rights != NULL && self->link != NULL && self->rights_ms < due_ms) {
        due_ms = self->rights_ms;
    }
    return self->heard_is_due && self->heard_again_ms < due_ms ? self->heard_again_ms : due_ms;
}

/* ---- the node's own control port ---- */

size_t ps_member_known_seats(const ps_member_t *self, const ps_replica_t *replica,
                             ps_seat_t own[PS_SEATS_MAX], const ps_seat_t **ret_seats)
{
    char leader[PS_NAME_MAX + 1];

    *ret_seats = own;
    return replica == NULL ? ps_agent_seats(self->agent, ret_seats)
                           : ps_replica_seats(replica, own, leader);
}

void ps_member_fill_members(const ps_member_t *self, const ps_replica_t *replica,
                            ps_members_t *members)
{
    ps_seat_t own[PS_SEATS_MAX];
    const ps_seat_t *seats = NULL;
    size_t n = ps_member_known_seats(self, replica, own, &seats);

    members->n = n == 0 ? 1 : n;
    members->items[0] = self->leader;
    for (size_t i = 0; i < n; i++) {
        members->items[i] = (ps_address_t){.said = PS_SAID_NOTHING};
        memcpy(members->items[i].node, seats[i].node, sizeof members->items[i].node);
        memcpy(members->items[i].endpoint, seats[i].endpoint, sizeof members->items[i].endpoint);
    }
}

/* Who has the registry, as far as this node knows. A member knows it from the
 * others; *leader stays when it knows none. false: it answers nobody. */
static bool find_leader(const ps_member_t *self, const ps_replica_t *replica, ps_address_t *leader)
{
    ps_seat_t seats[PS_SEATS_MAX];
    char name[PS_NAME_MAX + 1] = "";
    size_t n = replica == NULL ? 0 : ps_replica_seats(replica, seats, name);

    for (size_t i = 0; i < n; i++) {
        if (strcmp(seats[i].node, name) == 0) {
            memcpy(leader->node, seats[i].node, sizeof leader->node);
            memcpy(leader->endpoint, seats[i].endpoint, sizeof leader->endpoint);
        }
    }
    return n == 0 ? ps_member_is_heard(self) : name[0] != '\0' && strcmp(name, self->name) != 0;
}

static bool fill_refusal(const ps_member_t *self, const ps_replica_t *replica, ps_doc_t *doc,
                         uint64_t id)
{
    const psd_status_t rc = PSD_NOT_LEADER;
    ps_address_t leader = self->leader;
    bool is_heard = find_leader(self, replica, &leader);
    ps_doc_t *error = NULL;
    ps_doc_t *named = NULL;
    ps_members_t members = {.n = 1, .items = {leader}};
    char line[600];

    (void)snprintf(line, sizeof line, "node \"%s\" is not the registry; ask %s, which %s",
                   self->name, leader.endpoint, is_heard ? "answers" : "is silent");
    if (!ps_doc_set_u64(doc, "v", 1) || !ps_doc_set_u64(doc, "id", id) ||
        !ps_doc_set_text(doc, "status", psd_status_name(rc)) ||
        !ps_doc_set_text(doc, "node", self->name)) {
        return false;
    }
    error = ps_doc_add_object(doc, "error");
    if (error == NULL || !ps_doc_set_text(error, "code", psd_status_code(rc)) ||
        !ps_doc_set_i64(error, "exit", psd_status_exit(rc)) ||
        !ps_doc_set_text(error, "message", line) ||
        !ps_doc_set_text(error, "hint", psd_status_hint(rc))) {
        return false;
    }
    if (is_heard) {
        named = ps_doc_add_object(doc, "leader");
        if (named == NULL || !ps_member_to_doc(named, leader.node, leader.endpoint)) {
            return false;
        }
    } else if (!ps_doc_set_null(doc, "leader")) {
        return false;
    }
    ps_member_fill_members(self, replica, &members);
    return ps_members_to_doc(&members, doc);
}

/* Every request: it names the registry, which answers it. */
static void refuse(ps_member_t *self, const ps_replica_t *replica, uint64_t conn, uint64_t id)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t out = {0};

    if (doc == NULL || !fill_refusal(self, replica, doc, id) || !ps_doc_print(doc, &out)) {
        return;
    }
    if (ps_socket_send_text(self->is.port, conn, (ps_bytes_t){.data = out.data, .size = out.size},
                            NULL) != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "answer_dropped", "conn=%" PRIu64, conn);
    }
}

static bool is_list(const ps_doc_t *request, const ps_replica_t *replica)
{
    const char *op = NULL;

    return replica != NULL && ps_replica_has_members(replica) &&
           ps_doc_get_text(request, "op", OP_BYTES_MAX, &op, NULL) == PSD_OK &&
           strcmp(op, "registry_list") == 0;
}

/* Answers a question that every member may answer, or every node that has the map. false:
 * it is another one, or this node cannot. */
static bool answer(ps_member_t *self, const ps_replica_t *replica, uint64_t conn, uint64_t id,
                   const ps_doc_t *request)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t out = {0};

    if (request == NULL) {
        return false;
    }
    doc = ps_doc_new();
    if (doc == NULL || !ps_doc_set_u64(doc, "v", 1) || !ps_doc_set_u64(doc, "id", id) ||
        !ps_doc_set_text(doc, "status", psd_status_name(PSD_OK)) ||
        !(is_list(request, replica) ? ps_replica_list(replica, self->name, self->is.control, doc)
                                    : ps_member_answer_map(self, replica, request, doc))) {
        return false;
    }
    if (ps_doc_print(doc, &out) &&
        ps_socket_send_text(self->is.port, conn, (ps_bytes_t){.data = out.data, .size = out.size},
                            NULL) != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "answer_dropped", "conn=%" PRIu64, conn);
    }
    return true;
}

/* Of another node: it takes this one for the registry, or both have a part of
 * it. */
static void take_node(ps_member_t *self, ps_replica_t *replica, uint64_t conn, ps_bytes_t bytes)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t out = {0};
    ps_seat_t seats[PS_SEATS_MAX];
    ps_node_message_t head = {.kind = 0};
    ps_node_message_t heard = {.kind = PS_NODE_HEARD, .status = PSD_NOT_LEADER, .seats = seats};

    if (replica == NULL || ps_node_message_head(bytes, &head, NULL) != PSD_OK) {
        return;
    }
    if (head.kind == PS_NODE_MEMBER) {
        ps_replica_hear(replica, bytes);
        return;
    }
    if (head.kind == PS_NODE_BEAT) {
        ps_replica_hear_node(replica, bytes);
        if (head.serial == 0) {
            return; /* it wants no answer */
        }
    }
    heard.serial = head.serial;
    heard.cluster = head.cluster;
    heard.incarnation = head.incarnation;
    heard.at = head.at;
    heard.n_seats = ps_replica_seats(replica, seats, heard.node.name);
    if (ps_node_message_encode(&heard, &out)) {
        /* When it does not arrive, the node asks again. */
        (void)!ps_socket_send_text(self->is.port, conn,
                                   (ps_bytes_t){.data = out.data, .size = out.size}, NULL);
    }
}

/* Where keys count, nodes are heard by their keys, and clients that are principals: others learn
 * nothing here, not even where the registry is. */
static bool is_heard_out(const ps_member_t *self, const ps_asker_t *asker, ps_bytes_t text)
{
    ps_principal_t who;

    return self->rights == NULL ||
           (ps_rights_find(self->rights, asker, &who) && !who.denied &&
            (!ps_node_message_is(text) || ps_trust_may(&who, PS_VERB_PEER, PS_OBJECT_NODE, NULL)));
}

/* The table that is asked for by number or name; and the members. */
static bool may_answer(const ps_member_t *self, const ps_asker_t *asker, const ps_doc_t *request)
{
    const char *op = "";
    const ps_need_t *need = NULL;

    if (self->rights == NULL) {
        return true;
    }
    need = ps_doc_get_text(request, "op", OP_BYTES_MAX, &op, NULL) == PSD_OK
               ? ps_need_of_request(op)
               : NULL;
    return need != NULL && (need->object != PS_OBJECT_TABLE
                                ? ps_rights_may(self->rights, asker, need->verb, need->object, NULL)
                                : ps_member_may_look(self, asker, request));
}

void ps_member_receive_port(ps_member_t *self, ps_replica_t *replica)
{
    for (int i = 0; i < BATCH; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
        ps_asker_t asker;
        uint64_t conn = 0;
        uint64_t id = 0;
        bool got = false;
        psd_status_t rc =
            self->rights == NULL
                ? ps_socket_receive_text(self->is.port, &got, &conn, &text, NULL)
                : ps_socket_receive_from(self->is.port, &got, &conn, &asker, &text, NULL);

        if (rc == PSD_OK && !got) {
            return;
        }
        if (rc == PSD_OK && !is_heard_out(self, &asker, (ps_bytes_t){text.data, text.size})) {
            continue; /* it asks again, or another node */
        }
        if (rc == PSD_OK &&
            ps_node_message_is((ps_bytes_t){.data = text.data, .size = text.size})) {
            take_node(self, replica, conn, (ps_bytes_t){.data = text.data, .size = text.size});
            continue;
        }
        if (rc == PSD_OK &&
            ps_doc_parse((ps_bytes_t){.data = text.data, .size = text.size}, &doc, NULL) ==
                PSD_OK &&
            ps_doc_get_u64(doc, "id", 0, UINT64_MAX, &id, NULL) != PSD_OK) {
            id = 0;
        }
        if (self->rights != NULL && doc == NULL) {
            continue; /* not even that it is no message */
        }
        if (!may_answer(self, &asker, doc) || !answer(self, replica, conn, id, doc)) {
            refuse(self, replica, conn, id);
        }
    }
}
