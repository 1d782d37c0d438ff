/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/storage/log: the records of a shard on disk
 *
 * It is       Segments of the log, the list of files that must exist beside it,
 *             lives of partitions, a start and what damage costs it.
 * It uses     snapshot, disk, lib/protocol/shard (a start reads into it),
 *             lib/wire/records, lib/base.
 * It ignores  What a record does, other copies, and the thread that writes
 *             (lib/server/threads).
 * Start at    journal.h, journal_read.c for a start; shard_log.h for the log
 *             alone, shard_log_read.c for its torn end; journal_damage.c for what
 *             damage costs.
 */
/*
 * ps_journal - a shard's files on disk: tables, records, snapshots
 *
 * What     The log of all partitions of the shard (shard_log.h), a snapshot of
 *          each (snapshot_file.h), and the tables' specs (table_file.h), in one
 *          directory. A start reads all of it into the shard. Then the shard
 *          appends and flushes records, writes a snapshot piece by piece in
 *          between, and removes segments that no partition needs after its
 *          snapshot. The order is the guarantee: a snapshot counts only when
 *          the records before its pieces are flushed, and only then the files
 *          that it replaces are removed. Each time that a partition comes to
 *          this shard it begins a numbered life. The log says where lives begin
 *          and end (ANEW, LEAVE); a snapshot says of which life it is.
 * Order    open, recover once, then append, flush and piece as often as wanted.
 * Owner    The caller closes it, and holds the lock of the data directory.
 * Threads  Confined to one at a time.
 */
#ifndef PS_STORAGE_JOURNAL_H
#define PS_STORAGE_JOURNAL_H

#include "protocol/facts/counts.h"
#include "protocol/shard/shard.h"
#include "storage/log/shard_log.h"

typedef struct ps_journal ps_journal_t;

typedef struct ps_journal_args {
    ps_disk_t *disk;             /* borrowed until close */
    const char *dir;             /* copied; made when it is missing */
    ps_id_t cluster;             /* whose: another's is refused */
    const char *node;            /* copied */
    uint32_t shard;              /* of the node */
    uint32_t n_shards;           /* of the node: another number is refused, when
                                    there are tables */
    uint64_t segment_bytes;      /* as ps_shard_log_args_t's */
    ps_damage_t *damage;         /* borrowed until it is settled: damage is noted
                                    there, and costs only the partitions that it
                                    concerns; NULL: it ends a start */
    ps_journal_counts_t *counts; /* borrowed; where its thread counts; NULL: nowhere */
} ps_journal_args_t;

/* Errors: those of ps_shard_log_open. */
PSD_MUST_CHECK psd_status_t ps_journal_open(const ps_journal_args_t *args,
                                            ps_journal_t **ret_journal, psd_error_t *err);
/* Writes and flushes nothing. Takes NULL. */
void ps_journal_close(ps_journal_t **self_p);

typedef struct ps_journal_found {
    bool was_there; /* an earlier life had it open */
    uint32_t n_tables;
    uint32_t n_snapshots;
    uint64_t snapshot_bytes; /* plain */
    bool is_unsettled;       /* ps_journal_settle is due */
    ps_shard_log_found_t log;
} ps_journal_found_t;

/* Called now and then with the bytes read so far; may be NULL. */
typedef void ps_journal_progress_t(void *context, uint64_t bytes);

/*
 * Reads everything into a shard that has had no event yet.
 *
 * Errors: PSD_DAMAGED naming file and byte, or the partition whose records are
 * missing; PSD_FOREIGN; PSD_IO, PSD_NOMEM, PSD_LIMIT. Then the caller must
 * discard the shard; nothing on the disk has changed, except files that a crash
 * left unfinished. With args->damage there is no PSD_DAMAGED: incomplete
 * partitions are in damage->lost and not in the shard, and nothing was changed.
 */
PSD_MUST_CHECK psd_status_t ps_journal_recover(ps_journal_t *self, ps_shard_t *shard,
                                               ps_journal_progress_t *progress, void *context,
                                               ps_journal_found_t *ret_found, psd_error_t *err);

/* The registry, which knows of other copies, has agreed to the losses: damaged
 * files are renamed. Call it until it succeeds, before anything else. Errors:
 * PSD_IO, PSD_LIMIT, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_journal_settle(ps_journal_t *self, psd_error_t *err);

/* A table with a log: known to the next start when this returns PSD_OK. Errors:
 * those of ps_table_file_write. May be called while another thread is in any
 * other call, but open and close.
 */
PSD_MUST_CHECK psd_status_t ps_journal_put_table(ps_journal_t *self, uint32_t table,
                                                 const ps_table_spec_t *spec, psd_error_t *err);
/* The table is gone: the next start knows nothing of it. Errors: PSD_NOMEM, to
 * be called again; else those of ps_journal_tidy. */
PSD_MUST_CHECK psd_status_t ps_journal_drop_table(ps_journal_t *self, uint32_t table,
                                                  psd_error_t *err);

/* As ps_shard_log_append. Errors: PSD_LIMIT, PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_journal_append(ps_journal_t *self, const ps_record_t *record,
                                              ps_payload_t *payload, psd_error_t *err);
/*
 * Writes and flushes what was appended.
 *
 * ret_positions  out  on PSD_OK: the partitions with newly flushed records,
 *                     borrowed until the next call
 *
 * Errors: as of ps_shard_log_flush: call it again, nothing is lost.
 */
PSD_MUST_CHECK psd_status_t ps_journal_flush(ps_journal_t *self,
                                             const ps_position_t **ret_positions, size_t *ret_n,
                                             psd_error_t *err);
/* Removes snapshots and segments that are not needed any more, if there may be
 * any: after a snapshot, and when partitions have left or begun a new life.
 * Call it after each flush. Errors: as of ps_journal_flush; a later call
 * removes the rest. */
PSD_MUST_CHECK psd_status_t ps_journal_tidy(ps_journal_t *self, psd_error_t *err);
/* Bytes of the log: segments, and what waits. */
uint64_t ps_journal_log_bytes(const ps_journal_t *self);

/* A piece of a partition's snapshot: the state first, then rows. After the last
 * one the snapshot counts; ps_journal_tidy removes the snapshot before it, and
 * the part of the log that it covers. All records up to piece->lsn were
 * appended before. Pieces of a life that is over are skipped. Errors:
 * PSD_LIMIT, PSD_IO, PSD_NOMEM: this snapshot is abandoned, and the rest of its
 * pieces are skipped. */
PSD_MUST_CHECK psd_status_t ps_journal_piece(ps_journal_t *self, const ps_piece_t *piece,
                                             ps_bytes_t bytes, psd_error_t *err);
#endif
