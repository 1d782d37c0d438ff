/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_care - which member of the registry to add, promote, replace or remove
 *
 * What     One step at a time: the leader looks at all members and at the nodes
 *          that could be one, takes the step, and looks again. Voters are as
 *          many as are wanted; two more members stand by, with all that is
 *          committed. A voter that is lost is replaced: first a stand-by becomes
 *          a voter, then the lost one is removed. No step leaves less than a
 *          majority of voters that are up.
 * Shape    A voter goes when it is lost, its node was removed from the cluster,
 *          or its node drains.
 * Owner    Plain values; texts are borrowed until the call returns, in a step as long
 *          as those that it was made of.
 * Threads  Pure functions.
 */
#ifndef PS_PROTOCOL_QUORUM_CARE_H
#define PS_PROTOCOL_QUORUM_CARE_H

#include "protocol/quorum/quorum_message.h"

#define PS_CARE_STANDBYS 2 /* that are wanted where voters are 3 or more */

typedef struct ps_care_member {
    uint64_t id;
    const char *node;
    const char *domain; /* what fails together; members prefer different ones */
    ps_quorum_role_t role;
    bool leads;
    bool is_up;      /* it was heard lately */
    bool caught_up;  /* it has all that is committed */
    bool is_lost;    /* it has been silent for repair_after */
    bool is_node;    /* its node belongs to the cluster … */
    bool is_node_up; /* … and is up, whether the member is or not */
    bool drains;     /* its node does */
} ps_care_member_t;

/* A node that is up, does not drain, and is no member. */
typedef struct ps_care_node {
    const char *node;
    const char *domain;
    uint64_t failed; /* 0: it was never invited in vain; else greater for a later failure */
} ps_care_node_t;

typedef struct ps_care {
    const ps_care_member_t *members;
    size_t n_members;
    const ps_care_node_t *nodes; /* in the order of joining the cluster */
    size_t n_nodes;
    uint32_t voters; /* that are wanted */
} ps_care_t;

typedef enum ps_care_kind {
    PS_CARE_NONE = 0,
    PS_CARE_INVITE,   /* node: it shall stand by */
    PS_CARE_PROMOTE,  /* member: it shall vote */
    PS_CARE_REMOVE,   /* member */
    PS_CARE_TRANSFER, /* member: it shall lead */
} ps_care_kind_t;

typedef struct ps_care_step {
    ps_care_kind_t kind;
    uint64_t member;
    const char *node; /* of the member, or that is to be one */
} ps_care_step_t;

/* The next step. */
ps_care_step_t ps_care_next(const ps_care_t *care);
/* The voter that should lead when the leader hands its lead over: up, caught up, not
 * going. NULL: there is none. */
const ps_care_member_t *ps_care_heir(const ps_care_t *care);
/* The member on that node; NULL: there is none. */
const ps_care_member_t *ps_care_member(const ps_care_t *care, const char *node);
/* PSD_OK when that member may be removed, or made a stand-by: a majority of the other
 * voters is up. Errors: PSD_NODE_HELD naming those that are not. */
PSD_MUST_CHECK psd_status_t ps_care_check_leaves(const ps_care_t *care, const char *node,
                                                 psd_error_t *err);
#endif
