/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_open_clock - pushes that are logged and wait for their clock to close
 *
 * What     Under BSP a push is acknowledged on arrival and applied when the
 *          clock closes, in the order (worker, member, session, seq), so that a
 *          run ends with the same bits regardless of timing.
 * Owner    The partition; the entries hold their payloads.
 */
#ifndef PS_PROTOCOL_OPEN_CLOCK_H
#define PS_PROTOCOL_OPEN_CLOCK_H

#include "wire/messages/row_op.h"
#include "wire/records/bundle.h"

/* A push, or a span of a bundle. */
typedef struct ps_logged {
    uint32_t worker; /* span: the first of its positions … */
    uint32_t n;      /* … and their number; a push: 1 */
    uint32_t member; /* span: these three are its first contributor's */
    uint64_t session;
    uint64_t seq;   /* span: its last one */
    uint64_t clock; /* clocks finished when the push was made */
    uint64_t lsn;
    ps_row_op_t op;
    ps_slice_t slice;
    ps_payload_t *payload;  /* held */
    ps_bundle_from_t *from; /* owned; span: its contributors; NULL: a push */
    uint16_t n_from;
} ps_logged_t;

typedef struct ps_open_clock {
    ps_logged_t *pushes; /* owned; in order of arrival, until ps_open_clock_sort */
    size_t n_pushes;
    size_t capacity;
    uint64_t bytes; /* of payloads and entries */
} ps_open_clock_t;

void ps_open_clock_done(ps_open_clock_t *self);
/* What a push with this payload would add to bytes, or a span of n_from contributors; 0: a push. */
uint64_t ps_open_clock_cost(const ps_payload_t *payload, uint16_t n_from);
/* Makes room for n more. false: no memory. */
PSD_MUST_CHECK bool ps_open_clock_reserve(ps_open_clock_t *self, size_t n);
/* Adds a push or span; keeps the payload, takes the list of contributors. false: no memory,
 * nothing changed; not after ps_open_clock_reserve. */
PSD_MUST_CHECK bool ps_open_clock_add(ps_open_clock_t *self, const ps_logged_t *push);
/* True when one of these positions has something of that clock here. */
bool ps_open_clock_has(const ps_open_clock_t *self, uint32_t first, uint32_t n, uint64_t clock);
/* Sorts the pushes into the order in which they will be applied. */
void ps_open_clock_sort(ps_open_clock_t *self);
/* Sorts them for clocks whose deltas are added up: by clock; in a clock, changes of rows where they
 * lie first; then in the order above. */
void ps_open_clock_sort_by_clock(ps_open_clock_t *self);
/* Drops the first n pushes, which were applied. */
void ps_open_clock_drop(ps_open_clock_t *self, size_t n);
#endif
