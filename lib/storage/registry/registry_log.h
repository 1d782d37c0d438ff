/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry_log - the log of a replicated registry, and its member's vote
 *
 * What     What a member of the registry must remember for the others: entries
 *          with the indexes first .. last without a gap, the term and the vote
 *          (ADR 21). Entries lie in segments, which docs/storage.md describes.
 *          An entry that is flushed survives until it is cut; one that was only
 *          appended may survive. Head and tail are cut for good: what was cut
 *          never comes back.
 *
 *          After a crash the last segment may end in bytes that were never
 *          flushed. An open cuts those off, but reports flushed entries that
 *          are damaged. It knows three ways that an entry was flushed:
 *          the file `flushed`, written after each flush and not flushed itself,
 *          which is exact unless the power was lost; the state in the file
 *          `term`, as of its last change; and each record, which has the index
 *          that was flushed when it was written. So after a power loss only the
 *          entries of the last flush have no witness: damage to them looks like
 *          a torn end.
 * Shape    DIR/entries-<20 digits>, the index of the first entry; DIR/term;
 *          DIR/flushed. Indexes begin at 1.
 * Order    open (or create, then open), each to read, then the others as often
 *          as wanted. When a call that writes has failed, the log is broken: all
 *          such calls are refused until it is opened again, which finds either
 *          what was before the call, or what would be after it. An append that
 *          found no room is no such failure.
 * Owner    The caller closes it, and holds the lock of the data directory.
 * Threads  Confined to one at a time.
 * Errors   All that write: PSD_IO, also when the log is broken; PSD_LIMIT no room;
 *          PSD_NOMEM.
 */
#ifndef PS_STORAGE_REGISTRY_LOG_H
#define PS_STORAGE_REGISTRY_LOG_H

#include "storage/disk/disk.h"

#define PS_REGISTRY_ENTRY_MAX ((size_t)64 << 20) /* bytes of an entry */

typedef enum ps_registry_entry_kind {
    PS_REGISTRY_COMMAND = 1, /* of the registry */
    PS_REGISTRY_BARRIER = 2, /* no bytes that anybody reads */
    PS_REGISTRY_MEMBERS = 3  /* who votes from here on */
} ps_registry_entry_kind_t;

typedef struct ps_registry_entry {
    uint64_t index;
    uint64_t term; /* in which it was made; never falls from one to the next */
    ps_registry_entry_kind_t kind;
    ps_bytes_t bytes; /* borrowed; PS_REGISTRY_ENTRY_MAX at most */
} ps_registry_entry_t;

typedef struct ps_registry_log ps_registry_log_t;

typedef struct ps_registry_log_args {
    ps_disk_t *disk;        /* borrowed until close */
    const char *dir;        /* copied; made when it is missing */
    ps_id_t cluster;        /* whose log it is: another's is refused */
    uint64_t member;        /* likewise; 0: whose it is (open only) */
    uint64_t segment_bytes; /* a new segment begins when one has this size or
                               more; > 0 */
} ps_registry_log_args_t;

/*
 * Makes a log without entries, of term 0 without a vote.
 *
 * lineage      in  as of set_lineage
 * first_index  in  of the entry that is appended first; > 0
 *
 * Errors: PSD_INVALID the directory has a log, or a part of one. After a
 * failure there is none, or an open makes the rest of it.
 */
PSD_MUST_CHECK psd_status_t ps_registry_log_create(const ps_registry_log_args_t *args,
                                                   const ps_id_t *lineage, uint64_t first_index,
                                                   psd_error_t *err);
/*
 * Opens the log of a directory and checks every byte of it; ends a cut or a
 * reset that a crash interrupted, and cuts off what was never flushed. All
 * entries that it has then are flushed.
 *
 * ret_log  out  NULL: the directory has no log; else the caller's
 *
 * Errors: PSD_FOREIGN a file is of another cluster or member, or of a newer
 * psd, naming both; PSD_DAMAGED naming file and byte, and the entry if there is
 * one; then nothing was changed. Those above.
 */
PSD_MUST_CHECK psd_status_t ps_registry_log_open(const ps_registry_log_args_t *args,
                                                 ps_registry_log_t **ret_log, psd_error_t *err);
/* Writes and flushes nothing. Takes NULL. */
void ps_registry_log_close(ps_registry_log_t **self_p);

/* Called for each entry in order, which is borrowed until it returns. A status
 * other than PSD_OK ends the walk with that status. */
typedef psd_status_t ps_registry_log_each_t(void *context, const ps_registry_entry_t *entry,
                                            psd_error_t *err);
/* Reads the entries from `from` on, also those that are not flushed. Errors:
 * PSD_DAMAGED, PSD_IO, PSD_NOMEM, and what `each` returned. */
PSD_MUST_CHECK psd_status_t ps_registry_log_read(ps_registry_log_t *self, uint64_t from,
                                                 ps_registry_log_each_t *each, void *context,
                                                 psd_error_t *err);

/*
 * Remembers that the member is in this term, and for whom it voted there. On
 * the disk when this returns PSD_OK; after a failure either the old ones are
 * found or the new ones.
 *
 * vote  in  a member; 0: none
 *
 * Errors: PSD_INVALID the term is lower, or the member has voted for another
 * one in this term; nothing changed. Those above.
 */
PSD_MUST_CHECK psd_status_t ps_registry_log_set_term(ps_registry_log_t *self, uint64_t term,
                                                     uint64_t vote, psd_error_t *err);
/* A start of the member: *ret_life is higher than at all earlier ones; as
 * set_term. */
PSD_MUST_CHECK psd_status_t ps_registry_log_count_start(ps_registry_log_t *self, uint64_t *ret_life,
                                                        psd_error_t *err);
/* Remembers of which line of histories the log is (docs/storage.md); as
 * set_term. */
PSD_MUST_CHECK psd_status_t ps_registry_log_set_lineage(ps_registry_log_t *self,
                                                        const ps_id_t *lineage, psd_error_t *err);

/*
 * Writes entries after the last one; a power loss may lose them until the next
 * flush.
 *
 * entries  in  n of them, the first one with the index last + 1; no term is
 *              higher than that of set_term
 *
 * Errors: PSD_INVALID an index, a term, a kind or a size does not fit, naming
 * it. PSD_LIMIT no room, PSD_NOMEM: none of them was appended, and the log is
 * usable. Those above.
 */
PSD_MUST_CHECK psd_status_t ps_registry_log_append(ps_registry_log_t *self,
                                                   const ps_registry_entry_t *entries, size_t n,
                                                   psd_error_t *err);
/* All appended entries are on the disk when this returns PSD_OK. */
PSD_MUST_CHECK psd_status_t ps_registry_log_flush(ps_registry_log_t *self, psd_error_t *err);

/* Removes the entries from `from` on; flushes the others. None of the removed
 * ones is found again when this returned PSD_OK, whatever is appended then. One
 * that is not there is no failure. Errors: PSD_INVALID from is below the first
 * index. Those above. */
PSD_MUST_CHECK psd_status_t ps_registry_log_cut_tail(ps_registry_log_t *self, uint64_t from,
                                                     psd_error_t *err);
/* Removes the segments of which every entry is below `before`; never the last
 * segment. */
PSD_MUST_CHECK psd_status_t ps_registry_log_cut_head(ps_registry_log_t *self, uint64_t before,
                                                     psd_error_t *err);
/* Removes all entries: the next one has the index `next`, > 0. Term, vote and
 * lineage stay. After a failure the old log is found or the empty one. */
PSD_MUST_CHECK psd_status_t ps_registry_log_reset(ps_registry_log_t *self, uint64_t next,
                                                  psd_error_t *err);

/* The index of the first entry, or that of the next one when there is none. */
uint64_t ps_registry_log_first(const ps_registry_log_t *self);
/* Of the last entry; first - 1: there is none. */
uint64_t ps_registry_log_last(const ps_registry_log_t *self);
/* Entries up to this one are on the disk; first - 1: none is. */
uint64_t ps_registry_log_flushed(const ps_registry_log_t *self);
/* Whose log it is. */
uint64_t ps_registry_log_member(const ps_registry_log_t *self);
uint64_t ps_registry_log_term(const ps_registry_log_t *self);
uint64_t ps_registry_log_vote(const ps_registry_log_t *self);
ps_id_t ps_registry_log_lineage(const ps_registry_log_t *self);
/* Bytes of all segments, heads included. */
uint64_t ps_registry_log_bytes(const ps_registry_log_t *self);
/* It has to be opened again before anything is written. */
bool ps_registry_log_is_broken(const ps_registry_log_t *self);
/* What the open cut off because it was never flushed; 0: nothing. */
uint64_t ps_registry_log_torn_bytes(const ps_registry_log_t *self);
#endif
