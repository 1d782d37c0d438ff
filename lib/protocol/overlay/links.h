/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/overlay: which worker sends what to whom
 *
 * It is       The measured network of a job, the plan that follows from it, and the
 *             settings that limit both.
 * It uses     lib/base.
 * It ignores  Connections, messages, rows, and who carries a plan out.
 * Start at    ps_overlay_plan_make in overlay_plan.h.
 */
/*
 * ps_links - how fast the links of a job were, and how long ago
 *
 * What     Goodput of each directed link between two ends, from the transfers that
 *          used it. An end is a worker or a node with shards.
 * Shape    n_ends x n_ends, n_ends at most PS_LINKS_ENDS_MAX.
 * Units    Bytes per second; clocks of the job for age.
 * Age      A measurement is unknown again when more than `expiry` clocks have passed
 *          since. Younger bytes count more: each transfer halves the weight of what
 *          was measured PS_LINKS_MEMORY_BYTES before it.
 * Capacity What an end sends or receives over all its links together. A matrix alone
 *          cannot see that links share a wire.
 * Owner    The caller; ps_links_destroy.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_OVERLAY_LINKS_H
#define PS_PROTOCOL_OVERLAY_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_LINKS_ENDS_MAX 1024u
#define PS_LINKS_MEMORY_BYTES (16.0 * 1024 * 1024)
/* A smaller transfer says more about latency than about the link. */
#define PS_LINKS_MEASURE_BYTES (256u * 1024)

typedef struct ps_links ps_links_t;

/* expiry: in clocks, from 1. Errors: PSD_INVALID too many ends, expiry 0; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_links_new(uint32_t n_ends, uint64_t expiry, ps_links_t **ret_links,
                                         psd_error_t *err);
void ps_links_destroy(ps_links_t **self_p);

/* A transfer of so many bytes took so long, first to last byte; `clock`: that of the
 * job. Less than PS_LINKS_MEASURE_BYTES is ignored, and so is an end that is not there:
 * the report comes from elsewhere. */
void ps_links_measured(ps_links_t *self, uint32_t from, uint32_t to, uint64_t bytes, uint64_t us,
                       uint64_t clock);
/* All transfers of that end together reached this rate, out or in; 0: not seen. The
 * greatest within `expiry` counts. */
void ps_links_seen(ps_links_t *self, uint32_t end, double out, double in, uint64_t clock);
/* Forgets what was measured at that end: another process is there now. */
void ps_links_forget(ps_links_t *self, uint32_t end);

/* Bytes per second; 0: unknown, or measured too long ago. */
double ps_links_rate(const ps_links_t *self, uint32_t from, uint32_t to, uint64_t clock);
/* The greatest rate seen at that end; 0: unknown. */
double ps_links_out(const ps_links_t *self, uint32_t end, uint64_t clock);
double ps_links_in(const ps_links_t *self, uint32_t end, uint64_t clock);

/* Fills rates[n_ends][n_ends]. An unknown link gets the median of the known links
 * between the same two sites, else of all, else `otherwise`. sites: of each end, any
 * numbers. The diagonal is 0. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_links_guess(const ps_links_t *self, const uint32_t *sites,
                                           uint64_t clock, double otherwise, double *rates,
                                           psd_error_t *err);
#endif
