/* SPDX-License-Identifier: Apache-2.0 */
/* A follower: takes records and grants leases. */
#include "base/alloc.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

static void answer(ps_step_t *step, const ps_partition_t *partition, uint64_t conn,
                   const ps_msg_append_t *append, ps_appended_status_t status, uint64_t lsn,
                   uint64_t detail)
{
    uint64_t flushed = partition->replicas->flushed_lsn;
    ps_effect_t *effect = ps_outbox_add(step->outbox, PS_EFFECT_SEND);

    if (effect == NULL) {
        return; /* it is asked again */
    }
    effect->to = conn;
    effect->message.kind = PS_KIND_APPENDED;
    effect->message.appended = (ps_msg_appended_t){.request = append->request,
                                                   .table = append->table,
                                                   .partition = append->partition,
                                                   .epoch = append->epoch,
                                                   .lsn = lsn,
                                                   .flushed_lsn = flushed < lsn ? flushed : lsn,
                                                   .sent_ms = append->sent_ms,
                                                   .status = (uint16_t)status,
                                                   .detail = detail};
}

void ps_replicas_begin_anew(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;

    if (ps_partition_begin_anew(step, partition)) {
        ps_tail_restart(&self->tail, 0, 0);
        ps_taking_break(&self->taking);
        self->in_sync_lsn = 0;
        self->promised_lsn = 0;
        self->flushed_lsn = 0;
        self->matched_lsn = 0;
        self->last_conn = 0;
        self->diverged = false;
        self->has_begun_anew = true;
    }
}

static void release(void *owner)
{
    ps_payload_t *holder = owner;

    ps_payload_destroy(&holder);
}

/* The record's parts, where they lie in holder. *ret_payload is NULL for a
 * record that carries nothing. false: no memory. */
static bool payload_of(const ps_body_t *body, ps_payload_t *holder, ps_payload_t **ret_payload)
{
    *ret_payload = NULL;
    if (body->keys.size + body->index.size + body->values.size == 0) {
        return true;
    }
    (void)ps_payload_keep(holder);
    *ret_payload = ps_payload_new(body->keys, body->index, body->values, holder, release);
    if (*ret_payload == NULL) {
        release(holder);
    }
    return *ret_payload != NULL;
}

/* The next record of this copy. */
static ps_appended_status_t take_next(ps_step_t *step, ps_partition_t *partition,
                                      const ps_record_t *record, const ps_body_t *body,
                                      ps_bytes_t bytes, ps_payload_t *holder)
{
    ps_replicas_t *self = partition->replicas;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;

    if (!ps_partition_log_has_room(step, partition) || !ps_tail_reserve(&self->tail) ||
        !payload_of(body, holder, &payload)) {
        return PS_APPENDED_NOMEM;
    }
    if (!ps_partition_takes_record(step, partition, record, payload)) {
        return PS_APPENDED_DIVERGED;
    }
    if (!ps_partition_replay_noted(step, partition, record, payload)) {
        return PS_APPENDED_NOMEM;
    }
    ps_count_add(step->counts->records_taken, 1);
    if (record->kind == PS_RECORD_AHEAD) { /* of no use to any other copy */
        ps_tail_pass(&self->tail, record->lsn, record->epoch);
    } else {
        ps_tail_add(&self->tail, record->epoch, bytes, holder);
    }
    return PS_APPENDED_OK;
}

/* One record of the APPEND: it is had already, or the next one. Epochs never
 * fall along a log, so one of a later epoch than this copy's last is not among
 * those that it has, also where the tail does not know them any more. */
static ps_appended_status_t take_one(ps_step_t *step, ps_partition_t *partition, uint64_t lsn,
                                     uint64_t epoch, ps_bytes_t *rest, ps_payload_t *holder)
{
    const ps_replicas_t *self = partition->replicas;
    ps_record_t record;
    ps_body_t body;
    uint64_t known = 0;
    size_t size = 0;

    if (ps_record_read(*rest, &size, &record, &body, NULL) != PSD_OK || record.lsn != lsn ||
        record.table != partition->table || record.partition != partition->number ||
        record.epoch > epoch) {
        return PS_APPENDED_GAP; /* damaged in transit */
    }
    if (lsn > partition->lsn) {
        ps_bytes_t bytes = {rest->data, size};

        *rest = (ps_bytes_t){rest->data + size, rest->size - size};
        return take_next(step, partition, &record, &body, bytes, holder);
    }
    *rest = (ps_bytes_t){rest->data + size, rest->size - size};
    return record.epoch > partition->lsn_epoch ||
                   (ps_tail_epoch(&self->tail, lsn, &known) && known != record.epoch)
               ? PS_APPENDED_DIVERGED
               : PS_APPENDED_OK;
}

/* A log may have records of an earlier copy that was here: the state at the
 * beginning separates the new records from them. */
static bool begins_by_state(const ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;

    return partition->has_log && (self->catching_up || self->has_begun_anew) &&
           partition->lsn == 0 && self->taking.stage != PS_TAKING_ROWS &&
           self->taking.stage != PS_TAKING_WHOLE;
}

/* Takes what it can of the records. */
static ps_appended_status_t take_all(ps_step_t *step, ps_partition_t *partition,
                                     const ps_msg_append_t *append, ps_payload_t *payload)
{
    ps_replicas_t *self = partition->replicas;
    ps_bytes_t rest = {NULL, 0};
    ps_appended_status_t status = PS_APPENDED_OK;
    uint64_t known = 0;

    if (begins_by_state(partition)) {
        return PS_APPENDED_PARTIAL;
    }
    if (append->first_lsn - 1 > partition->lsn) {
        return PS_APPENDED_GAP;
    }
    if (self->diverged || append->prev_epoch > partition->lsn_epoch ||
        (ps_tail_epoch(&self->tail, append->first_lsn - 1, &known) &&
         known != append->prev_epoch)) {
        return PS_APPENDED_DIVERGED;
    }
    if (payload != NULL && payload->n_spans == 1) {
        rest = payload->spans[0];
    }
    for (uint32_t i = 0; i < append->n_records && status == PS_APPENDED_OK; i++) {
        status = take_one(step, partition, append->first_lsn + i, append->epoch, &rest, payload);
    }
    return status == PS_APPENDED_OK && rest.size > 0 ? PS_APPENDED_GAP : status;
}

/* Another copy is the primary now; the previous one reports that it has
 * stopped: it no longer uses leases of earlier epochs either. */
static void end_lease(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                      const ps_msg_append_t *append)
{
    ps_replicas_t *self = partition->replicas;

    if (append->epoch >= self->granted_epoch && ps_shard_name_equal(from, self->granted_to)) {
        self->granted_until_ms = 0;
        ps_replicas_tick(step, partition);
    }
}

void ps_replicas_append(ps_step_t *step, ps_partition_t *partition, ps_shard_name_t from,
                        uint64_t conn, const ps_msg_append_t *append, ps_payload_t *payload)
{
    ps_replicas_t *self = partition->replicas;
    uint64_t least = self->fence > partition->epoch ? self->fence : partition->epoch;
    uint64_t until_ms = step->now_ms + append->lease_ms;
    uint64_t lsn = append->first_lsn - 1 + append->n_records;
    ps_appended_status_t status = PS_APPENDED_OK;

    if (append->release != 0) {
        end_lease(step, partition, from, append);
        return;
    }
    if (append->epoch < least) {
        answer(step, partition, conn, append, PS_APPENDED_EPOCH, 0, least);
        return;
    }
    if (append->epoch > partition->epoch || self->primary ||
        !ps_shard_name_equal(from, self->from)) {
        return; /* from a map that is not known here yet, or from no map */
    }
    status = take_all(step, partition, append, payload);
    if (status == PS_APPENDED_DIVERGED) {
        self->diverged = true;
        if (self->catching_up) { /* no copy relies on its content */
            ps_replicas_begin_anew(step, partition);
        }
        status = self->diverged ? status : PS_APPENDED_GAP;
    }
    if (status == PS_APPENDED_DIVERGED) {
        answer(step, partition, conn, append, status, 0, 0);
        return;
    }
    if (until_ms > self->granted_until_ms) {
        self->granted_until_ms = until_ms;
    }
    self->granted_epoch = append->epoch;
    self->granted_to = from;
    if (status == PS_APPENDED_OK) {
        ps_tail_cut(&self->tail, append->in_sync_lsn);
        self->in_sync_lsn = append->in_sync_lsn;
        status = ps_rows_are_whole(partition) ? PS_APPENDED_OK : PS_APPENDED_PARTIAL;
    } else {
        lsn = partition->lsn;
    }
    if (status == PS_APPENDED_OK || status == PS_APPENDED_PARTIAL) {
        if (append->epoch != self->last.epoch || lsn > self->matched_lsn) {
            self->matched_lsn = lsn;
        }
        self->last = *append;
        self->last_conn = conn;
    } else {
        self->last_conn = 0; /* nothing to say again */
    }
    answer(step, partition, conn, append, status, lsn, 0);
}

void ps_replicas_say_flushed(ps_step_t *step, ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;
    const ps_shard_name_t *from = ps_shard_links_from(step->links, self->last_conn);

    if (self->primary || self->diverged || from == NULL ||
        !ps_shard_name_equal(*from, self->granted_to) || self->last.epoch != partition->epoch ||
        self->last.epoch < self->fence) {
        return; /* the next APPEND is answered with it */
    }
    answer(step, partition, self->last_conn, &self->last,
           ps_rows_are_whole(partition) ? PS_APPENDED_OK : PS_APPENDED_PARTIAL, self->matched_lsn,
           0);
}
