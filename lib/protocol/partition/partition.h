/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/partition: one copy of a partition
 *
 * It is       Its rows, the windows of its clients (window.h), clocks (gate.h),
 *             pushes of open clocks (open_clock.h), the one way in which all that
 *             changes (replay.h), answers (answer.h).
 * It uses     facts, core, lib/wire, lib/model, lib/base.
 * It ignores  Whose turn it is (admission), other copies (replica), the shard: it is
 *             handed a step (step.h). Files.
 * Start at    partition.c, then replay.c.
 */
/*
 * ps_partition - one copy of a partition, mostly the only one or the primary
 *
 * What     Rows, the log's number, each client's window, each job's gate, the
 *          requests that wait. It changes by records and by nothing else
 *          (replay.h); who makes them is decided above (admission.h,
 *          replicas.h).
 * Owner    The shard. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_PARTITION_H
#define PS_PROTOCOL_PARTITION_H

#include "base/map.h"
#include "model/store/store_ops.h"
#include "protocol/facts/epochs.h"
#include "protocol/partition/gate.h"
#include "protocol/partition/image_view.h"
#include "protocol/partition/open_clock.h"
#include "protocol/partition/request.h"
#include "protocol/facts/session_set.h"
#include "protocol/partition/step.h"
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

/* What its other copies allow it. */
typedef struct ps_lead {
    bool primary;      /* by the map */
    uint64_t until_ms; /* it serves, and all leases hold before that; 0: it does
                          not; UINT64_MAX: no other copy counts */
} ps_lead_t;

struct ps_replicas;

typedef struct ps_partition {
    uint32_t table;
    uint32_t number;
    uint64_t epoch;
    const ps_table_spec_t *spec;  /* borrowed from the shard's table */
    ps_table_use_t *use;          /* likewise */
    ps_store_t *store;            /* owned */
    struct ps_replicas *replicas; /* their room's, which destroys them first; NULL:
                                     it never had another copy, and has no log */
    ps_lead_t lead;               /* kept by replicas */
    uint64_t incoming_bytes;      /* of rows on their way here; likewise */
    bool woken;                   /* what is held may go on (ps_partition_go_on) */
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
/* Held requests get no answer any more. It has no replicas any more. */
void ps_partition_destroy(ps_partition_t **self_p);

/* Not all rows of a checkpoint are there yet: requests wait. */
bool ps_partition_is_restoring(const ps_partition_t *self);
/* An image is about to begin, and this would be behind it. */
bool ps_partition_image_holds(const ps_step_t *step, const ps_partition_t *self,
                              const ps_request_t *request);
/* The gate of a job, or NULL. */
ps_gate_t *ps_partition_gate(const ps_partition_t *self, uint32_t job);
/* The job's place here; NULL: none. */
ps_job_place_t *ps_partition_find_place(const ps_partition_t *self, uint32_t job);
/* It serves, and every in-sync copy's lease holds. */
static inline bool ps_partition_may_answer(const ps_step_t *step, const ps_partition_t *self)
{
    return step->now_ms < self->lead.until_ms;
}
/* It wants a tick at that time, if not before. */
static inline void ps_partition_wake(ps_step_t *step, ps_partition_t *self, uint64_t at_ms)
{
    if (at_ms < self->deadline_ms) {
        self->deadline_ms = at_ms;
    }
    if (at_ms < step->deadline_ms) {
        step->deadline_ms = at_ms;
    }
}
/* Counts what its rows take now; gone: nothing any more. */
void ps_partition_count_rows(ps_step_t *step, ps_partition_t *self, bool gone);
/* What comes after these rows finds its pages there, if somebody has the time.
 * Nothing depends on it. */
void ps_partition_ask_to_fill(ps_step_t *step, ps_partition_t *self);
/* Forgets every window and every job. */
void ps_partition_clear(ps_partition_t *self);
/* The pushes of its open clocks count no more. */
void ps_partition_uncount_open(ps_step_t *step, const ps_partition_t *self);
/* Throws away rows, windows and jobs: it is as new, behind no record. false: no
 * memory; nothing changed. */
PSD_MUST_CHECK bool ps_partition_begin_anew(ps_step_t *step, ps_partition_t *self);
/* Clocks of the job that are closed here, and in the rows. */
uint64_t ps_partition_closed(const ps_partition_t *self, uint32_t job);
/* The greatest clock of the job that was marked here, so of a push in the rows. */
uint64_t ps_partition_highest(const ps_partition_t *self, uint32_t job);
/* An image that waits begins, if it is time. Nothing may have changed since the
 * clock that it waits for was closed. */
void ps_partition_image_try(const ps_step_t *step, ps_partition_t *self);

/* ---- partition_ops.c: rows where they lie ---- */

/* The other partition of AXPY and DOT. Errors: PSD_INVALID it
 * is not here; PSD_ROWS_LOST the session used rows of that table which are
 * gone. */
PSD_MUST_CHECK psd_status_t ps_partition_other(const ps_step_t *step, const ps_partition_t *self,
                                               const ps_request_t *request,
                                               ps_partition_t **ret_other, psd_error_t *err);
/* A PUSH with an op, which *ret_change then is; bsp: it waits for its clock to
 * close. */
PSD_MUST_CHECK psd_status_t ps_partition_check_change(const ps_step_t *step,
                                                      const ps_partition_t *self,
                                                      const ps_request_t *request, bool bsp,
                                                      ps_row_change_t *ret_change,
                                                      psd_error_t *err);
/* Does what such a push asks for. Errors: PSD_NOMEM; no value has changed. */
PSD_MUST_CHECK psd_status_t ps_partition_change(const ps_step_t *step, ps_partition_t *self,
                                                const ps_slice_t *slice,
                                                const ps_payload_t *payload, const ps_row_op_t *op);
/* A PULL, with an op or without. */
PSD_MUST_CHECK psd_status_t ps_partition_check_read(const ps_step_t *step,
                                                    const ps_partition_t *self,
                                                    const ps_request_t *request, psd_error_t *err);
/* What a checked PULL with an op answers. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_measure(const ps_step_t *step, ps_partition_t *self,
                                                 const ps_request_t *request, ps_slice_t *ret_slice,
                                                 ps_payload_t **ret_payload, uint64_t *ret_done);

/* ---- partition_log.c: what its log is told ---- */

/* The disk is not too far behind for one more push. */
static inline bool ps_partition_log_has_room(const ps_step_t *step, const ps_partition_t *self)
{
    return !self->has_log || step->unflushed_bytes < step->args.log_queue_bytes;
}
/* Why it has no room. */
void ps_partition_log_reason(const ps_step_t *step, char *ret_text, size_t size);
/* A copy that is made, or has begun anew and has its primary's state: its log
 * says so, and what it has of an earlier life counts no more at a start.
 * false: no memory. */
PSD_MUST_CHECK bool ps_partition_log_anew(ps_step_t *step, ps_partition_t *self);
/* A copy goes elsewhere: its log says so, and need not be kept for it. */
void ps_partition_log_leave(ps_step_t *step, const ps_partition_t *self);
/* A record, when somebody reads it: all of them (args.log), or those of a
 * partition with a log. The outbox has room for it. */
void ps_partition_log(ps_step_t *step, const ps_partition_t *self, const ps_record_t *record,
                      ps_payload_t *payload);
#endif
