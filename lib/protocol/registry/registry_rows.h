/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry_rows - the state as rows, for the code that stores it
 *
 * What     The rows that the last command touched, with their current values.
 *          registry_fields.def lists the columns of each.
 * Shape    dependent rows come after their row
 */
#ifndef PS_PROTOCOL_REGISTRY_ROWS_H
#define PS_PROTOCOL_REGISTRY_ROWS_H

#include "protocol/registry/field.h"
#include "protocol/registry/registry.h"

#define PS_ROW_ENUM(NAME, table, type, n_keys, n_of, n_cut) PS_ROW_##NAME,
typedef enum ps_registry_row { PS_ROW_MAP(PS_ROW_ENUM) PS_ROW_COUNT } ps_registry_row_t;
#undef PS_ROW_ENUM

typedef struct ps_shard_row {
    uint32_t node_id;
    ps_route_t at; /* shard, tcp, ipc */
} ps_shard_row_t;

typedef struct ps_partition_row {
    uint32_t table_id;
    uint32_t partition;
    ps_copies_t copies; /* epoch, fenced */
} ps_partition_row_t;

typedef struct ps_copy_row {
    uint32_t table_id;
    uint32_t partition;
    uint32_t place; /* 0, 1, … */
    uint32_t node_id;
    ps_copy_t copy; /* all except incarnation and tcp, which are the node's */
} ps_copy_row_t;

typedef struct ps_job_row {
    ps_job_t job; /* without workers */
    uint32_t n_expected;
    uint64_t created_unix_ms;
    uint64_t ended;
} ps_job_row_t;

typedef struct ps_worker_row {
    uint32_t job_id;
    ps_worker_t worker;
} ps_worker_row_t;

typedef struct ps_job_table_row {
    uint32_t job_id;
    uint32_t place; /* 1, 2, … */
    uint32_t table_id;
} ps_job_table_row_t;

typedef struct ps_queue_row {
    uint32_t job_id;
    uint32_t queue;       /* 1, 2, … */
    ps_work_resumed_t is; /* without done slices */
} ps_queue_row_t;

typedef struct ps_done_row {
    uint32_t job_id;
    uint32_t queue;
    uint32_t slice;
} ps_done_row_t;

typedef struct ps_given_row {
    uint32_t job_id;
    uint32_t queue;
    ps_work_hold_t hold;
    bool done;
} ps_given_row_t;

typedef struct ps_rule_row {
    uint32_t principal_id;
    uint32_t place; /* 1, 2, … */
    ps_rule_t rule;
} ps_rule_row_t;

/* The receiver of row changes. `put` adds a row or overwrites the one with the
 * same keys; `cut` removes the rows whose first keys match, and their dependent
 * rows. */
typedef struct ps_row_sink {
    psd_status_t (*put)(void *context, ps_registry_row_t row, const void *value, psd_error_t *err);
    psd_status_t (*cut)(void *context, ps_registry_row_t row, const uint64_t *keys,
                        psd_error_t *err);
    void *context;
} ps_row_sink_t;

/* Gives the sink the rows that the command on trial touched, and the cluster's
 * row.
 * Errors: the sink's. */
PSD_MUST_CHECK psd_status_t ps_registry_rows(const ps_registry_t *self, const ps_row_sink_t *sink,
                                             psd_error_t *err);
/* Gives the sink every row of the state. `cut` is called too; a sink that counts
 * rows may ignore it. Errors: the sink's. */
PSD_MUST_CHECK psd_status_t ps_registry_all_rows(const ps_registry_t *self,
                                                 const ps_row_sink_t *sink, psd_error_t *err);
/* An outcome that was stored, at a load, in order. Errors: PSD_DAMAGED it is out of
 * order, or of no command; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_load_outcome(ps_registry_t *self,
                                                     const ps_outcome_t *outcome, psd_error_t *err);
/* The incarnation of a node by its id; 0: there is none. */
uint64_t ps_registry_incarnation(const ps_registry_t *self, uint32_t node_id);
#endif
