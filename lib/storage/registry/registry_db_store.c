/* SPDX-License-Identifier: Apache-2.0 */
/* Stores one command: the rows that it touched and its line of the history, in
 * one transaction. */
#include "protocol/registry/command_code.h"
#include "storage/registry/registry_db_impl.h"

static psd_status_t run(ps_registry_db_t *self, ps_statement_t statement, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, statement);

    return ps_query_run(&query, err);
}

/* There is a row of the cluster, and no other. */
static psd_status_t store_commits(ps_registry_db_t *self, psd_error_t *err)
{
    psd_status_t rc = run(self, STATEMENT_COMMITS_ADD, err);

    if (rc != PSD_OK || sqlite3_changes(self->db) == 1) {
        return rc;
    }
    return psd_error_set(err, PSD_DAMAGED, "%s: table cluster has %d rows",
                         sqlite3_db_filename(self->db, "main"), sqlite3_changes(self->db));
}

static psd_status_t store_event(ps_registry_db_t *self, const ps_command_t *command,
                                psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_EVENT_ADD);
    psd_status_t rc = PSD_OK;
    int64_t id = 0;

    ps_query_put_u64(&query, command->unix_ms);
    ps_query_put_u64(&query, command->epoch);
    ps_query_put_text(&query, ps_command_name(command->kind));
    ps_query_put_text(&query, command->text);
    rc = ps_query_run(&query, err);
    id = sqlite3_last_insert_rowid(self->db);
    if (rc != PSD_OK || id <= PS_EVENTS_KEPT) {
        return rc;
    }
    query = ps_registry_db_query(self, STATEMENT_EVENT_CUT);
    ps_query_put_i64(&query, id - PS_EVENTS_KEPT);
    return ps_query_run(&query, err);
}

psd_status_t ps_registry_db_store(ps_registry_db_t *self, const ps_registry_t *registry,
                                  const ps_command_t *command, psd_error_t *err)
{
    psd_status_t rc = run(self, STATEMENT_BEGIN, err);

    if (rc == PSD_OK) {
        rc = ps_registry_rows_store(self, registry, err);
    }
    if (rc == PSD_OK) {
        rc = store_commits(self, err);
    }
    if (rc == PSD_OK && command->kind != PS_COMMAND_WORK) {
        rc = store_event(self, command, err);
    }
    if (rc == PSD_OK) {
        rc = run(self, STATEMENT_COMMIT, err);
    }
    if (rc != PSD_OK && sqlite3_get_autocommit(self->db) == 0) {
        psd_status_t rolled = run(self, STATEMENT_ROLLBACK, NULL);

        (void)rolled; /* the first cause is reported */
    }
    if (rc == PSD_OK) {
        ps_commit_note_write(&self->note, ++self->n_commits);
    }
    return rc;
}
