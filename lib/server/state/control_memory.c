/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose tables use nearly all memory, or more. */
#include "server/state/control_inner.h"

#define MIB ((double)(1 << 20))
#define FULL_TENTHS 8 /* above this share a node gets a warning */

/* The bytes that a node's rows use, and its limit; 0: not known. */
static void add_up(const ps_answers_t *answers, uint64_t incarnation, uint64_t *ret_bytes,
                   uint64_t *ret_most)
{
    *ret_bytes = 0;
    *ret_most = 0;
    for (uint32_t i = 0; i < answers->n; i++) {
        const ps_shard_answer_t *call = &answers->at[i];

        if (call->incarnation != incarnation) {
            continue;
        }
        *ret_most = call->memory_bytes;
        for (size_t k = 0; k < call->n_partitions; k++) {
            const ps_store_bytes_t *bytes = &call->partitions[k].bytes;

            *ret_bytes += bytes->values + bytes->state + bytes->index;
        }
    }
}

static bool warn(const char *node, uint64_t bytes, uint64_t most, ps_doc_t *array)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    return ps_buffer_print(&text,
                           bytes > most
                               ? "node \"%s\": tables need %.1f MiB, and it has %.1f MiB "
                                 "of memory: more nodes, fewer columns or an updater with "
                                 "less state"
                               : "node \"%s\": tables need %.1f MiB of its %.1f MiB of memory; "
                                 "requests in flight and other programs need some too",
                           node, (double)bytes / MIB, (double)most / MIB) &&
           ps_doc_append_text(array, (const char *)text.data);
}

bool ps_control_add_memory(const ps_control_t *self, const ps_answers_t *answers, ps_doc_t *array)
{
    const ps_registry_t *registry = self->is.registry;
    bool done = true;

    for (size_t i = 0; done && i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);
        uint64_t bytes = 0;
        uint64_t most = 0;

        add_up(answers, node->incarnation, &bytes, &most);
        done =
            most == 0 || bytes <= most / 10 * FULL_TENTHS || warn(node->name, bytes, most, array);
    }
    return done;
}
