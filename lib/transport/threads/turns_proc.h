/* SPDX-License-Identifier: Apache-2.0 */
/* ps_turns_proc - what the kernel says of processes and threads */
#ifndef PS_TRANSPORT_TURNS_PROC_H
#define PS_TRANSPORT_TURNS_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* When the process began, in ticks since the boot; 0: there is none. */
uint64_t ps_turns_started(pid_t pid);
/* The letter of a thread's state ("R" runs, "S" sleeps, "D" waits for a disk,
 * "T" and "t" are stopped, …); '?': it cannot be known. */
char ps_turns_state(pid_t pid, pid_t tid);
/* Descriptors (PROC/PID/fd/N) of processes named "psd" in our network that may
 * be a page. visit gives true to end. */
bool ps_turns_each(bool (*visit)(void *context, const char *path), void *context);
/* An address of this host. */
bool ps_turns_is_here(const char *host);
#endif
