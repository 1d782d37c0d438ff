/* SPDX-License-Identifier: Apache-2.0 */
/* What moves partitions: joins, and drains that begin and end. */
#include "moves.h"

#include <stdio.h>

#include "support/check.h"

bool moves_begin(moves_t *self, ps_rng_t *rng)
{
    const cluster_node_t *nodes = self->cluster->nodes;
    unsigned node = self->drained;

    if (self->n_turns++ == 0) {
        return cluster_add(self->cluster);
    }
    if (node != 0) {
        self->drained = 0;
        return view_drain(self->view, nodes[node].name, true);
    }
    node = 1 + (unsigned)ps_rng_below(rng, self->cluster->n_nodes - 1);
    self->drained = node;
    return view_drain(self->view, nodes[node].name, false);
}

bool moves_end(moves_t *self)
{
    return self->drained == 0 ||
           view_wait_drained(self->view, self->cluster->nodes[self->drained].name);
}
