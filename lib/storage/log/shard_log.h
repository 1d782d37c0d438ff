/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_log - the records of all partitions of one shard, on disk
 *
 * What     Segments log-<16 hex digits>.seg in their own directory, numbered
 *          1, 2, 3, …; docs/storage.md has the format. There is one log for all
 *          partitions of a shard, so that one flush serves all of them.
 *          Records stay in memory until they are flushed. When a write or a
 *          flush fails, the segment ends where it was flushed last, and the log
 *          writes everything after that again to a new segment, as soon as it
 *          can. So the log recovers by itself when there is room again, and no
 *          record counts twice.
 * Order    open, read once, then append, write and flush as often as wanted.
 * Owner    The caller closes it, and holds the lock of the data directory
 *          (storage/disk/data_dir.h).
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
    uint64_t segment_bytes; /* a new segment begins when one has this size or
                               more; > 0 */
    ps_damage_t *damage;    /* borrowed until it is settled; damage is noted
                               there and skipped; NULL: PSD_DAMAGED ends the
                               open or the read */
} ps_shard_log_args_t;

/*
 * Opens the log of a directory, or begins one; reads the heads of its segments
 * and removes files that an earlier psd did not finish.
 *
 * Errors: PSD_FOREIGN a segment is of another cluster, node, shard or a newer
 * version, naming both; PSD_DAMAGED a head is damaged or a segment is missing;
 * PSD_IO; PSD_LIMIT; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_shard_log_open(const ps_shard_log_args_t *args,
                                              ps_shard_log_t **ret_log, psd_error_t *err);
/* Writes and flushes nothing. Takes NULL. */
void ps_shard_log_close(ps_shard_log_t **self_p);

/* Called for each record, in the order of the log. record and body are borrowed
 * until it returns; a status other than PSD_OK ends the read with that
 * status. */
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
 * Reads all records; call it once, before anything is appended. It cuts off the
 * torn end of the last segment after a crash, which was never flushed, and
 * reports it in ret_found. Records that are not known to be flushed are written
 * again and flushed before this returns.
 *
 * With args->damage: n_holes grows by one at each place where records may be
 * missing. `each` gets the records before a damaged one, and those after it if
 * its size leads to a valid record; otherwise the rest of the segment is
 * skipped. If anything is damaged, here or earlier, nothing is cut or flushed.
 *
 * Errors: PSD_DAMAGED anything else that is wrong, naming file and byte;
 * nothing was changed, and `each` got the records up to there. PSD_IO,
 * PSD_LIMIT no room, PSD_NOMEM, and what `each` returned.
 */
PSD_MUST_CHECK psd_status_t ps_shard_log_read(ps_shard_log_t *self, ps_shard_log_each_t *each,
                                              void *context, ps_shard_log_found_t *ret_found,
                                              psd_error_t *err);

/* After a read that found damage, when the files in damage->aside are renamed:
 * does the cuts, flushes and notes that the read left out. Call it until it
 * succeeds, and before anything is appended. Errors: PSD_IO, PSD_LIMIT,
 * PSD_NOMEM. */
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
/* The same for a record that is encoded already: it came from another node and
 * was read (ps_record_read). The bytes are borrowed from holder, which is held
 * until the record is flushed; holder NULL: they are copied. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_log_append_bytes(ps_shard_log_t *self,
                                                      const ps_record_t *record, ps_bytes_t bytes,
                                                      ps_payload_t *holder, psd_error_t *err);

/*
 * Writes the appended records, in one call of the disk. Readers of the file see
 * them, but a power loss may lose them.
 *
 * Errors: PSD_LIMIT no room; PSD_IO; PSD_NOMEM. Flushed records are untouched,
 * and appended ones are not lost: call it again.
 */
PSD_MUST_CHECK psd_status_t ps_shard_log_write(ps_shard_log_t *self, psd_error_t *err);
/* Writes and flushes: every record appended before is on the disk. Errors as
 * of ps_shard_log_write. */
PSD_MUST_CHECK psd_status_t ps_shard_log_flush(ps_shard_log_t *self, psd_error_t *err);

/* The number of records appended since the log was opened, and the number of
 * them that are flushed, which are the first ones. An append's ticket is the
 * count after it. */
uint64_t ps_shard_log_appended(const ps_shard_log_t *self);
uint64_t ps_shard_log_flushed(const ps_shard_log_t *self);
/* Bytes of records in memory that are not flushed yet; the caller bounds them
 * by not appending. */
uint64_t ps_shard_log_waiting(const ps_shard_log_t *self);
/* Bytes of all segments. */
uint64_t ps_shard_log_bytes(const ps_shard_log_t *self);

/* The lowest segment that has a record of the partition, since the last ANEW or
 * LEAVE, whose lsn is `lsn` or more; UINT64_MAX: none. Records that were
 * appended and not written are in none. */
uint64_t ps_shard_log_segment_with(const ps_shard_log_t *self, uint32_t table, uint32_t partition,
                                   uint64_t lsn);
/* Removes the segments below `lowest` for good, oldest first; never the last
 * one. A damaged one is renamed instead. Errors: PSD_IO; some may be
 * removed. */
PSD_MUST_CHECK psd_status_t ps_shard_log_cut(ps_shard_log_t *self, uint64_t lowest,
                                             psd_error_t *err);
#endif
