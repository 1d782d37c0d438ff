/* SPDX-License-Identifier: Apache-2.0 */
/* A command on trial: kept or undone. */
#include "protocol/registry/registry_journal.h"

#include <string.h>

#include "base/alloc.h"

#define LAST_TOUCHES 4

void ps_journal_destroy(struct ps_registry_journal **self_p)
{
    struct ps_registry_journal *self = *self_p;

    if (self != NULL) {
        ps_free(self->touches);
        ps_free(self->saved);
        ps_free(self->tables_out);
        ps_buffer_done(&self->old);
    }
    ps_free(self);
    *self_p = NULL;
}

psd_status_t ps_journal_begin(ps_registry_t *self, uint64_t now_ms, psd_error_t *err)
{
    struct ps_registry_journal *journal = self->journal;

    if (!ps_grow(&self->principals, &self->max_principals, self->n_principals + 1,
                 sizeof *self->principals) ||
        !ps_grow(&self->nodes, &self->max_nodes, self->n_nodes + 1, sizeof *self->nodes) ||
        !ps_grow(&self->tables, &self->max_tables, self->n_tables + 1, sizeof *self->tables) ||
        !ps_grow(&self->jobs, &self->max_jobs, self->n_jobs + 1, sizeof *self->jobs)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a command");
    }
    journal->before = *self;
    journal->now_ms = now_ms;
    journal->n_touches = 0;
    journal->cut_short = false;
    journal->n_saved = 0;
    journal->old.size = 0;
    return PSD_OK;
}

bool ps_journal_save(ps_registry_t *self, void *at, size_t size)
{
    struct ps_registry_journal *journal = self->journal;

    if (size == 0) {
        return true;
    }
    if (!ps_grow(&journal->saved, &journal->max_saved, journal->n_saved + 1,
                 sizeof *journal->saved) ||
        !ps_buffer_append(&journal->old, at, size)) {
        return false;
    }
    journal->saved[journal->n_saved++] = (ps_saved_t){.to = at, .size = size};
    return true;
}

/* Among the last few: a table whose partitions change one after the other is
 * written once. */
static bool is_touched(const struct ps_registry_journal *journal, const ps_touch_t *touch)
{
    size_t n = journal->n_touches < LAST_TOUCHES ? journal->n_touches : LAST_TOUCHES;

    for (size_t i = journal->n_touches - n; i < journal->n_touches; i++) {
        if (journal->touches[i].row == touch->row &&
            memcmp(journal->touches[i].keys, touch->keys, sizeof touch->keys) == 0) {
            return true;
        }
    }
    return false;
}

void ps_journal_touch(ps_registry_t *self, const ps_touch_t *touch)
{
    struct ps_registry_journal *journal = self->journal;

    if (is_touched(journal, touch)) {
        return;
    }
    if (!ps_grow(&journal->touches, &journal->max_touches, journal->n_touches + 1,
                 sizeof *journal->touches)) {
        journal->cut_short = true;
        return;
    }
    journal->touches[journal->n_touches++] = *touch;
}

void ps_registry_keep(ps_registry_t *self)
{
    struct ps_registry_journal *journal = self->journal;

    ps_node_done(&journal->node_out);
    for (size_t i = 0; i < journal->n_tables_out; i++) {
        ps_table_done(&journal->tables_out[i]);
    }
    journal->n_tables_out = 0;
    ps_job_entry_done(&journal->job_out);
    ps_job_entry_done(&journal->job_forgotten);
    journal->node_in = (ps_node_t){0}; /* they are the state's */
    journal->table_in = (ps_table_t){0};
    journal->job_in = (ps_job_entry_t){0};
    journal->queue_in = (ps_queue_t){0};
}

void ps_registry_undo(ps_registry_t *self)
{
    struct ps_registry_journal *journal = self->journal;
    /* Tables may have a revision of what is undone, and tells may count it as told: what
     * changes next is newer than that. */
    uint64_t revision = self->revision;

    while (journal->n_saved > 0) { /* what was saved first is how it was */
        const ps_saved_t *saved = &journal->saved[--journal->n_saved];

        journal->old.size -= saved->size;
        memcpy(saved->to, journal->old.data + journal->old.size, saved->size);
    }
    *self = journal->before;
    self->revision = revision;
    ps_node_done(&journal->node_in);
    ps_table_done(&journal->table_in);
    ps_job_entry_done(&journal->job_in);
    ps_queue_done(&journal->queue_in);
    journal->node_out = (ps_node_t){0}; /* they are the state's again */
    journal->n_tables_out = 0;
    journal->job_out = (ps_job_entry_t){0};
    journal->job_forgotten = (ps_job_entry_t){0};
}
