/* SPDX-License-Identifier: Apache-2.0 */
/* What the disk says: answers at level disk go, pushes that waited go on. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/replica/replicas.h"
#include "protocol/shard/shard_state.h"

static void set_flushed(ps_shard_t *self, const ps_position_t *position)
{
    ps_shard_table_t *table = ps_map_get(&self->tables, position->table);
    ps_partition_t *partition = table == NULL || position->partition >= table->spec.n_partitions
                                    ? NULL
                                    : table->partitions[position->partition];

    /* It may have been dropped meanwhile, and begun anew. */
    if (partition == NULL || partition->replicas == NULL || position->life != partition->life ||
        position->lsn > partition->lsn || position->lsn <= partition->replicas->flushed_lsn) {
        return;
    }
    partition->replicas->flushed_lsn = position->lsn;
    partition->replicas->flush_moved_ms = self->now_ms;
    partition->needs_base = false;
    if (partition->replicas->primary) {
        ps_replicas_release(self, partition);
        if (partition->n_held > 0) { /* answers that waited took the room */
            ps_partition_advance(self, partition);
        }
    } else {
        ps_replicas_say_flushed(self, partition);
    }
}

static psd_status_t visit_held(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    (void)arg;
    (void)err;
    if (partition->has_log && partition->n_held > 0) {
        ps_partition_advance(self, partition);
    }
    return PSD_OK;
}

void ps_shard_step_flushed(ps_shard_t *self, const ps_event_t *event)
{
    bool was_full = self->unflushed_bytes >= self->args.log_queue_bytes;
    psd_status_t rc = PSD_OK;

    (void)snprintf(self->disk_trouble, sizeof self->disk_trouble, "%s",
                   event->disk_trouble == NULL ? "" : event->disk_trouble);
    self->unflushed_bytes -= event->flushed_bytes;
    self->flushed_bytes += event->flushed_bytes;
    for (size_t i = 0; i < event->n_flushed; i++) {
        set_flushed(self, &event->flushed[i]);
    }
    if (was_full && self->unflushed_bytes < self->args.log_queue_bytes) {
        rc = ps_shard_visit(self, visit_held, NULL, NULL);
    }
    self->snapshots.log_bytes = event->log_bytes;
    if (event->snapshot_failed) {
        ps_shard_snapshot_failed(self);
    }
    ps_shard_pump_snapshots(self);
    (void)rc; /* no visit fails */
}

/* false: no memory. */
static bool put_mark(ps_shard_t *self, const ps_partition_t *partition, ps_record_kind_t kind)
{
    const ps_record_t record = {.kind = kind,
                                .table = partition->table,
                                .partition = partition->number,
                                .lsn = partition->lsn,
                                .epoch = partition->lsn_epoch,
                                .seq = partition->life};

    if (!ps_outbox_reserve(self->outbox, 1)) {
        return false;
    }
    ps_note_record(self, partition, &record, NULL);
    return true;
}

bool ps_shard_log_anew(ps_shard_t *self, ps_partition_t *partition)
{
    if (!partition->has_log) {
        return true;
    }
    partition->needs_base = partition->lsn > 0; /* else records say it all */
    return put_mark(self, partition, PS_RECORD_ANEW);
}

/* Without memory for it the log is kept until the next start, which finds a
 * partition that the map does not place here. */
void ps_shard_log_leave(ps_shard_t *self, const ps_partition_t *partition)
{
    bool is_told = !partition->has_log || put_mark(self, partition, PS_RECORD_LEAVE);

    (void)is_told;
}

void ps_shard_want_base(ps_shard_t *self, const ps_partition_t *partition)
{
    if (partition->needs_base) {
        self->snapshots.wants_bases = true;
        ps_shard_pump_snapshots(self);
    }
}

void ps_shard_log_reason(const ps_shard_t *self, char *ret_text, size_t size)
{
    (void)snprintf(ret_text, size,
                   "waiting for the disk of node %" PRIu64 " shard %" PRIu32 ": %" PRIu64
                   " bytes are not flushed; allowed: %" PRIu64 "%s%s",
                   self->args.incarnation, self->args.shard, self->unflushed_bytes,
                   self->args.log_queue_bytes, self->disk_trouble[0] == '\0' ? "" : "; ",
                   self->disk_trouble);
}
