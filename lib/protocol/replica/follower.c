/* SPDX-License-Identifier: Apache-2.0 */
/* The known position of another copy, and what to send it. */
#include "protocol/replica/follower.h"

#define FLIGHT_MESSAGES 4 /* more records wait and go together */
#define PAUSE_MS 20       /* after the copy was short of memory */
#define LEASE_PARTS 4     /* a lease is renewed this often while it lasts */
#define NEW_PARTS 30      /* … and of a copy that may not know its primary */
#define DRIFT_PARTS 50    /* clocks drift by less than one part in this */

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes up to record lsn; those of a record that was cut are not known any
 * more, and count as none. */
static uint64_t end_of(const ps_tail_t *tail, uint64_t lsn)
{
    const ps_tail_record_t *record = ps_tail_get(tail, lsn);

    return record != NULL ? record->end : tail->end - tail->bytes;
}

void ps_follower_init(ps_follower_t *self, uint64_t incarnation, uint32_t shard,
                      const ps_tail_t *tail, uint64_t now_ms)
{
    *self = (ps_follower_t){.incarnation = incarnation,
                            .shard = shard,
                            .sent_lsn = ps_tail_last(tail),
                            .sent_end = tail->end,
                            .acked_end = tail->end,
                            .heard_ms = now_ms,
                            .moved_ms = now_ms,
                            .level_ms = now_ms,
                            .look_ms = now_ms,
                            .look_lsn = ps_tail_last(tail)};
}

void ps_follower_restart(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms)
{
    self->needs_rows = true;
    self->acked_lsn = ps_tail_last(tail);
    self->acked_end = tail->end;
    self->flushed_lsn = 0;
    self->sent_lsn = self->acked_lsn;
    self->sent_end = self->acked_end;
    self->n_flight = 0;
    self->rewound_ms = now_ms;
    self->proved_ms = now_ms;
    self->moved_ms = now_ms;
    self->lease_until_ms = 0;
}

/* One that lends nothing yet, under a new map, may not know that: it is asked
 * often, for the time of a lease. */
static uint64_t ask_at(const ps_follower_t *self, const ps_follower_limits_t *limits)
{
    bool is_new = self->lease_until_ms == 0 && self->sent_ms < self->moved_ms + limits->lease_ms;

    return self->sent_ms == 0
               ? 0
               : self->sent_ms + limits->lease_ms / (is_new ? NEW_PARTS : LEASE_PARTS);
}

ps_follower_want_t ps_follower_next(const ps_follower_t *self, const ps_tail_t *tail,
                                    const ps_follower_limits_t *limits, uint64_t now_ms)
{
    if (self->needs_rows) {
        return PS_FOLLOWER_NOTHING;
    }
    if (self->sent_lsn < ps_tail_last(tail) && now_ms >= self->pause_until_ms &&
        self->n_flight < FLIGHT_MESSAGES &&
        self->sent_end - self->acked_end < limits->flight_bytes) {
        return PS_FOLLOWER_RECORDS;
    }
    return now_ms >= ask_at(self, limits) ? PS_FOLLOWER_ASK : PS_FOLLOWER_NOTHING;
}

void ps_follower_sent(ps_follower_t *self, const ps_tail_t *tail, uint32_t n_records,
                      uint64_t now_ms)
{
    self->sent_lsn += n_records;
    self->sent_ms = now_ms;
    if (n_records > 0) {
        self->sent_end = end_of(tail, self->sent_lsn);
        self->n_flight++;
    }
}

void ps_follower_go_back(ps_follower_t *self, const ps_tail_t *tail, uint64_t lsn, uint64_t now_ms)
{
    uint64_t from = min_u64(lsn, ps_tail_last(tail));

    from = from < self->acked_lsn ? self->acked_lsn : from;
    if (from + 1 < tail->first) {
        self->needs_rows = true;
        return;
    }
    self->sent_lsn = from;
    self->sent_end = end_of(tail, from);
    self->acked_end = min_u64(self->acked_end, self->sent_end);
    self->n_flight = 0;
    self->rewound_ms = now_ms;
}

void ps_follower_rewind(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms)
{
    bool is_there = self->acked_lsn + 1 >= tail->first;

    self->sent_lsn = is_there ? self->acked_lsn : ps_tail_last(tail);
    self->sent_end = is_there ? self->acked_end : tail->end;
    self->n_flight = 0;
    self->sent_ms = 0;
    self->rewound_ms = now_ms;
}

/* Its shard discarded the copy and created another one: it is asked again, and
 * only the answer to that counts. */
static void begin_anew(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms)
{
    ps_follower_t old = *self;

    ps_follower_init(self, old.incarnation, old.shard, tail, now_ms);
    self->in_sync = old.in_sync;
    self->offered = old.offered;
    self->flushes = old.flushes;
    self->moved_ms = old.moved_ms;
    self->level_ms = old.level_ms;
    self->told_ms = old.told_ms;
    self->rewound_ms = now_ms;
}

/* What a copy lacks is as old as the last moment of which it has everything:
 * one is looked at after the other, for records carry no time. */
static void note_level(ps_follower_t *self, const ps_tail_t *tail, uint64_t now_ms)
{
    uint64_t last = ps_tail_last(tail);

    if (self->acked_lsn < last && self->acked_lsn < self->look_lsn) {
        return;
    }
    self->level_ms = self->acked_lsn == last ? now_ms : self->look_ms;
    self->look_ms = now_ms;
    self->look_lsn = last;
}

static void has(ps_follower_t *self, const ps_tail_t *tail, const ps_msg_appended_t *appended,
                uint64_t now_ms)
{
    uint64_t last = ps_tail_last(tail);
    uint64_t lsn = min_u64(appended->lsn, last);
    uint64_t flushed = min_u64(appended->flushed_lsn, last);
    bool has_more = self->flushes ? flushed > self->flushed_lsn : lsn > self->acked_lsn;
    bool has_all = lsn == last && (!self->flushes || flushed == last);

    if (self->n_flight > 0) {
        self->n_flight--;
    }
    if (appended->sent_ms > self->proved_ms) {
        self->proved_ms = appended->sent_ms;
    }
    if (has_more || has_all) {
        self->moved_ms = now_ms;
    }
    if (lsn > self->acked_lsn) {
        self->acked_lsn = lsn;
        self->acked_end = end_of(tail, lsn);
    }
    note_level(self, tail, now_ms);
    if (self->sent_lsn <= self->acked_lsn) {
        self->sent_lsn = self->acked_lsn;
        self->sent_end = self->acked_end;
        self->n_flight = 0;
    }
    flushed = min_u64(flushed, self->acked_lsn);
    if (flushed > self->flushed_lsn) {
        self->flushed_lsn = flushed;
    }
}

void ps_follower_heard(ps_follower_t *self, const ps_tail_t *tail,
                       const ps_follower_limits_t *limits, const ps_msg_appended_t *appended,
                       uint64_t now_ms)
{
    uint64_t until_ms = 0;

    if (appended->sent_ms > now_ms) {
        return;
    }
    self->heard_ms = now_ms;
    if (appended->status == PS_APPENDED_EPOCH) {
        return;
    }
    if (appended->status == PS_APPENDED_DIVERGED) {
        self->needs_rows = true;
        return;
    }
    if (appended->status != PS_APPENDED_OK && appended->lsn < self->acked_lsn &&
        appended->sent_ms > self->proved_ms) {
        begin_anew(self, tail, now_ms);
    }
    until_ms = appended->sent_ms + limits->lease_ms - limits->lease_ms / DRIFT_PARTS;
    if (until_ms > self->lease_until_ms) {
        self->lease_until_ms = until_ms;
    }
    if (appended->status == PS_APPENDED_OK || appended->status == PS_APPENDED_PARTIAL) {
        has(self, tail, appended, now_ms);
    } else if (appended->sent_ms > self->rewound_ms || self->rewound_ms == 0) {
        ps_follower_go_back(self, tail, appended->lsn, now_ms);
        if (appended->status == PS_APPENDED_NOMEM) {
            self->pause_until_ms = now_ms + PAUSE_MS;
        }
    }
}

bool ps_follower_lags(const ps_follower_t *self, const ps_follower_limits_t *limits,
                      uint64_t now_ms)
{
    uint64_t after_ms = limits->slow_after_ms;

    if (!self->in_sync && after_ms > 2 * (uint64_t)limits->lease_ms) {
        after_ms = 2 * (uint64_t)limits->lease_ms; /* others wait for it */
    }
    return ps_follower_counts(self) && now_ms >= self->moved_ms + after_ms &&
           (self->told_ms == 0 || now_ms >= self->told_ms + after_ms);
}

uint64_t ps_follower_deadline(const ps_follower_t *self, const ps_follower_limits_t *limits,
                              uint64_t now_ms)
{
    uint64_t at_ms = self->needs_rows ? UINT64_MAX : ask_at(self, limits);

    return self->pause_until_ms > now_ms && self->pause_until_ms < at_ms &&
                   self->sent_lsn == self->acked_lsn
               ? self->pause_until_ms
               : at_ms;
}
