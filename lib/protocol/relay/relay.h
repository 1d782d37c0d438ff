/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/relay: deltas on their way through other workers
 *
 * It is       The machine of one relay, the sums that it makes, and the side of an origin, which
 *             keeps what it has lent until the server itself has acknowledged it.
 * It uses     overlay (the shape of a plan), lib/model (sums), lib/wire (contributors), lib/base.
 * It ignores  Connections, clocks that gates keep, rows in memory, and who makes the plan.
 * Start at    relay.h, then relay_sum.h for what is added, lent.h for an origin.
 */
/*
 * ps_relay - holds what others bring, adds it up, passes it on
 *
 * What     A relay takes lots from the clients of its own worker and from other relays, one lot
 *          for each partition and clock, adds them as relay_sum.h allows, and sends the result to
 *          the relay that the plan names, or to the nodes.
 *          It sends when everything that the plan leads through it is there; else when it has
 *          waited as long as the transfer itself is predicted to take, so that waiting at most
 *          doubles a clock (where nobody has measured that: PS_RELAY_GUESS), and hold_ms at least;
 *          hold_ms after an urgent lot came; when memory is short; when it leaves. What comes
 *          later follows by itself. What cannot be added (relay_sum.h), or is too large as one
 *          bundle, goes to the nodes, each lot alone.
 *          Who was waited for in vain is not waited for at that partition in the clocks that
 *          follow, until it has come in one to nine of them.
 *          Where no clock holds lots together (SSP, ASP) it sends hold_timed_ms after the first
 *          of them came; where somebody is missing who was in the last bundle, as long after it as
 *          the transfer is predicted to take; and not while another bundle of that partition is on
 *          its way to the next relay or the nodes, unless memory is short: what comes meanwhile is
 *          added up.
 * Duty     None that anybody relies on. Each origin keeps its delta until the server's own
 *          acknowledgement (lent.h), and the server's windows take each seq once. So a relay may
 *          give anything back, or die.
 * News     Of each bundle that it sent, a relay hears: TAKEN, WAITS (a sign of life), DONE (the
 *          server has it), or RETURNED. It says the same to those that gave it something: WAITS
 *          every 250 ms, naming the worker that it waits for, then DONE or RETURNED, once.
 *          Who has a bundle is silent when it has said nothing of it for patience_ms and as long
 *          as it may travel (PS_RELAY_SLOWEST). Bundles go one after the other: a word of another
 *          one counts too, but no longer than all that was ahead may travel.
 *          A relay that refuses, dies or is silent before TAKEN costs nothing: the bundle goes
 *          to the nodes. Later, or when the nodes refuse it or are silent, all goes back to
 *          those that gave it; a sum cannot be taken apart.
 * Loops    A lot that names this relay's own worker is refused, and so is a client whose deltas
 *          of that partition are here already: what goes round in a circle meets itself.
 * Memory   Lots and sums count, up to limit_bytes; what would be more is refused with BUSY. While
 *          a sum is made it and its parts are both there. Records of what was passed on count
 *          too, without their deltas once the next relay has taken them. Beside that up to
 *          10 MB: what it remembers of clocks that have passed.
 * Time     now_ms of any clock that does not go back; given with each call.
 * Owner    The caller; ps_relay_destroy.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_RELAY_H
#define PS_PROTOCOL_RELAY_H

#include "protocol/relay/relay_sum.h"

#define PS_RELAY_SAY_MS 250 /* between two WAITS */
/* Bytes of a second of patience beside settings.patience_ms: a bundle may travel as slowly. */
#define PS_RELAY_SLOWEST (UINT64_C(512) << 10)
/* Where nobody has measured the network: bytes of a second (100 Mbit/s) at which a plan's workers
 * would send directly what each brings in a clock. Nothing is held for longer than that takes, nor
 * for longer than PS_RELAY_WAIT_MOST_MS. */
#define PS_RELAY_GUESS UINT64_C(12500000)
#define PS_RELAY_WAIT_MOST_MS 5000

typedef struct ps_relay_settings {
    uint32_t worker;        /* this relay's position; PS_RELAY_NOBODY: a gateway */
    uint64_t hold_ms;       /* at least, for what else may come … */
    uint64_t hold_timed_ms; /* … where no clock says what that is; 0: as hold_ms */
    uint64_t patience_ms;   /* without a sign of life of who has a bundle; also the longest wait
                               where somebody has measured the network */
    uint64_t limit_bytes;   /* of all that is held */
    uint64_t numbers_after; /* numbers of bundles come after this one: those of another life of the
                               worker, of which another relay may still have some, are others */
} ps_relay_settings_t;

/* What lots have in common that may become one. */
typedef struct ps_relay_key {
    uint32_t table;
    uint32_t partition;
    uint64_t clock; /* that the workers have finished; lots of other clocks are never added */
    uint32_t colour;
    bool is_timed;  /* no clock holds them together (SSP, ASP), so it is 0 here */
    bool any_order; /* of sums; see relay_sum.h */
    ps_type_t type;
    uint32_t first_col; /* of the partition … */
    uint32_t width;     /* … and its number of columns */
} ps_relay_key_t;

/* Who gives, and under which name it wants to hear of it. */
typedef struct ps_relay_giver {
    uint32_t worker;  /* a position; this relay's own: one of its clients */
    uint64_t request; /* the giver's own number; the same one again is the same lot */
    uint64_t plan;    /* the version that it goes by */
    bool is_urgent;   /* a caller waits for it within its clock */
} ps_relay_giver_t;

typedef enum ps_relay_news {
    PS_RELAY_TAKEN = 1,
    PS_RELAY_WAITS = 2,
    PS_RELAY_DONE = 3,
    PS_RELAY_RETURNED = 4 /* or refused, or split */
} ps_relay_news_t;

typedef enum ps_relay_deed_kind {
    PS_RELAY_SEND = 1, /* a bundle to a relay or to the nodes */
    PS_RELAY_TELL = 2  /* news to a giver */
} ps_relay_deed_kind_t;

typedef struct ps_relay_deed {
    ps_relay_deed_kind_t kind;
    uint32_t to;        /* position; SEND: or PS_OVERLAY_NODES */
    ps_relay_key_t key; /* of what it is about */
    uint64_t number;    /* SEND: of the bundle, for ps_relay_heard; TELL: the giver's request */
    uint64_t plan;      /* SEND */
    const ps_relay_lot_t *lot; /* SEND: borrowed until the next call */
    ps_relay_news_t news;      /* TELL */
    uint32_t waits_for;        /* WAITS: a position; PS_OVERLAY_NODES; PS_RELAY_NOBODY */
    const char *reason;        /* RETURNED: why; a literal */
} ps_relay_deed_t;

/* One thing that is here, for who asks. */
typedef struct ps_relay_view {
    ps_relay_key_t key;
    uint32_t n_lots;
    uint64_t bytes;
    uint64_t since_ms; /* when the first of it came, or when it was sent */
    uint32_t to; /* who has it: a position, or PS_OVERLAY_NODES; PS_RELAY_NOBODY: it is held */
    uint32_t waits_for; /* as in a deed */
} ps_relay_view_t;

typedef struct ps_relay ps_relay_t;

/* Errors: PSD_INVALID a time or a limit of 0; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_new(const ps_relay_settings_t *settings,
                                         ps_relay_t **ret_relay, psd_error_t *err);
void ps_relay_destroy(ps_relay_t **self_p);

/* A newer plan; the one before it stays good for clocks before it, and for givers that do not
 * know the new one. An older or equal version changes nothing. Errors as ps_relay_tree_make; the
 * relay is unchanged then. */
PSD_MUST_CHECK psd_status_t ps_relay_take_plan(ps_relay_t *self, const ps_relay_plan_t *plan,
                                               psd_error_t *err);

/*
 * Gives the relay a lot; it copies the lists and holds the payloads. The parts of the slices
 * have been checked against their lengths (wire), nothing else has.
 *
 * Errors: PSD_BUSY no plan, no room, or it is leaving: give it to the nodes. PSD_INVALID a lot
 * that can go nowhere: an unknown plan, a loop, a client twice, no contributor, positions that do
 * not exist, spans that meet. PSD_TYPE, PSD_RANGE, PSD_SHAPE values that are not the partition's.
 * PSD_LIMIT larger than all of its memory. PSD_NOMEM. Nothing is held then.
 */
PSD_MUST_CHECK psd_status_t ps_relay_give(ps_relay_t *self, uint64_t now_ms,
                                          const ps_relay_giver_t *giver, const ps_relay_key_t *key,
                                          const ps_relay_lot_t *lot, psd_error_t *err);
/* News of bundle `number` from who has it, a position or PS_OVERLAY_NODES. Others' are ignored. */
void ps_relay_heard(ps_relay_t *self, uint64_t now_ms, uint32_t from, uint64_t number,
                    ps_relay_news_t news);
/* The connection to that relay is gone. */
void ps_relay_lost(ps_relay_t *self, uint64_t now_ms, uint32_t worker);
/* That worker is lost or has left: nothing is waited for of it. */
void ps_relay_without(ps_relay_t *self, uint64_t now_ms, uint32_t worker);
/* The nodes take bundles of at most that many bytes; 0: it is not known. */
void ps_relay_set_most(ps_relay_t *self, uint64_t bytes);
/* Its worker has pushed that many bytes in a clock; counts until deltas of two clocks came here. */
void ps_relay_set_own(ps_relay_t *self, uint64_t bytes);
/* Takes nothing more, and passes on what it has. */
void ps_relay_leave(ps_relay_t *self, uint64_t now_ms);
/* True when nothing is held, and nothing is under way. */
bool ps_relay_is_empty(const ps_relay_t *self);
uint64_t ps_relay_bytes(const ps_relay_t *self);

/* Time has passed. */
void ps_relay_tick(ps_relay_t *self, uint64_t now_ms);
/* When it wants to be told; UINT64_MAX: never. */
uint64_t ps_relay_due(const ps_relay_t *self);
/* The next deed; false: there is none. To be called until there is none after each call. */
bool ps_relay_next(ps_relay_t *self, ps_relay_deed_t *ret_deed);
/* Up to `most` things that are here; returns how many there are. */
size_t ps_relay_look(const ps_relay_t *self, ps_relay_view_t *ret_views, size_t most);
/* "held 40 ms, waits for worker 3", "with worker 2 for 300 ms". */
void ps_relay_view_text(const ps_relay_view_t *view, uint64_t now_ms, char *ret_text, size_t size);
#endif
