/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_draft - memory of the library to which a caller writes a push's values
 *
 * What     With a lane to the shard it is a block of the memory shared with the
 *          shard; slices point at it, and nothing is copied. Otherwise it is on
 *          the heap. After the commit the caller has no part in it: it is freed
 *          when no payload points at it.
 * Owner    The caller until psd_push_commit or psd_push_abandon, then the
 *          client. The client's list has all of both.
 * Threads  Payloads release it on any thread; all else runs on the client's.
 */
#ifndef PS_CLIENT_DRAFT_H
#define PS_CLIENT_DRAFT_H

#include <stdatomic.h>

#include "client/slices/select.h"
#include "client/requests/table.h"

struct psd_draft {
    TAILQ_ENTRY(psd_draft) in_list;
    psd_client_t *client; /* NULL: it is closed */
    psd_table_t *table;   /* borrowed */
    psd_select_t select;  /* plain */
    ps_block_t block;     /* of a lane; size 0: none */
    void *memory;         /* owned; on the heap, when there is no block */
    size_t n_values;
    bool is_committed;
    atomic_uint n_holders; /* payloads that point at it */
};

/* Frees committed drafts that no payload points at. */
void ps_drafts_sweep(psd_client_t *client);
/* The client closes, and no payload points at any draft. Drafts that are not
 * committed stay the caller's, without memory. */
void ps_drafts_done(psd_client_t *client);
#endif
