/* SPDX-License-Identifier: Apache-2.0 */
/* ps_commit - one command of the registry: tried, stored, kept, logged. */
#ifndef PS_DAEMON_COMMIT_H
#define PS_DAEMON_COMMIT_H

#include "base/log.h"
#include "storage/registry/registry_db.h"

/*
 * Applies and stores a planned command, or neither, and writes what happened to
 * the log at `level`. A command of kind 0 does nothing. Errors: PSD_IO,
 * PSD_NOMEM, PSD_DAMAGED: it is neither stored nor applied.
 */
PSD_MUST_CHECK psd_status_t ps_commit(ps_registry_db_t *db, ps_registry_t *registry,
                                      const ps_command_t *command, ps_log_level_t level,
                                      psd_error_t *err);
/* Wall clock in milliseconds, for the history. */
uint64_t ps_unix_ms(void);
#endif
