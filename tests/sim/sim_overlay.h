/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_overlay - workers with relays, in one thread, from one seed
 *
 * What     The relays of a job's workers (protocol/relay), the sessions of the workers and of their
 *          relays, and the shards that they push to, joined by a network that loses, repeats,
 *          delays, reorders and changes messages, and mutes connections one way. Plans change
 *          while deltas are on their way, by some of the workers' knowledge; relays stand still,
 *          forget everything or end at the worst moment; shards fail over, partitions move, workers
 *          are lost and come again. What libpsd does around these machines (client/relay,
 *          client/requests/lend.c, by_peer.c) is a model here, by the same rules.
 *          Checked: each delta counts once (each is a bit of its own in an i64); seqs are taken in
 *          order; pulls see what C1, C2 and C3 promise; the bits are those of a run without relays;
 *          nothing of a lost worker is taken after the shard knows; nothing goes in a circle;
 *          relays wait no longer than they say, name for whom, and are empty in the end; all ends.
 * Shape    sim_overlay_plan.c     what the two seeds decide
 *          sim_overlay_net.c      time, packets, connections
 *          sim_overlay_node.c     shards, their log, the job
 *          sim_overlay_worker.c   a worker's session, and the script that it follows
 *          sim_overlay_lend.c     which pushes its relay gets
 *          sim_overlay_rows.c     pulls whose rows come from another worker
 *          sim_overlay_relay.c    a relay, and what comes to it
 *          sim_overlay_ways.c     its connections to other relays
 *          sim_overlay_courier.c  its session with the nodes
 *          sim_overlay_tree.c     plans
 *          sim_overlay_fault.c    what goes wrong
 *          sim_overlay_check.c    promises
 *          sim_overlay_run.c      the loop; sim_overlay_search.c many seeds
 * Units    virtual ms
 */
#ifndef PS_TESTS_SIM_OVERLAY_H
#define PS_TESTS_SIM_OVERLAY_H

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "model/tables/partition.h"
#include "protocol/relay/relay_down.h"
#include "protocol/relay/relay_message.h"
#include "protocol/session/session.h"
#include "protocol/shard/shard.h"

#define OVERLAY_RANKS_MAX 8
#define OVERLAY_LIVES_MAX 10 /* of workers, with those that come again, and the reader */
#define OVERLAY_SHARDS_MAX 2
#define OVERLAY_PARTITIONS_MAX 3
#define OVERLAY_ROWS_MAX 8 /* of a partition */
#define OVERLAY_COLOURS_MAX 3
#define OVERLAY_LINKS_MAX 8 /* of one session */
#define OVERLAY_TABLE 7     /* numbers of the one table and the one job */
#define OVERLAY_JOB 3
#define OVERLAY_INCARNATION 77
#define OVERLAY_CHUNK_BYTES 4096

/* What the workload's seed decides. */
typedef struct overlay_plan {
    ps_table_spec_t spec;
    uint32_t
        first_row[OVERLAY_PARTITIONS_MAX + 1]; /* partition p has first_row[p] up to the next */
    uint32_t n_shards;
    uint32_t n_ranks;
    uint32_t ranks[OVERLAY_RANKS_MAX]; /* ascending */
    int32_t max_delay;
    uint64_t n_clocks;
    uint32_t n_pushes;  /* of a worker's life, at each partition: bits of a cell */
    uint32_t killed[2]; /* places in ranks of those that are killed; UINT32_MAX: nobody */
    bool again;         /* the first one comes again */
    bool in_step;       /* each worker waits for what it pulls before it works */
    bool is_huge;       /* deltas whose sums may not be finite */
    bool shares_rows;   /* rows go from worker to worker, too */
} overlay_plan_t;

/* What the weather's seed decides; of 1000, where it is a chance. */
typedef struct overlay_weather {
    bool has_relays;
    uint32_t loss;
    uint32_t repeat;
    uint32_t late;   /* a bundle comes seconds later */
    uint32_t turned; /* rows on their way out have a bit turned */
    uint32_t delay_ms;
    uint32_t think_ms;
    uint32_t fault_ms; /* mean time between two faults; 0: none */
    uint32_t crash;    /* a relay forgets all, or stands still, when it takes, sends, or its bundle
                          is taken; or its way breaks when the next relay has taken it */
    uint32_t plan_ms;  /* mean time between two plans; 0: only one, until workers come or go */
    uint32_t ignorant; /* a relay does not hear of a plan */
    uint64_t calm_ms;  /* no faults from here on */
    uint64_t limit_bytes; /* of a relay */
    uint64_t hold_ms;
    uint32_t chunk_bytes;
    uint32_t resend_ms;
} overlay_weather_t;

typedef enum overlay_kind {
    OVERLAY_PUSH = 1,
    OVERLAY_MARK = 2,
    OVERLAY_PULL = 3,
    OVERLAY_DIGEST = 4
} overlay_kind_t;

/* Of requests where no clock holds them together: client/requests/ticket.h. */
typedef enum overlay_way { OVERLAY_NO_WAY = 0, OVERLAY_LENT = 1, OVERLAY_DIRECT = 2 } overlay_way_t;

/* One operation of a session: a line of the ledger. */
typedef struct overlay_op {
    overlay_kind_t kind;
    uint32_t partition;
    uint64_t clock; /* that the worker had finished */
    bool marks;
    uint32_t bit;  /* PUSH */
    uint32_t rows; /* PUSH: a bit for each of the partition's */
    bool is_list;  /* PUSH: these rows by their keys */
    uint32_t n_sends;
    overlay_way_t way;
    bool done;
} overlay_op_t;

/* Requests of a worker to one partition. */
typedef struct overlay_queue {
    overlay_op_t *waiting; /* owned; in order */
    size_t n_waiting;
    size_t capacity;
    uint32_t n_pushed;
    uint64_t marked_seq;
    uint32_t n_lent;
    uint32_t n_direct;
    bool has_ended;
    bool is_unfit;
    uint64_t finished;
    uint32_t n_spared;
    /* of rows that come from another worker */
    bool is_asked;
    uint64_t want; /* the question's number; 0: none */
    bool is_refused;
    bool has_digest;
    ps_id_t digest;
    uint64_t digest_ms; /* when it came … */
    size_t digest_op;   /* … and the operation that asked for it */
    ps_payload_t *rows; /* owned */
    uint32_t n_late;    /* refusals in a row */
    uint64_t direct_until;
} overlay_queue_t;

struct overlay_packet;

typedef struct overlay_link {
    uint64_t conn; /* its present connection */
} overlay_link_t;

/* A session with its connections. */
typedef struct overlay_speaker {
    ps_session_t *session; /* owned; NULL: it has ended */
    overlay_link_t links[OVERLAY_LINKS_MAX];
    size_t n_links;
    uint64_t wake_ms; /* of the tick that is planned; UINT64_MAX: none */
} overlay_speaker_t;

/* A plan, as the registry hands it out. */
typedef struct overlay_tree {
    uint64_t version; /* 0: none */
    uint64_t clock;
    uint32_t n;
    uint32_t n_colours;
    uint32_t ranks[OVERLAY_RANKS_MAX];
    uint32_t joins[OVERLAY_RANKS_MAX];
    uint32_t parents[OVERLAY_COLOURS_MAX * OVERLAY_RANKS_MAX]; /* [n_colours][n] */
    uint64_t rates[OVERLAY_COLOURS_MAX];
} overlay_tree_t;

/* A connection to another relay. */
typedef struct overlay_way_to {
    uint32_t life;   /* which it goes to */
    uint64_t conn;   /* 0: it is not ready */
    uint64_t due_ms; /* not ready: it is tried again then */
    uint64_t owes_ms;
    uint64_t owes_bytes;
} overlay_way_to_t;

typedef struct overlay_under_way {
    uint64_t number;
    uint64_t op;
    uint64_t heard_ms;
} overlay_under_way_t;

#define OVERLAY_UNDER_WAY_MAX 256

typedef struct overlay_relay {
    ps_relay_t *machine;   /* owned; NULL: there is none now */
    ps_relay_down_t *down; /* owned; NULL: rows do not go from worker to worker */
    uint64_t life;         /* grows when it forgets everything */
    overlay_speaker_t courier;
    overlay_under_way_t under_way[OVERLAY_UNDER_WAY_MAX];
    size_t n_under_way;
    overlay_tree_t tree;
    overlay_tree_t before;
    overlay_way_to_t ways[OVERLAY_LIVES_MAX];
    size_t n_ways;
    uint64_t callers[OVERLAY_LIVES_MAX]; /* the connection of each; 0: none */
    uint64_t wake_ms;
    uint64_t still_ms; /* it stands still until then */
    uint64_t leave_ms; /* since when it leaves; 0: it does not */
    uint32_t n_due;    /* turns in a row after which something was still due */
    bool is_doomed;    /* it forgets everything after this turn */
} overlay_relay_t;

/* Of a worker's clock: it pulls, waits for that, pushes and marks, and waits again; both waits now
 * and then. */
typedef enum overlay_stage {
    OVERLAY_BEGINS = 0,
    OVERLAY_WAITS = 1,
    OVERLAY_WORKS = 2,
    OVERLAY_ENDS = 3
} overlay_stage_t;

/* One life of a worker. */
typedef struct overlay_life {
    uint32_t number;
    uint32_t rank;
    uint32_t joins;
    bool is_reader;
    bool runs;
    bool is_killed;
    bool is_through; /* its script has ended, and it has left */
    bool is_planned; /* an event for the next line of the script is queued */
    overlay_speaker_t client;
    overlay_relay_t relay;
    overlay_queue_t queues[OVERLAY_PARTITIONS_MAX];
    uint64_t lends; /* the version of the plan by which it lends; 0: it does not */
    uint64_t desk_ms[2];
    uint64_t still_ms; /* all of it stands still until then */
    ps_rng_t script;
    uint64_t clock;
    overlay_stage_t stage;
    size_t n_open;     /* requests without an end */
    overlay_op_t *ops; /* owned; operation i + 1 of the session */
    size_t n_ops;
    size_t ops_capacity;
    uint64_t last_want;
    uint64_t digest; /* of all bits pulled */
} overlay_life_t;

/* To whom a packet goes. */
typedef enum overlay_end {
    OVERLAY_SHARD = 1,
    OVERLAY_CLIENT = 2,
    OVERLAY_COURIER = 3,
    OVERLAY_PEER = 4
} overlay_end_t;

/* Between a session and a shard, or from a relay to another one. */
typedef struct overlay_conn {
    overlay_end_t from; /* CLIENT, COURIER or PEER */
    uint32_t life;
    uint64_t relay_life; /* of COURIER and PEER */
    uint64_t link;
    overlay_end_t to; /* SHARD or PEER */
    uint32_t number;  /* of the shard, or the life */
    uint64_t to_relay_life;
    uint64_t shard_life;
    bool is_cut;
    uint64_t mute_ms[2]; /* nothing arrives back, or there, until then */
} overlay_conn_t;

typedef struct overlay_packet {
    uint32_t n_holders;
    uint64_t conn;
    bool goes_back;
    ps_message_t message;
    ps_payload_t *payload; /* owned */
} overlay_packet_t;

typedef enum overlay_event_kind {
    OVERLAY_EVENT_PACKET = 1,
    OVERLAY_EVENT_CLIENT = 2,  /* a: life */
    OVERLAY_EVENT_RELAY = 3,   /* a: life */
    OVERLAY_EVENT_NODE = 4,    /* a: shard */
    OVERLAY_EVENT_STEP = 5,    /* a: life */
    OVERLAY_EVENT_JOB = 6,     /* a: shard, job */
    OVERLAY_EVENT_ROUTES = 7,  /* a: life, b: 1 its courier */
    OVERLAY_EVENT_PLAN = 8,    /* a: life, tree */
    OVERLAY_EVENT_TO_DESK = 9, /* a: life, b: its relay's life, desk */
    OVERLAY_EVENT_OF_DESK = 10,
    OVERLAY_EVENT_FAULT = 11,
    OVERLAY_EVENT_GONE = 12,     /* a: shard, b: conn */
    OVERLAY_EVENT_RELINKED = 13, /* a: life, b: link, c: 1 its courier */
    OVERLAY_EVENT_READY = 14, /* a: life, b: the life that its way goes to, c: its relay's life */
    OVERLAY_EVENT_TREE = 15,  /* a new plan */
    OVERLAY_EVENT_KILL = 16,  /* a: place in plan.killed */
    OVERLAY_EVENT_LOST = 17,  /* a: rank */
    OVERLAY_EVENT_AGAIN = 18, /* a: rank */
    OVERLAY_EVENT_TAKE_OVER = 19, /* a: shard */
    OVERLAY_EVENT_TABLE = 20      /* a: shard: the map as it is now */
} overlay_event_kind_t;

typedef enum overlay_desk_kind {
    OVERLAY_DESK_LOT = 1,
    OVERLAY_DESK_NEWS = 2,
    OVERLAY_DESK_PLAN = 3,
    OVERLAY_DESK_ASK = 4,
    OVERLAY_DESK_KEEP = 5,
    OVERLAY_DESK_BEGIN = 6,
    OVERLAY_DESK_ROWS = 7
} overlay_desk_kind_t;

/* What a worker's client and its relay hand over (client/connection/desk.h). */
typedef struct overlay_desk {
    overlay_desk_kind_t kind;
    uint64_t request;
    uint64_t clock; /* LOT */
    ps_bundle_from_t from;
    bool has_rows;
    ps_slice_t slice;
    ps_payload_t *payload; /* owned */
    ps_relay_news_t news;
    uint64_t version; /* PLAN */
    uint32_t partition;
    ps_down_key_t key; /* ASK, KEEP, BEGIN, ROWS */
} overlay_desk_t;

typedef struct overlay_event {
    uint64_t at_ms;
    uint64_t order; /* of two at one time */
    overlay_event_kind_t kind;
    uint64_t a;
    uint64_t b;
    uint64_t c;
    overlay_packet_t *packet; /* held */
    ps_job_t *job;            /* owned */
    overlay_tree_t *tree;     /* owned */
    overlay_desk_t *desk;     /* owned */
} overlay_event_t;

/* A record of the log, as bytes. */
typedef struct overlay_logged {
    uint32_t partition;
    ps_buffer_t bytes; /* owned */
} overlay_logged_t;

typedef struct overlay {
    overlay_plan_t plan;
    overlay_weather_t weather;
    uint64_t workload; /* its seed */
    ps_rng_t net;      /* all choices of time and luck */
    uint64_t now_ms;
    uint64_t order;
    uint64_t n_events_done;
    overlay_event_t *events; /* owned; a heap */
    size_t n_events;
    size_t events_capacity;
    ps_shard_t *shards[OVERLAY_SHARDS_MAX];
    uint64_t shard_lives[OVERLAY_SHARDS_MAX];
    uint64_t shard_wake_ms[OVERLAY_SHARDS_MAX];
    ps_route_t routes[OVERLAY_PARTITIONS_MAX];
    overlay_logged_t *log; /* owned */
    size_t n_logged;
    size_t log_capacity;
    ps_outbox_t replayed; /* effects of records that are replayed; ignored */
    uint64_t lsn[OVERLAY_PARTITIONS_MAX];
    uint64_t seqs[OVERLAY_PARTITIONS_MAX][OVERLAY_LIVES_MAX]; /* the last one taken */
    ps_job_t job;                                             /* as the registry has it */
    ps_job_t told[OVERLAY_SHARDS_MAX];                        /* as each shard knows it; owned */
    overlay_conn_t *conns;                                    /* owned; connection i + 1 */
    size_t n_conns;
    size_t conns_capacity;
    overlay_life_t lives[OVERLAY_LIVES_MAX];
    size_t n_lives;      /* the reader is the last one */
    overlay_tree_t tree; /* the newest */
    bool is_reading;     /* all workers have finished */
    bool failed;
    char violation[1024];
    FILE *trace; /* NULL: none */
    uint64_t n_pulls;
    uint64_t n_bundles; /* taken */
    uint64_t n_sums;    /* of these, with a span of several workers */
    uint64_t n_relayed; /* bundles that relays took of others */
    uint64_t n_rows;    /* pulls whose rows came from another worker */
    uint64_t n_back;    /* lots that were given back */
    uint64_t n_forgot;  /* relays that forgot everything */
    uint64_t n_turned;  /* rows that were changed on their way */
} overlay_t;

typedef struct overlay_result {
    bool failed;
    char violation[1024];
    uint64_t digest;
    bool is_repeatable; /* another run of it has the same digest */
    uint64_t n_events;
    uint64_t n_pulls;
    uint64_t n_bundles;
    uint64_t n_sums;
    uint64_t n_relayed;
    uint64_t n_rows;
    uint64_t n_back;
    uint64_t n_forgot;
    uint64_t n_turned;
} overlay_result_t;

/* Runs one world; without relays and faults if weather is 0. */
void overlay_run(uint64_t workload, uint64_t weather, FILE *trace, overlay_result_t *ret_result);
/* Runs n seeds from `first` on. Returns the first one that fails, with the end of its trace on
 * stdout, or UINT64_MAX. */
uint64_t overlay_search(uint64_t first, uint64_t n, bool verbose);

void PSD_PRINTF(2, 3) overlay_fail(overlay_t *self, const char *format, ...);
void PSD_PRINTF(2, 3) overlay_trace(overlay_t *self, const char *format, ...);
_Noreturn void overlay_stop(const char *what);
static inline void overlay_need(bool condition, const char *what)
{
    if (!condition) {
        overlay_stop(what);
    }
}
static inline uint64_t overlay_below(overlay_t *self, uint64_t bound)
{
    return ps_rng_below(&self->net, bound);
}
static inline bool overlay_is_calm(const overlay_t *self)
{
    return self->now_ms >= self->weather.calm_ms;
}
/* Of 1000, while it is not calm. */
static inline bool overlay_chance(overlay_t *self, uint32_t of_1000)
{
    return of_1000 > 0 && !overlay_is_calm(self) && overlay_below(self, 1000) < of_1000;
}

/* sim_overlay_plan.c */
void overlay_plan_make(uint64_t seed, overlay_plan_t *ret_plan);
void overlay_weather_make(uint64_t seed, overlay_weather_t *ret_weather);

/* sim_overlay_net.c */
overlay_event_t *overlay_at(overlay_t *self, uint64_t at_ms, overlay_event_kind_t kind, uint64_t a);
/* The event again, later. Takes it. */
void overlay_later(overlay_t *self, uint64_t at_ms, overlay_event_t *event);
bool overlay_next(overlay_t *self, overlay_event_t *ret_event);
void overlay_event_drop(overlay_event_t *event);
overlay_conn_t *overlay_conn(overlay_t *self, uint64_t number);
uint64_t overlay_conn_new(overlay_t *self, const overlay_conn_t *conn);
/* goes_back: against the way in which the connection was opened. */
void overlay_send(overlay_t *self, uint64_t conn, bool goes_back, const ps_message_t *message,
                  const ps_payload_t *payload);
void overlay_arrive(overlay_t *self, overlay_event_t *event);
/* Its values in one span. */
ps_payload_t *overlay_flat(const ps_payload_t *payload);

/* sim_overlay_node.c */
void overlay_node_start(overlay_t *self);
void overlay_node_event(overlay_t *self, uint32_t shard, ps_event_t *event);
void overlay_node_tick(overlay_t *self, uint32_t shard);
/* Sends every shard the present job, each at its own time. */
void overlay_node_tell(overlay_t *self);
void overlay_node_told(overlay_t *self, uint32_t shard, const ps_job_t *job);
void overlay_node_join(overlay_t *self);
/* The shard has only its log. */
void overlay_node_take_over(overlay_t *self, uint32_t shard);
/* The partition goes to the other shard, which is made from the log. */
void overlay_node_move(overlay_t *self, uint32_t partition);
void overlay_node_table(overlay_t *self, uint32_t shard);
/* A shard that is made from the log; `epochs` as they are now, or as they were at first. */
void overlay_node_check_log(overlay_t *self);

/* sim_overlay_worker.c */
void overlay_worker_start(overlay_t *self, overlay_life_t *life, uint64_t clock);
void overlay_worker_step(overlay_t *self, overlay_life_t *life);
void overlay_worker_tick(overlay_t *self, overlay_life_t *life);
void overlay_worker_received(overlay_t *self, overlay_life_t *life, uint64_t link,
                             const ps_message_t *message, ps_payload_t *payload);
void overlay_worker_relinked(overlay_t *self, overlay_life_t *life, uint64_t link);
void overlay_worker_kill(overlay_t *self, overlay_life_t *life);
/* The relay has passed on what it had, or has none: the worker says BYE. */
void overlay_worker_leave(overlay_t *self, overlay_life_t *life);
/* Makes it an operation of the session. */
void overlay_worker_start_op(overlay_t *self, overlay_life_t *life, const overlay_op_t *op);
/* Starts what waits for that partition, as far as it may go. */
void overlay_worker_run(overlay_t *self, overlay_life_t *life, uint32_t partition);
void overlay_worker_perform(overlay_t *self, overlay_life_t *life, const ps_outbox_t *outbox);
void overlay_worker_plan_step(overlay_t *self, overlay_life_t *life);
void overlay_worker_done(overlay_life_t *life);

/* sim_overlay_lend.c */
/* An operation is sent. True: the relay gets it. */
bool overlay_lend(overlay_t *self, overlay_life_t *life, const ps_effect_t *effect);
/* Which way it goes; false: it waits. */
bool overlay_lend_choose(overlay_t *self, overlay_life_t *life, overlay_op_t *op);
void overlay_lend_ended(overlay_life_t *life, const overlay_op_t *op, bool was_answered);
void overlay_lend_hear(overlay_t *self, overlay_life_t *life, const overlay_desk_t *desk);
/* To the relay, or back. Takes desk's payload. */
void overlay_desk(overlay_t *self, overlay_life_t *life, bool to_relay, const overlay_desk_t *desk);

/* sim_overlay_rows.c */
/* A pull is about to go. True: only the digest is asked for. */
bool overlay_rows_begin(overlay_t *self, overlay_life_t *life, uint32_t partition);
void overlay_rows_digest(overlay_t *self, overlay_life_t *life, size_t at,
                         const ps_message_t *message, const ps_payload_t *payload);
/* The shard's rows. */
void overlay_rows_pass_on(overlay_t *self, overlay_life_t *life, uint32_t partition, uint64_t clock,
                          const ps_payload_t *payload);
void overlay_rows_hear(overlay_t *self, overlay_life_t *life, overlay_desk_t *desk);
void overlay_rows_look(overlay_t *self, overlay_life_t *life);
uint64_t overlay_rows_due(const overlay_life_t *life);

/* sim_overlay_relay.c */
void overlay_relay_start(overlay_t *self, overlay_life_t *life);
void overlay_relay_end(overlay_life_t *life);
/* It has lost all that it had. */
void overlay_relay_forget(overlay_t *self, overlay_life_t *life);
void overlay_relay_tick(overlay_t *self, overlay_life_t *life);
void overlay_relay_from_desk(overlay_t *self, overlay_life_t *life, overlay_desk_t *desk);
void overlay_relay_received(overlay_t *self, overlay_life_t *life, uint64_t conn, bool goes_back,
                            const ps_message_t *message, ps_payload_t *payload);
void overlay_relay_plan(overlay_t *self, overlay_life_t *life, const overlay_tree_t *tree);
void overlay_relay_leave(overlay_t *self, overlay_life_t *life);
/* What is to be done now, and when it is to be called next. */
void overlay_relay_turn(overlay_t *self, overlay_life_t *life);
void overlay_relay_plan_tick(overlay_t *self, overlay_life_t *life);

/* sim_overlay_ways.c */
/* There is a new plan. */
void overlay_ways_plan(overlay_t *self, overlay_life_t *life);
/* The other one may have answered. */
void overlay_ways_ready(overlay_t *self, overlay_life_t *life, uint32_t to);
/* Closes what is silent, opens what is due. */
void overlay_ways_tick(overlay_t *self, overlay_life_t *life);
uint64_t overlay_ways_due(const overlay_relay_t *relay);
/* NULL: there is no connection to that life now. */
overlay_way_to_t *overlay_ways_find(overlay_relay_t *relay, uint32_t life);
/* false: it cannot be sent there now. */
bool overlay_ways_send(overlay_t *self, overlay_life_t *life, const ps_relay_deed_t *deed);
/* The connection to that life is gone. */
void overlay_ways_close(overlay_t *self, overlay_life_t *life, overlay_way_to_t *way);
ps_relay_speaker_t overlay_speaker_of(const overlay_life_t *life);

/* sim_overlay_courier.c */
void overlay_courier_start(overlay_t *self, overlay_life_t *life);
bool overlay_courier_send(overlay_t *self, overlay_life_t *life, const ps_relay_deed_t *deed);
void overlay_courier_turn(overlay_t *self, overlay_life_t *life);
void overlay_courier_received(overlay_t *self, overlay_life_t *life, uint64_t link,
                              const ps_message_t *message, ps_payload_t *payload);
void overlay_courier_relinked(overlay_t *self, overlay_life_t *life, uint64_t link);
/* Opens the connections that a session asks for, and sends what it sends. */
void overlay_speaker_open(overlay_t *self, overlay_life_t *life, bool is_courier, uint64_t link);

/* sim_overlay_tree.c */
void overlay_tree_change(overlay_t *self);
/* The number of that rank in the plan; UINT32_MAX: it is not in it. */
uint32_t overlay_tree_find(const overlay_tree_t *tree, uint32_t rank);
/* The life that deltas go to next; UINT32_MAX: the nodes. */
uint32_t overlay_tree_above(const overlay_t *self, const overlay_tree_t *tree, uint32_t rank,
                            uint32_t colour);
bool overlay_tree_is_parent(const overlay_t *self, const overlay_tree_t *tree, uint32_t rank,
                            uint32_t life);
bool overlay_tree_has_children(const overlay_tree_t *tree, uint32_t rank, uint32_t colour);
/* The life of a member of the plan. */
uint32_t overlay_tree_life(const overlay_t *self, const overlay_tree_t *tree, uint32_t number);

/* sim_overlay_fault.c */
void overlay_fault_start(overlay_t *self);
void overlay_fault(overlay_t *self);
/* A relay's turn in which something of consequence happened: it may be its last. */
void overlay_fault_moment(overlay_t *self, overlay_life_t *life);
void overlay_cut(overlay_t *self, overlay_life_t *life, bool is_courier, uint64_t link);

/* sim_overlay_check.c */
void overlay_check_record(overlay_t *self, uint32_t shard, const ps_record_t *record,
                          const ps_payload_t *payload);
/* pull: of the worker's operations, the one that is answered, or was with a digest. */
void overlay_check_values(overlay_t *self, overlay_life_t *life, const overlay_op_t *pull,
                          const ps_payload_t *payload);
/* Rows of another worker are those that the shard means. */
bool overlay_rows_are_right(const ps_payload_t *rows, uint64_t size, const ps_id_t *digest);
/* After a relay took a lot of another one. */
void overlay_check_circle(overlay_t *self, const overlay_life_t *life, const ps_relay_lot_t *lot);
/* After a relay's turn. */
void overlay_check_waits(overlay_t *self, overlay_life_t *life);

/* sim_overlay_run.c */
static inline uint32_t overlay_rows_of(const overlay_plan_t *plan, uint32_t partition)
{
    return plan->first_row[partition + 1] - plan->first_row[partition];
}
/* Bytes of all rows of a partition. */
static inline uint64_t overlay_bytes_of(const overlay_plan_t *plan, uint32_t partition)
{
    return (uint64_t)overlay_rows_of(plan, partition) * plan->spec.n_cols *
           ps_type_size(plan->spec.type);
}
static inline bool overlay_is_timed(const overlay_t *self)
{
    return self->plan.max_delay != 0;
}
static inline overlay_life_t *overlay_life(overlay_t *self, uint64_t number)
{
    overlay_need(number < self->n_lives, "a worker that exists");
    return &self->lives[number];
}
#endif
