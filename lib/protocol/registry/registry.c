/* SPDX-License-Identifier: Apache-2.0 */
/* Creating and destroying the registry, and the only entry point for
 * changes. */
#include "protocol/registry/registry.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/registry/command_code.h"
#include "protocol/registry/registry_journal.h"

static ps_registry_args_t with_defaults(const ps_registry_args_t *args)
{
    ps_registry_args_t full = *args;

    full.copies_max = full.copies_max == 0 ? 1 : full.copies_max;
    full.suspect_after_ms = full.suspect_after_ms == 0 ? 400 : full.suspect_after_ms;
    full.ask_again_ms = full.ask_again_ms == 0 ? 100 : full.ask_again_ms;
    full.repair_after_ms = full.repair_after_ms == 0 ? 30000 : full.repair_after_ms;
    full.unreached_after_ms = full.unreached_after_ms == 0 ? 2000 : full.unreached_after_ms;
    full.lease_ms = full.lease_ms == 0 ? 300 : full.lease_ms;
    full.catch_up_after_ms = full.catch_up_after_ms == 0 ? 600000 : full.catch_up_after_ms;
    full.catching_up_max = full.catching_up_max == 0 ? 1 : full.catching_up_max;
    full.heartbeat_ms = full.heartbeat_ms == 0 ? 1000 : full.heartbeat_ms;
    full.moves_max = full.moves_max == 0 ? 4 : full.moves_max;
    full.uneven_max = full.uneven_max == 0 ? 1 : full.uneven_max;
    return full;
}

psd_status_t ps_registry_new(const ps_registry_args_t *args, ps_registry_t **ret_registry,
                             psd_error_t *err)
{
    ps_registry_t *self = NULL;

    if (args->default_partitions == 0 || args->lost_after_ms == 0 || args->join_within_ms == 0 ||
        args->tables_max == 0 || args->jobs_max == 0 || args->nodes_max == 0) {
        return psd_error_set(err, PSD_INVALID, "a limit of the registry is 0; allowed: 1 ..");
    }
    if (args->copies_max > PS_REPLICAS_MAX) {
        return psd_error_set(err, PSD_INVALID, "copies_max is %u; allowed: 0..%d", args->copies_max,
                             PS_REPLICAS_MAX);
    }
    self = ps_alloc(1, sizeof *self);
    if (self != NULL) {
        self->journal = ps_alloc(1, sizeof *self->journal);
        self->found = ps_alloc(PS_FOUND_MAX, sizeof *self->found);
    }
    if (self == NULL || self->journal == NULL || self->found == NULL) {
        ps_registry_destroy(&self);
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry");
    }
    self->own = with_defaults(args);
    self->args = self->own;
    self->next_session = 1;
    self->dirty = true;
    self->rebalancing = !args->rebalance_on_request;
    *ret_registry = self;
    return PSD_OK;
}

void ps_registry_destroy(ps_registry_t **self_p)
{
    ps_registry_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_node_done(&self->nodes[i]);
    }
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_table_done(&self->tables[i]);
    }
    for (size_t i = 0; i < self->n_jobs; i++) {
        ps_job_entry_done(&self->jobs[i]);
    }
    ps_free(self->principals);
    ps_free(self->found);
    ps_free(self->nodes);
    ps_free(self->tables);
    ps_free(self->jobs);
    ps_free(self->outcomes);
    ps_journal_destroy(&self->journal);
    ps_free(self);
    *self_p = NULL;
}

#define RULE(NAME, number, word, event) \
    [number] = {ps_command_check_##word, ps_command_apply_##word},
static const struct {
    psd_status_t (*check)(const ps_registry_t *self, const ps_command_t *command, psd_error_t *err);
    psd_status_t (*apply)(ps_registry_t *self, const ps_command_t *command, psd_error_t *err);
} rules[] = {PS_COMMAND_MAP(RULE)};
#undef RULE

/* A planned command always fits the state; one that was read from disk may be
 * anything, so nothing is used before it was looked at. */
static psd_status_t check(const ps_registry_t *self, const ps_command_t *command, psd_error_t *err)
{
    psd_error_t *why = NULL;
    psd_status_t rc = PSD_OK;

    if (ps_command_name(command->kind)[0] == '?') {
        return psd_error_set(err, PSD_DAMAGED, "command kind is %d", (int)command->kind);
    }
    if (command->kind != PS_COMMAND_CLUSTER && !self->has_cluster) {
        return psd_error_set(err, PSD_DAMAGED, "there is no cluster yet");
    }
    if (command->epoch < self->epoch || command->epoch > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "the epoch is %llu; a command has epoch %llu",
                             (unsigned long long)self->epoch, (unsigned long long)command->epoch);
    }
    if (command->session > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "a command answers session %llu",
                             (unsigned long long)command->session);
    }
    rc = rules[command->kind].check(self, command, NULL);
    if (rc == PSD_OK) {
        return rc;
    }
    /* Whatever the check called it: here it is stored data that is wrong. */
    why = psd_error_new();
    (void)rules[command->kind].check(self, command, why);
    rc = psd_error_set(err, PSD_DAMAGED, "%s", psd_error_text(why));
    psd_error_destroy(&why);
    return rc;
}

psd_status_t ps_registry_try(ps_registry_t *self, const ps_command_t *command, uint64_t now_ms,
                             psd_error_t *err)
{
    psd_status_t rc = check(self, command, err);
    uint64_t number = 0;

    if (rc == PSD_OK && command->session != 0) {
        rc = ps_registry_hold_outcomes(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_journal_begin(self, now_ms, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    number = ps_registry_number_of(self, command);
    rc = rules[command->kind].apply(self, command, err);
    if (rc == PSD_OK) {
        rc = ps_registry_note_outcome(self, command, number, err);
    }
    if (rc == PSD_OK && self->journal->cut_short) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a command");
    }
    if (rc != PSD_OK) {
        ps_registry_undo(self);
        return rc;
    }
    self->epoch = command->epoch;
    self->dirty = true;
    return PSD_OK;
}

psd_status_t ps_registry_apply(ps_registry_t *self, const ps_command_t *command, uint64_t now_ms,
                               psd_error_t *err)
{
    psd_status_t rc = ps_registry_try(self, command, now_ms, err);

    if (rc == PSD_OK) {
        ps_registry_keep(self);
    }
    return rc;
}

uint64_t ps_registry_take_session(ps_registry_t *self)
{
    return self->next_session <= self->cluster.sessions ? self->next_session++ : 0;
}

uint64_t ps_registry_old_sessions(const ps_registry_t *self)
{
    return self->old_sessions;
}
