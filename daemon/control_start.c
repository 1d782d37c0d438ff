/* SPDX-License-Identifier: Apache-2.0 */
/* What the shards must know before the first request. */
#include <inttypes.h>

#include "daemon/control_inner.h"

/* A table whose plug-in is gone does not keep the others from being served. */
static psd_status_t
tell_table(ps_control_t *self, const ps_table_t *table, psd_error_t *err)
{
    char quoted[512];
    psd_status_t rc = ps_control_check_updater(self, &table->spec, err);

    if (rc == PSD_OK) {
        return ps_fleet_tell_table(self->fleet, table, err);
    }
    ps_log(PS_LOG_ERROR, "table_unusable", "table=%s reason=%s",
           table->spec.name,
           ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    psd_error_clear(err);
    return PSD_OK;
}

psd_status_t
ps_control_start(ps_control_t *self, psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;

    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);
        psd_status_t rc = tell_table(self, table, err);

        if (rc != PSD_OK) {
            return psd_error_wrap(err, rc, "table \"%s\"", table->spec.name);
        }
        if (table->rows_lost) {
            ps_log(PS_LOG_WARN, "rows_lost",
                   "table=%s id=%" PRIu32
                   " reason=restart hint=\"rows begin again at their first "
                   "values; drop and create the table to clear this\"",
                   table->spec.name, table->id);
        }
    }
    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        const ps_job_t *job = ps_registry_job_at(registry, i);
        psd_status_t rc = ps_fleet_tell_job(self->fleet, job, err);

        if (rc != PSD_OK) {
            return psd_error_wrap(err, rc, "job \"%s\"", job->name);
        }
    }
    return PSD_OK;
}
