/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a request inside a partition, shared by partition.c (admission),
 * partition_check.c (gate, content), partition_take.c (log, rows),
 * partition_ops.c (rows where they lie) and partition_held.c (waiting).
 */
#ifndef PS_PROTOCOL_PARTITION_WORK_H
#define PS_PROTOCOL_PARTITION_WORK_H

#include "model/store/store_ops.h"
#include "protocol/shard/shard_state.h"

/* What comes after these rows finds its pages there, if somebody has the time.
 * Nothing depends on it. */
void ps_partition_ask_to_fill(ps_shard_t *shard, ps_partition_t *self);
/* Forgets every window and every job. */
void ps_partition_clear(ps_partition_t *self);
/* The pushes of its open clocks count no more. */
void ps_partition_uncount_open(ps_shard_t *shard, const ps_partition_t *self);
/* Throws away rows, windows and jobs: it is as new, behind no record. false: no
 * memory; nothing changed. */
PSD_MUST_CHECK bool ps_partition_begin_anew(ps_shard_t *shard, ps_partition_t *self);
/* Gives the session's window up, and refuses it from now on. False: this is not
 * the time, or there is no memory; nothing changed. */
bool ps_partition_retire(ps_shard_t *shard, ps_partition_t *self, uint64_t session);
/* The client's window, made when it is new; NULL after the PUSH or MARK was
 * refused (forgotten session, not its first one, too many of them, no memory).
 */
ps_window_t *ps_partition_window(ps_shard_t *shard, ps_partition_t *self,
                                 const ps_request_t *request);
/* The job's place here, made at its first use; *ret_place is NULL for a job
 * that the shard does not know. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_place(ps_shard_t *shard, ps_partition_t *self,
                                               uint32_t job, ps_job_place_t **ret_place,
                                               psd_error_t *err);

/* Nothing but its turn stands before the request: the gate is open to it and
 * its level can be had. What will be refused is ready, too. */
bool ps_partition_is_ready(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request);
/* It makes a record that cannot be sent to the partition's next place, which is
 * about to take over: it waits for that. There are replicas. */
bool ps_partition_waits_for_move(const ps_shard_t *shard, const ps_partition_t *self,
                                 const ps_request_t *request);
/* What speaks against the request, for good: its worker, its content, what
 * would be kept. *ret_place is the job's, NULL for a request of no worker.
 * Errors: those of a refusal; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_check(ps_shard_t *shard, ps_partition_t *self,
                                               const ps_request_t *request,
                                               ps_job_place_t **ret_place, psd_error_t *err);
/* The same again, only for its words: the way without errors makes none. The
 * caller destroys it; NULL: no memory. */
psd_error_t *ps_partition_words(ps_shard_t *shard, ps_partition_t *self,
                                const ps_request_t *request);
/* Takes a ready PUSH or MARK whose seq is its window's next: refuses it for
 * good, or replays a record of it; answers. false: no memory now; nothing
 * changed and nothing was answered. */
PSD_MUST_CHECK bool ps_partition_take(ps_shard_t *shard, ps_partition_t *self,
                                      const ps_request_t *request);
/* Serves or refuses a ready PULL. */
void ps_partition_serve(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request);
/* partition_ops.c: the other partition of AXPY and DOT. Errors: PSD_INVALID it
 * is not here; PSD_ROWS_LOST the session used rows of that table which are
 * gone. */
PSD_MUST_CHECK psd_status_t ps_partition_other(const ps_shard_t *shard, const ps_partition_t *self,
                                               const ps_request_t *request,
                                               ps_partition_t **ret_other, psd_error_t *err);
/* A PUSH with an op, which *ret_change then is; bsp: it waits for its clock to
 * close. */
PSD_MUST_CHECK psd_status_t ps_partition_check_change(const ps_shard_t *shard,
                                                      const ps_partition_t *self,
                                                      const ps_request_t *request, bool bsp,
                                                      ps_change_t *ret_change, psd_error_t *err);
/* Does what such a push asks for. Errors: PSD_NOMEM; no value has changed. */
PSD_MUST_CHECK psd_status_t ps_partition_change(const ps_shard_t *shard, ps_partition_t *self,
                                                const ps_slice_t *slice,
                                                const ps_payload_t *payload, const ps_row_op_t *op);
/* Clocks of the job that are closed here, and in the rows. */
uint64_t ps_partition_closed(const ps_partition_t *self, uint32_t job);
/* The greatest clock of the job that was marked here, so of a push in the rows. */
uint64_t ps_partition_highest(const ps_partition_t *self, uint32_t job);
/* An image that waits begins, if it is time. Nothing may have changed since the
 * clock that it waits for was closed. */
void ps_partition_image_try(const ps_shard_t *shard, ps_partition_t *self);
/* A PULL, with an op or without. */
PSD_MUST_CHECK psd_status_t ps_partition_check_read(const ps_shard_t *shard,
                                                    const ps_partition_t *self,
                                                    const ps_request_t *request, psd_error_t *err);
/* What a checked PULL with an op answers. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_partition_measure(const ps_shard_t *shard, ps_partition_t *self,
                                                 const ps_request_t *request, ps_slice_t *ret_slice,
                                                 ps_payload_t **ret_payload, uint64_t *ret_done);
/* Puts a request on hold, or refuses it BUSY when its client or the shard
 * holds too much. True when it was held. */
bool ps_partition_hold(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request);
/* A held request has been answered. */
void ps_partition_let_go(ps_shard_t *shard, ps_partition_t *self, ps_held_t *held);
/* A PUSH or MARK was taken: takes what waited behind it. Nothing else can go on
 * by it, so nobody else is looked at. */
void ps_partition_follow(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request);
/* The primary is elsewhere, or nowhere: what waits is answered without using up
 * its seq: MOVED when `moved` is the table with its new map, else NO_TABLE. */
void ps_partition_turn_away(ps_shard_t *shard, ps_partition_t *self, const ps_shard_table_t *moved);
/* The same, of a partition that is about to go. */
void ps_partition_leave(ps_shard_t *shard, ps_partition_t *self, const ps_shard_table_t *moved);
/* Refuses what waits here for rows of the table numbered `lost`, its own or
 * another, and is of a session of before their loss. */
void ps_partition_refuse_lost(ps_shard_t *shard, ps_partition_t *self, uint32_t lost,
                              const ps_shard_table_t *table);

#endif
