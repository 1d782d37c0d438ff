/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/shard: many partitions served by one state machine
 *
 * It is       The server's machine: it routes messages, commands of the
 *             registry and ticks to partitions, and divides memory and disk
 *             among them.
 * It uses     admission, replica, partition, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  Sockets, threads, files, and other shards of its node.
 * Start at    ps_shard_step in shard.c.
 */
/*
 * ps_shard - the server side: sessions, partitions, clock gates
 *
 * What     One pure state machine per shard. It takes a message, a command of
 *          the registry or a tick, with the time in it; changes its partitions;
 *          appends effects. Message -> session known? -> partition here, epoch
 *          right? -> seq next? -> gate open? -> checked, logged, applied ->
 *          answered.
 * Units    now_ms: any monotonic clock
 * Owner    The caller; ps_shard_destroy frees partitions and rows.
 * Threads  Confined to one thread; shards share nothing.
 */
#ifndef PS_PROTOCOL_SHARD_H
#define PS_PROTOCOL_SHARD_H

#include "model/store/store.h"
#include "protocol/facts/copies.h"
#include "protocol/facts/job.h"
#include "protocol/core/outbox.h"
#include "protocol/facts/sending.h"
#include "protocol/facts/shard_answer.h"
#include "protocol/facts/shard_args.h"
#include "wire/messages/route.h"

typedef struct ps_shard ps_shard_t;

typedef enum ps_event_kind {
    PS_EVENT_MESSAGE = 1, /* from a connection, whole (chunks assembled) */
    PS_EVENT_TICK = 2,    /* time passed */
    PS_EVENT_TABLE = 3,   /* a table and its partitions' current places */
    PS_EVENT_DROP = 4,    /* a table is gone */
    PS_EVENT_JOB = 5,     /* a job's current state */
    PS_EVENT_GONE = 6,    /* a connection is gone; one that the shard opened was opened again */
    PS_EVENT_FENCE = 7,   /* a copy refuses records of epochs below `epoch`; answered by
                           * PS_REPORT_POSITION if it is here
                           */
    PS_EVENT_FLUSHED = 8, /* records are on the disk, or the disk fails */
    PS_EVENT_ASIDE = 9    /* the registry does not know a table: nobody is served, its rows stay */
} ps_event_kind_t;

/* All records of a partition up to lsn are on the disk. */
typedef struct ps_position {
    uint32_t table;
    uint32_t partition;
    uint64_t lsn;
    uint64_t life; /* of the partition's copy (PS_RECORD_ANEW's seq) */
} ps_position_t;

typedef struct ps_event {
    ps_event_kind_t kind;
    uint64_t now_ms;
    uint64_t now_us;              /* of a finer clock, whose start may be another one; 0: there is
                                     none, for all events */
    uint64_t conn;                /* MESSAGE, GONE */
    const ps_message_t *message;  /* MESSAGE */
    ps_payload_t *payload;        /* MESSAGE; may be NULL; the step holds it (ps_payload_keep) if it
                                     needs it */
    ps_room_t room;               /* MESSAGE: for the answer's values; borrowed until GONE for
                                     conn */
    ps_sending_t sending;         /* MESSAGE: a request's answer that is still in flight to the
                                     client, on one of its connections (ps_shard_conns) */
    uint64_t other_bytes;         /* memory of the node's other shards, for memory_bytes */
    uint32_t other_giving;        /* the number of them that send rows to new copies
                                   */
    ps_shard_limits_t limits;     /* that count from here on */
    uint64_t last_session;        /* MESSAGE: the highest that the registry has
                                     given out; 0: not known here */
    uint32_t told_job;            /* MESSAGE: jobs up to this one are known here, or gone; 0:
                                     none */
    uint32_t told_table;          /* … and tables */
    uint32_t table;               /* TABLE, DROP, FENCE, ASIDE: the registry's number */
    uint32_t partition;           /* FENCE */
    uint64_t epoch;               /* FENCE */
    const ps_table_spec_t *spec;  /* TABLE; copied */
    const ps_route_t *routes;     /* TABLE: all partitions, in order; copied */
    uint32_t n_routes;            /* TABLE: spec->n_partitions */
    const ps_copies_t *copies;    /* TABLE: of all partitions, in order; NULL: each has one copy,
                                     where its route says */
    bool rows_lost;               /* TABLE: rows were lost from all copies */
    uint64_t lost_sessions;       /* TABLE: sessions up to this one are older than the loss, and are
                                     refused; 0: none */
    bool restoring;               /* TABLE: rows of a checkpoint are still missing; all requests
                                     wait */
    const ps_job_t *job;          /* JOB; copied; ignored if not newer */
    const ps_position_t *flushed; /* FLUSHED */
    size_t n_flushed;             /* FLUSHED */
    uint64_t flushed_bytes;       /* FLUSHED: of the records since the last one
                                   */
    uint64_t log_bytes;           /* FLUSHED: of the log */
    bool snapshot_failed;         /* FLUSHED: a snapshot failed */
    const char *disk_trouble;     /* FLUSHED: why flushing fails now; NULL: it works */
} ps_event_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_new(const ps_shard_args_t *args, ps_shard_t **ret_shard,
                                         psd_error_t *err);
void ps_shard_destroy(ps_shard_t **self_p);

/*
 * Advances the shard by one event and appends effects to outbox. A peer's
 * mistake is answered, never returned.
 * Errors: PSD_NOMEM (for MESSAGE it is also answered and the shard is
 * unchanged; for JOB nothing changed; for TABLE nothing changed, except that
 * existing partitions follow their new map); PSD_LIMIT for a TABLE that does
 * not fit.
 */
PSD_MUST_CHECK psd_status_t ps_shard_step(ps_shard_t *self, const ps_event_t *event,
                                          ps_outbox_t *outbox, psd_error_t *err);
/* The kind of request that the message counts as; false: it is none. */
PSD_MUST_CHECK bool ps_shard_counts_as(ps_kind_t kind, ps_counted_t *ret_counted);
/* The last event was a message that took the shard that long: a slow request is noted, and an
 * answer with times that waits for its level has the work in them. A shell adds the work to those
 * that it sends. */
void ps_shard_worked(ps_shard_t *self, const ps_event_t *event, uint64_t work_us);
/* Appends its slow requests: {"slow":[…]} (ps_slow_log_print). Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_list_slow(const ps_shard_t *self, uint64_t now_ms,
                                               ps_buffer_t *words, psd_error_t *err);
/* The request number of the message, and its epoch; 0: a message that values do
 * not answer. */
uint64_t ps_request_for_values(const ps_message_t *message, uint64_t *ret_epoch);
/* The connections of the client that sent HELLO on this one; returns their
 * number. */
size_t ps_shard_conns(ps_shard_t *self, uint64_t conn, uint64_t ret_conns[PS_SENDING_CONNS]);
/* The table's name, borrowed until the next step; NULL: it is not here. */
const char *ps_shard_table_name(const ps_shard_t *self, uint32_t table);
/* Its memory that memory_bytes limits. */
uint64_t ps_shard_bytes(const ps_shard_t *self);
/* Bytes of records kept for other copies, which no limit of the node counts. */
uint64_t ps_shard_tail_bytes(const ps_shard_t *self);
/* True when it has recently sent rows to new copies, and so shares their
 * limits. */
bool ps_shard_gives_rows(const ps_shard_t *self, uint64_t now_ms);
/* When the shard's next TICK is due; UINT64_MAX for never. */
uint64_t ps_shard_deadline(const ps_shard_t *self);

/* What the shard has, for /metrics: one look at all of it. */
typedef struct ps_looked_table {
    uint32_t table;
    ps_table_counts_t counts;
} ps_looked_table_t;

typedef struct ps_looked_worker {
    uint32_t job;
    uint32_t worker;
    bool is_here; /* some partition here knows its clock */
    ps_worker_counts_t counts;
} ps_looked_worker_t;

typedef struct ps_shard_look {
    ps_looked_table_t *tables; /* owned */
    size_t n_tables;
    size_t tables_capacity;
    ps_looked_worker_t *workers; /* owned; live ones, by job, then ascending by rank */
    size_t n_workers;
    size_t workers_capacity;
} ps_shard_look_t;

/* Sets the gauges of its counts, and fills the look, whose memory it uses again.
 * Errors: PSD_NOMEM; the look is then not whole. */
PSD_MUST_CHECK psd_status_t ps_shard_look(ps_shard_t *self, uint64_t now_ms, ps_shard_look_t *look,
                                          psd_error_t *err);
/* Takes NULL, nulls *look_p. */
void ps_shard_look_destroy(ps_shard_look_t **look_p);

/* Information for the operator; all borrowed until the next step. */
void ps_shard_info(const ps_shard_t *self, ps_shard_info_t *ret_info);
/* Each fills fresh arrays that the caller frees with ps_free. Errors:
 * PSD_NOMEM. Clocks of job: for JOIN, after it got a new version. */
PSD_MUST_CHECK psd_status_t ps_shard_partitions(const ps_shard_t *self,
                                                ps_partition_info_t **ret_infos, size_t *ret_n,
                                                psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shard_sizes(const ps_shard_t *self, ps_size_info_t **ret_infos,
                                           size_t *ret_n, psd_error_t *err);
/* Appends what is here of the tables that are kept aside: {"tables":[{"id":7,"spec":{…}
 * (table_doc.h),"partitions":[{"partition":0,"epoch":3,"lsn":9,"lsn_epoch":3,"whole":true,
 * "rows":5,"bytes":40},…]},…]}. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_list_aside(const ps_shard_t *self, ps_buffer_t *words,
                                                psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shard_lags(const ps_shard_t *self, ps_lag_info_t **ret_infos,
                                          size_t *ret_n, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shard_waiting(const ps_shard_t *self, uint32_t job,
                                             ps_waiting_info_t **ret_infos, size_t *ret_n,
                                             psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shard_clocks(const ps_shard_t *self, uint32_t job,
                                            ps_clock_info_t **ret_infos, size_t *ret_n,
                                            psd_error_t *err);
#endif
