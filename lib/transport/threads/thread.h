/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/transport/threads: what the system lends a thread
 *
 * It is       Time and randomness, threads without signals, forks, how long a
 *             wait spins, and the page in which each thread shows that it makes
 *             progress.
 * It uses     lib/base.
 * It ignores  Sockets, messages, and what a thread does in its turn.
 * Start at    clock.h and thread.h; turns.h for the page, turns_look.h for its
 *             readers.
 */
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

/* As pthread_create; the thread has its starter's log (ps_log_use). Gives 0 or an error
 * number. */
int ps_thread_start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument);
/* As pthread_cond_init, with waits that end by CLOCK_MONOTONIC. Gives 0 or an
 * error number. */
int ps_cond_init(pthread_cond_t *ret_cond);
/* The time that many milliseconds from now, for pthread_cond_timedwait. */
struct timespec ps_cond_end_in(uint32_t wait_ms);
#endif
