/* SPDX-License-Identifier: Apache-2.0 */
/* The primary by the map: a copy takes over, continues, or stops. */
#include "protocol/replica/replicas.h"

#include "base/alloc.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"

#define RETRY_MS 20 /* after memory was short */

psd_status_t ps_replicas_new(ps_step_t *step, uint64_t lsn, uint64_t epoch,
                             ps_replicas_t **ret_replicas, psd_error_t *err)
{
    ps_replicas_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for copies");
    }
    self->promised_lsn = lsn;
    ps_tail_init(&self->tail, lsn, epoch);
    self->tail.sum = &step->tail_bytes;
    *ret_replicas = self;
    return PSD_OK;
}

void ps_replicas_destroy(ps_replicas_t **self_p)
{
    ps_replicas_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    ps_tail_done(&self->tail);
    ps_pending_done(&self->pending);
    self->n_followers = 0;
    ps_rows_settled(self);
    ps_taking_done(&self->taking);
    ps_free(self);
    *self_p = NULL;
}

/* In a new epoch a follower learns of it at once, is reported again, and counts
 * only if the map says so. A repeated map changes nothing: the registry may
 * have admitted an offered copy, and the new map may be in flight. */
static void begin_epoch(ps_follower_t *self, uint64_t now_ms)
{
    self->sent_ms = 0;
    self->moved_ms = now_ms;
    self->told_ms = 0;
    self->offered = false;
}

/* The other copies, of which those that were followed before are known. */
static void set_followers(ps_step_t *step, const ps_partition_t *partition,
                          const ps_copies_t *copies, uint32_t own, bool is_new_epoch)
{
    ps_replicas_t *self = partition->replicas;
    ps_follower_t old[PS_COPIES_MAX - 1];
    uint32_t n_old = self->n_followers;

    for (uint32_t i = 0; i < n_old; i++) {
        old[i] = self->followers[i];
    }
    self->n_followers = 0;
    self->n_in_sync = 0;
    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];
        ps_follower_t *follower = &self->followers[self->n_followers];

        if (i == own) {
            continue;
        }
        ps_follower_init(follower, copy->incarnation, copy->shard, &self->tail, step->now_ms);
        for (uint32_t k = 0; k < n_old; k++) {
            if (old[k].incarnation == copy->incarnation && old[k].shard == copy->shard) {
                *follower = old[k];
                if (is_new_epoch) {
                    begin_epoch(follower, step->now_ms);
                }
            }
        }
        follower->in_sync = ps_copy_is_heir(copy);
        follower->flushes = partition->has_log;
        self->n_in_sync += follower->in_sync ? 1 : 0;
        self->n_followers++;
        ps_rows_resend(self, follower);
    }
    ps_rows_settled(self);
}

/* What the shard has learned of jobs while this copy could record nothing. */
static void record_jobs(ps_step_t *step, ps_partition_t *partition)
{
    for (size_t i = 0; i < partition->n_jobs; i++) {
        uint32_t id = ps_gate_job(partition->jobs[i].gate);
        const ps_job_t *job = ps_map_get(&step->jobs, id);
        psd_status_t rc =
            job == NULL ? PSD_OK : ps_replicas_record_job(step, partition, id, job, NULL);

        (void)rc; /* the job's next change brings it */
    }
}

/* The lease that this copy granted has ended: it serves. */
static void try_to_serve(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;
    ps_record_t record = {.kind = PS_RECORD_EPOCH};

    if (!self->primary || self->serving || partition->epoch < self->fence ||
        !ps_rows_are_whole(partition)) {
        return;
    }
    if (step->now_ms < self->granted_until_ms) {
        ps_partition_wake(step, partition, self->granted_until_ms);
        return;
    }
    if (!ps_replicas_record(step, partition, &record, NULL)) {
        ps_partition_wake(step, partition, step->now_ms + RETRY_MS);
        return;
    }
    self->serving = true;
    self->promised_lsn = partition->lsn;
    ps_replicas_set_lead(partition);
    record_jobs(step, partition);
    partition->woken = true;
}

/* Tells the other copies that this one no longer answers. */
static void end_leases(ps_step_t *step, ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;

    for (uint32_t i = 0; i < self->n_followers; i++) {
        const ps_shard_link_t *link =
            ps_shard_links_find(step->links, (ps_shard_name_t){self->followers[i].incarnation,
                                                               self->followers[i].shard});
        ps_effect_t *effect =
            link == NULL || !link->welcome ? NULL : ps_outbox_add(step->outbox, PS_EFFECT_SEND);

        if (effect != NULL) {
            effect->to = link->conn;
            effect->message.kind = PS_KIND_APPEND;
            effect->message.append = (ps_msg_append_t){.table = partition->table,
                                                       .partition = partition->number,
                                                       .epoch = partition->epoch,
                                                       .first_lsn = partition->lsn + 1,
                                                       .sent_ms = step->now_ms,
                                                       .release = 1};
        }
    }
}

void ps_replicas_settle(ps_step_t *step, ps_partition_t *partition, const ps_copies_t *copies,
                        uint32_t own)
{
    ps_replicas_t *self = partition->replicas;
    bool primary = !copies->fenced && copies->at[own].state == PS_COPY_PRIMARY;
    bool goes_on = self->primary && partition->epoch >= self->fence;
    bool fresh = !self->settled;
    bool is_new_epoch = fresh || copies->epoch > partition->epoch;

    self->settled = true;
    self->catching_up = copies->at[own].state == PS_COPY_CATCHING_UP;
    if (!partition->has_log && ps_copy_is_whole(&copies->at[own])) {
        self->has_begun_anew = false; /* a log needs a state all the same */
    }
    if (copies->fenced) {
        return; /* what fences is the question that goes with it */
    }
    if (self->diverged && self->catching_up) {
        ps_replicas_begin_anew(step, partition);
    }
    partition->epoch = copies->epoch;
    self->from = (ps_shard_name_t){copies->at[0].incarnation, copies->at[0].shard};
    if (!primary) {
        ps_replicas_set_lead(partition);
        return;
    }
    if (!goes_on) {
        self->primary = true;
        self->serving = fresh;
        self->stopping = false;
        self->n_followers = 0;
    }
    set_followers(step, partition, copies, own, is_new_epoch);
    ps_replicas_set_lead(partition);
    try_to_serve(step, partition);
    ps_replicas_release(step, partition);
    ps_replicas_pump(step, partition);
    partition->woken = true;
}

void ps_replicas_resign(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;

    if (self->serving) { /* else another one's lease may still run */
        end_leases(step, partition);
    }
    self->primary = false;
    self->serving = false;
    self->stopping = false;
    self->n_followers = 0;
    self->n_in_sync = 0;
    ps_rows_settled(self);
    ps_replicas_set_lead(partition);
}

/* It threw away what it had, and has not as much again as its primary has said
 * that all have: what it has, if anything, is no position. */
static bool lacks_what_it_had(const ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;

    return self->has_begun_anew && (partition->lsn == 0 || partition->lsn < self->in_sync_lsn);
}

bool ps_replicas_has_position(const ps_partition_t *partition)
{
    return ps_rows_are_whole(partition) && !lacks_what_it_had(partition);
}

bool ps_replicas_begin_empty(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;

    if (self->primary || ps_replicas_has_position(partition)) {
        return true;
    }
    self->diverged = true;
    ps_replicas_begin_anew(step, partition);
    if (self->diverged || !ps_partition_log_anew(step, partition)) {
        self->diverged = true; /* until it has begun */
        return false;
    }
    self->has_begun_anew = false;
    return true;
}

static void report_position(ps_step_t *step, ps_partition_t *partition, uint64_t epoch)
{
    const ps_replicas_t *self = partition->replicas;
    bool whole = ps_replicas_has_position(partition);
    uint64_t lsn = whole ? partition->lsn : 0;
    uint64_t lsn_epoch = 0;

    if (!ps_tail_epoch(&self->tail, lsn, &lsn_epoch)) {
        lsn_epoch = 0;
    }
    ps_outbox_report(step->outbox,
                     &(ps_report_t){.kind = whole ? PS_REPORT_POSITION : PS_REPORT_PARTIAL,
                                    .table = partition->table,
                                    .partition = partition->number,
                                    .epoch = epoch,
                                    .incarnation = step->args.incarnation,
                                    .shard = step->args.shard,
                                    .lsn = lsn,
                                    .lsn_epoch = lsn_epoch});
}

void ps_replicas_end_stop(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;

    if (!self->stopping ||
        (step->now_ms < self->stop_ms && ps_replicas_in_sync_lsn(partition) < partition->lsn)) {
        return;
    }
    end_leases(step, partition);
    self->stopping = false;
    self->serving = false;
    ps_replicas_set_lead(partition);
    if (self->asked_epoch != 0) {
        report_position(step, partition, self->asked_epoch);
        self->asked_epoch = 0;
    }
}

void ps_replicas_stop(ps_step_t *step, ps_partition_t *partition, uint64_t epoch)
{
    ps_replicas_t *self = partition->replicas;

    if (epoch > self->fence) {
        self->fence = epoch;
        ps_replicas_set_lead(partition);
    }
    if (self->serving && !self->stopping && partition->epoch < self->fence) {
        self->stopping = true;
        self->stop_ms = step->now_ms + step->args.lease_ms;
        self->asked_epoch = 0;
        ps_partition_wake(step, partition, self->stop_ms);
        ps_replicas_pump(step, partition);
        ps_replicas_end_stop(step, partition);
    }
}

void ps_replicas_fence(ps_step_t *step, ps_partition_t *partition, uint64_t epoch)
{
    ps_replicas_t *self = partition->replicas;

    ps_replicas_stop(step, partition, epoch);
    if (self->stopping) {
        self->asked_epoch = epoch;
    } else {
        report_position(step, partition, epoch);
    }
}

ps_report_kind_t ps_replicas_trouble(const ps_follower_t *follower)
{
    return follower->needs_rows && follower->in_sync ? PS_REPORT_DIVERGED : PS_REPORT_SLOW;
}

static void report_slow(ps_step_t *step, ps_partition_t *partition)
{
    const ps_follower_limits_t limits = ps_replicas_limits(step);
    ps_replicas_t *self = partition->replicas;

    for (uint32_t i = 0; i < self->n_followers; i++) {
        ps_follower_t *follower = &self->followers[i];

        if (!ps_follower_lags(follower, &limits, step->now_ms)) {
            continue;
        }
        follower->told_ms = step->now_ms;
        ps_outbox_report(step->outbox, &(ps_report_t){.kind = ps_replicas_trouble(follower),
                                                      .table = partition->table,
                                                      .partition = partition->number,
                                                      .epoch = partition->epoch,
                                                      .incarnation = follower->incarnation,
                                                      .shard = follower->shard,
                                                      .lsn = follower->acked_lsn});
    }
}

/* Its own disk has taken nothing for as long: where another copy is in sync,
 * that one is to serve. */
static void report_own_disk(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;

    if (!partition->has_log || !self->serving || self->n_in_sync == 0 ||
        self->flushed_lsn >= partition->lsn) {
        self->flush_moved_ms = step->now_ms;
        return;
    }
    if (step->now_ms < self->flush_moved_ms + step->args.slow_after_ms) {
        return;
    }
    self->flush_moved_ms = step->now_ms; /* and is reported again */
    ps_outbox_report(step->outbox, &(ps_report_t){.kind = PS_REPORT_SLOW,
                                                  .table = partition->table,
                                                  .partition = partition->number,
                                                  .epoch = partition->epoch,
                                                  .incarnation = step->args.incarnation,
                                                  .shard = step->args.shard,
                                                  .lsn = self->flushed_lsn});
}

void ps_replicas_tick(ps_step_t *step, ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;
    bool had_room = true;

    if (!self->primary) {
        return;
    }
    try_to_serve(step, partition);
    had_room = ps_replicas_has_room(step, partition);
    ps_replicas_cut(step, partition);
    ps_replicas_release(step, partition);
    if (!had_room && ps_replicas_has_room(step, partition)) {
        partition->woken = true;
    }
    if (self->stopping) {
        ps_partition_wake(step, partition, self->stop_ms);
    } else if (partition->epoch >= self->fence) {
        report_slow(step, partition);
        report_own_disk(step, partition);
    }
    ps_replicas_pump(step, partition);
    ps_replicas_end_stop(step, partition);
    ps_partition_wake(step, partition, ps_replicas_tell(step, partition));
}
