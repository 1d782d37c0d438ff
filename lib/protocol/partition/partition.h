/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/partition: one copy of a partition
 *
 * It is       Admission by sequence number (window.h), clocks (gate.h), pushes of
 *             open clocks (open_clock.h), the one way in which rows change
 *             (replay.h), answers.
 * It uses     facts, core, lib/wire, lib/model, lib/base.
 * It ignores  Other partitions, other shards, files. What it still asks of replica
 *             and shard is listed in tests/lint/check_rooms.py, and is to go.
 * Start at    partition.c, then partition_take.c and replay.c.
 */
/*
 * ps_partition - one copy of a partition, mostly the only one or the primary
 *
 * What     Rows, the log's number, each client's window, each job's gate, the
 *          requests that wait. A request is admitted by its seq, held at the
 *          gate or taken; a push that is taken is checked, logged and applied
 *          (or kept until its clock closes), then answered.
 * Owner    The shard. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_PARTITION_H
#define PS_PROTOCOL_PARTITION_H

#include "base/map.h"
#include "model/store/store.h"
#include "protocol/facts/epochs.h"
#include "protocol/partition/gate.h"
#include "protocol/partition/image_view.h"
#include "protocol/partition/open_clock.h"
#include "protocol/partition/request.h"
#include "protocol/facts/session_set.h"
#include "protocol/shard/shard.h"
#include "protocol/partition/window.h"

/* A job at this partition. */
typedef struct ps_job_place {
    ps_gate_t *gate;      /* owned */
    ps_open_clock_t open; /* BSP: pushes of the clock that is open */
    uint64_t applied;     /* BSP: clocks whose pushes are all in the rows */
} ps_job_place_t;

/* What a shard keeps of one table, in all of its partitions. */
typedef struct ps_table_use {
    uint64_t row_bytes;    /* values, states and index */
    uint64_t queue_bytes;  /* bodies of held requests */
    uint64_t logged_bytes; /* kept for open clocks */
    uint64_t limit_bytes;  /* its share of table_bytes; 0: no limit */
    uint32_t n_here;       /* partitions that are here */
    bool restoring;        /* rows of a checkpoint come; requests wait */
} ps_table_use_t;

/* The image of a partition that is wanted, or handed out. */
typedef struct ps_partition_image {
    ps_image_view_t view;
    uint64_t hold_ms; /* MARKs wait until then; 0: they do not */
    uint32_t job;     /* PENDING: begins when this job has … */
    uint64_t clock;   /* … closed this clock */
    bool exact;       /* what the job pushes behind it waits for that */
    bool in_turn;     /* PENDING: begins when it is told to */
    ps_image_since_t since;
    uint64_t early_bytes;
} ps_partition_image_t;

struct ps_replicas;

typedef struct ps_partition {
    uint32_t table;
    uint32_t number;
    uint64_t epoch;
    const ps_table_spec_t *spec;  /* borrowed from the shard's table */
    ps_table_use_t *use;          /* likewise */
    ps_store_t *store;            /* owned */
    struct ps_replicas *replicas; /* owned; NULL: it never had another copy, and
                                     has no log */
    uint64_t lsn;                 /* of the last record; 0 when none */
    uint64_t lsn_epoch;           /* under which that was made */
    ps_epochs_t epochs;           /* of all its records */
    uint64_t snapshot_lsn;        /* state of its last snapshot, which was handed out
                                     whole; 0: none */
    uint64_t snapshot_round;      /* in which it was looked at last */
    bool has_log;                 /* its records go to the disk */
    bool needs_base;              /* it began anew: nothing of it counts as flushed
                                     before a snapshot of that life does */
    bool base_given;              /* that snapshot was handed out whole */
    uint64_t life;                /* of the copy in this process: what the disk tells
                                     of another one is old */
    uint64_t version;             /* of the rows; from 1, grows as they change */
    ps_map_t windows;             /* session -> ps_window_t, owned */
    ps_session_set_t retired;     /* sessions without a window that are refused */
    ps_job_place_t *jobs;         /* owned, in order of first use */
    size_t n_jobs;
    size_t jobs_capacity;
    ps_held_list_t held;
    size_t n_held;
    uint64_t queue_bytes; /* bodies of held requests */
    uint64_t row_bytes;   /* as the shard has counted them */
    uint64_t deadline_ms; /* no held request is to be told before */
    uint64_t pushes, pulls, rows_pushed, rows_pulled;
    ps_partition_image_t image;
    bool restoring; /* a psd that marked no tables has not set all rows of a
                       checkpoint; requests wait */
} ps_partition_t;

/* Borrows spec and use. Errors: PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_partition_new(const ps_table_spec_t *spec, ps_table_use_t *use,
                                             uint32_t table, uint32_t number, uint64_t epoch,
                                             ps_partition_t **ret_partition, psd_error_t *err);
/* Held requests get no answer any more. */
void ps_partition_destroy(ps_partition_t **self_p);

/* A PUSH, MARK, PULL or PROBE of a client that is known, with the right epoch.
 * It is answered, or held. */
void ps_partition_request(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request);
/* The job's workers changed. Errors: PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_partition_job(ps_shard_t *shard, ps_partition_t *self,
                                             const ps_job_t *job, psd_error_t *err);
/* The shard has forgotten a job that has ended: so does the partition, unless
 * pushes of it are still to be applied. */
void ps_partition_forget_job(ps_shard_t *shard, ps_partition_t *self, uint32_t job);
/* Not all rows of a checkpoint are there yet: requests wait. */
bool ps_partition_is_restoring(const ps_partition_t *self);
/* An image is about to begin, and this would be behind it. */
bool ps_partition_image_holds(const ps_shard_t *shard, const ps_partition_t *self,
                              const ps_request_t *request);
/* Takes what the gates now let through, until nothing moves. */
void ps_partition_advance(ps_shard_t *shard, ps_partition_t *self);
/* Tells held requests whose time has come. */
void ps_partition_tick(ps_shard_t *shard, ps_partition_t *self);
/* The connection is gone: answers to what is held are not written to rooms of
 * it. */
void ps_partition_forget_rooms(ps_partition_t *self, uint64_t conn);
/* The gate of a job, or NULL. */
ps_gate_t *ps_partition_gate(const ps_partition_t *self, uint32_t job);
/* What of the partition itself stands against a held request (its copies, its
 * log, a restore), in words; false: nothing, it waits for others to push or to
 * finish clocks. */
bool ps_partition_hindrance(const ps_shard_t *shard, const ps_partition_t *self,
                            const ps_request_t *request, char *ret_text, size_t size);
/* What a held request waits for, in words. */
void ps_partition_reason(const ps_shard_t *shard, const ps_partition_t *self,
                         const ps_request_t *request, char *ret_text, size_t size);
#endif
