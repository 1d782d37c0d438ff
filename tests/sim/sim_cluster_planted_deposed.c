/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a node obeys a leader that has been deposed. */
#define SEEDS_MAX 3000 /* a job's old tells do no harm: those of tables must */
#include "sim_cluster_planted.h"

static ps_moment_t highest;

psd_status_t __real_ps_node_message_decode(ps_bytes_t bytes, ps_node_message_t *ret_message,
                                           psd_error_t *err);
psd_status_t __wrap_ps_node_message_decode(ps_bytes_t bytes, ps_node_message_t *ret_message,
                                           psd_error_t *err);
void __real_ps_agent_take(ps_agent_t *self, ps_bytes_t bytes, uint64_t now_ms);
void __wrap_ps_agent_take(ps_agent_t *self, ps_bytes_t bytes, uint64_t now_ms);

static bool takes;

static bool is_newer(const ps_moment_t *at)
{
    return at->term > highest.term || (at->term == highest.term && at->index > highest.index);
}

/* All messages of a node's registry seem to be of its newest state. */
psd_status_t __wrap_ps_node_message_decode(ps_bytes_t bytes, ps_node_message_t *ret_message,
                                           psd_error_t *err)
{
    psd_status_t rc = __real_ps_node_message_decode(bytes, ret_message, err);

    if (takes && rc == PSD_OK && ret_message->at.term != 0) {
        if (is_newer(&ret_message->at)) {
            highest = ret_message->at;
        }
        ret_message->at = highest;
    }
    return rc;
}

void __wrap_ps_agent_take(ps_agent_t *self, ps_bytes_t bytes, uint64_t now_ms)
{
    takes = true;
    __real_ps_agent_take(self, bytes, now_ms);
    takes = false;
}

int main(void)
{
    return cluster_planted_main("a deposed leader is obeyed");
}
