/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a relay, and what its files share. Private to this room.
 *
 * relay_lots.c sees what is held and what it waits for, relay_send.c adds and sends and hears
 * what becomes of it, relay.c takes lots in and has the time, the deeds and the views.
 */
#ifndef PS_PROTOCOL_RELAY_STATE_H
#define PS_PROTOCOL_RELAY_STATE_H

#include "base/map.h"
#include "protocol/relay/relay.h"

#define PS_RELAY_WORDS (PS_COMBINE_POSITIONS / 64)
#define PS_RELAY_GROUPS_MAX 8192 /* partitions times clocks that are remembered */

typedef struct lot lot_t;
typedef struct bundle bundle_t;
typedef struct group group_t;
typedef struct place place_t;

typedef struct lots {
    lot_t *first;
    lot_t *last;
    size_t n;
} lots_t;

/* What was given at once. It ends when its giver was told. */
struct lot {
    lot_t *next;      /* of those that are held, or in one bundle */
    lot_t *next_news; /* of those that are to be told */
    lot_t *next_here; /* of the place's */
    place_t *place;
    group_t *group;   /* while it is held */
    bundle_t *bundle; /* while it is under way */
    ps_relay_key_t key;
    ps_relay_giver_t giver;
    ps_relay_lot_t goods; /* its spans are gone once it is under way */
    uint64_t bytes;
    uint64_t came_ms;
    ps_relay_news_t news; /* to tell; 0: none */
    const char *reason;
};

/* What was sent, until its end is known. */
struct bundle {
    bundle_t *next;
    uint64_t number;
    uint64_t plan;
    uint32_t to;
    ps_relay_key_t key;
    ps_relay_lot_t goods; /* its spans are gone once another relay has taken it */
    lots_t lots;
    uint64_t bytes;
    uint64_t sent_ms;
    uint64_t ahead;    /* bytes on their way to there when it was sent, its own too */
    uint64_t heard_ms; /* the last sign of it from who has it … */
    uint64_t other_ms; /* … and of others that went there, until it was taken */
    bool is_unsent;
    bool is_taken;
};

/* One clock at one partition. */
struct group {
    group_t *next; /* of the place's */
    place_t *place;
    ps_relay_key_t key;
    lots_t held;
    size_t n_from;
    size_t n_spans;
    uint64_t bytes;
    uint64_t first_ms;
    uint64_t urgent_ms;              /* UINT64_MAX: nothing is */
    bool has_waited;                 /* and those that were missing then are noted */
    uint64_t went[PS_RELAY_WORDS];   /* positions of which something has gone on (where no clock
                                      * holds it together: in the last bundle) */
    uint64_t passed[PS_RELAY_WORDS]; /* … and all of it */
};

/* A client's deltas that are here: the highest seq, and in how many lots. */
typedef struct client {
    uint64_t last_seq;
    size_t n_lots;
} client_t;

#define PS_RELAY_DEBT 8       /* who owes that much is not waited for … */
#define PS_RELAY_DEBT_MOST 16 /* … and owes no more than this */

/* One partition. */
struct place {
    ps_map_t clients; /* session -> client_t, owned */
    group_t *groups;  /* owned */
    lot_t *lots;      /* owned */
    /* What workers owe, by number in plan `debts_plan`: PS_RELAY_DEBT for each clock in which they
     * were waited for in vain, less 1 for each one in which they came. */
    uint64_t debts_plan;
    uint8_t debts[PS_OVERLAY_WORKERS_MAX];
};

struct ps_relay {
    ps_relay_settings_t settings;
    ps_relay_tree_t tree;   /* of the newest plan; version 0: none */
    ps_relay_tree_t before; /* of the one before it */
    ps_map_t places;        /* table and partition -> place_t, owned */
    size_t n_groups;
    bundle_t *bundles; /* owned, ascending by number */
    bundle_t *last_bundle;
    size_t n_unsent;
    uint64_t n_bundles; /* the number of the last one */
    lot_t *news;        /* to be told, in order */
    lot_t *last_news;
    size_t n_lots;
    uint64_t bytes;
    uint64_t most_bytes; /* of a bundle; 0: it is not known */
    uint64_t said_ms;
    uint64_t own_clock;            /* the newest of its worker's … */
    uint64_t own_bytes;            /* … what came of it so far … */
    uint64_t own_before;           /* … and of the one before it */
    uint64_t gone[PS_RELAY_WORDS]; /* positions that nobody waits for */
    bool is_leaving;
};

static inline bool ps_relay_has_bit(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

static inline void ps_relay_set_bit(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline uint64_t ps_relay_add_ms(uint64_t at_ms, uint64_t ms)
{
    return at_ms > UINT64_MAX - ms ? UINT64_MAX : at_ms + ms;
}

/* ---- relay_lots.c ---- */

void ps_relay_append(lots_t *lots, lot_t *lot);
void ps_relay_drop_spans(ps_relay_lot_t *goods);
/* What a lot with these goods counts, with the records of its clients. */
uint64_t ps_relay_cost(const ps_relay_lot_t *goods);
void ps_relay_forget_client(place_t *place, uint64_t session);
/* Drops a lot that has told its end, or will not; it is in no list but its place's. */
void ps_relay_lot_end(ps_relay_t *self, lot_t *lot);
/* News for its giver; WAITS is replaced by what ends it. */
void ps_relay_tell(ps_relay_t *self, lot_t *lot, ps_relay_news_t news, const char *reason);
/* The end of them all; the list is empty then. */
void ps_relay_end_lots(ps_relay_t *self, lots_t *lots, ps_relay_news_t news, const char *reason);
/* NULL: the relay does not know it. */
const ps_relay_tree_t *ps_relay_tree_of_version(const ps_relay_t *self, uint64_t version);
/* The plan by which deltas of that clock go. */
const ps_relay_tree_t *ps_relay_tree_of_clock(const ps_relay_t *self, const ps_relay_key_t *key);
/* Of each worker of the plan, by number: the clients that have marked, of those that are held. */
void ps_relay_count_marks(const ps_relay_tree_t *tree, const group_t *group,
                          uint32_t marks[PS_OVERLAY_WORKERS_MAX]);
/* Part of what a group waited for is about to go: who came, and who was waited for in vain. */
void ps_relay_note_debts(ps_relay_t *self, uint64_t now_ms, group_t *group,
                         const uint32_t marks[PS_OVERLAY_WORKERS_MAX]);
/* The first worker below that is waited for and not in; PS_RELAY_NOBODY: there is none. */
uint32_t ps_relay_missing(const ps_relay_t *self, const group_t *group);
/* When a group that holds something waits no longer. */
uint64_t ps_relay_group_due(const ps_relay_t *self, const group_t *group);
bool ps_relay_is_ready(const ps_relay_t *self, uint64_t now_ms, const group_t *group);

/* ---- relay_send.c ---- */

/* Sends what a group holds. */
void ps_relay_flush(ps_relay_t *self, uint64_t now_ms, group_t *group);
void ps_relay_flush_ready(ps_relay_t *self, uint64_t now_ms);
void ps_relay_flush_largest(ps_relay_t *self, uint64_t now_ms);
void ps_relay_drop_bundle(ps_relay_t *self, bundle_t *bundle);
/* Who has the bundle does not bring it. */
void ps_relay_fail(ps_relay_t *self, uint64_t now_ms, bundle_t *bundle, const char *reason);
#endif
