/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_wait - what becomes of a shard whose wait fails
 *
 * What     A shard that ended by itself would be missed by nobody: its node
 *          still says that it is alive. So a shard without memory goes on, and
 *          one that cannot hear any more ends its process: other copies take
 *          over.
 * Threads  The shard's.
 */
#ifndef PS_DAEMON_SHARD_WAIT_H
#define PS_DAEMON_SHARD_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "psd/status.h"

/* rc and err: of the wait; err is cleared. Without memory: says so, and returns
 * a little later. false: the pipe was stopped, and the shard is to end.
 * Anything else says so and does not return. */
PSD_MUST_CHECK bool ps_shard_wait_check(uint32_t shard, void *pipe, psd_status_t rc,
                                        psd_error_t *err);
#endif
