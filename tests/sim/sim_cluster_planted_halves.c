/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a member stores the state and its index in two transactions, and
 * falls between them. */
#include "sim_cluster_planted.h"

void __real_cluster_member_crash(cluster_t *self, uint32_t at, bool power);
void __wrap_cluster_member_crash(cluster_t *self, uint32_t at, bool power);

void __wrap_cluster_member_crash(cluster_t *self, uint32_t at, bool power)
{
    cluster_member_t *member = &self->members[at];
    ps_applied_t *applied = &member->db.applied;

    if (member->quorum != NULL && applied->term > CLUSTER_FIRST_TERM) {
        applied->index--;
        applied->term = self->story.entries[applied->index - 1].term;
    }
    __real_cluster_member_crash(self, at, power);
}

int main(void)
{
    return cluster_planted_main("index and state in two transactions");
}
