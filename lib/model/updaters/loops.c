/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the compiled loops this processor can run. */
#include "model/updaters/loops.h"

#include "model/updaters/loops_sets.h"

const ps_loops_t *ps_loops_at(size_t i)
{
    const ps_loops_t *runs[3] = {&ps_loops_plain};
    size_t n = 1;

#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        runs[n++] = &ps_loops_avx2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        runs[n++] = &ps_loops_avx512;
    }
#endif
    return i < n ? runs[i] : NULL;
}

const ps_loops_t *ps_loops_best(void)
{
    const ps_loops_t *best = ps_loops_at(2);

    best = best != NULL ? best : ps_loops_at(1);
    return best != NULL ? best : ps_loops_at(0);
}
