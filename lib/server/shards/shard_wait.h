/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_wait - how a shard handles a wait that fails
 *
 * What     Nothing would notice a shard that ended by itself: its node still
 *          reports that it is alive. So a shard without memory goes on, and a
 *          shard that can no longer receive ends, and its node with it: other copies
 *          take over.
 * Threads  The shard's.
 */
#ifndef PS_SERVER_SHARD_WAIT_H
#define PS_SERVER_SHARD_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "psd/status.h"

typedef enum ps_waited { PS_WAITED_OK, PS_WAITED_STOPPED, PS_WAITED_DEAF } ps_waited_t;

/* rc and err: of the wait; err is cleared. Without memory: logs it, and
 * returns a little later. STOPPED: the pipe was stopped, and the shard must
 * end. DEAF: so must it after any other error, which is logged. */
PSD_MUST_CHECK ps_waited_t ps_shard_wait_check(uint32_t shard, void *pipe, psd_status_t rc,
                                               psd_error_t *err);
#endif
