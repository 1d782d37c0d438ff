/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_machine - measures the machine's limits between other measurements
 *
 * What     A process that is forked before this one has a thread or a
 *          connection. It runs each limit in its own child, so that one
 *          measurement leaves nothing for the next.
 * Owner    The caller (ps_machine_done); also when a start failed.
 */
#ifndef PS_CLI_BENCH_MACHINE_H
#define PS_CLI_BENCH_MACHINE_H

#include <sys/types.h>

#include "cli/machine/bench_limit.h"

typedef struct ps_machine {
    pid_t pid; /* 0: none runs */
    int to;    /* requests for limits go here */
    int from;  /* where the numbers come from */
} ps_machine_t;

/* Call it before the first thread of this process. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_machine_start(ps_machine_t *ret_machine, psd_error_t *err);
/* Measures one limit for about duration_ms. Errors: PSD_IO it could not be
 * measured; PSD_DEADLINE it took far too long; PSD_INTERRUPTED. */
PSD_MUST_CHECK psd_status_t ps_machine_measure(ps_machine_t *self, ps_limit_t limit,
                                               uint32_t duration_ms, double *ret_value,
                                               psd_error_t *err);
/* Fits PSD_AUTO; a zeroed struct is empty. */
void ps_machine_done(ps_machine_t *self);
#endif
