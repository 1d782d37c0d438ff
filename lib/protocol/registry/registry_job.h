/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the registry's plans about jobs; for the registry only. */
#ifndef PS_PROTOCOL_REGISTRY_JOB_H
#define PS_PROTOCOL_REGISTRY_JOB_H

#include "protocol/registry/registry_state.h"

/* A JOB command with a copy of the job at its next version. Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_command_of_job(const ps_registry_t *self,
                                              const ps_job_entry_t *entry,
                                              ps_command_t *ret_command, psd_error_t *err);
/* Errors: PSD_NO_JOB, PSD_NO_WORKER. */
PSD_MUST_CHECK psd_status_t ps_registry_worker(const ps_registry_t *self, uint32_t job,
                                               uint32_t worker, const ps_job_entry_t **ret_entry,
                                               const ps_worker_t **ret_worker, psd_error_t *err);
/* PSD_NO_WORKER: the worker's state does not allow this. */
PSD_MUST_CHECK psd_status_t ps_not_there(const ps_job_entry_t *entry, const ps_worker_t *worker,
                                         psd_error_t *err);
/* registry_job.c: declares it lost, in a command. */
void ps_worker_lose(ps_worker_t *worker);
/* The last step of a plan: leaves out the workers that are as the registry has them, where
 * the cluster's machine version lets a JOB name those alone that changed. */
void ps_command_shorten_job(const ps_registry_t *self, ps_command_t *command);
/* registry_join.c: checks a worker's join request. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_registry_check_join(const ps_join_t *join, psd_error_t *err);
/* A JOB command with a new job, all of whose workers are expected. Errors:
 * PSD_LIMIT, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_new_job(const ps_registry_t *self,
                                                     const ps_join_t *join, ps_command_t *command,
                                                     psd_error_t *err);
/* registry_resume.c: checks the queues that a job begins with, in a command;
 * and creates them in its entry. Errors: PSD_INVALID; PSD_NOMEM, the caller
 * then ends the entry.
 */
PSD_MUST_CHECK psd_status_t ps_registry_check_resumed(const ps_registry_t *self,
                                                      const ps_command_t *command,
                                                      psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_registry_make_resumed(const ps_command_t *command,
                                                     ps_job_entry_t *entry, psd_error_t *err);
#endif
