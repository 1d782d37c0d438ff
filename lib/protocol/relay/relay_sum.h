/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_relay_sum - several lots of one clock become one
 *
 * What     A lot is what a client or a relay hands over at once: contributors, and deltas of
 *          their positions. Lots of one partition and clock are added as far as that cannot
 *          change a bit; what cannot be added travels side by side.
 * Bits     The server adds a clock's deltas by halves of the positions (model/combine). A sum of
 *          an aligned interval may be made before, anywhere, when it has everything that the
 *          workers at these positions bring in that clock. So lots are added only where every
 *          worker of the plan in the interval is whole: each of its clients is there, with all
 *          of its range, and has marked the clock. The additions are then the server's own, in
 *          its order; therefore it makes no difference which relay makes them, or whether one
 *          does. A worker that is not in the plan is taken as absent; the server looks itself
 *          and splits a span that lacks a worker who lives.
 *          Where sums are exact (integers), any order gives the same bits, and any lots are
 *          added.
 * Floats   A sum that is not finite is not made: its parts travel side by side, and the server
 *          decides.
 * Threads  Pure functions.
 */
#ifndef PS_PROTOCOL_RELAY_SUM_H
#define PS_PROTOCOL_RELAY_SUM_H

#include "model/combine/combine.h"
#include "protocol/relay/relay_plan.h"
#include "wire/records/bundle.h"

/* Deltas of positions first … first + n - 1. */
typedef struct ps_relay_span {
    uint32_t first;
    uint32_t n;
    ps_slice_t slice;
    ps_payload_t *payload;
} ps_relay_span_t;

typedef struct ps_relay_lot {
    ps_bundle_from_t *from; /* ascend by worker, then member */
    ps_relay_span_t *spans; /* ascend, do not meet */
    uint16_t n_from;
    uint16_t n_spans;
} ps_relay_lot_t;

typedef struct ps_relay_sum_args {
    const ps_relay_tree_t *tree;
    const uint64_t *went; /* a bit for each position: something of it has gone on already */
    bool any_order;       /* sums are exact */
    ps_type_t type;
    uint32_t first_col; /* of the partition … */
    uint32_t width;     /* … and its number of columns */
} ps_relay_sum_args_t;

/* Drops the payloads, frees the lists, zeroes the struct. */
void ps_relay_lot_done(ps_relay_lot_t *self);
/* A copy of the lists that holds the payloads (a private copy of shared ones). Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_relay_lot_copy(const ps_relay_lot_t *lot, ps_relay_lot_t *ret_lot,
                                              psd_error_t *err);
/* Bytes of lists and payloads. */
uint64_t ps_relay_lot_bytes(const ps_relay_lot_t *self);

/* Which lots must travel alone: those with a worker that is not whole (any_order: whose ranges do
 * not follow each other), and all that it shares a lot with. ret_alone: [n_lots]. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_sum_look(const ps_relay_sum_args_t *args,
                                              const ps_relay_lot_t *const *lots, size_t n_lots,
                                              bool *ret_alone, psd_error_t *err);
/*
 * Makes one lot of lots, of which none must travel alone.
 *
 * ret_fits  false: they meet, or a client's own deltas have a sum that is not finite, or they
 *           are too many for one bundle; nothing was made, and each travels alone
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_relay_sum_make(const ps_relay_sum_args_t *args,
                                              const ps_relay_lot_t *const *lots, size_t n_lots,
                                              bool *ret_fits, ps_relay_lot_t *ret_lot,
                                              psd_error_t *err);
#endif
