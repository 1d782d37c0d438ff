/* SPDX-License-Identifier: Apache-2.0 */
/* How many of the registry's voters are up, and what the loss of one more would mean. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMES_SIZE 300

typedef struct voters {
    uint32_t n; /* 0: the registry is alone */
    uint32_t n_up;
    const char *leader;
    char silent[NAMES_SIZE]; /* their names */
} voters_t;

static void count_voters(const ps_control_t *self, voters_t *ret)
{
    ps_member_sight_t sights[PS_QUORUM_MEMBERS_MAX];
    ps_quorum_view_t view;
    uint32_t n = ps_replica_look(self->is.replica, &view, sights);

    *ret = (voters_t){.leader = self->is.node};
    for (uint32_t i = 0; i < n; i++) {
        size_t used = strlen(ret->silent);

        if (sights[i].role != PS_QUORUM_VOTER) {
            continue;
        }
        ret->n++;
        ret->n_up += sights[i].is_up ? 1 : 0;
        if (!sights[i].is_up) {
            (void)snprintf(ret->silent + used, sizeof ret->silent - used, "%snode \"%s\"",
                           used == 0 ? "" : ", ", sights[i].node);
        }
    }
}

uint32_t ps_control_n_voters(const ps_control_t *self)
{
    voters_t voters;

    count_voters(self, &voters);
    return voters.n;
}

/* Several nodes are to have the registry, and one of several has it. With one node alone
 * there is nothing that could outlive it. */
static bool is_lonely(const ps_control_t *self, const voters_t *voters)
{
    return voters->n < 2 && self->is.config->registry.voters > 1 &&
           ps_registry_n_nodes(self->is.registry) > 1;
}

bool ps_control_add_voters(const ps_control_t *self, ps_doc_t *array)
{
    voters_t voters;
    char text[NAMES_SIZE + 200];

    count_voters(self, &voters);
    if (voters.n < 2 || voters.n_up == voters.n) {
        return true;
    }
    (void)snprintf(text, sizeof text,
                   "registry: %" PRIu32 " of %" PRIu32 " voters are up (silent: %s); %s",
                   voters.n_up, voters.n, voters.silent,
                   voters.n_up - 1 > voters.n / 2
                       ? "the loss of one more is survived"
                       : "the loss of one more would stop all changes of tables, jobs and copies");
    return ps_doc_append_text(array, text);
}

bool ps_control_add_lonely(const ps_control_t *self, ps_doc_t *array)
{
    voters_t voters;
    char text[NAMES_SIZE];

    count_voters(self, &voters);
    if (is_lonely(self, &voters)) {
        (void)snprintf(text, sizeof text,
                       ps_quorum_is_possible()
                           ? "registry: 1 of 1, on node \"%s\", not replicated until there are "
                             "%" PRIu64 " nodes"
                           : "registry: 1 of 1, on node \"%s\", whose psd was built without "
                             "libraft; registry.voters is %" PRIu64,
                       self->is.node, self->is.config->registry.voters);
    } else if (voters.n == 2) {
        (void)snprintf(text, sizeof text,
                       "registry: 2 voters; the loss of one would stop all changes of tables, jobs "
                       "and copies, as with one alone");
    } else {
        return true;
    }
    return ps_doc_append_text(array, text);
}

bool ps_control_add_registry(const ps_control_t *self, ps_doc_t *reply)
{
    ps_doc_t *doc = ps_doc_add_object(reply, "registry");
    voters_t voters;

    count_voters(self, &voters);
    return doc != NULL && ps_doc_set_bool(doc, "replicated", voters.n > 0) &&
           ps_doc_set_u64(doc, "voters", voters.n == 0 ? 1 : voters.n) &&
           ps_doc_set_u64(doc, "voters_up", voters.n == 0 ? 1 : voters.n_up) &&
           ps_doc_set_text(doc, "leader", voters.leader);
}
