/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_segment - one file of a shard's log: its name, its head, its content
 *
 * Private to the log (shard_log.h).
 */
#ifndef PS_STORAGE_SEGMENT_H
#define PS_STORAGE_SEGMENT_H

#include "storage/log/shard_log.h"

#define PS_SEGMENT_HEAD 128 /* bytes in front of the first record */

/* The range of a partition's records; it may claim more than there are. */
typedef struct ps_segment_range {
    uint32_t table;
    uint32_t partition;
    uint64_t first; /* lowest lsn */
    uint64_t last;  /* highest lsn */
} ps_segment_range_t;

typedef struct ps_segment {
    uint64_t number;
    uint64_t previous_bytes;    /* of the segment before; 0: there was none */
    uint64_t bytes;             /* that count, head included */
    bool follows_hole;          /* records may be missing before it */
    bool is_damaged;            /* when it is removed, a renamed file stays */
    bool is_unread;             /* its head is damaged; at a start only */
    ps_segment_range_t *ranges; /* owned; by table and partition, ascending */
    size_t n_ranges;
    size_t capacity;
} ps_segment_t;

/* Whose segment it is. */
typedef struct ps_segment_owner {
    ps_id_t cluster;
    uint32_t shard;
    char node[PS_SHARD_LOG_NODE_MAX + 1];
} ps_segment_owner_t;

void ps_segment_done(ps_segment_t *self);
/* Adds a record; room for a range was reserved (ps_segment_reserve). */
void ps_segment_note(ps_segment_t *self, uint32_t table, uint32_t partition, uint64_t lsn);
/* Its records of the partition are not needed any more. */
void ps_segment_forget(ps_segment_t *self, uint32_t table, uint32_t partition);
/* Room for `more` ranges. Errors: PSD_NOMEM, nothing changed. */
PSD_MUST_CHECK psd_status_t ps_segment_reserve(ps_segment_t *self, size_t more, psd_error_t *err);
/* True when a record of the partition with this lsn or a higher one may be in
 * it. */
bool ps_segment_has(const ps_segment_t *self, uint32_t table, uint32_t partition, uint64_t lsn);

/* The number in a name log-<16 hex digits>.seg; false: another name. */
PSD_MUST_CHECK bool ps_segment_parse(const char *name, uint64_t *ret_number);
PSD_MUST_CHECK psd_status_t ps_segment_path(ps_buffer_t *to, const char *dir, uint64_t number,
                                            psd_error_t *err);

/* Head bytes of self. */
void ps_segment_write_head(const ps_segment_t *self, const ps_segment_owner_t *owner,
                           uint8_t ret[PS_SEGMENT_HEAD]);
/* Fills in previous_bytes of a segment of this number. path is for texts.
 * Errors: PSD_DAMAGED, PSD_FOREIGN. */
PSD_MUST_CHECK psd_status_t ps_segment_read_head(ps_segment_t *self,
                                                 const ps_segment_owner_t *owner, ps_bytes_t head,
                                                 const char *path, psd_error_t *err);

/*
 * log-flushed: up to where the newest segment is known to be flushed. It is
 * overwritten after each flush and never flushed itself. So after a power loss
 * it may be old: it then says less than the truth, but never more. It has two
 * slots, written in turn: one may be torn.
 */
#define PS_FLUSHED_SLOT ((size_t)32)
#define PS_FLUSHED_SIZE (2 * PS_FLUSHED_SLOT)
#define PS_FLUSHED_NAME "log-flushed"

typedef struct ps_flushed {
    uint64_t number; /* of the segment; 0: nothing is known */
    uint64_t bytes;
    size_t slot;  /* that says so, 0 or 1 */
    bool is_torn; /* the other one says nothing */
} ps_flushed_t;

void ps_flushed_write(uint64_t number, uint64_t bytes, uint8_t ret[PS_FLUSHED_SLOT]);
/* Errors: PSD_DAMAGED neither slot is whole; PSD_FOREIGN. */
PSD_MUST_CHECK psd_status_t ps_flushed_read(ps_bytes_t bytes, const char *path, ps_flushed_t *ret,
                                            psd_error_t *err);
#endif
