/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: partitions forget sessions that have said BYE or were evicted. */
#include "protocol/facts/session_set.h"
#include "sim_cluster_planted.h"

bool __wrap_ps_session_set_has(const ps_session_set_t *self, uint64_t session);

bool __wrap_ps_session_set_has(const ps_session_set_t *self, uint64_t session)
{
    (void)self;
    (void)session;
    return false;
}

int main(void)
{
    return cluster_planted_main("forgotten sessions are taken for new ones");
}
