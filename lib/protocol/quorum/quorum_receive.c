/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of other members, checked against this one's state before libraft gets
 * them, for its assertions are not compiled in. */
#include "protocol/quorum/quorum_raft.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define REJECTED_OF_OLD UINT64_MAX /* libraft takes it for an old rejection */

/* Is it of a leader, or of one that thinks so? */
static bool leads(const ps_quorum_message_t *message)
{
    return message->kind == PS_QUORUM_APPEND || message->kind == PS_QUORUM_SNAPSHOT;
}

static bool is_led_by_another(const ps_quorum_t *self, const ps_quorum_message_t *message)
{
    return self->raft.state == RAFT_LEADER && message->term == self->raft.current_term;
}

static psd_status_t contradiction(const ps_quorum_message_t *message, uint64_t index,
                                  psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED,
                         "member %" PRIu64
                         " of node \"%s\" contradicts what is committed at index %" PRIu64,
                         message->from, message->node, index);
}

/* What is committed here is the leader's as well. */
static psd_status_t check_committed(const ps_quorum_t *self, const ps_quorum_message_t *message,
                                    psd_error_t *err)
{
    uint64_t commit = self->raft.commit_index;
    uint64_t index = message->last_index;
    uint64_t term = ps_quorum_term_of(self, index);

    if (index <= commit && term != 0 && term != message->last_term) {
        return contradiction(message, index, err);
    }
    for (size_t i = 0; i < message->n_entries && ++index <= commit; i++) {
        term = ps_quorum_term_of(self, index);
        if (term != 0 && term != message->entries[i].term) {
            return contradiction(message, index, err);
        }
    }
    return PSD_OK;
}

/* What lies before the own log is committed, and so the same: it begins there. */
static void skip_committed(const ps_quorum_t *self, uint64_t *last_index, uint64_t *last_term,
                           const ps_quorum_message_t *message, size_t *skip)
{
    uint64_t base = self->cache.base;
    uint64_t anchor = self->raft.trail.snapshot.index == base ? base : base + 1;

    if (anchor <= message->last_index || ps_quorum_term_of(self, anchor) == 0) {
        return;
    }
    *skip = anchor - message->last_index < message->n_entries
                ? (size_t)(anchor - message->last_index)
                : message->n_entries;
    *last_index = anchor;
    *last_term = ps_quorum_term_of(self, anchor);
}

/* Libraft notes a change of members under the index of the first entry of a
 * message, and forgets that one follows only on a committed one. So a change comes
 * first, and what it follows is committed before. */
static int receive_piece(ps_quorum_t *self, const ps_quorum_message_t *message,
                         struct raft_append_entries *args, size_t first, size_t n)
{
    struct raft_message raft = {
        .type = RAFT_APPEND_ENTRIES, .server_id = message->from, .server_address = message->node};
    struct raft_event event = {.type = RAFT_RECEIVE, .receive = {.message = &raft}};
    uint64_t change = self->raft.configuration_uncommitted_index;
    ps_raft_entries_t entries = {0};
    int rv = 0;

    if (n > 0 && message->entries[first].kind == PS_QUORUM_CHANGE && change != 0 &&
        change <= args->prev_log_index &&
        ps_quorum_term_of(self, args->prev_log_index) == args->prev_log_term) {
        rv = ps_quorum_commit_members(self, change);
    }
    if (rv != 0 || (n > 0 && !ps_quorum_raft_entries_of(&message->entries[first], n, &entries))) {
        return RAFT_NOMEM;
    }
    args->entries = entries.at;
    args->n_entries = (unsigned)n;
    raft.append_entries = *args;
    rv = ps_quorum_step(self, &event);
    if (n > 0 && (rv != 0 || !self->took_entries)) {
        entries.batch = NULL; /* libraft freed it */
    }
    ps_quorum_raft_entries_free(&entries);
    return rv;
}

static int receive_append(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    struct raft_append_entries args = {.term = message->term,
                                       .prev_log_index = message->last_index,
                                       .prev_log_term = message->last_term,
                                       .leader_commit = message->commit};
    uint64_t last_index = message->last_index;
    uint64_t last_term = message->last_term;
    size_t at = 0;
    int rv = 0;

    self->incoming = message->entries;
    self->incoming_first = message->last_index + 1;
    skip_committed(self, &last_index, &last_term, message, &at);
    do {
        size_t n = at < message->n_entries ? 1 : 0;

        while (at + n < message->n_entries && message->entries[at + n].kind != PS_QUORUM_CHANGE) {
            n++;
        }
        args.prev_log_index = last_index;
        args.prev_log_term = last_term;
        last_term = n > 0 ? message->entries[at + n - 1].term : last_term; /* taken by the step */
        rv = receive_piece(self, message, &args, at, n);
        last_index += n;
        at += n;
    } while (rv == 0 && !self->was_rejected && !self->is_installing && at < message->n_entries);
    return rv;
}

static int receive_raft(ps_quorum_t *self, const ps_quorum_message_t *message,
                        struct raft_message *raft)
{
    struct raft_event event = {.type = RAFT_RECEIVE, .receive = {.message = raft}};

    raft->server_id = message->from;
    raft->server_address = message->node;
    return ps_quorum_step(self, &event);
}

/* An APPEND of an earlier term: the answer tells its sender the term. */
static int receive_old_append(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    struct raft_message raft = {.type = RAFT_APPEND_ENTRIES,
                                .append_entries = {.term = message->term,
                                                   .prev_log_index = message->last_index,
                                                   .prev_log_term = message->last_term}};

    self->is_of_old = true;
    return receive_raft(self, message, &raft);
}

/* Libraft denies its vote while it is a stand-by by its own log. But the candidate
 * may have promoted it, in an entry that did not arrive, and then needs the vote. */
static int receive_vote_as(ps_quorum_t *self, const ps_quorum_message_t *message,
                           struct raft_message *raft)
{
    struct raft_server *own = NULL;
    int role = 0;
    int rv = 0;

    for (unsigned i = 0; i < self->raft.configuration.n; i++) {
        if (self->raft.configuration.servers[i].id == self->member) {
            own = &self->raft.configuration.servers[i];
        }
    }
    if (own == NULL) {
        return receive_raft(self, message, raft);
    }
    role = own->role;
    own->role = RAFT_VOTER;
    rv = receive_raft(self, message, raft); /* changes no members */
    own->role = role;
    return rv;
}

/* Libraft follows a silent leader until its own timer fires, and a stand-by for
 * ever. */
static void forget_leader(ps_quorum_t *self)
{
    if (self->raft.state == RAFT_FOLLOWER && self->raft.follower_state.current_leader.id != 0 &&
        self->now_ms - self->led_ms >= self->raft.election_timeout) {
        raft_free(self->raft.follower_state.current_leader.address);
        self->raft.follower_state.current_leader.address = NULL;
        self->raft.follower_state.current_leader.id = 0;
    }
}

/* Who just started does not remember which leader it followed, and that leader may
 * serve reads on the word of this member still. */
static int receive_vote(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    struct raft_message raft = {.type = RAFT_REQUEST_VOTE,
                                .request_vote = {.version = 2,
                                                 .term = message->for_term,
                                                 .candidate_id = message->from,
                                                 .last_log_index = message->last_index,
                                                 .last_log_term = message->last_term,
                                                 .disrupt_leader = message->depose,
                                                 .pre_vote = message->trial}};

    if (self->now_ms - self->start_ms < self->raft.election_timeout) {
        return 0;
    }
    forget_leader(self);
    return receive_vote_as(self, message, &raft);
}

/* Libraft looks at the state of a candidate also when there is none. And it does
 * not tell a candidate of a trial that others have a higher term, so that it
 * would ask for ever. */
static int receive_voted(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    struct raft_message raft = {.type = RAFT_REQUEST_VOTE_RESULT,
                                .request_vote_result = {.version = 2,
                                                        .term = message->for_term,
                                                        .vote_granted = message->granted,
                                                        .pre_vote = message->trial}};
    uint64_t term = self->raft.current_term;

    if (self->raft.state != RAFT_CANDIDATE ||
        message->trial != self->raft.candidate_state.in_pre_vote ||
        (message->granted && message->for_term != term + (message->trial ? 1 : 0))) {
        return 0;
    }
    if (message->trial && !message->granted && message->term > term + 1) {
        raft.request_vote_result.term = message->term;
    }
    return receive_raft(self, message, &raft);
}

/* An index that was acknowledged cannot be rejected: that is of old, and libraft
 * would count below zero. */
static int receive_appended(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    struct raft_message raft = {.type = RAFT_APPEND_ENTRIES_RESULT,
                                .append_entries_result = {.version = 2,
                                                          .term = message->term,
                                                          .rejected = message->rejected,
                                                          .last_log_index = message->last_index}};
    raft_index match = 0;

    if (message->rejected > 0 && raft_match_index(&self->raft, message->from, &match) == 0 &&
        message->rejected <= match) {
        raft.append_entries_result.rejected = REJECTED_OF_OLD;
    }
    return receive_raft(self, message, &raft);
}

static int receive_snapshot(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    const ps_quorum_snapshot_t *snapshot = &message->snapshot;
    struct raft_message raft = {.type = RAFT_INSTALL_SNAPSHOT,
                                .install_snapshot = {.term = message->term,
                                                     .last_index = snapshot->index,
                                                     .last_term = snapshot->term,
                                                     .conf_index = snapshot->members_index}};

    if (self->is_installing || message->term < self->raft.current_term) {
        return 0;
    }
    return ps_quorum_members_to_raft(&snapshot->members, &raft.install_snapshot.conf)
               ? receive_raft(self, message, &raft) /* takes conf */
               : RAFT_NOMEM;
}

static int receive_stand(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    struct raft_message raft = {.type = RAFT_TIMEOUT_NOW,
                                .timeout_now = {.term = message->term,
                                                .last_log_index = message->last_index,
                                                .last_log_term = message->last_term}};
    ps_quorum_members_t members;

    ps_quorum_current_members(self, &members); /* begin_term would be needed */
    return ps_quorum_votes_alone(&members, self->member) ? 0 : receive_raft(self, message, &raft);
}

static int dispatch(ps_quorum_t *self, const ps_quorum_message_t *message)
{
    switch ((int)message->kind) {
    case PS_QUORUM_VOTE:
        return receive_vote(self, message);
    case PS_QUORUM_VOTED:
        return receive_voted(self, message);
    case PS_QUORUM_APPEND:
        return message->term < self->raft.current_term ? receive_old_append(self, message)
                                                       : receive_append(self, message);
    case PS_QUORUM_APPENDED:
        return receive_appended(self, message);
    case PS_QUORUM_SNAPSHOT:
        return receive_snapshot(self, message);
    default:
        return receive_stand(self, message);
    }
}

static psd_status_t check_address(const ps_quorum_t *self, const ps_quorum_message_t *message,
                                  psd_error_t *err)
{
    char theirs[PS_ID_TEXT_SIZE];
    char ours[PS_ID_TEXT_SIZE];
    bool is_cluster = !ps_id_equal(&message->cluster, &self->cluster);

    if (is_cluster || !ps_id_equal(&message->lineage, &self->lineage)) {
        ps_id_format(is_cluster ? &message->cluster : &message->lineage, theirs);
        ps_id_format(is_cluster ? &self->cluster : &self->lineage, ours);
        return psd_error_set(
            err, PSD_CLUSTER, "member %" PRIu64 " of node \"%s\" is of %s %s, this one of %s",
            message->from, message->node, is_cluster ? "cluster" : "lineage", theirs, ours);
    }
    if (message->to != self->member) {
        return psd_error_set(err, PSD_INCARNATION,
                             "message to member %" PRIu64 ", this is member %" PRIu64, message->to,
                             self->member);
    }
    for (unsigned i = 0; i < self->raft.configuration.n; i++) {
        const struct raft_server *server = &self->raft.configuration.servers[i];

        if (server->id == message->from && strcmp(server->address, message->node) != 0) {
            return psd_error_set(err, PSD_INCARNATION,
                                 "member %" PRIu64 " is of node \"%s\", and says \"%s\"",
                                 message->from, server->address, message->node);
        }
    }
    return message->from == self->member
               ? psd_error_set(err, PSD_INCARNATION, "it has this member's id %" PRIu64,
                               self->member)
               : PSD_OK;
}

/* What no right peer says in this state. */
static psd_status_t check_state(const ps_quorum_t *self, const ps_quorum_message_t *message,
                                psd_error_t *err)
{
    const ps_quorum_snapshot_t *snapshot = &message->snapshot;
    uint64_t term = ps_quorum_term_of(self, snapshot->index);

    if (!leads(message) || message->term < self->raft.current_term) {
        return PSD_OK;
    }
    if (is_led_by_another(self, message)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "member %" PRIu64 " of node \"%s\" leads term %" PRIu64
                             ", as this one does",
                             message->from, message->node, message->term);
    }
    if (message->kind == PS_QUORUM_APPEND) {
        return check_committed(self, message, err);
    }
    return term != 0 && term != snapshot->term && snapshot->index <= self->raft.commit_index
               ? contradiction(message, snapshot->index, err)
               : PSD_OK;
}

/* What comes late of one that lives: of the leader whose last word is remembered, also when
 * another one leads by now, or, at a leader, of any member. heard_ms: its last message in that
 * life; 0: none. */
static void note_gap(ps_quorum_t *self, const ps_quorum_message_t *message, uint64_t heard_ms)
{
    bool is_of_leader =
        leads(message) && message->from == self->led_by && message->term == self->led_term;

    if (is_of_leader) {
        ps_patience_note(&self->patience, self->now_ms - self->led_ms, self->now_ms);
    } else if (self->raft.state == RAFT_LEADER && heard_ms != 0) {
        ps_patience_note(&self->patience, self->now_ms - heard_ms, self->now_ms);
    }
}

psd_status_t ps_quorum_receive(ps_quorum_t *self, uint64_t now_ms, ps_bytes_t bytes,
                               psd_error_t *err)
{
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t message = {0};
    ps_quorum_peer_t *peer = NULL;
    uint64_t heard_ms = 0;
    psd_status_t rc = PSD_OK;

    if (!ps_quorum_begin(self, now_ms, 0)) {
        return ps_quorum_out_of_memory(self, err);
    }
    rc = ps_quorum_message_decode(bytes, &message, err);
    if (rc == PSD_OK) {
        rc = check_address(self, &message, err);
    }
    if (rc == PSD_OK) {
        rc = check_state(self, &message, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    peer = ps_quorum_peer_of(self, message.from);
    if (peer == NULL || !ps_quorum_cache_reserve(&self->cache, message.n_entries + 1)) {
        return ps_quorum_out_of_memory(self, err);
    }
    heard_ms = peer->life == message.life ? peer->heard_ms : 0;
    if (!ps_quorum_peer_hear(peer, message.life, message.number, self->now_ms)) {
        return PSD_OK;
    }
    note_gap(self, &message, heard_ms);
    if (message.to_life == self->life && message.term == self->raft.current_term) {
        ps_quorum_peer_note_echo(peer, message.echo);
    }
    rc = ps_quorum_settle(self, dispatch(self, &message), err);
    if (leads(&message) && message.term == self->raft.current_term &&
        ps_quorum_leader(self) == message.from) {
        self->led_ms = self->now_ms;
        self->led_by = message.from;
        self->led_term = message.term;
    }
    ps_quorum_keep_pace(self);
    return rc;
}
