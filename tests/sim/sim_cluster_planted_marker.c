/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: marks are lost on a migration. A new copy knows which clocks are
 * closed, but of no worker that it has finished more. */
#include "base/alloc.h"
#include "protocol/partition/gate.h"
#include "sim_cluster_planted.h"

#define MARKS_MAX 64

void __real_ps_gate_restore(ps_gate_t *self, uint64_t closed, uint64_t highest,
                            const uint64_t *marks);
void __wrap_ps_gate_restore(ps_gate_t *self, uint64_t closed, uint64_t highest,
                            const uint64_t *marks);

void __wrap_ps_gate_restore(ps_gate_t *self, uint64_t closed, uint64_t highest,
                            const uint64_t *marks)
{
    uint64_t lost[MARKS_MAX];

    (void)marks;
    for (size_t i = 0; i < MARKS_MAX; i++) {
        lost[i] = closed;
    }
    __real_ps_gate_restore(self, closed, highest, lost);
}

int main(void)
{
    return cluster_planted_main("marker lost on migration");
}
