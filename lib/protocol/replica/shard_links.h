/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_links - connections between shards that hold copies
 *
 * What     Those that this shard has opened, to send records by, and those
 *          that other shards have opened to it, by a PEER that was accepted.
 *          Answers go back by the connection that a message came by.
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

/* Who is at the other end. */
typedef struct ps_shard_name {
    uint64_t incarnation; /* of its node */
    uint32_t shard;
} ps_shard_name_t;

static inline bool ps_shard_name_equal(ps_shard_name_t a, ps_shard_name_t b)
{
    return a.incarnation == b.incarnation && a.shard == b.shard;
}

typedef struct ps_shard_link {
    ps_copy_t to;      /* name and endpoint; its state does not count */
    uint64_t conn;     /* PS_LINK_CONN and up; 0: not opened */
    bool welcome;      /* it has answered PEER */
    bool used;         /* a partition sends by it */
    uint64_t say_ms;   /* when to say PEER (again) */
    uint64_t open_ms;  /* not opened before */
    uint32_t pause_ms; /* that it waited for that; 0: it was answered since */
} ps_shard_link_t;

typedef struct ps_shard_links {
    ps_shard_link_t *out; /* owned */
    size_t n_out;
    size_t capacity;
    uint64_t n_opened; /* conns ever */
    ps_map_t in;       /* conn -> ps_shard_name_t, owned */
} ps_shard_links_t;

void ps_shard_links_done(ps_shard_links_t *self);
/* The link to that shard, made when there is none; NULL: no memory. Borrowed
 * until the next call. */
ps_shard_link_t *ps_shard_links_to(ps_shard_links_t *self, const ps_copy_t *to);
/* NULL: there is none. */
ps_shard_link_t *ps_shard_links_find(const ps_shard_links_t *self, ps_shard_name_t name);
ps_shard_link_t *ps_shard_links_of_conn(const ps_shard_links_t *self, uint64_t conn);
/* Takes out the link at `at`. */
void ps_shard_links_remove(ps_shard_links_t *self, size_t at);
/* A number for a new connection. */
uint64_t ps_shard_links_new_conn(ps_shard_links_t *self);
/* A PEER was accepted: earlier connections of that shard count no more.
 * Errors: PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_shard_links_accept(ps_shard_links_t *self, uint64_t conn,
                                                  ps_shard_name_t from, psd_error_t *err);
/* Who speaks on a connection that was accepted; NULL: it was not. */
const ps_shard_name_t *ps_shard_links_from(const ps_shard_links_t *self, uint64_t conn);
/* The connection is gone, one of either kind. One that was opened, and goes
 * again and again without an answer, is opened later each time. */
void ps_shard_links_gone(ps_shard_links_t *self, uint64_t conn, uint64_t now_ms);
#endif
