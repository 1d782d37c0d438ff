/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: the registry does not look whether a request has been done. */
#include "sim_cluster_planted.h"

const ps_outcome_t *__wrap_ps_registry_answer(const ps_registry_t *self, uint64_t session,
                                              uint64_t request);

const ps_outcome_t *__wrap_ps_registry_answer(const ps_registry_t *self, uint64_t session,
                                              uint64_t request)
{
    (void)self;
    (void)session;
    (void)request;
    return NULL;
}

int main(void)
{
    return cluster_planted_main("a request without a replicated answer");
}
