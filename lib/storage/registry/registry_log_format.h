/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry_log's bytes - heads of segments, records, the slots of two notes
 *
 * What     Only bytes: nothing is opened or written here. A file of two slots
 *          has them 4096 bytes apart, so that one torn sector costs one slot.
 *
 * Private to the log (registry_log.h), and to its fuzz target.
 */
#ifndef PS_STORAGE_REGISTRY_LOG_FORMAT_H
#define PS_STORAGE_REGISTRY_LOG_FORMAT_H

#include "storage/registry/registry_log.h"

#define PS_REGISTRY_INDEX_MAX (UINT64_MAX / 4)    /* so that no sum overflows */
#define PS_REGISTRY_COUNT_MAX (UINT64_C(1) << 62) /* of changes, terms and cuts */
#define PS_REGISTRY_SEGMENT_HEAD ((size_t)48)     /* bytes before the first record */
#define PS_REGISTRY_RECORD_HEAD ((size_t)48)      /* bytes before an entry's */
#define PS_REGISTRY_RECORD_ALIGN ((size_t)8)
#define PS_REGISTRY_STATE_SLOT ((size_t)120)
#define PS_REGISTRY_FLUSHED_SLOT ((size_t)32)
#define PS_REGISTRY_SLOT_AT ((size_t)4096) /* of the second slot in its file */
#define PS_REGISTRY_STATE_SIZE (PS_REGISTRY_SLOT_AT + PS_REGISTRY_STATE_SLOT)
#define PS_REGISTRY_FLUSHED_SIZE (PS_REGISTRY_SLOT_AT + PS_REGISTRY_FLUSHED_SLOT)
#define PS_REGISTRY_STATE_NAME "term"
#define PS_REGISTRY_FLUSHED_NAME "flushed"

/* Whose log it is. */
typedef struct ps_registry_owner {
    ps_id_t cluster;
    uint64_t member;
} ps_registry_owner_t;

/* What the file `term` says. */
typedef struct ps_registry_state {
    uint64_t sequence; /* of its changes; the higher one counts */
    ps_id_t lineage;
    uint64_t term;
    uint64_t vote;       /* 0: none */
    uint64_t generation; /* of the log: the number of cuts of its tail and of
                            resets; `flushed` counts for its own only */
    uint64_t first;      /* segments below are not part of the log */
    uint64_t flushed;    /* entries up to this one were on the disk */
    uint64_t cut_from;   /* entries from this one on are being removed; 0: none */
    bool is_begun;       /* false: all segments there are to be removed, and an
                            empty one made */
} ps_registry_state_t;

/* What the file `flushed` says. */
typedef struct ps_registry_flushed {
    uint64_t generation;
    uint64_t index; /* entries up to this one are on the disk */
} ps_registry_flushed_t;

typedef struct ps_registry_record {
    ps_registry_entry_t entry;
    uint64_t flushed; /* entries up to this one were on the disk when it was
                         written; below its own index */
} ps_registry_record_t;

/* The index in a name entries-<20 digits>; false: another name. */
PSD_MUST_CHECK bool ps_registry_segment_parse(const char *name, uint64_t *ret_first);
PSD_MUST_CHECK psd_status_t ps_registry_segment_path(ps_buffer_t *to, const char *dir,
                                                     uint64_t first, psd_error_t *err);
/* Returns the seed of the checksums of its records. */
uint64_t ps_registry_segment_write(const ps_registry_owner_t *owner, uint64_t first,
                                   uint8_t ret[PS_REGISTRY_SEGMENT_HEAD]);
/* path is for texts. Errors: PSD_DAMAGED, PSD_FOREIGN. */
PSD_MUST_CHECK psd_status_t ps_registry_segment_read(const ps_registry_owner_t *owner,
                                                     uint64_t first, ps_bytes_t bytes,
                                                     const char *path, uint64_t *ret_seed,
                                                     psd_error_t *err);

/* Bytes of a record whose entry has n. */
size_t ps_registry_record_size(size_t n);
/* Writes ps_registry_record_size of them. */
void ps_registry_record_write(const ps_registry_record_t *record, uint64_t seed, uint8_t *ret);
/*
 * The record at the beginning of bytes, whose entry is borrowed from there.
 *
 * Errors: PSD_DAMAGED size, magic or checksum are wrong; PSD_FOREIGN the
 * checksum is right, and it is of a kind that this psd does not know.
 */
PSD_MUST_CHECK psd_status_t ps_registry_record_read(ps_bytes_t bytes, uint64_t seed,
                                                    ps_registry_record_t *ret_record,
                                                    size_t *ret_size, psd_error_t *err);

void ps_registry_state_write(const ps_registry_state_t *state, const ps_registry_owner_t *owner,
                             uint8_t ret[PS_REGISTRY_STATE_SLOT]);
/* owner: its member may be 0, and is set then. ret_slot: that says so, 0 or 1. Errors: PSD_DAMAGED
 * neither slot is whole; PSD_FOREIGN. */
PSD_MUST_CHECK psd_status_t ps_registry_state_read(ps_bytes_t bytes, ps_registry_owner_t *owner,
                                                   const char *path, ps_registry_state_t *ret_state,
                                                   size_t *ret_slot, psd_error_t *err);

void ps_registry_flushed_write(const ps_registry_flushed_t *note,
                               uint8_t ret[PS_REGISTRY_FLUSHED_SLOT]);
/* One of the slots is not whole. */
PSD_MUST_CHECK bool ps_registry_flushed_is_torn(ps_bytes_t bytes);
/* As ps_registry_state_read. */
PSD_MUST_CHECK psd_status_t ps_registry_flushed_read(ps_bytes_t bytes, const char *path,
                                                     ps_registry_flushed_t *ret_note,
                                                     size_t *ret_slot, psd_error_t *err);
#endif
