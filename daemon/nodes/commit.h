/* SPDX-License-Identifier: Apache-2.0 */
/* ps_commit - one command of the registry: stored, applied, logged. */
#ifndef PS_DAEMON_COMMIT_H
#define PS_DAEMON_COMMIT_H

#include "base/log.h"
#include "storage/registry/registry_db.h"

/*
 * Stores and applies a planned command, and writes what happened to the log at
 * `level`. A command of kind 0 is nothing to do.
 *
 * ret_broken  out  true when it was stored but could not be applied: this
 *                  process no longer knows what is on disk. May be NULL.
 *
 * Errors: PSD_IO it is neither stored nor applied; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_commit(ps_registry_db_t *db, ps_registry_t *registry,
                                      const ps_command_t *command, ps_log_level_t level,
                                      bool *ret_broken, psd_error_t *err);
/* Wall clock in milliseconds, for the history. */
uint64_t ps_unix_ms(void);
#endif
