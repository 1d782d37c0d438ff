/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/checkpoints: checkpoints, from the registry's side
 *
 * It is       The operations create, restore, verify, list, inspect, drop and
 *             backup; the steps of the one that is under way, with commands to all
 *             shards; the boundary of a job, its clock and its queues; the manifest.
 * It uses     state, quorum, shards (checkpoint_task.h), lib/storage/snapshot,
 *             lib/storage/registry, lib/protocol/facts, lib/base.
 * It ignores  Rows, which shards write and read in threads of their own
 *             (lib/server/threads/piece_thread.c), and the layout of files
 *             (lib/storage/snapshot).
 * Start at    control_checkpoint.c and control_restore.c, then
 *             control_checkpoint_look.c for the steps; control_checkpoint_work.c
 *             for one that fails or is given up.
 */
/* Private to the control part: the checkpoint or restore that is under way.
 * There is one at a time. Its client keeps asking for the progress; after
 * PS_CHECKPOINT_LEASE_MS without a question the work is cancelled. */
#ifndef PS_SERVER_CONTROL_CHECKPOINT_H
#define PS_SERVER_CONTROL_CHECKPOINT_H

#include "server/shards/checkpoint_task.h"
#include "server/state/control_inner.h"
#include "storage/snapshot/checkpoint.h"

/* Where checkpoints lie. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_dir(const ps_control_t *self, ps_buffer_t *ret,
                                                      psd_error_t *err);
/* "name" of the request. Errors: PSD_PROTO; PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_name(const ps_control_request_t *request,
                                                       const char **ret, psd_error_t *err);
/* Asks all shards; `words` is a command of ps_checkpoint_task_call. */
PSD_MUST_CHECK psd_status_t ps_control_ask_words(ps_control_request_t *request,
                                                 const ps_doc_t *words, psd_error_t *err);
/* Name of the node whose shard gave answer i; valid until the registry changes. */
const char *ps_control_node_of(const ps_control_t *self, const ps_control_request_t *request,
                               uint32_t i);
/* The answer of shard i, which the caller destroys. Errors: the shard's;
 * PSD_PROTO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_read_words(const ps_control_t *self,
                                                  const ps_control_request_t *request, uint32_t i,
                                                  ps_doc_t **ret, psd_error_t *err);
/* PSD_OK when every shard that was asked does it. Errors: those of the first that cannot. */
PSD_MUST_CHECK psd_status_t ps_control_check_words(const ps_control_t *self,
                                                   const ps_control_request_t *request,
                                                   psd_error_t *err);
/* PSD_OK when no work is under way. Errors: PSD_BUSY naming it. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_is_free(ps_control_t *self, psd_error_t *err);
/* Begins work; takes manifest, or NULL. */
void ps_control_checkpoint_start(ps_control_t *self, ps_checkpoint_kind_t kind, const char *name,
                                 ps_doc_t **manifest_p);
/* The table that the present work restores; NULL: it was dropped, or is done. */
const ps_table_t *ps_control_restored_table(const ps_control_t *self);
/* Ends the present work, which cannot be finished, and drops the table that
 * it has made. Files of a checkpoint stay: shards may still write them. */
void ps_control_checkpoint_give_up(ps_control_t *self);
/* The same for a checkpoint that has failed with `rc`: tells all shards to
 * end. Called again with their answers, it removes their files and returns
 * the first `rc`. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_fail(ps_control_t *self,
                                                       ps_control_request_t *request,
                                                       psd_status_t rc, psd_error_t *err);
/* control_checkpoint_job.c: the job that "job" of the request names, whose
 * tables become those of the manifest. From here on its questions about
 * slices wait. Errors: PSD_NO_JOB, PSD_INVALID, PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_find_job(const ps_control_t *self,
                                                           const ps_control_request_t *request,
                                                           const ps_job_t **ret_job,
                                                           psd_error_t *err);
/* The first clock that no worker has finished: after `most`, which shards
 * have seen, and after the clocks that its workers reported here. Errors:
 * PSD_BUSY one of them has not reported yet. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_next_clock(ps_control_t *self, uint64_t most,
                                                             uint64_t *ret, psd_error_t *err);
/* All partitions have passed the boundary, and so have the queues: puts the
 * queues into the manifest and answers the questions that waited. Errors:
 * PSD_NO_JOB, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_take_job(ps_control_t *self, psd_error_t *err);
/* Answers the questions that waited. */
void ps_control_checkpoint_let_go(ps_control_t *self);
/* "job" of a restore: the job then waits for its workers, at the clock and
 * with the queues of the checkpoint. Errors: PSD_NO_JOB the checkpoint has
 * none of that name; as ps_registry_plan_resume. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_resume(ps_control_t *self,
                                                         ps_control_request_t *request,
                                                         const ps_doc_t *manifest,
                                                         psd_error_t *err);
/* All files are there. MARKs may have been held back too briefly, so that
 * some partitions of a job are not at the clock of the manifest; it then
 * says only "partition". false: no memory. */
PSD_MUST_CHECK bool ps_control_checkpoint_judge(ps_doc_t *manifest);
#endif
