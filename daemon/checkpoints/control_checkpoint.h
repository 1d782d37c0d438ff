/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the control part: the checkpoint or restore that is under way. One
 * at a time; the client that wants it asks how far it is, and when nobody does
 * for PS_CHECKPOINT_LEASE_MS it is given up. */
#ifndef PS_DAEMON_CONTROL_CHECKPOINT_H
#define PS_DAEMON_CONTROL_CHECKPOINT_H

#include "daemon/shards/checkpoint_task.h"
#include "daemon/state/control_inner.h"
#include "storage/snapshot/checkpoint.h"

/* Where checkpoints lie. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_dir(const ps_control_t *self, ps_buffer_t *ret,
                                                      psd_error_t *err);
/* "name" of the request. Errors: PSD_PROTO; PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_name(const ps_control_request_t *request,
                                                       const char **ret, psd_error_t *err);
/* Asks all shards; `words` is what ps_checkpoint_task_call knows. */
PSD_MUST_CHECK psd_status_t ps_control_ask_words(ps_control_request_t *request,
                                                 const ps_doc_t *words, psd_error_t *err);
/* Name of the node whose shard has answered as i; until the registry changes.
 */
const char *ps_control_node_of(const ps_control_t *self, const ps_control_request_t *request,
                               uint32_t i);
/* What shard i has answered, which the caller destroys. Errors: that of the
 * shard; PSD_PROTO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_read_words(const ps_control_t *self,
                                                  const ps_control_request_t *request, uint32_t i,
                                                  ps_doc_t **ret, psd_error_t *err);
/* All that were asked do it. Errors: of the one that cannot. */
PSD_MUST_CHECK psd_status_t ps_control_check_words(const ps_control_t *self,
                                                   const ps_control_request_t *request,
                                                   psd_error_t *err);
/* None is under way. Errors: PSD_BUSY naming it. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_is_free(ps_control_t *self, psd_error_t *err);
/* Begins work; takes manifest, or NULL. */
void ps_control_checkpoint_start(ps_control_t *self, ps_checkpoint_kind_t kind, const char *name,
                                 ps_doc_t **manifest_p);
/* The table that the work at hand restores; NULL: it was dropped, or is done.
 */
const ps_table_t *ps_control_restored_table(const ps_control_t *self);
/* Ends the work at hand, which cannot be finished; a table that it has made
 * does not stay. Files of a checkpoint do: shards may still write them. */
void ps_control_checkpoint_give_up(ps_control_t *self);
/* The same of a checkpoint that has failed for `rc`: all shards are told to
 * end. Called again with their answers, it removes what they have written, and
 * returns what it was told first. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_fail(ps_control_t *self,
                                                       ps_control_request_t *request,
                                                       psd_status_t rc, psd_error_t *err);
/* control_checkpoint_job.c: the job that "job" of the request names, with its
 * tables as those of the manifest; its questions about slices wait from here
 * on. Errors: PSD_NO_JOB, PSD_INVALID, PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_find_job(const ps_control_t *self,
                                                           const ps_control_request_t *request,
                                                           const ps_job_t **ret_job,
                                                           psd_error_t *err);
/* The clock that nobody has finished yet: behind `most`, which shards have
 * seen, and behind what its workers have told here. Errors: PSD_BUSY one of
 * them was not heard yet. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_next_clock(ps_control_t *self, uint64_t most,
                                                             uint64_t *ret, psd_error_t *err);
/* All partitions are behind the boundary: so are the queues, which go into the
 * manifest; who waited goes on. Errors: PSD_NO_JOB, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_take_job(ps_control_t *self, psd_error_t *err);
/* Who waited goes on. */
void ps_control_checkpoint_let_go(ps_control_t *self);
/* "job" of a restore: it waits for its workers, at the clock and with the
 * queues of the checkpoint. Errors: PSD_NO_JOB the checkpoint has none of that
 * name; as ps_registry_plan_resume. */
PSD_MUST_CHECK psd_status_t ps_control_checkpoint_resume(ps_control_t *self,
                                                         ps_control_request_t *request,
                                                         const ps_doc_t *manifest,
                                                         psd_error_t *err);
/* All files are there: not all partitions that follow a job's clocks are at the
 * clock of the manifest, for MARKs were held back too short a while, so it says
 * no more than "partition". false: no memory. */
PSD_MUST_CHECK bool ps_control_checkpoint_judge(ps_doc_t *manifest);
#endif
