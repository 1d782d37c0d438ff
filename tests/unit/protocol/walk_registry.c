/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry's decisions in random lives of a cluster: no promise is broken
 * on the way, and everything is whole at the end. walk_registry [SEED [N]]
 * walks N lives from SEED on. A registry that promotes copies which have not
 * caught up is found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk_world.h"

#define SEEDS 2000
#define STEPS 150
#define PLANTED_SEEDS 500

void __real_ps_copies_promote(ps_copies_t *self, uint32_t at);
void __wrap_ps_copies_promote(ps_copies_t *self, uint32_t at);

static bool planted;

/* The last copy is taken for one in sync. */
void __wrap_ps_copies_promote(ps_copies_t *self, uint32_t at)
{
    ps_copy_t last = self->at[self->n - 1];

    if (planted && last.state == PS_COPY_CATCHING_UP) {
        ps_copies_set_state(self, self->n - 1, PS_COPY_IN_SYNC);
        at = (uint32_t)(ps_copies_on(self, last.incarnation) - self->at);
    }
    __real_ps_copies_promote(self, at);
}

/* NULL, or what was broken, said in `where`. */
static const char *live(uint64_t seed, char where[128], uint64_t counts[3])
{
    world_t world;
    const char *wrong = NULL;

    world_make(&world, seed);
    world_walk(&world, STEPS);
    if (world.wrong == NULL) {
        world_calm(&world);
    }
    wrong = world.wrong;
    memcpy(where, world.where, sizeof world.where);
    counts[0] += world.n_promoted;
    counts[1] += world.n_moved;
    counts[2] += world.n_kept;
    world_done(&world);
    return wrong;
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 10) : SEEDS;
    uint64_t counts[3] = {0, 0, 0};
    char where[128] = "";
    const char *wrong = NULL;

    for (uint64_t i = 0; i < n && wrong == NULL; i++) {
        wrong = live(first + i, where, counts);
    }
    if (wrong != NULL) {
        (void)fprintf(stderr, "%s: %s\n", where, wrong);
        return 1;
    }
    (void)printf("%llu lives: %llu promotions, %llu planned moves, %llu kept\n",
                 (unsigned long long)n, (unsigned long long)counts[0],
                 (unsigned long long)counts[1], (unsigned long long)counts[2]);
    planted = true;
    for (uint64_t i = 0; i < PLANTED_SEEDS && wrong == NULL; i++) {
        wrong = live(first + i, where, counts);
    }
    if (wrong == NULL || strstr(wrong, "not in sync") == NULL) {
        (void)fprintf(stderr, "a promoted copy that lacks rows is not seen\n");
        return 1;
    }
    (void)printf("planted: %s: %s\n", where, wrong);
    return 0;
}
