/* SPDX-License-Identifier: Apache-2.0 */
/* ps_family - the rows of families.def as data */
#ifndef PS_SERVER_FAMILY_H
#define PS_SERVER_FAMILY_H

#include <stdbool.h>

#include "protocol/facts/counts.h"

/* X(SOURCE, its struct, its labels for docs/metrics.md) */
#define PS_SOURCES(X)                            \
    X(NODE, ps_node_counts_t, "")                \
    X(THREAD, ps_thread_counts_t, "thread, tid") \
    X(SHARD, ps_shard_counts_t, "shard")         \
    X(JOURNAL, ps_journal_counts_t, "shard")     \
    X(CONTROL, ps_control_counts_t, "")          \
    X(MEMBER, ps_member_counts_t, "node")        \
    X(JOB, ps_job_counts_t, "job")               \
    X(TABLE, ps_table_counts_t, "table")         \
    X(WORKER, ps_worker_counts_t, "job, worker")

/* X(DIM, label) */
#define PS_DIMS(X)           \
    X(ALONE, "")             \
    X(VERSION, "version")    \
    X(NAME, "name")          \
    X(REQUEST, "request")    \
    X(CODE, "code")          \
    X(KIND, "kind")          \
    X(COMMAND, "command")    \
    X(HELD, "for")           \
    X(ROLE, "role")          \
    X(HEALTH, "state")       \
    X(WORKER_STATE, "state") \
    X(OUTCOME, "outcome")    \
    X(ANSWER, "status")

#define PS_SOURCE_ENUM(SOURCE, type, labels) PS_SOURCE_##SOURCE,
typedef enum ps_metric_source { PS_SOURCES(PS_SOURCE_ENUM) PS_N_SOURCES } ps_metric_source_t;
#undef PS_SOURCE_ENUM
#define PS_DIM_ENUM(DIM, label) PS_BY_##DIM,
typedef enum ps_dim { PS_DIMS(PS_DIM_ENUM) PS_N_DIMS } ps_dim_t;
#undef PS_DIM_ENUM
typedef enum ps_family_type {
    PS_TYPE_COUNTER = 0,
    PS_TYPE_GAUGE = 1,
    PS_TYPE_HISTOGRAM = 2
} ps_family_type_t;
typedef enum ps_family_unit { PS_UNIT_ONE = 0, PS_UNIT_MS = 1, PS_UNIT_NS = 2 } ps_family_unit_t;

typedef struct ps_family {
    const char *name;
    const char *help;
    ps_metric_source_t source;
    ps_family_type_t type;
    ps_dim_t dim;
    ps_family_unit_t unit;
    size_t n_cells;
    size_t offset; /* of the first cell, in the source's struct */
} ps_family_t;

extern const ps_family_t ps_families[];
extern const size_t ps_n_families;

/* The label of a dimension; "": none. */
const char *ps_dim_label(ps_dim_t dim);
/* The value of the label for the i-th cell; NULL: that cell has none, and is not
 * shown. Not for KIND and NAME. */
const char *ps_dim_value(ps_dim_t dim, size_t i);
/* Cells that are 0 are not shown: there are many. */
static inline bool ps_dim_is_sparse(ps_dim_t dim)
{
    return dim == PS_BY_CODE || dim == PS_BY_KIND || dim == PS_BY_COMMAND || dim == PS_BY_ANSWER;
}
#endif
