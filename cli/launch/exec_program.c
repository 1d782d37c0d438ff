/* SPDX-License-Identifier: Apache-2.0 */
/* The program beside a helper: start, output, end. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/launch/become.h"
#include "cli/launch/exec_inner.h"
#include "transport/threads/clock.h"

#define READS_MAX 64 /* of one pipe before the other has its turn; more than a full pipe */
#define HOST_SIZE 64
#define REST_TURNS 200 /* looks at what is left of a program that was killed … */
#define REST_MS 5      /* … and between two of them */

void ps_exec_note_gone(ps_exec_t *self)
{
    if (self->gone_ms == 0) {
        self->gone_ms = ps_now_ms();
    }
}

bool ps_exec_is_end(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGKILL;
}

void ps_exec_signal(ps_exec_t *self, int number)
{
    if (self->pid > 0) {
        (void)kill(-self->pid, number);
    } else if (!self->waits && self->early == 0 && ps_exec_is_end(number)) {
        self->early = number;
    }
}

/* ---- records ---- */

void ps_exec_tell(ps_exec_t *self, ps_exec_record_kind_t kind, const char *text, size_t size)
{
    ps_exec_record_t record = {.rank = self->rank,
                               .kind = kind,
                               .size =
                                   size < PS_EXEC_RECORD_TEXT_MAX ? size : PS_EXEC_RECORD_TEXT_MAX};
    char bytes[PS_EXEC_RECORD_SIZE];

    if (self->args->launch == NULL) {
        return;
    }
    memcpy(record.text, text, record.size);
    ps_exec_record_format(self->args->launch, &record, bytes);
    /* One write of at most PIPE_BUF: a pipe takes it whole. */
    if (write(STDOUT_FILENO, bytes, sizeof bytes) < 0 && errno != EINTR) {
        ps_exec_note_gone(self);
    }
}

static void tell_line(ps_exec_t *self, size_t stream, bool whole)
{
    static const ps_exec_record_kind_t KINDS[2][2] = {
        {PS_EXEC_RECORD_OUT_PART, PS_EXEC_RECORD_OUT},
        {PS_EXEC_RECORD_ERR_PART, PS_EXEC_RECORD_ERR}};
    ps_exec_line_t *line = &self->lines[stream];

    ps_exec_tell(self, KINDS[stream][whole ? 1 : 0], line->text, line->n);
    line->n = 0;
}

static void take_output(ps_exec_t *self, size_t stream, const char *bytes, size_t n)
{
    ps_exec_line_t *line = &self->lines[stream];

    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            tell_line(self, stream, true);
            continue;
        }
        if (line->n == sizeof line->text) {
            tell_line(self, stream, false);
        }
        line->text[line->n++] = bytes[i];
    }
}

static void read_stream(ps_exec_t *self, size_t stream)
{
    ps_exec_line_t *line = &self->lines[stream];
    char bytes[4096];
    ssize_t n = 1;

    for (int reads = 0; reads < READS_MAX && n > 0; reads++) {
        n = read(line->fd, bytes, sizeof bytes);
        if (n > 0) {
            take_output(self, stream, bytes, (size_t)n);
        }
    }
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        return;
    }
    (void)close(line->fd);
    line->fd = -1;
}

void ps_exec_read_output(ps_exec_t *self)
{
    for (size_t i = 0; i < 2; i++) {
        if (self->lines[i].fd >= 0) {
            read_stream(self, i);
        }
    }
}

/* What is there when the program has ended; a line without an end is one, too. */
static void finish_output(ps_exec_t *self)
{
    ps_exec_read_output(self);
    for (size_t i = 0; i < 2; i++) {
        if (self->lines[i].n > 0) {
            tell_line(self, i, true);
        }
        if (self->lines[i].fd >= 0) {
            (void)close(self->lines[i].fd);
            self->lines[i].fd = -1;
        }
    }
}

/* ---- start and end ---- */

static void read_host(char ret_host[HOST_SIZE])
{
    if (gethostname(ret_host, HOST_SIZE) != 0) {
        (void)snprintf(ret_host, HOST_SIZE, "?");
    }
    ret_host[HOST_SIZE - 1] = '\0';
}

static psd_status_t open_pipes(const ps_exec_t *self, int in[1], int pipes[2][2], psd_error_t *err)
{
    if (self->args->launch == NULL) {
        return PSD_OK;
    }
    in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < 2; i++) {
        if (in[0] < 0 || pipe2(pipes[i], O_CLOEXEC) != 0) {
            return psd_error_set(err, PSD_IO, "a pipe cannot be made: %s", strerror(errno));
        }
        (void)fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
    }
    return PSD_OK;
}

static void tell_started(ps_exec_t *self)
{
    char host[HOST_SIZE];
    char text[PS_EXEC_RECORD_TEXT_MAX];

    read_host(host);
    (void)snprintf(text, sizeof text, "%d %s", (int)self->pid, host);
    ps_exec_tell(self, PS_EXEC_RECORD_STARTED, text, strlen(text));
}

psd_status_t ps_exec_start(ps_exec_t *self, psd_error_t *err)
{
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    int in[1] = {-1};
    pid_t parent = getpid();
    psd_status_t rc = open_pipes(self, in, pipes, err);

    if (rc == PSD_OK) {
        self->pid = fork();
    }
    if (rc == PSD_OK && self->pid == 0) {
        const ps_become_t child = {.argv = self->args->argv,
                                   .fds = {in[0], pipes[0][1], pipes[1][1]},
                                   .parent = parent,
                                   .last_signal = SIGKILL,
                                   .mask = &self->mask};

        ps_become(&child);
    }
    for (size_t i = 0; i < 2; i++) {
        self->lines[i] = (ps_exec_line_t){.fd = pipes[i][0]};
        if (pipes[i][1] >= 0) {
            (void)close(pipes[i][1]);
        }
    }
    if (in[0] >= 0) {
        (void)close(in[0]);
    }
    if (rc == PSD_OK && self->pid < 0) {
        self->pid = 0;
        rc = psd_error_set(err, PSD_IO, "a worker cannot be started: %s", strerror(errno));
    }
    if (rc == PSD_OK) {
        /* Both sides set it, so that it is set before either needs it. */
        (void)setpgid(self->pid, self->pid);
        tell_started(self);
    }
    return rc;
}

void ps_exec_sweep(void)
{
    char path[64];
    FILE *file = NULL;
    int pid = 0;

    /* The helper takes in what the program leaves (PR_SET_CHILD_SUBREAPER). */
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        (void)kill(pid, SIGKILL);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void ps_exec_end_rest(void)
{
    /* What a killed process leaves is ours only after it: until there is none. */
    for (int i = 0; i < REST_TURNS; i++) {
        pid_t pid = 0;

        ps_exec_sweep();
        do {
            pid = waitpid(-1, NULL, WNOHANG);
        } while (pid > 0);
        if (pid < 0) {
            return;
        }
        (void)poll(NULL, 0, REST_MS);
    }
}

void ps_exec_tell_end(ps_exec_t *self)
{
    char host[HOST_SIZE];
    char text[PS_EXEC_RECORD_TEXT_MAX];

    read_host(host);
    (void)snprintf(text, sizeof text, "%d %d %s", self->exit, self->signal, host);
    ps_exec_tell(self, PS_EXEC_RECORD_ENDED, text, strlen(text));
}

static void note_end(ps_exec_t *self, int status)
{
    (void)kill(-self->pid, SIGKILL);
    ps_exec_end_rest();
    self->pid = 0;
    self->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    self->exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    finish_output(self);
    self->waits = self->again && self->input_open && self->exit != 0;
    ps_exec_tell_end(self);
}

void ps_exec_reap(ps_exec_t *self)
{
    int status = 0;
    pid_t pid = 0;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == self->pid) {
            note_end(self, status);
        }
    }
}
