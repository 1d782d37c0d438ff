/* SPDX-License-Identifier: Apache-2.0 */
/* In place of the member, in a psd without libraft: nobody gets one. */
#include "base/alloc.h"
#include "protocol/quorum/quorum.h"

bool ps_quorum_is_possible(void)
{
    return false;
}

psd_status_t ps_quorum_new(const ps_quorum_args_t *args, ps_quorum_t **ret_quorum, psd_error_t *err)
{
    (void)args;
    (void)ret_quorum;
    return psd_error_set(err, PSD_UNSUPPORTED,
                         "this psd was built without libraft: it can keep a registry alone, and "
                         "cannot be a member");
}

void ps_quorum_destroy(ps_quorum_t **self_p)
{
    (void)self_p;
}

bool ps_quorum_is_broken(const ps_quorum_t *self)
{
    (void)self;
    return true;
}

bool ps_quorum_next(ps_quorum_t *self, ps_quorum_effect_t *ret_effect)
{
    (void)self;
    (void)ret_effect;
    return false;
}

psd_status_t ps_quorum_receive(ps_quorum_t *self, uint64_t now_ms, ps_bytes_t bytes,
                               psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    (void)bytes;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

psd_status_t ps_quorum_flushed(ps_quorum_t *self, uint64_t now_ms, uint64_t op, psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    (void)op;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

psd_status_t ps_quorum_tick(ps_quorum_t *self, uint64_t now_ms, psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

uint64_t ps_quorum_deadline(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

psd_status_t ps_quorum_propose(ps_quorum_t *self, uint64_t now_ms, const ps_bytes_t *commands,
                               size_t n, uint64_t *ret_first, psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    (void)commands;
    (void)n;
    (void)ret_first;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

psd_status_t ps_quorum_propose_members(ps_quorum_t *self, uint64_t now_ms,
                                       ps_quorum_change_t change, uint64_t member, const char *node,
                                       uint64_t *ret_index, psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    (void)change;
    (void)member;
    (void)node;
    (void)ret_index;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

psd_status_t ps_quorum_transfer(ps_quorum_t *self, uint64_t now_ms, uint64_t member,
                                psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    (void)member;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

psd_status_t ps_quorum_snapshot_taken(ps_quorum_t *self, uint64_t now_ms, uint64_t index,
                                      uint32_t trailing, psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    (void)index;
    (void)trailing;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

psd_status_t ps_quorum_snapshot_sent(ps_quorum_t *self, uint64_t now_ms, uint64_t to,
                                     const ps_quorum_snapshot_t *snapshot, psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    (void)to;
    (void)snapshot;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

psd_status_t ps_quorum_installed(ps_quorum_t *self, uint64_t now_ms, psd_error_t *err)
{
    (void)self;
    (void)now_ms;
    return psd_error_set(err, PSD_UNSUPPORTED, "there is no member");
}

ps_quorum_state_t ps_quorum_state(const ps_quorum_t *self)
{
    (void)self;
    return PS_QUORUM_FOLLOWER;
}

uint32_t ps_quorum_patience_ms(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

uint64_t ps_quorum_term(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

uint64_t ps_quorum_leader(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

uint64_t ps_quorum_commit_index(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

uint64_t ps_quorum_last_index(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

uint64_t ps_quorum_flushed_index(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

uint64_t ps_quorum_applicable(const ps_quorum_t *self)
{
    (void)self;
    return 0;
}

const ps_quorum_entry_t *ps_quorum_entry(const ps_quorum_t *self, uint64_t index)
{
    (void)self;
    (void)index;
    return NULL;
}

uint64_t ps_quorum_members(const ps_quorum_t *self, ps_quorum_members_t *ret_members)
{
    (void)self;
    (void)ret_members;
    return 0;
}

uint64_t ps_quorum_members_committed(const ps_quorum_t *self, ps_quorum_members_t *ret_members)
{
    (void)self;
    (void)ret_members;
    return 0;
}

void ps_quorum_members_sure(const ps_quorum_t *self, ps_quorum_members_t *ret_members)
{
    (void)self;
    *ret_members = (ps_quorum_members_t){0};
}

bool ps_quorum_is_changing(const ps_quorum_t *self)
{
    (void)self;
    return false;
}

bool ps_quorum_peer_info(const ps_quorum_t *self, uint64_t member, ps_quorum_peer_info_t *ret_info)
{
    (void)self;
    (void)member;
    (void)ret_info;
    return false;
}

bool ps_quorum_has_caught_up(const ps_quorum_t *self, uint64_t now_ms, uint64_t member)
{
    (void)self;
    (void)now_ms;
    (void)member;
    return false;
}

uint64_t ps_quorum_heard_majority_ms(const ps_quorum_t *self, uint64_t now_ms)
{
    (void)self;
    (void)now_ms;
    return 0;
}
