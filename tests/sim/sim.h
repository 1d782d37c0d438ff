/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim - one node and its clients in one thread, from one seed
 *
 * What     Shards and sessions of the core, joined by a network that loses,
 *          repeats, delays and reorders messages and cuts connections, or by
 *          lanes, whose clients scribble on what they share; small messages go
 *          in batches and bodies through filters, now and then; workers that
 *          follow a script, join late and get killed. After every step the
 *          promises of W1, W3, C1 to C4 and A4 are checked.
 * Shape    sim_net.c    packets and connections: bytes in flight
 *          sim_lane.c   connections through shared memory
 *          sim_filter.c bodies through filters, and lists by their names
 *          sim_node.c   the shards, and the job as the registry would send it
 *          sim_client.c a session and the script that it follows
 *          sim_script.c the clients' scripts, from a seed
 *          sim_slice.c  the bytes of its operations
 *          sim_relay.c  pushes and marks of a clock, added up on their way
 *          sim_copy.c   shards rebuilt from their records
 *          sim_check.c  values seen against the ledger of pushes
 *          sim_run.c    the loop; sim_search.c many seeds
 * Units    virtual ms
 */
#ifndef PS_TESTS_SIM_H
#define PS_TESTS_SIM_H

#include <stdio.h>

#include "base/map.h"
#include "base/rng.h"
#include "model/tables/partition.h"
#include "protocol/session/assembly.h"
#include "protocol/session/session.h"
#include "protocol/shard/shard.h"
#include "wire/messages/batch.h"
#include "wire/filters/filter_code.h"
#include "wire/filters/keys_cache.h"

#define SIM_SHARDS_MAX 3
#define SIM_CLIENTS_MAX 12
#define SIM_LINKS_MAX 12 /* of one client: every shard, old and new, twice */
#define SIM_WORKERS_MAX 4
#define SIM_ROWS_MAX 24   /* of the table */
#define SIM_OP_ROWS_MAX 6 /* of one operation */
#define SIM_PARTITIONS_MAX 4
#define SIM_LATE_MAX 5 /* packets of a client that come again after BYE */
#define SIM_TABLE 7    /* numbers of the one table and the one job */
#define SIM_JOB 3
#define SIM_INCARNATION 77

/* What the workload's seed decides. */
typedef struct sim_plan {
    ps_table_spec_t spec; /* owned boundaries: none */
    uint32_t n_rows;
    uint64_t keys[SIM_ROWS_MAX];
    uint32_t n_shards;
    uint32_t n_workers;
    uint32_t n_members;
    uint32_t n_clients; /* workers x members, and those of a second life */
    int32_t max_delay;
    uint64_t n_clocks;
    uint32_t late;   /* worker that joins late, or UINT32_MAX */
    bool expected;   /* and is expected from the start */
    uint32_t killed; /* worker that is killed, or UINT32_MAX */
    bool again;      /* and comes again, with new clients */
    bool pipelined;  /* clients do not wait for their pulls */
    ps_shard_args_t shard;
    uint64_t resend_ms;
} sim_plan_t;

/* What the network's seed decides. */
typedef struct sim_weather {
    uint32_t loss;   /* of 1000 packets */
    uint32_t repeat; /* of 1000 packets */
    uint32_t delay_ms;
    uint32_t cut_ms;  /* mean time between two cuts; 0: none */
    uint32_t lanes;   /* of 100 connections; the others lose packets */
    uint32_t relayed; /* of 100 pushes and marks, where clocks are added up */
    uint64_t calm_ms; /* no faults from here on */
} sim_weather_t;

typedef enum sim_step_kind {
    SIM_PUSH = 1,
    SIM_PUSHPULL = 2,
    SIM_PULL = 3,
    SIM_MARK = 4,
    SIM_WAIT = 5,  /* for everything to end */
    SIM_SCALE = 6, /* a push: the client's own column times two */
    SIM_SUM = 7    /* a pull: the sum of its own column */
} sim_step_kind_t;

/* One line of a client's script. */
typedef struct sim_step {
    sim_step_kind_t kind;
    uint32_t layout; /* how a push lies: 0 .. 3 */
    bool bad;        /* a push outside the table: must be refused */
    bool marks;      /* a push that ends its clock; decided at its time */
    uint32_t timeout_ms;
    uint32_t n_rows;
    uint32_t rows[SIM_OP_ROWS_MAX]; /* indices into plan->keys, different */
    int64_t deltas[SIM_OP_ROWS_MAX];
} sim_step_t;

/* One operation of a session: a line of the ledger. */
typedef struct sim_op {
    sim_step_t step; /* rows: those of this operation's partition */
    uint32_t partition;
    uint64_t clock;
    size_t line; /* of the script */
    bool done;
    psd_status_t status;
} sim_op_t;

struct sim_packet;

typedef struct sim_client {
    uint32_t number;
    uint32_t worker;
    uint32_t member;
    uint32_t life; /* which joining of its worker it belongs to, from 1 */
    bool reader;   /* not a worker: reads all at the end */
    bool running;
    bool killed;
    bool finished;
    ps_session_t *session; /* owned */
    uint64_t wake_ms;      /* of the tick that is planned; UINT64_MAX: none */
    sim_step_t *script;    /* owned */
    size_t n_steps;
    size_t at;    /* the next step */
    bool planned; /* an event for the next step is queued */
    uint64_t clock;
    sim_op_t *ops; /* owned; operation i + 1 of the session */
    size_t n_ops;
    size_t ops_capacity;
    size_t n_open;  /* operations without an end */
    sim_op_t *redo; /* owned; to ask again */
    size_t n_redo;
    size_t redo_capacity;
    uint64_t conn_of[SIM_LINKS_MAX]; /* by link */
    size_t n_links;
    struct sim_packet *late[SIM_LATE_MAX]; /* held; the first ones it sent */
    size_t n_late;
    uint64_t digest;                      /* of all bits pulled, in script order */
    ps_filter_t filter;                   /* of its requests */
    ps_coder_t *coder;                    /* owned; NULL: no filter */
    ps_key_cache_t *lists[SIM_LINKS_MAX]; /* owned; lists that the shard was sent */
    uint32_t misses[SIM_LINKS_MAX];       /* lists that it no longer knew */
} sim_client_t;

typedef struct sim_frame {
    ps_buffer_t bytes; /* owned */
    bool first;        /* begins a message */
} sim_frame_t;

/* One message, with its pieces. */
typedef struct sim_packet {
    uint32_t n_holders;
    bool to_shard;
    uint64_t conn;
    const char *kind;
    bool is_batch;       /* of messages that each were in a frame */
    uint64_t values_of;  /* the request that its values answer; 0: none */
    uint64_t epoch;      /* of these values */
    sim_frame_t *frames; /* owned */
    size_t n_frames;
    size_t capacity;
} sim_packet_t;

typedef struct sim_conn {
    uint32_t client;
    uint64_t link;
    uint32_t shard;
    bool cut;
    ps_assembly_t at_shard;
    ps_assembly_t at_client;
    bool batches;        /* small messages wait for later ones */
    ps_batch_t batch[2]; /* what waits, each way: to the client, to the shard */
    bool lane;
    bool read_on;        /* lane: cut, and the shard reads what had come */
    bool gone;           /* lane: the shard knows it */
    uint64_t last_ms[2]; /* lane: arrival of the last packet, each way */
    ps_room_t *rooms;    /* owned; lane: offered for answers */
    size_t n_rooms;
    size_t rooms_capacity;
} sim_conn_t;

typedef enum sim_event_kind {
    SIM_EVENT_PACKET = 1,
    SIM_EVENT_CLIENT_TICK = 2, /* a: client */
    SIM_EVENT_SHARD_TICK = 3,  /* a: shard */
    SIM_EVENT_STEP = 4,        /* a: client */
    SIM_EVENT_JOB = 5,         /* a: shard, job: as it was sent */
    SIM_EVENT_CUT = 6,
    SIM_EVENT_RELINKED = 7, /* a: client, b: link */
    SIM_EVENT_GONE = 8,     /* a: shard, b: conn */
    SIM_EVENT_JOIN = 9,
    SIM_EVENT_KILL = 10,
    SIM_EVENT_LOST = 11,
    SIM_EVENT_AGAIN = 12,
    SIM_EVENT_FLUSH = 13, /* a: conn, b: 1 to the shard, 0 to the client */
    SIM_EVENT_RELAY = 14  /* a: lot that goes on as a bundle, b: 1 a second time */
} sim_event_kind_t;

typedef struct sim_event {
    uint64_t at_ms;
    uint64_t order; /* of two at one time */
    sim_event_kind_t kind;
    uint64_t a;
    uint64_t b;
    sim_packet_t *packet; /* held */
    ps_job_t *job;        /* owned */
} sim_event_t;

struct sim_relay;

typedef struct sim {
    sim_plan_t plan;
    sim_weather_t weather;
    ps_rng_t net; /* all random choices of time and luck */
    uint64_t now_ms;
    uint64_t order;
    uint64_t n_events_done;
    sim_event_t *events; /* owned; a heap */
    size_t n_events;
    size_t events_capacity;
    ps_shard_t *shards[SIM_SHARDS_MAX];
    ps_shard_t *copies[SIM_SHARDS_MAX]; /* of each, made by its records */
    ps_outbox_t copied;                 /* the copies' effects, which are ignored */
    uint64_t shard_wake_ms[SIM_SHARDS_MAX];
    ps_route_t routes[SIM_PARTITIONS_MAX];
    uint64_t lsn[SIM_PARTITIONS_MAX];
    uint64_t seqs[SIM_PARTITIONS_MAX][SIM_CLIENTS_MAX]; /* the last one */
    sim_conn_t *conns;                                  /* owned; connection i + 1 */
    size_t n_conns;
    size_t conns_capacity;
    ps_job_t job;                  /* as the registry has it */
    uint64_t told[SIM_SHARDS_MAX]; /* version that each shard has */
    sim_client_t clients[SIM_CLIENTS_MAX];
    size_t n_clients; /* the reader included */
    uint64_t n_pulls_checked;
    uint64_t n_batches;      /* of more than one message */
    uint64_t n_under_way;    /* requests repeated while their values came */
    uint64_t n_coded;        /* requests through a filter */
    struct sim_relay *relay; /* owned; NULL: clients send everything themselves */
    uint64_t n_bundles;      /* taken */
    uint64_t n_sums;         /* of these, with a span of several workers */
    bool reading;            /* all workers have finished */
    FILE *trace;             /* NULL: none */
    bool failed;
    char violation[1024];
} sim_t;

typedef struct sim_result {
    bool failed;
    char violation[1024];
    uint64_t digest;    /* of final rows and everything pulled */
    bool is_repeatable; /* the promise C2 says: same digest in any weather */
    uint64_t n_events;
    uint64_t n_pulls;
    uint64_t n_batches;
    uint64_t n_under_way;
    uint64_t n_coded;
    uint64_t n_bundles;
    uint64_t n_sums;
} sim_result_t;

/* Runs one world. trace may be NULL. */
void sim_run(uint64_t workload_seed, uint64_t weather_seed, FILE *trace, sim_result_t *ret_result);

/* Runs n seeds from `first` on: each once, and again in other weather when
 * the bits must be the same. Returns the first seed that fails, with the end
 * of its trace on stdout, or UINT64_MAX. */
uint64_t sim_search(uint64_t first, uint64_t n, bool verbose);

/* Reports a broken promise; keeps the first one. */
void PSD_PRINTF(2, 3) sim_fail(sim_t *sim, const char *format, ...);
void PSD_PRINTF(2, 3) sim_trace(sim_t *sim, const char *format, ...);
/* Stops the program: a mistake of the simulator itself. */
_Noreturn void sim_stop(const char *what);
static inline void sim_need(bool condition, const char *what)
{
    if (!condition) {
        sim_stop(what);
    }
}

/* sim_script.c */
void sim_plan_make(uint64_t seed, sim_plan_t *ret_plan);
void sim_weather_make(uint64_t seed, sim_weather_t *ret_weather);
void sim_script_make(const sim_plan_t *plan, uint64_t seed, sim_client_t *client);
uint32_t sim_partition_of(const sim_plan_t *plan, uint32_t row);

/* sim_net.c */
sim_event_t *sim_at(sim_t *sim, uint64_t at_ms, sim_event_kind_t kind, uint64_t a);
bool sim_next(sim_t *sim, sim_event_t *ret_event);
uint64_t sim_conn_new(sim_t *sim, uint32_t client, uint64_t link);
sim_conn_t *sim_conn(sim_t *sim, uint64_t conn);
void sim_send(sim_t *sim, uint64_t conn, bool to_shard, const ps_message_t *message,
              const ps_payload_t *payload, uint32_t chunk_bytes);
/* Sends what waits for its batch. */
void sim_flush(sim_t *sim, uint64_t conn, bool to_shard);
/* Decodes and delivers each message of the packet. */
void sim_arrive(sim_t *sim, const sim_packet_t *packet);
/* Sends again the kept packets of a client that has said BYE. */
void sim_send_late(sim_t *sim, sim_client_t *client);
void sim_packet_drop(sim_packet_t **packet_p);
/* Cuts one connection at random; both ends may or may not notice. */
void sim_cut(sim_t *sim);

/* sim_lane.c */
/* Queues the packet after earlier ones. */
void sim_lane_dispatch(sim_t *sim, sim_packet_t *packet);
/* A packet that arrives on a lane that broke is lost. */
bool sim_lane_loses(const sim_conn_t *conn, bool to_shard);
/* Breaks a lane, and tells the shard later. Does nothing when it is not a lane. */
void sim_lane_break(sim_t *sim, uint64_t conn);
/* A body as a shard gets it: the client keeps its values. */
ps_payload_t *sim_lane_payload(const ps_body_t *body);
/* The client writes over values that it has shared. */
void sim_lane_scribble(sim_t *sim, ps_payload_t *payload);
/* The client writes over the rooms that it has offered. */
void sim_lane_scribble_rooms(sim_t *sim, sim_conn_t *conn);
/* The room that a request offers for its answer; often too little or none. */
ps_room_t sim_lane_room(sim_t *sim, sim_conn_t *conn);
/* The shard knows that the lane is gone: it may no longer write to its rooms. */
void sim_lane_gone(sim_t *sim, uint64_t conn);
void sim_lanes_check(sim_t *sim);
void sim_lanes_done(sim_t *sim);

/* sim_filter.c */
/* Chooses whether and how the client filters. */
void sim_filter_choose(sim_t *sim, sim_client_t *client);
void sim_filter_done(sim_client_t *client);
/* Sends a message of the session, a request through the client's filter. */
void sim_filter_send(sim_t *sim, sim_client_t *client, uint64_t link, const ps_message_t *plain,
                     ps_payload_t *payload);
/* Decodes a coded answer, and notes what the shard has forgotten. Returns
 * the payload for the session; the caller destroys it. */
ps_payload_t *sim_filter_received(sim_t *sim, sim_client_t *client, uint64_t link,
                                  ps_message_t *message, ps_payload_t *payload);

/* sim_relay.c */
void sim_relay_start(sim_t *sim);
/* A relay may get a message of the client instead of the shard, or as well. True: instead. */
bool sim_relay_takes(sim_t *sim, sim_client_t *client, uint64_t link, const ps_message_t *message,
                     ps_payload_t *payload);
/* The lot goes to its shard, as a bundle; again: it went before. */
void sim_relay_send(sim_t *sim, uint64_t lot, bool again);
/* The message answers a bundle: it is the relay's. */
bool sim_relay_hears(const ps_message_t *message);
void sim_relay_done(sim_t *sim);

/* sim_node.c */
void sim_node_start(sim_t *sim);
void sim_node_event(sim_t *sim, uint32_t shard, ps_event_t *event);
void sim_node_tick(sim_t *sim, uint32_t shard);
/* Sends every shard the present job, each at its own time. */
void sim_node_tell(sim_t *sim);
void sim_node_told(sim_t *sim, uint32_t shard, const ps_job_t *job);
void sim_node_join(sim_t *sim);
void sim_node_print_waiting(sim_t *sim, char *text, size_t size);

/* sim_client.c */
void sim_client_start(sim_t *sim, uint32_t client, uint64_t clock);
void sim_client_received(sim_t *sim, uint32_t client, uint64_t link, const ps_message_t *message,
                         ps_payload_t *payload);
void sim_client_tick(sim_t *sim, uint32_t client);
void sim_client_relinked(sim_t *sim, uint32_t client, uint64_t link);
void sim_client_step(sim_t *sim, uint32_t client);
void sim_client_kill(sim_t *sim, uint32_t client);

/* sim_copy.c */
/* Makes a copy of shard args->shard, which has the table. */
void sim_copy_start(sim_t *sim, const ps_shard_args_t *args, ps_event_t *table);
void sim_copy_record(sim_t *sim, uint32_t shard, const ps_record_t *record,
                     const ps_payload_t *payload);
/* Checks that every copy has the same rows, windows and gates as its shard. */
void sim_copy_check(sim_t *sim);
void sim_copy_done(sim_t *sim);

/* sim_slice.c */
/* The slice and the bytes of one operation; the caller destroys them. */
ps_payload_t *sim_slice_make(const sim_t *sim, const sim_client_t *client, const sim_step_t *step,
                             ps_slice_t *ret_slice);

/* A push of any kind. */
static inline bool sim_is_push(sim_step_kind_t kind)
{
    return kind == SIM_PUSH || kind == SIM_PUSHPULL || kind == SIM_SCALE;
}

/* sim_check.c */
/* Checks the answer to operation `at` of the client, a SUM. */
void sim_check_sum(sim_t *sim, sim_client_t *client, size_t at, const ps_message_t *message,
                   const ps_payload_t *payload);
/* Checks what operation `at` of the client, a pull or pushpull, saw. */
void sim_check_values(sim_t *sim, sim_client_t *client, size_t at, const ps_message_t *message,
                      const ps_payload_t *payload);
void sim_check_record(sim_t *sim, uint32_t shard, const ps_record_t *record,
                      const ps_payload_t *payload);
#endif
