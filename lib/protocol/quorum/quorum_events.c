/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that happens to a member but messages. */
#include "protocol/quorum/quorum_raft.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

psd_status_t ps_quorum_flushed(ps_quorum_t *self, uint64_t now_ms, uint64_t op, psd_error_t *err)
{
    struct raft_event event = {.type = RAFT_PERSISTED_ENTRIES};

    if (!ps_quorum_begin(self, now_ms, 0)) {
        return ps_quorum_out_of_memory(self, err);
    }
    event.persisted_entries.index = ps_quorum_effects_flushed(&self->effects, op);
    if (self->is_installing || event.persisted_entries.index <= self->raft.last_stored) {
        return PSD_OK;
    }
    return ps_quorum_settle(self, ps_quorum_step(self, &event), err);
}

psd_status_t ps_quorum_tick(ps_quorum_t *self, uint64_t now_ms, psd_error_t *err)
{
    struct raft_event event = {.type = RAFT_TIMEOUT};
    ps_quorum_members_t members;
    psd_status_t rc = PSD_OK;

    if (!ps_quorum_begin(self, now_ms, 0)) {
        return ps_quorum_out_of_memory(self, err);
    }
    self->tick_ms = self->now_ms;
    ps_quorum_current_members(self, &members);
    if (self->raft.state == RAFT_FOLLOWER && ps_quorum_votes_alone(&members, self->member) &&
        !self->is_installing && self->raft.last_stored == ps_quorum_last_index(self) &&
        self->now_ms >= raft_timeout(&self->raft) && !ps_quorum_begin_term(self)) {
        return ps_quorum_out_of_memory(self, err);
    }
    rc = ps_quorum_settle(self, ps_quorum_step(self, &event), err);
    ps_quorum_keep_pace(self);
    return rc;
}

/* Only who leads may say what comes next. */
static psd_status_t check_leads(const ps_quorum_t *self, psd_error_t *err)
{
    if (self->raft.state != RAFT_LEADER) {
        return psd_error_set(err, PSD_DENIED, "this member of the registry does not lead");
    }
    return self->raft.leader_state.transferee != 0
               ? psd_error_set(err, PSD_BUSY, "this member of the registry hands its lead over")
               : PSD_OK;
}

static void drop_bytes(ps_quorum_entry_t *entries, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ps_buffer_done(&entries[i].bytes);
    }
}

/* Takes the bytes of all n. */
static psd_status_t submit(ps_quorum_t *self, ps_quorum_entry_t *entries, size_t n,
                           uint64_t *ret_first, psd_error_t *err)
{
    struct raft_event event = {.type = RAFT_SUBMIT};
    ps_raft_entries_t raft = {0};
    int rv = 0;

    for (size_t i = 0; i < n; i++) {
        entries[i].term = self->raft.current_term;
    }
    if (!ps_quorum_raft_entries_of(entries, n, &raft)) {
        drop_bytes(entries, n);
        return ps_quorum_out_of_memory(self, err);
    }
    event.submit.entries = raft.at;
    event.submit.n = (unsigned)n;
    self->incoming = entries;
    self->incoming_first = ps_quorum_last_index(self) + 1;
    *ret_first = self->incoming_first;
    rv = ps_quorum_step(self, &event);
    ps_quorum_raft_entries_free(&raft);
    drop_bytes(entries, n);
    return ps_quorum_settle(self, rv, err);
}

static psd_status_t check_commands(const ps_bytes_t *commands, size_t n, psd_error_t *err)
{
    if (n == 0 || n > PS_QUORUM_COMMANDS_MAX) {
        return psd_error_set(err, PSD_INVALID, "%zu commands; allowed: 1..%d", n,
                             PS_QUORUM_COMMANDS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        if (commands[i].size == 0) {
            return psd_error_set(err, PSD_INVALID, "a command has no bytes");
        }
    }
    return PSD_OK;
}

psd_status_t ps_quorum_propose(ps_quorum_t *self, uint64_t now_ms, const ps_bytes_t *commands,
                               size_t n, uint64_t *ret_first, psd_error_t *err)
{
    ps_quorum_entry_t entries[PS_QUORUM_COMMANDS_MAX];
    psd_status_t rc = check_commands(commands, n, err);

    if (rc == PSD_OK && !ps_quorum_begin(self, now_ms, n)) {
        return ps_quorum_out_of_memory(self, err);
    }
    rc = rc == PSD_OK ? check_leads(self, err) : rc;
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        entries[i] = (ps_quorum_entry_t){.kind = PS_QUORUM_COMMAND};
        if (!ps_buffer_append(&entries[i].bytes, commands[i].data, commands[i].size)) {
            drop_bytes(entries, i + 1);
            return ps_quorum_out_of_memory(self, err);
        }
    }
    return submit(self, entries, n, ret_first, err);
}

static psd_status_t add_member(ps_quorum_members_t *members, uint64_t id, const char *node,
                               psd_error_t *err)
{
    ps_quorum_member_t *member = &members->at[members->n];

    if (members->n == PS_QUORUM_MEMBERS_MAX || node == NULL || strlen(node) > PS_NAME_MAX) {
        return psd_error_set(err, PSD_INVALID, "there are %" PRIu32 " members, up to %d may be",
                             members->n, PS_QUORUM_MEMBERS_MAX);
    }
    *member = (ps_quorum_member_t){.id = id, .role = PS_QUORUM_STANDBY};
    memcpy(member->node, node, strlen(node));
    members->n++;
    return PSD_OK;
}

/* A leader stays a voter: libraft lets nobody else stand for election, and its log
 * may be the longest one of those that are left. */
static psd_status_t change_member(const ps_quorum_t *self, ps_quorum_members_t *members,
                                  ps_quorum_change_t change, uint64_t id, psd_error_t *err)
{
    uint32_t at = 0;

    while (at < members->n && members->at[at].id != id) {
        at++;
    }
    if (at == members->n) {
        return psd_error_set(err, PSD_INVALID, "there is no member %" PRIu64, id);
    }
    if (id == self->member && change != PS_QUORUM_PROMOTE) {
        return psd_error_set(err, PSD_INVALID,
                             "member %" PRIu64 " leads; it must hand its lead over first", id);
    }
    if (change == PS_QUORUM_REMOVE) {
        memmove(&members->at[at], &members->at[at + 1],
                (--members->n - at) * sizeof members->at[0]);
        return PSD_OK;
    }
    if ((members->at[at].role == PS_QUORUM_VOTER) == (change == PS_QUORUM_PROMOTE)) {
        return psd_error_set(err, PSD_INVALID, "member %" PRIu64 " is one already", id);
    }
    if (change == PS_QUORUM_PROMOTE && !ps_quorum_has_caught_up(self, self->now_ms, id)) {
        return psd_error_set(err, PSD_BUSY, "member %" PRIu64 " has not caught up", id);
    }
    members->at[at].role = change == PS_QUORUM_PROMOTE ? PS_QUORUM_VOTER : PS_QUORUM_STANDBY;
    return PSD_OK;
}

/* One change at a time, and none before the leader has committed an entry of its
 * term: else two majorities could miss each other. */
static psd_status_t check_change(const ps_quorum_t *self, psd_error_t *err)
{
    psd_status_t rc = check_leads(self, err);

    if (rc == PSD_OK && ps_quorum_is_changing(self)) {
        rc = psd_error_set(err, PSD_BUSY, "a change of members is not committed yet");
    }
    return rc == PSD_OK &&
                   ps_quorum_term_of(self, self->raft.commit_index) != self->raft.current_term
               ? psd_error_set(err, PSD_BUSY, "nothing of this term is committed yet")
               : rc;
}

psd_status_t ps_quorum_propose_members(ps_quorum_t *self, uint64_t now_ms,
                                       ps_quorum_change_t change, uint64_t member, const char *node,
                                       uint64_t *ret_index, psd_error_t *err)
{
    ps_quorum_entry_t entry = {.kind = PS_QUORUM_CHANGE};
    ps_quorum_members_t members;
    psd_status_t rc = PSD_OK;

    if (!ps_quorum_begin(self, now_ms, 1)) {
        return ps_quorum_out_of_memory(self, err);
    }
    ps_quorum_current_members(self, &members);
    rc = check_change(self, err);
    if (rc == PSD_OK) {
        rc = change == PS_QUORUM_ADD ? add_member(&members, member, node, err)
                                     : change_member(self, &members, change, member, err);
    }
    if (rc == PSD_OK) {
        rc = ps_quorum_members_check(&members, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_quorum_members_encode(&members, &entry.bytes)) {
        ps_buffer_done(&entry.bytes);
        return ps_quorum_out_of_memory(self, err);
    }
    return submit(self, &entry, 1, ret_index, err);
}

psd_status_t ps_quorum_transfer(ps_quorum_t *self, uint64_t now_ms, uint64_t member,
                                psd_error_t *err)
{
    struct raft_event event = {.type = RAFT_TRANSFER, .transfer = {.server_id = member}};
    psd_status_t rc = PSD_OK;
    int rv = 0;

    if (!ps_quorum_begin(self, now_ms, 0)) {
        return ps_quorum_out_of_memory(self, err);
    }
    rc = check_leads(self, err);
    if (rc == PSD_OK && ps_quorum_is_changing(self)) {
        rc = psd_error_set(err, PSD_BUSY, "a change of members is not committed yet");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rv = ps_quorum_step(self, &event);
    return rv == RAFT_BADID || rv == RAFT_NOTFOUND
               ? psd_error_set(err, PSD_INVALID, "there is no other voter to lead")
               : ps_quorum_settle(self, rv, err);
}

psd_status_t ps_quorum_snapshot_taken(ps_quorum_t *self, uint64_t now_ms, uint64_t index,
                                      uint32_t trailing, psd_error_t *err)
{
    struct raft_event event = {.type = RAFT_SNAPSHOT, .snapshot = {.trailing = trailing}};
    struct raft_snapshot_metadata *metadata = &event.snapshot.metadata;
    ps_quorum_members_t members;
    psd_status_t rc = PSD_OK;

    if (!ps_quorum_begin(self, now_ms, 0)) {
        return ps_quorum_out_of_memory(self, err);
    }
    if (self->is_installing || index <= self->raft.trail.snapshot.index) {
        return PSD_OK;
    }
    if (index > self->applicable) {
        return psd_error_set(err, PSD_INVALID, "index %" PRIu64 " is not committed yet", index);
    }
    metadata->index = index;
    metadata->term = ps_quorum_term_of(self, index);
    metadata->configuration_index = ps_quorum_members_committed(self, &members);
    if (!ps_quorum_members_to_raft(&members, &metadata->configuration)) {
        return ps_quorum_out_of_memory(self, err);
    }
    rc = ps_quorum_settle(self, ps_quorum_step(self, &event), err); /* takes the members */
    if (rc == PSD_OK) {
        ps_quorum_cache_forget(&self->cache, self->raft.trail.offset);
    }
    return rc;
}

psd_status_t ps_quorum_snapshot_sent(ps_quorum_t *self, uint64_t now_ms, uint64_t to,
                                     const ps_quorum_snapshot_t *snapshot, psd_error_t *err)
{
    ps_quorum_peer_t *peer = ps_quorum_peers_find(&self->peers, to);
    ps_quorum_message_t message = {.kind = PS_QUORUM_SNAPSHOT};

    if (!ps_quorum_begin(self, now_ms, 0)) {
        return ps_quorum_out_of_memory(self, err);
    }
    if (self->raft.state != RAFT_LEADER || peer == NULL || !peer->is_sent_snapshot) {
        return PSD_OK;
    }
    if (snapshot == NULL) {
        peer->is_sent_snapshot = false;
        return PSD_OK;
    }
    message.snapshot = *snapshot;
    if (!ps_quorum_send(self, to, &message)) {
        return ps_quorum_out_of_memory(self, err);
    }
    ps_quorum_peers_find(&self->peers, to)->snapshot = self->number;
    return PSD_OK;
}

psd_status_t ps_quorum_installed(ps_quorum_t *self, uint64_t now_ms, psd_error_t *err)
{
    struct raft_event event = {.type = RAFT_PERSISTED_SNAPSHOT};

    if (!ps_quorum_begin(self, now_ms, 0)) {
        return ps_quorum_out_of_memory(self, err);
    }
    assert(self->is_installing);
    event.persisted_snapshot.metadata = self->metadata;
    event.persisted_snapshot.last = true;
    self->is_installing = false;
    self->metadata = (struct raft_snapshot_metadata){0};
    return ps_quorum_settle(self, ps_quorum_step(self, &event), err); /* takes the members */
}
