/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/admission: a client's request at its partition
 *
 * It is       Admission by sequence number, held requests, the checks before a
 *             request is taken, its record and its answer.
 * It uses     replica, partition, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  How records reach other copies (replica), how they change rows
 *             (partition), connections (shard).
 * Start at    ps_partition_request in admission.c, then check.c, take.c; held.c
 *             for requests that wait, bundle.c for a relay's bundle, which is
 *             taken whole or refused.
 */
#ifndef PS_PROTOCOL_ADMISSION_H
#define PS_PROTOCOL_ADMISSION_H

#include "protocol/partition/local_table.h"

/* Answers or holds a PUSH, MARK, PULL, PROBE or BUNDLE of a known client, with the
 * right epoch. */
void ps_partition_request(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* The job's workers changed. Errors: PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_partition_job(ps_step_t *step, ps_partition_t *self,
                                             const ps_job_t *job, psd_error_t *err);
/* The shard forgot a job that has ended. The partition forgets it too, unless
 * some of its pushes are not applied yet. */
void ps_partition_forget_job(ps_step_t *step, ps_partition_t *self, uint32_t job);
/* Takes held requests that the gates now let through, until none is left. */
void ps_partition_advance(ps_step_t *step, ps_partition_t *self);
/* Answers PARKED or DEADLINE to held requests that are due. */
void ps_partition_tick(ps_step_t *step, ps_partition_t *self);
/* The connection is gone: answers to held requests are not written to its
 * rooms. */
void ps_partition_forget_rooms(ps_partition_t *self, uint64_t conn);
/* Calls ps_partition_advance if something in the step has woken the
 * partition. */
void ps_partition_go_on(ps_step_t *step, ps_partition_t *self);
/* Why the partition itself blocks a held request (its copies, its log, a
 * restore), in words; false: it does not; the request waits for other pushes or
 * clocks. */
bool ps_partition_hindrance(const ps_step_t *step, const ps_partition_t *self,
                            const ps_request_t *request, char *ret_text, size_t size);
/* What a held request waits for, in words. */
void ps_partition_reason(const ps_step_t *step, const ps_partition_t *self,
                         const ps_request_t *request, char *ret_text, size_t size);
/* Frees the session's window, and refuses the session from now on. False: not
 * possible now, or no memory; nothing changed. */
bool ps_partition_retire(ps_step_t *step, ps_partition_t *self, uint64_t session);
/* The primary is elsewhere, or there is none: answers waiting requests without
 * consuming their seq: MOVED when `moved` is the table with its new map, else
 * NO_TABLE. */
void ps_partition_turn_away(ps_step_t *step, ps_partition_t *self, const ps_local_table_t *moved);
/* The same, for a partition that is about to leave. */
void ps_partition_leave(ps_step_t *step, ps_partition_t *self, const ps_local_table_t *moved);
/* Refuses waiting requests for rows of the table numbered `lost`, its own or
 * another, if their session is older than the loss. */
void ps_partition_refuse_lost(ps_step_t *step, ps_partition_t *self, uint32_t lost,
                              const ps_local_table_t *table);

/* ---- the steps of a request, between the files of this room ---- */

/* The client's window, created for a new client; NULL after the PUSH or MARK
 * was refused (forgotten session, not its first seq, too many windows, no
 * memory).
 */
ps_window_t *ps_partition_window(ps_step_t *step, ps_partition_t *self,
                                 const ps_request_t *request);
/* The job's place here, created at its first use; *ret_place is NULL for a job
 * that the shard does not know. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_place(ps_step_t *step, ps_partition_t *self, uint32_t job,
                                               ps_job_place_t **ret_place, psd_error_t *err);

/* What the request must wait for, beside its turn; PS_HELD_NOT: nothing, the gate
 * is open and its level is reachable, or it will be refused. */
ps_held_for_t ps_partition_why(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* The partition has what the request's level, or the table's, needs: a second copy in sync, a log
 * on disk. */
bool ps_partition_reaches_level(const ps_partition_t *self, const ps_request_t *request);
/* It need not wait. */
static inline bool ps_partition_is_ready(ps_step_t *step, ps_partition_t *self,
                                         const ps_request_t *request)
{
    return ps_partition_why(step, self, request) == PS_HELD_NOT;
}
/* The request makes a record that cannot be sent to the copy that is about to
 * take over, so it waits for the takeover. There must be replicas. */
bool ps_partition_waits_for_move(const ps_step_t *step, const ps_partition_t *self,
                                 const ps_request_t *request);
/* Checks for permanent errors: its worker, its content, the memory that it
 * would keep. *ret_place is the job's, NULL for a request of no worker.
 * Errors: those of a refusal; for now only, PSD_NOMEM, and PSD_BUSY a job that
 * this node was not told of yet. */
PSD_MUST_CHECK psd_status_t ps_partition_check(ps_step_t *step, ps_partition_t *self,
                                               const ps_request_t *request,
                                               ps_job_place_t **ret_place, psd_error_t *err);
/* Repeats the check only for the error text, because the fast path makes none.
 * The caller destroys it; NULL: no memory. */
psd_error_t *ps_partition_words(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* Takes a ready PUSH or MARK whose seq is its window's next: refuses it
 * permanently, or replays its record; then answers. false: no memory now, or
 * the job is not known yet; nothing changed and nothing was answered. */
PSD_MUST_CHECK bool ps_partition_take(ps_step_t *step, ps_partition_t *self,
                                      const ps_request_t *request);
/* Between two clocks the partition takes over what the table's spec says of them now. false: no
 * memory. */
PSD_MUST_CHECK bool ps_partition_settle_combine(ps_step_t *step, ps_partition_t *self,
                                                const ps_job_place_t *place);
/* Answers or holds a BUNDLE. It is taken whole or not at all. */
void ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
typedef enum ps_bundle_end {
    PS_BUNDLE_ANSWERED = 1, /* it was taken, or is not to be taken any more */
    PS_BUNDLE_WAITS = 2,    /* it is its turn, and it must wait as before */
    PS_BUNDLE_LATER = 3     /* no memory now; nothing changed and nothing was answered */
} ps_bundle_end_t;

/* Takes a held one if it is ready, or answers what else becomes of it. */
PSD_MUST_CHECK ps_bundle_end_t ps_partition_take_bundle(ps_step_t *step, ps_partition_t *self,
                                                        const ps_request_t *request);
/* Serves or refuses a ready PULL. */
void ps_partition_serve(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* Holds a request for that reason, or refuses it with BUSY when its client or the
 * shard holds too much. True when it was held. */
bool ps_partition_hold(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                       ps_held_for_t why);
/* Removes a held request that was answered. */
void ps_partition_let_go(ps_step_t *step, ps_partition_t *self, ps_held_t *held);
/* A PUSH or MARK was taken: takes the requests of its session that waited for
 * it. No other request can advance, so none is checked. */
void ps_partition_follow(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);

#endif
