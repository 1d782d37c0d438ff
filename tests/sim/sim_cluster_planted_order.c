/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a question overtakes earlier updates, so that its answer does not
 * prove that the node has them. */
#include "protocol/overseer/overseer_state.h"
#include "sim_cluster_planted.h"

psd_status_t __real_ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job, void *context,
                                    uint64_t now_ms, psd_error_t *err);
psd_status_t __wrap_ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job, void *context,
                                    uint64_t now_ms, psd_error_t *err);

#define LATE_MS 300

/* The question goes first, and the updates that it overtook go late. */
static void overtake(ps_overseer_t *self, ps_overseen_t *node, uint64_t now_ms)
{
    ps_tell_t last = node->tells[node->n_tells - 1];

    memmove(&node->tells[1], &node->tells[0], (node->n_tells - 1) * sizeof last);
    node->tells[0] = last;
    for (size_t i = 1; i < node->n_tells; i++) {
        if (node->tells[i].kind == PS_TELL_JOB && node->tells[i].serial == 0) {
            node->tells[i].serial = ++self->last_serial;
            node->tells[i].flying = true;
            node->tells[i].due_ms = now_ms + LATE_MS;
        }
    }
}

psd_status_t __wrap_ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job, void *context,
                                    uint64_t now_ms, psd_error_t *err)
{
    psd_status_t rc = __real_ps_overseer_ask(self, kind, job, context, now_ms, err);

    for (size_t i = 0; rc == PSD_OK && i < self->n_nodes; i++) {
        if (self->nodes[i].state == PS_HEALTH_UP) {
            overtake(self, &self->nodes[i], now_ms);
        }
    }
    return rc;
}

int main(void)
{
    return cluster_planted_main("a question overtakes what was told before");
}
