/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's letters to and from the registry. */
#include <inttypes.h>

#include "sim_cluster.h"

#define ALIVE_MS 200 /* heartbeat interval */
#define AGAIN_MS 250 /* retry interval of a question */
#define HIDE_MS 2500 /* most that it is silent */

static cluster_worker_t *worker_of(cluster_t *self, uint32_t number)
{
    return &self->clients[number].worker;
}

/* ---- asking ---- */

static void post(cluster_t *self, uint32_t number, cluster_letter_kind_t kind)
{
    const cluster_worker_t *worker = worker_of(self, number);

    cluster_post(self,
                 &(cluster_letter_t){.kind = kind,
                                     .from = number,
                                     .to = CLUSTER_REGISTRY,
                                     .number = worker->n_asks,
                                     .joins = worker->joins,
                                     .clock = self->clients[number].clock,
                                     .work = {.epoch = worker->epoch, .slice = worker->slice}});
}

static void ask(cluster_t *self, uint32_t number, cluster_letter_kind_t kind)
{
    cluster_worker_t *worker = worker_of(self, number);

    worker->asks = (int)kind;
    worker->asked = ++worker->n_asks;
    post(self, number, kind);
    cluster_at(self, self->now_ms + AGAIN_MS, CLUSTER_ASK_AGAIN, number)->b = worker->asked;
}

void cluster_worker_again(cluster_t *self, uint32_t number, uint64_t asked)
{
    const cluster_worker_t *worker = worker_of(self, number);

    if (worker->asked == asked) {
        post(self, number, (cluster_letter_kind_t)worker->asks);
        cluster_at(self, self->now_ms + AGAIN_MS, CLUSTER_ASK_AGAIN, number)->b = asked;
    }
}

void cluster_worker_start(cluster_t *self, uint32_t number)
{
    cluster_worker_t *worker = worker_of(self, number);

    if (!self->plan.job || self->clients[number].reader) {
        return;
    }
    if (!self->plan.comes) {
        worker->life = CLUSTER_IN;
        worker->joins = 1;
    }
    cluster_worker_alive(self, number);
}

/* As the client library does: until its client is broken. */
void cluster_worker_alive(cluster_t *self, uint32_t number)
{
    const cluster_worker_t *worker = worker_of(self, number);

    if (ps_session_broken(self->clients[number].session, NULL) != PSD_OK) {
        return;
    }
    if ((worker->life == CLUSTER_IN || worker->life == CLUSTER_GOING) &&
        self->now_ms >= worker->silent_ms) {
        post(self, number, CLUSTER_ALIVE);
    }
    (void)cluster_at(self, self->now_ms + ALIVE_MS, CLUSTER_ALIVE_TIME, number);
}

/* ---- its script ---- */

bool cluster_worker_is_ready(cluster_t *self, uint32_t number)
{
    cluster_client_t *client = &self->clients[number];
    cluster_worker_t *worker = &client->worker;

    if (!self->plan.comes || client->reader) {
        return true;
    }
    if (worker->asked != 0) {
        return false; /* the answer comes here again */
    }
    if (self->now_ms < worker->silent_ms) {
        (void)cluster_at(self, worker->silent_ms, CLUSTER_CLIENT_LINE, number);
        return false;
    }
    if (worker->life == CLUSTER_OUT) {
        if (client->n_open == 0) { /* else their ends come here again */
            worker->life = CLUSTER_COMING;
            ask(self, number, CLUSTER_ENTER);
        }
        return false;
    }
    return true;
}

void cluster_worker_line(cluster_t *self, uint32_t number, const cluster_line_t *line)
{
    cluster_worker_t *worker = worker_of(self, number);

    if (line->kind == CLUSTER_LEAVE) {
        worker->life = CLUSTER_GOING;
        ask(self, number, CLUSTER_EXIT);
    } else if (line->kind == CLUSTER_TAKE) {
        ask(self, number, CLUSTER_NEXT);
    } else if (line->kind == CLUSTER_COUNT && worker->has_slice) {
        ask(self, number, CLUSTER_DONE);
    } else if (line->kind == CLUSTER_HIDE) {
        worker->silent_ms = self->now_ms + cluster_below(self, HIDE_MS);
        cluster_trace(self, "client %u is silent until %" PRIu64, number, worker->silent_ms);
    }
}

/* ---- letters received ---- */

void cluster_worker_lost(cluster_t *self, uint32_t number, uint32_t joins)
{
    cluster_worker_t *worker = worker_of(self, number);

    if (worker->joins != joins || worker->life == CLUSTER_OUT || worker->life == CLUSTER_COMING) {
        return;
    }
    cluster_trace(self, "client %u was lost", number);
    if (self->facts.lost[number] < joins) {
        cluster_fail(self, "client %u hears that it was lost, and is not", number);
    }
    worker->life = CLUSTER_OUT;
    worker->asked = 0;
    worker->has_slice = false;
    (void)cluster_at(self, self->now_ms + 1, CLUSTER_CLIENT_LINE, number);
}

static void enters(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_client_t *client = &self->clients[letter->to];

    client->worker.life = CLUSTER_IN;
    client->worker.joins = letter->joins;
    client->clock = letter->clock;
    cluster_client_letter(self, letter);
    cluster_trace(self, "client %u runs from clock %" PRIu64, letter->to, letter->clock);
}

static void is_counted(cluster_t *self, uint32_t number)
{
    cluster_worker_t *worker = worker_of(self, number);

    worker->has_slice = false;
    if (self->facts.counted[worker->epoch][worker->slice] != 1) {
        cluster_fail(
            self, "client %u hears that slice %u of epoch %" PRIu64 " is counted; it is %u times",
            number, worker->slice, worker->epoch,
            self->facts.counted[worker->epoch][worker->slice]);
    }
}

void cluster_worker_letter(cluster_t *self, const cluster_letter_t *letter)
{
    cluster_worker_t *worker = worker_of(self, letter->to);

    if (letter->kind == CLUSTER_LOST) {
        cluster_worker_lost(self, letter->to, letter->joins);
        return;
    }
    if (letter->number != worker->asked || worker->asked == 0) {
        return; /* it knows that */
    }
    worker->asked = 0;
    if (letter->kind == CLUSTER_ENTERED) {
        enters(self, letter);
    } else if (letter->kind == CLUSTER_EXITED) {
        worker->life = CLUSTER_OUT;
        worker->has_slice = false;
    } else if (letter->kind == CLUSTER_OVER) {
        self->clients[letter->to].finished = true;
    } else if (letter->kind == CLUSTER_SLICE) {
        worker->has_slice = letter->work.found == PS_WORK_SLICE;
        worker->epoch = letter->work.epoch;
        worker->slice = letter->work.slice;
    } else if (letter->kind == CLUSTER_COUNTED) {
        is_counted(self, letter->to);
    }
    cluster_client_line(self, letter->to);
}
