/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of members, closed clocks, and the workers that hold clocks open. */
#include "protocol/partition/gate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define NAMED_MAX 3 /* workers that a reason names */

typedef struct gate_worker {
    ps_worker_t is;  /* as the job says */
    uint64_t *marks; /* owned; one a member */
} gate_worker_t;

struct ps_gate {
    uint32_t job;
    int32_t max_delay;
    bool stopped;
    gate_worker_t *workers; /* owned */
    size_t n_workers;
    size_t n_live;
    uint64_t closed;
    uint64_t highest; /* of all marks that there ever were */
    uint64_t slowest; /* of the live workers; below `closed` when one started again after all others
                         were gone */
};

static uint64_t finished_of(const gate_worker_t *worker)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < worker->is.n_members; i++) {
        if (worker->marks[i] < least) {
            least = worker->marks[i];
        }
    }
    return worker->is.n_members == 0 ? worker->is.start : least;
}

static void settle_closed(ps_gate_t *self)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    self->n_live = 0;
    for (size_t i = 0; i < self->n_workers; i++) {
        const gate_worker_t *worker = &self->workers[i];
        uint64_t finished = finished_of(worker);

        if (finished > most) {
            most = finished;
        }
        if (!ps_worker_is_live(&worker->is)) {
            continue;
        }
        self->n_live++;
        if (worker->is.state == PS_WORKER_JOINING) {
            finished = self->closed; /* holds every further clock */
        }
        if (finished < least) {
            least = finished;
        }
    }
    if (self->n_live == 0) {
        least = most;
    }
    self->slowest = least;
    if (least > self->closed) {
        self->closed = least;
    }
    if (self->closed > self->highest) {
        self->highest = self->closed;
    }
}

/* Marks of those that go are forgotten, but for this. */
static void settle_highest(ps_gate_t *self)
{
    for (size_t i = 0; i < self->n_workers; i++) {
        const gate_worker_t *worker = &self->workers[i];

        for (uint32_t k = 0; k < worker->is.n_members; k++) {
            if (worker->marks[k] > self->highest) {
                self->highest = worker->marks[k];
            }
        }
    }
}

static void free_workers(gate_worker_t *workers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ps_free(workers[i].marks);
    }
    ps_free(workers);
}

static const gate_worker_t *find_worker(const ps_gate_t *self, uint32_t rank)
{
    size_t low = 0;
    size_t high = self->n_workers;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->workers[middle].is.worker == rank) {
            return &self->workers[middle];
        }
        if (self->workers[middle].is.worker < rank) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* The worker as the job now says, with the marks that it had. */
static bool carry_over(const gate_worker_t *old, const ps_worker_t *now, gate_worker_t *ret)
{
    uint64_t start = now->start;
    uint32_t kept = 0;

    if (old != NULL && old->is.joins == now->joins) {
        kept = old->is.n_members;
        if (finished_of(old) > start) {
            start = finished_of(old);
        }
    }
    ret->is = *now;
    ret->marks = ps_alloc(now->n_members, sizeof *ret->marks);
    if (ret->marks == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < now->n_members; i++) {
        ret->marks[i] = i < kept ? old->marks[i] : start;
        if (ret->marks[i] < now->start) {
            ret->marks[i] = now->start;
        }
    }
    return true;
}

psd_status_t ps_gate_update(ps_gate_t *self, const ps_job_t *job, psd_error_t *err)
{
    gate_worker_t *workers = ps_alloc(job->n_workers, sizeof *workers);

    if (workers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a clock gate");
    }
    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *now = &job->workers[i];

        if (!carry_over(find_worker(self, now->worker), now, &workers[i])) {
            free_workers(workers, i);
            return psd_error_set(err, PSD_NOMEM, "no memory for a clock gate");
        }
    }
    free_workers(self->workers, self->n_workers);
    self->workers = workers;
    self->n_workers = job->n_workers;
    self->max_delay = job->max_delay;
    self->stopped = job->stopped;
    settle_highest(self);
    settle_closed(self);
    return PSD_OK;
}

psd_status_t ps_gate_new(const ps_job_t *job, ps_gate_t **ret_gate, psd_error_t *err)
{
    PSD_AUTO(ps_gate_destroy) ps_gate_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a clock gate");
    }
    self->job = job->id;
    rc = ps_gate_update(self, job, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_gate = self;
    self = NULL;
    return PSD_OK;
}

void ps_gate_destroy(ps_gate_t **self_p)
{
    ps_gate_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    free_workers(self->workers, self->n_workers);
    ps_free(self);
    *self_p = NULL;
}

uint32_t ps_gate_job(const ps_gate_t *self)
{
    return self->job;
}

bool ps_gate_is_bsp(const ps_gate_t *self)
{
    return self->max_delay == 0;
}

psd_status_t ps_gate_check(const ps_gate_t *self, uint32_t worker, uint32_t joins, uint32_t member,
                           psd_error_t *err)
{
    const gate_worker_t *found = find_worker(self, worker);

    if (self->stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED, "the job was stopped");
    }
    if (found == NULL || found->is.state == PS_WORKER_EXPECTED ||
        (found->is.state == PS_WORKER_JOINING && joins == found->is.joins)) {
        return psd_error_set(err, PSD_NO_WORKER, "worker %" PRIu32 " has not joined the job",
                             worker);
    }
    if (!ps_worker_is_live(&found->is)) {
        return psd_error_set(err, PSD_WORKER_LOST, "worker %" PRIu32 " is %s", worker,
                             ps_worker_state_name(found->is.state));
    }
    if (joins != found->is.joins) {
        return psd_error_set(err, PSD_WORKER_LOST,
                             "worker %" PRIu32 " was lost and has joined again since", worker);
    }
    if (member >= found->is.n_members) {
        return psd_error_set(err, PSD_NO_WORKER,
                             "worker %" PRIu32 " has no member %" PRIu32 "; it has %" PRIu32,
                             worker, member, found->is.n_members);
    }
    return PSD_OK;
}

bool ps_gate_expects(const ps_gate_t *self, uint32_t worker, uint32_t joins)
{
    const gate_worker_t *found = find_worker(self, worker);

    return !self->stopped && found != NULL && found->is.state == PS_WORKER_JOINING &&
           found->is.joins == joins;
}

bool ps_gate_is_open(const ps_gate_t *self, uint64_t clock)
{
    if (self->max_delay < 0 || self->n_live == 0) {
        return true;
    }
    return self->slowest >= clock || clock - self->slowest <= (uint64_t)self->max_delay;
}

bool ps_gate_takes_mark(const ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock)
{
    const gate_worker_t *found = find_worker(self, worker);

    if (found == NULL || member >= found->is.n_members || clock != found->marks[member] + 1) {
        return true;
    }
    return ps_gate_is_open(self, found->marks[member]);
}

bool ps_gate_is_at(const ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock)
{
    const gate_worker_t *found = find_worker(self, worker);

    return found != NULL && member < found->is.n_members && found->marks[member] == clock;
}

uint64_t ps_gate_mark_of(const ps_gate_t *self, uint32_t worker, uint32_t member)
{
    const gate_worker_t *found = find_worker(self, worker);

    return found != NULL && member < found->is.n_members ? found->marks[member] : 0;
}

uint64_t ps_gate_needs(const ps_gate_t *self, uint64_t clock)
{
    return self->max_delay < 0 || clock < (uint64_t)self->max_delay
               ? 0
               : clock - (uint64_t)self->max_delay;
}

void ps_gate_mark(ps_gate_t *self, uint32_t worker, uint32_t member, uint64_t clock)
{
    const gate_worker_t *found = find_worker(self, worker);

    if (found != NULL && member < found->is.n_members && found->marks[member] < clock) {
        found->marks[member] = clock;
        if (clock > self->highest) {
            self->highest = clock;
        }
        settle_closed(self);
    }
}

uint64_t ps_gate_closed(const ps_gate_t *self)
{
    return self->closed;
}

uint64_t ps_gate_highest(const ps_gate_t *self)
{
    return self->highest;
}

bool ps_gate_is_deserted(const ps_gate_t *self)
{
    return self->n_live == 0;
}

bool ps_gate_is_settled(const ps_gate_t *self)
{
    return self->n_live > 0 && self->slowest >= self->closed;
}

size_t ps_gate_n_workers(const ps_gate_t *self)
{
    return self->n_workers;
}

uint64_t ps_gate_finished(const ps_gate_t *self, size_t i, uint32_t *ret_worker)
{
    const gate_worker_t *worker = &self->workers[i];
    uint64_t finished = finished_of(worker);

    *ret_worker = worker->is.worker;
    if (worker->is.state == PS_WORKER_JOINING && finished < self->closed) {
        return self->closed; /* it cannot start below the closed clock */
    }
    return finished;
}

bool ps_gate_took_part(const ps_gate_t *self, size_t i, uint64_t clock)
{
    const gate_worker_t *worker = &self->workers[i];

    return worker->is.state != PS_WORKER_EXPECTED && worker->is.state != PS_WORKER_JOINING &&
           worker->is.start <= clock && finished_of(worker) > clock;
}

bool ps_gate_expects_more(const ps_gate_t *self, size_t i, uint64_t clock)
{
    const gate_worker_t *worker = &self->workers[i];

    return ps_worker_is_live(&worker->is) &&
           (worker->is.state == PS_WORKER_JOINING || finished_of(worker) <= clock);
}

psd_status_t ps_gate_job_now(const ps_gate_t *self, ps_job_t *ret_job, psd_error_t *err)
{
    ps_job_t job = {.id = self->job,
                    .max_delay = self->max_delay,
                    .stopped = self->stopped,
                    .n_workers = self->n_workers};

    job.workers = ps_alloc(self->n_workers, sizeof *job.workers);
    if (job.workers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a job's workers");
    }
    for (size_t i = 0; i < self->n_workers; i++) {
        job.workers[i] = self->workers[i].is;
    }
    *ret_job = job;
    return PSD_OK;
}

const uint64_t *ps_gate_marks(const ps_gate_t *self, size_t i, uint32_t *ret_n)
{
    *ret_n = self->workers[i].is.n_members;
    return self->workers[i].marks;
}

void ps_gate_restore(ps_gate_t *self, uint64_t closed, uint64_t highest, const uint64_t *marks)
{
    for (size_t i = 0; i < self->n_workers; i++) {
        const gate_worker_t *worker = &self->workers[i];

        memcpy(worker->marks, marks, worker->is.n_members * sizeof *marks);
        marks += worker->is.n_members;
    }
    self->closed = closed;
    self->highest = highest;
    settle_highest(self);
    settle_closed(self);
}

/* The i-th worker keeps one that has finished `clock` clocks waiting. */
static bool holds(const ps_gate_t *self, size_t i, uint64_t clock)
{
    const gate_worker_t *worker = &self->workers[i];
    uint64_t finished = finished_of(worker);

    if (!ps_worker_is_live(&worker->is) || self->max_delay < 0) {
        return false;
    }
    if (worker->is.state == PS_WORKER_JOINING) {
        finished = self->closed;
    }
    return finished < clock && clock - finished > (uint64_t)self->max_delay;
}

bool ps_gate_slowest(const ps_gate_t *self, uint64_t clock, uint32_t *ret_worker,
                     uint64_t *ret_finished)
{
    bool found = false;

    for (size_t i = 0; i < self->n_workers; i++) {
        uint64_t finished = finished_of(&self->workers[i]);

        if (holds(self, i, clock) && (!found || finished < *ret_finished)) {
            *ret_worker = self->workers[i].is.worker;
            *ret_finished = finished;
            found = true;
        }
    }
    return found;
}

void ps_gate_reason(const ps_gate_t *self, uint64_t clock, char *ret_text, size_t size)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    size_t n = 0;
    bool fits = true;

    for (size_t i = 0; i < self->n_workers; i++) {
        const gate_worker_t *worker = &self->workers[i];

        if (!holds(self, i, clock)) {
            continue;
        }
        if (n < NAMED_MAX) {
            fits =
                fits && ps_buffer_print(
                            &text, "%sworker %" PRIu32 " at clock %" PRIu64 "%s",
                            n == 0 ? "waiting for " : ", ", worker->is.worker, finished_of(worker),
                            worker->is.state == PS_WORKER_EXPECTED ? " (not joined yet)" : "");
        }
        n++;
    }
    if (n > NAMED_MAX) {
        fits = fits && ps_buffer_print(&text, " and %zu more", n - (size_t)NAMED_MAX);
    }
    if (n > 0 && fits) {
        (void)snprintf(ret_text, size, "%.*s; clock %" PRIu64 " is needed", (int)text.size,
                       (const char *)text.data, clock - (uint64_t)self->max_delay);
    } else {
        (void)snprintf(ret_text, size, "waiting for its turn");
    }
}
