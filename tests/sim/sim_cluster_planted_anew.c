/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: an evicted client starts a new session, even if some of its
 * pushes may have been taken. */
#include "protocol/session/session_private.h"
#include "sim_cluster_planted.h"

bool __wrap_ps_part_may_begin_anew(const ps_part_t *part);

bool __wrap_ps_part_may_begin_anew(const ps_part_t *part)
{
    (void)part;
    return true;
}

int main(void)
{
    return cluster_planted_main("what is unsure is pushed anew");
}
