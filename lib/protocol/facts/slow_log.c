/* SPDX-License-Identifier: Apache-2.0 */
/* The slowest requests of a shard. */
#include "protocol/facts/slow_log.h"

#define US_PER_MS 1000

static const char *const HELD_FOR[] = {PS_HELD_NAMES};

uint64_t ps_slow_us(const ps_slow_t *self)
{
    return (self->held_ms + self->copies_ms + self->flush_ms) * US_PER_MS + self->work_us;
}

/* What slower workers cost is the price of the job's clocks, and the most common entry: it
 * pushes none of the others out. */
static bool is_slower(const ps_slow_t *self, const ps_slow_t *than)
{
    uint64_t gate = self->held_for == PS_HELD_CLOCK ? self->held_ms * US_PER_MS : 0;
    uint64_t its_gate = than->held_for == PS_HELD_CLOCK ? than->held_ms * US_PER_MS : 0;
    uint64_t other = ps_slow_us(self) - gate;
    uint64_t its_other = ps_slow_us(than) - its_gate;

    return other != its_other ? other > its_other : gate > its_gate;
}

/* NULL: it is not there. */
static ps_slow_t *find(ps_slow_log_t *self, const ps_slow_t *like)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_slow_t *slow = &self->at[i];

        if (slow->session == like->session && slow->request == like->request &&
            slow->table == like->table && slow->partition == like->partition &&
            slow->kind == like->kind) {
            return slow;
        }
    }
    return NULL;
}

/* Where the new one goes; NULL: all are slower, and not old. */
static ps_slow_t *make_room(ps_slow_log_t *self, const ps_slow_t *slow)
{
    ps_slow_t *fastest = &self->at[0];

    if (self->n < PS_SLOW_MAX) {
        return &self->at[self->n++];
    }
    for (size_t i = 0; i < self->n; i++) {
        if (slow->at_ms - self->at[i].at_ms >= PS_SLOW_KEPT_MS) {
            return &self->at[i];
        }
        fastest = is_slower(fastest, &self->at[i]) ? &self->at[i] : fastest;
    }
    return is_slower(slow, fastest) ? fastest : NULL;
}

/* What the entry did not know before: parts differ in what they know of their request. */
static void join(ps_slow_t *self, const ps_slow_t *part)
{
    self->held_ms += part->held_ms;
    self->copies_ms += part->copies_ms;
    self->flush_ms += part->flush_ms;
    self->work_us += part->work_us;
    self->at_ms = part->at_ms;
    self->held_for = self->held_for == PS_HELD_NOT ? part->held_for : self->held_for;
}

bool ps_slow_log_add(ps_slow_log_t *self, const ps_slow_t *slow)
{
    ps_slow_t *entry = find(self, slow);

    if (entry != NULL) {
        join(entry, slow);
        return false;
    }
    entry = make_room(self, slow);
    if (entry != NULL) {
        *entry = *slow;
    }
    return true;
}

/* ---- printed ---- */

static bool print_times(const ps_slow_t *self, ps_doc_t *doc)
{
    bool is_gate = self->held_for == PS_HELD_CLOCK;

    return ps_doc_set_u64(doc, "total_us", ps_slow_us(self)) &&
           ps_doc_set_u64(doc, "gate_us", is_gate ? self->held_ms * US_PER_MS : 0) &&
           ps_doc_set_u64(doc, "queue_us", is_gate ? 0 : self->held_ms * US_PER_MS) &&
           ps_doc_set_u64(doc, "work_us", self->work_us) &&
           ps_doc_set_u64(doc, "copies_us", self->copies_ms * US_PER_MS) &&
           ps_doc_set_u64(doc, "flush_us", self->flush_ms * US_PER_MS) &&
           (self->held_for == PS_HELD_NOT ||
            ps_doc_set_text(doc, "held_for", HELD_FOR[self->held_for]));
}

static bool print_worker(const ps_slow_t *self, ps_doc_t *doc)
{
    return self->job == 0 ||
           (ps_doc_set_u64(doc, "job", self->job) && ps_doc_set_u64(doc, "worker", self->worker) &&
            ps_doc_set_u64(doc, "clock", self->clock));
}

bool ps_slow_log_print(const ps_slow_log_t *self, uint64_t now_ms, ps_doc_t *array)
{
    bool done = true;

    for (size_t i = 0; done && i < self->n; i++) {
        const ps_slow_t *slow = &self->at[i];
        ps_doc_t *doc = ps_doc_append_object(array);

        done = doc != NULL && ps_doc_set_u64(doc, "ago_ms", now_ms - slow->at_ms) &&
               ps_doc_set_text(doc, "kind", ps_kind_name(slow->kind)) &&
               ps_doc_set_u64(doc, "table", slow->table) &&
               ps_doc_set_u64(doc, "partition", slow->partition) &&
               ps_doc_set_u64(doc, "session", slow->session) &&
               ps_doc_set_u64(doc, "request", slow->request) &&
               ps_doc_set_u64(doc, "rows", slow->rows) &&
               ps_doc_set_u64(doc, "bytes", slow->bytes) && print_worker(slow, doc) &&
               print_times(slow, doc);
    }
    return done;
}
