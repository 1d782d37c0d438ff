/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the journal (journal*.c). */
#ifndef PS_STORAGE_JOURNAL_INNER_H
#define PS_STORAGE_JOURNAL_INNER_H

#include "base/map.h"
#include "storage/journal.h"
#include "storage/snapshot_file.h"
#include "storage/table_file.h"

/* A partition that has records or a snapshot here. */
typedef struct ps_journal_part {
    uint32_t table;
    uint32_t partition;
    bool has_snapshot;
    uint64_t snapshot_lsn; /* in its name */
    uint64_t appended_lsn; /* of its last record */
    bool is_dirty;         /* appended and not told as flushed */
    uint64_t life;         /* of the copy, as positions name it */
    bool needs_base;       /* it began anew with a state: nothing of it is
                              told before a snapshot of that life counts */
    bool is_stale;         /* the snapshot is of an earlier life */
    bool is_passed_over;   /* at a start: its records lead to nothing */
    ps_snapshot_reader_t *reader; /* owned; at a start, until the end is seen */
    ps_snapshot_piece_t piece;    /* the next one; of reader */
} ps_journal_part_t;

struct ps_journal {
    ps_disk_t *disk;
    char *dir; /* owned */
    ps_id_t cluster;
    uint32_t n_shards;
    ps_shard_log_t *log; /* owned */
    bool was_there;
    ps_map_t parts; /* table and partition -> ps_journal_part_t, owned */
    ps_position_t *positions; /* owned; what the last flush told */
    size_t positions_capacity;
    size_t n_dirty;
    ps_snapshot_writer_t *writer; /* owned; NULL: none is under way */
    ps_snapshot_id_t writing;     /* its */
};

static inline ps_snapshot_dir_t
ps_journal_snapshots(const ps_journal_t *self)
{
    return (ps_snapshot_dir_t){self->disk, self->dir, self->cluster};
}

static inline ps_table_dir_t
ps_journal_tables(const ps_journal_t *self)
{
    return (ps_table_dir_t){self->disk, self->dir, self->cluster,
                            self->n_shards};
}

/* NULL: nothing of it is here. */
ps_journal_part_t *
ps_journal_find(const ps_journal_t *self, uint32_t table, uint32_t partition);
/* Made when it is new; NULL: no memory. */
ps_journal_part_t *
ps_journal_part(ps_journal_t *self, uint32_t table, uint32_t partition);
#endif
