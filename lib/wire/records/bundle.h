/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bundle - the pushes and marks of several clients at one partition, as one
 *
 * What     A relay brings what it was given in one clock as a bundle: who it is
 *          of (the contributors), and the deltas, added up as far as they could
 *          be (the spans). The same bytes go over the wire and into the log.
 * Shape    contributors, then spans, then the bytes of the spans; all
 *          little-endian. Each part begins at a multiple of 8, with zeros
 *          between.
 *          contributor (PS_BUNDLE_FROM bytes): session u64, first_seq u64,
 *          last_seq u64, worker u32, member u32, joins u32, marks u8, tail u8, 2
 *          zeros (marks: how many clocks end in first_seq … last_seq; with deltas of
 *          one clock 0 or 1)
 *          span (PS_BUNDLE_SPAN bytes): first u32, n u32, from u16, n_from u16,
 *          rows u8, layout u8, cols u8, type u8, n_rows u64, first_row u64,
 *          n_values u64, first_col u32, n_cols u32
 *          bytes of a span: keys, index and values, as its slice requires
 *          then perhaps a check for each contributor, u64 (model/combine/combine_check.h): its
 *          pushes' deltas, as their origin has them. All have one, or none; the log has none.
 * Rules    Contributors ascend by worker, then member; no session is there
 *          twice. A span is of the positions first … first + n - 1, an aligned
 *          interval, and of the n_from contributors from `from` on: exactly
 *          those whose workers have these positions. Spans ascend and do not
 *          meet. A contributor that is in no span has rows in none: it only
 *          marks.
 * Owner    ps_bundle_read allocates the two lists; the bytes stay the caller's.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_WIRE_BUNDLE_H
#define PS_WIRE_BUNDLE_H

#include "wire/messages/message.h"

/* A client whose pushes and marks first_seq … last_seq are in the bundle. */
/* What last_seq does, where pushes of several clocks are one sum. */
#define PS_BUNDLE_TAIL_PUSH 1 /* it ends no clock */
#define PS_BUNDLE_TAIL_MARK 2 /* it does */

typedef struct ps_bundle_from {
    uint64_t session;
    uint64_t first_seq;
    uint64_t last_seq;
    uint32_t worker;
    uint32_t member;
    uint32_t joins;
    uint8_t marks; /* clocks that end there; of a job with max_delay 0: 1, and the last one does */
    uint8_t tail;  /* PS_BUNDLE_TAIL_… of a job with another max_delay; else 0 */
    bool has_check;
    uint64_t check; /* of all that it pushed in first_seq … last_seq; 0: nothing */
} ps_bundle_from_t;

/* Deltas of the workers at some positions, added up. */
typedef struct ps_bundle_span {
    uint32_t first; /* positions … */
    uint32_t n;
    uint16_t from; /* contributors … */
    uint16_t n_from;
    ps_slice_t slice; /* rows LIST or RANGE */
    ps_body_t body;   /* borrowed */
} ps_bundle_span_t;

typedef struct ps_bundle {
    ps_bundle_from_t *from;  /* owned when it was read */
    ps_bundle_span_t *spans; /* likewise */
    uint16_t n_from;         /* 1 and up */
    uint16_t n_spans;
} ps_bundle_t;

/* Frees the lists and zeroes the struct; fits PSD_AUTO. */
void ps_bundle_done(ps_bundle_t *self);
/* Do all contributors have a check? */
bool ps_bundle_is_checked(const ps_bundle_from_t *from, size_t n_from);
/* Bytes of the bundle. false: its slices cannot be counted. */
PSD_MUST_CHECK bool ps_bundle_size(const ps_bundle_t *self, size_t *ret_size);
/* Writes them. */
void ps_bundle_write(const ps_bundle_t *self, uint8_t *to);
/*
 * Reads a bundle of n_from contributors and n_spans spans. Trusts nothing: checks
 * the rules above, that the parts have exactly the lengths that the slices
 * require, that sparse counts add up, and that what is unused is zero. It knows
 * no table: whether rows and columns are the partition's is not checked.
 * Errors: PSD_PROTO, naming place, value and what is allowed; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_bundle_read(ps_bytes_t bytes, uint16_t n_from, uint16_t n_spans,
                                           ps_bundle_t *ret_bundle, psd_error_t *err);
/* The same of a payload's values, which must be one span, not `shared`; the bytes are the
 * payload's. */
PSD_MUST_CHECK psd_status_t ps_bundle_open(const ps_payload_t *payload, uint32_t n_from,
                                           uint32_t n_spans, ps_bundle_t *ret_bundle,
                                           psd_error_t *err);
/* The payload of a bundle that was read from it, without checks: held, or a part of it. NULL: no
 * memory. */
PSD_MUST_CHECK ps_payload_t *ps_bundle_unchecked(const ps_bundle_t *self, ps_payload_t *payload);
/* Keys, index and values of a span, as a payload that holds the bundle's. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_bundle_span_payload(const ps_bundle_span_t *span,
                                                    ps_payload_t *payload);
#endif
