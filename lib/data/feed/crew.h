/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_crew - threads that do one piece of work together, again and again
 *
 * What     ps_crew_run calls a function once for each member, the caller's own
 *          thread being member 0, and returns when all of them have.
 * Owner    the caller stops it
 * Threads  one thread at a time gives it work; the work must not give it more
 */
#ifndef PS_DATA_CREW_H
#define PS_DATA_CREW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_CREW_MAX 1024u

typedef struct ps_crew ps_crew_t;

typedef void ps_crew_work_t(void *task, uint32_t member, uint32_t n_members);

/* n_members 1 .. PS_CREW_MAX; of 1 no thread is started. Errors: PSD_INVALID;
 * PSD_IO a thread that the system does not give; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_crew_start(uint32_t n_members, ps_crew_t **ret_crew,
                                          psd_error_t *err);
void ps_crew_stop(ps_crew_t **self_p);
/* In a child that was forked since it was started: its threads are not there,
 * and it must not run. Never true of one without threads. */
bool ps_crew_is_forked(const ps_crew_t *self);
void ps_crew_run(ps_crew_t *self, ps_crew_work_t *work, void *task);
uint32_t ps_crew_size(const ps_crew_t *self);

/* Where the stretch of member `i` of n begins, of `count` things cut evenly;
 * i == n: the end. */
static inline size_t ps_crew_cut(size_t count, uint32_t i, uint32_t n)
{
    return count / n * i + (i < count % n ? i : count % n);
}
#endif
