/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a node that was silent or down does not get the updates that it
 * missed. */
#include "protocol/overseer/overseer_state.h"
#include "sim_cluster_planted.h"

void __real_ps_overseen_note_all(ps_overseer_t *self, ps_overseen_t *node);
void __wrap_ps_overseen_note_all(ps_overseer_t *self, ps_overseen_t *node);

void __wrap_ps_overseen_note_all(ps_overseer_t *self, ps_overseen_t *node)
{
    if (node->tells_capacity == 0) { /* its first announcement */
        __real_ps_overseen_note_all(self, node);
    } else {
        node->n_tells = 0;
    }
}

int main(void)
{
    return cluster_planted_main("a tell that is lost is not repeated");
}
