/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what is seen with the pushes. Each push has a bit of its own, which it adds to its
 * cells, so a value says which pushes are in it: those that must be, and no others. A push that
 * counts twice carries into another bit. Of floats another run must give the same bits.
 */
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "sim_overlay.h"
#include "wire/records/bundle.h"

#define DUE_MOST 4 /* turns in a row */
#define HELD_MOST_MS (PS_RELAY_WAIT_MOST_MS + 1000)

/* ---- values ---- */

/* Pushes that a reader must see in a row, and those that it may see: its own before the pull (C3),
 * and others' by their clocks. */
typedef struct bound {
    uint64_t least;
    uint64_t most;
} bound_t;

/* Which clocks of the writer the reader must see all of, and may see any of. */
static void clocks_of(const overlay_t *self, const overlay_life_t *reader, uint64_t clock,
                      const overlay_life_t *writer, uint64_t *ret_least, uint64_t *ret_most)
{
    uint64_t delay = self->plan.max_delay > 0 ? (uint64_t)self->plan.max_delay : 0;

    *ret_least = 0;
    *ret_most = UINT64_MAX;
    if (reader->is_reader) {
        *ret_least = UINT64_MAX;
    } else if (!overlay_is_timed(self)) {
        *ret_least = clock;
        *ret_most = writer->is_killed ? UINT64_MAX : clock;
    } else if (delay > 0 && clock > delay) {
        *ret_least = clock - delay;
    }
}

static void add_bounds(const overlay_t *self, const overlay_life_t *reader,
                       const overlay_op_t *pull, const overlay_life_t *writer, uint32_t row,
                       bound_t *bound)
{
    uint64_t least = 0;
    uint64_t most = 0;

    clocks_of(self, reader, pull->clock, writer, &least, &most);
    for (size_t i = 0; i < writer->n_ops; i++) {
        const overlay_op_t *op = &writer->ops[i];
        uint64_t bit = UINT64_C(1) << op->bit;

        if (op->kind != OVERLAY_PUSH || op->partition != pull->partition ||
            (op->rows >> row & 1) == 0) {
            continue;
        }
        if (op->clock < most) {
            bound->most |= bit;
        }
        if (writer == reader && overlay_is_timed(self)
                ? op < pull
                : op->clock < least && (!writer->is_killed || (reader->is_reader && op->done))) {
            bound->least |= bit;
        }
    }
}

static void check_cell(overlay_t *self, const overlay_life_t *life, const overlay_op_t *pull,
                       uint32_t row, uint64_t value)
{
    bound_t bound = {0, 0};

    for (size_t i = 0; i < self->n_lives; i++) {
        add_bounds(self, life, pull, &self->lives[i], row, &bound);
    }
    if ((value & ~bound.most) != 0 || (bound.least & ~value) != 0) {
        overlay_fail(self,
                     "%s: worker %u at clock %" PRIu64 " sees %" PRIx64
                     " in row %u of partition %u; promised %" PRIx64 " .. %" PRIx64,
                     life->is_reader           ? "W1"
                     : !overlay_is_timed(self) ? "C2"
                                               : "C1, C3",
                     life->rank, pull->clock, value, row, pull->partition, bound.least, bound.most);
    }
}

void overlay_check_values(overlay_t *self, overlay_life_t *life, const overlay_op_t *pull,
                          const ps_payload_t *payload)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *flat = overlay_flat(payload);
    const uint64_t about[3] = {life->number, pull->partition, pull->clock};
    uint32_t n_cols = self->plan.spec.n_cols;

    self->n_pulls++;
    if (flat == NULL || flat->n_spans != 1 ||
        flat->spans[0].size != overlay_bytes_of(&self->plan, pull->partition)) {
        overlay_fail(self, "VALUES that are not what was asked for");
        return;
    }
    life->digest += ps_hash_bytes(flat->spans[0].data, flat->spans[0].size,
                                  ps_hash_bytes(about, sizeof about, 0));
    if (self->plan.spec.type == PS_TYPE_F32) {
        return;
    }
    for (uint32_t i = 0; i < overlay_rows_of(&self->plan, pull->partition) * n_cols; i++) {
        check_cell(self, life, pull, i / n_cols,
                   (uint64_t)ps_load_i64(flat->spans[0].data + i * sizeof(int64_t)));
    }
}

bool overlay_rows_are_right(const ps_payload_t *rows, uint64_t size, const ps_id_t *digest)
{
    ps_id_t own;

    if (ps_payload_size(rows) != size) {
        return false;
    }
    ps_hash_id_spans(rows->spans, rows->n_spans, &own);
    return memcmp(own.bytes, digest->bytes, sizeof own.bytes) == 0;
}

/* ---- records ---- */

/* The partition takes seqs first … last of a session. */
static void check_seqs(overlay_t *self, uint32_t partition, uint64_t session, uint64_t first,
                       uint64_t last)
{
    uint64_t *before = NULL;

    overlay_need(session >= 1 && session <= OVERLAY_LIVES_MAX, "a session that exists");
    before = &self->seqs[partition][session - 1];
    if (first != *before + 1) {
        overlay_fail(self,
                     "W3: partition %u takes seq %" PRIu64 " of session %" PRIu64 " after %" PRIu64,
                     partition, first, session, *before);
    }
    *before = last;
}

/* The shard knows that worker as one that works. */
static void check_worker(overlay_t *self, uint32_t shard, uint32_t rank, uint32_t joins)
{
    const ps_worker_t *worker = ps_job_worker(&self->told[shard], rank);

    if (self->told[shard].version > 0 &&
        (worker == NULL || worker->state != PS_WORKER_RUNNING || worker->joins != joins)) {
        overlay_fail(self, "F4: shard %u takes deltas of worker %u, life %u, which it knows as %s",
                     shard, rank, joins,
                     worker == NULL ? "nobody" : ps_worker_state_name(worker->state));
    }
}

static void check_bundle(overlay_t *self, uint32_t shard, const ps_record_t *record,
                         const ps_payload_t *payload)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    bool is_sum = false;

    overlay_need(payload != NULL && payload->n_spans == 1 &&
                     ps_bundle_read(payload->spans[0], (uint16_t)record->worker,
                                    (uint16_t)record->member, &bundle, NULL) == PSD_OK,
                 "a bundle that can be read");
    for (uint16_t i = 0; i < bundle.n_from; i++) {
        const ps_bundle_from_t *from = &bundle.from[i];

        check_worker(self, shard, from->worker, from->joins);
        check_seqs(self, record->partition, from->session, from->first_seq, from->last_seq);
    }
    for (uint16_t i = 0; i < bundle.n_spans; i++) {
        is_sum = is_sum || bundle.spans[i].n > 1;
    }
    self->n_bundles++;
    self->n_sums += is_sum ? 1 : 0;
}

/* Relays whose bundles were taken may end at that moment. */
static void end_somebody(overlay_t *self)
{
    for (size_t i = 0; i < self->n_lives; i++) {
        if (self->lives[i].relay.machine != NULL && self->lives[i].relay.n_under_way > 0) {
            overlay_fault_moment(self, &self->lives[i]);
        }
    }
}

void overlay_check_record(overlay_t *self, uint32_t shard, const ps_record_t *record,
                          const ps_payload_t *payload)
{
    uint64_t *lsn = &self->lsn[record->partition];

    if (self->routes[record->partition].shard != shard) {
        overlay_fail(self, "partition %u changes at shard %u, where it is not", record->partition,
                     shard);
    }
    if (record->lsn != *lsn + 1) {
        overlay_fail(self, "log: partition %u goes from %" PRIu64 " to %" PRIu64, record->partition,
                     *lsn, record->lsn);
    }
    *lsn = record->lsn;
    if (record->kind == PS_RECORD_BUNDLE) {
        check_bundle(self, shard, record, payload);
        end_somebody(self);
    } else if (record->kind == PS_RECORD_PUSH || record->kind == PS_RECORD_MARK ||
               record->kind == PS_RECORD_REFUSAL) {
        check_seqs(self, record->partition, record->session, record->seq, record->seq);
    }
}

/* ---- relays ---- */

void overlay_check_circle(overlay_t *self, const overlay_life_t *life, const ps_relay_lot_t *lot)
{
    for (uint16_t i = 0; i < lot->n_from; i++) {
        if (lot->from[i].worker == life->rank) {
            overlay_fail(self, "F13: the relay of worker %u takes its own deltas back", life->rank);
        }
    }
}

/* What is due is done now, or in one of the turns that follow at once. */
static void check_due(overlay_t *self, overlay_life_t *life)
{
    overlay_relay_t *relay = &life->relay;
    uint64_t due_ms = ps_relay_due(relay->machine);

    relay->n_due = due_ms <= self->now_ms ? relay->n_due + 1 : 0;
    if (relay->n_due > DUE_MOST) {
        overlay_fail(self, "the relay of worker %u is due at %" PRIu64 " and does nothing",
                     life->rank, due_ms);
    }
}

void overlay_check_waits(overlay_t *self, overlay_life_t *life)
{
    ps_relay_view_t views[OVERLAY_UNDER_WAY_MAX];
    size_t n = ps_relay_look(life->relay.machine, views, OVERLAY_UNDER_WAY_MAX);
    char text[128];

    check_due(self, life);
    for (size_t i = 0; i < n && i < OVERLAY_UNDER_WAY_MAX; i++) {
        const ps_relay_view_t *view = &views[i];
        bool is_named = view->to != PS_RELAY_NOBODY || view->waits_for != PS_RELAY_NOBODY;
        uint64_t most_ms = is_named ? HELD_MOST_MS : self->weather.hold_ms;

        ps_relay_view_text(view, self->now_ms, text, sizeof text);
        if (view->to == PS_RELAY_NOBODY && !view->key.is_timed &&
            self->now_ms - view->since_ms > most_ms) {
            overlay_fail(self, "the relay of worker %u has deltas of partition %u: %s", life->rank,
                         view->key.partition, text);
        }
    }
}
