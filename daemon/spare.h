/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_spare - when to give free memory back to the system
 *
 * What     The allocator keeps freed memory for the next frames (main.c). When
 *          the shards have kept clearly less than before for a while, that
 *          memory is not needed soon: a table was dropped, a copy that was away
 *          has all its records, or connections with unfinished requests ended.
 * Units    bytes; looks, which come PS_SPARE_LOOK_MS apart
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_DAEMON_SPARE_H
#define PS_DAEMON_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_SPARE_LOOK_MS 500
#define PS_SPARE_LOOKS 4                   /* that all find little: 2 s */
#define PS_SPARE_BYTES ((uint64_t)4 << 20) /* less is not worth it */

typedef struct ps_spare {
    uint64_t most; /* that was kept since memory was given back */
    uint64_t last[PS_SPARE_LOOKS];
    size_t n_looks;
} ps_spare_t;

/* One look. true: give it back now. */
PSD_MUST_CHECK bool ps_spare_is_due(ps_spare_t *self, uint64_t kept_bytes);
#endif
