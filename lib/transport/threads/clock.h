/* SPDX-License-Identifier: Apache-2.0 */
/* ps_now_ms, ps_now_us, ps_unix_ms, ps_unix_us, ps_random - the machine's time and randomness */
#ifndef PS_TRANSPORT_CLOCK_H
#define PS_TRANSPORT_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

/* The clock of everything: CLOCK_BOOTTIME in milliseconds. */
uint64_t ps_now_ms(void);
/* The same clock in microseconds. */
uint64_t ps_now_us(void);
/* The wall clock, which may jump: for people, histories, files and other hosts. Milliseconds
 * since 1970, UTC. */
uint64_t ps_unix_ms(void);
/* The same in microseconds. */
uint64_t ps_unix_us(void);
/* Random bytes of the kernel. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_random(void *ret_bytes, size_t size, psd_error_t *err);
#endif
