/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_thread - threads of a library, and waits of theirs that end
 *
 * What     Signals are the program's business: a thread begun here blocks all
 *          but those of faults (SIGSEGV and the like), so that the program's
 *          handlers run in its own threads, and a crash is still seen by who
 *          looks for crashes. A condition's waits end by CLOCK_MONOTONIC,
 *          which nobody sets.
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
/* So many milliseconds from now, for pthread_cond_timedwait. */
struct timespec ps_cond_end_in(uint32_t wait_ms);
#endif
