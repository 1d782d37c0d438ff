/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a helper. */
#include "cli/launch/exec.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/launch/exec_inner.h"
#include "transport/threads/clock.h"

#define LOOK_MS 300   /* between two looks whether our parent has ended */
#define GRACE_MS 1000 /* for a program whose launcher is gone, after SIGTERM */

static void exec_done(ps_exec_t *self)
{
    if (self->pid > 0) {
        (void)kill(-self->pid, SIGKILL);
    }
    ps_exec_end_rest();
    if (self->signals >= 0) {
        (void)close(self->signals);
    }
    ps_buffer_done(&self->input);
}

static psd_status_t catch_signals(ps_exec_t *self, psd_error_t *err)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2, SIGCONT};
    sigset_t mask;

    (void)sigemptyset(&mask);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        (void)sigaddset(&mask, SIGNALS[i]);
    }
    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (sigprocmask(SIG_BLOCK, &mask, &self->mask) == 0) {
        self->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    return self->signals >= 0
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "signals cannot be read: %s", strerror(errno));
}

static void read_signals(ps_exec_t *self)
{
    struct signalfd_siginfo info;

    while (read(self->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            ps_exec_reap(self);
        } else {
            ps_exec_signal(self, (int)info.ssi_signo);
        }
    }
}

/* Once the launcher is gone: asks the program to end, then insists. */
static void end_program(ps_exec_t *self)
{
    if (getppid() != self->launcher) {
        ps_exec_note_gone(self);
    }
    if (self->gone_ms == 0 || self->pid == 0 || self->killed) {
        return;
    }
    if (ps_now_ms() >= self->gone_ms + GRACE_MS) {
        ps_exec_signal(self, SIGKILL);
        ps_exec_sweep();
        self->killed = true;
    } else {
        ps_exec_signal(self, SIGTERM);
        ps_exec_signal(self, SIGCONT); /* a stopped one hears it then */
    }
}

/* One turn of the loop. */
static psd_status_t turn(ps_exec_t *self, psd_error_t *err)
{
    struct pollfd fds[4];
    nfds_t n = 0;
    nfds_t at_input = 0;
    psd_status_t rc = PSD_OK;

    fds[n++] = (struct pollfd){.fd = self->signals, .events = POLLIN};
    for (size_t i = 0; i < 2; i++) {
        if (self->lines[i].fd >= 0) {
            fds[n++] = (struct pollfd){.fd = self->lines[i].fd, .events = POLLIN};
        }
    }
    if (self->input_open) {
        at_input = n;
        fds[n++] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    }
    if (poll(fds, n, LOOK_MS) < 0 && errno != EINTR) {
        return psd_error_set(err, PSD_IO, "waiting for a worker: %s", strerror(errno));
    }
    if (at_input > 0 && fds[at_input].revents != 0) {
        rc = ps_exec_read_orders(self, err);
    }
    ps_exec_read_output(self);
    read_signals(self);
    end_program(self);
    return rc;
}

static psd_status_t run(ps_exec_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->early != 0) {
        self->exit = 128 + self->early;
        self->signal = self->early;
        ps_exec_tell_end(self);
        return PSD_OK;
    }
    rc = ps_exec_start(self, err);
    while (rc == PSD_OK && (self->pid > 0 || (self->waits && self->gone_ms == 0))) {
        rc = turn(self, err);
    }
    return rc;
}

/* The program, and what it asks libpsd for, get rank and size from here. */
static psd_status_t set_rank(const ps_exec_t *self, psd_error_t *err)
{
    char text[2][16];

    (void)snprintf(text[0], sizeof text[0], "%u", self->rank);
    (void)snprintf(text[1], sizeof text[1], "%u", self->size);
    return setenv("PSD_WORKER", text[0], 1) == 0 && setenv("PSD_WORKERS", text[1], 1) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for the environment");
}

psd_status_t ps_exec(const ps_exec_args_t *args, int *ret_exit, psd_error_t *err)
{
    PSD_AUTO(exec_done)
    ps_exec_t self = {.args = args,
                      .launcher = getppid(),
                      .signals = -1,
                      .input_open = args->reads,
                      .lines = {{.fd = -1}, {.fd = -1}}};
    psd_status_t rc = catch_signals(&self, err);

    if (rc == PSD_OK && args->reads) {
        rc = ps_exec_read_settings(&self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_exec_rank(getenv, &self.rank, &self.size, err);
    }
    if (rc == PSD_OK) {
        rc = set_rank(&self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_exec_serve(err);
    }
    if (rc == PSD_OK) {
        rc = run(&self, err);
    }
    if (rc != PSD_OK) {
        ps_exec_tell(&self, PS_EXEC_RECORD_FAILED, psd_error_text(err),
                     strlen(psd_error_text(err)));
        return rc;
    }
    *ret_exit = self.exit;
    return PSD_OK;
}
