/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a member before its thread has it. */
#include "server/quorum/replica_log.h"

#include <unistd.h>

#include "base/alloc.h"
#include "storage/registry/registry_log.h"

psd_status_t ps_replica_log_dir(const char *dir, ps_buffer_t *ret, psd_error_t *err)
{
    return ps_buffer_print(ret, "%s/" PS_REGISTRY_LOG, dir)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for a path");
}

bool ps_replica_has_log(const char *dir)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    return ps_buffer_print(&path, "%s/" PS_REGISTRY_LOG "/term", dir) &&
           access((const char *)path.data, F_OK) == 0;
}

psd_status_t ps_replica_make_log(const char *data_dir, const ps_id_t *cluster,
                                 const ps_id_t *lineage, uint64_t member, uint64_t first,
                                 uint64_t term, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_registry_log_close) ps_registry_log_t *log = NULL;
    ps_registry_log_args_t args = {
        .disk = ps_disk_real(), .cluster = *cluster, .member = member, .segment_bytes = 1};
    psd_status_t rc = ps_replica_log_dir(data_dir, &dir, err);

    args.dir = (const char *)dir.data;
    if (rc == PSD_OK) {
        rc = ps_registry_log_create(&args, lineage, first, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_log_open(&args, &log, err);
    }
    return rc == PSD_OK ? ps_registry_log_set_term(log, term, 0, err) : rc;
}

psd_status_t ps_replica_new_member(uint64_t *ret_member, psd_error_t *err)
{
    psd_status_t rc = ps_random(ret_member, sizeof *ret_member, err);

    *ret_member = (*ret_member & INT64_MAX) | 1; /* not 0 */
    return rc;
}

psd_status_t ps_replica_prepare(const char *dir, const ps_node_message_t *invite, psd_error_t *err)
{
    uint64_t member = 0;
    psd_status_t rc = ps_replica_new_member(&member, err);

    return rc == PSD_OK
               ? ps_replica_make_log(dir, &invite->cluster, &invite->at.lineage, member, 1, 0, err)
               : rc;
}
