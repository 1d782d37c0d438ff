/* SPDX-License-Identifier: Apache-2.0 */
/* Steps towards the members that are wanted, none of them below a majority. */
#include "protocol/quorum/quorum_care.h"

#include <stdio.h>
#include <string.h>

#define NAMES_SIZE 300

static bool goes(const ps_care_member_t *member)
{
    return member->is_lost || !member->is_node || member->drains;
}

static bool is_voter(const ps_care_member_t *member)
{
    return member->role == PS_QUORUM_VOTER;
}

/* A stand-by that may become a voter now. */
static bool is_ready(const ps_care_member_t *member)
{
    return !is_voter(member) && member->is_up && member->caught_up && !goes(member);
}

typedef struct counts {
    uint32_t n_voters;
    uint32_t n_up;    /* of them */
    uint32_t n_stays; /* of them: do not go */
    uint32_t n_ready; /* stand-bys */
    uint32_t n_good;  /* members that do not go */
} counts_t;

static counts_t count(const ps_care_t *care)
{
    counts_t counts = {0};

    for (size_t i = 0; i < care->n_members; i++) {
        const ps_care_member_t *member = &care->members[i];

        counts.n_voters += is_voter(member) ? 1 : 0;
        counts.n_up += is_voter(member) && member->is_up ? 1 : 0;
        counts.n_stays += is_voter(member) && !goes(member) ? 1 : 0;
        counts.n_ready += is_ready(member) ? 1 : 0;
        counts.n_good += goes(member) ? 0 : 1;
    }
    return counts;
}

static bool is_majority(uint32_t n, uint32_t of)
{
    return n > of / 2;
}

/* Members that stay there, or of them only voters. */
static uint32_t n_in_domain(const ps_care_t *care, const char *domain, bool voters)
{
    uint32_t n = 0;

    for (size_t i = 0; i < care->n_members; i++) {
        const ps_care_member_t *member = &care->members[i];

        n += !goes(member) && (!voters || is_voter(member)) && strcmp(member->domain, domain) == 0
                 ? 1
                 : 0;
    }
    return n;
}

/* After it is no voter any more. */
static bool may_leave(const counts_t *counts, const ps_care_member_t *member)
{
    return counts->n_voters > 1 &&
           is_majority(counts->n_up - (member->is_up ? 1 : 0), counts->n_voters - 1);
}

static ps_care_step_t nothing(void)
{
    return (ps_care_step_t){.kind = PS_CARE_NONE};
}

static ps_care_step_t step(ps_care_kind_t kind, const ps_care_member_t *member)
{
    return (ps_care_step_t){.kind = kind, .member = member->id, .node = member->node};
}

/* An even number of voters survives no more than the odd number below it: where no voter
 * goes, two are promoted, one after the other, or none. */
static bool may_promote(const ps_care_t *care, const counts_t *counts)
{
    bool is_odd_after = counts->n_stays % 2 == 0;

    return counts->n_ready > 0 && counts->n_stays < care->voters &&
           counts->n_voters <= care->voters &&
           is_majority(counts->n_up + 1, counts->n_voters + 1) &&
           (is_odd_after || counts->n_ready > 1 || counts->n_stays < counts->n_voters);
}

static ps_care_step_t promote(const ps_care_t *care)
{
    const ps_care_member_t *best = NULL;
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i < care->n_members; i++) {
        const ps_care_member_t *member = &care->members[i];
        uint32_t n = n_in_domain(care, member->domain, true);

        if (is_ready(member) && n < least) {
            best = member;
            least = n;
        }
    }
    return best == NULL ? nothing() : step(PS_CARE_PROMOTE, best);
}

/* Its node is up, and no member speaks there: the node starts without its log, and can
 * be invited again only when it is no member. */
static bool has_lost_its_part(const ps_care_member_t *member)
{
    return member->is_lost && member->is_node_up;
}

/* A voter that goes leaves when there are enough others, or when nobody can take its
 * place and its node is none any more, or has lost its part of the registry. */
static ps_care_step_t release_voter(const ps_care_t *care, const counts_t *counts)
{
    const ps_care_member_t *heir = ps_care_heir(care);

    for (size_t i = 0; i < care->n_members; i++) {
        const ps_care_member_t *member = &care->members[i];
        bool is_due = counts->n_voters > care->voters || !member->is_node ||
                      (has_lost_its_part(member) && counts->n_ready == 0);

        if (!is_voter(member) || !goes(member) || !is_due) {
            continue;
        }
        if (member->leads && heir != NULL) {
            return step(PS_CARE_TRANSFER, heir);
        }
        if (!member->leads && may_leave(counts, member)) {
            return step(PS_CARE_REMOVE, member);
        }
    }
    return nothing();
}

/* A stand-by that goes makes room for a node that comes. */
static ps_care_step_t release_standby(const ps_care_t *care)
{
    for (size_t i = 0; i < care->n_members; i++) {
        const ps_care_member_t *member = &care->members[i];

        if (!is_voter(member) && goes(member) &&
            (!member->is_node || has_lost_its_part(member) || care->n_nodes > 0)) {
            return step(PS_CARE_REMOVE, member);
        }
    }
    return nothing();
}

static ps_care_step_t invite(const ps_care_t *care)
{
    const ps_care_node_t *best = NULL;
    ps_care_step_t next = nothing();
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i < care->n_nodes; i++) {
        const ps_care_node_t *node = &care->nodes[i];
        uint32_t n = n_in_domain(care, node->domain, false);

        if (best == NULL || node->failed < best->failed ||
            (node->failed == best->failed && n < least)) {
            best = node;
            least = n;
        }
    }
    if (best != NULL) {
        next.kind = PS_CARE_INVITE;
        next.node = best->node;
    }
    return next;
}

ps_care_step_t ps_care_next(const ps_care_t *care)
{
    const counts_t counts = count(care);
    const uint32_t standbys = care->voters >= 3 ? PS_CARE_STANDBYS : 0;
    ps_care_step_t next = nothing();

    if (may_promote(care, &counts)) {
        return promote(care);
    }
    next = release_voter(care, &counts);
    if (next.kind == PS_CARE_NONE) {
        next = release_standby(care);
    }
    return next.kind == PS_CARE_NONE && care->n_members < PS_QUORUM_MEMBERS_MAX &&
                   counts.n_good < care->voters + standbys
               ? invite(care)
               : next;
}

const ps_care_member_t *ps_care_heir(const ps_care_t *care)
{
    for (size_t i = 0; i < care->n_members; i++) {
        const ps_care_member_t *member = &care->members[i];

        if (is_voter(member) && !member->leads && member->is_up && member->caught_up &&
            !goes(member)) {
            return member;
        }
    }
    return NULL;
}

const ps_care_member_t *ps_care_member(const ps_care_t *care, const char *node)
{
    for (size_t i = 0; i < care->n_members; i++) {
        if (strcmp(care->members[i].node, node) == 0) {
            return &care->members[i];
        }
    }
    return NULL;
}

psd_status_t ps_care_check_leaves(const ps_care_t *care, const char *node, psd_error_t *err)
{
    const counts_t counts = count(care);
    const ps_care_member_t *leaves = ps_care_member(care, node);
    char names[NAMES_SIZE] = "";

    if (leaves == NULL || !is_voter(leaves) || may_leave(&counts, leaves)) {
        return PSD_OK;
    }
    if (counts.n_voters <= 1) {
        return psd_error_set(err, PSD_NODE_HELD, "node \"%s\" has the only vote of the registry",
                             node);
    }
    for (size_t i = 0; i < care->n_members; i++) {
        const ps_care_member_t *member = &care->members[i];
        size_t used = strlen(names);

        if (is_voter(member) && member != leaves && !member->is_up) {
            (void)snprintf(names + used, sizeof names - used, "%s\"%s\"", used == 0 ? "" : ", ",
                           member->node);
        }
    }
    return psd_error_set(err, PSD_NODE_HELD,
                         "without node \"%s\", no majority of the registry's voters is up: %u of "
                         "%u; silent: %s",
                         node, counts.n_up - (leaves->is_up ? 1 : 0), counts.n_voters - 1, names);
}
