/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a leader serves reads for as long as it thinks that it leads. */
#include "sim_quorum_planted.h"

uint64_t __wrap_ps_quorum_heard_majority_ms(const ps_quorum_t *self, uint64_t now_ms);

uint64_t __wrap_ps_quorum_heard_majority_ms(const ps_quorum_t *self, uint64_t now_ms)
{
    (void)self;
    return now_ms;
}

int main(void)
{
    return quorum_planted_main("a frozen leader serves a read");
}
