/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of the disk: releases answers at level disk, and pushes that
 * waited. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/replica/replicas.h"
#include "protocol/shard/shard_state.h"

static void set_flushed(ps_shard_t *self, const ps_position_t *position)
{
    ps_local_table_t *table = ps_map_get(&self->step.tables, position->table);
    ps_partition_t *partition = table == NULL || position->partition >= table->spec.n_partitions
                                    ? NULL
                                    : table->partitions[position->partition];

    /* It may have been dropped and created again meanwhile. */
    if (partition == NULL || partition->replicas == NULL || position->life != partition->life ||
        position->lsn > partition->lsn || position->lsn <= partition->replicas->flushed_lsn) {
        return;
    }
    partition->replicas->flushed_lsn = position->lsn;
    partition->replicas->flush_moved_ms = self->step.now_ms;
    partition->needs_base = false;
    if (partition->replicas->primary) {
        ps_replicas_release(&self->step, partition);
        if (partition->n_held > 0) { /* answers that waited took the room */
            ps_partition_advance(&self->step, partition);
        }
    } else {
        ps_replicas_say_flushed(&self->step, partition);
    }
}

static psd_status_t visit_held(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    (void)arg;
    (void)err;
    if (partition->has_log && partition->n_held > 0) {
        ps_partition_advance(&self->step, partition);
    }
    return PSD_OK;
}

void ps_shard_step_flushed(ps_shard_t *self, const ps_event_t *event)
{
    bool was_full = self->step.unflushed_bytes >= self->step.args.log_queue_bytes;
    psd_status_t rc = PSD_OK;

    (void)snprintf(self->step.disk_trouble, sizeof self->step.disk_trouble, "%s",
                   event->disk_trouble == NULL ? "" : event->disk_trouble);
    self->step.unflushed_bytes -= event->flushed_bytes;
    self->flushed_bytes += event->flushed_bytes;
    for (size_t i = 0; i < event->n_flushed; i++) {
        set_flushed(self, &event->flushed[i]);
    }
    if (was_full && self->step.unflushed_bytes < self->step.args.log_queue_bytes) {
        rc = ps_shard_visit(self, visit_held, NULL, NULL);
    }
    self->snapshots.log_bytes = event->log_bytes;
    if (event->snapshot_failed) {
        ps_shard_snapshot_failed(self);
    }
    ps_shard_pump_snapshots(self);
    (void)rc; /* no visit fails */
}
