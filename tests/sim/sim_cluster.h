/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster - a whole cluster in one thread, by a seed
 *
 * What     Three to five nodes of one or two shards with one to three copies of
 *          each partition; the registry, which stores its commands and crashes,
 *          and in half of the worlds is on three or five of the nodes
 *          (sim_cluster_member.h);
 *          clients, which are the client library's own machine. A network
 *          between all of them that loses, repeats, delays, reorders and cuts
 *          one way; nodes that crash and start again empty, freeze, come late
 *          and are drained; clocks that differ. Each push adds 1 to its own
 *          row, so that a row shows how often its push was applied. In half of
 *          the worlds the table has a log, and each node a disk that tears,
 *          fails, fills up and stands still (support/sim_disk.h): its nodes
 *          restart with it, or with a new one, and all nodes may be lost at
 *          once. Workers come and go in half of the worlds that have any
 *          (sim_cluster_job.h). Checkpoints run in the middle of it
 *          (sim_cluster_checkpoint.h).
 * Checks   W1 what was acknowledged at replica is in every later answer, once,
 *          after the loss of any one node; at disk, whatever is lost except a
 *          disk with the last copy · W2 an answer's level is no lower than
 *          asked · W3 each client's pushes are taken in order · A3 no primary
 *          answers under an epoch that another one's answers have ended · C1,
 *          C2, C3 what a pull in some clock must and may see · copies in sync
 *          have the same bits · everything ends
 * Shape    sim_cluster_plan.c      the plan of a seed
 *          sim_cluster_run.c       time and the loop
 *          sim_cluster_fault.c     the faults, at their times
 *          sim_cluster_net.c       messages and letters in flight
 *          sim_cluster_node.c      nodes: their shards, the registry's letters
 *          sim_cluster_disk.c      their disks
 *          sim_cluster_registry.c  the registry's process
 *          sim_cluster_lead.c      … and its places, where there are several
 *          sim_cluster_member.c    the members of a replicated registry, their
 *                                  threads
 *          sim_cluster_member_main.c … and what they apply and propose
 *          sim_cluster_spare.c     which loss is survived
 *          sim_cluster_request.c   one who asks them
 *          sim_cluster_job.c       its jobs and their work queue
 *          sim_cluster_checkpoint.c its checkpoints, and the nodes' part in
 *                                  them
 *          sim_cluster_client.c    clients
 *          sim_cluster_worker.c    the clients as workers
 *          sim_cluster_script.c    the clients' scripts
 *          sim_cluster_check.c     the promises
 *          sim_cluster_search.c    many seeds; the shortest story of one
 * Units    virtual ms of the world; a node's own clock differs
 */
#ifndef PS_TESTS_SIM_CLUSTER_H
#define PS_TESTS_SIM_CLUSTER_H

#include <stdio.h>

#include "base/rng.h"
#include "protocol/agent/agent.h"
#include "protocol/placement/registry_decide.h"
#include "protocol/session/session.h"
#include "protocol/shard/shard.h"
#include "protocol/replica/shard_links.h"
#include "protocol/overseer/overseer.h"
#include "sim_cluster_checkpoint.h"
#include "sim_cluster_job.h"
#include "sim_cluster_member.h"
#include "sim_cluster_plan.h"
#include "storage/log/journal.h"
#include "support/sim_disk.h"

#define CLUSTER_LINES_MAX 96 /* of a script */
#define CLUSTER_LINKS_MAX 48 /* of one client */
#define CLUSTER_SESSIONS_MAX 128
/* Client c, its identity i: session c + 1 + 8 i. */
#define CLUSTER_SESSIONS_STEP 8
#define CLUSTER_LATE_MAX 4
#define CLUSTER_NAME_SIZE 16 /* of a node */
/* Ends of a link: nodes, and then */
#define CLUSTER_REGISTRY CLUSTER_NODES_MAX
#define CLUSTER_CLIENTS (CLUSTER_NODES_MAX + 1)
#define CLUSTER_PLACES (CLUSTER_NODES_MAX + 2)
#define CLUSTER_NOBODY UINT32_MAX

#define CLUSTER_START_MS 1000
#define CLUSTER_CALM_MS 4500  /* no faults after it */
#define CLUSTER_END_MS 40000  /* everything has ended before */
#define CLUSTER_LOST_MS 5000  /* silence after which a worker is lost */
#define CLUSTER_REPAIR_MS 900 /* … after which a node is given up */

/* ---- clients ---- */

typedef enum cluster_line_kind {
    CLUSTER_PUSH = 1,
    CLUSTER_PULL = 2,
    CLUSTER_MARK = 3,
    CLUSTER_WAIT = 4,  /* for everything to end */
    CLUSTER_LEAVE = 5, /* the job; then, too */
    CLUSTER_TAKE = 6,  /* a slice of the work queue */
    CLUSTER_COUNT = 7, /* it is done */
    CLUSTER_HIDE = 8   /* be silent for a while */
} cluster_line_kind_t;

/* One line of a script, and its operation; a mark has one for each partition.
 */
typedef struct cluster_line {
    cluster_line_kind_t kind;
    uint32_t partition;
    uint32_t row; /* PUSH */
    uint8_t ack;  /* PUSH: the level asked for */
    bool pull;    /* PUSH: wants its row back */
} cluster_line_t;

typedef struct cluster_op {
    size_t line;
    uint32_t partition;
    uint64_t clock; /* finished when it began */
    uint64_t seq;   /* PUSH, MARK: within the partition, from 1 */
    uint32_t joins; /* the life of its worker */
    bool done;
    bool must[CLUSTER_ROWS]; /* PULL: rows that it must see pushed */
} cluster_op_t;

/* A message that was sent, to come again after BYE. */
typedef struct cluster_late {
    size_t conn;
    ps_buffer_t bytes; /* owned */
} cluster_late_t;

typedef struct cluster_client {
    ps_session_t *session; /* owned */
    cluster_worker_t worker;
    cluster_line_t lines[CLUSTER_LINES_MAX];
    size_t n_lines;
    size_t at;         /* the next line */
    cluster_op_t *ops; /* owned; operation i + 1 of the session */
    size_t n_ops;
    size_t capacity;
    size_t n_open; /* operations without an end */
    uint64_t clock;
    size_t window; /* operations in flight at once */
    bool memory;   /* it asks for no more than level memory */
    uint8_t level; /* that it asks for: what its acknowledgements reach */
    bool reader;   /* pulls everything at the end */
    bool finished;
    bool ended;                            /* it has said BYE */
    cluster_late_t late[CLUSTER_LATE_MAX]; /* the messages that come again then */
    size_t n_late;
    uint32_t n_more;    /* identities, beside the first */
    bool asks_identity; /* another one is on its way */
    uint64_t lost_ms;   /* when clocks close without it; 0: never */
    uint64_t pace_ms;   /* between two lines, at most */
    uint64_t wake_ms;   /* of the tick that is planned */
    uint64_t ask_ms;    /* when to ask the registry again */
    uint64_t n_seqs[CLUSTER_PARTITIONS_MAX];
    /* The last one that must not be lost: acknowledged at replica, or above. */
    uint64_t safe_seq[CLUSTER_PARTITIONS_MAX];
    uint64_t flushed_seq[CLUSTER_PARTITIONS_MAX]; /* likewise, at disk */
    uint64_t voided_seq[CLUSTER_PARTITIONS_MAX];  /* up to it, only those are */
    size_t conn_of[CLUSTER_LINKS_MAX];            /* by link */
    size_t n_links;
} cluster_client_t;

/* A push, by its row. */
typedef struct cluster_pushed {
    uint32_t client;
    uint64_t clock; /* finished when it was made */
    bool planned;
    bool started;
    bool acked;    /* at replica: pulls must see it */
    bool flushed;  /* acknowledged at disk */
    bool voided;   /* it may be gone: it was below disk, and no whole copy of
                    * its partition was left */
    bool doubtful; /* it may exist or not: its client has ended without an
                    * answer */
} cluster_pushed_t;

/* ---- nodes ---- */

/* The state of one copy, from its records. */
typedef struct cluster_copy {
    bool known; /* else the next record may be any */
    uint64_t lsn;
    uint64_t seqs[CLUSTER_SESSIONS_MAX]; /* the last one; UINT64_MAX: not
                                            known */
} cluster_copy_t;

/* Queued for the disk: a record, or a piece of a snapshot. */
typedef struct cluster_write {
    bool is_piece;
    ps_record_t record;
    ps_piece_t piece;
    ps_payload_t *payload; /* held; may be NULL */
    size_t size;           /* as the shard counts it */
} cluster_write_t;

typedef struct cluster_writer { /* a shard's thread, and its log */
    ps_journal_t *journal;      /* owned; NULL: there is none */
    cluster_write_t *writes;    /* owned */
    size_t first;               /* of those that have not been taken */
    size_t n;
    size_t capacity;
    uint64_t unflushed; /* bytes taken and not reported */
    bool snapshot_failed;
    bool in_trouble;
    bool turn_planned;
} cluster_writer_t;

typedef struct cluster_shard {
    ps_shard_t *machine; /* owned; NULL: not there */
    cluster_writer_t writer;
    uint64_t wake_ms; /* of the tick that is planned */
    size_t *conn_of;  /* owned; by number of the link that it opened */
    size_t n_links;
    size_t capacity;
    cluster_copy_t copies[CLUSTER_PARTITIONS_MAX];
    cluster_images_t images;
} cluster_shard_t;

typedef struct cluster_node {
    cluster_shard_t shards[CLUSTER_SHARDS_MAX];
    bool alive;
    uint64_t incarnation;
    int64_t offset_ms;                     /* of its clock */
    int64_t drift;                         /* thousandths by which it runs faster */
    ps_agent_t *agent;                     /* owned; NULL: it is down */
    ps_route_t routes[CLUSTER_SHARDS_MAX]; /* announced */
    uint64_t n_tasks;                      /* of the agent */
    sim_disk_t *disk;                      /* owned; NULL: none yet */
    uint64_t disk_from;                    /* the first incarnation that had it */
    bool loses_disk;                       /* with the crash that comes now */
    bool is_fresh;                         /* its logs were new, or no start with them has joined */
    bool kept;                             /* else; all of them were there at its start */
    bool starts;                           /* it is down, and starts by itself */
    uint64_t term;                         /* the highest that it was told in this life */
    uint32_t moved_to;                     /* the member that its agent speaks to */
} cluster_node_t;

/* A connection between a client or a shard, which has opened it, and a shard.
 * The latter knows it by its place in the list. */
typedef struct cluster_conn {
    uint32_t client; /* or CLUSTER_NOBODY: */
    uint32_t from_node;
    uint32_t from_shard;
    uint64_t from_incarnation;
    uint64_t link; /* as the opener knows it */
    uint32_t node;
    uint32_t shard;
} cluster_conn_t;

/* ---- the registry ---- */

typedef struct cluster_event cluster_event_t;

typedef struct cluster_registry {
    ps_registry_t *machine; /* owned; NULL: it is down */
    ps_command_t *log;      /* owned; the stored commands */
    size_t n_log;
    size_t capacity;
    uint64_t hash;           /* of what is stored */
    ps_overseer_t *overseer; /* owned; likewise … */
    uint32_t life;           /* … that one's, of all registries' */
    cluster_joining_t joining[CLUSTER_WORKERS_MAX];
    uint64_t wake_ms;
    /* Of a member that leads; machine is its state. */
    uint32_t at;           /* the member */
    uint64_t term;         /* 0: the registry is not replicated */
    bool waits;            /* for a majority; what comes is held: */
    cluster_event_t *held; /* owned */
    size_t n_held;
    size_t held_capacity;
} cluster_registry_t;

/* Letters between the registry and all others, in order. */
typedef enum cluster_letter_kind {
    CLUSTER_AGENT = 1,    /* node: its agent's message */
    CLUSTER_OVERSEER = 2, /* registry: its overseer's message to a node */
    CLUSTER_ASK = 5,      /* client: where the partitions are */
    CLUSTER_ROUTES = 9,   /* registry, to a client */
    CLUSTER_ALIVE = 10,   /* client: its worker lives */
    CLUSTER_ENTER = 11,   /* client: it joins */
    CLUSTER_EXIT = 12,    /* client: it leaves */
    CLUSTER_NEXT = 13,    /* client: it wants a slice */
    CLUSTER_DONE = 14,    /* client: the slice is done */
    CLUSTER_ENTERED = 15, /* registry, to a client, as all that follow */
    CLUSTER_EXITED = 16,
    CLUSTER_OVER = 17, /* the job has ended */
    CLUSTER_SLICE = 18,
    CLUSTER_COUNTED = 19,
    CLUSTER_LOST = 20,  /* that life of its worker */
    CLUSTER_ARM = 21,   /* registry: an image is wanted; marks must wait */
    CLUSTER_ARMED = 22, /* node: they wait; reports its clock */
    CLUSTER_IMAGE = 23, /* registry: it begins, after that clock */
    CLUSTER_LOOK = 24,  /* registry: it is still wanted */
    CLUSTER_CEASE = 25, /* registry: it is not wanted */
    CLUSTER_WISH = 26,  /* client: a change */
    CLUSTER_GRANT = 27  /* registry, to a client: it is done; a session number */
} cluster_letter_kind_t;

/* The cluster's name for itself. */
#define CLUSTER_UUID ((ps_id_t){.bytes = {1}})

static inline bool cluster_is_of_client(cluster_letter_kind_t kind)
{
    return kind == CLUSTER_ASK || (kind >= CLUSTER_ALIVE && kind <= CLUSTER_DONE) ||
           kind == CLUSTER_WISH;
}

static inline bool cluster_is_to_client(cluster_letter_kind_t kind)
{
    return kind == CLUSTER_ROUTES || (kind >= CLUSTER_ENTERED && kind <= CLUSTER_LOST) ||
           kind == CLUSTER_GRANT;
}

typedef struct cluster_letter {
    cluster_letter_kind_t kind;
    uint32_t from; /* node, client, or CLUSTER_REGISTRY */
    uint32_t to;
    uint64_t incarnation;
    uint32_t shard;        /* ASK: a silent one of that incarnation */
    uint64_t number;       /* ASK: ms since the shard's last word; ARM … CEASE: of
                              the checkpoint */
    uint32_t joins;        /* to and from a worker: its life; AGENT: the
                              registry's, of the connection */
    uint32_t member;       /* of the registry, where it is replicated */
    uint64_t term;         /* registry: in which it leads */
    uint64_t clock;        /* ARMED, IMAGE; of a worker; GRANT: the session */
    cluster_want_t want;   /* ARM, IMAGE */
    ps_work_answer_t work; /* SLICE; DONE: epoch and slice */
    ps_buffer_t bytes;     /* owned; AGENT, OVERSEER */
    ps_route_t *routes;    /* owned; ROUTES, ENTERED */
} cluster_letter_t;

/* ---- the world ---- */

typedef enum cluster_event_kind {
    CLUSTER_MESSAGE = 1, /* by connection `a`; b: to its opener */
    CLUSTER_LETTER = 2,
    CLUSTER_SHARD_TICK = 3,  /* a: node, b: shard */
    CLUSTER_CLIENT_TICK = 4, /* a: client */
    CLUSTER_CLIENT_LINE = 5, /* a: client does its next line */
    CLUSTER_REGISTRY_TICK = 6,
    CLUSTER_BEAT_TIME = 7,   /* a: node, b: its incarnation */
    CLUSTER_GONE = 8,        /* by connection a; b: its opener learns it */
    CLUSTER_FAULTS = 9,      /* one begins or ends */
    CLUSTER_DISK_TURN = 10,  /* a: node, b: shard */
    CLUSTER_NODE_START = 11, /* a: node, if it is to start by itself */
    CLUSTER_ALIVE_TIME = 12, /* a: client, a worker */
    CLUSTER_ASK_AGAIN = 13,  /* a: client, a worker, b: its question */
    CLUSTER_CHECKPOINT = 14, /* the registry makes one, or goes on with it */
    CLUSTER_IMAGE_TURN = 15, /* a: node, b: shard */
    CLUSTER_IDENTITY = 16,   /* a: client, gets another one */
    CLUSTER_REQUEST = 17,    /* the one who asks asks again */
    /* Of members; a: to. */
    CLUSTER_QUORUM = 18,      /* a message of another one */
    CLUSTER_MEMBER_TICK = 19, /* incarnation: its life, as in the next two */
    CLUSTER_MEMBER_FLUSH = 20,
    CLUSTER_MEMBER_TAKE = 21,  /* its main thread wakes */
    CLUSTER_DATABASE = 22,     /* of member b, in its life `epoch` */
    CLUSTER_DATABASE_SENT = 23 /* … came at b, or not */
} cluster_event_kind_t;

struct cluster_event {
    uint64_t at_ms;
    uint64_t order; /* of two at one time */
    cluster_event_kind_t kind;
    uint64_t a;
    uint64_t b;
    uint64_t incarnation;     /* of the sender */
    uint64_t values_of;       /* MESSAGE: the request that its values answer */
    uint64_t epoch;           /* … in which they were read */
    ps_buffer_t bytes;        /* owned; MESSAGE */
    cluster_letter_t *letter; /* owned; LETTER */
};

typedef struct cluster {
    cluster_plan_t plan;
    ps_rng_t rng; /* all random choices of time and luck */
    uint64_t now_ms;
    uint64_t order;
    cluster_event_t *events; /* owned; a heap */
    size_t n_events;
    size_t capacity;
    cluster_conn_t *conns; /* owned */
    size_t n_conns;
    size_t conns_capacity;
    uint64_t last_ms[CLUSTER_PLACES][CLUSTER_PLACES]; /* letters arrive in
                                                         order */
    cluster_node_t nodes[CLUSTER_NODES_MAX];
    uint64_t n_incarnations;
    cluster_registry_t *registry;                         /* at work */
    cluster_registry_t registries[CLUSTER_NODES_MAX + 1]; /* by member; the last is none */
    uint32_t n_registries;                                /* lives */
    cluster_member_t members[CLUSTER_NODES_MAX];
    cluster_story_t story;
    uint32_t believes[CLUSTER_PLACES]; /* which member leads */
    uint64_t heard_ms[CLUSTER_PLACES]; /* … and since when it answers */
    cluster_checkpoint_t checkpoint;
    uint32_t table;
    uint32_t job;
    cluster_facts_t facts;
    cluster_client_t clients[CLUSTER_CLIENTS_MAX + 1]; /* the reader, too */
    bool reading;
    uint64_t changed_ms; /* a record, or a letter of the registry */
    cluster_pushed_t pushed[CLUSTER_PARTITIONS_MAX][CLUSTER_ROWS];
    /* The highest epoch of any answer, and the node that answered. */
    uint64_t answer_epoch[CLUSTER_PARTITIONS_MAX];
    uint64_t answer_by[CLUSTER_PARTITIONS_MAX]; /* incarnation */
    uint64_t n_handled;                         /* events */
    uint64_t n_answers;
    uint64_t n_fences;
    uint64_t n_under_way;  /* requests repeated while their values came */
    uint64_t n_voids;      /* times that the last whole copy was lost */
    uint64_t n_identities; /* that clients got after their first ones */
    uint64_t n_recoveries; /* nodes that have started with a disk */
    bool begins;           /* nothing goes wrong or takes long yet */
    FILE *trace;
    bool failed;
    char violation[400];
} cluster_t;

/* sim_cluster_run.c */
void PSD_PRINTF(2, 3) cluster_fail(cluster_t *self, const char *format, ...);
void PSD_PRINTF(2, 3) cluster_trace(cluster_t *self, const char *format, ...);
/* Stops the program: a mistake of the simulator itself. */
_Noreturn void cluster_stop(const char *what);
static inline void cluster_need(bool condition, const char *what)
{
    if (!condition) {
        cluster_stop(what);
    }
}
/* Handles the next event. false: there is none. */
bool cluster_step(cluster_t *self);
/* Holds an event back, or puts it into the queue again, for that time. */
void cluster_put(cluster_t *self, cluster_event_t *event, uint64_t at_ms);
/* Borrowed until the next call. */
cluster_event_t *cluster_at(cluster_t *self, uint64_t at_ms, cluster_event_kind_t kind, uint64_t a);
static inline uint64_t cluster_below(cluster_t *self, uint64_t bound)
{
    return ps_rng_below(&self->rng, bound);
}
/* Runs the world of a plan; returns the first broken promise, or NULL. trace
 * may be NULL. */
const char *cluster_run(const cluster_plan_t *plan, FILE *trace, cluster_t *self);

/* sim_cluster_fault.c */
void cluster_faults_start(cluster_t *self);
/* Starts and ends the faults that are due. */
void cluster_faults(cluster_t *self);
/* When the place resumes, if it is frozen now; else 0. */
uint64_t cluster_frozen(const cluster_t *self, uint32_t place);
bool cluster_is_cut(const cluster_t *self, uint32_t from, uint32_t to);
/* The extra delay of the registry's letters to that place. */
uint64_t cluster_lateness(const cluster_t *self, uint32_t node);
bool cluster_is_absent(const cluster_t *self, uint32_t node);
/* When the node's disk resumes, if it stands still now; else 0. */
uint64_t cluster_disk_still(const cluster_t *self, uint32_t node);

/* sim_cluster_net.c */
void cluster_event_done(cluster_event_t *event);
/* A connection to the shard of that endpoint; its place in the list. */
/* Sends again the kept messages of a client that has said BYE. */
void cluster_send_late(cluster_t *self, uint32_t client);
size_t cluster_connect(cluster_t *self, cluster_conn_t conn, const char *tcp);
/* Sends a message on a connection, which may lose or duplicate it. */
void cluster_send(cluster_t *self, size_t conn, bool to_opener, const ps_message_t *message,
                  const ps_payload_t *payload);
void cluster_arrive(cluster_t *self, const cluster_event_t *event);
/* Connections of a node that has crashed: its sent messages may be lost, and
 * the others may notice. */
void cluster_disconnect(cluster_t *self, uint32_t node);
/* Sends a letter and takes its contents. */
void cluster_post(cluster_t *self, const cluster_letter_t *letter);
/* A message of member `from` to another one. */
void cluster_send_member(cluster_t *self, uint32_t from, uint32_t to, ps_bytes_t bytes);
/* Its database, for another member. */
void cluster_send_database(cluster_t *self, uint32_t from, uint32_t to, const cluster_db_t *db);
/* … came. */
void cluster_take_database(cluster_t *self, const cluster_event_t *event);
/* Letters in flight from a place that has crashed are lost. */
void cluster_lose_letters(cluster_t *self, uint32_t place);

/* sim_cluster_node.c */
void cluster_node_start(cluster_t *self, uint32_t node);
void cluster_node_crash(cluster_t *self, uint32_t node, cluster_loss_t loss);
void cluster_nodes_done(cluster_t *self);
void cluster_node_step(cluster_t *self, uint32_t node, uint32_t shard, ps_event_t *event);
void cluster_node_tick(cluster_t *self, uint32_t node, uint32_t shard);
/* Work of the shard's thread between two events. */
void cluster_node_work(cluster_t *self, uint32_t node, uint32_t shard, cluster_work_t *work,
                       const void *order);
/* Values of a partition's rows, which the caller destroys. */
struct ps_payload *cluster_rows_of(ps_store_t *store, uint32_t partition);
void cluster_node_beat(cluster_t *self, uint32_t node);
void cluster_node_letter(cluster_t *self, const cluster_letter_t *letter);
/* The shard's partition; NULL: it has none. */
struct ps_partition *cluster_partition(const cluster_t *self, uint64_t incarnation, uint32_t shard,
                                       uint32_t partition);
uint32_t cluster_node_of(const cluster_t *self, uint64_t incarnation);
/* The node of that incarnation, present or past. */
uint32_t cluster_node_by(uint64_t incarnation);

/* sim_cluster_disk.c; these do nothing when the world has no disks. */
/* A shard reads its disk. false: the disk does not work now. */
bool cluster_disk_open(cluster_t *self, uint32_t node, uint32_t shard);
/* Queues records and pieces. */
void cluster_disk_give(cluster_t *self, uint32_t node, uint32_t shard, const ps_effect_t *effect);
/* The registry knows of the node's start. false: as above. */
bool cluster_disk_joined(cluster_t *self, uint32_t node);
/* Makes the table known to the next start. false: the disk does not work now. */
bool cluster_disk_table(cluster_t *self, uint32_t node, uint32_t shard,
                        const ps_table_spec_t *spec);
void cluster_disk_turn(cluster_t *self, uint32_t node, uint32_t shard);
/* The node crashes: loses its queue, and this part of the disk. */
void cluster_disk_crash(cluster_t *self, uint32_t node, cluster_loss_t loss);
void cluster_disk_close(cluster_shard_t *shard);

/* sim_cluster_registry.c */
void cluster_registry_begin(cluster_t *self);
void cluster_registry_done(cluster_t *self);
/* at: the member, if it is replicated. */
void cluster_registry_crash(cluster_t *self, uint32_t at);
void cluster_registry_restart(cluster_t *self, uint32_t at);
void cluster_registry_letter(cluster_t *self, const cluster_letter_t *letter);
void cluster_registry_tick(cluster_t *self);
/* false: it has not become known. */
bool cluster_registry_drain(cluster_t *self, uint32_t node, bool drain);
/* Owned by the caller. */
ps_route_t *cluster_registry_routes(const cluster_t *self);
/* Stores and applies a command and takes it. Kind 0 does nothing. false: it leads
 * no more, and its process has ended. */
bool cluster_registry_commit(cluster_t *self, ps_command_t *command);
/* All nodes that are up know what it has told. */
bool cluster_registry_is_settled(const cluster_t *self);
/* It has not ended since. */
bool cluster_registry_is(const cluster_t *self, uint32_t life);
ps_registry_t *cluster_registry_new(const cluster_t *self);
/* What was committed is told. */
void cluster_registry_tell(cluster_t *self, const ps_command_t *command);
/* Begins to answer and decide. */
void cluster_registry_open(cluster_t *self);
/* The stored table; NULL while the registry is down. */
const ps_table_t *cluster_registry_table(const cluster_t *self);
/* Whether the partition has another whole copy on a live node. */
bool cluster_registry_spares(const cluster_t *self, uint32_t node, uint32_t partition);
/* Whether every partition has another live whole copy with its disk: then
 * the node's own disk may be lost. */
bool cluster_registry_spares_disk(const cluster_t *self, uint32_t node);
/* It has a copy; another whole one is lost at the same moment, and so are all. */
bool cluster_registry_is_last(const cluster_t *self, uint32_t node, uint32_t partition);
void cluster_name(uint32_t node, char ret_name[CLUSTER_NAME_SIZE]);

/* sim_cluster_client.c */
void cluster_clients_start(cluster_t *self);
void cluster_client_start(cluster_t *self, uint32_t client);
void cluster_clients_done(cluster_t *self);
void cluster_client_line(cluster_t *self, uint32_t client);
void cluster_client_tick(cluster_t *self, uint32_t client);
void cluster_client_identity(cluster_t *self, uint32_t client);
void cluster_client_relinked(cluster_t *self, uint32_t client, uint64_t link);
void cluster_client_received(cluster_t *self, uint32_t client, uint64_t link,
                             const ps_message_t *message, ps_payload_t *payload);
/* It receives the routes of the partitions. */
void cluster_client_letter(cluster_t *self, const cluster_letter_t *letter);

/* sim_cluster_script.c */
void cluster_script_make(cluster_t *self, uint32_t client);

/* sim_cluster_check.c */
/* A node is about to answer a client. */
void cluster_check_answer(cluster_t *self, uint32_t node, const ps_message_t *message);
void cluster_check_record(cluster_t *self, uint32_t node, uint32_t shard,
                          const ps_record_t *record);
/* A pull begins: what it must see. */
void cluster_check_begins(cluster_t *self, uint32_t client, cluster_op_t *op);
void cluster_check_pull(cluster_t *self, uint32_t client, const cluster_op_t *op,
                        const ps_message_t *message, const ps_payload_t *payload);
/* A push ends at a level. */
void cluster_check_push(cluster_t *self, const cluster_line_t *line, uint8_t level);
/* An operation with a seq has ended at a level. */
void cluster_check_seq(cluster_t *self, uint32_t client, const cluster_op_t *op, uint8_t level);
/* A worker was lost: the fate of its pushes without an answer is unknown. */
void cluster_check_doubt(cluster_t *self, uint32_t client);
/* A client's session is broken, for that reason. */
void cluster_check_broken(cluster_t *self, uint32_t client, psd_status_t status, const char *why);
/* The last whole copy of a partition crashes: pushes acknowledged only at
 * replica are no longer promised. */
void cluster_check_void(cluster_t *self, uint32_t partition);
/* Checks that copies in sync are alike. */
void cluster_check_copies(cluster_t *self);
/* Checks that copies in sync have as many records as their primaries. */
bool cluster_copies_are_level(const cluster_t *self);

/* sim_cluster_search.c */
/* Runs n seeds; returns the first that fails, with its story on stdout, or
 * UINT64_MAX. */
uint64_t cluster_search(uint64_t first, uint64_t n, bool verbose);
#endif
