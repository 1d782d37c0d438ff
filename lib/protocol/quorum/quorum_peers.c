/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/quorum/quorum_peers.h"

#include "base/alloc.h"

void ps_quorum_peers_done(ps_quorum_peers_t *self)
{
    ps_free(self->at);
    *self = (ps_quorum_peers_t){0};
}

ps_quorum_peer_t *ps_quorum_peers_find(const ps_quorum_peers_t *self, uint64_t id)
{
    for (size_t i = 0; i < self->n; i++) {
        if (self->at[i].id == id) {
            return &self->at[i];
        }
    }
    return NULL;
}

/* The one whose place another may take; NULL: none. */
static ps_quorum_peer_t *find_idle(const ps_quorum_peers_t *self,
                                   const ps_quorum_members_t *members)
{
    ps_quorum_peer_t *idle = NULL;

    for (size_t i = 0; i < self->n; i++) {
        ps_quorum_peer_t *peer = &self->at[i];

        if (ps_quorum_members_find(members, peer->id) == NULL &&
            (idle == NULL || peer->heard_ms < idle->heard_ms)) {
            idle = peer;
        }
    }
    return idle;
}

ps_quorum_peer_t *ps_quorum_peers_get(ps_quorum_peers_t *self, uint64_t id,
                                      const ps_quorum_members_t *members)
{
    ps_quorum_peer_t *peer = ps_quorum_peers_find(self, id);

    if (peer != NULL) {
        return peer;
    }
    peer = self->n < PS_QUORUM_PEERS_MAX ? NULL : find_idle(self, members);
    if (peer == NULL) {
        if (!ps_grow(&self->at, &self->capacity, self->n + 1, sizeof *self->at)) {
            return NULL;
        }
        peer = &self->at[self->n++];
    }
    *peer = (ps_quorum_peer_t){.id = id};
    return peer;
}

void ps_quorum_peers_lead(ps_quorum_peers_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_quorum_peer_t *peer = &self->at[i];

        peer->n_sends = 0;
        peer->answered_ms = 0;
        peer->stand = 0;
        peer->is_sent_snapshot = false;
        peer->snapshot = 0;
    }
}

bool ps_quorum_peer_hear(ps_quorum_peer_t *self, uint64_t life, uint64_t number, uint64_t now_ms)
{
    if (life < self->life || (life == self->life && number <= self->number)) {
        return false;
    }
    self->life = life;
    self->number = number;
    self->heard_ms = now_ms;
    return true;
}

void ps_quorum_peer_note_send(ps_quorum_peer_t *self, uint64_t number, uint64_t now_ms)
{
    if (self->n_sends > 0 && self->sends[(self->n_sends - 1) % PS_QUORUM_SENDS].ms == now_ms) {
        return;
    }
    self->sends[self->n_sends++ % PS_QUORUM_SENDS] =
        (ps_quorum_send_t){.number = number, .ms = now_ms};
}

void ps_quorum_peer_note_echo(ps_quorum_peer_t *self, uint64_t number)
{
    for (size_t i = self->n_sends; i > 0 && i + PS_QUORUM_SENDS > self->n_sends; i--) {
        const ps_quorum_send_t *sent = &self->sends[(i - 1) % PS_QUORUM_SENDS];

        if (sent->number <= number) {
            self->answered_ms = sent->ms > self->answered_ms ? sent->ms : self->answered_ms;
            break;
        }
    }
    if (self->stand != 0 && number >= self->stand) {
        self->stand = 0;
    }
    if (self->snapshot != 0 && number >= self->snapshot) {
        self->snapshot = 0;
        self->is_sent_snapshot = false;
    }
}

uint64_t ps_quorum_peers_heard_ms(const ps_quorum_peers_t *self, const ps_quorum_members_t *members,
                                  uint64_t self_id, uint64_t now_ms)
{
    uint64_t times[PS_QUORUM_MEMBERS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < members->n; i++) {
        const ps_quorum_member_t *member = &members->at[i];
        const ps_quorum_peer_t *peer = ps_quorum_peers_find(self, member->id);
        uint64_t ms = member->id == self_id ? now_ms : peer == NULL ? 0 : peer->answered_ms;
        uint32_t at = n;

        if (peer != NULL && peer->stand != 0) {
            return 0; /* it may depose this leader at any time */
        }
        if (member->role != PS_QUORUM_VOTER) {
            continue;
        }
        for (n++; at > 0 && times[at - 1] < ms; at--) {
            times[at] = times[at - 1];
        }
        times[at] = ms;
    }
    return n == 0 ? 0 : times[n / 2];
}
