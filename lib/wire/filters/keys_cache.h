/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_key_cache - key lists that both peers know, so that a 16-byte hash can
 * replace a list
 *
 * What     An LRU cache on both sides. The receiver keeps lists, the sender the
 *          names of the lists that it has sent. Both count the same cost for
 *          each and evict the least recently used, so they evict in step. If
 *          they get out of step (a message was lost), the receiver says that it
 *          does not know the list and the sender sends it again.
 * Shape    a list's name is ps_hash_id of all its bytes. Two lists with the
 *          same name cannot be told apart: among 2^40 lists that happens with a
 *          probability of 2^-49. An attacker who forces a collision only harms
 *          its own requests: a cache belongs to one connection.
 * Units    limit and cost in bytes; a list costs its bytes and
 *          PS_KEY_CACHE_COST, whether the list itself is kept or only its name
 * Owner    The caller. A found list is held by the caller that found it.
 * Threads  Confined to one thread; found lists may go to other threads.
 */
#ifndef PS_WIRE_KEYS_CACHE_H
#define PS_WIRE_KEYS_CACHE_H

#include "base/slice.h"

typedef struct ps_key_cache ps_key_cache_t;

#define PS_KEY_CACHE_COST 256 /* of an entry, in addition to its list */
/* The size that a client assumes and a node's default. If a node keeps less,
 * the two evict out of step. */
#define PS_KEY_CACHE_BYTES ((size_t)16 << 20)

/* An empty cache. limit_bytes 0 keeps nothing. NULL when there is no memory. */
PSD_MUST_CHECK ps_key_cache_t *ps_key_cache_new(size_t limit_bytes);
/* Takes NULL, nulls *self_p. */
void ps_key_cache_destroy(ps_key_cache_t **self_p);

/* Receiver: keeps a copy of the list and evicts others until it fits; does not
 * keep a list larger than the limit. Replaces a list of the same name. Errors:
 * PSD_NOMEM, nothing changed. */
PSD_MUST_CHECK psd_status_t ps_key_cache_put(ps_key_cache_t *self, const ps_id_t *hash,
                                             ps_bytes_t keys);
/* Receiver: a payload whose keys are the list, held for the caller, which
 * destroys it. The list becomes the most recently used. NULL: not known, or not
 * n_keys keys. */
PSD_MUST_CHECK ps_payload_t *ps_key_cache_find(ps_key_cache_t *self, const ps_id_t *hash,
                                               uint64_t n_keys);

/* Sender: notes that a list of list_bytes bytes is being sent. Like put,
 * without the list. */
PSD_MUST_CHECK psd_status_t ps_key_cache_note(ps_key_cache_t *self, const ps_id_t *hash,
                                              size_t size);
/* Sender: whether the receiver should know the list. The list becomes the most
 * recently used. */
bool ps_key_cache_knows(ps_key_cache_t *self, const ps_id_t *hash, size_t size);

/* A payload of the list's keys and the body's index and values, without
 * copying; it holds both. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_key_list_put(ps_payload_t *body, ps_payload_t *list);

/* Forgets one list; no effect when it is not known. */
void ps_key_cache_drop(ps_key_cache_t *self, const ps_id_t *hash);
/* Forgets all: the connection is a new one. */
void ps_key_cache_clear(ps_key_cache_t *self);
/* The total cost of the kept entries. */
size_t ps_key_cache_bytes(const ps_key_cache_t *self);
#endif
