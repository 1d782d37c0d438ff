/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_gate - one job's clocks at one partition, which decide who must wait
 *
 * What     Each client of each worker marks the clocks that it has finished, in
 *          line behind its pushes. A worker has finished what all its members
 *          have marked. The gate is open to a worker that has finished c clocks
 *          when every live worker has finished at least c - max_delay.
 * Shape    workers as in the job, ascending by rank; one mark a member
 * Units    clocks: finished periods
 * Owner    The partition. Threads: confined to one.
 * Source   Ho et al., NIPS 2013 (stale synchronous parallel).
 */
#ifndef PS_PROTOCOL_GATE_H
#define PS_PROTOCOL_GATE_H

#include "protocol/facts/job.h"

typedef struct ps_gate ps_gate_t;

/* A gate with every worker at its start. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_gate_new(const ps_job_t *job, ps_gate_t **ret_gate,
                                        psd_error_t *err);
void ps_gate_destroy(ps_gate_t **self_p);
/* The job changed: workers came, left, were lost. Marks of those that stay are
 * kept; a rank that joined again begins at its new start. Errors: PSD_NOMEM;
 * nothing changed. */
PSD_MUST_CHECK psd_status_t ps_gate_update(ps_gate_t *self, const ps_job_t *job, psd_error_t *err);
uint32_t ps_gate_job(const ps_gate_t *self);
/* True when pushes wait for their clock to close (max_delay 0). */
bool ps_gate_is_bsp(const ps_gate_t *self);
/* PSD_OK when that member of that life of that worker may work now. Errors:
 * PSD_JOB_STOPPED, PSD_NO_WORKER, PSD_WORKER_LOST. */
PSD_MUST_CHECK psd_status_t ps_gate_check(const ps_gate_t *self, uint32_t worker, uint32_t joins,
                                          uint32_t member, psd_error_t *err);
/* That life of the worker joins: it may be told that it runs before this is,
 * and waits for that here. */
bool ps_gate_expects(const ps_gate_t *self, uint32_t worker, uint32_t joins);
/* Open to one that has finished `clock` clocks. */
bool ps_gate_is_open(const ps_gate_t *self, uint64_t clock);
/* Open to that member's mark: one that goes on by one clock is held like a
 * push made in that clock; one that leaps (the table was opened late) is not,
 * for it must not wait for others that leap too. */
bool ps_gate_takes_mark(const ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock);
/* Sets a mark; a lower one than before is ignored. The worker was checked. */
void ps_gate_mark(ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock);
/* Clocks that every live worker has finished: they are closed. Never falls.
 * Without live workers: the highest that any has finished. */
uint64_t ps_gate_closed(const ps_gate_t *self);
/* The greatest clock that anybody has ever marked, workers that have gone too:
 * no push of a later one is in the rows. */
uint64_t ps_gate_highest(const ps_gate_t *self);
/* No live worker is left. */
bool ps_gate_is_deserted(const ps_gate_t *self);
/* There are live workers, and all have finished what is closed: none began anew
 * behind it after all others had gone. */
bool ps_gate_is_settled(const ps_gate_t *self);
/* Clocks finished by the i-th worker, i < ps_gate_n_workers. One that is
 * joining has those that are closed: what its rank did in an earlier life is
 * forgotten but for them. */
size_t ps_gate_n_workers(const ps_gate_t *self);
uint64_t ps_gate_finished(const ps_gate_t *self, size_t i, uint32_t *ret_worker);
/* For a copy of the gate: the job as the gate has it, without its name and
 * version, for the caller to end with ps_job_done. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_gate_job_now(const ps_gate_t *self, ps_job_t *ret_job,
                                            psd_error_t *err);
/* Marks of the i-th worker's members, borrowed until the gate changes. */
const uint64_t *ps_gate_marks(const ps_gate_t *self, size_t i, uint32_t *ret_n);
/* Sets the marks of all workers, which stand one behind the other, and how many
 * clocks are closed and which is the highest, which those that are left need
 * not show any more. Either is more when the marks say so. */
void ps_gate_restore(ps_gate_t *self, uint64_t closed, uint64_t highest, const uint64_t *marks);
/* The slowest live worker below what `clock` needs; false when there is none.
 */
bool ps_gate_slowest(const ps_gate_t *self, uint64_t clock, uint32_t *ret_worker,
                     uint64_t *ret_finished);
/* "waiting for worker 3 at clock 10, worker 5 not joined yet (needs clock 11)"
 */
void ps_gate_reason(const ps_gate_t *self, uint64_t clock, char *ret_text, size_t size);
#endif
