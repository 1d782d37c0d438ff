/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/partition: one copy of a partition
 *
 * It is       Its rows, the windows of its clients (window.h), clocks (gate.h),
 *             pushes of open clocks (open_clock.h), the only way in which these
 *             change (replay.h), answers (answer.h).
 * It uses     facts, core, lib/wire, lib/model, lib/base.
 * It ignores  Admission, other copies (replica), the shard: it gets a step
 *             (step.h). Files.
 * Start at    partition.c, then replay.c; gate.c closes a clock, close_clock.c
 *             applies its pushes.
 */
/*
 * ps_partition - one copy of a partition, usually the only one or the primary
 *
 * What     Rows, the last lsn, each client's window, each job's gate, held
 *          requests. Only records change it (replay.h); admission.h and
 *          replicas.h decide who makes them.
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
    ps_open_clock_t open; /* BSP: pushes of the open clock */
    uint64_t applied;     /* BSP: clocks whose pushes are all applied to the rows */
} ps_job_place_t;

/* The memory that a shard uses for one table, over all its partitions. */
typedef struct ps_table_use {
    uint64_t row_bytes;    /* values, states and index */
    uint64_t queue_bytes;  /* bodies of held requests */
    uint64_t logged_bytes; /* kept for open clocks */
    uint64_t limit_bytes;  /* its share of table_bytes; 0: no limit */
    uint32_t n_here;       /* partitions that are here */
    bool restoring;        /* rows of a checkpoint are arriving; requests wait */
} ps_table_use_t;

/* The wanted or current image of a partition. */
typedef struct ps_partition_image {
    ps_image_view_t view;
    uint64_t hold_ms; /* MARKs wait until then; 0: they do not */
    uint32_t job;     /* PENDING: begins when this job has … */
    uint64_t clock;   /* … closed this clock */
    bool exact;       /* the job's pushes after that clock wait for the image */
    bool in_turn;     /* PENDING: begins when the shell says so */
    ps_image_since_t since;
    uint64_t early_bytes;
} ps_partition_image_t;

/* The primary's right to serve, granted by the other copies. */
typedef struct ps_lead {
    bool primary;      /* by the map */
    uint64_t until_ms; /* it serves, and all leases hold until then; 0: it does not serve;
                          UINT64_MAX: no other copy counts */
} ps_lead_t;

struct ps_replicas;

typedef struct ps_partition {
    uint32_t table;
    uint32_t number;
    uint64_t epoch;
    const ps_table_spec_t *spec;  /* borrowed from the shard's table */
    ps_table_use_t *use;          /* likewise */
    ps_store_t *store;            /* owned */
    struct ps_replicas *replicas; /* owned by the room replica, which destroys them first; NULL: it
                                     never had another copy, and has no log */
    ps_lead_t lead;               /* kept by replicas */
    uint64_t incoming_bytes;      /* of rows in flight to here; likewise */
    bool woken;                   /* held requests may go on (ps_partition_go_on) */
    uint64_t lsn;                 /* of the last record; 0 when none */
    uint64_t lsn_epoch;           /* under which that was made */
    ps_epochs_t epochs;           /* of all its records */
    uint64_t snapshot_lsn;        /* the lsn of its last complete snapshot's state; 0: none */
    uint64_t snapshot_round;      /* the last round that looked at it */
    bool has_log;                 /* its records go to the disk */
    bool needs_base;              /* it started again from rows: nothing counts as flushed before a
                                     snapshot of that life is */
    bool base_given;              /* that snapshot was handed out completely */
    uint64_t life;                /* of the copy in this process: news from the disk about another
                                     life is stale */
    uint64_t version;             /* of the rows; from 1, grows as they change */
    ps_combine_t combine; /* as its records say; the primary makes one (SET) when it differs from
                             the spec's and no clock has pushes */
    ps_map_t windows;     /* session -> ps_window_t, owned */
    ps_session_set_t retired; /* sessions without a window that are refused */
    ps_job_place_t *jobs;     /* owned, in order of first use */
    size_t n_jobs;
    size_t jobs_capacity;
    ps_held_list_t held;
    size_t n_held;
    uint64_t queue_bytes; /* bodies of held requests */
    uint64_t row_bytes;   /* as the shard has counted them */
    uint64_t deadline_ms; /* no held request is due before */
    uint64_t pushes, pulls, rows_pushed, rows_pulled;
    ps_partition_image_t image;
    bool restoring; /* an older psd, which did not mark tables, has not set all rows of a
                       checkpoint; requests wait */
} ps_partition_t;

/* Borrows spec and use. Errors: PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_partition_new(const ps_table_spec_t *spec, ps_table_use_t *use,
                                             uint32_t table, uint32_t number, uint64_t epoch,
                                             ps_partition_t **ret_partition, psd_error_t *err);
/* Held requests get no answer. Destroy its replicas first. */
void ps_partition_destroy(ps_partition_t **self_p);

/* True while rows of a checkpoint are missing: requests wait. */
bool ps_partition_is_restoring(const ps_partition_t *self);
/* True when an image is about to begin, and this request must come after it. */
bool ps_partition_image_holds(const ps_step_t *step, const ps_partition_t *self,
                              const ps_request_t *request);
/* The gate of a job, or NULL. */
ps_gate_t *ps_partition_gate(const ps_partition_t *self, uint32_t job);
/* The job's place here; NULL: none. */
ps_job_place_t *ps_partition_find_place(const ps_partition_t *self, uint32_t job);
/* True when it serves and holds a lease from every in-sync copy. */
static inline bool ps_partition_may_answer(const ps_step_t *step, const ps_partition_t *self)
{
    return step->now_ms < self->lead.until_ms;
}
/* Asks for a tick at that time or before. */
static inline void ps_partition_wake(ps_step_t *step, ps_partition_t *self, uint64_t at_ms)
{
    if (at_ms < self->deadline_ms) {
        self->deadline_ms = at_ms;
    }
    if (at_ms < step->deadline_ms) {
        step->deadline_ms = at_ms;
    }
}
/* Updates the counted size of its rows; gone: counts 0. */
void ps_partition_count_rows(ps_step_t *step, ps_partition_t *self, bool gone);
/* Asks to prefault the pages for the next rows. Optional. */
void ps_partition_ask_to_fill(ps_step_t *step, ps_partition_t *self);
/* Forgets every window and every job. */
void ps_partition_clear(ps_partition_t *self);
/* Stops counting the pushes of its open clocks. */
void ps_partition_uncount_open(ps_step_t *step, const ps_partition_t *self);
/* Discards rows, windows and jobs: the partition is as new, with no record.
 * false: no memory; nothing changed. */
PSD_MUST_CHECK bool ps_partition_begin_anew(ps_step_t *step, ps_partition_t *self);
/* Clocks of the job that are closed here and applied to the rows. */
uint64_t ps_partition_closed(const ps_partition_t *self, uint32_t job);
/* The greatest clock of the job that was marked here, so the greatest of a push
 * in the rows. */
uint64_t ps_partition_highest(const ps_partition_t *self, uint32_t job);
/* Begins a pending image, if it is time. Nothing may have changed since its
 * clock closed. */
void ps_partition_image_try(const ps_step_t *step, ps_partition_t *self);

/* ---- partition_ops.c: rows where they lie ---- */

/* The other partition of AXPY and DOT. Errors: PSD_INVALID it is not here;
 * PSD_ROWS_LOST the session used lost rows of that table. */
PSD_MUST_CHECK psd_status_t ps_partition_other(const ps_step_t *step, const ps_partition_t *self,
                                               const ps_request_t *request,
                                               ps_partition_t **ret_other, psd_error_t *err);
/* Checks a PUSH with an op and returns it in *ret_change; bsp: it waits for its
 * clock to close. */
PSD_MUST_CHECK psd_status_t ps_partition_check_change(const ps_step_t *step,
                                                      const ps_partition_t *self,
                                                      const ps_request_t *request, bool bsp,
                                                      ps_row_change_t *ret_change,
                                                      psd_error_t *err);
/* Applies such a push. Errors: PSD_NOMEM; no value has changed. */
PSD_MUST_CHECK psd_status_t ps_partition_change(const ps_step_t *step, ps_partition_t *self,
                                                const ps_slice_t *slice,
                                                const ps_payload_t *payload, const ps_row_op_t *op);
/* Checks a PULL, with or without an op. */
PSD_MUST_CHECK psd_status_t ps_partition_check_read(const ps_step_t *step,
                                                    const ps_partition_t *self,
                                                    const ps_request_t *request, psd_error_t *err);
/* The answer to a checked PULL with an op. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_measure(const ps_step_t *step, ps_partition_t *self,
                                                 const ps_request_t *request, ps_slice_t *ret_slice,
                                                 ps_payload_t **ret_payload, uint64_t *ret_done);

/* ---- replay.c: what it writes to its log ---- */

/* True when the disk has not fallen too far behind for one more push. */
static inline bool ps_partition_log_has_room(const ps_step_t *step, const ps_partition_t *self)
{
    return !self->has_log || step->unflushed_bytes < step->args.log_queue_bytes;
}
/* Why it has no room. */
void ps_partition_log_reason(const ps_step_t *step, char *ret_text, size_t size);
/* Records in the log that a copy was created, or started again from its
 * primary's state: at a restart, earlier lives of the copy no longer count.
 * false: no memory. */
PSD_MUST_CHECK bool ps_partition_log_anew(ps_step_t *step, ps_partition_t *self);
/* Records in the log that the copy has left this shard; the log need not be
 * kept for it. */
void ps_partition_log_leave(ps_step_t *step, const ps_partition_t *self);
#endif
