/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_lost - copies that a node can no longer read
 *
 * What     Partitions of a table on one shard whose files were damaged at
 *          startup. A node's range may include partitions that are not on that
 *          shard, because it does not know which are.
 * Shape    JSON: {"shard":0,"table":3,"first":0,"last":7}; table 0: all of them
 * Threads  a plain value
 */
#ifndef PS_PROTOCOL_LOST_H
#define PS_PROTOCOL_LOST_H

#include "wire/messages/doc.h"

#define PS_LOST_MAX 4096 /* listed one by one; more than this become "all tables" */

typedef struct ps_lost {
    uint32_t shard;
    uint32_t table; /* 0: all tables */
    uint32_t first; /* partition */
    uint32_t last;  /* the same, or higher */
} ps_lost_t;

/* True when an entry covers the partition of that table on that shard. */
bool ps_lost_has(const ps_lost_t *lost, size_t n, uint32_t shard, uint32_t table,
                 uint32_t partition);
/* Sets "lost". false: no memory. */
PSD_MUST_CHECK bool ps_lost_to_doc(const ps_lost_t *lost, size_t n, ps_doc_t *doc);
/* Reads "lost"; no entries when the key is missing. *ret_lost is the caller's
 * (ps_free). Errors: PSD_PROTO, PSD_INVALID, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_lost_from_doc(const ps_doc_t *doc, ps_lost_t **ret_lost,
                                             size_t *ret_n, psd_error_t *err);
#endif
