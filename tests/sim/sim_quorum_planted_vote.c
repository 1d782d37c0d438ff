/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a member forgets for whom it voted when it stops. */
#include "sim_quorum_planted.h"

void __wrap_disk_set_term(disk_t *self, uint64_t term, uint64_t vote);

void __wrap_disk_set_term(disk_t *self, uint64_t term, uint64_t vote)
{
    (void)vote;
    self->term = term;
    self->vote = 0;
}

int main(void)
{
    return quorum_planted_main("vote not stored");
}
