/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rates - how fast the links of a job were, and how long ago
 *
 * What     Goodput of each directed link between two ends, from the transfers that
 *          used it. An end is a worker or a node with shards.
 * Shape    n_ends x n_ends, n_ends at most PS_RATES_ENDS_MAX.
 * Units    Bytes per second; clocks of the job for age.
 * Age      A measurement is unknown again when more than `expiry` clocks have passed
 *          since. Younger bytes count more: each transfer halves the weight of what
 *          was measured PS_RATES_MEMORY_BYTES before it.
 * Owner    The caller; ps_rates_destroy.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_OVERLAY_RATES_H
#define PS_PROTOCOL_OVERLAY_RATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_RATES_ENDS_MAX 1024u
#define PS_RATES_MEMORY_BYTES (16.0 * 1024 * 1024)
/* A smaller transfer says more about latency than about the link. */
#define PS_RATES_MEASURE_BYTES (256u * 1024)

typedef struct ps_rates ps_rates_t;

/* expiry: in clocks, from 1. Errors: PSD_INVALID too many ends, expiry 0; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_rates_new(uint32_t n_ends, uint64_t expiry, ps_rates_t **ret_rates,
                                         psd_error_t *err);
void ps_rates_destroy(ps_rates_t **self_p);

/* A transfer of `bytes` took `us` from its first to its last byte; `clock`: that of the
 * job. Less than PS_RATES_MEASURE_BYTES is ignored, and so is an end that is not there:
 * the report comes from elsewhere. */
void ps_rates_measured(ps_rates_t *self, uint32_t from, uint32_t to, uint64_t bytes, uint64_t us,
                       uint64_t clock);
/* Forgets what was measured at that end: another process is there now. */
void ps_rates_forget(ps_rates_t *self, uint32_t end);

/* Bytes per second; 0: unknown, or measured too long ago. */
double ps_rates_of(const ps_rates_t *self, uint32_t from, uint32_t to, uint64_t clock);
#endif
