/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_journal - what a shard keeps on its disk: tables, records, snapshots
 *
 * What     The log of all its partitions (shard_log.h), a snapshot of each
 *          (snapshot_file.h), and the tables' specs (table_file.h), in one
 *          directory. A start reads all of it into the shard; then records are
 *          appended and flushed, a snapshot is written piece by piece between
 *          them, and segments that no partition needs behind its snapshot are
 *          removed. The order of doing is the promise: a snapshot counts only
 *          when the records that it was read behind are flushed; what it
 *          replaces goes afterwards. Each time that a partition comes here it
 *          begins a life, which has a number: the log says where lives begin
 *          and end (ANEW, LEAVE), a snapshot of which life it is.
 * Order    open, recover once, then append, flush and piece as often as wanted.
 * Owner    The caller closes it, and holds the lock of the data directory.
 * Threads  Confined to one at a time.
 */
#ifndef PS_STORAGE_JOURNAL_H
#define PS_STORAGE_JOURNAL_H

#include "protocol/shard/shard.h"
#include "storage/log/shard_log.h"

typedef struct ps_journal ps_journal_t;

typedef struct ps_journal_args {
    ps_disk_t *disk;        /* borrowed until close */
    const char *dir;        /* copied; made when it is missing */
    ps_id_t cluster;        /* whose: another's is refused */
    const char *node;       /* copied */
    uint32_t shard;         /* of the node */
    uint32_t n_shards;      /* of the node: another number is refused, when
                               there are tables */
    uint64_t segment_bytes; /* as ps_shard_log_args_t's */
    ps_damage_t *damage;    /* borrowed until it is settled: what is damaged is
                               noted there, and costs the partitions that it
                               concerns only; NULL: it ends a start */
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

/* Told now and then how much was read; may be NULL. */
typedef void ps_journal_progress_t(void *context, uint64_t bytes);

/*
 * Reads everything into a shard that has had no event yet.
 *
 * Errors: PSD_DAMAGED naming file and byte, or the partition whose records are
 * missing; PSD_FOREIGN; PSD_IO, PSD_NOMEM, PSD_LIMIT. The shard is then to be
 * thrown away, and nothing on the disk has changed but what a crash had left
 * unfinished. With args->damage there is no PSD_DAMAGED: what may lack anything
 * is in damage->lost, nothing of it is in the shard, and nothing was changed.
 */
PSD_MUST_CHECK psd_status_t ps_journal_recover(ps_journal_t *self, ps_shard_t *shard,
                                               ps_journal_progress_t *progress, void *context,
                                               ps_journal_found_t *ret_found, psd_error_t *err);

/* Somebody who knows of other copies has agreed that what was lost is: damaged
 * files get another name. To be called until it succeeds, before anything else.
 * Errors: PSD_IO, PSD_LIMIT, PSD_NOMEM. */
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
 * ret_positions  out  on PSD_OK: the partitions that have come further by it,
 *                     borrowed until the next call
 *
 * Errors: as of ps_shard_log_flush: call it again, nothing is lost.
 */
PSD_MUST_CHECK psd_status_t ps_journal_flush(ps_journal_t *self,
                                             const ps_position_t **ret_positions, size_t *ret_n,
                                             psd_error_t *err);
/* Removes snapshots and segments that nobody needs any more, if there may be
 * any: behind a snapshot, and since partitions have left or begun anew. To be
 * called behind each flush. Errors: as of ps_journal_flush; what is left is
 * removed by a later call. */
PSD_MUST_CHECK psd_status_t ps_journal_tidy(ps_journal_t *self, psd_error_t *err);
/* Bytes of the log: segments, and what waits. */
uint64_t ps_journal_log_bytes(const ps_journal_t *self);

/* A part of a partition's snapshot: the state first, then rows. Behind the last
 * one the snapshot counts; the one before, and the log that is in it, go with
 * ps_journal_tidy. Everything up to piece->lsn was appended before. Pieces of a
 * life that is over are passed over. Errors: PSD_LIMIT, PSD_IO, PSD_NOMEM: this
 * snapshot is given up, and the rest of its pieces are passed over. */
PSD_MUST_CHECK psd_status_t ps_journal_piece(ps_journal_t *self, const ps_piece_t *piece,
                                             ps_bytes_t bytes, psd_error_t *err);
#endif
