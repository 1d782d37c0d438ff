/* SPDX-License-Identifier: Apache-2.0 */
/* What is settled before the first request. */
#include <inttypes.h>
#include <stdio.h>

#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

/* The first table whose restore was cut off by the end of its process. */
static const ps_table_t *half_restored(const ps_registry_t *registry)
{
    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        if (table->restoring) {
            return table;
        }
    }
    return NULL;
}

/* The rest of its rows would never come: drops the table, and the history says
 * why. */
static psd_status_t drop_half_restored(ps_control_t *self, psd_error_t *err)
{
    const ps_table_t *table = half_restored(self->is.registry);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && table != NULL) {
        PSD_AUTO(ps_command_done) ps_command_t note = {0};
        char text[sizeof note.text];

        (void)snprintf(text, sizeof text,
                       "table %s was being restored when the registry's node ended: the restore "
                       "failed, and the table is dropped",
                       table->spec.name);
        rc = ps_control_drop_table(self, NULL, table->spec.name, err);
        if (rc == PSD_OK) {
            note = ps_registry_plan_note(self->is.registry, ps_unix_ms(), text);
            rc = ps_control_commit(self, &note, PS_LOG_WARN, err);
        }
        table = half_restored(self->is.registry);
    }
    return rc;
}

psd_status_t ps_control_start(ps_control_t *self, psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    psd_status_t rc = drop_half_restored(self, err);

    self->begun_ms = ps_now_ms();
    ps_control_tell_seats(self);
    if (rc == PSD_OK) {
        rc = ps_control_begin_rights(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        if (table->rows_lost && !table->loss_acked) {
            ps_log(
                PS_LOG_WARN, "rows_lost",
                "table=%s id=%" PRIu32
                " reason=restart hint=\"rows restart at their initial values; 'pscli table ack %s' "
                "accepts the loss and keeps the rows that came since, or drop and create it\"",
                table->spec.name, table->id, table->spec.name);
        }
    }
    ps_control_tell_overridden(self, 0);
    ps_control_decide_later(self);
    return PSD_OK;
}
