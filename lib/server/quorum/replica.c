/* SPDX-License-Identifier: Apache-2.0 */
/* A command's way: alone, tried and stored; as a member, proposed and applied. */
#include "server/quorum/replica.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "server/quorum/quorum_steps.h"
#include "server/quorum/replica_log.h"
#include "protocol/placement/registry_decide.h"
#include "protocol/registry/command_code.h"
#include "storage/registry/registry_backup.h"
#include "transport/threads/clock.h"

#define COMMAND_BYTES_MAX (8 << 20) /* fits a message between members */
#define COMMIT_MS 1000              /* for a majority to agree */
#define FLUSH_EVERY 512             /* entries between two flushes of the database */

struct ps_replica {
    char *dir; /* owned */
    ps_registry_args_t args;
    ps_registry_t *registry; /* owned, and all below */
    ps_registry_db_t *db;
    ps_quorum_thread_t *thread;
    ps_quorum_view_t view; /* the last one */
    uint64_t flushed;      /* entries of the log up to that one */
    uint64_t led_term;     /* in which this node leads; 0: it does not */
    bool is_begun;         /* it is a member from here on, with a thread or none yet */
    bool is_late;          /* what is committed could not be stored */
};

uint64_t ps_unix_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

psd_status_t ps_replica_open(const char *dir, const ps_registry_args_t *args,
                             ps_replica_t **ret_replica, psd_error_t *err)
{
    PSD_AUTO(ps_replica_close) ps_replica_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->args = *args;
        self->dir = ps_strdup(dir);
    }
    if (self == NULL || self->dir == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry");
    }
    rc = ps_registry_db_open(dir, &self->db, err);
    if (rc == PSD_OK) {
        rc = ps_registry_new(args, &self->registry, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_load(self->db, self->registry, ps_now_ms(), err);
    }
    if (rc == PSD_OK) {
        *ret_replica = self;
        self = NULL;
    }
    return rc;
}

void ps_replica_close(ps_replica_t **self_p)
{
    ps_replica_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_quorum_thread_stop(&self->thread);
    ps_registry_destroy(&self->registry);
    ps_registry_db_close(&self->db);
    ps_free(self->dir);
    ps_free(self);
    *self_p = NULL;
}

ps_registry_t *ps_replica_registry(const ps_replica_t *self)
{
    return self->registry;
}

ps_registry_db_t *ps_replica_db(const ps_replica_t *self)
{
    return self->db;
}

ps_quorum_thread_t *ps_replica_thread(const ps_replica_t *self)
{
    return self->thread;
}

/* ---- members ---- */

/* What the database holds. false: nothing that was replicated. */
static psd_status_t snapshot_of(ps_registry_db_t *db, ps_quorum_snapshot_t *ret, psd_error_t *err)
{
    ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX];
    const ps_applied_t applied = ps_registry_db_applied(db);
    size_t n = 0;
    psd_status_t rc = ps_registry_db_members(db, members, &n, err);

    *ret = (ps_quorum_snapshot_t){.index = applied.index, .term = applied.term};
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        ps_quorum_member_t *member = &ret->members.at[ret->members.n++];

        member->id = members[i].id;
        member->role = members[i].role == PS_ROLE_VOTER ? PS_QUORUM_VOTER : PS_QUORUM_STANDBY;
        memcpy(member->node, members[i].node, sizeof member->node);
        ret->members_index = members[i].index;
    }
    return rc;
}

/* Only nodes of the registry speak for members; those of an old psd have no
 * secret to prove it with. */
static void trust_all(ps_replica_t *self, const ps_id_t *cluster)
{
    size_t n = ps_registry_n_nodes(self->registry);
    ps_trust_t *nodes = n == 0 ? NULL : ps_alloc(n, sizeof *nodes);
    size_t n_trusted = 0;

    for (size_t i = 0; nodes != NULL && i < n; i++) {
        const ps_node_t *node = ps_registry_node_at(self->registry, i);

        if (!ps_id_is_zero(&node->secret)) {
            memcpy(nodes[n_trusted].node, node->name, sizeof node->name);
            ps_proof_key(&node->secret, cluster, node->name, &nodes[n_trusted++].key);
        }
    }
    if (n == 0 || nodes != NULL) {
        ps_quorum_thread_trust(self->thread, nodes, n_trusted);
    }
    ps_free(nodes);
}

/* Members are on nodes whose control ports and secrets the registry knows. */
static void meet_all(ps_replica_t *self, const ps_quorum_members_t *members)
{
    ps_id_t cluster = {{0}};

    if (ps_registry_cluster(self->registry, &cluster) == NULL) {
        return; /* it has no state yet */
    }
    trust_all(self, &cluster);
    for (uint32_t i = 0; i < members->n; i++) {
        const ps_node_t *node = ps_registry_node(self->registry, members->at[i].node);

        if (node != NULL) {
            ps_quorum_thread_meet(self->thread, members->at[i].id, node->name, node->control, "");
        }
    }
}

static psd_status_t start_thread(ps_replica_t *self, const ps_replica_net_t *net,
                                 const ps_quorum_snapshot_t *snapshot, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_quorum_thread_args_t args = {.node = net->node,
                                    .host = net->host,
                                    .advertise = net->advertise,
                                    .cluster = net->cluster,
                                    .incarnation = net->incarnation,
                                    .secret = net->secret,
                                    .snapshot = snapshot,
                                    .socket = net->socket,
                                    .turns = net->turns};
    psd_status_t rc = ps_replica_log_dir(self->dir, &dir, err);

    if (rc == PSD_OK && !ps_buffer_print(&path, "%s/registry.ipc", net->run_dir)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    args.dir = (const char *)dir.data;
    args.path = (const char *)path.data;
    rc = ps_quorum_thread_start(&args, &self->thread, err);
    if (rc == PSD_OK) {
        ps_log(PS_LOG_INFO, "registry_member", "node=%s endpoint=%s", net->node,
               ps_quorum_thread_endpoint(self->thread));
    }
    if (rc == PSD_OK && snapshot != NULL) {
        meet_all(self, &snapshot->members);
    }
    return rc;
}

/* The database is of one that has just become the first member, and whose log
 * was not made before psd ended. */
static bool lacks_log(const ps_replica_t *self, const ps_quorum_snapshot_t *snapshot)
{
    return snapshot->members.n == 1 && !ps_replica_has_log(self->dir);
}

psd_status_t ps_replica_start(ps_replica_t *self, const ps_replica_net_t *net, psd_error_t *err)
{
    ps_quorum_snapshot_t snapshot = {0};
    psd_status_t rc = snapshot_of(self->db, &snapshot, err);

    if (rc == PSD_OK && lacks_log(self, &snapshot)) {
        rc = ps_replica_make_log(self->dir, &net->cluster, ps_registry_lineage(self->registry),
                                 snapshot.members.at[0].id, snapshot.index + 1, snapshot.term, err);
    }
    return rc == PSD_OK ? start_thread(self, net, snapshot.members.n == 0 ? NULL : &snapshot, err)
                        : rc;
}

bool ps_replica_has_begun(const ps_replica_t *self)
{
    return self->is_begun;
}

bool ps_replica_is_member(const ps_replica_t *self)
{
    ps_quorum_snapshot_t snapshot = {0};

    return snapshot_of(self->db, &snapshot, NULL) == PSD_OK && snapshot.members.n > 0;
}

/* Its state so far is of a term before all others. */
psd_status_t ps_replica_begin(ps_replica_t *self, const ps_replica_net_t *net, psd_error_t *err)
{
    const ps_applied_t before = ps_registry_db_applied(self->db);
    const ps_applied_t applied = {.index = before.index + 1, .term = before.term + 1};
    ps_quorum_members_t members = {.n = 1};
    psd_status_t rc = ps_replica_new_member(&members.at[0].id, err);

    members.at[0].role = PS_QUORUM_VOTER;
    (void)snprintf(members.at[0].node, sizeof members.at[0].node, "%s", net->node);
    if (rc == PSD_OK && !ps_replica_is_member(self)) {
        rc = ps_shelf_put_members(self->db, &members, applied.index, applied, err);
        self->is_begun = rc == PSD_OK;
    }
    if (rc == PSD_OK) { /* its log begins after that */
        rc = ps_registry_db_flush(self->db, err);
    }
    if (rc == PSD_OK) {
        rc = ps_replica_start(self, net, err);
    }
    if (rc == PSD_OK) { /* it alone votes, and leads at once */
        ps_quorum_thread_look(self->thread, &self->view);
        self->led_term = self->view.term;
    }
    return rc;
}

void ps_replica_accept(ps_replica_t *self, const ps_node_message_t *invite)
{
    ps_trust_t inviting = {.key = invite->proof};

    if (self->thread != NULL && !ps_replica_has_members(self)) {
        memcpy(inviting.node, invite->node.name, sizeof inviting.node);
        ps_quorum_thread_trust(self->thread, &inviting, 1);
        ps_quorum_thread_repeat(self->thread, &invite->token);
        ps_quorum_thread_meet(self->thread, invite->member, invite->node.name, "",
                              invite->node.control);
    }
}

void ps_replica_hear(ps_replica_t *self, ps_bytes_t bytes)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

    if (self->thread != NULL && ps_node_message_decode(bytes, &message, NULL) == PSD_OK &&
        message.kind == PS_NODE_MEMBER) {
        ps_quorum_thread_hear(self->thread, &message);
    }
}

size_t ps_replica_seats(const ps_replica_t *self, ps_seat_t ret_seats[PS_SEATS_MAX],
                        char ret_leader[PS_NAME_MAX + 1])
{
    const ps_quorum_members_t *members = &self->view.members;
    const ps_quorum_member_t *leader = ps_quorum_members_find(members, self->view.leader);
    size_t n = 0;

    (void)snprintf(ret_leader, PS_NAME_MAX + 1, "%s", leader == NULL ? "" : leader->node);
    for (uint32_t i = 0; i < members->n; i++) {
        const ps_node_t *node = ps_registry_node(self->registry, members->at[i].node);

        if (node != NULL) {
            memcpy(ret_seats[n].node, node->name, sizeof ret_seats[n].node);
            memcpy(ret_seats[n++].endpoint, node->control, sizeof ret_seats[0].endpoint);
        }
    }
    return n;
}

const char *ps_replica_role(const ps_replica_t *self, const char *node)
{
    const ps_quorum_members_t *members = &self->view.members;

    for (uint32_t i = 0; i < members->n; i++) {
        if (strcmp(members->at[i].node, node) == 0) {
            return members->at[i].id == self->view.leader   ? "leader"
                   : members->at[i].role == PS_QUORUM_VOTER ? "voter"
                                                            : "stand-by";
        }
    }
    return "";
}

bool ps_replica_has_members(const ps_replica_t *self)
{
    return self->view.members.n > 0;
}

void ps_replica_lead(ps_replica_t *self, uint64_t term)
{
    self->led_term = term;
}

uint64_t ps_replica_led_term(const ps_replica_t *self)
{
    return self->led_term;
}

void ps_replica_hear_node(ps_replica_t *self, ps_bytes_t bytes)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t beat = {0};
    const ps_node_t *node = NULL;
    ps_id_t cluster = {{0}};

    if (ps_node_message_decode(bytes, &beat, NULL) == PSD_OK &&
        ps_registry_cluster(self->registry, &cluster) != NULL &&
        ps_id_equal(&cluster, &beat.cluster)) {
        node = ps_registry_node_by_incarnation(self->registry, beat.incarnation);
    }
    if (node != NULL) { /* else this member does not know it yet */
        (void)!ps_registry_node_beat(self->registry, node->name, beat.incarnation, 0, ps_now_ms(),
                                     NULL);
    }
}

void ps_replica_listen(ps_replica_t *self)
{
    ps_registry_listen(self->registry, ps_now_ms());
}

uint64_t ps_replica_n_refused(const ps_replica_t *self)
{
    return self->view.n_refused;
}

bool ps_replica_may_answer(const ps_replica_t *self)
{
    return self->thread == NULL ||
           (!self->is_late &&
            ps_quorum_thread_majority_ms(self->thread) + PS_QUORUM_FRESH_MS >= ps_now_ms());
}

/* ---- commands ---- */

static psd_status_t put_command(void *context, const ps_registry_t *registry,
                                const ps_command_t *command, ps_applied_t at, psd_error_t *err)
{
    ps_replica_t *self = context;
    psd_status_t rc = ps_registry_db_store(self->db, registry, command, at, err);

    if (rc == PSD_OK && self->thread != NULL &&
        (command->kind == PS_COMMAND_NODE || command->kind == PS_COMMAND_NODE_STATE)) {
        meet_all(self, &self->view.members); /* their ports and secrets */
    }
    return rc;
}

static psd_status_t put_members(void *context, const ps_quorum_members_t *members, ps_applied_t at,
                                psd_error_t *err)
{
    ps_replica_t *self = context;
    psd_status_t rc = PSD_OK;

    if (members == NULL) {
        return ps_registry_db_store_members(self->db, NULL, 0, at, err);
    }
    rc = ps_shelf_put_members(self->db, members, at.index, at, err);
    if (rc == PSD_OK) {
        meet_all(self, members);
        ps_log(PS_LOG_INFO, "registry_members", "voters=%" PRIu32 " standbys=%" PRIu32,
               ps_quorum_members_voters(members), members->n - ps_quorum_members_voters(members));
    }
    return rc;
}

static ps_shelf_t shelf_of(ps_replica_t *self)
{
    return (ps_shelf_t){.context = self, .put = put_command, .put_members = put_members};
}

static void log_command(const ps_command_t *command, ps_log_level_t level)
{
    char quoted[2 * sizeof command->text];

    ps_log(level, ps_command_event(command->kind), "epoch=%" PRIu64 " text=%s", command->epoch,
           ps_log_quote(command->text, quoted, sizeof quoted));
}

static void entry_done(ps_quorum_entry_t *entry)
{
    ps_buffer_done(&entry->bytes);
}

/* The log keeps what is not flushed here yet: a flush now and then is enough. */
static psd_status_t note_applied(ps_replica_t *self, uint64_t index, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (index >= self->flushed + FLUSH_EVERY) {
        rc = ps_registry_db_flush(self->db, err);
        self->flushed = rc == PSD_OK ? index : self->flushed;
    }
    ps_quorum_thread_applied(self->thread, index, self->flushed);
    return rc;
}

static psd_status_t apply_one(ps_replica_t *self, uint64_t index, const ps_quorum_entry_t *entry,
                              psd_error_t *err)
{
    const ps_shelf_t shelf = shelf_of(self);
    const ps_registry_entry_t row = {
        .index = index,
        .term = entry->term,
        .kind = (ps_registry_entry_kind_t)entry->kind,
        .bytes = {.data = entry->bytes.data, .size = entry->bytes.size}};

    return ps_shelf_apply(self->registry, &shelf, &row, ps_now_ms(), err);
}

/* All that is committed. */
static psd_status_t apply_all(ps_replica_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    uint64_t index = 0;

    while (rc == PSD_OK) {
        PSD_AUTO(entry_done) ps_quorum_entry_t entry = {0};

        if (!ps_quorum_thread_next(self->thread, &index, &entry)) {
            break;
        }
        rc = apply_one(self, index, &entry, err);
        if (rc == PSD_OK) {
            rc = note_applied(self, index, err);
        } else if (rc == PSD_VERSION) { /* nothing of it is applied */
            rc = psd_error_wrap(err, PSD_FOREIGN,
                                "entry %" PRIu64 " of the registry's log is of another build than "
                                "psd " PSD_RELEASE "; run one build on all nodes that have the "
                                "registry",
                                index);
        } else {
            rc = psd_error_wrap(err, rc, "entry %" PRIu64 " of the registry's log", index);
        }
    }
    return rc;
}

/* The database cannot take what is committed, for now: another member is to lead,
 * and it is tried again. */
static void be_late(ps_replica_t *self, psd_status_t rc, psd_error_t *err)
{
    char quoted[512];

    if (!self->is_late) {
        ps_log(PS_LOG_ERROR, "registry_not_stored", "status=%s reason=%s hint=\"retrying\"",
               psd_status_name(rc), ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    }
    self->is_late = true;
    self->led_term = 0; /* nothing is planned on a state that lacks what is committed */
    psd_error_clear(err);
    /* Where there is no other, it leads on, and answers nobody. */
    (void)!ps_quorum_thread_transfer(self->thread, 0, NULL);
}

static bool passes(psd_status_t rc)
{
    return rc == PSD_IO || rc == PSD_LIMIT || rc == PSD_NOMEM;
}

static psd_status_t catch_up(ps_replica_t *self, psd_error_t *err)
{
    psd_status_t rc = apply_all(self, err);

    if (passes(rc) && !ps_registry_db_is_broken(self->db)) {
        be_late(self, rc, err);
        return PSD_OK;
    }
    if (rc == PSD_OK && self->is_late) {
        self->is_late = false;
        ps_log(PS_LOG_INFO, "registry_stored", "index=%" PRIu64,
               ps_registry_db_applied(self->db).index);
    }
    return rc;
}

static psd_status_t propose(ps_replica_t *self, const ps_command_t *command, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    uint64_t index = 0;
    psd_status_t rc = PSD_OK;

    if (self->is_late) {
        return psd_error_set(err, PSD_NOT_LEADER, "this node's part of the registry has no room");
    }
    rc = ps_registry_try(self->registry, command, ps_now_ms(), err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_registry_undo(self->registry); /* it fits */
    if (!ps_command_encode(command, &bytes)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a command");
    }
    if (bytes.size > COMMAND_BYTES_MAX) {
        return psd_error_set(err, PSD_LIMIT, "a change of %zu bytes; allowed: %d", bytes.size,
                             COMMAND_BYTES_MAX);
    }
    rc = ps_quorum_thread_propose(self->thread, self->led_term,
                                  (ps_bytes_t){.data = bytes.data, .size = bytes.size}, COMMIT_MS,
                                  &index, err);
    if (rc == PSD_DEADLINE) {
        self->led_term = 0;
        rc = psd_error_wrap(err, PSD_NOT_LEADER, "%s", "ask again");
    }
    if (rc == PSD_OK) {
        rc = catch_up(self, err);
    }
    return rc == PSD_OK && self->is_late
               ? psd_error_set(err, PSD_NOT_LEADER, "this node's part of the registry has no room")
               : rc;
}

psd_status_t ps_replica_commit(ps_replica_t *self, const ps_command_t *command,
                               ps_log_level_t level, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (command->kind == 0) {
        return PSD_OK;
    }
    if (self->thread != NULL) {
        rc = propose(self, command, err);
    } else if (self->is_begun) {
        rc = psd_error_set(err, PSD_IO, "the registry's log is not made yet");
    } else {
        const ps_shelf_t shelf = shelf_of(self);

        rc = ps_shelf_store(self->registry, &shelf, command, ps_registry_db_next(self->db),
                            ps_now_ms(), err);
    }
    if (rc == PSD_OK) {
        log_command(command, level);
    }
    return rc;
}

bool ps_replica_is_flushed(const ps_replica_t *self)
{
    return self->thread != NULL || !ps_registry_db_is_unflushed(self->db);
}

psd_status_t ps_replica_flush(ps_replica_t *self, psd_error_t *err)
{
    return ps_registry_db_flush(self->db, err);
}

/* ---- news of the thread ---- */

static psd_status_t send_database(ps_replica_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_quorum_snapshot_t snapshot = {0};
    psd_status_t rc = snapshot_of(self->db, &snapshot, err);

    if (rc == PSD_OK) {
        rc = ps_registry_backup(self->db, &bytes, err);
    }
    if (rc == PSD_OK) {
        ps_quorum_thread_send_database(self->thread, &bytes, &snapshot);
    }
    return rc;
}

static psd_status_t install(ps_replica_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    const ps_quorum_snapshot_t *snapshot = NULL;
    ps_bytes_t bytes = ps_quorum_thread_installing(self->thread, &snapshot);
    psd_status_t rc = ps_registry_db_replace(self->db, bytes, err);

    if (rc == PSD_OK) {
        rc = ps_registry_new(&self->args, &registry, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_load(self->db, registry, ps_now_ms(), err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "the registry's database as of entry %" PRIu64,
                              snapshot->index);
    }
    ps_registry_destroy(&self->registry);
    self->registry = registry; /* ownership moves */
    registry = NULL;
    meet_all(self, &snapshot->members);
    self->flushed = snapshot->index;
    ps_quorum_thread_applied(self->thread, snapshot->index, snapshot->index);
    ps_quorum_thread_installed(self->thread);
    return PSD_OK;
}

psd_status_t ps_replica_take(ps_replica_t *self, ps_quorum_view_t *ret_view, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_quorum_thread_hush(self->thread);
    ps_quorum_thread_look(self->thread, ret_view);
    self->view = *ret_view;
    if (ret_view->status != PSD_OK && ret_view->status != PSD_LIMIT) {
        return psd_error_set(err, ret_view->status, "%s", ret_view->text);
    }
    if (ret_view->installs) {
        rc = install(self, err);
    }
    if (rc == PSD_OK) {
        rc = catch_up(self, err);
    }
    if (self->is_late) {
        ret_view->state = PS_QUORUM_FOLLOWER;
        return rc;
    }
    if (rc == PSD_OK && ret_view->wants_database) {
        rc = send_database(self, err);
    }
    return rc;
}
