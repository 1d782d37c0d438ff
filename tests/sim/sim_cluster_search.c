/* SPDX-License-Identifier: Apache-2.0 */
/* Runs many seeds; for one that fails, finds the smallest world that still fails. */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_cluster.h"
#include "sim_story.h"

#define SEEDS_MANY 100 /* enough for chances to even out */
#define LUCKS 6        /* tried for each smaller world */
#define PROMISE_SIZE 3 /* "W1:" */

/* ---- a smaller world ---- */

typedef struct shrink {
    cluster_t *world;
    cluster_plan_t plan;        /* the smallest that fails … */
    char promise[PROMISE_SIZE]; /* … for the same reason as the first */
} shrink_t;

/* Keeps the plan when it fails too, perhaps with other luck. */
static bool try(shrink_t *self, cluster_plan_t *plan)
{
    for (uint64_t i = 0; i < LUCKS; i++) {
        plan->luck = i == 0 ? self->plan.luck : i;
        if (cluster_run(plan, NULL, self->world) != NULL &&
            strncmp(self->world->violation, self->promise, PROMISE_SIZE) == 0) {
            self->plan = *plan;
            return true;
        }
    }
    return false;
}

static bool drop_faults(shrink_t *self)
{
    bool smaller = false;

    for (uint32_t i = self->plan.n_faults; i > 0; i--) {
        cluster_plan_t plan = self->plan;

        plan.n_faults--;
        for (uint32_t k = i - 1; k < plan.n_faults; k++) {
            plan.faults[k] = plan.faults[k + 1];
        }
        smaller = try(self, &plan) || smaller;
    }
    return smaller;
}

/* Half of a number, or one less, as long as it fails. */
static bool lower(shrink_t *self, size_t offset, uint32_t least)
{
    bool smaller = false;

    for (;;) {
        cluster_plan_t half = self->plan;
        cluster_plan_t less = self->plan;
        uint32_t *number = (uint32_t *)(void *)((char *)&half + offset);

        if (*number <= least) {
            return smaller;
        }
        *number = least + (*number - least) / 2;
        *(uint32_t *)(void *)((char *)&less + offset) -= 1;
        if (!try(self, &half) && !try(self, &less)) {
            return smaller;
        }
        smaller = true;
    }
}

static void make_smallest(shrink_t *self)
{
    bool smaller = true;

    while (smaller) {
        smaller = drop_faults(self);
        smaller = lower(self, offsetof(cluster_plan_t, falls), 0) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, tears), 0) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, loss), 0) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, repeat), 0) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, n_clients), 1) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, n_pushes), 1) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, n_clocks), 1) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, n_partitions), 1) || smaller;
        smaller = lower(self, offsetof(cluster_plan_t, delay_ms), 1) || smaller;
    }
}

static void tell_story(void *context, FILE *trace)
{
    shrink_t *self = context;

    (void)cluster_run(&self->plan, trace, self->world);
}

/* ---- many ---- */

static void show(cluster_t *world, const cluster_plan_t *plan)
{
    shrink_t shrink = {.world = world, .plan = *plan};

    memcpy(shrink.promise, world->violation, PROMISE_SIZE);
    (void)printf("seed %" PRIu64 ": %s\n", plan->seed, world->violation);
    make_smallest(&shrink);
    sim_story_show(tell_story, &shrink);
    (void)printf("seed %" PRIu64 ", made smaller: %s\n", plan->seed, world->violation);
}

typedef struct sums {
    uint64_t n_answers;
    uint64_t n_fences;
    uint64_t n_events;
    uint64_t n_joins;
    uint64_t n_lost;
    uint64_t n_epochs;
    uint64_t n_checkpoints;
    uint64_t n_exact;
    uint64_t n_under_way;
    uint64_t n_leads;
    uint64_t n_requests;
    uint64_t n_installs;
    uint64_t n_falls;
    uint64_t n_unknown;
} sums_t;

static void add(sums_t *self, const cluster_t *world)
{
    self->n_answers += world->n_answers;
    self->n_fences += world->n_fences;
    self->n_events += world->n_handled;
    self->n_joins += world->facts.n_joins;
    self->n_lost += world->facts.n_lost;
    self->n_epochs += world->facts.epoch > 0 ? world->facts.epoch - 1 : 0;
    self->n_checkpoints += world->checkpoint.n_whole;
    self->n_exact += world->checkpoint.n_exact;
    self->n_under_way += world->n_under_way;
    self->n_leads += world->story.n_leads;
    self->n_requests += world->story.request > 0 ? world->story.request - 1 : 0;
    self->n_installs += world->story.n_installs;
    self->n_falls += world->story.n_falls;
    self->n_unknown += world->story.n_lost;
}

static void print_sums(const sums_t *self, uint64_t first, uint64_t n)
{
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": clean; %" PRIu64 " events, %" PRIu64
                 " answers, %" PRIu64 " fences, %" PRIu64 " joins, %" PRIu64
                 " workers lost, %" PRIu64 " epochs, %" PRIu64 " checkpoints, %" PRIu64
                 " exact, %" PRIu64 " repeated while their values came\n",
                 n, first, self->n_events, self->n_answers, self->n_fences, self->n_joins,
                 self->n_lost, self->n_epochs, self->n_checkpoints, self->n_exact,
                 self->n_under_way);
    (void)printf("registries: %" PRIu64 " leads, %" PRIu64 " requests, %" PRIu64
                 " installs, %" PRIu64 " torn disks, %" PRIu64 " unknown outcomes\n",
                 self->n_leads, self->n_requests, self->n_installs, self->n_falls, self->n_unknown);
}

/* Enough of everything happened. */
static bool proves(const sums_t *self, uint64_t n)
{
    return self->n_fences >= n / 4 && self->n_answers >= 10 * n && self->n_checkpoints >= n &&
           self->n_exact >= n / 20 && self->n_under_way >= n / 10 &&
           (self->n_leads == 0 /* built without libraft */ ||
            (self->n_leads >= n / 2 && self->n_requests >= 2 * n && self->n_installs >= n / 50 &&
             self->n_unknown >= n / 50));
}

uint64_t cluster_search(uint64_t first, uint64_t n, bool verbose)
{
    cluster_t *world = ps_alloc(1, sizeof *world);
    sums_t sums = {0};
    uint64_t found = UINT64_MAX;

    cluster_need(world != NULL, "memory for a world");
    for (uint64_t seed = first; seed < first + n && found == UINT64_MAX; seed++) {
        cluster_plan_t plan;

        cluster_plan_make(seed, &plan);
        if (cluster_run(&plan, verbose ? stdout : NULL, world) != NULL) {
            found = seed;
            show(world, &plan);
        }
        add(&sums, world);
    }
    ps_free(world);
    if (found != UINT64_MAX) {
        return found;
    }
    print_sums(&sums, first, n);
    if (n >= SEEDS_MANY && !proves(&sums, n)) {
        (void)printf("so few fences, answers, checkpoints and leads prove nothing\n");
        return first;
    }
    return found;
}
