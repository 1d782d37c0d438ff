/* SPDX-License-Identifier: Apache-2.0 */
/* Commands and entries of the log become part of the state. */
#include "storage/registry/registry_shelf.h"

#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/command_code.h"

/* ---- a database ---- */

static psd_status_t put(void *context, const ps_registry_t *registry, const ps_command_t *command,
                        ps_applied_t at, psd_error_t *err)
{
    return ps_registry_db_store(context, registry, command, at, err);
}

static psd_status_t put_members(void *context, const ps_quorum_members_t *members, ps_applied_t at,
                                psd_error_t *err)
{
    return members == NULL ? ps_registry_db_store_members(context, NULL, 0, at, err)
                           : ps_shelf_put_members(context, members, at.index, at, err);
}

ps_shelf_t ps_shelf_of(ps_registry_db_t *db)
{
    return (ps_shelf_t){.context = db, .put = put, .put_members = put_members};
}

psd_status_t ps_shelf_put_members(ps_registry_db_t *db, const ps_quorum_members_t *members,
                                  uint64_t index, ps_applied_t at, psd_error_t *err)
{
    ps_registry_member_t rows[PS_REGISTRY_MEMBERS_MAX] = {0};

    for (uint32_t i = 0; i < members->n; i++) {
        rows[i] = (ps_registry_member_t){
            .id = members->at[i].id,
            .role = members->at[i].role == PS_QUORUM_VOTER ? PS_ROLE_VOTER : PS_ROLE_STANDBY,
            .index = index};
        memcpy(rows[i].node, members->at[i].node, sizeof rows[i].node);
    }
    return ps_registry_db_store_members(db, rows, members->n, at, err);
}

/* ---- the way ---- */

psd_status_t ps_shelf_store(ps_registry_t *registry, const ps_shelf_t *shelf,
                            const ps_command_t *command, ps_applied_t at, uint64_t now_ms,
                            psd_error_t *err)
{
    psd_status_t rc = ps_registry_try(registry, command, now_ms, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = shelf->put(shelf->context, registry, command, at, err);
    if (rc == PSD_OK) {
        ps_registry_keep(registry);
    } else {
        ps_registry_undo(registry);
    }
    return rc;
}

psd_status_t ps_shelf_apply(ps_registry_t *registry, const ps_shelf_t *shelf,
                            const ps_registry_entry_t *entry, uint64_t now_ms, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_applied_t at = {.index = entry->index, .term = entry->term};
    ps_quorum_members_t members = {0};
    psd_status_t rc = PSD_OK;

    switch (entry->kind) {
    case PS_REGISTRY_COMMAND:
        rc = ps_command_decode(entry->bytes, &command, err);
        return rc == PSD_OK ? ps_shelf_store(registry, shelf, &command, at, now_ms, err) : rc;
    case PS_REGISTRY_MEMBERS:
        rc = ps_quorum_members_decode(entry->bytes, &members, err);
        return rc == PSD_OK ? shelf->put_members(shelf->context, &members, at, err) : rc;
    case PS_REGISTRY_BARRIER:
    default:
        return shelf->put_members(shelf->context, NULL, at, err);
    }
}
