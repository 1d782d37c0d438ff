/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_quorum_peers - what a member has heard from each of the others
 *
 * What     Libraft wants the messages of each pair in order and without repeats:
 *          a message has its sender's life and a number that grows, and what is
 *          older than the last one is dropped. A message also has the highest number
 *          that its sender has heard (the echo). From it follows when a leader was
 *          last known to be one.
 * Shape    An array; of those that are no members the longest silent one goes.
 * Threads  Confined to one.
 */
#ifndef PS_PROTOCOL_QUORUM_PEERS_H
#define PS_PROTOCOL_QUORUM_PEERS_H

#include "protocol/quorum/quorum_message.h"

#define PS_QUORUM_PEERS_MAX 64
#define PS_QUORUM_SENDS 256 /* different ms at which a leader sent to a peer */

typedef struct ps_quorum_send {
    uint64_t number; /* of the first message at that time */
    uint64_t ms;
} ps_quorum_send_t;

typedef struct ps_quorum_peer {
    uint64_t id;
    uint64_t life;   /* 0: never heard */
    uint64_t number; /* the highest one of that life */
    uint64_t heard_ms;
    /* of a leader; from its begin */
    ps_quorum_send_t sends[PS_QUORUM_SENDS];
    size_t n_sends;       /* counts on */
    uint64_t answered_ms; /* it has answered what was sent at that time or later; 0: nothing */
    uint64_t stand;       /* the number of a STAND that it may not have seen; 0: none */
    bool is_sent_snapshot;
    uint64_t snapshot; /* the number of the SNAPSHOT that ends it; 0: not sent yet */
} ps_quorum_peer_t;

typedef struct ps_quorum_peers {
    ps_quorum_peer_t *at; /* owned */
    size_t n;
    size_t capacity;
} ps_quorum_peers_t;

void ps_quorum_peers_done(ps_quorum_peers_t *self);
/* NULL: none. */
ps_quorum_peer_t *ps_quorum_peers_find(const ps_quorum_peers_t *self, uint64_t id);
/* The peer, a new one if need be. members: those stay. NULL: no memory. */
ps_quorum_peer_t *ps_quorum_peers_get(ps_quorum_peers_t *self, uint64_t id,
                                      const ps_quorum_members_t *members);
/* A leader begins: forgets what earlier ones noted. */
void ps_quorum_peers_lead(ps_quorum_peers_t *self);

/* Notes a message. false: it is old, or a repeat, and to be dropped. */
PSD_MUST_CHECK bool ps_quorum_peer_hear(ps_quorum_peer_t *self, uint64_t life, uint64_t number,
                                        uint64_t now_ms);
/* A leader sends it a message that a follower answers. */
void ps_quorum_peer_note_send(ps_quorum_peer_t *self, uint64_t number, uint64_t now_ms);
/* It has heard all up to a number of this life, in this term. */
void ps_quorum_peer_note_echo(ps_quorum_peer_t *self, uint64_t number);
/* ps_quorum_heard_majority_ms of the leader `self_id`. */
uint64_t ps_quorum_peers_heard_ms(const ps_quorum_peers_t *self, const ps_quorum_members_t *members,
                                  uint64_t self_id, uint64_t now_ms);
#endif
