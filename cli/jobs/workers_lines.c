/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the workers: their lines, and signals. */
#include "cli/jobs/workers_inner.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"

#define KILL_AT 3 /* number of signals to end, after which workers are killed */
#define READS_MAX                                             \
    64 /* of one pipe before the others have their turn; more \
          than a full pipe */

psd_status_t ps_workers_catch(ps_workers_t *self, psd_error_t *err)
{
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2};
    sigset_t mask;

    (void)sigemptyset(&mask);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        (void)sigaddset(&mask, SIGNALS[i]);
    }
    if (sigprocmask(SIG_BLOCK, &mask, &self->old_mask) == 0) {
        self->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    return self->signals >= 0
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "signals cannot be read: %s", strerror(errno));
}

void ps_workers_show_line(const ps_workers_t *self, uint32_t rank, size_t stream)
{
    ps_worker_line_t *line = &self->items[rank].lines[stream];
    FILE *to = self->args->to[stream];

    if (self->args->color) {
        ps_print(to, "\033[%" PRIu32 "m[%" PRIu32 "]\033[0m ", 31 + rank % 6, rank);
    } else {
        ps_print(to, "[%" PRIu32 "] ", rank);
    }
    (void)fwrite(line->text, 1, line->n, to);
    (void)putc('\n', to);
    line->n = 0;
}

void ps_workers_add(ps_workers_t *self, uint32_t rank, size_t stream, const char *bytes, size_t n)
{
    ps_worker_line_t *line = &self->items[rank].lines[stream];

    for (size_t i = 0; i < n; i++) {
        line->text[line->n++] = bytes[i];
        if (line->n == PS_LINE_SIZE) {
            ps_workers_show_line(self, rank, stream);
        }
    }
}

/* Reads what has arrived and shows the complete lines; closes the pipe at
 * its end. */
static void read_lines(const ps_workers_t *self, uint32_t rank, size_t stream)
{
    ps_worker_line_t *line = &self->items[rank].lines[stream];
    char buffer[4096];
    ssize_t n = 1;

    for (int reads = 0; reads < READS_MAX && n > 0; reads++) {
        n = read(line->fd, buffer, sizeof buffer);
        for (ssize_t i = 0; i < n; i++) {
            if (buffer[i] != '\n') {
                line->text[line->n++] = buffer[i];
            }
            if (buffer[i] == '\n' || line->n == PS_LINE_SIZE) {
                ps_workers_show_line(self, rank, stream);
            }
        }
    }
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        (void)fflush(self->args->to[stream]);
        return;
    }
    if (line->n > 0) {
        ps_workers_show_line(self, rank, stream);
    }
    (void)fflush(self->args->to[stream]);
    (void)close(line->fd);
    line->fd = -1;
}

static void reap(ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        ps_local_worker_t *worker = &self->items[i];
        int status = 0;

        if (worker->ended || worker->pid <= 0 || waitpid(worker->pid, &status, WNOHANG) <= 0) {
            continue;
        }
        ps_workers_note_end(self, i,
                            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
                            WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

static void pass_on(ps_workers_t *self, int number)
{
    if (number == SIGINT || number == SIGTERM || number == SIGHUP) {
        self->asked = self->asked == 0 ? number : self->asked;
        self->n_asked++;
        number = self->n_asked >= KILL_AT ? SIGKILL : number;
        self->over_ms = self->n_asked > KILL_AT ? 1 : self->over_ms; /* engines, too */
    }
    ps_workers_send(self, number);
}

static void read_signals(ps_workers_t *self)
{
    struct signalfd_siginfo info;

    while (read(self->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD) {
            reap(self);
            ps_engines_reap(self);
        } else {
            pass_on(self, (int)info.ssi_signo);
        }
    }
}

/* Fills fds with the signals and every open pipe; returns how many. */
static nfds_t list_fds(const ps_workers_t *self, struct pollfd *fds)
{
    nfds_t n = 0;

    fds[n++] = (struct pollfd){.fd = self->signals, .events = POLLIN};
    for (uint32_t i = 0; i < self->n_engines; i++) {
        for (size_t j = 0; j < 2; j++) {
            if (self->engines[i].lines[j].fd >= 0) {
                fds[n++] = (struct pollfd){.fd = self->engines[i].lines[j].fd, .events = POLLIN};
            }
        }
    }
    for (uint32_t i = 0; i < self->n; i++) {
        for (size_t j = 0; j < 2; j++) {
            if (self->items[i].lines[j].fd >= 0) {
                fds[n++] = (struct pollfd){.fd = self->items[i].lines[j].fd, .events = POLLIN};
            }
        }
    }
    return n;
}

static void read_all(const ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        for (size_t j = 0; j < 2; j++) {
            if (self->items[i].lines[j].fd >= 0) {
                read_lines(self, i, j);
            }
        }
    }
}

/* The last output of all; leaves a pipe that a grandchild keeps open. */
static void show_rest(ps_workers_t *self)
{
    read_all(self);
    for (uint32_t i = 0; i < self->n; i++) {
        for (size_t j = 0; j < 2; j++) {
            if (self->items[i].lines[j].n > 0) {
                ps_workers_show_line(self, i, j);
            }
        }
    }
}

/* One turn of the loop, after the wait. */
static psd_status_t turn(ps_workers_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    read_signals(self);
    read_all(self);
    ps_engines_read(self);
    rc = ps_workers_start_again(self, err);
    ps_workers_tell_ends(self);
    ps_workers_settle(self);
    if (rc == PSD_OK) {
        rc = ps_engines_turn(self, err);
    }
    ps_engines_finish(self);
    return rc;
}

static psd_status_t say_why(const ps_workers_t *self, psd_error_t *err)
{
    return self->why[0] == '\0' ? PSD_OK : psd_error_set(err, PSD_FAILED, "%s", self->why);
}

psd_status_t ps_workers_wait(ps_workers_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_free_at)
    struct pollfd *fds = ps_alloc(1 + 2 * ((size_t)self->n + self->n_engines), sizeof *fds);
    psd_status_t rc = PSD_OK;

    if (fds == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to wait");
    }
    rc = ps_engines_turn(self, err);
    while (rc == PSD_OK && (!ps_workers_all_ended(self) || !ps_engines_all_over(self))) {
        if (poll(fds, list_fds(self, fds), ps_workers_time_left(self)) < 0 && errno != EINTR) {
            return psd_error_set(err, PSD_IO, "waiting for workers: %s", strerror(errno));
        }
        rc = turn(self, err);
    }
    ps_workers_settle_last(self);
    show_rest(self);
    return rc == PSD_OK ? say_why(self, err) : rc;
}
