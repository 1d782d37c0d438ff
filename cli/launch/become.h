/* SPDX-License-Identifier: Apache-2.0 */
/* ps_become - a child becomes a program, in a process group of its own */
#ifndef PS_CLI_BECOME_H
#define PS_CLI_BECOME_H

#include <signal.h>
#include <sys/types.h>

#define PS_EXIT_NO_PROGRAM 127

typedef struct ps_become {
    const char *const *argv; /* NULL-terminated; argv[0] is looked for in PATH */
    int fds[3];              /* its stdin, stdout, stderr; -1: this process's own */
    pid_t parent;            /* who forked: when that one is gone already, the child ends */
    int last_signal;         /* it gets this one when its parent ends, however it ends */
    const sigset_t *mask;    /* its blocked signals; borrowed */
} ps_become_t;

/* In the child: only calls that are safe after a fork. Exits with PS_EXIT_NO_PROGRAM and a
 * line on stderr when the program cannot be started. */
_Noreturn void ps_become(const ps_become_t *self);
#endif
