/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls whose rows come from another worker: the rules of client/requests/by_peer.c. */
#include <string.h>

#include "sim_overlay.h"

#define PATIENCE_MS 1000
#define MARK_MS 100
#define CLOCKS_MOST 9
#define REFUSED_MOST 3

static ps_down_key_t key_of(const overlay_t *self, uint32_t partition, uint64_t clock)
{
    return (ps_down_key_t){.table = OVERLAY_TABLE,
                           .partition = partition,
                           .first_row = self->plan.first_row[partition],
                           .n_rows = overlay_rows_of(&self->plan, partition),
                           .clock = clock};
}

static uint32_t colour_of(const overlay_tree_t *tree, uint32_t partition)
{
    return tree->n_colours == 0 ? 0 : (OVERLAY_TABLE + partition) % tree->n_colours;
}

static bool rows_go(const overlay_life_t *life, uint32_t partition)
{
    const overlay_tree_t *tree = &life->relay.tree;

    return life->relay.down != NULL && tree->version != 0 &&
           overlay_tree_has_children(tree, life->rank, colour_of(tree, partition));
}

static bool rows_come(const overlay_t *self, const overlay_life_t *life, uint32_t partition)
{
    const overlay_tree_t *tree = &life->relay.tree;

    return life->relay.down != NULL && tree->version != 0 && life->lends != 0 &&
           overlay_tree_above(self, tree, life->rank, colour_of(tree, partition)) != UINT32_MAX;
}

bool overlay_rows_begin(overlay_t *self, overlay_life_t *life, uint32_t partition)
{
    overlay_queue_t *queue = &life->queues[partition];
    overlay_desk_t desk = {.kind = OVERLAY_DESK_BEGIN,
                           .partition = partition,
                           .key = key_of(self, partition, life->clock)};

    if (life->is_reader || queue->is_asked || !self->plan.shares_rows) {
        return false;
    }
    if (life->clock < queue->direct_until || !rows_come(self, life, partition)) {
        if (rows_go(life, partition)) {
            overlay_desk(self, life, true, &desk);
        }
        return false;
    }
    queue->is_asked = true;
    queue->want = ++life->last_want;
    queue->is_refused = queue->has_digest = false;
    desk.kind = OVERLAY_DESK_ASK;
    desk.request = queue->want;
    overlay_desk(self, life, true, &desk);
    return true;
}

void overlay_rows_pass_on(overlay_t *self, overlay_life_t *life, uint32_t partition, uint64_t clock,
                          const ps_payload_t *payload)
{
    const overlay_desk_t desk = {.kind = OVERLAY_DESK_KEEP,
                                 .partition = partition,
                                 .key = key_of(self, partition, clock),
                                 .payload =
                                     rows_go(life, partition) ? overlay_flat(payload) : NULL};

    if (self->plan.shares_rows && life->relay.down != NULL && !life->is_reader) {
        overlay_desk(self, life, true, &desk);
    }
}

static void forget(overlay_queue_t *queue)
{
    queue->is_asked = queue->has_digest = queue->is_refused = false;
    queue->want = 0;
    ps_payload_destroy(&queue->rows);
}

static void go_direct(overlay_t *self, overlay_life_t *life, uint32_t partition, uint64_t clock)
{
    const overlay_op_t pull = {.kind = OVERLAY_PULL, .partition = partition, .clock = clock};

    forget(&life->queues[partition]);
    overlay_worker_start_op(self, life, &pull);
}

static void go_refused(overlay_t *self, overlay_life_t *life, uint32_t partition, uint64_t clock)
{
    overlay_queue_t *queue = &life->queues[partition];

    if (++queue->n_late >= REFUSED_MOST) {
        queue->direct_until = clock + 1 + CLOCKS_MOST;
        queue->n_late = 0;
    }
    go_direct(self, life, partition, clock);
}

static void compare(overlay_t *self, overlay_life_t *life, uint32_t partition)
{
    overlay_queue_t *queue = &life->queues[partition];
    uint64_t clock = life->ops[queue->digest_op].clock;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = queue->rows;

    queue->rows = NULL;
    if (!overlay_rows_are_right(rows, overlay_bytes_of(&self->plan, partition), &queue->digest)) {
        overlay_trace(self, "  worker %u: rows of partition %u are not the shard's", life->rank,
                      partition);
        queue->direct_until = clock + 2;
        go_direct(self, life, partition, clock);
        return;
    }
    forget(queue);
    self->n_rows++;
    overlay_check_values(self, life, &life->ops[queue->digest_op], rows);
    overlay_rows_pass_on(self, life, partition, clock, rows);
    life->n_open--;
    overlay_worker_run(self, life, partition);
    overlay_worker_plan_step(self, life);
}

void overlay_rows_digest(overlay_t *self, overlay_life_t *life, size_t at,
                         const ps_message_t *message, const ps_payload_t *payload)
{
    const overlay_op_t op = life->ops[at];
    overlay_queue_t *queue = &life->queues[op.partition];

    if (message->kind != PS_KIND_VALUES || payload == NULL || payload->n_spans != 1 ||
        payload->spans[0].size != PS_ID_SIZE || message->values.type != PS_TYPE_I64) {
        overlay_fail(self, "worker %u: the answer is no digest", life->rank);
        return;
    }
    memcpy(queue->digest.bytes, payload->spans[0].data, PS_ID_SIZE);
    queue->has_digest = true;
    queue->digest_ms = self->now_ms;
    queue->digest_op = at;
    if (queue->is_refused) {
        go_refused(self, life, op.partition, op.clock);
    } else if (queue->rows != NULL) {
        compare(self, life, op.partition);
    }
}

void overlay_rows_hear(overlay_t *self, overlay_life_t *life, overlay_desk_t *desk)
{
    overlay_queue_t *queue = &life->queues[desk->partition];

    if (queue->want == 0 || queue->want != desk->request || queue->rows != NULL ||
        queue->is_refused) {
        return;
    }
    queue->is_refused = desk->payload == NULL;
    queue->rows = desk->payload;
    desk->payload = NULL;
    if (queue->has_digest && queue->is_refused) {
        go_refused(self, life, desk->partition, life->ops[queue->digest_op].clock);
    } else if (queue->has_digest) {
        compare(self, life, desk->partition);
    }
}

static uint64_t due_of(const overlay_queue_t *queue)
{
    for (size_t i = 0; i < queue->n_waiting; i++) {
        if (queue->waiting[i].marks) {
            return queue->digest_ms + MARK_MS; /* all others wait for that */
        }
    }
    return queue->digest_ms + PATIENCE_MS;
}

uint64_t overlay_rows_due(const overlay_life_t *life)
{
    uint64_t due_ms = UINT64_MAX;

    for (uint32_t p = 0; p < OVERLAY_PARTITIONS_MAX; p++) {
        const overlay_queue_t *queue = &life->queues[p];

        if (queue->has_digest && due_of(queue) < due_ms) {
            due_ms = due_of(queue);
        }
    }
    return due_ms;
}

void overlay_rows_look(overlay_t *self, overlay_life_t *life)
{
    for (uint32_t p = 0; p < self->plan.spec.n_partitions; p++) {
        overlay_queue_t *queue = &life->queues[p];

        if (queue->has_digest && self->now_ms >= due_of(queue)) {
            uint64_t clock = life->ops[queue->digest_op].clock;

            queue->direct_until = clock + 2;
            go_direct(self, life, p, clock);
        }
    }
}
