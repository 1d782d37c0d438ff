/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_quorum_cache - the entries of the log that a member has in memory
 *
 * Shape    without gaps; base is the index before the first one
 * Owner    It owns the bytes of its entries.
 * Threads  Confined to one.
 */
#ifndef PS_PROTOCOL_QUORUM_CACHE_H
#define PS_PROTOCOL_QUORUM_CACHE_H

#include "protocol/quorum/quorum_message.h"

typedef struct ps_quorum_cache {
    ps_quorum_entry_t *at; /* owned */
    size_t n;
    size_t capacity;
    uint64_t base;
} ps_quorum_cache_t;

void ps_quorum_cache_done(ps_quorum_cache_t *self);
/* Drops all; the next entry is base + 1. */
void ps_quorum_cache_begin(ps_quorum_cache_t *self, uint64_t base);
/* Of the last entry; base when there is none. */
uint64_t ps_quorum_cache_last(const ps_quorum_cache_t *self);
/* NULL: it is not there. */
ps_quorum_entry_t *ps_quorum_cache_find(const ps_quorum_cache_t *self, uint64_t index);
/* Makes room for n more. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_cache_reserve(ps_quorum_cache_t *self, size_t n);
/* Appends into room that was reserved, and takes the bytes. */
void ps_quorum_cache_add(ps_quorum_cache_t *self, ps_quorum_entry_t *entry);
/* Drops the entries from index on. */
void ps_quorum_cache_cut(ps_quorum_cache_t *self, uint64_t index);
/* Drops the entries up to index. */
void ps_quorum_cache_forget(ps_quorum_cache_t *self, uint64_t index);
#endif
