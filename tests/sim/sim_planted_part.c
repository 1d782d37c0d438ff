/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a bundle is taken though some of its contributors are in already. */
#include "protocol/partition/bundle_turn.h"
#define SEEDS_MAX 500 /* most worlds have no bundles */
#ifdef SIM_OF_AN_OVERLAY
#include "sim_overlay_planted.h"
#define planted_main overlay_planted_main
#else
#include "sim_planted.h"
#define planted_main sim_planted_main
#endif

ps_bundle_turn_t __real_ps_bundle_turn(const ps_partition_t *self, const ps_bundle_from_t *from,
                                       size_t n, size_t *ret_in);
ps_bundle_turn_t __wrap_ps_bundle_turn(const ps_partition_t *self, const ps_bundle_from_t *from,
                                       size_t n, size_t *ret_in);

ps_bundle_turn_t __wrap_ps_bundle_turn(const ps_partition_t *self, const ps_bundle_from_t *from,
                                       size_t n, size_t *ret_in)
{
    ps_bundle_turn_t turn = __real_ps_bundle_turn(self, from, n, ret_in);

    return turn == PS_BUNDLE_SPLIT && *ret_in > 0 ? PS_BUNDLE_TAKE : turn;
}

int main(void)
{
    return planted_main("a bundle is taken in part a second time");
}
