/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_desk - where a worker's client, its heartbeat and its relay's thread hand things over
 *
 * What     The client lends deltas and says where tables are, the heartbeat brings plans; the
 *          relay takes all of it, and says what became of what was lent. Rows go both ways: the
 *          client's go on to other workers, and it gets those of others. What each side has
 *          measured of its transfers is added up here for the heartbeat. Each side has a
 *          descriptor that is readable when there is something for it.
 * Owner    Counted.
 * Threads  any; a lock is held for some instructions only, and no call waits.
 */
#ifndef PS_CLIENT_DESK_H
#define PS_CLIENT_DESK_H

#include <sys/queue.h>

#include "model/tables/table.h"
#include "protocol/relay/relay.h"
#include "protocol/relay/relay_doc.h"
#include "protocol/relay/relay_down.h"
#include "protocol/relay/report.h"

/* News that a client has not heard yet; signs of life beyond that are dropped, ends are not. */
#define PS_DESK_SIGNS_MAX 4096

typedef struct ps_desk ps_desk_t;

/* One push or mark. */
typedef struct ps_desk_lot {
    STAILQ_ENTRY(ps_desk_lot) in_list;
    uint64_t request; /* the client's own number */
    uint32_t table;
    uint32_t partition;
    uint64_t clock;
    ps_bundle_from_t from;
    bool has_rows;
    ps_slice_t slice;
    ps_payload_t *payload; /* owned */
} ps_desk_lot_t;
STAILQ_HEAD(ps_desk_lots, ps_desk_lot);

/* A table of the job, whose clocks are added up, or whose pushes are. */
typedef struct ps_desk_table {
    STAILQ_ENTRY(ps_desk_table) in_list;
    uint32_t id;
    ps_type_t type;
    uint32_t width;
    bool is_timed; /* pushes: of any clock, in any order */
    char name[PS_NAME_MAX + 1];
    uint32_t n_routes;
    ps_route_t *routes; /* owned; one for each partition */
} ps_desk_table_t;
STAILQ_HEAD(ps_desk_tables, ps_desk_table);

/* Rows of a partition, or a question for them. */
typedef struct ps_desk_rows {
    STAILQ_ENTRY(ps_desk_rows) in_list;
    uint64_t request; /* the client's own number of a question; 0: rows that it has got, … */
    bool begins;      /* … or pulls now */
    ps_down_key_t key;
    uint32_t wait_ms;      /* of a question */
    ps_payload_t *payload; /* owned; NULL: a question, or nobody is below this worker; to the
                              client: they are not to be had */
} ps_desk_rows_t;
STAILQ_HEAD(ps_desk_rows_list, ps_desk_rows);

typedef struct ps_desk_news {
    uint64_t request;
    ps_relay_news_t news;
} ps_desk_news_t;

/* Errors: PSD_NOMEM; PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_desk_new(const char *relay, ps_desk_t **ret_desk, psd_error_t *err);
ps_desk_t *ps_desk_keep(ps_desk_t *self);
/* Takes NULL, nulls *self_p. */
void ps_desk_release(ps_desk_t **self_p);

/* Where the relay listens. */
const char *ps_desk_relay(const ps_desk_t *self);
/* The version of the plan that the relay goes by; 0: there is none, or no relay any more. */
uint64_t ps_desk_plan(const ps_desk_t *self);
/* The newest plan that was put here. */
uint64_t ps_desk_newest(const ps_desk_t *self);

/* Each takes what it is given. */
void ps_desk_put_lot(ps_desk_t *self, ps_desk_lot_t *lot);
void ps_desk_put_table(ps_desk_t *self, ps_desk_table_t *table);
void ps_desk_put_plan(ps_desk_t *self, ps_relay_facts_t *facts);
void ps_desk_put_rows(ps_desk_t *self, ps_desk_rows_t *rows);
/* Whether the rows of that partition come from another worker, and go on to another one. */
bool ps_desk_rows_come(const ps_desk_t *self, uint32_t table, uint32_t partition);
bool ps_desk_rows_go(const ps_desk_t *self, uint32_t table, uint32_t partition);
/* Whether rows of any partition go from worker to worker, in that plan. */
bool ps_desk_shares_rows(const ps_desk_t *self);
/* Answers to questions for rows; the caller's. */
void ps_desk_hear_rows(ps_desk_t *self, struct ps_desk_rows_list *ret_rows);
/* The relay is to pass on what it has, within wait_ms, and end. */
void ps_desk_leave(ps_desk_t *self, uint32_t wait_ms);
/* What became of what was lent, oldest first; returns how many, at most `most`. */
size_t ps_desk_hear(ps_desk_t *self, ps_desk_news_t *ret_news, size_t most);
int ps_desk_client_fd(const ps_desk_t *self);

/* ---- what was measured ---- */

/* What the worker asks for, where it is, and to whom it may send. To be called before any other
 * thread knows the desk; until then it asks for a tree. */
void ps_desk_set_rules(ps_desk_t *self, const ps_overlay_rules_t *rules, const ps_site_t *site,
                       const ps_may_t *may);
/* The client pushes `bytes` of deltas that could be added up, by whatever way. */
void ps_desk_pushed(ps_desk_t *self, uint64_t bytes);
/* The client has finished `clock` clocks. */
void ps_desk_clock(ps_desk_t *self, uint64_t clock, uint64_t now_us);
/* The client sends a push or mark to the nodes itself, for the first time. */
void ps_desk_went_directly(ps_desk_t *self);
/* Who got a bundle of the relay has taken it, or not. */
void ps_desk_bundle_ended(ps_desk_t *self, bool is_taken);
/* What it pushed in each of the clocks that it has finished, on average; 0: in none yet. */
uint64_t ps_desk_clock_bytes(ps_desk_t *self);
/* A transfer to a worker, or to PS_OVERLAY_NODES, has ended well. */
void ps_desk_moved(ps_desk_t *self, uint32_t to, uint64_t bytes, uint64_t start_us,
                   uint64_t end_us);
/* Takes out what was measured since the last report. */
void ps_desk_report(ps_desk_t *self, uint64_t now_us, ps_overlay_report_t *ret_report);

/* ---- the relay's side ---- */

/* All that was put here; the caller's. ret_facts: version 0: no new one. */
void ps_desk_take(ps_desk_t *self, struct ps_desk_lots *ret_lots, struct ps_desk_tables *ret_tables,
                  ps_relay_facts_t *ret_facts);
void ps_desk_take_rows(ps_desk_t *self, struct ps_desk_rows_list *ret_rows);
/* An answer for the client. Takes it. */
void ps_desk_give_rows(ps_desk_t *self, ps_desk_rows_t *rows);
void ps_desk_rows_free(ps_desk_rows_t **rows_p);
/* For which colours rows come from another worker, and go on: a bit for each. */
void ps_desk_set_rows(ps_desk_t *self, uint32_t n_colours, uint32_t come, uint32_t go);
void ps_desk_lot_free(ps_desk_lot_t **lot_p);
void ps_desk_table_free(ps_desk_table_t **table_p);
/* The plan is in use; 0: the relay takes nothing any more. */
void ps_desk_set_plan(ps_desk_t *self, uint64_t version);
void ps_desk_tell(ps_desk_t *self, uint64_t request, ps_relay_news_t news);
/* True when it is to leave. */
bool ps_desk_is_left(const ps_desk_t *self, uint32_t *ret_wait_ms);
int ps_desk_relay_fd(const ps_desk_t *self);
/* The descriptor was readable. */
void ps_desk_look(const ps_desk_t *self);
#endif
