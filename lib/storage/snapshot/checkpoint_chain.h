/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_chain - an incremental checkpoint, and those that it builds on
 *
 * What     A manifest may say "since":{"name":…,"sum":…}: its files have only
 *          the rows that changed after another checkpoint, its parent, whose
 *          manifest has that checksum. The parent may have a parent too. Each
 *          file says in "since" after which version of rows it begins; 0: it
 *          has all rows, even if the manifest has a parent. A partition is the
 *          files from such a full one on, in the order in which they were made.
 * Shape    links, the newest first; the last one has no parent
 * Owner    ps_chain_done. Threads: any, one at a time.
 */
#ifndef PS_STORAGE_CHECKPOINT_CHAIN_H
#define PS_STORAGE_CHECKPOINT_CHAIN_H

#include "storage/snapshot/checkpoint.h"

#define PS_CHAIN_MAX 256 /* links */

typedef struct ps_chain_link ps_chain_link_t;

typedef struct ps_chain {
    ps_chain_link_t *links; /* owned, each too */
    size_t n;
    size_t capacity;
} ps_chain_t;

/* The parent's name; "": it has none. Errors: PSD_DAMAGED. */
PSD_MUST_CHECK psd_status_t ps_chain_parent(const ps_doc_t *manifest, const char **ret_name,
                                            uint64_t *ret_sum, psd_error_t *err);
/* The checkpoint and all that it needs. self is empty. Errors: as
 * ps_checkpoint_read, naming the one that is wrong; PSD_NO_CHECKPOINT,
 * PSD_DAMAGED also of a parent that is missing, or not the one that was meant;
 * PSD_LIMIT more than PS_CHAIN_MAX. */
PSD_MUST_CHECK psd_status_t ps_chain_read(ps_chain_t *self, ps_disk_t *disk, const char *dir,
                                          const char *name, psd_error_t *err);
/* Takes what ps_chain_read has left, also when it failed. */
void ps_chain_done(ps_chain_t *self);
/* The newest manifest, borrowed until ps_chain_done, and its checksum. */
const ps_doc_t *ps_chain_manifest(const ps_chain_t *self);
uint64_t ps_chain_sum(const ps_chain_t *self);
/*
 * The files to read for a table (0: for all), in this order: "dirs", and
 * "files", each {"dir":place in dirs,"table","partition","lsn","sum","bytes"}.
 *
 * Errors: PSD_DAMAGED a file that is needed has no line in its manifest;
 * PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_chain_files(const ps_chain_t *self, uint64_t table, ps_doc_t *to,
                                           psd_error_t *err);
/* "since": for each partition of the table its version, lsn and that record's
 * epoch in the newest link; zeros where there is none. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_chain_since(const ps_chain_t *self, uint64_t table,
                                           uint64_t n_partitions, ps_doc_t *to, psd_error_t *err);
#endif
