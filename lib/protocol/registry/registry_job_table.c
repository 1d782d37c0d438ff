/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that jobs have open: opened (a command, planned, checked and applied),
 * and closed when they are dropped. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_journal.h"

static bool has_open(const ps_job_entry_t *entry, uint32_t table)
{
    for (size_t i = 0; i < entry->n_tables; i++) {
        if (entry->tables[i] == table) {
            return true;
        }
    }
    return false;
}

/* No job that had opened the table before it lost rows has live workers. */
static bool all_are_told(const ps_registry_t *self, const ps_table_t *table)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        const ps_job_entry_t *entry = &self->jobs[i];

        if (entry->n_live > 0 && entry->job.id <= table->lost_jobs && has_open(entry, table->id)) {
            return false;
        }
    }
    return true;
}

psd_status_t ps_registry_plan_job_table(const ps_registry_t *self, uint32_t job, uint32_t table,
                                        uint64_t unix_ms, ps_command_t *ret_command,
                                        psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);
    const ps_table_t *opened = ps_registry_find_table(self, table);
    ps_command_t command = {
        .kind = PS_COMMAND_JOB_TABLE, .unix_ms = unix_ms, .epoch = self->epoch, .number = table};

    if (entry == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job number %u does not exist", job);
    }
    if (entry->job.stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED, "job \"%s\" was stopped", entry->job.name);
    }
    if (opened == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table number %u does not exist", table);
    }
    if (has_open(entry, table)) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.told = opened->lost_jobs > 0 && all_are_told(self, opened);
    command.job.id = job;
    command.job.version = entry->job.version + 1;
    memcpy(command.job.name, entry->job.name, sizeof command.job.name);
    (void)snprintf(command.text, sizeof command.text, "job %s opened table %s", entry->job.name,
                   opened->spec.name);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_job_table(const ps_registry_t *self, const ps_command_t *command,
                                        psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);

    if (entry == NULL || command->number > UINT32_MAX ||
        ps_registry_find_table(self, (uint32_t)command->number) == NULL) {
        return psd_error_set(err, PSD_DAMAGED, "there is no job %u or no table %llu",
                             command->job.id, (unsigned long long)command->number);
    }
    if (command->job.version < entry->job.version || command->job.version > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "job %s is at version %llu, not before %llu",
                             entry->job.name, (unsigned long long)entry->job.version,
                             (unsigned long long)command->job.version);
    }
    for (size_t i = 0; i < entry->n_tables; i++) {
        if (entry->tables[i] == command->number) {
            return psd_error_set(err, PSD_DAMAGED, "job %s has table %u open already",
                                 entry->job.name, entry->tables[i]);
        }
    }
    return PSD_OK;
}

static psd_status_t no_memory(const char *job, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for job %s", job);
}

psd_status_t ps_command_apply_job_table(ps_registry_t *self, const ps_command_t *command,
                                        psd_error_t *err)
{
    ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);
    ps_table_t *table = ps_registry_find_table(self, (uint32_t)command->number);

    assert(entry != NULL && table != NULL); /* it was checked */
    if (!ps_grow(&entry->tables, &entry->max_tables, entry->n_tables + 1, sizeof *entry->tables) ||
        !ps_journal_save(self, entry, sizeof *entry) ||
        !ps_journal_save(self, table, sizeof *table)) {
        return no_memory(entry->job.name, err);
    }
    entry->tables[entry->n_tables++] = table->id;
    entry->job.version = command->job.version;
    entry->tables_version = entry->job.version;
    ps_touch(self, PS_ROW_JOB, entry->job.id);
    ps_touch(self, PS_ROW_JOB_TABLE, entry->job.id);
    if (command->told) {
        table->lost_jobs = 0;
        ps_touch(self, PS_ROW_TABLE, table->id);
    }
    return PSD_OK;
}

psd_status_t ps_registry_close_table(ps_registry_t *self, uint32_t table, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        ps_job_entry_t *entry = &self->jobs[i];
        size_t kept = 0;

        if (!has_open(entry, table)) {
            continue;
        }
        if (!ps_journal_save(self, entry, sizeof *entry) ||
            !ps_journal_save(self, entry->tables, entry->n_tables * sizeof *entry->tables)) {
            return no_memory(entry->job.name, err);
        }
        for (size_t j = 0; j < entry->n_tables; j++) {
            if (entry->tables[j] != table) {
                entry->tables[kept++] = entry->tables[j];
            }
        }
        entry->n_tables = kept;
        entry->job.version++;
        entry->tables_version = entry->job.version;
        ps_touch(self, PS_ROW_JOB, entry->job.id);
        ps_touch(self, PS_ROW_JOB_TABLE, entry->job.id);
    }
    return PSD_OK;
}
