/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shelf - how a command, or an entry of the log, becomes part of the state
 *
 * What     A command is tried on the registry in memory, put on the shelf, and
 *          kept; or undone when it cannot be stored. The daemon, a forced
 *          registry, `pscli cluster registry single`, the simulator and the tests
 *          all take this way.
 * Owner    Plain values. Threads: confined to one.
 */
#ifndef PS_STORAGE_REGISTRY_SHELF_H
#define PS_STORAGE_REGISTRY_SHELF_H

#include "protocol/quorum/quorum_message.h"
#include "protocol/registry/registry.h"
#include "storage/registry/registry_db.h"
#include "storage/registry/registry_log.h"

/* Where the state is stored: each call is one transaction, with the place. */
typedef struct ps_shelf {
    void *context;
    /* The command that the registry has on trial. */
    psd_status_t (*put)(void *context, const ps_registry_t *registry, const ps_command_t *command,
                        ps_applied_t at, psd_error_t *err);
    /* Members; NULL: as before, only the place. */
    psd_status_t (*put_members)(void *context, const ps_quorum_members_t *members, ps_applied_t at,
                                psd_error_t *err);
} ps_shelf_t;

/* The shelf of a database. */
ps_shelf_t ps_shelf_of(ps_registry_db_t *db);
/* Members by a change of them that has that index. Errors: those of
 * ps_registry_db_store_members. */
PSD_MUST_CHECK psd_status_t ps_shelf_put_members(ps_registry_db_t *db,
                                                 const ps_quorum_members_t *members, uint64_t index,
                                                 ps_applied_t at, psd_error_t *err);

/* Tries a command, puts it on the shelf, and keeps it; or undoes it when it
 * cannot be stored. Errors: those of ps_registry_try and put. */
PSD_MUST_CHECK psd_status_t ps_shelf_store(ps_registry_t *registry, const ps_shelf_t *shelf,
                                           const ps_command_t *command, ps_applied_t at,
                                           uint64_t now_ms, psd_error_t *err);
/* Makes a committed entry part of the state. Errors: PSD_DAMAGED it does not fit
 * the state; those of ps_shelf_store, ps_command_decode and
 * ps_quorum_members_decode. */
PSD_MUST_CHECK psd_status_t ps_shelf_apply(ps_registry_t *registry, const ps_shelf_t *shelf,
                                           const ps_registry_entry_t *entry, uint64_t now_ms,
                                           psd_error_t *err);
#endif
