/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: the registry's own tree (overlay_fixed), or any other one; each relay hears of it at its
 * own time, or not at all. */
#include <string.h>

#include "protocol/overlay/overlay_fixed.h"
#include "sim_overlay.h"

#define HEAR_MS 1200 /* until the last relay knows it: heartbeats; of the first … */
#define FIRST_MS 30  /* … so long */

uint32_t overlay_tree_find(const overlay_tree_t *tree, uint32_t rank)
{
    for (uint32_t i = 0; i < tree->n; i++) {
        if (tree->ranks[i] == rank) {
            return i;
        }
    }
    return UINT32_MAX;
}

uint32_t overlay_tree_life(const overlay_t *self, const overlay_tree_t *tree, uint32_t number)
{
    for (uint32_t i = 0; i < self->n_lives; i++) {
        if (self->lives[i].rank == tree->ranks[number] &&
            self->lives[i].joins == tree->joins[number] && !self->lives[i].is_reader) {
            return i;
        }
    }
    overlay_stop("a worker that the plan names");
}

uint32_t overlay_tree_above(const overlay_t *self, const overlay_tree_t *tree, uint32_t rank,
                            uint32_t colour)
{
    uint32_t number = overlay_tree_find(tree, rank);
    uint32_t parent =
        number == UINT32_MAX ? PS_OVERLAY_NODES : tree->parents[colour * tree->n + number];

    return parent == PS_OVERLAY_NODES ? UINT32_MAX : overlay_tree_life(self, tree, parent);
}

bool overlay_tree_is_parent(const overlay_t *self, const overlay_tree_t *tree, uint32_t rank,
                            uint32_t life)
{
    for (uint32_t colour = 0; tree->version != 0 && colour < tree->n_colours; colour++) {
        if (overlay_tree_above(self, tree, rank, colour) == life) {
            return true;
        }
    }
    return false;
}

bool overlay_tree_has_children(const overlay_tree_t *tree, uint32_t rank, uint32_t colour)
{
    uint32_t number = overlay_tree_find(tree, rank);

    for (uint32_t i = 0; number != UINT32_MAX && i < tree->n; i++) {
        if (tree->parents[colour * tree->n + i] == number) {
            return true;
        }
    }
    return false;
}

/* Each worker sends to one of those before it in a random order, or to the nodes. */
static void any_tree(overlay_t *self, uint32_t n, uint32_t *parents)
{
    uint32_t order[OVERLAY_RANKS_MAX];

    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)overlay_below(self, i + UINT64_C(1));

        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t k = overlay_below(self, i + UINT64_C(1));

        parents[order[i]] = k == i ? PS_OVERLAY_NODES : order[k];
    }
}

static uint32_t swapped(uint32_t worker, uint32_t a, uint32_t b)
{
    return worker == a ? b : worker == b ? a : worker;
}

/* The tree that it was, but one worker and the one that it sends to change places. */
static void turn_round(overlay_t *self, uint32_t n, const uint32_t *before, uint32_t *parents)
{
    uint32_t child = (uint32_t)overlay_below(self, n);
    uint32_t parent = before[child] == PS_OVERLAY_NODES ? child : before[child];

    for (uint32_t i = 0; i < n; i++) {
        parents[swapped(i, child, parent)] = swapped(before[i], child, parent);
    }
}

static bool has_same_workers(const overlay_tree_t *a, const overlay_tree_t *b)
{
    return a->n == b->n && memcmp(a->ranks, b->ranks, a->n * sizeof *a->ranks) == 0 &&
           memcmp(a->joins, b->joins, a->n * sizeof *a->joins) == 0;
}

/* From now on, or soon, or as of a clock that has begun. */
static uint64_t first_clock(overlay_t *self, uint64_t newest)
{
    uint64_t later = overlay_below(self, 4);

    return newest + later > 2 ? newest + later - 2 : 0;
}

static uint64_t newest_clock(const overlay_t *self)
{
    uint64_t clock = 0;

    for (size_t i = 0; i < self->n_lives; i++) {
        clock = self->lives[i].clock > clock ? self->lives[i].clock : clock;
    }
    return clock;
}

static void tell(overlay_t *self)
{
    for (size_t i = 0; i < self->n_lives; i++) {
        overlay_tree_t *copy = NULL;

        if (overlay_chance(self, self->weather.ignorant)) {
            continue;
        }
        copy = ps_alloc_raw(1, sizeof *copy);
        overlay_need(copy != NULL, "memory for a plan");
        *copy = self->tree;
        overlay_at(self,
                   self->now_ms + overlay_below(self, self->tree.version == 1 ? FIRST_MS : HEAR_MS),
                   OVERLAY_EVENT_PLAN, i)
            ->tree = copy;
    }
}

static void make_colour(overlay_t *self, const overlay_tree_t *before, uint32_t colour, bool turns)
{
    overlay_tree_t *tree = &self->tree;
    uint32_t *parents = tree->parents + colour * tree->n;

    tree->rates[colour] = overlay_below(self, 2) == 0 ? 0 : 1000 + overlay_below(self, 100000);
    if (turns) {
        turn_round(self, tree->n, before->parents + colour * tree->n, parents);
    } else if (overlay_below(self, 4) > 0) {
        ps_overlay_fixed(tree->ranks, tree->n, colour, parents);
    } else {
        any_tree(self, tree->n, parents);
    }
}

void overlay_tree_change(overlay_t *self)
{
    const overlay_tree_t before = self->tree;
    overlay_tree_t *tree = &self->tree;
    bool turns = overlay_below(self, 3) > 0;

    *tree = (overlay_tree_t){.version = before.version + 1,
                             .clock = first_clock(self, newest_clock(self)),
                             .n_colours = 1 + (uint32_t)overlay_below(self, OVERLAY_COLOURS_MAX)};
    for (size_t i = 0; i < self->job.n_workers; i++) {
        const ps_worker_t *worker = &self->job.workers[i];

        if (worker->state == PS_WORKER_RUNNING) {
            tree->ranks[tree->n] = worker->worker;
            tree->joins[tree->n++] = worker->joins;
        }
    }
    turns = turns && has_same_workers(tree, &before);
    tree->n_colours = turns ? before.n_colours : tree->n_colours;
    for (uint32_t colour = 0; tree->n > 0 && colour < tree->n_colours; colour++) {
        make_colour(self, &before, colour, turns);
    }
    if (tree->n > 0) {
        tell(self);
    }
}
