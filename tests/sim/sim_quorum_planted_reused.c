/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a member that lost its disk goes on under its id. */
#include "sim_quorum_planted.h"

uint64_t __wrap_place_new_id(world_t *world, size_t at);

uint64_t __wrap_place_new_id(world_t *world, size_t at)
{
    world->places[at].disk.life = world->now; /* as of a clock */
    return world->places[at].id;
}

int main(void)
{
    return quorum_planted_main("id used again with an empty disk");
}
