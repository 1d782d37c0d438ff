/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop_thread - stops one thread of another process, and resumes it
 *
 * What     Uses ptrace, which stops that thread alone. The caller must be
 *          allowed to trace it (a child of the caller's, or the caller is
 *          root).
 * Threads  The thread that stopped it must also resume it.
 */
#ifndef PS_TESTS_STOP_THREAD_H
#define PS_TESTS_STOP_THREAD_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* Stops it, and waits until it stands. */
static inline bool stop_thread(pid_t tid)
{
    int status = 0;

    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
        (void)fprintf(stderr, "cannot stop thread %d: %s\n", tid, strerror(errno));
        return false;
    }
    return waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status);
}

/* It is gone: the tracer must reap the thread, or its process could not end. */
static inline bool stopped_thread_is_gone(pid_t tid)
{
    int status = 0;

    return waitpid(tid, &status, __WALL | WNOHANG) == tid && !WIFSTOPPED(status);
}

static inline bool let_thread_go(pid_t tid)
{
    return ptrace(PTRACE_DETACH, tid, NULL, NULL) == 0;
}
#endif
