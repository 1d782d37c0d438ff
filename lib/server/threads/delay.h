/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_delay - how long a thread waited for a processor
 *
 * What     The kernel counts the time in which a thread could have run and did
 *          not, because others did. Where the kernel does not say it, there is no
 *          delay.
 * Owner    The caller closes it. Threads: it measures the one that opens it, and
 *          is confined to it.
 */
#ifndef PS_SERVER_DELAY_H
#define PS_SERVER_DELAY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ps_delay {
    int fd;      /* owned; <= 0: none */
    uint64_t ns; /* that were taken so far, whole milliseconds, and those before the start */
} ps_delay_t;

void ps_delay_open(ps_delay_t *ret_delay);
/* Milliseconds since it was opened, or taken last. */
uint64_t ps_delay_take_ms(ps_delay_t *self);
/* Takes one that is zeroed, or closed. */
void ps_delay_close(ps_delay_t *self);
#endif
