/* SPDX-License-Identifier: Apache-2.0 */
/* Which answers a primary with other copies may send, and when. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/partition/answer.h"
#include "protocol/replica/replicas.h"

#define TELL_AGAIN_MS 1000             /* least time between two PARKED of one answer */
#define TAIL_LEAST ((uint64_t)1 << 20) /* of a partition with fewer bytes */

void ps_replicas_set_lead(ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;
    uint64_t until_ms = self->serving && partition->epoch >= self->fence ? UINT64_MAX : 0;

    for (uint32_t i = 0; i < self->n_followers; i++) {
        const ps_follower_t *follower = &self->followers[i];

        if (ps_follower_counts(follower) && follower->lease_until_ms < until_ms) {
            until_ms = follower->lease_until_ms;
        }
    }
    partition->lead = (ps_lead_t){.primary = self->primary, .until_ms = until_ms};
}

bool ps_replicas_makes_records(const ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;

    return self == NULL || (self->serving && partition->epoch >= self->fence);
}

/* The copy that catches up for which pushes wait: records come faster than it
 * takes them, and some are not sent yet. While pushes wait, its rows are sent,
 * too. NULL: none. */
static const ps_follower_t *outrun_one(const ps_step_t *step, const ps_replicas_t *self)
{
    const ps_follower_limits_t limits = ps_replicas_limits(step);

    for (uint32_t i = 0; i < self->n_followers; i++) {
        const ps_follower_t *follower = &self->followers[i];

        if (follower->is_outrun && !ps_follower_counts(follower) &&
            follower->sent_lsn < ps_tail_last(&self->tail) &&
            ps_follower_moves(follower, &limits, step->now_ms)) {
            return follower;
        }
    }
    return NULL;
}

uint64_t ps_replicas_tail_most(const ps_step_t *step, const ps_partition_t *partition)
{
    uint64_t own = ps_store_size(partition->store);
    uint64_t most = own > TAIL_LEAST ? own : TAIL_LEAST;

    return most < step->args.tail_bytes ? most : step->args.tail_bytes;
}

bool ps_replicas_has_room(const ps_step_t *step, const ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;

    return self->tail.bytes < ps_replicas_tail_most(step, partition) &&
           self->pending.bytes < step->args.tail_bytes && outrun_one(step, self) == NULL;
}

static bool is_mark(const ps_request_t *request)
{
    return request->kind == PS_KIND_MARK || request->of_mark ||
           (request->kind == PS_KIND_BUNDLE && !ps_request_has_rows(request));
}

/* Another copy counts: it is in sync, or the registry may make it so. */
bool ps_replicas_any_counts(const ps_replicas_t *self)
{
    for (uint32_t i = 0; i < self->n_followers; i++) {
        if (ps_follower_counts(&self->followers[i])) {
            return true;
        }
    }
    return false;
}

ps_ack_t ps_replicas_level(const ps_partition_t *partition, const ps_request_t *request)
{
    const ps_replicas_t *self = partition->replicas;
    ps_ack_t own = partition->spec->ack;

    if (is_mark(request)) {
        ps_ack_t most = partition->has_log             ? PS_ACK_DISK
                        : ps_replicas_any_counts(self) ? PS_ACK_REPLICA
                                                       : PS_ACK_MEMORY;

        return own < most ? own : most;
    }
    return request->ack == PS_ACK_DEFAULT ? own : (ps_ack_t)request->ack;
}

uint64_t ps_replicas_in_sync_lsn(const ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;
    uint64_t lsn = partition->lsn;

    for (uint32_t i = 0; i < self->n_followers; i++) {
        if (ps_follower_counts(&self->followers[i]) && self->followers[i].acked_lsn < lsn) {
            lsn = self->followers[i].acked_lsn;
        }
    }
    return lsn;
}

/* Every in-sync copy, this one included, has it on its disk. */
static uint64_t on_disk_lsn(const ps_partition_t *partition)
{
    const ps_replicas_t *self = partition->replicas;
    uint64_t lsn = self->flushed_lsn;

    for (uint32_t i = 0; i < self->n_followers; i++) {
        if (ps_follower_counts(&self->followers[i]) && self->followers[i].flushed_lsn < lsn) {
            lsn = self->followers[i].flushed_lsn;
        }
    }
    return lsn;
}

/* The last record whose answers of a level may be sent; 0: none. */
static uint64_t reached_lsn(const ps_partition_t *partition, ps_ack_t level)
{
    if (level == PS_ACK_DISK) {
        return partition->has_log ? on_disk_lsn(partition) : 0;
    }
    return partition->replicas->n_in_sync > 0 ? ps_replicas_in_sync_lsn(partition) : 0;
}

static void say_who_lends_not(const ps_step_t *step, const ps_replicas_t *self, char *ret_text,
                              size_t size)
{
    for (uint32_t i = 0; i < self->n_followers; i++) {
        const ps_follower_t *follower = &self->followers[i];

        if (ps_follower_counts(follower) && !ps_follower_lends(follower, step->now_ms)) {
            (void)snprintf(ret_text, size,
                           "waiting for the lease of the copy on node "
                           "%" PRIu64 " shard %" PRIu32 ", silent for %" PRIu64 " ms",
                           follower->incarnation, follower->shard,
                           step->now_ms - follower->heard_ms);
            return;
        }
    }
}

void ps_replicas_reason(const ps_step_t *step, const ps_partition_t *partition, char *ret_text,
                        size_t size)
{
    const ps_replicas_t *self = partition->replicas;
    const ps_follower_t *outrun = outrun_one(step, self);

    (void)snprintf(ret_text, size, "%s", "");
    if (!self->primary || partition->epoch < self->fence) {
        (void)snprintf(ret_text, size, "waiting for a primary");
    } else if (!ps_rows_are_whole(partition)) {
        (void)snprintf(ret_text, size, "not all rows of this copy have arrived");
    } else if (!self->serving) {
        (void)snprintf(ret_text, size, "waiting for the former primary's lease to expire");
    } else if (!ps_partition_may_answer(step, partition)) {
        say_who_lends_not(step, self, ret_text, size);
    } else if (self->pending.bytes >= step->args.tail_bytes) {
        (void)snprintf(ret_text, size,
                       "waiting for copies that lag: answers held for them take %" PRIu64
                       " bytes; allowed: %" PRIu64,
                       self->pending.bytes, step->args.tail_bytes);
    } else if (outrun != NULL) {
        (void)snprintf(ret_text, size,
                       "waiting for the copy on node %" PRIu64 " shard %" PRIu32
                       ", which catches up and applies records slower than they arrive",
                       outrun->incarnation, outrun->shard);
    } else if (!ps_replicas_has_room(step, partition)) {
        (void)snprintf(ret_text, size,
                       "waiting for copies that lag by %" PRIu64 " bytes; allowed: %" PRIu64,
                       self->tail.bytes, ps_replicas_tail_most(step, partition));
    }
}

static void promise(ps_replicas_t *self, uint64_t lsn)
{
    if (lsn > self->promised_lsn) {
        self->promised_lsn = lsn;
    }
}

bool ps_replicas_promise(const ps_step_t *step, const ps_partition_t *partition, ps_ack_t level,
                         uint64_t lsn, uint64_t *ret_reached)
{
    *ret_reached = reached_lsn(partition, level);
    if (*ret_reached < lsn || !ps_partition_may_answer(step, partition)) {
        return false;
    }
    promise(partition->replicas, lsn);
    return true;
}

/* The answer's level, and what it promises. */
static void set_level(ps_replicas_t *self, ps_message_t *message, ps_ack_t level, uint64_t lsn)
{
    promise(self, lsn);
    if (message->kind == PS_KIND_ACK) {
        message->ack.level = (uint8_t)level;
    } else if (message->kind == PS_KIND_VALUES) {
        message->values.level = (uint8_t)level;
    }
}

void ps_replicas_withhold(ps_step_t *step, ps_partition_t *partition, const ps_request_t *request,
                          size_t n_before)
{
    ps_replicas_t *self = partition->replicas;
    ps_outbox_t *outbox = step->outbox;
    ps_ack_t level = ps_replicas_level(partition, request);
    ps_waiting_answer_t answer = {.lsn = partition->lsn,
                                  .session = request->session,
                                  .request = request->request,
                                  .tell_ms = UINT64_MAX,
                                  .since_ms = step->now_ms,
                                  .since_us = step->now_us,
                                  .kind = request->kind,
                                  .rows = request->slice.n_rows,
                                  .bytes = ps_payload_size(request->payload),
                                  .job = request->job,
                                  .worker = request->worker,
                                  .clock = request->clock};
    ps_effect_t *last = NULL;

    if (outbox->n_effects == n_before ||
        outbox->effects[outbox->n_effects - 1].kind != PS_EFFECT_SEND) {
        return;
    }
    if (level <= PS_ACK_MEMORY) {
        if (is_mark(request)) { /* a MARK is not repeated */
            promise(self, partition->lsn);
        }
        return;
    }
    last = &outbox->effects[outbox->n_effects - 1];
    if (partition->lsn > 0 && reached_lsn(partition, level) >= partition->lsn &&
        ps_partition_may_answer(step, partition)) {
        set_level(self, &last->message, level, partition->lsn);
        return;
    }
    outbox->n_effects--;
    if (!ps_pending_reserve(&self->pending, level)) {
        ps_payload_destroy(&last->payload);
        return;
    }
    answer.answer = *last;
    answer.bulk = ps_payload_size(last->payload) > PS_BULK_MIN;
    if (request->timeout_ms > 0) {
        answer.tell_ms = step->now_ms + request->timeout_ms;
        ps_partition_wake(step, partition, answer.tell_ms);
    }
    ps_pending_add(&self->pending, level, &answer);
}

/* Names the copy that answers of a level wait for: the one furthest behind,
 * which may be this one's own disk. */
static void say_who_lacks(const ps_step_t *step, const ps_partition_t *partition, ps_ack_t level,
                          char *ret_text, size_t size)
{
    const ps_replicas_t *self = partition->replicas;
    bool disk = level == PS_ACK_DISK;
    uint64_t least = disk ? self->flushed_lsn : partition->lsn;
    const ps_follower_t *last = NULL;

    for (uint32_t i = 0; i < self->n_followers; i++) {
        const ps_follower_t *follower = &self->followers[i];
        uint64_t lsn = disk ? follower->flushed_lsn : follower->acked_lsn;

        if (ps_follower_counts(follower) && lsn < least) {
            least = lsn;
            last = follower;
        }
    }
    if (last != NULL || least < partition->lsn) {
        (void)snprintf(ret_text, size,
                       "; the copy on node %" PRIu64 " shard %" PRIu32 " lacks %" PRIu64,
                       last == NULL ? step->args.incarnation : last->incarnation,
                       last == NULL ? step->args.shard : last->shard, partition->lsn - least);
    }
}

void ps_replicas_answer_reason(const ps_step_t *step, const ps_partition_t *partition,
                               ps_ack_t level, char *ret_text, size_t size)
{
    const ps_replicas_t *self = partition->replicas;
    char lacks[96] = "";

    ps_replicas_reason(step, partition, ret_text, size);
    if (ret_text[0] != '\0') {
        return;
    }
    say_who_lacks(step, partition, level, lacks, sizeof lacks);
    if (level == PS_ACK_DISK) {
        (void)snprintf(ret_text, size,
                       "ack level disk: %" PRIu64 " of %" PRIu64
                       " records are on the disk of every copy in sync%s%s%s",
                       reached_lsn(partition, level), partition->lsn, lacks,
                       step->disk_trouble[0] == '\0' ? "" : "; ", step->disk_trouble);
        return;
    }
    if (self->n_in_sync == 0) {
        (void)snprintf(ret_text, size, "ack level %s waits for a second copy in sync",
                       ps_ack_name(level));
        return;
    }
    (void)snprintf(ret_text, size,
                   "ack level %s: copies in sync have %" PRIu64 " of %" PRIu64 " records%s",
                   ps_ack_name(level), ps_replicas_in_sync_lsn(partition), partition->lsn, lacks);
}

/* Another answer may wait here until it can be given. */
static bool keeps_answers(const ps_step_t *step, const ps_partition_t *partition, ps_ack_t level)
{
    return partition->replicas->pending.bytes < step->args.tail_bytes &&
           (level == PS_ACK_REPLICA || (level == PS_ACK_DISK && partition->has_log));
}

bool ps_replicas_answer_waits(ps_step_t *step, ps_partition_t *partition,
                              const ps_request_t *request)
{
    ps_replicas_t *self = partition->replicas;
    ps_ack_t level = ps_replicas_level(partition, request);
    bool waits = ps_pending_find(&self->pending, request->session, request->request) != NULL;
    bool cannot = !ps_partition_may_answer(step, partition) ||
                  self->pending.bytes >= step->args.tail_bytes ||
                  (level == PS_ACK_DISK && !partition->has_log) ||
                  (level == PS_ACK_REPLICA && self->n_in_sync == 0);
    char text[PS_TEXT_MAX + 1];

    if (!waits && !cannot) {
        return false;
    }
    if (request->kind == PS_KIND_PROBE || !waits) {
        ps_replicas_answer_reason(step, partition, level, text, sizeof text);
        ps_answer_parked(step, request, text);
    }
    return waits || !keeps_answers(step, partition, level);
}

/* The request that the answer belongs to, as far as answers need it; false:
 * its client is gone. */
static bool request_of(const ps_step_t *step, const ps_waiting_answer_t *answer,
                       ps_request_t *ret_request)
{
    const ps_message_t *message = &answer->answer.message;
    ps_peer_t *peer = ps_peers_of(&step->peers, answer->session);
    ps_request_t request = {.kind = PS_KIND_PUSH, .session = answer->session, .peer = peer};

#define TAKE_ADDRESS(from)                    \
    do {                                      \
        request.request = (from).request;     \
        request.table = (from).table;         \
        request.partition = (from).partition; \
        request.epoch = (from).epoch;         \
        request.seq = (from).seq;             \
    } while (0)
    if (message->kind == PS_KIND_ACK) {
        TAKE_ADDRESS(message->ack);
    } else if (message->kind == PS_KIND_VALUES) {
        TAKE_ADDRESS(message->values);
    } else {
        TAKE_ADDRESS(message->refused);
    }
#undef TAKE_ADDRESS
    *ret_request = request;
    return peer != NULL;
}

/* Sets the current epoch: the current primary sends it now. */
static void set_epoch(ps_message_t *message, uint64_t epoch)
{
    if (message->kind == PS_KIND_ACK) {
        message->ack.epoch = epoch;
    } else if (message->kind == PS_KIND_VALUES) {
        message->values.epoch = epoch;
    } else {
        message->refused.epoch = epoch;
    }
}

static void note_slow(ps_step_t *step, const ps_partition_t *partition,
                      const ps_waiting_answer_t *answer, ps_ack_t level)
{
    uint64_t ms = step->now_ms - answer->since_ms;

    ps_step_note_slow(step, &(ps_slow_t){.session = answer->session,
                                         .request = answer->request,
                                         .table = partition->table,
                                         .partition = partition->number,
                                         .kind = answer->kind,
                                         .job = answer->job,
                                         .worker = answer->worker,
                                         .clock = answer->clock,
                                         .rows = answer->rows,
                                         .bytes = answer->bytes,
                                         .at_ms = step->now_ms,
                                         .held_for = PS_HELD_NOT,
                                         .copies_ms = level == PS_ACK_REPLICA ? ms : 0,
                                         .flush_ms = level == PS_ACK_DISK ? ms : 0});
}

static void add_wait(const ps_step_t *step, const ps_waiting_answer_t *answer, ps_ack_t level,
                     ps_times_t *times)
{
    uint64_t us = ps_step_us_since(step, answer->since_us);

    if (level == PS_ACK_DISK) {
        times->flush_us += us;
    } else {
        times->copies_us += us;
    }
}

static void let_go(ps_step_t *step, ps_partition_t *partition, ps_waiting_answer_t *answer,
                   ps_ack_t level)
{
    const ps_peer_t *peer = ps_peers_of(&step->peers, answer->session);
    uint64_t conn = peer == NULL ? PS_PEER_NO_CONN
                                 : ps_peer_conn(peer, answer->bulk ? PS_WAY_BULK : PS_WAY_FIRST);
    ps_effect_t *effect =
        conn == PS_PEER_NO_CONN ? NULL : ps_outbox_add_raw(step->outbox, PS_EFFECT_SEND);

    if (ps_step_is_slow(step, step->now_ms - answer->since_ms) && answer->request != 0) {
        note_slow(step, partition, answer, level);
    }
    if (effect == NULL) { /* the client asks again */
        ps_payload_destroy(&answer->answer.payload);
        return;
    }
    *effect = answer->answer;
    effect->to = conn;
    set_epoch(&effect->message, partition->epoch);
    set_level(partition->replicas, &effect->message, level, answer->lsn);
    if (ps_message_has_times(&effect->message)) {
        add_wait(step, answer, level, &effect->message.times);
    }
}

void ps_replicas_release(ps_step_t *step, ps_partition_t *partition)
{
    ps_replicas_t *self = partition->replicas;
    ps_waiting_answer_t answer;

    if (ps_pending_count(&self->pending) == 0 || !ps_partition_may_answer(step, partition)) {
        return;
    }
    for (ps_ack_t level = PS_ACK_REPLICA; level <= PS_ACK_DISK; level++) {
        uint64_t lsn = reached_lsn(partition, level);

        while (ps_pending_take(&self->pending, level, lsn, &answer)) {
            let_go(step, partition, &answer, level);
        }
    }
}

/* The same for one level. */
static uint64_t tell_level(ps_step_t *step, ps_partition_t *partition, ps_ack_t level)
{
    ps_pending_list_t *list = &partition->replicas->pending.of[level];
    uint64_t next_ms = UINT64_MAX;
    char text[PS_TEXT_MAX + 1];

    for (size_t i = 0; i < list->n; i++) {
        ps_waiting_answer_t *answer = &list->items[list->first + i];
        ps_request_t request;

        if (answer->tell_ms <= step->now_ms) {
            answer->tell_ms = step->now_ms + TELL_AGAIN_MS;
            if (request_of(step, answer, &request)) {
                ps_replicas_answer_reason(step, partition, level, text, sizeof text);
                ps_answer_parked(step, &request, text);
            }
        }
        next_ms = answer->tell_ms < next_ms ? answer->tell_ms : next_ms;
    }
    return next_ms;
}

uint64_t ps_replicas_tell(ps_step_t *step, ps_partition_t *partition)
{
    uint64_t replica = tell_level(step, partition, PS_ACK_REPLICA);
    uint64_t disk = tell_level(step, partition, PS_ACK_DISK);

    return replica < disk ? replica : disk;
}

/* The oldest answer that waits, whatever for. */
static bool take_any(ps_pending_t *self, ps_waiting_answer_t *ret_answer)
{
    return ps_pending_take(self, PS_ACK_REPLICA, UINT64_MAX, ret_answer) ||
           ps_pending_take(self, PS_ACK_DISK, UINT64_MAX, ret_answer);
}

void ps_replicas_turn_away(ps_step_t *step, ps_partition_t *partition,
                           const ps_local_table_t *moved)
{
    ps_pending_t *pending = &partition->replicas->pending;
    ps_waiting_answer_t answer;
    ps_request_t request;

    while (take_any(pending, &answer)) {
        if (request_of(step, &answer, &request) && moved != NULL) {
            ps_answer_moved(step, &request, moved, true);
        } else if (request.peer != NULL && request.request != 0) { /* 0: of a bundle; it asks */
            ps_answer_refused(step, &request, PSD_NO_TABLE, 0, "the table was dropped");
        }
        ps_payload_destroy(&answer.answer.payload);
    }
}
