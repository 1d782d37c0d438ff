/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the journal (journal*.c). */
#ifndef PS_STORAGE_JOURNAL_INNER_H
#define PS_STORAGE_JOURNAL_INNER_H

#include "base/map.h"
#include "storage/log/inventory.h"
#include "storage/log/journal.h"
#include "storage/snapshot/snapshot_file.h"
#include "storage/snapshot/table_file.h"

/*
 * What is stored of a partition's current life. ANEW begins a life, with an
 * empty partition (LOGGED) or with a state that is not in the log (AWAITED). A
 * snapshot makes it BASED. The next ANEW or LEAVE ends it.
 */
typedef enum ps_journal_stage {
    PS_JOURNAL_LOGGED = 0,  /* the log has all of it */
    PS_JOURNAL_AWAITED = 1, /* nothing counts before its first snapshot */
    PS_JOURNAL_BASED = 2,   /* its snapshot, and the log after that */
    PS_JOURNAL_OVER = 3,    /* at a start only: a mark says that it has ended;
                               records are skipped */
    PS_JOURNAL_LOST = 4     /* likewise, because earlier records are missing:
                               they were removed when the life was over, which
                               the log says further on; else it is damaged */
} ps_journal_stage_t;

/* A partition that has records or a snapshot here. */
typedef struct ps_journal_part {
    uint32_t table;
    uint32_t partition;
    uint64_t life;
    ps_journal_stage_t stage;
    uint64_t base_lsn;            /* of its snapshot, as in its name; 0: there is none */
    uint64_t base_life;           /* likewise; life's, but at a start */
    uint64_t lost_lsn;            /* at a start: the first record that is missing */
    uint64_t lost_life;           /* at a start: whose snapshot was skipped */
    uint64_t n_holes;             /* at a start: the holes in the log that do not
                                     harm it */
    uint64_t appended_lsn;        /* of its last record */
    bool is_dirty;                /* appended, and not reported as flushed */
    ps_snapshot_reader_t *reader; /* owned; at a start, until the end is seen */
    ps_snapshot_piece_t piece;    /* the next one; of reader */
} ps_journal_part_t;

struct ps_journal {
    ps_disk_t *disk;
    char *dir; /* owned */
    ps_id_t cluster;
    uint32_t n_shards;
    ps_shard_log_t *log; /* owned */
    uint32_t shard;
    bool was_there;
    ps_damage_t *damage;      /* borrowed until it is settled; may be NULL */
    bool is_unsettled;        /* damaged files are still as they were found */
    ps_map_t parts;           /* table and partition -> ps_journal_part_t, owned */
    ps_position_t *positions; /* owned; the result of the last flush */
    size_t positions_capacity;
    size_t n_dirty;
    ps_snapshot_writer_t *writer; /* owned; NULL: none is under way */
    ps_snapshot_id_t writing;     /* its */
    ps_snapshot_id_t *old;        /* owned; files to be removed */
    size_t n_old;
    size_t old_capacity;
    uint32_t *dropped; /* owned; tables whose files are to be removed */
    size_t n_dropped;
    size_t dropped_capacity;
    ps_inventory_t inventory;
    bool is_untidy; /* there may be files to remove */
};

static inline ps_snapshot_dir_t ps_journal_snapshots(const ps_journal_t *self)
{
    return (ps_snapshot_dir_t){.disk = self->disk, .dir = self->dir, .cluster = self->cluster};
}

static inline ps_table_dir_t ps_journal_tables(const ps_journal_t *self)
{
    return (ps_table_dir_t){self->disk, self->dir, self->cluster, self->n_shards};
}

static inline ps_snapshot_id_t ps_journal_base(const ps_journal_part_t *part)
{
    return (ps_snapshot_id_t){part->table, part->partition, part->base_lsn, part->base_life};
}

/* NULL: nothing of it is here. */
ps_journal_part_t *ps_journal_find(const ps_journal_t *self, uint32_t table, uint32_t partition);
/* Made when it is new; NULL: no memory. */
ps_journal_part_t *ps_journal_part(ps_journal_t *self, uint32_t table, uint32_t partition);
/* Nothing of it is here any more. */
void ps_journal_forget(ps_journal_t *self, ps_journal_part_t *part);
/* A file that is to be removed. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_give_up(ps_journal_t *self, const ps_snapshot_id_t *id,
                                               psd_error_t *err);

/* journal_damage.c, at a start: each leaves rc as it is, unless that is
 * PSD_DAMAGED and the start goes on in spite of damage. */
/* The part's snapshot is damaged, or does not fit its records. */
PSD_MUST_CHECK psd_status_t ps_journal_pass_snapshot(ps_journal_t *self, ps_shard_t *shard,
                                                     ps_journal_part_t *part, psd_status_t rc,
                                                     psd_error_t *err);
/* The part's records are damaged: one is missing, or does not fit. */
PSD_MUST_CHECK psd_status_t ps_journal_pass_records(ps_journal_t *self, ps_shard_t *shard,
                                                    ps_journal_part_t *part, psd_status_t rc,
                                                    psd_error_t *err);
/* The table's file is damaged: nothing of the table is known. */
PSD_MUST_CHECK psd_status_t ps_journal_pass_table(ps_journal_t *self, uint32_t table,
                                                  const char *path, psd_error_t *err);
/* A file that must exist is missing. Errors: PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_pass_missing(ps_journal_t *self, ps_shard_t *shard,
                                                    const char *name, psd_error_t *err);
/* A record of the part was read. Either holes before it do not harm the part,
 * or the part is lost. */
PSD_MUST_CHECK psd_status_t ps_journal_see_record(ps_journal_t *self, ps_shard_t *shard,
                                                  ps_journal_part_t *part,
                                                  const ps_record_t *record, psd_error_t *err);
/* All was read: removes incomplete parts from the shard, and lists them.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_list_lost(ps_journal_t *self, ps_shard_t *shard,
                                                 psd_error_t *err);
#endif
