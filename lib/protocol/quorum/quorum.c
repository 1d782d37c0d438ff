/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of a member, and what it is asked. */
#include "protocol/quorum/quorum_raft.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define IN_FLIGHT_MAX 256 /* entries on the way to a member */

/* ---- start and end ---- */

static psd_status_t check_args(const ps_quorum_args_t *args, psd_error_t *err)
{
    if (args->member == 0 || args->member > PS_QUORUM_MEMBER_MAX) {
        return psd_error_set(err, PSD_INVALID, "id of the member is %" PRIu64, args->member);
    }
    if (args->node[0] == '\0' || strlen(args->node) > PS_NAME_MAX) {
        return psd_error_set(err, PSD_INVALID, "node of the member is \"%s\"", args->node);
    }
    if (args->life == 0 || args->heartbeat_ms == 0 || args->election_ms < 2 * args->heartbeat_ms ||
        args->election_ms > INT32_MAX / 2) {
        return psd_error_set(err, PSD_INVALID,
                             "life %" PRIu64 ", election of %" PRIu32 " ms, heartbeat of %" PRIu32
                             " ms; allowed: an election takes two heartbeats at least",
                             args->life, args->election_ms, args->heartbeat_ms);
    }
    return PSD_OK;
}

static psd_status_t check_log(const ps_quorum_args_t *args, psd_error_t *err)
{
    const ps_quorum_snapshot_t *snapshot = args->snapshot;
    uint64_t term = snapshot->term;
    psd_status_t rc = ps_quorum_members_check(&snapshot->members, err);

    if (rc == PSD_OK &&
        (snapshot->index < 2 || snapshot->term == 0 || snapshot->members_index == 0 ||
         snapshot->members_index > snapshot->index)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "the database has index %" PRIu64 " of term %" PRIu64
                           ", and members of index %" PRIu64,
                           snapshot->index, snapshot->term, snapshot->members_index);
    }
    if (rc == PSD_OK && (args->first == 0 || args->first > snapshot->index + 1)) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "the log begins at index %" PRIu64 ", the database ends at %" PRIu64,
                           args->first, snapshot->index);
    }
    for (size_t i = 0; rc == PSD_OK && i < args->n_entries; i++) {
        const ps_quorum_entry_t *entry = &args->entries[i];

        rc = ps_quorum_entry_check(entry, err);
        if (rc == PSD_OK && i > 0 && entry->term < args->entries[i - 1].term) {
            rc = psd_error_set(err, PSD_DAMAGED, "terms fall in the log at index %" PRIu64,
                               args->first + i);
        }
        term = entry->term > term ? entry->term : term;
    }
    if (rc == PSD_OK && term > args->term) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "term is %" PRIu64 ", but there is an entry of term %" PRIu64,
                           args->term, term);
    }
    return rc;
}

/* Does the log have the entry that the database ends with, or follow it? */
static bool has_log(const ps_quorum_args_t *args)
{
    uint64_t at = args->snapshot->index - args->first; /* of that entry in the log */

    return args->first == args->snapshot->index + 1 ||
           (at < args->n_entries && args->entries[at].term == args->snapshot->term);
}

static bool copy_log(ps_quorum_t *self, const ps_quorum_args_t *args)
{
    if (!ps_quorum_cache_reserve(&self->cache, args->n_entries + 1)) {
        return false;
    }
    self->cache.base = args->first - 1;
    for (size_t i = 0; i < args->n_entries; i++) {
        ps_quorum_entry_t entry = {.term = args->entries[i].term, .kind = args->entries[i].kind};
        const ps_buffer_t *bytes = &args->entries[i].bytes;

        if (!ps_buffer_append(&entry.bytes, bytes->data, bytes->size)) {
            return false;
        }
        ps_quorum_cache_add(&self->cache, &entry);
    }
    return true;
}

/* The members that count when it starts. */
static void last_members(const ps_quorum_t *self, const ps_quorum_snapshot_t *snapshot,
                         ps_quorum_members_t *ret_members)
{
    *ret_members = snapshot->members;
    for (uint64_t index = ps_quorum_cache_last(&self->cache); index > snapshot->members_index;
         index--) {
        const ps_quorum_entry_t *entry = ps_quorum_cache_find(&self->cache, index);

        if (entry == NULL ||
            (entry->kind == PS_QUORUM_CHANGE &&
             ps_quorum_members_decode((ps_bytes_t){entry->bytes.data, entry->bytes.size},
                                      ret_members, NULL) == PSD_OK)) {
            return;
        }
    }
}

static psd_status_t start(ps_quorum_t *self, const ps_quorum_args_t *args, psd_error_t *err)
{
    const ps_quorum_snapshot_t *snapshot = args->snapshot;
    struct raft_snapshot_metadata metadata = {0};
    struct raft_event event = {.type = RAFT_START};
    ps_raft_entries_t entries = {0};
    ps_quorum_members_t members = {0};
    int rv = 0;

    self->raft.current_term = args->term;
    self->raft.voted_for = args->vote;
    event.start.start_index = self->cache.base + 1;
    event.start.n_entries = (unsigned)self->cache.n;
    if (self->cache.n > 0 && !ps_quorum_raft_entries_of(self->cache.at, self->cache.n, &entries)) {
        return ps_quorum_out_of_memory(self, err);
    }
    if (snapshot != NULL) {
        last_members(self, snapshot, &members);
        metadata.index = snapshot->index;
        metadata.term = snapshot->term;
        metadata.configuration_index = snapshot->members_index;
        event.start.metadata = &metadata;
        self->commit_seen = snapshot->index;
        self->applicable = snapshot->index;
        if ((ps_quorum_votes_alone(&members, self->member) && !ps_quorum_begin_term(self)) ||
            !ps_quorum_members_to_raft(&snapshot->members, &metadata.configuration)) {
            ps_quorum_raft_entries_free(&entries);
            return ps_quorum_out_of_memory(self, err);
        }
    }
    event.start.term = self->raft.current_term;
    event.start.voted_for = self->raft.voted_for;
    event.start.entries = entries.at;
    rv = ps_quorum_step(self, &event); /* takes metadata's members */
    if (rv == 0 || self->raft.state != RAFT_FOLLOWER) {
        ps_quorum_raft_entries_free(&entries); /* else it did */
    }
    return ps_quorum_settle(self, rv, err);
}

static psd_status_t set_up(ps_quorum_t *self, const ps_quorum_args_t *args, psd_error_t *err)
{
    ps_quorum_args_t with = *args;
    ps_quorum_effect_t begin = {.kind = PS_QUORUM_BEGIN};

    if (args->snapshot == NULL) {
        with.first = 1;
    } else if (!has_log(args)) {
        with.first = args->snapshot->index + 1;
        with.n_entries = 0;
        begin.index = args->snapshot->index;
        if (!ps_quorum_effects_add_op(&self->effects, &begin)) {
            return ps_quorum_out_of_memory(self, err);
        }
        (void)ps_quorum_effects_flushed(&self->effects, begin.op); /* nothing waits for it */
    }
    if (!copy_log(self, &with) ||
        raft_init(&self->raft, NULL, NULL, self->member, self->node) != 0) {
        return ps_quorum_out_of_memory(self, err);
    }
    self->is_raft = true;
    self->raft.tracer = NULL;
    raft_seed(&self->raft, (unsigned)args->seed);
    self->raft.now = args->now_ms;
    raft_set_election_timeout(&self->raft, args->election_ms);
    raft_set_heartbeat_timeout(&self->raft, args->heartbeat_ms);
    /* It asks again soon; who is being sent a database is not sent another. */
    raft_set_install_snapshot_timeout(&self->raft, args->election_ms);
    raft_set_max_inflight_entries(&self->raft, IN_FLIGHT_MAX);
    raft_set_pre_vote(&self->raft, true);
    return start(self, &with, err);
}

bool ps_quorum_is_possible(void)
{
    return true;
}

psd_status_t ps_quorum_new(const ps_quorum_args_t *args, ps_quorum_t **ret_quorum, psd_error_t *err)
{
    PSD_AUTO(ps_quorum_destroy) ps_quorum_t *self = NULL;
    psd_status_t rc = check_args(args, err);

    if (rc == PSD_OK && args->snapshot != NULL) {
        rc = check_log(args, err);
    } else if (rc == PSD_OK && args->n_entries > 0) {
        rc = psd_error_set(err, PSD_DAMAGED, "there is a log, but nothing that it follows");
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "member of the registry");
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry's quorum");
    }
    self->member = args->member;
    memcpy(self->node, args->node, strlen(args->node));
    self->cluster = args->cluster;
    self->lineage = args->lineage;
    self->life = args->life;
    self->message_bytes = args->message_bytes;
    self->now_ms = args->now_ms;
    self->start_ms = args->now_ms;
    self->patience = (ps_patience_t){
        .least_ms = args->election_ms,
        .most_ms = args->patience_ms > args->election_ms ? args->patience_ms : args->election_ms,
        .since_ms = args->now_ms};
    rc = set_up(self, args, err);
    if (rc == PSD_OK) {
        *ret_quorum = self;
        self = NULL;
    }
    return rc;
}

void ps_quorum_destroy(ps_quorum_t **self_p)
{
    ps_quorum_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->is_installing) {
        raft_configuration_close(&self->metadata.configuration);
    }
    if (self->is_raft) {
        raft_close(&self->raft, NULL);
    }
    ps_quorum_cache_done(&self->cache);
    ps_quorum_peers_done(&self->peers);
    ps_quorum_effects_done(&self->effects);
    ps_free(self);
    *self_p = NULL;
}

bool ps_quorum_next(ps_quorum_t *self, ps_quorum_effect_t *ret_effect)
{
    ps_quorum_effects_t *effects = &self->effects;

    if (effects->taken == effects->n) {
        return false;
    }
    *ret_effect = effects->at[effects->taken++];
    if (ret_effect->kind == PS_QUORUM_EXTEND) {
        ret_effect->entries = ps_quorum_cache_find(&self->cache, ret_effect->index);
    } else if (ret_effect->kind == PS_QUORUM_INSTALL) {
        ret_effect->snapshot = &self->installing;
    }
    return true;
}

/* ---- queries ---- */

bool ps_quorum_is_broken(const ps_quorum_t *self)
{
    return self->is_broken;
}

ps_quorum_state_t ps_quorum_state(const ps_quorum_t *self)
{
    switch (self->raft.state) {
    case RAFT_LEADER:
        return PS_QUORUM_LEADER;
    case RAFT_CANDIDATE:
        return PS_QUORUM_CANDIDATE;
    default:
        return PS_QUORUM_FOLLOWER;
    }
}

uint32_t ps_quorum_patience_ms(const ps_quorum_t *self)
{
    return self->raft.election_timeout;
}

uint64_t ps_quorum_term(const ps_quorum_t *self)
{
    return self->raft.current_term;
}

uint64_t ps_quorum_leader(const ps_quorum_t *self)
{
    switch (self->raft.state) {
    case RAFT_LEADER:
        return self->member;
    case RAFT_FOLLOWER:
        return self->raft.follower_state.current_leader.id;
    default:
        return 0;
    }
}

uint64_t ps_quorum_deadline(const ps_quorum_t *self)
{
    uint64_t at = raft_timeout(&self->raft);

    return at > self->tick_ms ? at : self->tick_ms + 1;
}

uint64_t ps_quorum_commit_index(const ps_quorum_t *self)
{
    return self->raft.commit_index;
}

uint64_t ps_quorum_last_index(const ps_quorum_t *self)
{
    return ps_quorum_cache_last(&self->cache);
}

uint64_t ps_quorum_flushed_index(const ps_quorum_t *self)
{
    return self->raft.last_stored;
}

uint64_t ps_quorum_applicable(const ps_quorum_t *self)
{
    uint64_t commit = self->raft.commit_index;

    return commit < self->raft.last_stored ? commit : self->raft.last_stored;
}

const ps_quorum_entry_t *ps_quorum_entry(const ps_quorum_t *self, uint64_t index)
{
    return ps_quorum_cache_find(&self->cache, index);
}

uint64_t ps_quorum_members(const ps_quorum_t *self, ps_quorum_members_t *ret_members)
{
    ps_quorum_members_of_raft(&self->raft.configuration, ret_members);
    return self->raft.configuration_uncommitted_index != 0
               ? self->raft.configuration_uncommitted_index
               : self->raft.configuration_committed_index;
}

uint64_t ps_quorum_members_committed(const ps_quorum_t *self, ps_quorum_members_t *ret_members)
{
    ps_quorum_members_of_raft(&self->raft.configuration_committed, ret_members);
    return self->raft.configuration_committed_index;
}

void ps_quorum_members_sure(const ps_quorum_t *self, ps_quorum_members_t *ret_members)
{
    ps_quorum_members_t committed;

    (void)ps_quorum_members(self, ret_members);
    (void)ps_quorum_members_committed(self, &committed);
    for (uint32_t i = 0; ps_quorum_is_changing(self) && i < ret_members->n; i++) {
        ps_quorum_member_t *member = &ret_members->at[i];
        const ps_quorum_member_t *before = ps_quorum_members_find(&committed, member->id);

        if (before == NULL || before->role != PS_QUORUM_VOTER) {
            member->role = PS_QUORUM_STANDBY;
        }
    }
}

bool ps_quorum_is_changing(const ps_quorum_t *self)
{
    return self->raft.configuration_uncommitted_index != 0;
}

bool ps_quorum_peer_info(const ps_quorum_t *self, uint64_t member, ps_quorum_peer_info_t *ret_info)
{
    const ps_quorum_peer_t *peer = ps_quorum_peers_find(&self->peers, member);
    ps_quorum_members_t members;
    raft_index match = 0;

    ps_quorum_current_members(self, &members);
    if (member == self->member || ps_quorum_members_find(&members, member) == NULL) {
        return false;
    }
    (void)raft_match_index(&self->raft, member, &match); /* 0: it does not lead */
    *ret_info = (ps_quorum_peer_info_t){.match = match,
                                        .heard_ms = peer == NULL ? 0 : peer->heard_ms,
                                        .is_sent_snapshot = peer != NULL && peer->is_sent_snapshot};
    return true;
}

bool ps_quorum_has_caught_up(const ps_quorum_t *self, uint64_t now_ms, uint64_t member)
{
    ps_quorum_peer_info_t info;

    return self->raft.state == RAFT_LEADER && ps_quorum_peer_info(self, member, &info) &&
           info.match >= self->raft.commit_index && info.heard_ms != 0 &&
           now_ms < info.heard_ms + self->patience.least_ms;
}

uint64_t ps_quorum_heard_majority_ms(const ps_quorum_t *self, uint64_t now_ms)
{
    ps_quorum_members_t members;

    if (self->raft.state != RAFT_LEADER || self->raft.leader_state.transferee != 0) {
        return 0;
    }
    ps_quorum_current_members(self, &members);
    return ps_quorum_peers_heard_ms(&self->peers, &members, self->member, now_ms);
}
