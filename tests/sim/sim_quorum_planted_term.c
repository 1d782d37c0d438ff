/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a sole voter leads in the term that it has, as libraft lets it. */
#include "sim_quorum_planted.h"

bool __wrap_ps_quorum_begin_term(ps_quorum_t *self);

bool __wrap_ps_quorum_begin_term(ps_quorum_t *self)
{
    (void)self;
    return true;
}

int main(void)
{
    return quorum_planted_main("a sole voter begins no term");
}
