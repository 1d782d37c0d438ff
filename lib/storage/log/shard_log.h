/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_log - the records of all partitions of one shard, on disk
 *
 * What     Segments log-<16 hex digits>.seg in a directory of its own, numbered
 *          1, 2, 3, …; docs/storage.md has their bytes. One log for all
 *          partitions of a shard, so that one flush serves whatever came in.
 *          What was appended is kept in memory until it is flushed: when a
 *          write or a flush fails, the segment is left where it was flushed
 *          last, and everything behind that is written again to a new one, as
 *          soon as that is possible. So the log goes on by itself when there is
 *          room again, and nothing counts twice.
 * Order    open, read once, then append, write and flush as often as wanted.
 * Owner    The caller closes it; whoever may write to the directory holds a
 *          lock that is not this file's business (storage/disk/data_dir.h).
 * Threads  Confined to one thread.
 */
#ifndef PS_STORAGE_SHARD_LOG_H
#define PS_STORAGE_SHARD_LOG_H

#include "storage/disk/damage.h"
#include "wire/records/record.h"

#define PS_SHARD_LOG_NODE_MAX 63 /* bytes of a node's name */

typedef struct ps_shard_log ps_shard_log_t;

typedef struct ps_shard_log_args {
    ps_disk_t *disk;        /* borrowed until close */
    const char *dir;        /* copied; made when it is missing */
    ps_id_t cluster;        /* whose log it is: another's is refused */
    const char *node;       /* copied */
    uint32_t shard;         /* of the node */
    uint64_t segment_bytes; /* a segment of this size or more is followed by a
                               new one; > 0 */
    ps_damage_t *damage;    /* borrowed until it was settled; what is damaged is
                               noted there and passed over; NULL: PSD_DAMAGED
                               ends an opening or a reading */
} ps_shard_log_args_t;

/*
 * Opens the log of a directory, or begins one; reads the heads of its segments
 * and removes what an earlier psd began and did not finish.
 *
 * Errors: PSD_FOREIGN a segment is of another cluster, node, shard or a newer
 * version, naming both; PSD_DAMAGED a head is damaged or a segment is missing;
 * PSD_IO; PSD_LIMIT; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_shard_log_open(const ps_shard_log_args_t *args,
                                              ps_shard_log_t **ret_log, psd_error_t *err);
/* Writes and flushes nothing. Takes NULL. */
void ps_shard_log_close(ps_shard_log_t **self_p);

/* Told of each record, in the order of the log. record and body are borrowed
 * until it returns; what is not PSD_OK ends the reading with that status. */
typedef psd_status_t ps_shard_log_each_t(void *context, const ps_record_t *record,
                                         const ps_body_t *body, psd_error_t *err);

typedef struct ps_shard_log_found {
    uint64_t n_segments;
    uint64_t n_records;
    uint64_t bytes;       /* of segments, heads included */
    uint64_t cut_segment; /* whose tail was torn; 0: none was */
    uint64_t cut_offset;  /* from where on */
    uint64_t cut_bytes;   /* how much */
    bool note_torn;       /* one of the two slots of log-flushed is damaged */
    bool is_unsettled;    /* ps_shard_log_settle is due */
} ps_shard_log_found_t;

/*
 * Reads all records; to be called once, before anything is appended. What a
 * crash tore at the end of the last segment is cut off and told in ret_found;
 * it was never flushed. What remains is written again as far as no flush has
 * told of it, and flushed, before this returns.
 *
 * With args->damage, whose n_holes is one more behind each place where records
 * may be missing: records in front of a damaged one are told, and those behind
 * it when its size leads to a whole one; else the rest of the segment is passed
 * over. Where anything was damaged, here or before, nothing is cut or flushed.
 *
 * Errors: PSD_DAMAGED anything else that is wrong, naming file and byte;
 * nothing was changed, and records were told only up to there. PSD_IO,
 * PSD_LIMIT no room, PSD_NOMEM, and what `each` returned.
 */
PSD_MUST_CHECK psd_status_t ps_shard_log_read(ps_shard_log_t *self, ps_shard_log_each_t *each,
                                              void *context, ps_shard_log_found_t *ret_found,
                                              psd_error_t *err);

/* Behind a reading that found damage, when the files in damage->aside have
 * other names: cuts, flushes and notes what the reading did not. To be called
 * until it succeeds, and before anything is appended. Errors: PSD_IO,
 * PSD_LIMIT, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_log_settle(ps_shard_log_t *self, psd_error_t *err);

/*
 * Appends a record in memory. Keeps payload until the record is flushed; it is
 * not `shared`.
 *
 * Errors: PSD_LIMIT the record is larger than PS_RECORD_MAX; PSD_NOMEM; the log
 * is then unchanged.
 */
PSD_MUST_CHECK psd_status_t ps_shard_log_append(ps_shard_log_t *self, const ps_record_t *record,
                                                ps_payload_t *payload, psd_error_t *err);
/* The same for a record whose bytes are there, as they came from another node
 * and were read (ps_record_read). They are borrowed from holder, which is kept
 * until the record is flushed; holder NULL: they are copied. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_log_append_bytes(ps_shard_log_t *self,
                                                      const ps_record_t *record, ps_bytes_t bytes,
                                                      ps_payload_t *holder, psd_error_t *err);

/*
 * Writes what was appended, in one call of the disk: the next reader of the
 * file sees it, a loss of power may take it.
 *
 * Errors: PSD_LIMIT no room; PSD_IO; PSD_NOMEM. Nothing that was flushed is
 * touched, nothing that was appended is lost: call it again.
 */
PSD_MUST_CHECK psd_status_t ps_shard_log_write(ps_shard_log_t *self, psd_error_t *err);
/* Writes and flushes: every record appended before is on the disk. Errors as
 * of ps_shard_log_write. */
PSD_MUST_CHECK psd_status_t ps_shard_log_flush(ps_shard_log_t *self, psd_error_t *err);

/* Records appended since the log was opened, and how many of them, the first
 * ones, are flushed: an append's ticket is the count behind it. */
uint64_t ps_shard_log_appended(const ps_shard_log_t *self);
uint64_t ps_shard_log_flushed(const ps_shard_log_t *self);
/* Bytes of records that are kept because they are not flushed yet; the caller
 * bounds it by not appending. */
uint64_t ps_shard_log_waiting(const ps_shard_log_t *self);
/* Bytes of all segments. */
uint64_t ps_shard_log_bytes(const ps_shard_log_t *self);

/* The lowest segment with a record of the partition whose lsn is `lsn` or more,
 * of those since the last ANEW or LEAVE; UINT64_MAX: none has one. What was
 * appended and not written is in none. */
uint64_t ps_shard_log_segment_with(const ps_shard_log_t *self, uint32_t table, uint32_t partition,
                                   uint64_t lsn);
/* Removes the segments below `lowest` for good, the first one first; never the
 * last one. One that is damaged gets another name. Errors: PSD_IO; some may be
 * removed. */
PSD_MUST_CHECK psd_status_t ps_shard_log_cut(ps_shard_log_t *self, uint64_t lowest,
                                             psd_error_t *err);
#endif
