/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes, tables, jobs and commands as values: what they own, and copies. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/registry/registry_queue.h"
#include "protocol/registry/registry_state.h"

void ps_node_done(ps_node_t *self)
{
    ps_free(self->shards);
    *self = (ps_node_t){0};
}

void ps_table_done(ps_table_t *self)
{
    ps_table_spec_done(&self->spec);
    ps_free(self->copies);
    ps_free(self->routes);
    ps_free(self->changed);
    ps_free(self->bytes);
    ps_free(self->watches);
    *self = (ps_table_t){0};
}

void ps_job_entry_done(ps_job_entry_t *self)
{
    ps_job_done(&self->job);
    ps_free(self->seen);
    ps_free(self->tables);
    for (size_t i = 0; i < self->n_queues; i++) {
        ps_queue_done(&self->queues[i]);
    }
    ps_free(self->queues);
    *self = (ps_job_entry_t){0};
}

bool ps_node_knows(const ps_node_t *self, const ps_id_t *secret)
{
    uint8_t differs = 0;

    for (size_t i = 0; i < PS_ID_SIZE; i++) { /* as long for each wrong one */
        differs |= self->secret.bytes[i] ^ secret->bytes[i];
    }
    return differs == 0 || ps_id_is_zero(&self->secret);
}

psd_status_t ps_node_copy(const ps_node_t *self, ps_node_t *ret_node, psd_error_t *err)
{
    ps_route_t *shards = ps_alloc(self->n_shards, sizeof *shards);

    if (shards == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %u shards of node %s", self->n_shards,
                             self->name);
    }
    for (uint32_t i = 0; i < self->n_shards; i++) {
        shards[i] = self->shards[i];
        shards[i].partition = 0;
        shards[i].epoch = 0;
        shards[i].shard = i;
        shards[i].incarnation = self->incarnation;
    }
    *ret_node = *self;
    ret_node->shards = shards;
    ret_node->lost = NULL; /* borrowed for the start */
    ret_node->n_lost = 0;
    return PSD_OK;
}

void ps_command_done(ps_command_t *self)
{
    ps_node_done(&self->node);
    ps_table_done(&self->table);
    ps_job_done(&self->job);
    ps_free(self->changes);
    ps_free(self->principals);
    ps_free(self->work.holds);
    ps_work_resumed_free(self->resumed, self->n_resumed);
    *self = (ps_command_t){0};
}

/* ---- parts of plans ---- */

uint64_t ps_registry_next_epoch(const ps_registry_t *self)
{
    return 1 + (self->epoch < self->seen_epoch ? self->seen_epoch : self->epoch);
}

ps_command_t ps_registry_command(const ps_registry_t *self, ps_command_kind_t kind,
                                 uint64_t unix_ms)
{
    return (ps_command_t){.kind = kind, .unix_ms = unix_ms, .epoch = self->epoch};
}

psd_status_t ps_registry_check_name(const char *name, const char *what, psd_error_t *err)
{
    if (memchr(name, '\0', PS_NAME_MAX + 1) != NULL && ps_text_is_name(name)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "name of the %s; allowed: 1..%d of letters, digits, "
                         "\"_\", \".\", \"-\", not beginning with \".\" or "
                         "\"-\"",
                         what, PS_NAME_MAX);
}
