/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry's state, for the files of the registry only
 *
 * Shape    nodes in the order of their first start; tables and jobs ascending
 *          by id
 */
#ifndef PS_PROTOCOL_REGISTRY_STATE_H
#define PS_PROTOCOL_REGISTRY_STATE_H

#include <assert.h>

#include "protocol/registry/registry.h"

/* Numbers are stored as SQLite's signed integers. */
#define PS_STORED_MAX ((uint64_t)INT64_MAX)

/* Signs of life of one worker, and when it changed. */
typedef struct ps_seen {
    uint64_t since_ms; /* last sign; before the first, when its state began */
    uint64_t clock;    /* the clock of its last heartbeat */
    bool heard;        /* there was a sign in this life; its start counts as one */
    uint64_t version;  /* the job's, with which this worker last changed, or was loaded */
} ps_seen_t;

typedef struct ps_job_entry {
    ps_job_t job;
    uint32_t n_expected;      /* workers expected at its start */
    uint64_t created_unix_ms; /* its start */
    ps_seen_t *seen;          /* owned; parallel to job.workers */
    size_t n_live;            /* workers that are live */
    uint64_t ended;           /* its place in the order of ends; 0: not ended */
    uint32_t *tables;         /* owned; in the order of opening */
    size_t n_tables;
    size_t max_tables;       /* room in the array */
    uint64_t tables_version; /* the job's version when its tables last changed, or were loaded */
    struct ps_queue *queues; /* owned; work queues, by their numbers from 1 */
    size_t n_queues;
    size_t max_queues;
} ps_job_entry_t;

/* Volatile knowledge about a partition's copies in their epoch; each change of
 * the copies resets it. Indexes are those of the copies. */
typedef struct ps_copy_watch {
    uint64_t prefer;                   /* of equal copies, the one to promote: its
                                          incarnation; 0: any */
    uint64_t lsn[PS_COPIES_MAX];       /* of those that have answered a fence */
    uint64_t lsn_epoch[PS_COPIES_MAX]; /* the epoch of that record */
    uint64_t since_ms[PS_COPIES_MAX];  /* when a pass first saw the copy catching up; 0: not yet.
                                          Kept as long as it catches up from the same primary */
    uint64_t asked_ms;                 /* when the fence was last sent */
    uint8_t asked;                     /* bit i: copy i was asked at asked_ms */
    uint8_t answered;                  /* bit i: lsn[i] is known, or … */
    uint8_t partial;                   /* … bit i: it reports that it is not whole */
    uint8_t caught_up;                 /* bit i: the primary reports that it has all */
    uint8_t out;                       /* bit i: the primary reports that it lags, or has
                                          diverged */
    uint8_t diverged;                  /* bit i: of those that are out, it starts again from rows */
    uint64_t unreached_until_ms;       /* until then a client's report is valid that it cannot reach
                                          the primary */
    uint64_t relieved_ms;              /* when a primary was last replaced for that; never reset */
} ps_copy_watch_t;
static_assert(PS_COPIES_MAX <= 8, "a bit for each copy");

#define PS_FOUND_MAX 1024 /* a power of two */

struct ps_registry {
    ps_registry_args_t args; /* with the cluster's settings */
    ps_registry_args_t own;  /* without */
    ps_setting_t settings[PS_SETTINGS_MAX];
    size_t n_settings;
    ps_principal_t *principals; /* owned; the one with id i at i - 1 */
    size_t n_principals;
    size_t max_principals;
    uint64_t auth_epoch;  /* the greatest of theirs; 0: there are none */
    bool has_cluster;     /* PS_COMMAND_CLUSTER was applied */
    ps_cluster_t cluster; /* its epoch is the one below */
    uint64_t epoch;
    uint64_t seen_epoch;         /* the greatest epoch that a node has named; the next is above
                                    it */
    bool dirty;                  /* dirty: something has changed since decide found nothing */
    uint64_t rest_until_ms;      /* when time alone may require a decision */
    uint64_t looked_ms;          /* the last decide, or listen */
    uint64_t listens_ms;         /* since then it hears the nodes, while it leads and while it does
                                    not; 0: it does not */
    uint64_t hand_after_ms;      /* no primary moves before this */
    uint64_t copied_bytes_per_s; /* rate at which recent copies were made, each; 0: no usable
                                    measurement yet */
    bool rebalancing;            /* rebalancing, until the nodes are even */
    bool still;                  /* rebalancing paused: a checkpoint needs partitions to stay */
    uint64_t revision;           /* of the last change of a table; since the load */
    uint64_t next_session;       /* the next to give; sessions + 1: none is left */
    uint64_t old_sessions;       /* may have been given by earlier starts */
    uint64_t n_ended;            /* jobs that ever ended */
    struct ps_registry_journal *journal; /* owned; of the command being applied */
    uint16_t *found;                     /* owned; PS_FOUND_MAX hints, each where a node with such
                                            an incarnation was in `nodes` */
    ps_node_t *nodes;                    /* owned */
    size_t n_nodes;
    size_t max_nodes;
    ps_table_t *tables; /* owned */
    size_t n_tables;
    size_t max_tables;
    ps_job_entry_t *jobs; /* owned */
    size_t n_jobs;
    size_t max_jobs;
    ps_outcome_t *outcomes; /* owned; a ring of PS_OUTCOMES_KEPT, by their ids; NULL: none yet */
    uint64_t n_outcomes;    /* ever; the id of the last */
};

/* Frees its contents and zeroes it. */
void ps_job_entry_done(ps_job_entry_t *self);
/* A normalized deep copy: shards numbered, with this node's incarnation.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_node_copy(const ps_node_t *self, ps_node_t *ret_node,
                                         psd_error_t *err);

/* registry_view.c: NULL when there is none. */
ps_node_t *ps_registry_find_node(const ps_registry_t *self, const char *name);
ps_table_t *ps_registry_find_table(const ps_registry_t *self, uint32_t id);
ps_job_entry_t *ps_registry_find_job(const ps_registry_t *self, uint32_t id);
/* The newest of that name. */
ps_job_entry_t *ps_registry_find_job_named(const ps_registry_t *self, const char *name);

/* Each command's two functions: check that it fits the state (errors:
 * PSD_DAMAGED or those of a plan), and apply it, after the check and with a
 * journal begun (error: PSD_NOMEM; the caller undoes the partial change). */
#define PS_COMMAND_FUNCTIONS(NAME, number, word, event)                            \
    PSD_MUST_CHECK psd_status_t ps_command_check_##word(                           \
        const ps_registry_t *self, const ps_command_t *command, psd_error_t *err); \
    PSD_MUST_CHECK psd_status_t ps_command_apply_##word(                           \
        ps_registry_t *self, const ps_command_t *command, psd_error_t *err);
PS_COMMAND_MAP(PS_COMMAND_FUNCTIONS)
#undef PS_COMMAND_FUNCTIONS

/* registry_values.c: above every epoch sent so far. */
uint64_t ps_registry_next_epoch(const ps_registry_t *self);
/* An empty command of the current epoch. */
ps_command_t ps_registry_command(const ps_registry_t *self, ps_command_kind_t kind,
                                 uint64_t unix_ms);
/* `what` names whose name it is. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_registry_check_name(const char *name, const char *what,
                                                   psd_error_t *err);

/* registry_table.c: a table may combine like that in a cluster of this machine version.
 * Errors: PSD_UNSUPPORTED. */
PSD_MUST_CHECK psd_status_t ps_registry_check_combine(const ps_registry_t *self,
                                                      ps_combine_t combine, psd_error_t *err);

/* registry_outcome.c: makes room for outcomes before the first one. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_hold_outcomes(ps_registry_t *self, psd_error_t *err);
/* What the command will have made or changed; call it before. */
uint64_t ps_registry_number_of(const ps_registry_t *self, const ps_command_t *command);
/* Adds the outcome of a command, if it answers a request. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_note_outcome(ps_registry_t *self,
                                                     const ps_command_t *command, uint64_t number,
                                                     psd_error_t *err);
/* By its id; NULL when it is not kept. */
const ps_outcome_t *ps_registry_outcome(const ps_registry_t *self, uint64_t id);

/* registry_copies.c: copies in commands. Errors: PSD_DAMAGED. */
PSD_MUST_CHECK psd_status_t ps_registry_check_copies(const ps_registry_t *self,
                                                     const ps_command_t *command, psd_error_t *err);
/* Checks the changes of COPIES, NODE or NODE_STATE, and that those of the
 * latter two are complete. */
PSD_MUST_CHECK psd_status_t ps_registry_check_changes(const ps_registry_t *self,
                                                      const ps_command_t *command,
                                                      psd_error_t *err);
/* Completes a table's copies from a command: endpoints, routes.
 */
PSD_MUST_CHECK psd_status_t ps_registry_settle_copies(ps_registry_t *self, const ps_table_t *from,
                                                      ps_table_t *table, psd_error_t *err);
/* registry_table.c: takes a table that exists out of the state. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_drop_table(ps_registry_t *self, uint32_t id,
                                                   psd_error_t *err);
/* A dropped table is no longer open anywhere. */
PSD_MUST_CHECK psd_status_t ps_registry_close_table(ps_registry_t *self, uint32_t table,
                                                    psd_error_t *err);
#endif
