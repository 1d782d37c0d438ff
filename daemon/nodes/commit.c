/* SPDX-License-Identifier: Apache-2.0 */
/* Tries a command in memory, writes it to disk, keeps it, logs it. */
#include "daemon/nodes/commit.h"

#include <inttypes.h>
#include <time.h>

#include "protocol/registry/command_code.h"
#include "transport/sockets/socket.h"

uint64_t ps_unix_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

psd_status_t ps_commit(ps_registry_db_t *db, ps_registry_t *registry, const ps_command_t *command,
                       ps_log_level_t level, psd_error_t *err)
{
    char quoted[2 * sizeof command->text];
    psd_status_t rc = PSD_OK;

    if (command->kind == 0) {
        return PSD_OK;
    }
    rc = ps_registry_try(registry, command, ps_now_ms(), err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_registry_db_store(db, registry, command, ps_registry_db_next(db), err);
    if (rc != PSD_OK) {
        ps_registry_undo(registry);
        return rc;
    }
    ps_registry_keep(registry);
    ps_log(level, ps_command_event(command->kind), "epoch=%" PRIu64 " text=%s", command->epoch,
           ps_log_quote(command->text, quoted, sizeof quoted));
    return PSD_OK;
}
