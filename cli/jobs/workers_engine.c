/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends the processes of a launcher. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/jobs/workers_inner.h"
#include "cli/launch/become.h"
#include "transport/sockets/socket.h"

#define AT_ONCE 8          /* sshd's default refuses more than 10 that are not logged in */
#define TRIES 3            /* of an ssh that does not come up … */
#define TRY_AGAIN_MS 400   /* … after so long, and twice as long … */
#define TRY_WITHIN_MS 2500 /* … but a host that took so long does not answer */
#define FINISH_MS 5000     /* for an engine to end, without workers or when they were killed */
#define SETTINGS_MAX 60000 /* less than a pipe takes without a reader */

psd_status_t ps_engines_open(ps_workers_t *self, psd_error_t *err)
{
    const ps_launch_t *launch = self->args->launch;
    uint32_t n = ps_launch_engines(launch);

    self->engines = ps_alloc(n, sizeof *self->engines);
    if (self->engines == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a launcher");
    }
    /* An order to an engine that has just ended must not end pscli. */
    (void)signal(SIGPIPE, SIG_IGN);
    self->n_engines = n;
    self->n = self->args->n;
    for (uint32_t i = 0; i < n; i++) {
        self->engines[i] = (ps_engine_t){.in = -1, .first = i, .n = n == 1 ? self->n : 1};
        self->engines[i].lines[0].fd = self->engines[i].lines[1].fd = -1;
    }
    for (uint32_t i = 0; i < self->n; i++) {
        self->items[i].lines[0].fd = self->items[i].lines[1].fd = -1;
    }
    return ps_launch_export(launch, err);
}

/* ---- starting one ---- */

static void close_at(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* Our ends of three pipes are ends[i]; theirs are in child. */
static bool open_pipes(int ends[3], int child[3])
{
    for (int i = 0; i < 3; i++) {
        int pair[2] = {-1, -1};

        if (pipe2(pair, O_CLOEXEC) != 0) {
            return false;
        }
        ends[i] = pair[i == 0 ? 1 : 0];
        child[i] = pair[i == 0 ? 0 : 1];
        if (i > 0) {
            (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
        }
    }
    return true;
}

static psd_status_t fork_one(ps_workers_t *self, ps_engine_t *engine, const ps_words_t *words,
                             psd_error_t *err)
{
    int ends[3] = {-1, -1, -1};
    int fds[3] = {-1, -1, -1};
    pid_t parent = getpid();
    bool ok = open_pipes(ends, fds);

    if (ok) {
        (void)fflush(NULL);
        engine->pid = fork();
        ok = engine->pid >= 0;
    }
    if (ok && engine->pid == 0) {
        const ps_become_t child = {.argv = (const char *const *)words->items,
                                   .fds = {fds[0], fds[1], fds[2]},
                                   .parent = parent,
                                   .last_signal = SIGTERM,
                                   .mask = &self->old_mask};

        ps_become(&child);
    }
    for (int i = 0; i < 3; i++) {
        close_at(&fds[i]);
        if (!ok) {
            close_at(&ends[i]);
        }
    }
    if (!ok) {
        engine->pid = 0;
        return psd_error_set(err, PSD_IO, "%s cannot be started: %s", words->items[0],
                             strerror(errno));
    }
    (void)setpgid(engine->pid, engine->pid);
    engine->in = ends[0];
    engine->lines[0].fd = ends[1];
    engine->lines[1].fd = ends[2];
    return PSD_OK;
}

static psd_status_t start_one(ps_workers_t *self, ps_engine_t *engine, psd_error_t *err)
{
    PSD_AUTO(ps_words_done) ps_words_t words = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t settings = {0};
    const ps_launch_t *launch = self->args->launch;
    psd_status_t rc = ps_launch_command(launch, engine->first, false, &words, err);

    if (rc == PSD_OK && ps_launch_reads(launch)) {
        rc = ps_launch_settings(launch, engine->first, &settings, err);
    }
    if (rc == PSD_OK && settings.size > SETTINGS_MAX) {
        rc = psd_error_set(err, PSD_LIMIT, "the workers' settings have %zu bytes; allowed: %d",
                           settings.size, SETTINGS_MAX);
    }
    if (rc == PSD_OK) {
        rc = fork_one(self, engine, &words, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    engine->tries++;
    engine->first_ms = engine->first_ms == 0 ? ps_now_ms() : engine->first_ms;
    engine->text.size = 0;
    /* If the launcher has ended, its output says so. */
    (void)!write(engine->in, settings.data, settings.size);
    return PSD_OK;
}

static bool is_connecting(const ps_engine_t *engine)
{
    return engine->pid > 0 && !engine->up;
}

static bool is_waiting(const ps_engine_t *engine)
{
    return engine->pid == 0 && !engine->over;
}

psd_status_t ps_engines_turn(ps_workers_t *self, psd_error_t *err)
{
    const uint64_t now_ms = ps_now_ms();
    uint32_t n_connecting = 0;
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; i < self->n_engines; i++) {
        n_connecting += is_connecting(&self->engines[i]) ? 1 : 0;
    }
    for (uint32_t i = 0; rc == PSD_OK && i < self->n_engines && n_connecting < AT_ONCE; i++) {
        if (is_waiting(&self->engines[i]) && now_ms >= self->engines[i].next_ms) {
            rc = start_one(self, &self->engines[i], err);
            n_connecting++;
        }
    }
    return rc;
}

psd_status_t ps_engines_start_again(ps_workers_t *self, uint32_t rank, psd_error_t *err)
{
    ps_engine_t *engine = self->n_engines == 1 ? &self->engines[0] : &self->engines[rank];
    char order[32];

    if (self->args->launch->kind == PS_LAUNCH_SSH) {
        close_at(&engine->in);
        engine->over = engine->up = false;
        engine->tries = 0;
        engine->first_ms = engine->next_ms = 0;
        return PSD_OK; /* as soon as the old one has ended */
    }
    (void)snprintf(order, sizeof order, "start %" PRIu32 "\n", rank);
    return write(engine->in, order, strlen(order)) > 0
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "%s takes no orders: %s",
                               ps_launch_engine(self->args->launch), strerror(errno));
}

/* ---- ends ---- */

/* Those that have not started never will. */
static void drop_waiting(ps_workers_t *self, int exit_code)
{
    for (uint32_t i = 0; i < self->n_engines; i++) {
        ps_engine_t *engine = &self->engines[i];

        if (!is_waiting(engine)) {
            continue;
        }
        engine->over = true;
        for (uint32_t rank = engine->first; rank < engine->first + engine->n; rank++) {
            if (!self->items[rank].ended) {
                ps_workers_note_end(self, rank, exit_code, exit_code - 128);
            }
        }
    }
}

void ps_engines_signal(ps_workers_t *self, int number)
{
    const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP;
    char order[32];

    (void)snprintf(order, sizeof order, "signal %d\n", number);
    for (uint32_t i = 0; i < self->n_engines; i++) {
        ps_engine_t *engine = &self->engines[i];

        if (engine->pid > 0 && !ps_launch_reads(self->args->launch)) {
            (void)kill(engine->pid, number); /* mpirun passes it on */
        } else if (engine->pid > 0 && engine->in >= 0) {
            (void)!write(engine->in, order, strlen(order));
        }
        if (ends && is_connecting(engine)) {
            (void)kill(-engine->pid, SIGTERM);
        }
    }
    if (ends) {
        drop_waiting(self, 128 + number);
    }
}

/* An engine that never came up: again, or never. */
static void take_failure(ps_workers_t *self, ps_engine_t *engine)
{
    const ps_launch_t *launch = self->args->launch;
    char why[PS_LAUNCH_WHY_SIZE];
    uint64_t now_ms = ps_now_ms();

    if (launch->kind == PS_LAUNCH_SSH && self->asked == 0 && self->cut_ms == 0 &&
        engine->tries < TRIES && now_ms < engine->first_ms + TRY_WITHIN_MS) {
        engine->next_ms = now_ms + TRY_AGAIN_MS * engine->tries;
        return;
    }
    engine->over = true;
    if (self->why[0] == '\0' && self->asked == 0 && self->cut_ms == 0) {
        ps_launch_why(engine->text.data == NULL ? "" : (const char *)engine->text.data, why);
        (void)snprintf(self->why, sizeof self->why, "%s%s: %.300s",
                       launch->kind == PS_LAUNCH_SSH ? "host " : "",
                       ps_launch_place(launch, engine->first), why);
        ps_workers_give_up(self);
    }
}

/* The worker's end was not told: its helper, or the way to it, is gone. */
static void note_silent_end(ps_workers_t *self, const ps_engine_t *engine, uint32_t rank,
                            int exit_code)
{
    const ps_launch_t *launch = self->args->launch;

    if (self->asked == 0 && self->cut_ms == 0 && engine->up) {
        ps_say(self->args->out, "worker %" PRIu32 ": %s ended without a report of it", rank,
               ps_launch_place(launch, rank));
    }
    self->items[rank].told = !engine->up; /* one message says for all why it did not start */
    ps_workers_note_end(self, rank, exit_code != 0 ? exit_code : 128 + SIGKILL, 0);
}

/* It ran the worker that is to be started again: no try of the new one. */
static bool is_old(const ps_workers_t *self, const ps_engine_t *engine)
{
    return !engine->over && engine->tries == 0 && self->asked == 0 && self->cut_ms == 0;
}

static void take_end(ps_workers_t *self, ps_engine_t *engine, int status)
{
    int exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    const bool old = is_old(self, engine);

    engine->pid = 0;
    ps_engines_read(self);
    close_at(&engine->in);
    close_at(&engine->lines[0].fd);
    close_at(&engine->lines[1].fd);
    if (old) {
        engine->up = false; /* also if its last words came only now */
    } else if (!engine->up && !engine->over) {
        take_failure(self, engine);
    } else {
        engine->over = true;
    }
    for (uint32_t rank = engine->first; engine->over && rank < engine->first + engine->n; rank++) {
        if (!self->items[rank].ended) {
            note_silent_end(self, engine, rank, exit_code);
        }
    }
}

void ps_engines_reap(ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n_engines; i++) {
        ps_engine_t *engine = &self->engines[i];
        int status = 0;

        if (engine->pid > 0 && waitpid(engine->pid, &status, WNOHANG) == engine->pid) {
            take_end(self, engine, status);
        }
    }
}

bool ps_engines_all_over(const ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n_engines; i++) {
        if (!self->engines[i].over) {
            return false;
        }
    }
    return true;
}

void ps_engines_note_killed(ps_workers_t *self)
{
    if (self->n_engines > 0 && self->over_ms == 0) {
        self->over_ms = ps_now_ms();
    }
}

void ps_engines_finish(ps_workers_t *self)
{
    bool late = false;

    if (self->n_engines == 0 || (!ps_workers_all_ended(self) && self->over_ms == 0)) {
        return;
    }
    self->over_ms = self->over_ms == 0 ? ps_now_ms() : self->over_ms;
    late = ps_now_ms() >= self->over_ms + FINISH_MS;
    for (uint32_t i = 0; i < self->n_engines; i++) {
        close_at(&self->engines[i].in);
        if (late && self->engines[i].pid > 0) {
            (void)kill(-self->engines[i].pid, SIGKILL);
        }
    }
}

uint64_t ps_engines_due_ms(const ps_workers_t *self)
{
    uint64_t due_ms = UINT64_MAX;
    uint32_t n_connecting = 0;

    for (uint32_t i = 0; i < self->n_engines; i++) {
        n_connecting += is_connecting(&self->engines[i]) ? 1 : 0;
    }
    for (uint32_t i = 0; i < self->n_engines && n_connecting < AT_ONCE; i++) {
        if (is_waiting(&self->engines[i]) && self->engines[i].next_ms < due_ms) {
            due_ms = self->engines[i].next_ms;
        }
    }
    if (self->over_ms != 0 && self->over_ms + FINISH_MS < due_ms) {
        due_ms = self->over_ms + FINISH_MS;
    }
    return due_ms;
}

void ps_engines_done(ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n_engines; i++) {
        ps_engine_t *engine = &self->engines[i];

        close_at(&engine->in);
        if (engine->pid > 0) {
            (void)kill(-engine->pid, SIGKILL);
            (void)waitpid(engine->pid, NULL, 0);
        }
        close_at(&engine->lines[0].fd);
        close_at(&engine->lines[1].fd);
        ps_buffer_done(&engine->text);
    }
    ps_free(self->engines);
    self->engines = NULL;
    self->n_engines = 0;
}
