/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a question waits for a node as long as it takes. */
#include "protocol/overseer/overseer_state.h"
#include "sim_cluster_planted.h"

void __wrap_ps_overseen_give_up(ps_overseer_t *self, const ps_overseen_t *node);
void __wrap_ps_overseer_expire(ps_overseer_t *self, uint64_t now_ms, bool here_hangs);

void __wrap_ps_overseen_give_up(ps_overseer_t *self, const ps_overseen_t *node)
{
    (void)self;
    (void)node;
}

void __wrap_ps_overseer_expire(ps_overseer_t *self, uint64_t now_ms, bool here_hangs)
{
    (void)self;
    (void)now_ms;
    (void)here_hangs;
}

int main(void)
{
    return cluster_planted_main("a wait without a deadline");
}
