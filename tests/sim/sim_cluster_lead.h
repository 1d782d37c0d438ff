/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster_lead - where the registry is
 *
 * What     A world has one registry process, or one for each member that takes
 *          itself for the leader. What happens is for one of them, which is then
 *          at work: cluster_t.registry.
 */
#ifndef PS_TESTS_SIM_CLUSTER_LEAD_H
#define PS_TESTS_SIM_CLUSTER_LEAD_H

#include "sim_cluster.h"

static inline bool cluster_is_replicated(const cluster_t *self)
{
    return self->plan.n_members > 0;
}
/* The registry that leads now, as far as anybody knows, is at work. */
void cluster_registry_newest(cluster_t *self);
/* Member `at` begins to lead, and puts itself to work; or leads no more. */
void cluster_lead(cluster_t *self, uint32_t at, uint64_t term);
void cluster_stop_leading(cluster_t *self, uint32_t at);
/* Puts the one to work that the event is for. false: nobody takes it, or later. */
bool cluster_lead_takes(cluster_t *self, cluster_event_t *event);
/* The registry has ended its wait. */
void cluster_lead_release(cluster_t *self, cluster_registry_t *registry);
/* Which member that place asks now. */
uint32_t cluster_lead_belief(cluster_t *self, uint32_t place);
/* The place where the registry is, or is likely to be. */
uint32_t cluster_registry_place(cluster_t *self);
#endif
