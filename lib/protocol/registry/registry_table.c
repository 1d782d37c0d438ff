/* SPDX-License-Identifier: Apache-2.0 */
/* Commands about tables, each planned, checked and applied: created, dropped,
 * restored, its loss acknowledged. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_journal.h"
#include "protocol/registry/registry_place.h"

#define COMBINE_SINCE 2 /* the machine version that has it */

/* ---- created ---- */

/* The levels that a table may have here. */
static const char *levels_offered(const ps_registry_t *self)
{
    if (self->args.disk) {
        return self->args.copies_max == 1 ? "memory, disk" : "memory, replica, disk";
    }
    return self->args.copies_max == 1 ? "memory" : "memory, replica";
}

/* All members of the registry know what a table that combines like that means. */
static bool takes_combine(const ps_registry_t *self, ps_combine_t combine)
{
    return combine == PS_COMBINE_EACH || self->cluster.sm_version >= COMBINE_SINCE;
}

psd_status_t ps_registry_check_combine(const ps_registry_t *self, ps_combine_t combine,
                                       psd_error_t *err)
{
    return takes_combine(self, combine)
               ? PSD_OK
               : psd_error_set(err, PSD_UNSUPPORTED,
                               "combine is %s; supported: each: the registry is of machine version "
                               "%" PRIu32 ", as a node that has a part of it runs an older psd",
                               ps_combine_name(combine), self->cluster.sm_version);
}

static psd_status_t check_offered(const ps_registry_t *self, const ps_table_spec_t *spec,
                                  psd_error_t *err)
{
    uint32_t max = self->args.copies_max;

    if (spec->replicas > max) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             max == 1 ? "replicas is %u; supported: %u"
                                      : "replicas is %u; supported: 1..%u",
                             spec->replicas, max);
    }
    if (spec->ack == PS_ACK_REPLICA && max > 1 && spec->replicas == 1) {
        return psd_error_set(err, PSD_INVALID,
                             "ack is replica, which takes 2 replicas or more; "
                             "replicas is 1");
    }
    if ((spec->ack == PS_ACK_REPLICA && max == 1) ||
        (spec->ack == PS_ACK_DISK && !self->args.disk)) {
        return psd_error_set(err, PSD_UNSUPPORTED, "ack is %s; supported: %s",
                             ps_ack_name(spec->ack), levels_offered(self));
    }
    return ps_registry_check_combine(self, spec->combine, err);
}

static psd_status_t check_new_table(const ps_registry_t *self, const ps_table_spec_t *spec,
                                    psd_error_t *err)
{
    if (ps_registry_table(self, spec->name) != NULL) {
        return psd_error_set(err, PSD_TABLE_EXISTS, "table \"%s\" exists already", spec->name);
    }
    if (self->n_tables >= self->args.tables_max) {
        return psd_error_set(err, PSD_LIMIT, "the cluster has %zu tables; allowed: %u",
                             self->n_tables, self->args.tables_max);
    }
    if (self->cluster.last_table == UINT32_MAX) {
        return psd_error_set(err, PSD_LIMIT, "table numbers are used up");
    }
    return check_offered(self, spec, err);
}

/* Fills a command as far as it gets; what it holds is the caller's. */
static psd_status_t fill_table(const ps_registry_t *self, const ps_table_spec_t *spec,
                               ps_command_t *command, psd_error_t *err)
{
    ps_table_t *table = &command->table;
    psd_status_t rc = ps_table_spec_copy(spec, &table->spec, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_table_spec_settle(&table->spec, self->args.default_partitions);
    rc = ps_table_spec_check(&table->spec, err);
    if (rc == PSD_OK) {
        rc = check_new_table(self, &table->spec, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    table->id = self->cluster.last_table + 1;
    table->created_unix_ms = command->unix_ms;
    command->epoch = ps_registry_next_epoch(self);
    (void)snprintf(command->text, sizeof command->text, "table %s was created with %u partitions",
                   table->spec.name, table->spec.n_partitions);
    return ps_registry_place(self, command->epoch, table, err);
}

psd_status_t ps_registry_plan_table(const ps_registry_t *self, const ps_table_spec_t *spec,
                                    uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_TABLE, unix_ms);
    psd_status_t rc = fill_table(self, spec, &command, err);

    if (rc != PSD_OK) {
        ps_command_done(&command);
        return rc;
    }
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}

psd_status_t ps_command_check_table(const ps_registry_t *self, const ps_command_t *command,
                                    psd_error_t *err)
{
    const ps_table_t *table = &command->table;
    psd_status_t rc = ps_registry_check_name(table->spec.name, "table", err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (table->id == 0 || ps_registry_find_table(self, table->id) != NULL ||
        ps_registry_table(self, table->spec.name) != NULL) {
        return psd_error_set(err, PSD_DAMAGED, "table %s with id %u exists already",
                             table->spec.name, table->id);
    }
    rc = ps_table_spec_check(&table->spec, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "table %s", table->spec.name);
    }
    if (table->copies == NULL) {
        return psd_error_set(err, PSD_DAMAGED, "table %s has no partitions", table->spec.name);
    }
    if (!takes_combine(self, table->spec.combine)) {
        return psd_error_set(err, PSD_DAMAGED, "table %s combines before machine version %d",
                             table->spec.name, COMBINE_SINCE);
    }
    return ps_registry_check_copies(self, command, err);
}

static psd_status_t no_memory(const char *name, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for %s", name);
}

static psd_status_t copy_table(ps_registry_t *self, const ps_table_t *from, ps_table_t *ret_table,
                               psd_error_t *err)
{
    ps_table_t table = {.id = from->id,
                        .created_unix_ms = from->created_unix_ms,
                        .rows_lost = from->rows_lost,
                        .loss_acked = from->loss_acked,
                        .restoring = from->restoring,
                        .lost_sessions = from->lost_sessions,
                        .lost_jobs = from->lost_jobs};
    psd_status_t rc = ps_table_spec_copy(&from->spec, &table.spec, err);

    if (rc == PSD_OK) {
        rc = ps_registry_settle_copies(self, from, &table, err);
    }
    if (rc != PSD_OK) {
        ps_table_done(&table);
        return rc;
    }
    *ret_table = table;
    return PSD_OK;
}

psd_status_t ps_command_apply_table(ps_registry_t *self, const ps_command_t *command,
                                    psd_error_t *err)
{
    ps_table_t *table = &self->journal->table_in;
    size_t at = self->n_tables;
    psd_status_t rc = copy_table(self, &command->table, table, err);

    if (rc != PSD_OK) {
        return rc;
    }
    while (at > 0 && self->tables[at - 1].id > table->id) {
        at--;
    }
    if (!ps_journal_save(self, &self->tables[at], (self->n_tables - at) * sizeof *table)) {
        return no_memory(table->spec.name, err);
    }
    memmove(&self->tables[at + 1], &self->tables[at], (self->n_tables - at) * sizeof *table);
    self->tables[at] = *table; /* ownership moves to the state */
    self->n_tables++;
    if (self->cluster.last_table < table->id) {
        self->cluster.last_table = table->id;
    }
    ps_touch(self, PS_ROW_TABLE, table->id);
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        ps_touch(self, PS_ROW_PARTITION, table->id, i);
    }
    return PSD_OK;
}

/* ---- dropped ---- */

psd_status_t ps_registry_plan_drop(const ps_registry_t *self, const char *name, uint64_t unix_ms,
                                   ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_DROP, unix_ms);
    const ps_table_t *table = ps_registry_table(self, name);

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table \"%.80s\" does not exist", name);
    }
    command.epoch = ps_registry_next_epoch(self);
    command.number = table->id;
    memcpy(command.name, table->spec.name, sizeof command.name);
    (void)snprintf(command.text, sizeof command.text, "table %s was dropped", name);
    *ret_command = command;
    return PSD_OK;
}

static const ps_table_t *table_of(const ps_registry_t *self, const ps_command_t *command)
{
    return command->number > UINT32_MAX ? NULL
                                        : ps_registry_find_table(self, (uint32_t)command->number);
}

/* The table that the command names is there, and as it must be. */
static psd_status_t need_table(const ps_command_t *command, bool good, const char *what,
                               psd_error_t *err)
{
    return good ? PSD_OK
                : psd_error_set(err, PSD_DAMAGED, "there is no table %llu %s",
                                (unsigned long long)command->number, what);
}

psd_status_t ps_command_check_drop(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    return need_table(command, table_of(self, command) != NULL, "to drop", err);
}

psd_status_t ps_registry_drop_table(ps_registry_t *self, uint32_t id, psd_error_t *err)
{
    struct ps_registry_journal *journal = self->journal;
    ps_table_t *table = ps_registry_find_table(self, id);
    size_t at = (size_t)(table - self->tables);
    psd_status_t rc = ps_registry_close_table(self, id, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_grow(&journal->tables_out, &journal->max_tables_out, journal->n_tables_out + 1,
                 sizeof *journal->tables_out) ||
        !ps_journal_save(self, table, (self->n_tables - at) * sizeof *table)) {
        return no_memory(table->spec.name, err);
    }
    ps_touch(self, PS_ROW_TABLE, id);
    journal->tables_out[journal->n_tables_out++] = *table;
    memmove(table, table + 1, (self->n_tables - at - 1) * sizeof *table);
    self->n_tables--;
    return PSD_OK;
}

psd_status_t ps_command_apply_drop(ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    return ps_registry_drop_table(self, (uint32_t)command->number, err);
}

/* ---- restored; its loss acknowledged ---- */

psd_status_t ps_registry_plan_restored(const ps_registry_t *self, uint32_t table, uint64_t unix_ms,
                                       ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_RESTORED, unix_ms);
    const ps_table_t *found = ps_registry_table_by_id(self, table);

    if (found == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table number %u does not exist", table);
    }
    if (!found->restoring) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.number = table;
    (void)snprintf(command.text, sizeof command.text, "table %s was restored from a checkpoint",
                   found->spec.name);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_restored(const ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    const ps_table_t *table = table_of(self, command);

    return need_table(command, table != NULL && table->restoring, "that is being restored", err);
}

/* A mark of the table that the command names. */
static psd_status_t set_mark(ps_registry_t *self, const ps_command_t *command, bool loss_acked,
                             psd_error_t *err)
{
    ps_table_t *table = ps_registry_find_table(self, (uint32_t)command->number);

    assert(table != NULL); /* it was checked */
    if (!ps_journal_save(self, table, sizeof *table)) {
        return no_memory(table->spec.name, err);
    }
    ps_touch(self, PS_ROW_TABLE, table->id);
    table->loss_acked = table->loss_acked || loss_acked;
    table->restoring = table->restoring && loss_acked;
    table->revision = ++self->revision;
    return PSD_OK;
}

psd_status_t ps_command_apply_restored(ps_registry_t *self, const ps_command_t *command,
                                       psd_error_t *err)
{
    return set_mark(self, command, false, err);
}

/* ---- set ---- */

/* A job with a live worker has it open; its clock may have pushes. Not looked at: a job that runs
 * and has not opened it yet. */
static psd_status_t check_idle(const ps_registry_t *self, const ps_table_t *table, psd_error_t *err)
{
    for (size_t i = 0; i < ps_registry_n_jobs(self); i++) {
        const ps_job_t *job = ps_registry_job_at(self, i);
        const uint32_t *ids = NULL;
        size_t n = ps_registry_job_tables(self, job->id, &ids);
        bool uses = false;

        for (size_t k = 0; k < n; k++) {
            uses = uses || ids[k] == table->id;
        }
        for (size_t k = 0; uses && !job->stopped && k < job->n_workers; k++) {
            if (ps_worker_is_live(&job->workers[k])) {
                return psd_error_set(err, PSD_BUSY,
                                     "table %s is open in job %s, of which worker %u is %s; its "
                                     "clock may have pushes",
                                     table->spec.name, job->name, job->workers[k].worker,
                                     ps_worker_state_name(job->workers[k].state));
            }
        }
    }
    return PSD_OK;
}

psd_status_t ps_registry_plan_set(const ps_registry_t *self, const char *name, ps_combine_t combine,
                                  uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_SET, unix_ms);
    const ps_table_t *table = ps_registry_table(self, name);
    ps_table_spec_t spec;
    psd_status_t rc = PSD_OK;

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table \"%.80s\" does not exist", name);
    }
    if (table->spec.combine == combine) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    spec = table->spec; /* what it owns is borrowed here */
    spec.combine = combine;
    rc = ps_table_spec_check(&spec, err);
    if (rc == PSD_OK) {
        rc = ps_registry_check_combine(self, combine, err);
    }
    if (rc == PSD_OK) {
        rc = check_idle(self, table, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    command.number = table->id;
    command.combine = combine;
    (void)snprintf(command.text, sizeof command.text, "table %s combines %s", name,
                   ps_combine_name(combine));
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_set(const ps_registry_t *self, const ps_command_t *command,
                                  psd_error_t *err)
{
    bool known = command->combine >= PS_COMBINE_EACH && command->combine <= PS_COMBINE_CLOCK_MEAN &&
                 self->cluster.sm_version >= COMBINE_SINCE;

    return need_table(command, known && table_of(self, command) != NULL, "to set", err);
}

psd_status_t ps_command_apply_set(ps_registry_t *self, const ps_command_t *command,
                                  psd_error_t *err)
{
    ps_table_t *table = ps_registry_find_table(self, (uint32_t)command->number);

    assert(table != NULL); /* it was checked */
    if (!ps_journal_save(self, table, sizeof *table)) {
        return no_memory(table->spec.name, err);
    }
    ps_touch(self, PS_ROW_TABLE, table->id);
    table->spec.combine = command->combine;
    table->revision = ++self->revision;
    return PSD_OK;
}

psd_status_t ps_registry_plan_ack(const ps_registry_t *self, const char *name, uint64_t unix_ms,
                                  ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_ACK, unix_ms);
    const ps_table_t *table = ps_registry_table(self, name);

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table \"%.80s\" does not exist", name);
    }
    if (!table->rows_lost || table->loss_acked) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.number = table->id;
    (void)snprintf(command.text, sizeof command.text,
                   "the loss of rows of table %s was acknowledged", name);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_loss_acked(const ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    const ps_table_t *table = table_of(self, command);

    return need_table(command, table != NULL && table->rows_lost && !table->loss_acked,
                      "with an unacknowledged loss of rows", err);
}

psd_status_t ps_command_apply_loss_acked(ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    return set_mark(self, command, true, err);
}
