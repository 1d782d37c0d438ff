/* SPDX-License-Identifier: Apache-2.0 */
/* What the shards must know before the first request. */
#include <inttypes.h>

#include "daemon/control_inner.h"

psd_status_t
ps_control_start(ps_control_t *self, psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;

    (void)err;
    ps_fleet_set_damage(self->fleet, self->is.incarnation, self->is.damage);
    ps_control_note_damage(self, self->is.node, self->is.damage);
    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        ps_fleet_tell_table(self->fleet, table->id);
        if (table->rows_lost) {
            ps_log(PS_LOG_WARN, "rows_lost",
                   "table=%s id=%" PRIu32
                   " reason=restart hint=\"rows begin again at their first "
                   "values; drop and create the table to clear this\"",
                   table->spec.name, table->id);
        }
    }
    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        ps_fleet_tell_job(self->fleet, ps_registry_job_at(registry, i)->id);
    }
    ps_control_decide_later(self);
    return PSD_OK;
}
