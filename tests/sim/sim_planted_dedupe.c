/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a partition applies a repeated push again. */
#include "protocol/partition/window.h"
#include "sim_planted.h"

ps_admit_t __real_ps_window_admit(const ps_window_t *self, uint64_t seq);
ps_admit_t __wrap_ps_window_admit(const ps_window_t *self, uint64_t seq);

ps_admit_t __wrap_ps_window_admit(const ps_window_t *self, uint64_t seq)
{
    ps_admit_t verdict = __real_ps_window_admit(self, seq);

    return verdict == PS_ADMIT_DUPLICATE ? PS_ADMIT_NEXT : verdict;
}

int main(void)
{
    return sim_planted_main("dedupe off");
}
