/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_wait - how a shard handles a wait that fails
 *
 * What     Nothing would notice a shard that ended by itself: its node still
 *          reports that it is alive. So a shard without memory goes on, and a
 *          shard that can no longer receive ends its process: other copies take
 *          over.
 * Threads  The shard's.
 */
#ifndef PS_SERVER_SHARD_WAIT_H
#define PS_SERVER_SHARD_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "psd/status.h"

/* rc and err: of the wait; err is cleared. Without memory: logs it, and
 * returns a little later. false: the pipe was stopped, and the shard must
 * end. Logs any other error and does not return. */
PSD_MUST_CHECK bool ps_shard_wait_check(uint32_t shard, void *pipe, psd_status_t rc,
                                        psd_error_t *err);
#endif
