/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a member applies what is committed, though its own disk does not have it. */
#include "sim_quorum_planted.h"

uint64_t __wrap_ps_quorum_applicable(const ps_quorum_t *self);

uint64_t __wrap_ps_quorum_applicable(const ps_quorum_t *self)
{
    return ps_quorum_commit_index(self);
}

int main(void)
{
    return quorum_planted_main("applied ahead of the own disk");
}
