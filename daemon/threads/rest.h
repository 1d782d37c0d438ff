/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rest - a thread that leaves processors to those who serve
 *
 * What     Work that nobody waits for takes a processor from a shard or its
 *          client where there are no more than these need, and a request then
 *          waits for as long as that work keeps it. So, unless a processor is
 *          left over, the thread rests behind every few milliseconds of its
 *          work, for as long as that took; and who wants its processor gets it
 *          first, as long as it has a fair part of the time.
 * Owner    The caller; embedded.
 * Threads  Confined to the one that rests.
 */
#ifndef PS_DAEMON_REST_H
#define PS_DAEMON_REST_H

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
/* A little was done: lets those go first who wait for this processor, and rests
 * if that is due, for a few milliseconds. Whatever else the thread waited for
 * since the last time counts as rest. */
void ps_rest_if_due(ps_rest_t *self);
#endif
