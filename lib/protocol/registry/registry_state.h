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

/* Signs of life of one worker. */
typedef struct ps_seen {
    uint64_t since_ms; /* last sign; before it, when its state began */
    uint64_t clock;    /* what its last heartbeat said */
    bool heard;        /* there was one in this life; that it runs is one */
} ps_seen_t;

typedef struct ps_job_entry {
    ps_job_t job;
    uint32_t n_expected;      /* workers counted on at its start */
    uint64_t created_unix_ms; /* its start */
    ps_seen_t *seen;          /* owned; beside job.workers */
    size_t n_live;            /* workers that are live */
    uint64_t ended;           /* its place in the order of ends; 0: it runs */
    uint32_t *tables;         /* owned; in the order of opening */
    size_t n_tables;
    size_t max_tables;       /* room in the array */
    struct ps_queue *queues; /* owned; work queues, by their numbers from 1 */
    size_t n_queues;
    size_t max_queues;
} ps_job_entry_t;

/* What is known of a partition's copies in their epoch, and not stored; each
 * change of the copies begins it anew. Copies are counted as they lie. */
typedef struct ps_watch {
    uint64_t prefer;                   /* of equal copies, the one to promote: its
                                          incarnation; 0: any */
    uint64_t lsn[PS_COPIES_MAX];       /* of those that have answered a fence */
    uint64_t lsn_epoch[PS_COPIES_MAX]; /* the epoch of that record */
    uint64_t since_ms[PS_COPIES_MAX];  /* when a look first saw that the copy
                                          catches up; 0: not yet. Stays as long
                                          as it does so, by the same primary */
    uint64_t asked_ms;                 /* when the fence was last told */
    uint8_t asked;                     /* bit i: copy i was told at asked_ms */
    uint8_t answered;                  /* bit i: lsn[i] is known, or … */
    uint8_t partial;                   /* … bit i: it says that it is not whole */
    uint8_t caught_up;                 /* bit i: the primary says that it has all */
    uint8_t out;                       /* bit i: the primary says that it lags, or
                                          has other records */
    uint8_t diverged;                  /* bit i: of those that are out, it begins anew */
    uint64_t unreached_until_ms;       /* so long a client's word holds that it does not
                                          reach the primary */
    uint64_t relieved_ms;              /* when a primary was last replaced for that; stays
                                          for good */
} ps_watch_t;
static_assert(PS_COPIES_MAX <= 8, "a bit for each copy");

struct ps_registry {
    ps_registry_args_t args;
    bool has_cluster; /* PS_COMMAND_CLUSTER was applied */
    char cluster[PS_NAME_MAX + 1];
    ps_id_t uuid;
    uint64_t created_unix_ms;
    uint64_t epoch;
    uint64_t seen_epoch;         /* the greatest that a node has named; the next is
                                    above it */
    bool restless;               /* something has changed since decide found nothing */
    uint64_t rest_until_ms;      /* when time alone may make something to decide */
    uint64_t looked_ms;          /* the last decide */
    uint64_t hand_after_ms;      /* no primary is moved before */
    uint64_t copied_bytes_per_s; /* at which copies were made lately, each; 0:
                                    none was that says anything */
    bool evening;                /* nodes are evened out until they are even */
    bool still;                  /* not now: a checkpoint wants partitions to stay */
    uint64_t sessions;           /* stored: may be given out */
    uint64_t next_session;       /* to be given next; sessions + 1: none is left */
    uint64_t old_sessions;       /* may have been given by earlier starts */
    uint32_t last_table;         /* highest id ever given */
    uint32_t last_job;           /* highest id ever given */
    uint64_t n_ended;            /* jobs that ever ended */
    struct ps_journal *journal;  /* owned; of the command that is applied */
    ps_node_t *nodes;            /* owned */
    size_t n_nodes;
    size_t max_nodes;
    ps_table_t *tables; /* owned */
    size_t n_tables;
    size_t max_tables;
    ps_job_entry_t *jobs; /* owned */
    size_t n_jobs;
    size_t max_jobs;
};

/* registry.c: free what they own and zero them. */
void ps_node_done(ps_node_t *self);
void ps_table_done(ps_table_t *self);
void ps_job_entry_done(ps_job_entry_t *self);
/* A deep copy that is normal: shards numbered, of this node's incarnation.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_node_copy(const ps_node_t *self, ps_node_t *ret_node,
                                         psd_error_t *err);

/* registry_view.c: NULL when there is none. */
ps_node_t *ps_registry_find_node(const ps_registry_t *self, const char *name);
ps_table_t *ps_registry_find_table(const ps_registry_t *self, uint32_t id);
ps_job_entry_t *ps_registry_find_job(const ps_registry_t *self, uint32_t id);
/* The newest of that name. */
ps_job_entry_t *ps_registry_find_job_named(const ps_registry_t *self, const char *name);

/* Each command's two functions: does it fit the state (errors: PSD_DAMAGED or
 * what a plan would say), and what it does, once checked and with a journal
 * begun (error: PSD_NOMEM; the caller undoes what was done by then). */
#define PS_COMMAND_FUNCTIONS(NAME, number, word, event)                            \
    PSD_MUST_CHECK psd_status_t ps_command_check_##word(                           \
        const ps_registry_t *self, const ps_command_t *command, psd_error_t *err); \
    PSD_MUST_CHECK psd_status_t ps_command_apply_##word(                           \
        ps_registry_t *self, const ps_command_t *command, psd_error_t *err);
PS_COMMAND_MAP(PS_COMMAND_FUNCTIONS)
#undef PS_COMMAND_FUNCTIONS

/* registry.c: above everything that was told so far. */
uint64_t ps_registry_next_epoch(const ps_registry_t *self);
/* registry_plan.c: an empty command of the present epoch. */
ps_command_t ps_registry_command(const ps_registry_t *self, ps_command_kind_t kind,
                                 uint64_t unix_ms);

/* registry_copies.c: copies in commands. Errors: PSD_DAMAGED. */
PSD_MUST_CHECK psd_status_t ps_registry_check_copies(const ps_registry_t *self,
                                                     const ps_command_t *command, psd_error_t *err);
/* Changes of COPIES, NODE or NODE_STATE, and that those of the latter two are
 * all that must change. */
PSD_MUST_CHECK psd_status_t ps_registry_check_changes(const ps_registry_t *self,
                                                      const ps_command_t *command,
                                                      psd_error_t *err);
/* A table's copies as they are in a command become its own: endpoints, routes.
 */
PSD_MUST_CHECK psd_status_t ps_registry_settle_copies(const ps_registry_t *self,
                                                      const ps_table_t *from, ps_table_t *table,
                                                      psd_error_t *err);
/* What a node must be. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_node_check(const ps_node_t *node, psd_error_t *err);

/* A dropped table is no longer open anywhere. */
PSD_MUST_CHECK psd_status_t ps_registry_close_table(ps_registry_t *self, uint32_t table,
                                                    psd_error_t *err);
#endif
