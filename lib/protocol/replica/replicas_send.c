/* SPDX-License-Identifier: Apache-2.0 */
/* The primary: sends its records to the other copies, and handles their
 * answers.
 */
#include "protocol/partition/answer.h"
#include "protocol/replica/replicas.h"

#define PACK_BYTES                                               \
    ((size_t)64 << 10)   /* small records go together up to here \
                          */
#define RETRY_MS 20      /* after memory was short */
#define SAY_AGAIN_MS 100 /* between two PEER without an answer */

bool ps_replicas_can_send(const ps_step_t *step, const ps_partition_t *partition,
                          const ps_row_op_t *op, const ps_payload_t *payload)
{
    uint64_t bytes = PS_RECORD_BESIDE + ps_payload_size(payload);

    return (step->args.record_bytes == 0 || bytes <= step->args.record_bytes) &&
           (op->op != PS_CHANGE_AXPY || op->other == partition->table);
}

ps_payload_t *ps_replicas_prepare(ps_replicas_t *self, const ps_record_t *record,
                                  const ps_payload_t *payload)
{
    size_t size = ps_record_size(record, payload);
    ps_payload_t *bytes = NULL;
    uint8_t *to = NULL;

    if (size == 0 || !ps_tail_reserve(&self->tail)) {
        return NULL;
    }
    bytes = ps_payload_room(0, 0, size, &to);
    if (bytes != NULL) {
        ps_record_write(record, payload, to);
    }
    return bytes;
}

/* Whether pushes wait for a copy that catches up: half of the tail waits for
 * it. Its rows, which are sent after the records, would hardly make progress
 * and finally start again. Once in sync, it would slow pushes as much. */
static void set_outrun(const ps_step_t *step, const ps_partition_t *partition,
                       ps_follower_t *follower)
{
    ps_replicas_t *self = partition->replicas;
    const ps_follower_limits_t limits = ps_replicas_limits(step);

    if (ps_follower_counts(follower) || !ps_follower_moves(follower, &limits, step->now_ms)) {
        follower->is_outrun = false;
    } else if (ps_rows_are_given(self, follower) &&
               self->tail.end - follower->acked_end >= ps_replicas_tail_most(step, partition) / 2) {
        follower->is_outrun = true;
    }
}

/* What a copy that catches up lacks is kept for it: pushes wait for it, or
 * there is room. */
static bool is_kept_for(const ps_step_t *step, const ps_partition_t *partition,
                        const ps_follower_t *follower)
{
    ps_replicas_t *self = partition->replicas;
    uint64_t bytes = ps_rows_state_is_given(self, follower)
                         ? self->tail.end - follower->acked_end
                         : self->tail.bytes; /* some may be of no use to it */

    return (!follower->needs_rows || ps_rows_state_is_given(self, follower)) &&
           (follower->is_outrun || bytes < ps_replicas_tail_most(step, partition));
}

void ps_replicas_cut(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;
    const ps_follower_limits_t limits = ps_replicas_limits(step);
    uint64_t lsn = ps_replicas_in_sync_lsn(partition);

    self->in_sync_lsn = lsn;
    for (uint32_t i = 0; i < self->n_followers; i++) {
        ps_follower_t *follower = &self->followers[i];

        set_outrun(step, partition, follower);
        if (follower->is_outrun && /* no longer than it moves */
            ps_follower_moves(follower, &limits, step->now_ms)) {
            ps_partition_wake(step, partition, follower->moved_ms + step->args.slow_after_ms);
        }
        if (follower->acked_lsn < lsn && is_kept_for(step, partition, follower)) {
            lsn = follower->acked_lsn;
        }
    }
    ps_tail_cut(&self->tail, lsn);
}

void ps_replicas_send(ps_step_t *step, ps_partition_t *partition, const ps_record_t *record,
                      ps_payload_t *bytes)
{
    ps_replicas_t *self = partition->replicas;

    ps_tail_add(&self->tail, record->epoch, bytes->spans[0], bytes);
    ps_replicas_cut(step, partition);
    ps_replicas_pump(step, partition);
}

/* Sends PEER when it is due; true when the other shard has accepted it.
 */
static bool is_open(ps_step_t *step, ps_partition_t *partition, ps_shard_link_t *link)
{
    ps_effect_t *effect = NULL;

    if (link->welcome) {
        return true;
    }
    if (link->conn == 0 && step->now_ms < link->open_ms) {
        ps_partition_wake(step, partition, link->open_ms);
        return false;
    }
    if (link->conn == 0) {
        effect = ps_outbox_add(step->outbox, PS_EFFECT_OPEN);
        if (effect == NULL) {
            ps_partition_wake(step, partition, step->now_ms + RETRY_MS);
            return false;
        }
        link->conn = ps_shard_links_new_conn(step->links);
        effect->to = link->conn;
        effect->copy = link->to;
        link->say_ms = step->now_ms;
    }
    if (link->say_ms <= step->now_ms) {
        link->say_ms = step->now_ms + SAY_AGAIN_MS;
        effect = ps_outbox_add(step->outbox, PS_EFFECT_SEND);
        if (effect != NULL) {
            effect->to = link->conn;
            effect->message.kind = PS_KIND_PEER;
            effect->message.peer = (ps_msg_peer_t){.version_min = PS_VERSION_MIN,
                                                   .version_max = PS_VERSION,
                                                   .cluster = step->args.cluster,
                                                   .incarnation = link->to.incarnation,
                                                   .shard = link->to.shard,
                                                   .from_incarnation = step->args.incarnation,
                                                   .from_shard = step->args.shard};
        }
    }
    ps_partition_wake(step, partition, link->say_ms);
    return false;
}

/* One APPEND; false: no memory. */
static bool append(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                   uint64_t conn, bool records)
{
    ps_replicas_t *self = partition->replicas;
    ps_payload_t *payload = NULL;
    ps_effect_t *effect = NULL;
    uint64_t in_sync = self->in_sync_lsn;
    uint64_t prev_epoch = 0;
    uint32_t n = 0;

    if (follower->sent_lsn + 1 < self->tail.first ||
        !ps_tail_epoch(&self->tail, follower->sent_lsn, &prev_epoch)) {
        follower->needs_rows = true; /* what is next is gone */
        return true;
    }
    if (records) {
        payload = ps_tail_pack(&self->tail, follower->sent_lsn + 1, PACK_BYTES, &n);
    }
    effect = records && payload == NULL ? NULL : ps_outbox_add(step->outbox, PS_EFFECT_SEND);
    if (effect == NULL) {
        ps_payload_destroy(&payload);
        return false;
    }
    if (in_sync > follower->sent_lsn + n) {
        in_sync = follower->sent_lsn + n;
    }
    effect->to = conn;
    effect->payload = payload;
    effect->message.kind = PS_KIND_APPEND;
    effect->message.append = (ps_msg_append_t){.table = partition->table,
                                               .partition = partition->number,
                                               .epoch = partition->epoch,
                                               .first_lsn = follower->sent_lsn + 1,
                                               .prev_epoch = prev_epoch,
                                               .n_records = n,
                                               .in_sync_lsn = in_sync,
                                               .sent_ms = step->now_ms,
                                               .lease_ms = step->args.lease_ms};
    ps_follower_sent(follower, &self->tail, n, step->now_ms);
    return true;
}

ps_follower_limits_t ps_replicas_limits(const ps_step_t *step)
{
    return (ps_follower_limits_t){.lease_ms = step->args.lease_ms,
                                  .slow_after_ms = step->args.slow_after_ms,
                                  .flight_bytes = step->args.flight_bytes};
}

/* The limits for one partition: records in flight are part of the tail. */
static ps_follower_limits_t limits_of(const ps_step_t *step, const ps_partition_t *partition)
{
    ps_follower_limits_t limits = ps_replicas_limits(step);
    uint64_t most = ps_replicas_tail_most(step, partition);

    limits.flight_bytes = most < limits.flight_bytes ? most : limits.flight_bytes;
    return limits;
}

static void pump_one(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower)
{
    const ps_follower_limits_t limits = limits_of(step, partition);
    ps_replicas_t *self = partition->replicas;
    ps_shard_link_t *link =
        ps_shard_links_find(step->links, (ps_shard_name_t){follower->incarnation, follower->shard});
    ps_follower_want_t want = PS_FOLLOWER_NOTHING;

    if (link == NULL || !is_open(step, partition, link)) {
        return;
    }
    if (ps_rows_hold_records(self, follower)) {
        ps_rows_pump(step, partition, follower, link->conn);
    }
    if (ps_rows_hold_records(self, follower)) {
        return; /* it asks for its own tick */
    }
    while ((want = ps_follower_next(follower, &self->tail, &limits, step->now_ms)) !=
           PS_FOLLOWER_NOTHING) {
        if (!append(step, partition, follower, link->conn, want == PS_FOLLOWER_RECORDS)) {
            ps_partition_wake(step, partition, step->now_ms + RETRY_MS);
            return;
        }
    }
    ps_partition_wake(step, partition, ps_follower_deadline(follower, &limits, step->now_ms));
    if (follower->needs_rows && ps_follower_counts(follower)) {
        ps_partition_wake(step, partition, step->now_ms + step->args.slow_after_ms);
    }
    ps_rows_pump(step, partition, follower, link->conn);
}

void ps_replicas_pump(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;

    if (!self->primary || (partition->epoch < self->fence && !self->stopping)) {
        return;
    }
    for (uint32_t i = 0; i < self->n_followers; i++) {
        pump_one(step, partition, &self->followers[i]);
    }
}

static void report(ps_step_t *step, const ps_partition_t *partition, ps_follower_t *follower,
                   ps_report_kind_t kind)
{
    if (follower->told_ms != 0 && step->now_ms < follower->told_ms + step->args.slow_after_ms) {
        return;
    }
    follower->told_ms = step->now_ms;
    ps_outbox_report(step->outbox, &(ps_report_t){.kind = kind,
                                                  .table = partition->table,
                                                  .partition = partition->number,
                                                  .epoch = partition->epoch,
                                                  .incarnation = follower->incarnation,
                                                  .shard = follower->shard,
                                                  .lsn = follower->acked_lsn});
}

static ps_follower_t *find_follower(ps_replicas_t *self, ps_shard_name_t name)
{
    for (uint32_t i = 0; i < self->n_followers; i++) {
        if (self->followers[i].incarnation == name.incarnation &&
            self->followers[i].shard == name.shard) {
            return &self->followers[i];
        }
    }
    return NULL;
}

/* There is a newer epoch: nothing more is answered in this one. The reported
 * number is not trusted: the map brings it. */
static void heard_epoch(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower)
{
    ps_replicas_t *self = partition->replicas;

    if (self->fence <= partition->epoch) {
        self->fence = partition->epoch + 1;
        ps_replicas_set_lead(partition);
    }
    if (self->stopping) {
        self->stop_ms = step->now_ms; /* it takes nothing more */
    }
    report(step, partition, follower, PS_REPORT_FENCED);
}

/* It is so near that answers wait for it from now on, under its lease; and all
 * that it lacks is there. */
static bool is_near(const ps_step_t *step, const ps_partition_t *partition,
                    const ps_follower_t *follower, const ps_msg_appended_t *appended)
{
    const ps_replicas_t *self = partition->replicas;

    return ps_replicas_makes_records(partition) && !follower->in_sync &&
           appended->status == PS_APPENDED_OK && !follower->needs_rows &&
           follower->acked_lsn + 1 >= self->tail.first &&
           self->tail.end - follower->acked_end <= step->args.flight_bytes &&
           ps_follower_lends(follower, step->now_ms);
}

/* True when it has flushed recently acknowledged records, if the table has a
 * log: its disk works, and has not fallen far behind. */
static bool flushes_in_time(const ps_partition_t *partition, ps_follower_t *follower)
{
    if (!follower->flushes || follower->offered) {
        return true;
    }
    if (follower->mark_lsn == 0) {
        follower->mark_lsn = partition->replicas->promised_lsn;
    }
    if (follower->flushed_lsn < follower->mark_lsn) {
        return false;
    }
    follower->mark_lsn = 0;
    return true;
}

/* True when it may be in sync: it has reported every record acknowledged
 * without it, above memory or as a mark, which includes this primary's own
 * EPOCH record, flushed if the table has a log; the rest is in flight. */
static bool has_caught_up(const ps_partition_t *partition, const ps_follower_t *follower,
                          const ps_msg_appended_t *appended)
{
    uint64_t promised = partition->replicas->promised_lsn;

    return appended->lsn >= promised && follower->acked_lsn >= promised &&
           (!follower->flushes || follower->flushed_lsn >= promised);
}

void ps_replicas_heard(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                       const ps_msg_appended_t *appended)
{
    const ps_follower_limits_t limits = ps_replicas_limits(step);
    ps_replicas_t *self = partition->replicas;
    ps_follower_t *follower = find_follower(self, from);

    if (!self->primary || follower == NULL || appended->epoch != partition->epoch ||
        (appended->status != PS_APPENDED_EPOCH && ps_rows_is_old(self, follower, appended))) {
        return;
    }
    ps_follower_heard(follower, &self->tail, &limits, appended, step->now_ms);
    if (appended->status == PS_APPENDED_PARTIAL && appended->sent_ms > follower->rewound_ms &&
        !ps_rows_are_given(self, follower)) {
        follower->needs_rows = true;
    }
    if (appended->status == PS_APPENDED_EPOCH) {
        heard_epoch(step, partition, follower);
    } else if (follower->needs_rows && ps_follower_counts(follower)) {
        report(step, partition, follower, ps_replicas_trouble(follower));
    } else if (is_near(step, partition, follower, appended) &&
               flushes_in_time(partition, follower)) {
        follower->offered = true;
        if (has_caught_up(partition, follower, appended)) {
            report(step, partition, follower, PS_REPORT_CAUGHT_UP);
        }
    }
    ps_replicas_set_lead(partition);
    ps_replicas_cut(step, partition);
    ps_replicas_release(step, partition);
    ps_replicas_pump(step, partition);
    ps_replicas_end_stop(step, partition);
    partition->woken = partition->woken || partition->n_held > 0; /* pushes may wait for it */
}

void ps_replicas_relinked(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t to)
{
    ps_follower_t *follower = find_follower(partition->replicas, to);

    if (follower != NULL) {
        ps_follower_rewind(follower, &partition->replicas->tail, step->now_ms);
        ps_rows_resend(partition->replicas, follower);
        ps_replicas_pump(step, partition);
    }
}

void ps_replicas_heard_taken(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                             const ps_msg_taken_t *taken)
{
    ps_replicas_t *self = partition->replicas;
    ps_follower_t *follower = find_follower(self, from);

    if (taken->status == PS_TAKEN_EPOCH) {
        ps_replicas_heard(step, partition, from,
                          &(ps_msg_appended_t){.epoch = taken->epoch,
                                               .sent_ms = step->now_ms,
                                               .status = PS_APPENDED_EPOCH,
                                               .detail = taken->detail});
        return;
    }
    if (!self->primary || follower == NULL || taken->epoch != partition->epoch) {
        return;
    }
    ps_rows_heard(step, partition, follower, taken);
    ps_replicas_cut(step, partition);
    ps_replicas_pump(step, partition);
    partition->woken = partition->woken || partition->n_held > 0;
}
