/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_thread - a library's threads, and condition waits with a timeout
 *
 * What     Signals belong to the program: a thread that starts here blocks all
 *          signals except faults (SIGSEGV and the like). So the program's
 *          handlers run in its own threads, and a crash handler still sees a
 *          crash. Timed waits use CLOCK_MONOTONIC, which nobody sets.
 */
#ifndef PS_TRANSPORT_THREAD_H
#define PS_TRANSPORT_THREAD_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

/* As pthread_create. Gives 0 or an error number. */
int ps_thread_start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument);
/* As pthread_cond_init, with waits that end by CLOCK_MONOTONIC. Gives 0 or an
 * error number. */
int ps_cond_init(pthread_cond_t *ret_cond);
/* The time that many milliseconds from now, for pthread_cond_timedwait. */
struct timespec ps_cond_end_in(uint32_t wait_ms);
#endif
