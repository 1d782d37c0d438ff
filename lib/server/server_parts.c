/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a server as the configuration wants them. */
#include <inttypes.h>
#include <unistd.h>

#include "server/control_ops.h"
#include "base/log.h"
#include "server/server_inner.h"
#include "protocol/placement/registry_decide.h"

#define NODES_MAX 1024

psd_status_t ps_server_open_replica(ps_server_t *self, psd_error_t *err)
{
    const ps_config_t *config = self->config;
    const ps_registry_args_t args = {
        .default_partitions = (uint32_t)config->tables.default_partitions,
        .lost_after_ms = config->workers.lost_after_ms,
        .join_within_ms = config->workers.join_within_ms,
        .heartbeat_ms = config->workers.heartbeat_ms,
        /* The control port refuses above limits.tables, which can change. */
        .tables_max = (uint32_t)ps_config_key(PS_KEY_limits_tables)->max,
        .jobs_max = (uint32_t)config->limits.jobs,
        .nodes_max = NODES_MAX,
        .copies_max = PS_REPLICAS_MAX,
        .moves_max = (uint32_t)config->copies.moves_max,
        .rebalance_on_request = !config->copies.even_out,
        .suspect_after_ms = config->cluster.suspect_after,
        .repair_after_ms = config->cluster.repair_after,
        .lease_ms = config->copies.lease_ms,
        .unreached_after_ms = config->copies.slow_after_ms,
        .copy_bytes_per_s = config->copies.bytes_per_s,
        .busy_copy_bytes_per_s = config->copies.busy_bytes_per_s,
        .disk = true,
    };

    return ps_replica_open(self->dir, &args, &self->replica, err);
}

psd_status_t ps_server_settle_life(ps_server_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    do {
        rc = ps_random(&self->incarnation, sizeof self->incarnation, err);
        self->incarnation &= INT64_MAX; /* a whole number in every JSON reader */
    } while (rc == PSD_OK && self->incarnation == 0);
    return rc;
}

psd_status_t ps_server_open_audit(ps_server_t *self, psd_error_t *err)
{
    const ps_audit_args_t args = {.disk = ps_disk_real(),
                                  .dir = self->dir,
                                  .file_bytes = self->config->audit.file_bytes,
                                  .files = self->config->audit.files,
                                  .unix_ms = ps_unix_ms(),
                                  .node = self->node,
                                  .release = PSD_RELEASE};
    ps_audit_found_t found = {.damaged = ""};
    char digest[PS_AUDIT_DIGEST_TEXT_SIZE];
    char quoted[512];
    psd_status_t rc = PSD_OK;

    if (args.files == 0) {
        return PSD_OK;
    }
    rc = ps_audit_log_open(&args, &found, &self->audit, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (found.damaged[0] != '\0') {
        ps_log(PS_LOG_ERROR, "audit_damaged",
               "reason=%s hint=\"the file is kept; pscli auth audit "
               "--verify DATA_DIR shows where\"",
               ps_log_quote(found.damaged, quoted, sizeof quoted));
    }
    if (found.lost[0] != '\0') {
        ps_log(PS_LOG_ERROR, "audit_not_written", "reason=%s",
               ps_log_quote(found.lost, quoted, sizeof quoted));
    }
    if (found.cut > 0) {
        ps_log(PS_LOG_WARN, "audit_cut", "bytes=%" PRIu64, found.cut);
    }
    ps_log(PS_LOG_INFO, "audit_opened", "seq=%" PRIu64 " digest=%s", found.seq,
           ps_audit_digest_text(ps_audit_log_end(self->audit).digest, digest));
    return PSD_OK;
}

psd_status_t ps_server_start_control(ps_server_t *self, psd_error_t *err)
{
    const ps_control_args_t args = {
        .ops = ps_control_ops,
        .n_ops = ps_control_n_ops,
        .config = self->config,
        .replica = self->replica,
        .registry = ps_replica_registry(self->replica),
        .db = ps_replica_db(self->replica),
        .net = ps_server_net(self),
        .port = self->port,
        .plugins = &self->plugins,
        .dir = self->dir,
        .node = self->node,
        .incarnation = self->incarnation,
        .turns = self->turns,
        .rights = self->rights,
        .admin_key = self->admin_key,
        .node_key = self->keys.public_key,
        .owner = (uint32_t)geteuid(),
        .meter = ps_metrics_control(self->metrics),
        .audit = self->audit,
    };

    return ps_control_new(&args, &self->control, err);
}
