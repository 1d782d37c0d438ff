/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the processes of a job and waits for them. */
#include "cli/jobs/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/jobs/workers_inner.h"
#include "cli/launch/become.h"

static psd_status_t fail(const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "%s: %s", what, strerror(errno));
}

static bool set_number(const char *name, int64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return setenv(name, text, 1) == 0;
}

/* Set in pscli itself, before the fork: setenv is not safe after one. */
static bool set_environment(const ps_workers_args_t *args, uint32_t rank)
{
    char endpoint[PS_ENDPOINT_MAX + 8];

    (void)snprintf(endpoint, sizeof endpoint, "%s%s", args->n_serving > 0 ? "embed:" : "",
                   args->endpoint);
    return (args->n_serving == 0 || set_number("PSD_SERVERS", args->n_serving)) &&
           setenv("PSD_ENDPOINT", endpoint, 1) == 0 && setenv("PSD_JOB", args->job, 1) == 0 &&
           set_number("PSD_WORKER", rank) && set_number("PSD_WORKERS", args->n) &&
           set_number("PSD_MAX_DELAY", args->max_delay) &&
           (args->overlay == NULL || setenv("PSD_OVERLAY", args->overlay, 1) == 0) &&
           (args->site == NULL || setenv("PSD_SITE", args->site, 1) == 0);
}

static void close_pair(const int pair[2])
{
    (void)close(pair[0]);
    (void)close(pair[1]);
}

psd_status_t ps_workers_fork(ps_workers_t *self, uint32_t rank, psd_error_t *err)
{
    ps_local_worker_t *worker = &self->items[rank];
    int out[2];
    int errors[2];
    pid_t parent = getpid();
    int in = -1;

    if (!set_environment(self->args, rank)) {
        return fail("the workers' environment cannot be set", err);
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        return fail("a pipe cannot be made", err);
    }
    if (pipe2(errors, O_CLOEXEC) != 0) {
        close_pair(out);
        return fail("a pipe cannot be made", err);
    }
    in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    worker->pid = in < 0 ? -1 : fork();
    if (worker->pid == 0) {
        /* It must not outlive pscli, however pscli ends. */
        const ps_become_t child = {.argv = self->args->argv,
                                   .fds = {in, out[1], errors[1]},
                                   .parent = parent,
                                   .last_signal = SIGTERM,
                                   .mask = &self->old_mask};

        ps_become(&child);
    }
    (void)close(in);
    if (worker->pid < 0) {
        worker->pid = 0;
        close_pair(out);
        close_pair(errors);
        return fail("a worker cannot be started", err);
    }
    /* Both sides set it, so that it is set before either needs it. */
    (void)setpgid(worker->pid, worker->pid);
    (void)close(out[1]);
    (void)close(errors[1]);
    (void)fcntl(out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(errors[0], F_SETFL, O_NONBLOCK);
    worker->lines[0].fd = out[0];
    worker->lines[1].fd = errors[0];
    worker->started = true;
    return PSD_OK;
}

psd_status_t ps_workers_start(ps_workers_t *ret_workers, const ps_workers_args_t *args,
                              psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *ret_workers = (ps_workers_t){.args = args, .signals = -1};
    ret_workers->items = ps_alloc(args->n, sizeof *ret_workers->items);
    if (ret_workers->items == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the workers");
    }
    rc = ps_workers_catch(ret_workers, err);
    (void)fflush(NULL);
    if (rc == PSD_OK && args->launch != NULL) {
        return ps_engines_open(ret_workers, err);
    }
    for (uint32_t rank = 0; rc == PSD_OK && rank < args->n; rank++) {
        rc = ps_workers_fork(ret_workers, rank, err);
        ret_workers->n += rc == PSD_OK ? 1 : 0;
    }
    return rc;
}

int ps_workers_exit(const ps_workers_t *self)
{
    int worst = 128 + self->asked;

    if (self->asked == 0) {
        return self->first_exit;
    }
    for (uint32_t i = 0; i < self->n; i++) {
        worst = self->items[i].exit > worst ? self->items[i].exit : worst;
    }
    return worst;
}

void ps_workers_done(ps_workers_t *self)
{
    ps_engines_done(self);
    for (uint32_t i = 0; i < self->n; i++) {
        ps_local_worker_t *worker = &self->items[i];

        if (!worker->ended && worker->pid > 0) {
            (void)kill(-worker->pid, SIGKILL);
            (void)waitpid(worker->pid, NULL, 0);
        }
        for (size_t j = 0; j < 2; j++) {
            if (worker->lines[j].fd >= 0) {
                (void)close(worker->lines[j].fd);
            }
        }
    }
    if (self->signals >= 0) {
        (void)close(self->signals);
        (void)sigprocmask(SIG_SETMASK, &self->old_mask, NULL);
    }
    ps_free(self->items);
    *self = (ps_workers_t){.signals = -1};
}
