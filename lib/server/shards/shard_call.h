/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_call - one command to a shard's thread, and its answer
 *
 * What     A heap object that travels to the shard and back: the shard does
 *          what `kind` says, fills in the answer and returns the pointer.
 * Owner    The holder of the pointer: the control part, then the shard, then
 *          the control part again. Crosses threads by ps_handover only.
 */
#ifndef PS_SERVER_SHARD_CALL_H
#define PS_SERVER_SHARD_CALL_H

#include "protocol/registry/registry.h"
#include "protocol/shard/shard.h"

/* X(NAME) */
#define PS_CALL_MAP(X)                                                 \
    X(TABLE)      /* table, spec, routes, copies: where it is now */   \
    X(DROP)       /* table */                                          \
    X(JOB)        /* job: its present state */                         \
    X(FENCE)      /* table, partition, epoch; a report has the rest */ \
    X(INSPECT)    /* answers info, partitions and lags */              \
    X(WAITING)    /* job_id; answers waiting and clocks */             \
    X(CLOCKS)     /* job_id; answers clocks */                         \
    X(CHECKPOINT) /* words; answers words */                           \
    X(SIZES)      /* answers sizes */                                  \
    X(ASIDE)      /* table: nobody gets it, its rows stay */           \
    X(UNKNOWN)    /* answers words: the tables that are kept aside */  \
    X(REACHED)    /* answers nothing: what was sent before is done */  \
    X(SLOW)       /* answers words: its slow requests */

#define PS_CALL_ENUM(NAME) PS_CALL_##NAME,
typedef enum ps_call_kind { PS_CALL_MAP(PS_CALL_ENUM) PS_CALL_COUNT } ps_call_kind_t;
#undef PS_CALL_ENUM

#define PS_CALL_TEXT_SIZE 400

typedef struct ps_shard_call {
    ps_call_kind_t kind;
    uint64_t serial; /* distinguishes a late answer from the present one */
    /* asked */
    uint32_t table;
    ps_table_spec_t spec;      /* owned */
    ps_route_t *routes;        /* owned; spec.n_partitions */
    const ps_copies_t *copies; /* the same number; borrowed until the call is
                                  back; NULL: each is where its route says */
    uint32_t partition;
    uint64_t epoch;
    ps_job_t job;           /* owned */
    bool rows_lost;         /* of the table */
    uint64_t lost_sessions; /* that used them */
    bool restoring;         /* the table is */
    uint32_t job_id;
    ps_buffer_t words; /* owned; JSON (checkpoint_task.h) */
    /* answered */
    psd_status_t status;
    char text[PS_CALL_TEXT_SIZE]; /* why, when status is not OK */
    ps_shard_answer_t answer;     /* owned */
} ps_shard_call_t;

/* Errors: PSD_NOMEM. job 0: about no job. */
PSD_MUST_CHECK psd_status_t ps_shard_call_new(ps_call_kind_t kind, uint32_t job_id,
                                              ps_shard_call_t **ret_call, psd_error_t *err);
/* TABLE with deep copies of everything except `copies` (may be NULL), which
 * is borrowed. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_call_table(const ps_table_t *table, const ps_copies_t *copies,
                                                ps_shard_call_t **ret_call, psd_error_t *err);
/* JOB with a deep copy. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_call_job(const ps_job_t *job, ps_shard_call_t **ret_call,
                                              psd_error_t *err);
/* Fills in the answer of an INSPECT or SIZES. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_call_inspect(ps_shard_call_t *self, const ps_shard_t *shard,
                                                  psd_error_t *err);
void ps_shard_call_destroy(ps_shard_call_t **self_p);
/* "TABLE" …; "?" */
const char *ps_call_name(ps_call_kind_t kind);
#endif
