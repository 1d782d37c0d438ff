/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a stand-by counts as a voter. */
#include "sim_quorum_planted.h"

struct raft_configuration;

bool __real_ps_quorum_members_to_raft(const ps_quorum_members_t *members,
                                      struct raft_configuration *conf);
bool __wrap_ps_quorum_members_to_raft(const ps_quorum_members_t *members,
                                      struct raft_configuration *conf);

bool __wrap_ps_quorum_members_to_raft(const ps_quorum_members_t *members,
                                      struct raft_configuration *conf)
{
    ps_quorum_members_t all = *members;

    for (uint32_t i = 0; i < all.n; i++) {
        all.at[i].role = PS_QUORUM_VOTER;
    }
    return __real_ps_quorum_members_to_raft(&all, conf);
}

int main(void)
{
    return quorum_planted_main("a stand-by counts");
}
