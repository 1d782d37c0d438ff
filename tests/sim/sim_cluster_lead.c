/* SPDX-License-Identifier: Apache-2.0 */
/* Where the registry is: alone on a place of its own, or with the member that
 * leads, of which there may be two at a time that take themselves for it. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "sim_cluster_lead.h"

#define SILENT_MS 500 /* after that another member is asked */
#define NONE CLUSTER_NODES_MAX

/* It leads, and has said so. */
static bool is_open(const cluster_registry_t *registry)
{
    return registry->machine != NULL && registry->overseer != NULL;
}

void cluster_registry_newest(cluster_t *self)
{
    if (!cluster_is_replicated(self)) {
        return;
    }
    self->registry = &self->registries[NONE];
    for (uint32_t i = 0; i < self->plan.n_members; i++) {
        cluster_registry_t *registry = &self->registries[i];

        if (is_open(registry) && registry->term > self->registry->term) {
            self->registry = registry;
        }
    }
}

uint32_t cluster_registry_place(cluster_t *self)
{
    if (!cluster_is_replicated(self)) {
        return CLUSTER_REGISTRY;
    }
    cluster_registry_newest(self);
    return self->registry->machine != NULL ? self->registry->at
                                           : (uint32_t)cluster_below(self, self->plan.n_members);
}

/* ---- leading ---- */

void cluster_stop_leading(cluster_t *self, uint32_t at)
{
    cluster_registry_t *registry = &self->registries[at];

    if (registry->machine == NULL) {
        return;
    }
    cluster_trace(self, "member %u leads no more, term %" PRIu64, at, registry->term);
    ps_overseer_destroy(&registry->overseer);
    registry->machine = NULL;
    registry->life = 0;
    registry->term = 0;
    if (self->checkpoint.by == at) {
        cluster_checkpoint_forget(self);
    }
}

void cluster_lead(cluster_t *self, uint32_t at, uint64_t term)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    cluster_registry_t *registry = &self->registries[at];

    self->registry = registry;
    registry->at = at;
    registry->term = term;
    registry->machine = self->members[at].state;
    registry->life = ++self->n_registries;
    registry->wake_ms = UINT64_MAX;
    memset(registry->joining, 0, sizeof registry->joining);
    cluster_need(ps_registry_plan_term(registry->machine, term, at + 1, self->now_ms, &command,
                                       NULL) == PSD_OK,
                 "a term");
    if (!cluster_member_commit(self, &command)) {
        return;
    }
    cluster_trace(self, "member %u leads in term %" PRIu64, at, term);
    self->story.n_leads++;
    cluster_registry_open(self);
    (void)cluster_at(self, self->now_ms, CLUSTER_FAULTS, 0); /* drains wait */
}

/* ---- who takes an event ---- */

/* The next member that may lead, when one is silent or does not. */
static void look_further(cluster_t *self, uint32_t place, uint32_t asked)
{
    uint32_t leader = cluster_member_leader(self, asked);

    self->believes[place] =
        leader != CLUSTER_NOBODY && leader != asked ? leader : (asked + 1) % self->plan.n_members;
    self->heard_ms[place] = self->now_ms;
}

uint32_t cluster_lead_belief(cluster_t *self, uint32_t place)
{
    if (self->now_ms > self->heard_ms[place] + SILENT_MS) {
        self->believes[place] = (self->believes[place] + 1) % self->plan.n_members;
        self->heard_ms[place] = self->now_ms;
    }
    return self->believes[place];
}

static void hold(cluster_registry_t *registry, cluster_event_t *event)
{
    cluster_need(ps_grow(&registry->held, &registry->held_capacity, registry->n_held + 1,
                         sizeof *registry->held),
                 "memory for an event");
    registry->held[registry->n_held++] = *event; /* ownership moves */
    *event = (cluster_event_t){.kind = CLUSTER_FAULTS};
}

void cluster_lead_release(cluster_t *self, cluster_registry_t *registry)
{
    for (size_t i = 0; i < registry->n_held; i++) {
        cluster_put(self, &registry->held[i], self->now_ms);
    }
    registry->n_held = 0;
    (void)cluster_at(self, self->now_ms, CLUSTER_FAULTS, 0); /* drains wait */
}

bool cluster_lead_takes(cluster_t *self, cluster_event_t *event)
{
    const cluster_letter_t *letter = event->letter;
    uint32_t at = letter != NULL ? letter->member : (uint32_t)event->a;
    cluster_registry_t *registry = NULL;

    if (!cluster_is_replicated(self)) {
        return true;
    }
    if (event->kind == CLUSTER_CHECKPOINT) { /* of the one that leads now */
        cluster_registry_newest(self);
        at = self->registry->machine != NULL ? self->registry->at : NONE;
    }
    registry = &self->registries[at];
    if (registry->waits) {
        hold(registry, event);
        return false;
    }
    if (letter != NULL && !is_open(registry)) {
        look_further(self, cluster_is_of_client(letter->kind) ? CLUSTER_CLIENTS : letter->from, at);
        return false;
    }
    self->registry = registry;
    return true;
}
