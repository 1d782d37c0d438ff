/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rest - a background thread that leaves processors to the serving threads
 *
 * What     Background work can take the processor that a shard or its client
 *          needs, and a request then waits for as long as that work keeps it.
 *          So, unless a processor is idle, the thread rests after every few
 *          milliseconds of work, for as long as the work took. Any thread that
 *          wants its processor gets it first, as long as this thread gets a
 *          fair part of the time.
 * Owner    The caller; embedded.
 * Threads  Confined to the one that rests.
 */
#ifndef PS_SERVER_REST_H
#define PS_SERVER_REST_H

#include <stdint.h>

typedef struct ps_rest {
    int load_fd;        /* of the system's numbers; -1: there are none */
    unsigned n_cpus;    /* that the thread may run on */
    uint64_t worked_ns; /* of processor time, at the last rest … */
    uint64_t rested_ns; /* … and when that ended */
} ps_rest_t;

/* By the thread itself. */
void ps_rest_init(ps_rest_t *self);
void ps_rest_done(ps_rest_t *self);
/* Call it after a little work: lets threads go first that wait for this
 * processor, and rests for a few milliseconds if that is due. Any other wait
 * since the last call counts as rest. */
void ps_rest_if_due(ps_rest_t *self);
#endif
