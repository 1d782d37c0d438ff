/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_task_run - what the registry tells, to the shards of this node
 *
 * What     Used by the shell of the agent (member.h).
 */
#ifndef PS_SERVER_TASKS_H
#define PS_SERVER_TASKS_H

#include "server/config/plugins.h"
#include "server/shards/shards.h"

/* ret_local  out  the shards' number for it; 0: it is done already
 * Errors: PSD_BUSY and PSD_NOMEM, later it may go; what the shards, or a plug-in
 * that is not here, refuse. */
PSD_MUST_CHECK psd_status_t ps_task_run(ps_shards_t *shards, const ps_plugins_t *plugins,
                                        const ps_agent_task_t *task, uint64_t *ret_local,
                                        psd_error_t *err);
#endif
