/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: partitions forget the sessions that have said BYE. */
#include "protocol/facts/session_set.h"
#include "sim_planted.h"

bool __wrap_ps_session_set_has(const ps_session_set_t *self, uint64_t session);

bool __wrap_ps_session_set_has(const ps_session_set_t *self, uint64_t session)
{
    (void)self;
    (void)session;
    return false;
}

int main(void)
{
    return sim_planted_main("pushes behind BYE are taken");
}
