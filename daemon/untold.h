/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_untold - tables that were dropped, and that shards may not know of yet
 *
 * What     The registry has forgotten them, so that nothing else remembers to
 *          tell their drop again. A place is taken before the registry is
 *          changed: there is memory to remember with.
 * Owner    The control part; embedded. Threads: confined to one.
 */
#ifndef PS_DAEMON_UNTOLD_H
#define PS_DAEMON_UNTOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_untold {
    uint32_t *tables; /* owned; in the order of their drops */
    size_t n;
    size_t capacity;
} ps_untold_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_untold_done(ps_untold_t *self);
/* Takes a place for one more. false: no memory. */
PSD_MUST_CHECK bool ps_untold_reserve(ps_untold_t *self);
/* Puts a table into the place that was taken. */
void ps_untold_add(ps_untold_t *self, uint32_t table);
/* Tells each, and forgets those that could be told; ends at the first that
 * could not. Errors: tell's. */
PSD_MUST_CHECK psd_status_t ps_untold_tell(
    ps_untold_t *self,
    psd_status_t (*tell)(void *context, uint32_t table, psd_error_t *err),
    void *context,
    psd_error_t *err);
#endif
