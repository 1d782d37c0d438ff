/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that share their input through a queue, at one partition, in many
 * random orders: one that waits for a slice and has none finishes clocks, as
 * far as the gate takes its marks. All slices are done, however unevenly they
 * fall, and no worker works further ahead than the bound. Where idle workers
 * finish no clocks, some of the same worlds stand still. */
#include <criterion/criterion.h>

#include "base/rng.h"
#include "protocol/partition/gate.h"

#define WORKERS_MAX 5
#define WORLDS 400
#define STEPS_MAX 100000

typedef enum stage {
    STAGE_ASKS = 0,  /* for a slice */
    STAGE_PULLS = 1, /* it has one */
    STAGE_WORKS = 2,
    STAGE_MARKS = 3, /* it has done it, and finishes its clock */
    STAGE_OVER = 4
} stage_t;

typedef struct one {
    stage_t stage;
    uint64_t clock; /* finished, as it counts */
    bool marking;   /* the gate has not taken the mark of `clock` */
} one_t;

typedef struct world {
    ps_rng_t rng;
    ps_worker_t ranks[WORKERS_MAX];
    ps_job_t job;
    ps_gate_t *gate;
    one_t workers[WORKERS_MAX];
    uint32_t n_slices;
    uint32_t n_epochs;
    uint32_t epoch; /* from 0 */
    uint32_t n_given;
    uint32_t n_done;
    bool idle_goes_on;
} world_t;

static uint32_t below(world_t *self, uint32_t n)
{
    return (uint32_t)ps_rng_below(&self->rng, n);
}

static void make(world_t *self, uint64_t seed, int32_t max_delay)
{
    self->rng = (ps_rng_t){.state = seed};
    self->job = (ps_job_t){.id = 1,
                           .max_delay = max_delay,
                           .version = 1,
                           .workers = self->ranks,
                           .n_workers = 2 + below(self, WORKERS_MAX - 1)};
    for (uint32_t i = 0; i < self->job.n_workers; i++) {
        self->ranks[i] =
            (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
    }
    self->n_slices = 1 + below(self, 12);
    self->n_epochs = 1 + below(self, 4);
    cr_assert_eq(ps_gate_new(&self->job, &self->gate, NULL), PSD_OK);
}

static uint64_t slowest(const world_t *self)
{
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < self->job.n_workers; i++) {
        const one_t *one = &self->workers[i];
        uint64_t taken = one->clock - (one->marking ? 1 : 0);

        if (one->stage != STAGE_OVER && taken < least) {
            least = taken;
        }
    }
    return least;
}

static void leave(world_t *self, uint32_t i)
{
    self->workers[i].stage = STAGE_OVER;
    self->ranks[i].state = PS_WORKER_FINISHED;
    cr_assert_eq(ps_gate_update(self->gate, &self->job, NULL), PSD_OK);
}

/* What is under way goes on. false: it waits. */
static bool takes_mark(world_t *self, uint32_t i)
{
    one_t *one = &self->workers[i];

    if (!ps_gate_takes_mark(self->gate, i, 0, one->clock)) {
        return false;
    }
    ps_gate_mark(self->gate, i, 0, one->clock);
    one->marking = false;
    return true;
}

static bool asks(world_t *self, uint32_t i)
{
    one_t *one = &self->workers[i];

    if (self->epoch == self->n_epochs) {
        leave(self, i);
        return true;
    }
    if (self->n_given < self->n_slices) {
        self->n_given++;
        one->stage = STAGE_PULLS;
        return true;
    }
    if (one->marking) {
        return takes_mark(self, i);
    }
    if (self->idle_goes_on) {
        one->clock++;
        one->marking = true;
    }
    return self->idle_goes_on;
}

static void done(world_t *self)
{
    if (++self->n_done == self->n_slices) {
        self->epoch++;
        self->n_done = 0;
        self->n_given = 0;
    }
}

/* Marks and pulls are one line to a partition: a pull stands behind a mark. */
static bool step(world_t *self, uint32_t i)
{
    one_t *one = &self->workers[i];

    switch (one->stage) {
    case STAGE_ASKS:
        return asks(self, i);
    case STAGE_PULLS:
        if (one->marking && !takes_mark(self, i)) {
            return false;
        }
        if (!ps_gate_is_open(self->gate, one->clock)) {
            return false;
        }
        cr_assert_leq(one->clock, slowest(self) + (uint64_t)self->job.max_delay);
        one->stage = STAGE_WORKS;
        return true;
    case STAGE_WORKS:
        done(self);
        one->clock++;
        one->marking = true;
        one->stage = STAGE_MARKS;
        return true;
    case STAGE_MARKS:
        if (!takes_mark(self, i)) {
            return false;
        }
        one->stage = STAGE_ASKS;
        return true;
    case STAGE_OVER:
    default:
        return false;
    }
}

static bool is_over(const world_t *self)
{
    bool over = true;

    for (size_t i = 0; over && i < self->job.n_workers; i++) {
        over = self->workers[i].stage == STAGE_OVER;
    }
    return over;
}

/* true: it came to its end; false: nobody can go on. */
static bool live(world_t *self)
{
    for (uint32_t n = 0; n < STEPS_MAX && !is_over(self); n++) {
        uint32_t first = below(self, (uint32_t)self->job.n_workers);
        bool moved = false;

        for (uint32_t k = 0; !moved && k < self->job.n_workers; k++) {
            moved = step(self, (first + k) % (uint32_t)self->job.n_workers);
        }
        if (!moved) {
            return false;
        }
    }
    return is_over(self);
}

static uint32_t count_stuck(bool idle_goes_on, int32_t max_delay)
{
    uint32_t n = 0;

    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        world_t world = {.idle_goes_on = idle_goes_on};

        make(&world, seed, max_delay);
        n += live(&world) ? 0 : 1;
        ps_gate_destroy(&world.gate);
    }
    return n;
}

Test(gate_idle, all_slices_are_done_within_the_bound)
{
    for (int32_t max_delay = 0; max_delay <= 3; max_delay++) {
        cr_assert_eq(count_stuck(true, max_delay), 0);
    }
}

Test(gate_idle, without_it_workers_wait_in_a_circle)
{
    cr_assert_gt(count_stuck(false, 0), WORLDS / 10);
    cr_assert_gt(count_stuck(false, 2), 0);
}
