/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_relay_tally - what the workers of a plan have reported, for people
 *
 * What     Bytes and speed of each link that was used, with the time when a report said so; how
 *          many pushes and bundles each worker counts; how long a clock of the first worker takes
 *          (of PS_RELAY_TALLY_CLOCKS clocks at least, or of PS_RELAY_TALLY_LONG_US). No plan is
 *          made of it: a speed stays here when a plan does not count on it any more.
 * Shape    Workers are numbered by their places in the plan; the number after the last is that of
 *          all nodes together.
 * Large    Of more than PS_RELAY_TALLY_WORKERS workers links are not kept.
 * Units    Bytes, microseconds of any clock.
 * Owner    ps_relay_tally_done; zero it first.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_RELAY_TALLY_H
#define PS_PROTOCOL_RELAY_TALLY_H

#include "protocol/relay/relay_doc.h"

#define PS_RELAY_TALLY_WORKERS 128u
#define PS_RELAY_TALLY_CLOCKS 3
#define PS_RELAY_TALLY_LONG_US 2000000

typedef struct ps_relay_tally_link {
    uint64_t bytes;      /* of all reports; 0: it was not used */
    uint64_t last_bytes; /* of the last one … */
    uint64_t last_us;    /* … and the time that they took */
    uint64_t at_us;      /* when it came */
} ps_relay_tally_link_t;

typedef struct ps_relay_tally {
    uint32_t n_workers;
    ps_relay_tally_link_t *links; /* owned, [from][to], the nodes last; NULL: too many */
    ps_overlay_counts_t *counts;  /* owned, [n_workers]; has is false: it has said none */
    uint64_t clock;               /* of the first worker, where the measurement goes on … */
    uint64_t at_us;               /* … when it finished that … */
    uint64_t pushed;              /* … and what it had pushed by then */
    uint64_t clock_us;            /* of one of the last clocks; 0: not measured */
    uint64_t clock_bytes;         /* that it pushed in each of them */
} ps_relay_tally_t;

void ps_relay_tally_done(ps_relay_tally_t *self);
/* There are that many workers now: forgets what others have said. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_tally_begin(ps_relay_tally_t *self, uint32_t n_workers,
                                                 psd_error_t *err);
/* A worker of that plan has reported; links to others are ignored. */
void ps_relay_tally_hear(ps_relay_tally_t *self, const ps_relay_facts_t *facts, uint32_t worker,
                         const ps_overlay_report_t *report, uint64_t now_us);
/* The link between two places; to: or the number of workers, for the nodes. NULL: it was not
 * used. */
const ps_relay_tally_link_t *ps_relay_tally_link(const ps_relay_tally_t *self, uint32_t from,
                                                 uint32_t to);
/* Bytes per second of the last report. */
double ps_relay_tally_rate(const ps_relay_tally_link_t *link);
#endif
