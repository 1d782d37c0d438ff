/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of partitions with a log, so that the log can be cut.
 *
 * A round begins when the log has grown by as much as the rows take, so that
 * writing them costs no more than the log did. In a round each partition that
 * has changed is walked, as for a new copy (partition_copy.h): a piece goes out
 * whenever the disk has taken what was given before, and requests go on between
 * them.
 */
#include "model/store/store_growth.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/shard/shard_state.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECES_PER_STEP 2
/* Pieces are given in batches, two of which may be in flight: they may use a
 * quarter of the queue, however many records wait. */
#define BATCHES_PER_QUEUE 8
#define RETRY_MS 1000 /* after one that failed */

/* The first one of a life of its copy, which has come as rows. */
static bool wants_base(const ps_partition_t *partition)
{
    return partition->needs_base && !partition->base_given &&
           !ps_store_is_partial(partition->store);
}

static bool wants_snapshot(const ps_partition_t *partition, bool bases_only)
{
    return wants_base(partition) ||
           (!bases_only && partition->has_log && partition->lsn > partition->snapshot_lsn &&
            !ps_store_is_partial(partition->store));
}

static psd_status_t visit_size(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    uint64_t *sum = *(uint64_t *const *)arg;

    (void)self;
    (void)err;
    *sum += partition->has_log ? ps_store_footprint(partition->store) : 0;
    return PSD_OK;
}

static bool is_due(ps_shard_t *self)
{
    const ps_snapshots_t *is = &self->snapshots;
    uint64_t grown = is->log_bytes > is->after_bytes ? is->log_bytes - is->after_bytes : 0;
    uint64_t rows = 0;
    uint64_t *sum = &rows;
    psd_status_t rc = PSD_OK;

    if (self->step.args.snapshot_after_bytes == 0 || grown < self->step.args.snapshot_after_bytes) {
        return false;
    }
    rc = ps_shard_visit(self, visit_size, &sum, NULL);
    (void)rc; /* no visit fails */
    return grown >= rows;
}

typedef struct search {
    uint64_t round;
    ps_partition_t *found;
} search_t;

static psd_status_t visit_search(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                                 psd_error_t *err)
{
    search_t *search = *(search_t *const *)arg;

    (void)err;
    if (search->found == NULL && wants_snapshot(partition, self->snapshots.bases_only) &&
        partition->snapshot_round < search->round) {
        search->found = partition;
    }
    return PSD_OK;
}

/* The next one of this round; NULL: it is over. */
static ps_partition_t *next_partition(ps_shard_t *self)
{
    search_t search = {.round = self->snapshots.round};
    search_t *at = &search;
    psd_status_t rc = ps_shard_visit(self, visit_search, &at, NULL);

    (void)rc; /* no visit fails */
    return search.found;
}

/* The partition whose pieces go out; NULL: it is gone, or not what it was. */
static ps_partition_t *walked(ps_shard_t *self)
{
    const ps_snapshots_t *is = &self->snapshots;
    const ps_local_table_t *table = ps_map_get(&self->step.tables, is->table);
    ps_partition_t *partition = table == NULL ? NULL : table->partitions[is->partition];

    return partition == NULL || partition->snapshot_round != is->round ||
                   partition->life != is->life || partition->lsn < is->last_lsn ||
                   ps_store_is_partial(partition->store)
               ? NULL
               : partition;
}

/* Takes the payload. false: no memory. */
static bool give(ps_shard_t *self, const ps_partition_t *partition, ps_payload_t *payload,
                 bool is_first, bool is_last)
{
    ps_snapshots_t *is = &self->snapshots;
    ps_effect_t *effect =
        payload == NULL ? NULL : ps_outbox_add(self->step.outbox, PS_EFFECT_PIECE);

    if (effect == NULL) {
        ps_payload_destroy(&payload);
        return false;
    }
    is->last_lsn = partition->lsn;
    effect->payload = payload;
    effect->piece = (ps_piece_t){.table = partition->table,
                                 .partition = partition->number,
                                 .first_lsn = is->first_lsn,
                                 .lsn = partition->lsn,
                                 .life = partition->life,
                                 .is_first = is_first,
                                 .is_last = is_last};
    self->step.unflushed_bytes += ps_payload_size(payload);
    is->end = self->flushed_bytes + self->step.unflushed_bytes;
    is->batch_bytes += ps_payload_size(payload);
    return true;
}

/* The partition's state goes out, its rows will. false: no memory. */
static bool begin_walk(ps_shard_t *self, ps_partition_t *partition)
{
    ps_snapshots_t *is = &self->snapshots;

    is->table = partition->table;
    is->partition = partition->number;
    is->life = partition->life;
    is->first_lsn = partition->lsn;
    is->cursor = (ps_store_cursor_t){0};
    is->is_walking = give(self, partition, ps_partition_give_state(partition), true, false);
    if (is->is_walking) {
        partition->snapshot_round = is->round;
    }
    return is->is_walking;
}

/* false: no memory. */
static bool go_on(ps_shard_t *self, ps_partition_t *partition)
{
    ps_snapshots_t *is = &self->snapshots;
    ps_store_cursor_t cursor = is->cursor;
    ps_payload_t *piece = NULL;
    bool done = false;

    if (ps_partition_give_rows(&self->step, partition, &cursor, PIECE_BYTES, &piece, &done, NULL) !=
            PSD_OK ||
        !give(self, partition, piece, false, done)) {
        return false;
    }
    is->cursor = cursor;
    if (done) {
        partition->snapshot_lsn = is->first_lsn;
        partition->base_given = partition->needs_base;
        is->is_walking = false;
    }
    return true;
}

/* A round begins, if it is time for one. */
static void begin_round(ps_shard_t *self)
{
    ps_snapshots_t *is = &self->snapshots;
    bool due = is_due(self);

    if (due || is->wants_bases) {
        is->bases_only = !due;
        is->wants_bases = false;
        is->in_round = true;
        is->round++;
    }
}

/* One piece. false: nothing is to be done now. */
static bool step(ps_shard_t *self)
{
    ps_snapshots_t *is = &self->snapshots;
    ps_partition_t *partition = is->is_walking ? walked(self) : NULL;

    if (partition != NULL) {
        return go_on(self, partition);
    }
    is->is_walking = false;
    partition = next_partition(self);
    if (partition == NULL) {
        is->in_round = false;
        is->after_bytes = is->bases_only ? is->after_bytes : is->log_bytes;
        return false;
    }
    return begin_walk(self, partition);
}

/* The disk writes in order: the next batch begins after the previous one. */
static bool has_room(ps_shard_t *self)
{
    ps_snapshots_t *is = &self->snapshots;

    if (self->flushed_bytes >= is->batch_end) {
        is->batch_end = is->end;
        is->batch_bytes = 0;
    }
    return is->batch_bytes <= self->step.args.log_queue_bytes / BATCHES_PER_QUEUE;
}

/* If the disk has fallen behind, it reports rarely, so a step gives a whole
 * batch. */
void ps_shard_pump_snapshots(ps_shard_t *self)
{
    ps_snapshots_t *is = &self->snapshots;
    bool is_behind =
        self->step.unflushed_bytes >= self->step.args.log_queue_bytes / BATCHES_PER_QUEUE;

    if (self->step.disk_trouble[0] != '\0' || self->step.now_ms < is->retry_ms) {
        return;
    }
    if (is->after_bytes > is->log_bytes) {
        is->after_bytes = is->log_bytes; /* it was cut */
    }
    for (int i = 0; (is_behind || i < PIECES_PER_STEP) && has_room(self); i++) {
        if (!is->in_round) { /* a base may be wanted since one began */
            begin_round(self);
        }
        if (!is->in_round || (!step(self) && is->in_round)) {
            break;
        }
    }
}

static psd_status_t visit_forget_snapshot(ps_shard_t *self, ps_partition_t *partition,
                                          const void *arg, psd_error_t *err)
{
    (void)self;
    (void)arg;
    (void)err;
    partition->snapshot_lsn = 0;
    partition->base_given = false;
    return PSD_OK;
}

/* The current walk may be the one that failed: it begins again, too. Due
 * snapshots are due again when the log has grown again; bases stay wanted.
 */
void ps_shard_snapshot_failed(ps_shard_t *self)
{
    ps_snapshots_t *is = &self->snapshots;
    psd_status_t rc = ps_shard_visit(self, visit_forget_snapshot, NULL, NULL);

    (void)rc; /* no visit fails */
    is->is_walking = false;
    is->in_round = false;
    is->after_bytes = is->bases_only ? is->after_bytes : is->log_bytes;
    is->wants_bases = true;
    is->retry_ms = self->step.now_ms + RETRY_MS;
    ps_shard_tick_snapshots(self);
}

void ps_shard_want_bases(ps_shard_t *self)
{
    self->snapshots.wants_bases = true;
    ps_shard_pump_snapshots(self);
}

void ps_shard_tick_snapshots(ps_shard_t *self)
{
    ps_snapshots_t *is = &self->snapshots;

    if (is->retry_ms == 0) {
        return;
    }
    if (self->step.now_ms >= is->retry_ms) {
        is->retry_ms = 0;
        ps_shard_pump_snapshots(self);
    } else if (is->retry_ms < self->step.deadline_ms) {
        self->step.deadline_ms = is->retry_ms;
    }
}
