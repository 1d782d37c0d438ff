/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sizes - sizes of this node's primary partitions, sent with the beats
 *
 * What     Asks the shards now and then. The next beat carries up to
 *          PS_SIZES_MAX sizes that differ from the last ones sent, later beats
 *          the others. Small differences wait.
 * Shape    in a beat: "sizes":[table,partition,bytes,…]
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_DAEMON_SIZES_H
#define PS_DAEMON_SIZES_H

#include "base/map.h"
#include "daemon/shards/shards.h"
#include "protocol/registry/registry.h"
#include "wire/messages/doc.h"

#define PS_SIZES_MAX 128 /* in one beat */
#define PS_SIZES_EVERY_MS 1000
#define PS_SIZES_SETTLE_MS 10000 /* delay of a small difference */

typedef struct ps_sizes {
    ps_map_t by_partition; /* owned; with what it points at */
    uint64_t looked;       /* how often the shards have answered */
    size_t next;           /* where the next beat goes on */
} ps_sizes_t;

void ps_sizes_done(ps_sizes_t *self);
/* Takes the shards' answers to SIZES and forgets partitions that are not in
 * them. What finds no memory goes later. */
void ps_sizes_learn(ps_sizes_t *self, const ps_answers_t *answers);
/* Forgets what was sent: the registry is another one, or has restarted. */
void ps_sizes_forget(ps_sizes_t *self);
/* Adds "sizes" to a beat when some are due, and counts them as sent. false:
 * no memory. */
PSD_MUST_CHECK bool ps_sizes_tell(ps_sizes_t *self, uint64_t now_ms, ps_doc_t *doc);

/* ---- the registry's side ---- */

/* Reads "sizes" of a beat of that node. Errors: PSD_PROTO, PSD_INVALID; some of
 * them may have been taken. */
PSD_MUST_CHECK psd_status_t ps_sizes_from_doc(const ps_doc_t *doc, uint64_t incarnation,
                                              ps_registry_t *registry, psd_error_t *err);
/* The answers of the shards on the registry's own node. */
void ps_sizes_learn_here(ps_registry_t *registry, uint64_t incarnation,
                         const ps_answers_t *answers);
#endif
