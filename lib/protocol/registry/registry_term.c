/* SPDX-License-Identifier: Apache-2.0 */
/* The command with which a member begins to lead, planned, checked and
 * applied. */
#include <stdio.h>
#include <string.h>

#include "protocol/registry/registry_journal.h"

/* The first table whose restore was not finished. */
static const ps_table_t *half_restored(const ps_registry_t *self)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        if (self->tables[i].restoring) {
            return &self->tables[i];
        }
    }
    return NULL;
}

/* What the history says; it names the first tables of many. */
static void print_term(const ps_registry_t *self, ps_command_t *command)
{
    size_t room = sizeof command->text;
    int n = snprintf(command->text, room, "term %llu begins, member %llu leads",
                     (unsigned long long)command->number, (unsigned long long)command->member);
    size_t used = (size_t)n;

    for (size_t i = 0; i < self->n_tables; i++) {
        if (!self->tables[i].restoring) {
            continue;
        }
        n = snprintf(command->text + used, room - used,
                     "; table %s was being restored: it is dropped", self->tables[i].spec.name);
        if (n < 0 || (size_t)n >= room - used) {
            command->text[used] = '\0'; /* not half a name */
            return;
        }
        used += (size_t)n;
    }
}

psd_status_t ps_registry_plan_term(const ps_registry_t *self, uint64_t term, uint64_t member,
                                   uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_TERM, unix_ms);

    command.number = term;
    command.member = member;
    if (ps_command_check_term(self, &command, NULL) != PSD_OK) {
        return psd_error_set(err, PSD_INVALID, "term %llu of member %llu; allowed: 1..%llu",
                             (unsigned long long)term, (unsigned long long)member,
                             (unsigned long long)PS_STORED_MAX);
    }
    if (half_restored(self) != NULL) {
        command.epoch = ps_registry_next_epoch(self);
    }
    print_term(self, &command);
    *ret_command = command;
    return PSD_OK;
}

psd_status_t ps_command_check_term(const ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    (void)self;
    return command->number >= 1 && command->number <= PS_STORED_MAX && command->member >= 1 &&
                   command->member <= PS_STORED_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED, "term %llu of member %llu is out of range",
                               (unsigned long long)command->number,
                               (unsigned long long)command->member);
}

/* ---- who lives is what this member has heard itself ---- */

/* A node that was not heard since this member listens may live or not, and has been
 * silent since then. */
static bool forget_nodes(ps_registry_t *self)
{
    bool listens = self->listens_ms != 0;
    uint64_t since_ms = listens ? self->listens_ms : self->journal->now_ms;

    if (!ps_journal_save(self, self->nodes, self->n_nodes * sizeof *self->nodes)) {
        return false;
    }
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_node_t *node = &self->nodes[i];

        if (!listens || node->last_seen_ms <= since_ms) {
            node->up = false;
            node->suspect = false;
            node->last_seen_ms = since_ms;
        }
        if (!listens) {
            node->started_ms = self->journal->now_ms;
        }
        node->disk_ms = 0;
        node->unreached_ms = 0;
        node->unreached_until_ms = 0;
    }
    if (!listens) {
        self->looked_ms = 0;
    }
    return true;
}

static bool forget_workers(ps_registry_t *self)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        const ps_job_entry_t *entry = &self->jobs[i];

        if (!ps_journal_save(self, entry->seen, entry->job.n_workers * sizeof *entry->seen)) {
            return false;
        }
        for (size_t j = 0; j < entry->job.n_workers; j++) {
            entry->seen[j] =
                (ps_seen_t){.since_ms = self->journal->now_ms, .version = entry->seen[j].version};
        }
    }
    return true;
}

static bool forget_copies(ps_registry_t *self)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];
        size_t size = table->spec.n_partitions * sizeof *table->watches;

        if (!ps_journal_save(self, table->watches, size)) {
            return false;
        }
        memset(table->watches, 0, size);
    }
    return true;
}

psd_status_t ps_command_apply_term(ps_registry_t *self, const ps_command_t *command,
                                   psd_error_t *err)
{
    const ps_table_t *table = half_restored(self);

    (void)command;
    while (table != NULL) {
        psd_status_t rc = ps_registry_drop_table(self, table->id, err);

        if (rc != PSD_OK) {
            return rc;
        }
        table = half_restored(self);
    }
    if (!forget_nodes(self) || !forget_workers(self) || !forget_copies(self)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a term");
    }
    self->old_sessions = self->cluster.sessions;
    self->next_session = self->cluster.sessions + 1;
    self->rest_until_ms = 0;
    self->hand_after_ms = 0;
    self->copied_bytes_per_s = 0;
    self->rebalancing = !self->args.rebalance_on_request;
    self->still = false;
    return PSD_OK;
}
