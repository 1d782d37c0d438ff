/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_key_cache - lists of keys that two peers both know, so that a hash of 16
 * bytes can stand for one
 *
 * What     The receiver keeps lists, the sender the names of those that it has
 *          sent; both count the same cost for each and drop the one that was
 *          used longest ago, so that they forget in step. When they do not (a
 *          message was lost) the receiver says that it does not know the list
 *          and the sender sends it again.
 * Shape    a list is named by ps_hash_id of all its bytes. Two lists of one
 *          name cannot be told apart: among 2^40 lists that happens with a
 *          chance of 2^-49. Who makes it happen on purpose names a wrong list
 *          in requests of their own: a cache belongs to one connection.
 * Units    limit and cost in bytes; a list costs its bytes and
 *          PS_KEY_CACHE_COST, whether the list itself is kept or only its name
 * Owner    The caller. Lists found are held by who found them.
 * Threads  Confined to one thread; what was found may go to others.
 */
#ifndef PS_WIRE_KEYS_CACHE_H
#define PS_WIRE_KEYS_CACHE_H

#include "base/slice.h"

typedef struct ps_key_cache ps_key_cache_t;

#define PS_KEY_CACHE_COST 256 /* of an entry beside its list */
/* What a client counts on, and what a node keeps unless told otherwise: when it
 * keeps less they forget out of step. */
#define PS_KEY_CACHE_BYTES ((size_t)16 << 20)

/* An empty cache. limit_bytes 0 keeps nothing. NULL when there is no memory. */
PSD_MUST_CHECK ps_key_cache_t *ps_key_cache_new(size_t limit_bytes);
/* Takes NULL, nulls *self_p. */
void ps_key_cache_destroy(ps_key_cache_t **self_p);

/* Receiver: keeps a copy of the list and drops others until it fits; one that
 * is larger than the limit is not kept. A list of that name is replaced.
 * Errors: PSD_NOMEM, nothing changed. */
PSD_MUST_CHECK psd_status_t ps_key_cache_put(ps_key_cache_t *self, const ps_id_t *hash,
                                             ps_bytes_t keys);
/* Receiver: a payload whose keys are the list, held for the caller, who
 * destroys it; the list is then the one used last. NULL: not known, or not of
 * n_keys keys. */
PSD_MUST_CHECK ps_payload_t *ps_key_cache_find(ps_key_cache_t *self, const ps_id_t *hash,
                                               uint64_t n_keys);

/* Sender: notes that a list of so many bytes is being sent. As put, without the
 * list. */
PSD_MUST_CHECK psd_status_t ps_key_cache_note(ps_key_cache_t *self, const ps_id_t *hash,
                                              size_t size);
/* Sender: whether the receiver should know the list; it is then the one used
 * last. */
bool ps_key_cache_knows(ps_key_cache_t *self, const ps_id_t *hash, size_t size);

/* A payload of the list's keys and the body's index and values, where they lie
 * now; it holds both. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_key_list_put(ps_payload_t *body, ps_payload_t *list);

/* Forgets one list; nothing happens when it is not known. */
void ps_key_cache_drop(ps_key_cache_t *self, const ps_id_t *hash);
/* Forgets all: the connection is a new one. */
void ps_key_cache_clear(ps_key_cache_t *self);
/* What is kept costs. */
size_t ps_key_cache_bytes(const ps_key_cache_t *self);
#endif
