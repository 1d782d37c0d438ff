/* SPDX-License-Identifier: Apache-2.0 */
/* Members and entries as libraft wants them. */
#include "protocol/quorum/quorum_raft.h"

#include <string.h>

#include "base/alloc.h"

/* ---- members ---- */

bool ps_quorum_members_to_raft(const ps_quorum_members_t *members, struct raft_configuration *conf)
{
    raft_configuration_init(conf);
    for (uint32_t i = 0; i < members->n; i++) {
        const ps_quorum_member_t *member = &members->at[i];
        int role = member->role == PS_QUORUM_VOTER ? RAFT_VOTER : RAFT_STANDBY;

        if (raft_configuration_add(conf, member->id, member->node, role) != 0) {
            raft_configuration_close(conf);
            raft_configuration_init(conf);
            return false;
        }
    }
    return true;
}

void ps_quorum_members_of_raft(const struct raft_configuration *conf,
                               ps_quorum_members_t *ret_members)
{
    *ret_members = (ps_quorum_members_t){.n = conf->n};
    for (unsigned i = 0; i < conf->n; i++) {
        ps_quorum_member_t *member = &ret_members->at[i];

        member->id = conf->servers[i].id;
        member->role = conf->servers[i].role == RAFT_VOTER ? PS_QUORUM_VOTER : PS_QUORUM_STANDBY;
        (void)memccpy(member->node, conf->servers[i].address, '\0', sizeof member->node - 1);
    }
}

/* Is it the only voter? */
bool ps_quorum_votes_alone(const ps_quorum_members_t *members, uint64_t id)
{
    const ps_quorum_member_t *member = ps_quorum_members_find(members, id);

    return member != NULL && member->role == PS_QUORUM_VOTER &&
           ps_quorum_members_voters(members) == 1;
}

static bool add_members(const ps_quorum_entry_t *entry, ps_buffer_t *block)
{
    struct raft_configuration conf;
    struct raft_buffer bytes = {0};
    ps_quorum_members_t members;
    bool ok = ps_quorum_members_decode((ps_bytes_t){entry->bytes.data, entry->bytes.size}, &members,
                                       NULL) == PSD_OK &&
              ps_quorum_members_to_raft(&members, &conf);

    if (!ok) {
        return false;
    }
    ok = raft_configuration_encode(&conf, &bytes) == 0 &&
         ps_buffer_append(block, bytes.base, bytes.len);
    raft_free(bytes.base);
    raft_configuration_close(&conf);
    return ok;
}

void ps_quorum_raft_entries_free(ps_raft_entries_t *self)
{
    raft_free(self->at);
    raft_free(self->batch);
    *self = (ps_raft_entries_t){0};
}

/* Where libraft looks at the bytes of no entry, all begin at the block's begin. */
static bool raft_entries_fill(ps_raft_entries_t *self, const ps_quorum_entry_t *entries, size_t n,
                              ps_buffer_t *block)
{
    for (size_t i = 0; i < n; i++) {
        struct raft_entry *at = &self->at[i];
        size_t begin = block->size;

        at->term = entries[i].term;
        at->type = entries[i].kind == PS_QUORUM_CHANGE    ? RAFT_CHANGE
                   : entries[i].kind == PS_QUORUM_BARRIER ? RAFT_BARRIER
                                                          : RAFT_COMMAND;
        if (at->type == RAFT_CHANGE && !add_members(&entries[i], block)) {
            return false;
        }
        at->buf.len = block->size - begin;
    }
    self->batch = raft_malloc(block->size + 1);
    if (self->batch == NULL) {
        return false;
    }
    for (size_t i = 0, at = 0; i < n; at += self->at[i++].buf.len) {
        self->at[i].buf.base = self->batch + at;
        self->at[i].batch = self->batch;
    }
    if (block->size > 0) {
        memcpy(self->batch, block->data, block->size);
    }
    return true;
}

/* n is not 0. false: no memory. */
bool ps_quorum_raft_entries_of(const ps_quorum_entry_t *entries, size_t n, ps_raft_entries_t *ret)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t block = {0};

    *ret = (ps_raft_entries_t){.at = raft_calloc(n, sizeof *ret->at)};
    if (ret->at == NULL || !raft_entries_fill(ret, entries, n, &block)) {
        ps_quorum_raft_entries_free(ret);
        return false;
    }
    return true;
}
