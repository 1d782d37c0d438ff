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
 * What there is of the life that a partition is in. ANEW begins one, with an
 * empty partition (LOGGED) or with a state that is not in the log (AWAITED); a
 * snapshot of it makes it BASED; the next ANEW or LEAVE ends it.
 */
typedef enum ps_journal_stage {
    PS_JOURNAL_LOGGED = 0,  /* the log has all of it */
    PS_JOURNAL_AWAITED = 1, /* nothing counts before its first snapshot */
    PS_JOURNAL_BASED = 2,   /* its snapshot, and the log behind that */
    PS_JOURNAL_OVER = 3,    /* at a start only: a mark says that it has ended;
                               records are passed over */
    PS_JOURNAL_LOST = 4     /* likewise, as some before them are missing: they
                               went since the life is over, which the log says
                               further on; else it is damaged */
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
    uint64_t lost_life;           /* at a start: whose snapshot was passed over */
    uint64_t n_holes;             /* at a start: of the log's, those that it is not
                                     harmed by */
    uint64_t appended_lsn;        /* of its last record */
    bool is_dirty;                /* appended and not told as flushed */
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
    bool is_unsettled;        /* what was found damaged is as it was found */
    ps_map_t parts;           /* table and partition -> ps_journal_part_t, owned */
    ps_position_t *positions; /* owned; what the last flush told */
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
    bool is_untidy; /* something may be there that nobody needs */
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
/* Its records are: one is missing, or does not fit. */
PSD_MUST_CHECK psd_status_t ps_journal_pass_records(ps_journal_t *self, ps_shard_t *shard,
                                                    ps_journal_part_t *part, psd_status_t rc,
                                                    psd_error_t *err);
/* The table's file is: nothing of the table is known. */
PSD_MUST_CHECK psd_status_t ps_journal_pass_table(ps_journal_t *self, uint32_t table,
                                                  const char *path, psd_error_t *err);
/* A file that is to be there is not. Errors: PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_pass_missing(ps_journal_t *self, ps_shard_t *shard,
                                                    const char *name, psd_error_t *err);
/* A record of the part was read, and the part is not harmed by holes in front
 * of it; or it is, and is lost. */
PSD_MUST_CHECK psd_status_t ps_journal_see_record(ps_journal_t *self, ps_shard_t *shard,
                                                  ps_journal_part_t *part,
                                                  const ps_record_t *record, psd_error_t *err);
/* All was read: what may lack something goes from the shard, and is listed.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_list_lost(ps_journal_t *self, ps_shard_t *shard,
                                                 psd_error_t *err);
#endif
