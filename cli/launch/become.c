/* SPDX-License-Identifier: Apache-2.0 */
/* From a fork to a program. */
#include "cli/launch/become.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static bool put_fds(const int fds[3])
{
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0 && dup2(fds[i], i) < 0) {
            return false;
        }
    }
    return true;
}

_Noreturn void ps_become(const ps_become_t *self)
{
    static const char WORDS[] = " cannot be started: ";
    const char *program = self->argv[0];
    const char *reason = NULL;

    (void)prctl(PR_SET_PDEATHSIG, self->last_signal);
    (void)signal(SIGPIPE, SIG_DFL);
    if (getppid() == self->parent && setpgid(0, 0) == 0 && put_fds(self->fds) &&
        sigprocmask(SIG_SETMASK, self->mask, NULL) == 0) {
        /* execvp takes non-const pointers, but changes nothing. */
        (void)execvp(program, (char *const *)self->argv);
    }
    reason = strerrordesc_np(errno);
    if (write(STDERR_FILENO, program, strlen(program)) < 0 ||
        write(STDERR_FILENO, WORDS, sizeof WORDS - 1) < 0 || reason == NULL ||
        write(STDERR_FILENO, reason, strlen(reason)) < 0 || write(STDERR_FILENO, "\n", 1) < 0) {
        _exit(PS_EXIT_NO_PROGRAM);
    }
    _exit(PS_EXIT_NO_PROGRAM);
}
