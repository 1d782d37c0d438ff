/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_filler - prefault thread: faults in memory before a shard writes it
 *
 * What     A thread beside the shards. The first write to a huge page waits
 *          until the kernel has zeroed it; under a hypervisor that takes
 *          milliseconds. While a table grows, a push would pay for that.
 *          Prefaulting never changes contents, so a writer may be faster, and
 *          the memory may be freed or reused by then. A request that finds the
 *          list full is dropped.
 * Owner    The caller; ps_filler_destroy ends the thread.
 * Threads  ps_filler_add from any; the rest from one.
 */
#ifndef PS_SERVER_FILLER_H
#define PS_SERVER_FILLER_H

#include "model/rows/pages.h"
#include "psd/status.h"
#include "transport/threads/turns.h"

typedef struct ps_filler ps_filler_t;

/* turns: where its thread reports that it turns; may be NULL. Errors:
 * PSD_NOMEM; PSD_IO no thread. */
PSD_MUST_CHECK psd_status_t ps_filler_new(ps_turns_t *turns, ps_filler_t **ret_filler,
                                          psd_error_t *err);
/* Drops what is waiting. */
void ps_filler_destroy(ps_filler_t **self_p);
void ps_filler_add(ps_filler_t *self, const ps_soon_t *soon);
#endif
