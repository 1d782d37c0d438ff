/* SPDX-License-Identifier: Apache-2.0 */
/* Images of partitions, and rows of images back into them. */
#include "protocol/shard/shard_image.h"

#include <inttypes.h>

#include "protocol/partition/replay.h"
#include "protocol/shard/shard_state.h"

#define EFFECTS_PER_RESTORE 4

static ps_partition_t *find(const ps_shard_t *self, uint32_t table, uint32_t i)
{
    const ps_local_table_t *found = ps_map_get(&self->step.tables, table);
    ps_partition_t *partition =
        found == NULL || i >= found->spec.n_partitions ? NULL : found->partitions[i];

    return partition == NULL || (partition->replicas != NULL && !partition->replicas->primary)
               ? NULL
               : partition;
}

uint32_t ps_shard_image_partitions(const ps_shard_t *self, uint32_t table)
{
    const ps_local_table_t *found = ps_map_get(&self->step.tables, table);

    return found == NULL ? 0 : found->spec.n_partitions;
}

static void begin_step(ps_shard_t *self, const ps_image_step_t *step)
{
    self->step.now_ms = step->now_ms;
    self->step.outbox = step->outbox;
}

uint64_t ps_shard_image_arm(ps_shard_t *self, const ps_image_step_t *step,
                            const ps_image_order_t *order, uint64_t hold_ms)
{
    uint64_t most = 0;

    begin_step(self, step);
    for (uint32_t i = 0; i < ps_shard_image_partitions(self, order->table); i++) {
        ps_partition_t *partition = find(self, order->table, i);
        uint64_t clock = 0;

        if (partition == NULL) {
            continue;
        }
        clock = order->exact ? ps_partition_highest(partition, order->job)
                             : ps_partition_closed(partition, order->job);
        most = clock > most ? clock : most;
        if (order->job != 0) {
            partition->image.hold_ms = step->now_ms + hold_ms;
            ps_partition_wake(&self->step, partition, partition->image.hold_ms);
        }
    }
    self->step.outbox = NULL;
    return most;
}

void ps_shard_image_disarm(ps_shard_t *self)
{
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    while (ps_map_next(&self->step.tables, &at, &id, &value)) {
        const ps_local_table_t *table = value;

        for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
            ps_partition_t *partition = table->partitions[i];

            if (partition != NULL && partition->image.hold_ms > 0) {
                partition->image.hold_ms = 0;
                ps_partition_wake(&self->step, partition, self->step.now_ms);
            }
        }
    }
}

void ps_shard_image_begin(ps_shard_t *self, const ps_image_step_t *step,
                          const ps_image_order_t *order)
{
    const ps_image_since_t none = {.version = 0};

    begin_step(self, step);
    for (uint32_t i = 0; i < ps_shard_image_partitions(self, order->table); i++) {
        ps_partition_t *partition = find(self, order->table, i);
        bool is_armed = false; /* no mark has come meanwhile */

        if (partition == NULL) {
            continue;
        }
        is_armed = partition->image.hold_ms > step->now_ms;
        partition->image =
            (ps_partition_image_t){.view = {.state = PS_IMAGE_PENDING},
                                   .job = order->job,
                                   .clock = order->clock,
                                   .exact = order->exact && is_armed,
                                   .in_turn = order->in_turn && order->job == 0,
                                   .since = order->since == NULL ? none : order->since[i],
                                   .early_bytes = order->early_bytes};
        ps_partition_image_try(&self->step, partition);
        ps_partition_advance(&self->step, partition); /* MARKs that were held back */
    }
    self->step.outbox = NULL;
}

void ps_shard_image_take_turn(ps_shard_t *self, const ps_image_step_t *step, uint32_t table,
                              uint32_t i)
{
    ps_partition_t *partition = find(self, table, i);

    begin_step(self, step);
    if (partition != NULL && partition->image.in_turn) {
        partition->image.in_turn = false;
        ps_partition_image_try(&self->step, partition);
    }
    self->step.outbox = NULL;
}

bool ps_shard_image_look(const ps_shard_t *self, uint32_t table, uint32_t i,
                         ps_image_view_t *ret_view)
{
    const ps_partition_t *partition = find(self, table, i);

    if (partition == NULL) {
        return false;
    }
    *ret_view = partition->image.view;
    ret_view->rows = ps_store_image_rows(partition->store);
    if (ret_view->state == PS_IMAGE_BEGUN && !ps_store_has_image(partition->store)) {
        ret_view->state = PS_IMAGE_NONE; /* its rows were discarded */
    }
    return true;
}

psd_status_t ps_shard_image_next(ps_shard_t *self, uint32_t table, uint32_t i, size_t max_bytes,
                                 ps_payload_t **ret_piece, bool *ret_done, psd_error_t *err)
{
    ps_partition_t *partition = find(self, table, i);

    if (partition == NULL || !ps_store_has_image(partition->store)) {
        return psd_error_set(err, PSD_INVALID, "partition %" PRIu32 " is no longer served here", i);
    }
    return ps_store_image_next(partition->store, max_bytes, ret_piece, ret_done, err);
}

void ps_shard_image_end(ps_shard_t *self, uint32_t table, uint32_t i)
{
    const ps_local_table_t *found = ps_map_get(&self->step.tables, table);

    if (found != NULL && i < found->spec.n_partitions && found->partitions[i] != NULL) {
        ps_store_image_end(found->partitions[i]->store);
        found->partitions[i]->image = (ps_partition_image_t){0};
        ps_partition_wake(&self->step, found->partitions[i], self->step.now_ms); /* for those
                                                    that were held back */
    }
}

/* ---- restore ---- */

/* Why a piece could not be recorded. */
static psd_status_t why_not(ps_partition_t *partition, const ps_payload_t *piece, psd_error_t *err)
{
    uint64_t version = 0;
    psd_status_t rc = ps_store_put(partition->store, piece->span, &version, err);

    return rc == PSD_OK ? psd_error_set(err, PSD_NOMEM, "no memory for a record of rows") : rc;
}

/* The partition, which is primary here and has all that was restored so far:
 * another copy that was primary meanwhile may not have had it. NULL, and why:
 * it is not, or has not. */
static ps_partition_t *find_restored(const ps_shard_t *self, uint32_t table, uint32_t i,
                                     const ps_restore_at_t *at, psd_error_t *err)
{
    ps_partition_t *partition = find(self, table, i);

    if (partition == NULL) {
        (void)psd_error_set(err, PSD_INVALID, "partition %" PRIu32 " is no longer served here", i);
        return NULL;
    }
    if (!ps_epochs_have(&partition->epochs, at->lsn, at->epoch)) {
        (void)psd_error_set(err, PSD_INVALID,
                            "partition %" PRIu32
                            " has lost rows that were restored: another node served it meanwhile",
                            i);
        return NULL;
    }
    return partition;
}

static psd_status_t check_restore(const ps_shard_t *self, ps_partition_t *partition,
                                  const ps_payload_t *piece, psd_error_t *err)
{
    uint64_t bytes = PS_RECORD_HEAD + PS_RECORD_ALIGN + piece->span.size;

    if (partition->pushes > 0) {
        return psd_error_set(err, PSD_DENIED,
                             "partition %" PRIu32 " accepted pushes before it was restored",
                             partition->number);
    }
    if (partition->replicas != NULL && self->step.args.record_bytes > 0 &&
        bytes > self->step.args.record_bytes) {
        return psd_error_set(err, PSD_LIMIT,
                             "rows of %" PRIu64 " bytes into a table with copies; allowed: %" PRIu64
                             ", because one frame of limits.frame_bytes replicates them",
                             bytes, self->step.args.record_bytes);
    }
    if (!ps_partition_log_has_room(&self->step, partition) ||
        (partition->replicas != NULL && (!ps_partition_may_answer(&self->step, partition) ||
                                         !ps_replicas_has_room(&self->step, partition)))) {
        return psd_error_set(err, PSD_BUSY, "copies or disk of partition %" PRIu32 " must catch up",
                             partition->number);
    }
    return PSD_OK;
}

psd_status_t ps_shard_restore(ps_shard_t *self, const ps_image_step_t *step, uint32_t table,
                              uint32_t i, ps_payload_t *piece, ps_restore_at_t *at,
                              psd_error_t *err)
{
    ps_partition_t *partition = find_restored(self, table, i, at, err);
    ps_record_t record = {.kind = PS_RECORD_ROWS};
    psd_status_t rc = PSD_OK;

    if (partition == NULL) {
        return PSD_INVALID;
    }
    begin_step(self, step);
    rc = check_restore(self, partition, piece, err);
    if (rc == PSD_OK && (!ps_outbox_reserve(self->step.outbox, EFFECTS_PER_RESTORE) ||
                         !ps_replicas_record(&self->step, partition, &record, piece))) {
        rc = why_not(partition, piece, err);
    }
    if (rc == PSD_OK) {
        *at = (ps_restore_at_t){partition->lsn, partition->lsn_epoch};
    }
    self->step.outbox = NULL;
    return rc;
}

psd_status_t ps_shard_restored(ps_shard_t *self, const ps_image_step_t *step, uint32_t table,
                               uint32_t i, const ps_restore_at_t *at, uint64_t *ret_reached,
                               psd_error_t *err)
{
    const ps_partition_t *partition = find_restored(self, table, i, at, err);
    ps_ack_t level = PS_ACK_MEMORY;
    char text[PS_TEXT_MAX + 1];

    *ret_reached = 0;
    if (partition == NULL) {
        return PSD_INVALID;
    }
    self->step.now_ms = step->now_ms;
    level = partition->spec->ack;
    if (level <= PS_ACK_MEMORY || at->lsn == 0) {
        return PSD_OK;
    }
    if (partition->replicas == NULL) {
        return psd_error_set(err, PSD_BUSY,
                             "ack level %s is not available: partition %" PRIu32 " has one copy",
                             ps_ack_name(level), i);
    }
    if (ps_replicas_promise(&self->step, partition, level, at->lsn, ret_reached)) {
        return PSD_OK;
    }
    ps_replicas_answer_reason(&self->step, partition, level, text, sizeof text);
    return psd_error_set(err, PSD_BUSY, "partition %" PRIu32 ": %s", i, text);
}
