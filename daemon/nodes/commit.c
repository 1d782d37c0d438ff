/* SPDX-License-Identifier: Apache-2.0 */
/* Disk first, then memory, then the log. */
#include "daemon/nodes/commit.h"

#include <inttypes.h>
#include <time.h>

#include "transport/sockets/socket.h"

uint64_t ps_unix_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static const char *event_of(ps_command_kind_t kind)
{
    switch (kind) {
    case PS_COMMAND_CLUSTER:
        return "cluster_made";
    case PS_COMMAND_NODE:
        return "node_started";
    case PS_COMMAND_SESSIONS:
        return "sessions_set_aside";
    case PS_COMMAND_TABLE:
        return "table_created";
    case PS_COMMAND_DROP:
        return "table_dropped";
    case PS_COMMAND_JOB:
        return "job_changed";
    case PS_COMMAND_JOB_TABLE:
        return "job_opened_table";
    case PS_COMMAND_COPIES:
        return "copies_changed";
    case PS_COMMAND_NODE_STATE:
        return "node_state_changed";
    case PS_COMMAND_QUEUE:
        return "queue_made";
    case PS_COMMAND_WORK:
        return "work_changed";
    case PS_COMMAND_RESTORED:
        return "table_restored";
    case PS_COMMAND_ACK:
        return "table_loss_acked";
    case PS_COMMAND_NOTE:
        return "noted";
    default:
        return "registry_changed";
    }
}

psd_status_t ps_commit(ps_registry_db_t *db, ps_registry_t *registry, const ps_command_t *command,
                       ps_log_level_t level, bool *ret_broken, psd_error_t *err)
{
    char quoted[2 * sizeof command->text];
    psd_status_t rc = PSD_OK;

    if (command->kind == 0) {
        return PSD_OK;
    }
    rc = ps_registry_db_store(db, command, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_registry_apply(registry, command, ps_now_ms(), err);
    if (rc != PSD_OK) {
        if (ret_broken != NULL) {
            *ret_broken = true;
        }
        return rc;
    }
    ps_log(level, event_of(command->kind), "epoch=%" PRIu64 " text=%s", command->epoch,
           ps_log_quote(command->text, quoted, sizeof quoted));
    return PSD_OK;
}
