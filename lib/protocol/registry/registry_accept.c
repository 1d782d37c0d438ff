/* SPDX-License-Identifier: Apache-2.0 */
/* A table out of what nodes have of it. */
#include "protocol/registry/registry_accept.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_place.h"
#include "protocol/registry/registry_state.h"

static bool has_more(const ps_found_t *self, const ps_found_t *than)
{
    return than == NULL || self->lsn_epoch > than->lsn_epoch ||
           (self->lsn_epoch == than->lsn_epoch && self->lsn > than->lsn);
}

const ps_found_t *ps_found_best(const ps_found_t *found, size_t n, uint32_t partition)
{
    const ps_found_t *best = NULL;

    for (size_t i = 0; i < n; i++) {
        if (found[i].partition == partition && found[i].whole && has_more(&found[i], best)) {
            best = &found[i];
        }
    }
    return best;
}

static uint32_t count_missing(const ps_accept_t *accept, uint32_t *ret_first)
{
    uint32_t n = 0;

    for (uint32_t i = accept->spec->n_partitions; i > 0; i--) {
        if (ps_found_best(accept->found, accept->n_found, i - 1) == NULL) {
            *ret_first = i - 1;
            n++;
        }
    }
    return n;
}

static psd_status_t check(const ps_registry_t *self, const ps_accept_t *accept, psd_error_t *err)
{
    const ps_table_t *other = ps_registry_find_table(self, accept->table);
    uint32_t first = 0;
    uint32_t n = 0;
    psd_status_t rc = ps_table_spec_check(accept->spec, err);

    if (rc == PSD_OK) {
        rc = ps_registry_check_combine(self, accept->spec->combine, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (other != NULL || ps_registry_table(self, accept->spec->name) != NULL) {
        return psd_error_set(err, PSD_TABLE_EXISTS,
                             other != NULL ? "table \"%s\" has the number %u"
                                           : "table \"%s\" exists; the one with the number %u can "
                                             "be accepted when that is dropped",
                             other != NULL ? other->spec.name : accept->spec->name, accept->table);
    }
    n = count_missing(accept, &first);
    return n == 0 || accept->with_loss
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED,
                               "no node that is up has %u of the %u partitions of table \"%s\" "
                               "whole (the first is partition %u); start the nodes that have them, "
                               "or accept the loss, and they start empty",
                               n, accept->spec->n_partitions, accept->spec->name, first);
}

static ps_copy_t copy_of(const ps_found_t *found, ps_copy_state_t state)
{
    return (ps_copy_t){.incarnation = found->incarnation, .shard = found->shard, .state = state};
}

/* The best one leads; other nodes' copies follow, as many as the table wants. */
static void fill_copies(const ps_accept_t *accept, const ps_found_t *best, ps_copies_t *copies)
{
    *copies = (ps_copies_t){.n = 1, .at = {copy_of(best, PS_COPY_PRIMARY)}};
    for (size_t i = 0; i < accept->n_found && copies->n < accept->spec->replicas; i++) {
        const ps_found_t *found = &accept->found[i];

        if (found->partition == best->partition &&
            ps_copies_on(copies, found->incarnation) == NULL) {
            const ps_copy_t copy = copy_of(found, PS_COPY_CATCHING_UP);

            ps_copies_add(copies, &copy);
        }
    }
}

static psd_status_t fill(const ps_registry_t *self, const ps_accept_t *accept,
                         ps_command_t *command, psd_error_t *err)
{
    ps_table_t *table = &command->table;
    uint32_t first = 0;
    bool is_missing = count_missing(accept, &first) > 0;
    psd_status_t rc = ps_table_spec_copy(accept->spec, &table->spec, err);

    if (rc == PSD_OK && is_missing) {
        rc = ps_registry_place(self, command->epoch, table, err);
    } else if (rc == PSD_OK) {
        table->copies = ps_alloc(table->spec.n_partitions, sizeof *table->copies);
        if (table->copies == NULL) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for table %s", table->spec.name);
        }
    }
    for (uint32_t i = 0; rc == PSD_OK && i < table->spec.n_partitions; i++) {
        const ps_found_t *best = ps_found_best(accept->found, accept->n_found, i);

        if (best != NULL) {
            fill_copies(accept, best, &table->copies[i]);
        }
        table->copies[i].epoch = command->epoch;
    }
    table->rows_lost = is_missing;
    table->lost_sessions = is_missing ? self->cluster.sessions : 0;
    return rc;
}

psd_status_t ps_registry_plan_accept(const ps_registry_t *self, const ps_accept_t *accept,
                                     uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = ps_registry_command(self, PS_COMMAND_TABLE, unix_ms);
    psd_status_t rc = check(self, accept, err);

    if (rc != PSD_OK) {
        return rc;
    }
    command.epoch = ps_registry_next_epoch(self);
    for (size_t i = 0; i < accept->n_found; i++) {
        if (accept->found[i].epoch >= command.epoch) {
            command.epoch = accept->found[i].epoch + 1;
        }
    }
    command.table.id = accept->table;
    command.table.created_unix_ms = unix_ms;
    (void)snprintf(command.text, sizeof command.text,
                   "table %s was accepted, as the nodes have it, with %u partitions",
                   accept->spec->name, accept->spec->n_partitions);
    rc = fill(self, accept, &command, err);
    if (rc != PSD_OK) {
        ps_command_done(&command);
        return rc;
    }
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}
