/* SPDX-License-Identifier: Apache-2.0 */
/* The primary sends state and rows to a new copy. */
#include "base/alloc.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/partition/answer.h"
#include "protocol/replica/replicas.h"
#include "protocol/replica/rows_pace.h"
#include "protocol/replica/transfer.h"

#define FLIGHT_PARTS 16 /* parts in flight to one copy; of flight_bytes */
#define PART_BYTES_MIN 64
#define PIECE_HEAD 32                    /* bytes of a piece in front of its rows */
#define STEP_BYTES ((uint64_t)512 << 10) /* given by a shard in one step */
#define RETRY_MS 20                      /* after memory was short */
#define SHORT_DOUBLINGS 6                /* of it, while it goes on */
#define ANEW_MS 1000                     /* between two transfers after a useless one */
#define RESEND_MS 500
#define RESEND_DOUBLINGS 4 /* of it, while nothing is heard */

void ps_giving_destroy(ps_giving_t **self_p)
{
    ps_giving_t *self = self_p == NULL ? NULL : *self_p;

    if (self != NULL) {
        ps_payload_destroy(&self->item);
        ps_free(self);
        *self_p = NULL;
    }
}

static ps_giving_t **find(ps_replicas_t *self, ps_shard_name_t to)
{
    for (size_t i = 0; i < PS_COPIES_MAX - 1; i++) {
        if (self->giving[i] != NULL && ps_shard_name_equal(self->giving[i]->to, to)) {
            return &self->giving[i];
        }
    }
    return NULL;
}

static ps_shard_name_t name_of(const ps_follower_t *follower)
{
    return (ps_shard_name_t){follower->incarnation, follower->shard};
}

/* The transfer to that copy, or one that is yet to begin. NULL: no memory. */
static ps_giving_t *find_or_make(ps_replicas_t *self, ps_shard_name_t to)
{
    ps_giving_t **giving = find(self, to);

    for (size_t i = 0; giving == NULL && i < PS_COPIES_MAX - 1; i++) {
        if (self->giving[i] == NULL) {
            giving = &self->giving[i];
            *giving = ps_alloc(1, sizeof **giving);
            if (*giving != NULL) {
                (*giving)->to = to;
            }
        }
    }
    return giving == NULL ? NULL : *giving;
}

/* ---- what the others ask ---- */

bool ps_rows_are_given(ps_replicas_t *self, const ps_follower_t *follower)
{
    return find(self, name_of(follower)) != NULL;
}

bool ps_rows_state_is_given(ps_replicas_t *self, const ps_follower_t *follower)
{
    ps_giving_t **giving = find(self, name_of(follower));

    return giving != NULL && (*giving)->number > 0 && !(*giving)->state_taken;
}

bool ps_rows_is_old(ps_replicas_t *self, const ps_follower_t *follower,
                    const ps_msg_appended_t *appended)
{
    ps_giving_t **giving = find(self, name_of(follower));

    return giving != NULL && (*giving)->number > 0 &&
           (!(*giving)->state_taken || appended->sent_ms < (*giving)->state_taken_ms);
}

bool ps_rows_hold_records(ps_replicas_t *self, const ps_follower_t *follower)
{
    ps_giving_t **giving = find(self, name_of(follower));

    return giving != NULL && (*giving)->item != NULL;
}

void ps_rows_settled(ps_replicas_t *self)
{
    for (size_t i = 0; i < PS_COPIES_MAX - 1; i++) {
        ps_giving_t *giving = self->giving[i];
        bool stays = false;

        for (uint32_t k = 0; giving != NULL && k < self->n_followers; k++) {
            const ps_follower_t *follower = &self->followers[k];

            stays = stays || (ps_shard_name_equal(name_of(follower), giving->to) &&
                              !ps_follower_counts(follower));
        }
        if (!stays) {
            ps_giving_destroy(&self->giving[i]);
        }
    }
}

void ps_rows_book_again(ps_replicas_t *self)
{
    for (size_t i = 0; i < PS_COPIES_MAX - 1; i++) {
        if (self->giving[i] != NULL) {
            self->giving[i]->slot_us = 0;
        }
    }
}

bool ps_rows_all_lack(const ps_replicas_t *self, uint64_t *ret_place)
{
    *ret_place = 0;
    for (uint32_t k = 0; k < self->n_followers; k++) {
        const ps_giving_t *giving = NULL;

        for (size_t i = 0; i < PS_COPIES_MAX - 1; i++) {
            if (self->giving[i] != NULL &&
                ps_shard_name_equal(self->giving[i]->to, name_of(&self->followers[k]))) {
                giving = self->giving[i];
            }
        }
        if (ps_follower_counts(&self->followers[k]) || giving == NULL || giving->number == 0) {
            return false;
        }
        if (giving->most > *ret_place) {
            *ret_place = giving->most;
        }
    }
    return self->n_followers > 0;
}

/* ---- sending ---- */

static uint64_t part_bytes(const ps_step_t *step)
{
    uint64_t bytes = step->args.flight_bytes / FLIGHT_PARTS;

    bytes = bytes < step->args.chunk_bytes ? bytes : step->args.chunk_bytes;
    return bytes < PART_BYTES_MIN ? PART_BYTES_MIN : bytes;
}

static uint64_t n_flight(const ps_giving_t *self)
{
    return self->request - self->answered;
}

/* Sends again from what the copy is known to have. */
static void rewind_to_acked(ps_giving_t *self)
{
    self->rewound = self->request;
    self->answered = self->request;
    if (!self->state_taken) {
        self->sent_offset = self->acked_offset;
        return;
    }
    ps_payload_destroy(&self->item);
    self->sent = self->acked;
    self->all_sent = false;
}

/* Discards the transfer. */
static void forget(ps_giving_t *self)
{
    ps_payload_destroy(&self->item);
    *self = (ps_giving_t){.to = self->to,
                          .pause_until_ms = self->pause_until_ms,
                          .slot_us = self->slot_us,
                          .copy_busy_ms = self->copy_busy_ms};
}

/* A new transfer, from the state as it is now. false: no memory. */
static bool begin(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                  ps_giving_t *self)
{
    const ps_tail_t *tail = &partition->replicas->tail;

    forget(self);
    self->item = ps_partition_give_state(partition);
    if (self->item == NULL) {
        return false;
    }
    self->lsn = partition->lsn;
    if (!ps_tail_epoch(tail, self->lsn, &self->lsn_epoch)) {
        return false; /* cannot be: it is the last one */
    }
    self->number = ++step->n_transfers;
    ps_follower_restart(follower, tail, step->now_ms);
    ps_replicas_set_lead(partition);
    return true;
}

/* Reads the next piece, after the records and rows already sent. */
static bool read_piece(ps_step_t *step, ps_partition_t *partition, ps_giving_t *self)
{
    const ps_tail_t *tail = &partition->replicas->tail;
    uint64_t place = self->sent.next;
    bool is_done = false;

    if (!ps_tail_epoch(tail, partition->lsn, &self->lsn_epoch) ||
        ps_partition_give_rows(step, partition, &self->sent, (size_t)part_bytes(step) - PIECE_HEAD,
                               &self->item, &is_done, NULL) != PSD_OK) {
        return false;
    }
    self->lsn = partition->lsn;
    self->place = place;
    self->is_last = is_done;
    self->sent_offset = 0;
    if (self->sent.next > self->most) {
        self->most = self->sent.next;
    }
    return true;
}

static void release(void *owner)
{
    ps_payload_t *holder = owner;

    ps_payload_destroy(&holder);
}

/* This number of bytes of the item from sent_offset on, without copying. NULL:
 * no memory. */
static ps_payload_t *part_of(const ps_giving_t *self, size_t size)
{
    const ps_bytes_t none = {NULL, 0};
    ps_payload_t *holder = ps_payload_keep(self->item);
    ps_payload_t *part = NULL;

    if (size == holder->span.size) {
        return holder;
    }
    part = ps_payload_new(none, none, (ps_bytes_t){holder->span.data + self->sent_offset, size},
                          holder, release);
    if (part == NULL) {
        ps_payload_destroy(&holder);
    }
    return part;
}

static void sent(ps_step_t *step, ps_giving_t *self, uint64_t size)
{
    if (n_flight(self) == 0) {
        uint32_t doublings = self->n_resent < RESEND_DOUBLINGS ? self->n_resent : RESEND_DOUBLINGS;

        self->resend_ms = step->now_ms + ((uint64_t)RESEND_MS << doublings);
    }
    self->request++;
    self->sent_offset += size;
    ps_pace_gone(step, self, part_bytes(step), size);
    step->given_bytes += size;
    if (self->state_taken && self->sent_offset == self->item->span.size) {
        self->all_sent = self->is_last;
        ps_payload_destroy(&self->item);
    }
}

/* One part of the item. false: no memory. */
static bool send_part(ps_step_t *step, const ps_partition_t *partition, ps_giving_t *self,
                      uint64_t conn)
{
    uint64_t left = self->item->span.size - self->sent_offset;
    uint64_t most = part_bytes(step);
    uint64_t size = left < most ? left : most;
    ps_payload_t *part = part_of(self, (size_t)size);
    ps_effect_t *effect = part == NULL ? NULL : ps_outbox_add(step->outbox, PS_EFFECT_SEND);

    if (effect == NULL) {
        ps_payload_destroy(&part);
        return false;
    }
    effect->to = conn;
    effect->payload = part;
    effect->message.kind = PS_KIND_ROWS;
    effect->message.rows =
        (ps_msg_rows_t){.request = self->request + 1,
                        .table = partition->table,
                        .partition = partition->number,
                        .epoch = partition->epoch,
                        .transfer = self->number,
                        .lsn = self->lsn,
                        .lsn_epoch = self->lsn_epoch,
                        .kind = self->state_taken ? PS_GIVEN_PIECE : PS_GIVEN_STATE,
                        .last = self->state_taken && self->is_last ? 1 : 0,
                        .place = self->state_taken ? self->place : 0,
                        .size = self->item->span.size,
                        .offset = self->sent_offset};
    sent(step, self, size);
    return true;
}

/* Whether the next part may go now; if it is only a matter of time, the shard
 * is woken. */
static bool may_send(ps_step_t *step, ps_partition_t *partition, ps_giving_t *self)
{
    uint64_t most = self->n_resent > 0 ? 1 : FLIGHT_PARTS;

    if (self->pause_until_ms > step->now_ms) {
        ps_partition_wake(step, partition, self->pause_until_ms);
        return false;
    }
    if (n_flight(self) >= most) {
        return false; /* an answer, or silence, wakes it */
    }
    if (step->given_bytes >= STEP_BYTES) {
        ps_partition_wake(step, partition, step->now_ms);
        return false;
    }
    return ps_pace_has_turn(step, partition, self, part_bytes(step));
}

/* True when there is something to send now. */
static bool has_more(const ps_partition_t *partition, const ps_follower_t *follower,
                     const ps_giving_t *self)
{
    if (self->item != NULL) {
        return self->sent_offset < self->item->span.size;
    }
    return self->state_taken && !self->all_sent && follower->sent_lsn == partition->lsn;
}

void ps_rows_pump(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                  uint64_t conn)
{
    ps_giving_t **found = find(partition->replicas, name_of(follower));
    ps_giving_t *self = found == NULL ? NULL : *found;
    bool good = true;

    if (ps_follower_counts(follower) || (self == NULL && !follower->needs_rows)) {
        return;
    }
    if (self == NULL) {
        self = find_or_make(partition->replicas, name_of(follower));
        good = self != NULL;
    }
    if (good && self->number > 0 && n_flight(self) > 0 && step->now_ms >= self->resend_ms) {
        self->n_resent++;
        rewind_to_acked(self);
    }
    if (good && follower->needs_rows && (self->number == 0 || self->state_taken) &&
        self->pause_until_ms <= step->now_ms) {
        good = begin(step, partition, follower, self);
    }
    while (good && has_more(partition, follower, self) && may_send(step, partition, self)) {
        good = (self->item != NULL || read_piece(step, partition, self)) &&
               send_part(step, partition, self, conn);
    }
    if (!good) {
        ps_partition_wake(step, partition, step->now_ms + RETRY_MS);
    } else if (n_flight(self) > 0) {
        ps_partition_wake(step, partition, self->resend_ms);
    } else if (self->pause_until_ms > step->now_ms) {
        ps_partition_wake(step, partition, self->pause_until_ms);
    }
}

/* ---- answers ---- */

/* The copy has the state: its records go on from there. */
static void state_was_taken(ps_step_t *step, const ps_tail_t *tail, ps_follower_t *follower,
                            ps_giving_t *self)
{
    self->state_taken = true;
    self->state_taken_ms = step->now_ms;
    follower->moved_ms = step->now_ms;
    ps_payload_destroy(&self->item);
    self->sent_offset = 0;
    follower->needs_rows = follower->acked_lsn + 1 < tail->first;
    follower->rewound_ms = step->now_ms;
    follower->sent_ms = 0; /* what it lacks goes at once */
}

/* It has the rows before that place. */
static void has_rows(const ps_step_t *step, ps_follower_t *follower, ps_giving_t *self,
                     uint64_t place)
{
    if (place <= self->acked.next || place > self->most) {
        return;
    }
    self->acked.next = place;
    follower->moved_ms = step->now_ms;
    if (self->sent.next < place) {
        self->sent.next = place;
        ps_payload_destroy(&self->item);
    }
}

/* A copy that has all of a state cannot ask for it. */
static bool is_senseless(const ps_giving_t *self, const ps_msg_taken_t *taken)
{
    return taken->wants == PS_TAKEN_STATE && !self->state_taken &&
           taken->offset >= self->item->span.size;
}

static void has_offset(const ps_step_t *step, ps_follower_t *follower, ps_giving_t *self,
                       const ps_msg_taken_t *taken)
{
    if (self->state_taken) {
        return;
    }
    if (taken->offset > self->acked_offset) {
        follower->moved_ms = step->now_ms;
    }
    if (taken->offset > self->acked_offset ||
        taken->status != PS_TAKEN_OK) { /* it may have had to let go of some */
        self->acked_offset = taken->offset;
    }
    if (self->sent_offset < self->acked_offset) {
        self->sent_offset = self->acked_offset;
    }
}

/* Takes in the position that it reports; false: it is whole. */
static bool take_in(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                    ps_giving_t *self, const ps_msg_taken_t *taken)
{
    if (taken->wants == PS_TAKEN_STATE) {
        has_offset(step, follower, self, taken);
        return true;
    }
    if (!self->state_taken) {
        state_was_taken(step, &partition->replicas->tail, follower, self);
    }
    has_rows(step, follower, self, taken->place);
    return taken->wants != PS_TAKEN_NOTHING;
}

/* All was answered, but it lacks rows: its rows and the next piece do not
 * meet. */
static bool is_left_behind(const ps_giving_t *self)
{
    return self->state_taken && self->item == NULL && n_flight(self) == 0 &&
           (self->all_sent || self->sent.next != self->acked.next);
}

static void go_on(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                  ps_giving_t **self_p, const ps_msg_taken_t *taken)
{
    ps_giving_t *self = *self_p;

    if (taken->request > self->answered) {
        self->answered = taken->request;
        self->resend_ms = step->now_ms + RESEND_MS;
    }
    self->n_resent = 0;
    if (taken->status == PS_TAKEN_OK) {
        self->n_short = 0;
    }
    if (taken->status == PS_TAKEN_ANEW || is_senseless(self, taken)) {
        self->pause_until_ms = step->now_ms + ANEW_MS;
        forget(self);
        follower->needs_rows = true;
        return;
    }
    if (!take_in(step, partition, follower, self, taken)) {
        ps_giving_destroy(self_p);
        follower->rewound_ms = step->now_ms; /* till then it was partial */
        follower->sent_ms = 0;               /* is that all? */
        return;
    }
    if (taken->request <= self->rewound ||
        (taken->status == PS_TAKEN_OK && !is_left_behind(self))) {
        return;
    }
    rewind_to_acked(self);
    if (self->state_taken && taken->lsn < follower->sent_lsn) {
        ps_follower_go_back(follower, &partition->replicas->tail, taken->lsn, step->now_ms);
    }
    if (taken->status == PS_TAKEN_NOMEM) {
        self->pause_until_ms = step->now_ms + ((uint64_t)RETRY_MS << self->n_short);
        self->n_short += self->n_short < SHORT_DOUBLINGS ? 1 : 0;
    }
}

void ps_rows_heard(ps_step_t *step, ps_partition_t *partition, ps_follower_t *follower,
                   const ps_msg_taken_t *taken)
{
    ps_giving_t **giving = find(partition->replicas, name_of(follower));

    if (giving == NULL || (*giving)->number != taken->transfer || (*giving)->number == 0 ||
        taken->request > (*giving)->request || ps_follower_counts(follower)) {
        return;
    }
    follower->heard_ms = step->now_ms;
    ps_pace_heard(step, *giving, taken->status == PS_TAKEN_OK && taken->detail != 0);
    go_on(step, partition, follower, giving, taken);
}

void ps_rows_resend(ps_replicas_t *self, const ps_follower_t *follower)
{
    ps_giving_t **giving = find(self, name_of(follower));

    if (giving != NULL && (*giving)->number > 0) {
        rewind_to_acked(*giving);
    }
}
