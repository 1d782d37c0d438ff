/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_membership - what a client is as a worker of a job
 *
 * What     Stamps requests with worker and clock; sends marks; follows the
 *          tables that the job has opened, which a thread hears of.
 * Owner    The client; NULL there: it is no worker.
 */
#ifndef PS_CLIENT_JOB_H
#define PS_CLIENT_JOB_H

#include "client/connection/client_state.h"
#include "client/connection/heartbeat.h"
#include "protocol/facts/work.h"

/* A work queue that was opened. */
typedef struct ps_known_work {
    char name[PS_NAME_MAX + 1];
    uint64_t number; /* of the next question for a slice: the same until there
                        is a slice, so that an answer that was lost comes
                        again */
    struct {
        uint64_t epoch;
        uint32_t slice;
    } held[PS_WORK_HOLDS_MAX]; /* given to this client, and not done */
    size_t n_held;
} ps_known_work_t;

struct ps_membership {
    char job[PS_NAME_MAX + 1];
    uint32_t job_id;
    uint32_t worker;
    uint32_t member;
    uint32_t joins;
    uint32_t n_workers;
    int32_t max_delay;
    uint64_t start;         /* clocks counted as finished when it joined */
    uint64_t clock;         /* clocks finished */
    uint64_t version;       /* of the job whose tables are known */
    uint64_t asked_ms;      /* when job_tables was asked last */
    uint64_t n_barriers;    /* passed */
    ps_known_work_t *works; /* owned */
    size_t n_works;
    size_t works_capacity;
    bool idle;          /* waits for a slice and has none: clocks go on … */
    uint64_t idle_to;   /* … to this one */
    uint64_t idle_ms;   /* when the node was asked how far, or may be again */
    psd_status_t ended; /* PSD_OK, or why it is no worker any more */
    ps_beat_t *beat;    /* one holder is this */
};

/* What a worker shall be, with the environment looked up. */
typedef struct ps_wish {
    const char *job; /* borrowed */
    uint32_t worker;
    uint32_t n_workers;
    int32_t max_delay;
    bool attach;
} ps_wish_t;

/* Takes from the environment what psd_join's arguments leave to it. Errors:
 * PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_wish_resolve(const char *job, int64_t worker, uint32_t n_workers,
                                            int32_t max_delay, ps_wish_t *ret_wish,
                                            psd_error_t *err);

/* What requests made now are stamped with. */
ps_op_worker_t ps_membership_stamp(const psd_client_t *client);
/* How long a turn of the client may wait before it looks again. */
uint64_t ps_membership_wait_ms(const psd_client_t *client);
/* Looks at what the heartbeat has heard. Ends it when the client is broken: so
 * its worker is lost in time, and nobody waits for it for good. */
void ps_membership_look(psd_client_t *client);
/* idle.c: while it waits for a slice and has none. */
void ps_idle_begin(psd_client_t *client);
void ps_idle_end(psd_client_t *client);
/* Finishes a clock, or asks how far. */
void ps_idle_look(psd_client_t *client);
/* The answer to work_idle. */
void ps_idle_learn(psd_client_t *client, const ps_doc_t *reply);
/* The answer to job_tables. */
void ps_membership_tables(psd_client_t *client, const ps_doc_t *reply);
/* Takes in "tables" of a reply: their routes, and marks to those that are new.
 * Errors: PSD_PROTO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_membership_learn(psd_client_t *client, const ps_doc_t *reply,
                                                psd_error_t *err);
/* The job has opened this table: marks go to it from now on. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_membership_add_table(psd_client_t *client, ps_known_table_t *table,
                                                    psd_error_t *err);
/* Sends the marks of one finished clock. Errors: PSD_NOMEM, nothing is sent. */
PSD_MUST_CHECK psd_status_t ps_membership_mark(psd_client_t *client, psd_error_t *err);
/* The two halves of it, for a clock that ends with the pushes of a ticket which
 * are in no queue yet: those mark their partitions themselves. NULL: no ticket.
 * Errors: PSD_NOMEM, none was made. */
PSD_MUST_CHECK psd_status_t ps_membership_make_marks(psd_client_t *client, ps_ticket_t *ticket,
                                                     struct ps_errands *marks, psd_error_t *err);
void ps_membership_send_marks(psd_client_t *client, struct ps_errands *marks);
/* A mark cannot go out before the WELCOME of its shard. The first one to a
 * shard waits for that, for a short while: its worker may not call again for a
 * long one, and the others would wait for a clock that is finished. */
void ps_membership_greet(psd_client_t *client);
/* How a mark of a table ended. No further ones go to a table that is gone. */
void ps_membership_marked(psd_client_t *client, uint32_t table, psd_status_t status);
/* Sets job and job_id. false: no memory. */
PSD_MUST_CHECK bool ps_membership_name(const psd_client_t *client, ps_doc_t *question);
/* PSD_OK while the client is a worker that runs. Errors: PSD_NOT_JOINED; why it
 * ended; those of ps_client_check. */
PSD_MUST_CHECK psd_status_t ps_membership_check(const psd_client_t *client, psd_error_t *err);
/* As psd_fail, of a job that is over where nobody else is there: who comes
 * later begins another one. */
PSD_MUST_CHECK psd_status_t ps_membership_give_up(psd_client_t *client, const char *reason,
                                                  uint32_t timeout_ms, psd_error_t *err);
/* The client is no worker any more. Takes clients that are none. */
void ps_membership_end(psd_client_t *client);
#endif
