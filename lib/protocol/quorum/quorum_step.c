/* SPDX-License-Identifier: Apache-2.0 */
/* One step of libraft, and the effects that follow from it. */
#include "protocol/quorum/quorum_raft.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

psd_status_t ps_quorum_out_of_memory(ps_quorum_t *self, psd_error_t *err)
{
    self->is_broken = true;
    return psd_error_set(err, PSD_NOMEM, "no memory for the registry's quorum");
}

/* Its term, as libraft knows it; 0: it does not. */
uint64_t ps_quorum_term_of(const ps_quorum_t *self, uint64_t index)
{
    const ps_quorum_entry_t *entry = ps_quorum_cache_find(&self->cache, index);

    if (entry != NULL) {
        return entry->term;
    }
    return index == self->raft.trail.snapshot.index ? self->raft.trail.snapshot.term : 0;
}

/* ---- what a step of libraft wants ---- */

static bool add_effect(ps_quorum_t *self, ps_quorum_effect_t effect)
{
    return ps_quorum_effects_add(&self->effects, &effect, NULL);
}

void ps_quorum_current_members(const ps_quorum_t *self, ps_quorum_members_t *ret_members)
{
    ps_quorum_members_of_raft(&self->raft.configuration, ret_members);
}

ps_quorum_peer_t *ps_quorum_peer_of(ps_quorum_t *self, uint64_t id)
{
    ps_quorum_members_t members;

    ps_quorum_current_members(self, &members);
    return ps_quorum_peers_get(&self->peers, id, &members);
}

/* Sends a message; its kind and fields are set. */
bool ps_quorum_send(ps_quorum_t *self, uint64_t to, ps_quorum_message_t *message)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_quorum_peer_t *peer = ps_quorum_peer_of(self, to);
    ps_quorum_effect_t effect = {.kind = PS_QUORUM_SEND, .to = to};

    if (peer == NULL) {
        return false;
    }
    message->cluster = self->cluster;
    message->lineage = self->lineage;
    message->from = self->member;
    memcpy(message->node, self->node, sizeof message->node);
    message->to = to;
    message->life = self->life;
    message->number = ++self->number;
    message->to_life = peer->life;
    message->echo = peer->number;
    message->term = self->raft.current_term;
    if (message->kind == PS_QUORUM_APPEND || message->kind == PS_QUORUM_SNAPSHOT) {
        ps_quorum_peer_note_send(peer, message->number, self->now_ms);
    } else if (message->kind == PS_QUORUM_STAND) {
        peer->stand = message->number;
    }
    return ps_quorum_message_encode(message, &bytes) &&
           ps_quorum_effects_add(&self->effects, &effect, &bytes);
}

/* The index from which on a member may not see the log; 0: it may see it all. Who
 * is to vote no more hears of it when that is committed: libraft lets only a voter
 * stand for election, also where its log is the longest one. */
static uint64_t hidden_from(const ps_quorum_t *self, uint64_t to)
{
    uint64_t change = self->raft.configuration_uncommitted_index;
    ps_quorum_members_t committed;
    ps_quorum_members_t members;
    const ps_quorum_member_t *before = NULL;
    const ps_quorum_member_t *now = NULL;

    if (change == 0) {
        return 0;
    }
    (void)ps_quorum_members_committed(self, &committed);
    ps_quorum_current_members(self, &members);
    before = ps_quorum_members_find(&committed, to);
    now = ps_quorum_members_find(&members, to);
    return before != NULL && before->role == PS_QUORUM_VOTER && now != NULL &&
                   now->role != PS_QUORUM_VOTER
               ? change
               : 0;
}

/* As many messages as the bytes of the entries need. */
static bool send_append(ps_quorum_t *self, uint64_t to, const struct raft_append_entries *args)
{
    uint64_t index = args->prev_log_index + 1;
    uint64_t term = args->prev_log_term;
    size_t left = args->n_entries;
    uint64_t end = hidden_from(self, to);
    bool ok = true;

    if (end != 0 && index > end) {
        index = end;
        term = ps_quorum_term_of(self, end - 1);
        left = 0;
    } else if (end != 0 && left > end - index) {
        left = (size_t)(end - index);
    }
    do {
        ps_quorum_entry_t *entries = ps_quorum_cache_find(&self->cache, index);
        ps_quorum_message_t message = {.kind = PS_QUORUM_APPEND,
                                       .last_index = index - 1,
                                       .last_term = term,
                                       .commit = args->leader_commit,
                                       .entries = entries};
        size_t bytes = 0;

        while (left > 0 && message.n_entries < PS_QUORUM_ENTRIES_MAX &&
               (message.n_entries == 0 || bytes < self->message_bytes)) {
            const ps_quorum_entry_t *entry = &entries[message.n_entries++];

            bytes += entry->bytes.size;
            term = entry->term;
            left--;
        }
        ok = ps_quorum_send(self, to, &message);
        index += message.n_entries;
    } while (ok && left > 0);
    return ok;
}

/* It is asked for again and again while the follower rejects signs of life. */
static bool send_snapshot(ps_quorum_t *self, uint64_t to, uint64_t index)
{
    ps_quorum_peer_t *peer = ps_quorum_peer_of(self, to);

    if (peer == NULL || peer->is_sent_snapshot) {
        return peer != NULL;
    }
    peer->is_sent_snapshot = true;
    peer->snapshot = 0;
    return add_effect(
        self, (ps_quorum_effect_t){.kind = PS_QUORUM_SEND_SNAPSHOT, .to = to, .index = index});
}

static bool send_raft(ps_quorum_t *self, const struct raft_message *raft)
{
    ps_quorum_message_t message = {0};

    switch ((int)raft->type) {
    case RAFT_REQUEST_VOTE:
        message.kind = PS_QUORUM_VOTE;
        message.for_term = raft->request_vote.term;
        message.last_index = raft->request_vote.last_log_index;
        message.last_term = raft->request_vote.last_log_term;
        message.depose = raft->request_vote.disrupt_leader && !raft->request_vote.pre_vote;
        message.trial = raft->request_vote.pre_vote;
        break;
    case RAFT_REQUEST_VOTE_RESULT:
        message.kind = PS_QUORUM_VOTED;
        message.for_term = raft->request_vote_result.term;
        message.granted = raft->request_vote_result.vote_granted;
        message.trial = raft->request_vote_result.pre_vote;
        break;
    case RAFT_APPEND_ENTRIES:
        return send_append(self, raft->server_id, &raft->append_entries);
    case RAFT_APPEND_ENTRIES_RESULT:
        message.kind = PS_QUORUM_APPENDED;
        message.rejected = raft->append_entries_result.rejected;
        /* Libraft does not set it in an answer to an earlier term. */
        message.last_index = self->is_of_old ? 0 : raft->append_entries_result.last_log_index;
        self->was_rejected = message.rejected > 0;
        break;
    case RAFT_INSTALL_SNAPSHOT: /* conf and data are not set */
        return send_snapshot(self, raft->server_id, raft->install_snapshot.last_index);
    case RAFT_TIMEOUT_NOW:
        message.kind = PS_QUORUM_STAND;
        message.last_index = raft->timeout_now.last_log_index;
        message.last_term = raft->timeout_now.last_log_term;
        break;
    default:
        return true;
    }
    return ps_quorum_send(self, raft->server_id, &message);
}

/* Entries joined the log, which replace those from there on. */
static bool take_entries(ps_quorum_t *self, uint64_t first, const struct raft_entry *entries,
                         size_t n)
{
    ps_quorum_effect_t cut = {.kind = PS_QUORUM_CUT, .index = first};
    ps_quorum_effect_t extend = {.kind = PS_QUORUM_EXTEND, .index = first, .n_entries = n};

    if (first <= ps_quorum_cache_last(&self->cache)) {
        ps_quorum_cache_cut(&self->cache, first);
        if (!ps_quorum_effects_add_op(&self->effects, &cut)) {
            return false;
        }
    }
    for (size_t i = 0; i < n; i++) {
        ps_quorum_entry_t barrier = {.term = entries[i].term, .kind = PS_QUORUM_BARRIER};

        ps_quorum_cache_add(&self->cache, self->incoming == NULL
                                              ? &barrier
                                              : &self->incoming[first + i - self->incoming_first]);
    }
    return ps_quorum_effects_add_op(&self->effects, &extend);
}

static bool take_snapshot(ps_quorum_t *self, const struct raft_snapshot_metadata *metadata)
{
    ps_quorum_effect_t begin = {.kind = PS_QUORUM_BEGIN, .index = metadata->index};

    self->metadata = *metadata;
    self->is_installing = true;
    self->installing.index = metadata->index;
    self->installing.term = metadata->term;
    self->installing.members_index = metadata->configuration_index;
    ps_quorum_members_of_raft(&metadata->configuration, &self->installing.members);
    ps_quorum_cache_begin(&self->cache, metadata->index);
    return add_effect(self, (ps_quorum_effect_t){.kind = PS_QUORUM_INSTALL}) &&
           ps_quorum_effects_add_op(&self->effects, &begin);
}

static bool add_term(ps_quorum_t *self)
{
    return add_effect(self, (ps_quorum_effect_t){.kind = PS_QUORUM_TERM,
                                                 .term = self->raft.current_term,
                                                 .vote = self->raft.voted_for});
}

static bool note_role(ps_quorum_t *self)
{
    ps_quorum_effect_t role = {.kind = PS_QUORUM_ROLE,
                               .state = ps_quorum_state(self),
                               .term = self->raft.current_term,
                               .leader = ps_quorum_leader(self)};

    if (role.state == self->role.state && role.term == self->role.term &&
        role.leader == self->role.leader) {
        return true;
    }
    if (role.state == PS_QUORUM_LEADER && self->lead_term != role.term) {
        self->lead_term = role.term;
        ps_quorum_peers_lead(&self->peers);
    }
    self->role = role;
    return add_effect(self, role);
}

/* Libraft lets a sole voter lead in the term that it has, in which it or another
 * may have led before with other entries. So that begins a new one. */
bool ps_quorum_begin_term(ps_quorum_t *self)
{
    self->raft.current_term++;
    self->raft.voted_for = self->member;
    return add_term(self);
}

/* One step of libraft, with its effects. An error of libraft, or RAFT_NOMEM. */
static int step_once(ps_quorum_t *self, struct raft_event *event)
{
    struct raft_update update = {0};
    unsigned flags = 0;
    bool ok = true;
    int rv = 0;

    event->time = self->now_ms;
    rv = raft_step(&self->raft, event, &update);
    if (rv != 0) {
        return rv;
    }
    flags = update.flags; /* the macros have no parentheses */
    if ((flags & ((RAFT_UPDATE_CURRENT_TERM) | (RAFT_UPDATE_VOTED_FOR))) != 0) {
        ok = add_term(self);
    }
    ok = ok && note_role(self);
    if (ok && (flags & (RAFT_UPDATE_SNAPSHOT)) != 0) {
        ok = take_snapshot(self, &update.snapshot.metadata);
    }
    if (ok && (flags & (RAFT_UPDATE_ENTRIES)) != 0) {
        ok = take_entries(self, update.entries.index, update.entries.batch, update.entries.n);
        if (self->incoming == NULL) {
            raft_free(update.entries.batch[0].batch); /* a leader's barrier */
        }
    }
    for (unsigned i = 0; ok && (flags & (RAFT_UPDATE_MESSAGES)) != 0 && i < update.messages.n;
         i++) {
        ok = send_raft(self, &update.messages.batch[i]);
    }
    self->took_entries = (flags & (RAFT_UPDATE_ENTRIES)) != 0;
    return ok ? 0 : RAFT_NOMEM;
}

/* The members that count since index are committed. */
int ps_quorum_commit_members(ps_quorum_t *self, uint64_t index)
{
    const ps_quorum_entry_t *entry = ps_quorum_cache_find(&self->cache, index);
    struct raft_event event = {.type = RAFT_CONFIGURATION};
    ps_quorum_members_t members;

    if (entry == NULL || entry->kind != PS_QUORUM_CHANGE) {
        return 0;
    }
    if (ps_quorum_members_decode((ps_bytes_t){entry->bytes.data, entry->bytes.size}, &members,
                                 NULL) != PSD_OK ||
        !ps_quorum_members_to_raft(&members, &event.configuration.conf)) {
        return RAFT_NOMEM;
    }
    event.configuration.index = index;
    return step_once(self, &event); /* takes conf */
}

/* A step, and what follows from what it committed. */
int ps_quorum_step(ps_quorum_t *self, struct raft_event *event)
{
    int rv = step_once(self, event);
    bool took = self->took_entries;
    uint64_t applicable = 0;

    while (rv == 0 && self->commit_seen < self->raft.commit_index) {
        rv = ps_quorum_commit_members(self, ++self->commit_seen);
    }
    self->took_entries = took;
    applicable = ps_quorum_applicable(self);
    if (rv == 0 && applicable > self->applicable) {
        self->applicable = applicable;
        rv =
            add_effect(self, (ps_quorum_effect_t){.kind = PS_QUORUM_COMMITTED, .index = applicable})
                ? 0
                : RAFT_NOMEM;
    }
    return rv;
}

/* Of an event that libraft cannot refuse. */
psd_status_t ps_quorum_settle(ps_quorum_t *self, int rv, psd_error_t *err)
{
    if (rv == 0) {
        return PSD_OK;
    }
    self->is_broken = true;
    return rv == RAFT_NOMEM
               ? ps_quorum_out_of_memory(self, err)
               : psd_error_set(err, PSD_DAMAGED, "the registry's quorum: %s", raft_strerror(rv));
}

void ps_quorum_keep_pace(ps_quorum_t *self)
{
    uint32_t wanted_ms = ps_patience_ms(&self->patience, self->now_ms);

    if (!self->is_broken && wanted_ms != self->raft.election_timeout) {
        raft_set_election_timeout(&self->raft, wanted_ms);
    }
}

bool ps_quorum_begin(ps_quorum_t *self, uint64_t now_ms, size_t n_entries)
{
    assert(!self->is_broken);
    ps_quorum_effects_clear(&self->effects);
    self->now_ms = now_ms > self->now_ms ? now_ms : self->now_ms;
    self->incoming = NULL;
    self->is_of_old = false;
    self->was_rejected = false;
    return ps_quorum_cache_reserve(&self->cache, n_entries + 1); /* a barrier may join */
}
