/* SPDX-License-Identifier: Apache-2.0 */
/* Handles workers that have ended, and workers that do not end. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/jobs/workers_inner.h"
#include "transport/sockets/socket.h"

#define END_SIZE 96 /* bytes of the text how one ended */
#define ASK_FIRST_MS                                                         \
    250                  /* until the registry is asked again, twice as long \
                          */
#define ASK_MOST_MS 4000 /* each time, and this many times its duration: */
#define LOOK_AFTER 5
#define END_WITHIN_MS 5000 /* after a request to end, until they are killed */

bool ps_workers_all_ended(const ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        if (!self->items[i].ended) {
            return false;
        }
    }
    return true;
}

void ps_workers_send(ps_workers_t *self, int number)
{
    if (self->args->launch != NULL) {
        ps_engines_signal(self, number);
        return;
    }
    for (uint32_t i = 0; i < self->n; i++) {
        if (!self->items[i].ended) {
            (void)kill(-self->items[i].pid, number);
        }
    }
}

/* A failure that is not the end: the worker will be started again. */
static bool may_start_again(const ps_workers_t *self, const ps_local_worker_t *worker)
{
    return worker->exit != 0 && worker->restarts < self->args->restarts && self->asked == 0 &&
           self->cut_ms == 0 && worker->started;
}

void ps_workers_note_end(ps_workers_t *self, uint32_t rank, int exit_code, int number)
{
    ps_local_worker_t *worker = &self->items[rank];

    worker->ended = true;
    worker->exit = exit_code;
    worker->signal = number;
    if (self->first_exit == 0 && !may_start_again(self, worker)) {
        self->first_exit = exit_code;
    }
}

/* "was killed by signal 9 (Killed)" */
static void print_end(const ps_local_worker_t *worker, char ret_text[END_SIZE])
{
    if (worker->signal != 0) {
        (void)snprintf(ret_text, END_SIZE, "was killed by signal %d (%s)", worker->signal,
                       strsignal(worker->signal));
    } else {
        (void)snprintf(ret_text, END_SIZE, "ended with exit code %d", worker->exit);
    }
}

static void tell_end(const ps_workers_t *self, uint32_t rank)
{
    const ps_local_worker_t *worker = &self->items[rank];
    char text[END_SIZE];

    if (worker->exit == 0 || (worker->cut && worker->signal == SIGTERM)) {
        return;
    }
    print_end(worker, text);
    ps_say(self->args->out, "worker %" PRIu32 " %s", rank, text);
}

/* Asks the registry about a worker that failed, and reports the failure. Not
 * for one whose rank another launch may have, or one that knows that it was
 * lost: both end like this. */
static ps_worker_fate_t fate_of(const ps_workers_t *self, uint32_t rank)
{
    const ps_local_worker_t *worker = &self->items[rank];
    char text[END_SIZE];

    print_end(worker, text);
    return ps_workers_job_fate(self->args->registered, rank,
                               worker->exit == psd_status_exit(PSD_WORKER_EXISTS) ? NULL : text);
}

psd_status_t ps_workers_start_again(ps_workers_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < self->n; i++) {
        ps_local_worker_t *worker = &self->items[i];
        char text[END_SIZE];

        if (!worker->ended || !may_start_again(self, worker)) {
            continue;
        }
        print_end(worker, text);
        /* The registry must know that it is lost before it may join again. */
        (void)fate_of(self, i);
        psd_close(&self->args->registered->cli->client); /* its threads would not survive a fork */
        worker->restarts++;
        ps_say(self->args->out,
               "worker %" PRIu32 " %s; starting it again (%" PRIu32 " of %" PRIu32 ")", i, text,
               worker->restarts, self->args->restarts);
        worker->ended = worker->told = worker->settled = false;
        worker->exit = worker->signal = 0;
        (void)fflush(NULL);
        rc = self->args->launch != NULL ? ps_engines_start_again(self, i, err)
                                        : ps_workers_fork(self, i, err);
    }
    return rc;
}

void ps_workers_tell_ends(ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        if (self->items[i].ended && !self->items[i].told) {
            self->items[i].told = true;
            tell_end(self, i);
        }
    }
}

static void cut_others(ps_workers_t *self)
{
    self->cut_ms = ps_now_ms();
    for (uint32_t i = 0; i < self->n; i++) {
        self->items[i].cut = !self->items[i].ended;
    }
    ps_workers_send(self, SIGTERM);
    ps_workers_send(self, SIGCONT);
}

void ps_workers_give_up(ps_workers_t *self)
{
    if (self->cut_ms == 0) {
        cut_others(self);
    }
}

/* Ends the others: they would wait for it, and then go on without its share.
 * A stopped process cannot end until it continues. */
static void end_others(ps_workers_t *self, uint32_t rank)
{
    ps_say(self->args->out, "worker %" PRIu32 " never joined job %s: stopping the others", rank,
           self->args->job);
    cut_others(self);
}

static void kill_if_due(ps_workers_t *self)
{
    if (self->cut_ms == 0 || ps_now_ms() < self->cut_ms + END_WITHIN_MS) {
        return;
    }
    for (uint32_t i = 0; i < self->n; i++) {
        if (!self->items[i].ended) {
            ps_say(self->args->out, "worker %" PRIu32 " does not stop: killing it", i);
        }
    }
    ps_workers_send(self, SIGKILL);
    ps_engines_note_killed(self);
    self->cut_ms = UINT64_MAX - END_WITHIN_MS;
}

/* The first failure may end the others. */
static bool may_end_others(const ps_workers_t *self)
{
    return self->asked == 0 && self->cut_ms == 0;
}

static void wait_longer(ps_workers_t *self, uint64_t spent_ms)
{
    uint64_t wait_ms = self->ask_wait_ms == 0 ? ASK_FIRST_MS : 2 * self->ask_wait_ms;

    self->ask_wait_ms = wait_ms < ASK_MOST_MS ? wait_ms : ASK_MOST_MS;
    self->ask_ms = ps_now_ms() + self->ask_wait_ms + LOOK_AFTER * spent_ms;
}

/* Asks which of them the job waits for, until the registry knows none. */
static void look_at_ends(ps_workers_t *self)
{
    uint64_t begun_ms = ps_now_ms();

    for (uint32_t i = 0; i < self->n; i++) {
        ps_local_worker_t *worker = &self->items[i];
        ps_worker_fate_t fate = PS_FATE_KNOWN;

        if (!worker->ended || worker->settled) {
            continue;
        }
        if (worker->exit != 0) {
            fate = fate_of(self, i);
        }
        if (fate == PS_FATE_UNKNOWN) {
            wait_longer(self, ps_now_ms() - begun_ms);
            return;
        }
        worker->settled = true;
        if (fate == PS_FATE_MISSED) {
            end_others(self, i);
            return;
        }
    }
}

void ps_workers_settle(ps_workers_t *self)
{
    if (may_end_others(self) && ps_now_ms() >= self->ask_ms && !ps_workers_all_ended(self)) {
        look_at_ends(self);
    }
    kill_if_due(self);
}

void ps_workers_settle_last(ps_workers_t *self)
{
    ps_worker_fate_t fate = PS_FATE_KNOWN;

    for (uint32_t i = 0; fate != PS_FATE_UNKNOWN && i < self->n; i++) {
        if (!self->items[i].settled && self->items[i].exit != 0) {
            fate = fate_of(self, i);
            self->items[i].settled = true;
        }
    }
}

int ps_workers_time_left(const ps_workers_t *self)
{
    uint64_t now_ms = ps_now_ms();
    uint64_t until_ms = self->cut_ms == 0 ? UINT64_MAX : self->cut_ms + END_WITHIN_MS;
    bool may_end = may_end_others(self);

    for (uint32_t i = 0; may_end && i < self->n; i++) {
        if (self->items[i].ended && !self->items[i].settled && self->ask_ms < until_ms) {
            until_ms = self->ask_ms;
        }
    }
    if (ps_engines_due_ms(self) < until_ms) {
        until_ms = ps_engines_due_ms(self);
    }
    if (until_ms == UINT64_MAX) {
        return -1;
    }
    return until_ms > now_ms ? (int)(until_ms - now_ms) : 0;
}
