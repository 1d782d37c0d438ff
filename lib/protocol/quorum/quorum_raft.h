/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files around libraft share
 *
 * What     The only file that includes <raft.h>. Libraft's assertions are not
 *          compiled in: what it assumes of an event is checked here or in
 *          quorum_message.c. Entries stay in the cache; libraft sees their terms and
 *          kinds, and the members of changes.
 * Owner    raft_step takes some of what it is given, and frees some, by rules that
 *          differ for each event; each call says which.
 */
#ifndef PS_PROTOCOL_QUORUM_RAFT_H
#define PS_PROTOCOL_QUORUM_RAFT_H

#include <raft.h>

#include "protocol/quorum/patience.h"
#include "protocol/quorum/quorum.h"
#include "protocol/quorum/quorum_cache.h"
#include "protocol/quorum/quorum_effects.h"
#include "protocol/quorum/quorum_peers.h"

struct ps_quorum {
    struct raft raft;
    bool is_raft; /* it is initialised */
    bool is_broken;
    uint64_t member;
    char node[PS_NAME_MAX + 1];
    ps_id_t cluster;
    ps_id_t lineage;
    uint64_t life;
    uint64_t number; /* of the last message */
    size_t message_bytes;
    uint64_t now_ms;
    uint64_t start_ms;
    uint64_t tick_ms;
    uint64_t led_ms;   /* when its leader spoke last … */
    uint64_t led_by;   /* … which that was … */
    uint64_t led_term; /* … in that term */
    ps_patience_t patience;
    ps_quorum_cache_t cache;
    ps_quorum_peers_t peers;
    ps_quorum_effects_t effects;
    /* of the event that is under way: entries that may join the log */
    ps_quorum_entry_t *incoming;
    uint64_t incoming_first;
    bool is_of_old; /* an APPEND of an earlier term */
    bool was_rejected;
    bool took_entries;    /* the last step did */
    uint64_t lead_term;   /* the last one in which it led */
    uint64_t commit_seen; /* changes up to here are known to libraft as committed */
    uint64_t applicable;  /* the last COMMITTED */
    ps_quorum_effect_t role;
    bool is_installing;
    struct raft_snapshot_metadata metadata; /* of what is installed */
    ps_quorum_snapshot_t installing;
};

/* What libraft is to see of entries: an array, and one block with the members of
 * the changes, which it frees or not by its own rules. */
typedef struct ps_raft_entries {
    struct raft_entry *at;
    uint8_t *batch;
} ps_raft_entries_t;

/* ---- quorum_raft.c ---- */

/* A configuration that the caller closes. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_members_to_raft(const ps_quorum_members_t *members,
                                              struct raft_configuration *conf);
void ps_quorum_members_of_raft(const struct raft_configuration *conf,
                               ps_quorum_members_t *ret_members);
/* It is the only voter. */
bool ps_quorum_votes_alone(const ps_quorum_members_t *members, uint64_t id);
/* n is not 0. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_raft_entries_of(const ps_quorum_entry_t *entries, size_t n,
                                              ps_raft_entries_t *ret);
void ps_quorum_raft_entries_free(ps_raft_entries_t *self);

/* ---- quorum_step.c ---- */

/* Waits longer, or shorter, for silent members from now on, as their messages come. */
void ps_quorum_keep_pace(ps_quorum_t *self);
/* An event begins, which may add entries. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_begin(ps_quorum_t *self, uint64_t now_ms, size_t n_entries);
/* A step of libraft, its effects, and what follows from what it committed. Returns
 * an error of libraft, or RAFT_NOMEM. */
PSD_MUST_CHECK int ps_quorum_step(ps_quorum_t *self, struct raft_event *event);
/* The members that count since index are committed, if there is a change. */
PSD_MUST_CHECK int ps_quorum_commit_members(ps_quorum_t *self, uint64_t index);
/* The outcome of a step that libraft cannot refuse: on an error self is broken. */
PSD_MUST_CHECK psd_status_t ps_quorum_settle(ps_quorum_t *self, int rv, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_quorum_out_of_memory(ps_quorum_t *self, psd_error_t *err);
/* Sends a message whose kind and fields are set. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_send(ps_quorum_t *self, uint64_t to, ps_quorum_message_t *message);
PSD_MUST_CHECK bool ps_quorum_begin_term(ps_quorum_t *self);
void ps_quorum_current_members(const ps_quorum_t *self, ps_quorum_members_t *ret_members);
/* NULL: no memory. */
ps_quorum_peer_t *ps_quorum_peer_of(ps_quorum_t *self, uint64_t id);
/* The term of an entry, as libraft knows it; 0: it does not. */
uint64_t ps_quorum_term_of(const ps_quorum_t *self, uint64_t index);
#endif
