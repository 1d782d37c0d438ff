/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what clients see with the promises. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "sim_alike.h"
#include "sim_cluster.h"

/* ---- A3: which primary answers ---- */

void cluster_check_answer(cluster_t *self, uint32_t node, const ps_message_t *message)
{
    uint64_t incarnation = self->nodes[node].incarnation;
    uint32_t partition = 0;
    uint64_t epoch = 0;

    if (message->kind == PS_KIND_ACK) {
        partition = message->ack.partition;
        epoch = message->ack.epoch;
    } else if (message->kind == PS_KIND_VALUES) {
        partition = message->values.partition;
        epoch = message->values.epoch;
    } else {
        return;
    }
    /* An answer that waited for its level has the epoch of its request. */
    if (incarnation != self->answer_by[partition] && epoch <= self->answer_epoch[partition]) {
        cluster_fail(self,
                     "A3: node %u answers for partition %u under epoch %" PRIu64 ", %" PRIu64
                     " did under %" PRIu64,
                     node, partition, epoch, self->answer_by[partition],
                     self->answer_epoch[partition]);
    }
    if (epoch >= self->answer_epoch[partition]) {
        self->answer_epoch[partition] = epoch;
        self->answer_by[partition] = incarnation;
    }
}

/* ---- W3: in order ---- */

static void check_seq(cluster_t *self, uint32_t node, cluster_copy_t *copy,
                      const ps_record_t *record)
{
    uint64_t *last = NULL;

    if (record->seq == 0 || record->session == 0 || record->session > CLUSTER_SESSIONS_MAX) {
        return;
    }
    last = &copy->seqs[record->session - 1];
    if (*last != UINT64_MAX && record->seq != *last + 1) {
        cluster_fail(self,
                     "W3: node %u, partition %u takes seq %" PRIu64 " of client %" PRIu64
                     " behind %" PRIu64,
                     node, record->partition, record->seq, record->session - 1, *last);
    }
    *last = record->seq;
}

void cluster_check_record(cluster_t *self, uint32_t node, uint32_t shard, const ps_record_t *record)
{
    cluster_copy_t *copy = &self->nodes[node].shards[shard].copies[record->partition];

    if (record->kind == PS_RECORD_ANEW || /* of the disk's log only */
        record->kind == PS_RECORD_LEAVE) {
        copy->known = false;
        return;
    }
    if (!copy->known || record->lsn == 1) {
        *copy = (cluster_copy_t){.known = true, .lsn = record->lsn - 1};
        memset(copy->seqs, record->lsn == 1 ? 0 : 0xFF, sizeof copy->seqs);
    }
    if (record->lsn != copy->lsn + 1) {
        cluster_fail(self, "node %u, partition %u has record %" PRIu64 " behind %" PRIu64, node,
                     record->partition, record->lsn, copy->lsn);
    }
    copy->lsn = record->lsn;
    self->changed_ms = self->now_ms;
    check_seq(self, node, copy, record);
}

/* ---- W1, W2, C1, C2, C3: what pulls see ---- */

static bool is_worker(const cluster_t *self, uint32_t client)
{
    return self->plan.job && client < self->plan.n_clients;
}

/* A worker's pull must see a push by their clocks. */
static bool must_by_clock(const cluster_t *self, const cluster_op_t *op,
                          const cluster_pushed_t *push)
{
    uint64_t delay = (uint64_t)self->plan.max_delay;

    return push->started && !push->doubtful && push->clock + delay < op->clock;
}

void cluster_check_begins(cluster_t *self, uint32_t number, cluster_op_t *op)
{
    for (uint32_t row = 0; row < CLUSTER_ROWS; row++) {
        const cluster_pushed_t *push = &self->pushed[op->partition][row];
        bool own = push->started && push->client == number && !push->voided &&
                   (!push->doubtful || push->acked) && !self->clients[number].memory;

        if (!push->started) {
            continue;
        }
        if (!is_worker(self, number)) {
            op->must[row] =
                push->acked || own || (self->plan.job && self->reading && !push->doubtful);
        } else if (self->plan.max_delay > 0) {
            op->must[row] = own;
        }
    }
}

static void check_value(cluster_t *self, uint32_t number, const cluster_op_t *op, uint32_t row,
                        uint64_t value)
{
    const cluster_pushed_t *push = &self->pushed[op->partition][row];
    bool bsp = is_worker(self, number) && self->plan.max_delay == 0;
    bool ssp = is_worker(self, number) && self->plan.max_delay > 0;

    if (value > (push->started ? 1 : 0)) {
        cluster_fail(self, "W1: partition %u row %u was added to %" PRIu64 " times", op->partition,
                     row, value);
    } else if (bsp && push->doubtful) {
        if (value > 0 && push->clock >= op->clock) {
            cluster_fail(self,
                         "C2: client %u in clock %" PRIu64
                         " sees partition %u row %u of clock %" PRIu64,
                         number, op->clock, op->partition, row, push->clock);
        }
    } else if (bsp && push->planned && value != (must_by_clock(self, op, push) ? 1 : 0)) {
        cluster_fail(self,
                     "C2: client %u in clock %" PRIu64 " sees %" PRIu64
                     " of partition %u row %u, pushed in clock %" PRIu64,
                     number, op->clock, value, op->partition, row, push->clock);
    } else if (ssp && value == 0 && must_by_clock(self, op, push)) {
        cluster_fail(self,
                     "C1: client %u in clock %" PRIu64
                     " does not see partition %u row %u of clock %" PRIu64,
                     number, op->clock, op->partition, row, push->clock);
    } else if (value == 0 && op->must[row]) {
        cluster_fail(self,
                     "%s: partition %u row %u was %s, and client %u does not "
                     "see it",
                     push->acked ? "W1" : "C3", op->partition, row,
                     push->acked ? "acknowledged" : "pushed", number);
    }
}

void cluster_check_pull(cluster_t *self, uint32_t number, const cluster_op_t *op,
                        const ps_message_t *message, const ps_payload_t *payload)
{
    if (message->kind != PS_KIND_VALUES || payload == NULL || payload->n_spans != 1 ||
        message->values.n_done != CLUSTER_ROWS ||
        payload->spans[0].size != (size_t)8 * CLUSTER_ROWS) {
        cluster_fail(self, "VALUES that are not what was asked for");
        return;
    }
    for (uint32_t row = 0; row < CLUSTER_ROWS && !self->failed; row++) {
        check_value(self, number, op, row, ps_load_u64(payload->spans[0].data + (size_t)8 * row));
    }
}

void cluster_check_push(cluster_t *self, const cluster_line_t *line, uint8_t level)
{
    cluster_pushed_t *push = &self->pushed[line->partition][line->row];
    uint8_t least = self->clients[push->client].level;

    if (level < least) {
        cluster_fail(self,
                     "W2: partition %u row %u is acknowledged at level %u, "
                     "not %u",
                     line->partition, line->row, level, least);
    }
    push->flushed = push->flushed || level >= PS_ACK_DISK;
    push->acked = push->acked || push->flushed || (level >= PS_ACK_REPLICA && !push->voided);
}

void cluster_check_seq(cluster_t *self, uint32_t number, const cluster_op_t *op, uint8_t level)
{
    cluster_client_t *client = &self->clients[number];
    uint32_t at = op->partition;

    if (level >= (op->seq > client->voided_seq[at] ? PS_ACK_REPLICA : PS_ACK_DISK) &&
        client->safe_seq[at] < op->seq) {
        client->safe_seq[at] = op->seq;
    }
    if (level >= PS_ACK_DISK && client->flushed_seq[at] < op->seq) {
        client->flushed_seq[at] = op->seq;
    }
}

void cluster_check_doubt(cluster_t *self, uint32_t number)
{
    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        for (uint32_t row = 0; row < CLUSTER_ROWS; row++) {
            cluster_pushed_t *push = &self->pushed[i][row];

            if (push->client == number && push->started && !push->acked) {
                push->doubtful = true;
            }
        }
    }
}

/* A push acknowledged at memory, as marks are while there is one copy, may
 * be lost with its primary; at replica, with the last whole copy. */
void cluster_check_broken(cluster_t *self, uint32_t number, psd_status_t status, const char *why)
{
    uint32_t partition = 0;
    uint64_t expected = 0;

    if (self->plan.forgets && (status == PSD_CLOSED || status == PSD_LIMIT)) {
        cluster_check_doubt(self, number); /* the fate of some push is unknown */
        return;
    }
    if (status != PSD_ROWS_LOST || self->n_fences + self->n_voids == 0 ||
        sscanf(why,
               "partition %" SCNu32 " of table 1 %*[^:]: its new primary "
               "expects seq %" SCNu64,
               &partition, &expected) != 2 ||
        partition >= self->plan.n_partitions ||
        (self->clients[number].n_more == 0 &&
         expected <= self->clients[number].safe_seq[partition])) {
        cluster_fail(self, "client %u is broken: %s", number, why);
    }
    cluster_check_doubt(self, number);
}

/* Pulls in flight need no longer see it. */
static void forget(cluster_t *self, uint32_t partition, uint32_t row)
{
    for (uint32_t i = 0; i <= self->plan.n_clients; i++) {
        cluster_client_t *client = &self->clients[i];

        for (size_t k = 0; k < client->n_ops; k++) {
            if (!client->ops[k].done && client->ops[k].partition == partition) {
                client->ops[k].must[row] = false;
            }
        }
    }
}

void cluster_check_void(cluster_t *self, uint32_t partition)
{
    self->n_voids++;
    for (uint32_t i = 0; i <= self->plan.n_clients; i++) {
        cluster_client_t *client = &self->clients[i];

        client->safe_seq[partition] = client->flushed_seq[partition];
        client->voided_seq[partition] = client->n_seqs[partition];
    }
    for (uint32_t row = 0; row < CLUSTER_ROWS; row++) {
        cluster_pushed_t *push = &self->pushed[partition][row];

        if (push->started && !push->flushed && self->clients[push->client].level < PS_ACK_DISK) {
            push->voided = true;
            push->acked = false;
            forget(self, partition, row);
        }
    }
}

/* ---- copies are alike ---- */

ps_payload_t *cluster_rows_of(ps_store_t *store, uint32_t number)
{
    const ps_slice_t want = {.rows = PS_ROWS_RANGE,
                             .cols = PS_COLS_ALL,
                             .type = PS_TYPE_I64,
                             .first_row = (uint64_t)number * CLUSTER_ROWS,
                             .n_rows = CLUSTER_ROWS,
                             .n_cols = 1};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *none =
        ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0});
    ps_payload_t *values = NULL;
    ps_slice_t got;
    uint64_t done = 0;

    cluster_need(ps_store_gather(store, &want, none, SIZE_MAX, (ps_room_t){NULL, 0}, &got, &values,
                                 &done, NULL) == PSD_OK &&
                     done == CLUSTER_ROWS && values->n_spans == 1,
                 "memory for rows");
    return values;
}

static bool has_same_rows(ps_partition_t *one, ps_partition_t *other, uint32_t number)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *mine = cluster_rows_of(one->store, number);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *theirs = cluster_rows_of(other->store, number);

    return mine->spans[0].size == theirs->spans[0].size &&
           memcmp(mine->spans[0].data, theirs->spans[0].data, mine->spans[0].size) == 0;
}

static void compare(cluster_t *self, ps_partition_t *one, ps_partition_t *other, uint32_t number)
{
    const char *what = one == NULL || other == NULL ? "places" : sim_difference(one, other);

    if (what == NULL && !has_same_rows(one, other, number)) {
        what = "rows";
    }
    if (what != NULL) {
        cluster_fail(self, "copies in sync of partition %u have other %s", number, what);
    }
}

static ps_partition_t *partition_of(const cluster_t *self, const ps_copy_t *copy,
                                    uint32_t partition)
{
    return cluster_partition(self, copy->incarnation, copy->shard, partition);
}

bool cluster_copies_are_level(const cluster_t *self)
{
    const ps_table_t *table = cluster_registry_table(self);

    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        const ps_copies_t *copies = &table->copies[i];
        const ps_partition_t *primary = partition_of(self, &copies->at[0], i);

        for (uint32_t k = 1; k < copies->n; k++) {
            const ps_partition_t *copy = partition_of(self, &copies->at[k], i);

            if (copies->at[k].state == PS_COPY_IN_SYNC &&
                (primary == NULL || copy == NULL || copy->lsn != primary->lsn)) {
                return false;
            }
        }
    }
    return true;
}

void cluster_check_copies(cluster_t *self)
{
    const ps_table_t *table = cluster_registry_table(self);

    for (uint32_t i = 0; i < self->plan.n_partitions; i++) {
        const ps_copies_t *copies = &table->copies[i];

        for (uint32_t k = 1; k < copies->n; k++) {
            if (copies->at[k].state == PS_COPY_IN_SYNC) {
                compare(self, partition_of(self, &copies->at[0], i),
                        partition_of(self, &copies->at[k], i), i);
            }
        }
    }
}
