/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_journal - the undo log of one command: the rows it touches, and their old
 * values
 *
 * What     While a command is applied, each place that changes the state first
 *          saves the old bytes, and names the rows of registry_fields.def that
 *          change. So a command whose rows cannot be stored can be undone. A
 *          kept command is stored from the state: a touched row that exists is
 *          written, one that does not is removed.
 * Rules    Room first (ps_grow), then ps_journal_save, then the change. Memory
 *          of a removed entry is not freed but left in *_out; memory of a new
 *          entry is named in *_in.
 * Owner    the registry, for its own files only
 */
#ifndef PS_PROTOCOL_REGISTRY_JOURNAL_H
#define PS_PROTOCOL_REGISTRY_JOURNAL_H

#include "protocol/registry/registry_queue.h"
#include "protocol/registry/registry_rows.h"

#define PS_DONE_ALL UINT64_MAX /* as slice of a DONE row: all slices of the queue */

/* A row that changed, by its keys in the order of its columns; if a list
 * belongs to a row (shards, copies, tables of a job), the row stands for all of
 * it. */
typedef struct ps_touch {
    ps_registry_row_t row;
    uint64_t keys[4];
} ps_touch_t;

/* Old bytes, stored in `old` one after the other. */
typedef struct ps_saved {
    void *to;
    size_t size;
} ps_saved_t;

struct ps_registry_journal {
    ps_registry_t before;
    uint64_t now_ms;
    ps_touch_t *touches; /* owned */
    size_t n_touches;
    size_t max_touches;
    bool cut_short;    /* a touch found no memory */
    ps_saved_t *saved; /* owned */
    size_t n_saved;
    size_t max_saved;
    ps_buffer_t old;
    ps_node_t node_in;
    ps_node_t node_out;
    ps_table_t table_in;
    ps_table_t *tables_out; /* owned, and each while the command is on trial */
    size_t n_tables_out;
    size_t max_tables_out;
    ps_job_entry_t job_in;
    ps_job_entry_t job_out;
    ps_job_entry_t job_forgotten;
    ps_queue_t queue_in;
};

void ps_journal_destroy(struct ps_registry_journal **self_p);
/* Begins with a command: makes room for one more of everything. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_begin(ps_registry_t *self, uint64_t now_ms,
                                             psd_error_t *err);
/* false: no memory; the bytes must not be changed then. */
PSD_MUST_CHECK bool ps_journal_save(ps_registry_t *self, void *at, size_t size);
/* ps_touch(registry, row, keys …). A lack of memory is reported after the
 * command was applied. */
void ps_journal_touch(ps_registry_t *self, const ps_touch_t *touch);
#define ps_touch(self, row, ...) ps_journal_touch((self), &(ps_touch_t){(row), {__VA_ARGS__}})
#endif
