/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_gate - one job's clocks at one partition, which decide which worker waits
 *
 * What     Each client of each worker marks the clocks that it has finished, in
 *          order after its pushes. A worker has finished a clock when all its
 *          members have marked it. The gate is open to a worker that has
 *          finished c clocks when every live worker has finished at least c -
 *          max_delay.
 * Shape    workers as in the job, ascending by rank; one mark per member
 * Units    clocks: finished periods
 * Owner    The partition. Threads: confined to one.
 * Source   Ho et al., NIPS 2013 (stale synchronous parallel).
 */
#ifndef PS_PROTOCOL_GATE_H
#define PS_PROTOCOL_GATE_H

#include "protocol/facts/job.h"

typedef struct ps_gate ps_gate_t;

/* Makes a gate with every worker at its start. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_gate_new(const ps_job_t *job, ps_gate_t **ret_gate,
                                        psd_error_t *err);
void ps_gate_destroy(ps_gate_t **self_p);
/* The job changed: workers joined, left or were lost. Keeps the marks of
 * workers that stay; a rank that joined again begins at its new start. Errors:
 * PSD_NOMEM; nothing changed. */
PSD_MUST_CHECK psd_status_t ps_gate_update(ps_gate_t *self, const ps_job_t *job, psd_error_t *err);
uint32_t ps_gate_job(const ps_gate_t *self);
/* True when pushes wait for their clock to close (max_delay 0). */
bool ps_gate_is_bsp(const ps_gate_t *self);
/* PSD_OK when that member of that life of that worker may work now. Errors:
 * PSD_JOB_STOPPED, PSD_NO_WORKER, PSD_WORKER_LOST. */
PSD_MUST_CHECK psd_status_t ps_gate_check(const ps_gate_t *self, uint32_t worker, uint32_t joins,
                                          uint32_t member, psd_error_t *err);
/* True when that life of the worker is joining: the worker may learn that it
 * runs before this shard does; its requests then wait here. */
bool ps_gate_expects(const ps_gate_t *self, uint32_t worker, uint32_t joins);
/* Whether the gate is open to a worker that has finished `clock` clocks. */
bool ps_gate_is_open(const ps_gate_t *self, uint64_t clock);
/* Whether the gate is open to that member's mark. A mark that advances by one
 * clock is held like a push of that clock. A mark that leaps (the table was
 * opened late) is not held, because it must not wait for others that leap
 * too. */
bool ps_gate_takes_mark(const ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock);
/* True when the member has finished that many clocks here. The worker was checked. */
bool ps_gate_is_at(const ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock);
/* The clocks that the member has finished here. The worker was checked. */
uint64_t ps_gate_mark_of(const ps_gate_t *self, uint32_t worker, uint32_t member);
/* How many clocks every live worker must have finished for the gate to be open to one that has
 * finished `clock`. */
uint64_t ps_gate_needs(const ps_gate_t *self, uint64_t clock);
/* Sets a mark; a lower one than before is ignored. The worker was checked. */
void ps_gate_mark(ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock);
/* Closed clocks: the number that every live worker has finished. Never
 * decreases. Without live workers: the highest number that any worker
 * finished. */
uint64_t ps_gate_closed(const ps_gate_t *self);
/* The greatest clock that any worker ever marked, including workers that are
 * gone: the rows contain no push of a later clock. */
uint64_t ps_gate_highest(const ps_gate_t *self);
/* True when no live worker is left. */
bool ps_gate_is_deserted(const ps_gate_t *self);
/* True when there are live workers and all have finished the closed clocks:
 * none started again below them after all others were gone. */
bool ps_gate_is_settled(const ps_gate_t *self);
/* Clocks finished by the i-th worker, i < ps_gate_n_workers. A joining worker
 * counts the closed clocks as finished: the rest of its rank's earlier life is
 * forgotten. */
size_t ps_gate_n_workers(const ps_gate_t *self);
uint64_t ps_gate_finished(const ps_gate_t *self, size_t i, uint32_t *ret_worker);
/* True when the i-th worker did the clock that begins after `clock` finished ones: it began no
 * later, and has finished it. */
bool ps_gate_took_part(const ps_gate_t *self, size_t i, uint64_t clock);
/* True when more of that clock may come of the i-th worker: it lives, and has not finished the
 * clock that begins after `clock` finished ones. */
bool ps_gate_expects_more(const ps_gate_t *self, size_t i, uint64_t clock);
/* The job as the gate knows it, without name and version, to copy the gate. The
 * caller ends it with ps_job_done. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_gate_job_now(const ps_gate_t *self, ps_job_t *ret_job,
                                            psd_error_t *err);
/* Marks of the i-th worker's members, borrowed until the gate changes. */
const uint64_t *ps_gate_marks(const ps_gate_t *self, size_t i, uint32_t *ret_n);
/* Sets the marks of all workers, one after the other, the number of closed
 * clocks and the highest clock: the remaining workers' marks may no longer show
 * these two. Marks that are higher raise them. */
void ps_gate_restore(ps_gate_t *self, uint64_t closed, uint64_t highest, const uint64_t *marks);
/* The slowest live worker that holds back `clock`; false when there is none.
 */
bool ps_gate_slowest(const ps_gate_t *self, uint64_t clock, uint32_t *ret_worker,
                     uint64_t *ret_finished);
/* "waiting for worker 3 at clock 10, worker 5 not joined yet (needs clock 11)"
 */
void ps_gate_reason(const ps_gate_t *self, uint64_t clock, char *ret_text, size_t size);
#endif
