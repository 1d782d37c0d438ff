/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_journal - what one command changes: the rows it touches, and how it was
 *
 * What     While a command is applied, each place that changes the state first
 *          saves what it is about to overwrite, and says which rows of
 *          registry_fields.def change with it. So a command whose rows cannot be
 *          stored is undone, and one that is kept is stored by looking at the
 *          state: a row that is there is written, another one removed.
 * Rules    Room first (ps_grow), then ps_journal_save, then the change. Memory
 *          that goes with an entry is not freed but left in *_out; memory that
 *          comes with one is named in *_in.
 * Owner    the registry, for its own files only
 */
#ifndef PS_PROTOCOL_REGISTRY_JOURNAL_H
#define PS_PROTOCOL_REGISTRY_JOURNAL_H

#include "protocol/registry/registry_queue.h"
#include "protocol/registry/registry_rows.h"

#define PS_DONE_ALL UINT64_MAX /* as slice of a DONE row: all of the queue */

/* A row that changed, by its keys in the order of its columns; where a list
 * belongs to a row (shards, copies, tables of a job), the row names all of it. */
typedef struct ps_touch {
    ps_row_t row;
    uint64_t keys[4];
} ps_touch_t;

/* Bytes as they were; they lie in `old` one behind the other. */
typedef struct ps_saved {
    void *to;
    size_t size;
} ps_saved_t;

struct ps_journal {
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
    ps_table_t table_out;
    ps_job_entry_t job_in;
    ps_job_entry_t job_out;
    ps_job_entry_t job_forgotten;
    ps_queue_t queue_in;
};

void ps_journal_destroy(struct ps_journal **self_p);
/* Begins with a command: room for one more of everything. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_begin(ps_registry_t *self, uint64_t now_ms,
                                             psd_error_t *err);
/* false: no memory; the bytes must not be changed then. */
PSD_MUST_CHECK bool ps_journal_save(ps_registry_t *self, void *at, size_t size);
/* ps_touch(registry, row, keys …). A lack of memory shows when the command has
 * been applied. */
void ps_journal_touch(ps_registry_t *self, const ps_touch_t *touch);
#define ps_touch(self, row, ...) ps_journal_touch((self), &(ps_touch_t){(row), {__VA_ARGS__}})
#endif
