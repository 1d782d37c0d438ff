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

uint64_t cluster_search(uint64_t first, uint64_t n, bool verbose)
{
    cluster_t *world = ps_alloc(1, sizeof *world);
    uint64_t n_answers = 0;
    uint64_t n_fences = 0;
    uint64_t n_events = 0;
    uint64_t n_joins = 0;
    uint64_t n_lost = 0;
    uint64_t n_epochs = 0;
    uint64_t n_checkpoints = 0;
    uint64_t n_exact = 0;
    uint64_t n_under_way = 0;
    uint64_t found = UINT64_MAX;

    cluster_need(world != NULL, "memory for a world");
    for (uint64_t seed = first; seed < first + n && found == UINT64_MAX; seed++) {
        cluster_plan_t plan;

        cluster_plan_make(seed, &plan);
        if (cluster_run(&plan, verbose ? stdout : NULL, world) != NULL) {
            found = seed;
            show(world, &plan);
        }
        n_answers += world->n_answers;
        n_fences += world->n_fences;
        n_events += world->n_handled;
        n_joins += world->facts.n_joins;
        n_lost += world->facts.n_lost;
        n_epochs += world->facts.epoch > 0 ? world->facts.epoch - 1 : 0;
        n_checkpoints += world->checkpoint.n_whole;
        n_exact += world->checkpoint.n_exact;
        n_under_way += world->n_under_way;
    }
    ps_free(world);
    if (found != UINT64_MAX) {
        return found;
    }
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": clean; %" PRIu64 " events, %" PRIu64
                 " answers, %" PRIu64 " fences, %" PRIu64 " joins, %" PRIu64
                 " workers lost, %" PRIu64 " epochs, %" PRIu64 " checkpoints, %" PRIu64
                 " exact, %" PRIu64 " repeated while their values came\n",
                 n, first, n_events, n_answers, n_fences, n_joins, n_lost, n_epochs, n_checkpoints,
                 n_exact, n_under_way);
    if (n >= SEEDS_MANY && (n_fences < n / 4 || n_answers < 10 * n || n_checkpoints < n ||
                            n_exact < n / 10 || n_under_way < n / 10)) {
        (void)printf("so few fences, answers and checkpoints prove nothing\n");
        return first;
    }
    return found;
}
