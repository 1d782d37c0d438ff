/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a leader answers before a majority has the command. */
#include "sim_quorum_planted.h"

bool __wrap_place_may_answer(const place_t *self, uint64_t index);

bool __wrap_place_may_answer(const place_t *self, uint64_t index)
{
    (void)self;
    (void)index;
    return true;
}

int main(void)
{
    return quorum_planted_main("answered before the majority");
}
