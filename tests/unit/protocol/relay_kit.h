/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_kit - small lots and plans for the tests of relays
 *
 * What     A lot of one contributor with one dense row of KIT_COLS f32 values, all the same; and
 *          plans of workers at positions 0, 1, 2 …
 */
#ifndef PS_TESTS_RELAY_KIT_H
#define PS_TESTS_RELAY_KIT_H

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/relay/relay.h"

#define KIT_COLS 4

static const ps_relay_key_t KIT_KEY = {
    .table = 1, .partition = 2, .clock = 7, .type = PS_TYPE_F32, .width = KIT_COLS};

/* One lot; kit_lot_done frees its payload. */
typedef struct kit_lot {
    ps_bundle_from_t from;
    ps_relay_span_t span;
    ps_relay_lot_t lot;
} kit_lot_t;

static inline void kit_lot_done(kit_lot_t *self)
{
    ps_payload_destroy(&self->span.payload);
}

/* Of that worker's member 0, whose session is 100 + worker. */
static inline void kit_lot(kit_lot_t *self, uint32_t worker, uint64_t seq, bool marks, float value)
{
    uint8_t *bytes = NULL;

    *self = (kit_lot_t){.from = {.session = 100 + worker,
                                 .first_seq = seq,
                                 .last_seq = seq,
                                 .worker = worker,
                                 .joins = 1,
                                 .marks = marks},
                        .span = {.first = worker,
                                 .n = 1,
                                 .slice = {.rows = PS_ROWS_RANGE,
                                           .type = PS_TYPE_F32,
                                           .n_rows = 1,
                                           .first_row = 3,
                                           .n_cols = KIT_COLS,
                                           .n_values = KIT_COLS}}};
    self->span.payload = ps_payload_room(0, 0, KIT_COLS * sizeof value, &bytes);
    cr_assert_not_null(self->span.payload);
    for (size_t i = 0; i < KIT_COLS; i++) {
        ps_store_f32(bytes + i * sizeof value, value);
    }
    self->lot =
        (ps_relay_lot_t){.from = &self->from, .spans = &self->span, .n_from = 1, .n_spans = 1};
}

/* Only a mark. */
static inline void kit_mark(kit_lot_t *self, uint32_t worker, uint64_t seq)
{
    kit_lot(self, worker, seq, true, 0);
    self->lot.n_spans = 0;
}

/* The first value of a span. */
static inline float kit_value(const ps_relay_span_t *span)
{
    return ps_load_f32(span->payload->spans[0].data);
}

static const uint32_t KIT_POSITIONS[] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint32_t KIT_MEMBERS[] = {1, 1, 1, 1, 1, 1, 1, 1};

/* One colour; 1 MB a second to the parent. */
static inline ps_relay_plan_t kit_plan(uint64_t version, const uint32_t *parents,
                                       uint32_t n_workers)
{
    static const uint64_t rates[] = {1000000};

    return (ps_relay_plan_t){.version = version,
                             .n_workers = n_workers,
                             .n_colours = 1,
                             .positions = KIT_POSITIONS,
                             .members = KIT_MEMBERS,
                             .parents = parents,
                             .rates = rates};
}
#endif
