/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_links - connections between shards that hold copies
 *
 * What     Connections that this shard has opened to send records, and those
 *          that other shards opened with an accepted PEER. Answers use the
 *          connection of the message.
 * Units    ms
 * Owner    The shard. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_LINKS_H
#define PS_PROTOCOL_LINKS_H

#include "base/map.h"
#include "protocol/facts/copies.h"

/* Connections that the core opens have numbers from here on; those that a
 * shell gives out are below. */
#define PS_LINK_CONN (UINT64_C(1) << 62)
#define PS_LINKS_IN_MAX 1024

/* The shard at the other end. */
typedef struct ps_shard_name {
    uint64_t incarnation; /* of its node */
    uint32_t shard;
} ps_shard_name_t;

static inline bool ps_shard_name_equal(ps_shard_name_t a, ps_shard_name_t b)
{
    return a.incarnation == b.incarnation && a.shard == b.shard;
}

typedef struct ps_shard_link {
    ps_copy_t to;      /* name and endpoint; its state is ignored */
    uint64_t conn;     /* PS_LINK_CONN and up; 0: not opened */
    bool welcome;      /* PEER was answered */
    bool used;         /* a partition sends on it */
    uint64_t say_ms;   /* when to send PEER (again) */
    uint64_t open_ms;  /* not opened before this time */
    uint32_t pause_ms; /* the last pause before opening; 0: it was answered since */
} ps_shard_link_t;

typedef struct ps_shard_links {
    ps_shard_link_t *out; /* owned */
    size_t n_out;
    size_t capacity;
    uint64_t n_opened; /* conns ever */
    ps_map_t in;       /* conn -> ps_shard_name_t, owned */
} ps_shard_links_t;

void ps_shard_links_done(ps_shard_links_t *self);
/* The link to that shard, created if missing; NULL: no memory. Borrowed until
 * the next call. */
ps_shard_link_t *ps_shard_links_to(ps_shard_links_t *self, const ps_copy_t *to);
/* NULL: there is none. */
ps_shard_link_t *ps_shard_links_find(const ps_shard_links_t *self, ps_shard_name_t name);
ps_shard_link_t *ps_shard_links_of_conn(const ps_shard_links_t *self, uint64_t conn);
/* Removes the link at `at`. */
void ps_shard_links_remove(ps_shard_links_t *self, size_t at);
/* A number for a new connection. */
uint64_t ps_shard_links_new_conn(ps_shard_links_t *self);
/* Accepts a PEER: earlier connections of that shard no longer count.
 * Errors: PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_shard_links_accept(ps_shard_links_t *self, uint64_t conn,
                                                  ps_shard_name_t from, psd_error_t *err);
/* The shard at the other end of an accepted connection; NULL: it was not
 * accepted. */
const ps_shard_name_t *ps_shard_links_from(const ps_shard_links_t *self, uint64_t conn);
/* A connection of either kind is gone. Reopening one that never gets an answer
 * backs off. */
void ps_shard_links_gone(ps_shard_links_t *self, uint64_t conn, uint64_t now_ms);
#endif
