/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_member_sight - the members of the registry, as one of them sees them
 *
 * What     Who has the registry, who leads, who is silent. Any member can say it,
 *          also while there is no leader; only a leader knows how far the others
 *          are.
 * Units    ms of the clock of ps_now_ms
 * Owner    Plain values. Threads: the main thread.
 */
#ifndef PS_SERVER_REPLICA_LIST_H
#define PS_SERVER_REPLICA_LIST_H

#include "server/quorum/replica.h"
#include "wire/messages/doc.h"

/* Silence after which a member is said to be silent: many heartbeats, and several
 * greetings between members of which none leads. */
#define PS_MEMBER_SILENT_MS 2000

typedef struct ps_member_sight {
    uint64_t id;
    char node[PS_NAME_MAX + 1];
    ps_quorum_role_t role;
    bool leads;
    bool is_self;
    bool is_up;        /* it is this one, or was heard lately */
    bool caught_up;    /* this one leads, and that one has all that is committed */
    uint64_t heard_ms; /* when it was last heard; 0: never */
    uint64_t match;    /* its log is flushed up to here; 0: unknown */
} ps_member_sight_t;

/* All members, in the order of joining; 0: the registry is alone, or this node does not know
 * them yet. */
uint32_t ps_replica_look(const ps_replica_t *self, ps_quorum_view_t *ret_view,
                         ps_member_sight_t ret_members[PS_QUORUM_MEMBERS_MAX]);

/*
 * Adds what `pscli cluster registry list` shows to an answer.
 *
 * node    in  this node's name
 * control in  its control port
 *
 * false: no memory.
 */
PSD_MUST_CHECK bool ps_replica_list(const ps_replica_t *self, const char *node, const char *control,
                                    ps_doc_t *reply);
#endif
