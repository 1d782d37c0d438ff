/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/admission: a client's request at its partition
 *
 * It is       Whose turn it is: admission by sequence number, requests that are
 *             held and let through, what is checked before one is taken, its
 *             record and its answer.
 * It uses     replica, partition, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  How records reach other copies (replica), how they change rows
 *             (partition), connections (shard).
 * Start at    ps_partition_request in admission.c, then check.c, take.c, held.c.
 */
#ifndef PS_PROTOCOL_ADMISSION_H
#define PS_PROTOCOL_ADMISSION_H

#include "protocol/partition/local_table.h"

/* A PUSH, MARK, PULL or PROBE of a client that is known, with the right epoch.
 * It is answered, or held. */
void ps_partition_request(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* The job's workers changed. Errors: PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_partition_job(ps_step_t *step, ps_partition_t *self,
                                             const ps_job_t *job, psd_error_t *err);
/* The shard has forgotten a job that has ended: so does the partition, unless
 * pushes of it are still to be applied. */
void ps_partition_forget_job(ps_step_t *step, ps_partition_t *self, uint32_t job);
/* Takes what the gates now let through, until nothing moves. */
void ps_partition_advance(ps_step_t *step, ps_partition_t *self);
/* Tells held requests whose time has come. */
void ps_partition_tick(ps_step_t *step, ps_partition_t *self);
/* The connection is gone: answers to what is held are not written to rooms of
 * it. */
void ps_partition_forget_rooms(ps_partition_t *self, uint64_t conn);
/* ps_partition_advance, if something in the step has woken it. */
void ps_partition_go_on(ps_step_t *step, ps_partition_t *self);
/* What of the partition itself stands against a held request (its copies, its
 * log, a restore), in words; false: nothing, it waits for others to push or to
 * finish clocks. */
bool ps_partition_hindrance(const ps_step_t *step, const ps_partition_t *self,
                            const ps_request_t *request, char *ret_text, size_t size);
/* What a held request waits for, in words. */
void ps_partition_reason(const ps_step_t *step, const ps_partition_t *self,
                         const ps_request_t *request, char *ret_text, size_t size);
/* Gives the session's window up, and refuses it from now on. False: this is not
 * the time, or there is no memory; nothing changed. */
bool ps_partition_retire(ps_step_t *step, ps_partition_t *self, uint64_t session);
/* The primary is elsewhere, or nowhere: what waits is answered without using up
 * its seq: MOVED when `moved` is the table with its new map, else NO_TABLE. */
void ps_partition_turn_away(ps_step_t *step, ps_partition_t *self, const ps_local_table_t *moved);
/* The same, of a partition that is about to go. */
void ps_partition_leave(ps_step_t *step, ps_partition_t *self, const ps_local_table_t *moved);
/* Refuses what waits here for rows of the table numbered `lost`, its own or
 * another, and is of a session of before their loss. */
void ps_partition_refuse_lost(ps_step_t *step, ps_partition_t *self, uint32_t lost,
                              const ps_local_table_t *table);

/* ---- the steps of a request, between the files of this room ---- */

/* The client's window, made when it is new; NULL after the PUSH or MARK was
 * refused (forgotten session, not its first one, too many of them, no memory).
 */
ps_window_t *ps_partition_window(ps_step_t *step, ps_partition_t *self,
                                 const ps_request_t *request);
/* The job's place here, made at its first use; *ret_place is NULL for a job
 * that the shard does not know. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_place(ps_step_t *step, ps_partition_t *self, uint32_t job,
                                               ps_job_place_t **ret_place, psd_error_t *err);

/* Nothing but its turn stands before the request: the gate is open to it and
 * its level can be had. What will be refused is ready, too. */
bool ps_partition_is_ready(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* It makes a record that cannot be sent to the partition's next place, which is
 * about to take over: it waits for that. There are replicas. */
bool ps_partition_waits_for_move(const ps_step_t *step, const ps_partition_t *self,
                                 const ps_request_t *request);
/* What speaks against the request, for good: its worker, its content, what
 * would be kept. *ret_place is the job's, NULL for a request of no worker.
 * Errors: those of a refusal; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_check(ps_step_t *step, ps_partition_t *self,
                                               const ps_request_t *request,
                                               ps_job_place_t **ret_place, psd_error_t *err);
/* The same again, only for its words: the way without errors makes none. The
 * caller destroys it; NULL: no memory. */
psd_error_t *ps_partition_words(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* Takes a ready PUSH or MARK whose seq is its window's next: refuses it for
 * good, or replays a record of it; answers. false: no memory now; nothing
 * changed and nothing was answered. */
PSD_MUST_CHECK bool ps_partition_take(ps_step_t *step, ps_partition_t *self,
                                      const ps_request_t *request);
/* Serves or refuses a ready PULL. */
void ps_partition_serve(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* Puts a request on hold, or refuses it BUSY when its client or the shard
 * holds too much. True when it was held. */
bool ps_partition_hold(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);
/* A held request has been answered. */
void ps_partition_let_go(ps_step_t *step, ps_partition_t *self, ps_held_t *held);
/* A PUSH or MARK was taken: takes what waited behind it. Nothing else can go on
 * by it, so nobody else is looked at. */
void ps_partition_follow(ps_step_t *step, ps_partition_t *self, const ps_request_t *request);

#endif
