/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_counts - what psd counts, as families.def lists it
 *
 * What     A struct for each source of families.def: a member is an array with
 *          one cell for each value of its label.
 * Threads  One thread writes a struct, any may read it (base/count.h).
 */
#ifndef PS_PROTOCOL_COUNTS_H
#define PS_PROTOCOL_COUNTS_H

#include "base/count.h"

/* The cells of a member, by its label. */
#define PS_DIM_ALONE 1 /* no label */
#define PS_DIM_VERSION 1
#define PS_DIM_NAME 1
#define PS_DIM_REQUEST 5
#define PS_DIM_CODE 96    /* psd_status_t */
#define PS_DIM_KIND 96    /* operations of the control port */
#define PS_DIM_COMMAND 32 /* ps_command_kind_t */
#define PS_DIM_HELD 10
#define PS_DIM_ROLE 3
#define PS_DIM_HEALTH 3
#define PS_DIM_WORKER_STATE 5
#define PS_DIM_OUTCOME 2
#define PS_DIM_ANSWER 7

/* REQUEST */
typedef enum ps_counted {
    PS_COUNTED_PUSH = 0,
    PS_COUNTED_PULL = 1,
    PS_COUNTED_MARK = 2,
    PS_COUNTED_PROBE = 3,
    PS_COUNTED_BUNDLE = 4
} ps_counted_t;

/* HELD: what a request waits for. */
typedef enum ps_held_for {
    PS_HELD_CLOCK = 0,      /* the gate: slower workers */
    PS_HELD_ORDER = 1,      /* a push of the same client that comes first */
    PS_HELD_COPIES = 2,     /* a primary, a lease, or copies that lag */
    PS_HELD_DISK = 3,       /* the log has no room */
    PS_HELD_LEVEL = 4,      /* its level of acknowledgement cannot be reached */
    PS_HELD_RESTORE = 5,    /* rows of a checkpoint are missing */
    PS_HELD_CHECKPOINT = 6, /* a checkpoint is about to begin */
    PS_HELD_WORKER = 7,     /* this node does not know yet that its worker runs */
    PS_HELD_OTHER = 8,      /* another table that it reads */
    PS_HELD_MEMORY = 9,     /* memory was short */
    PS_HELD_NOT = 10        /* it need not wait */
} ps_held_for_t;
/* Of all but NOT. */
#define PS_HELD_NAMES                                                                              \
    "clock", "order", "copies", "disk", "level", "restore", "checkpoint", "worker", "other_table", \
        "memory"

/* ROLE */
typedef enum ps_counted_role {
    PS_ROLE_PRIMARY = 0,
    PS_ROLE_COPY = 1,
    PS_ROLE_ASIDE = 2
} ps_counted_role_t;

/* HEALTH */
typedef enum ps_counted_health {
    PS_NODES_UP = 0,
    PS_NODES_DOWN = 1,
    PS_NODES_DRAINING = 2
} ps_counted_health_t;

#define PS_CELL_COUNTER ps_count_t
#define PS_CELL_GAUGE ps_count_t
#define PS_CELL_HISTOGRAM ps_histogram_t
#define PS_CELLS(TYPE, DIM, UNIT, member, name, help) PS_CELL_##TYPE member[PS_DIM_##DIM];

#define NODE PS_CELLS
typedef struct ps_node_counts {
#include "protocol/facts/families.def"
} ps_node_counts_t;

#define SHARD PS_CELLS
typedef struct ps_shard_counts {
#include "protocol/facts/families.def"
} ps_shard_counts_t;

#define JOURNAL PS_CELLS
typedef struct ps_journal_counts {
#include "protocol/facts/families.def"
} ps_journal_counts_t;

#define CONTROL PS_CELLS
typedef struct ps_control_counts {
#include "protocol/facts/families.def"
} ps_control_counts_t;

#define TABLE PS_CELLS
typedef struct ps_table_counts {
#include "protocol/facts/families.def"
} ps_table_counts_t;

#define WORKER PS_CELLS
typedef struct ps_worker_counts {
#include "protocol/facts/families.def"
} ps_worker_counts_t;

#define JOB PS_CELLS
typedef struct ps_job_counts {
#include "protocol/facts/families.def"
} ps_job_counts_t;

#define MEMBER PS_CELLS
typedef struct ps_member_counts {
#include "protocol/facts/families.def"
} ps_member_counts_t;

#define THREAD PS_CELLS
typedef struct ps_thread_counts {
#include "protocol/facts/families.def"
} ps_thread_counts_t;
#endif
