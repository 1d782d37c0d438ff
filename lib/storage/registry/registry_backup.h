/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry_backup, ps_registry_restore - the registry as bytes of a file
 *
 * What     A backup is a complete SQLite database, the registry after one
 *          command, followed by "psdBackp" and the u64 XXH3-64 of all bytes
 *          before, which SQLite ignores. It is taken while the registry runs.
 *          A restore writes it into a data directory that has no registry,
 *          before its psd starts. The restored registry does not know what
 *          happened after the backup. So it continues its numbers (epochs,
 *          sessions, tables, jobs) far above those of the backup, and never
 *          reuses a number that nodes and clients still know.
 * Threads  The database's.
 */
#ifndef PS_STORAGE_REGISTRY_BACKUP_H
#define PS_STORAGE_REGISTRY_BACKUP_H

#include "base/bytes.h"
#include "storage/registry/registry_db.h"

/* Appends a backup to ret_bytes, by SQLite's online backup. Errors: PSD_IO,
 * PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_backup(ps_registry_db_t *db, ps_buffer_t *ret_bytes,
                                               psd_error_t *err);
/* Checks that it is complete and unchanged. Errors: PSD_FOREIGN it is no
 * backup; PSD_DAMAGED. */
PSD_MUST_CHECK psd_status_t ps_registry_backup_check(ps_bytes_t bytes, psd_error_t *err);
/*
 * Makes an open database what the backup holds, in one transaction: after a
 * crash it is the old one or the new one.
 *
 * Errors: PSD_FOREIGN, PSD_DAMAGED as above; PSD_IO, PSD_NOMEM: the database is
 * to be closed.
 */
PSD_MUST_CHECK psd_status_t ps_registry_db_replace(ps_registry_db_t *db, ps_bytes_t bytes,
                                                   psd_error_t *err);
/* The database of the registry is of another history from here on: a new lineage, no members,
 * and numbers far above, so that none is given out twice. kind, text: for the history. One
 * transaction. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_db_advance(ps_registry_db_t *db, uint64_t unix_ms,
                                                   const char *kind, const char *text,
                                                   psd_error_t *err);
/*
 * Checks the bytes as a start of psd would, and makes DIR/registry.db of them,
 * whole or not at all. DIR is made when it is not there.
 *
 * Errors: PSD_HELD a psd runs there; PSD_INVALID DIR has a registry;
 * PSD_FOREIGN the bytes are no registry, or of a newer psd; PSD_DAMAGED;
 * PSD_IO; PSD_NOMEM. DIR is then as it was.
 */
PSD_MUST_CHECK psd_status_t ps_registry_restore(const char *dir, ps_bytes_t bytes, uint64_t unix_ms,
                                                psd_error_t *err);
#endif
