/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes are alive: heartbeats, and nodes silent for too long. Nothing
 * here is stored. */
#include <string.h>

#include "protocol/placement/registry_look.h"

/* A registry restored from a backup has fallen behind its nodes, but not this
 * far: a thousand changes a second for seven weeks. */
#define EPOCHS_AHEAD_MAX (UINT64_C(1) << 32)

psd_status_t ps_registry_node_beat(ps_registry_t *self, const char *name, uint64_t incarnation,
                                   uint64_t max_epoch, uint64_t now_ms, psd_error_t *err)
{
    ps_node_t *node = ps_registry_find_node(self, name);

    if (node == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "node \"%.80s\" does not exist", name);
    }
    if (node->incarnation != incarnation) {
        return psd_error_set(err, PSD_INCARNATION, "node %s has started again since", name);
    }
    if (max_epoch > ps_registry_next_epoch(self) + EPOCHS_AHEAD_MAX) {
        return psd_error_set(err, PSD_INVALID, "node %s claims epoch %llu; the map's is %llu", name,
                             (unsigned long long)max_epoch, (unsigned long long)self->epoch);
    }
    if (self->seen_epoch < max_epoch) {
        self->seen_epoch = max_epoch;
    }
    self->dirty = self->dirty || !node->up;
    node->up = true;
    node->suspect = false;
    node->last_seen_ms = now_ms;
    return PSD_OK;
}

static void suspect(ps_registry_t *self, ps_node_t *node)
{
    node->up = false;
    node->suspect = true;
    self->dirty = true;
}

bool ps_registry_node_ends(ps_registry_t *self, const char *name, uint64_t incarnation,
                           uint64_t now_ms)
{
    ps_node_t *node = ps_registry_find_node(self, name);

    if (node == NULL || node->incarnation != incarnation) {
        return false;
    }
    node->last_seen_ms = now_ms;
    suspect(self, node);
    return true;
}

/* While this process itself was paused, it could not hear any node. */
static void forgive(ps_registry_t *self, uint64_t now_ms)
{
    uint64_t gap = self->looked_ms == 0 || now_ms < self->looked_ms ? 0 : now_ms - self->looked_ms;

    self->looked_ms = now_ms;
    if (gap <= self->args.suspect_after_ms / 2) {
        return;
    }
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_node_t *node = &self->nodes[i];
        uint64_t seen = node->last_seen_ms + gap;

        node->last_seen_ms = seen < now_ms ? seen : now_ms;
    }
}

void ps_registry_listen(ps_registry_t *self, uint64_t now_ms)
{
    if (self->listens_ms == 0) {
        self->listens_ms = now_ms;
    }
    forgive(self, now_ms);
}

static bool is_silent(const ps_node_t *node, uint64_t for_ms, uint64_t now_ms)
{
    return now_ms > node->last_seen_ms && now_ms - node->last_seen_ms >= for_ms;
}

bool ps_registry_knows_nodes(const ps_registry_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_node_t *node = &self->nodes[i];

        if (!node->up && !is_silent(node, self->args.suspect_after_ms, now_ms)) {
            return false;
        }
    }
    return true;
}

void ps_registry_watch_nodes(ps_registry_t *self, uint64_t now_ms)
{
    forgive(self, now_ms);
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_node_t *node = &self->nodes[i];

        if (!node->suspect && is_silent(node, self->args.suspect_after_ms, now_ms)) {
            suspect(self, node);
        }
    }
}

uint64_t ps_registry_silence_due(const ps_registry_t *self)
{
    uint64_t due = UINT64_MAX;

    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_node_t *node = &self->nodes[i];
        uint64_t at = node->last_seen_ms + self->args.suspect_after_ms;

        due = !node->suspect && at < due ? at : due;
    }
    return due;
}

const ps_node_t *ps_copy_node(const ps_registry_t *self, const ps_copy_t *copy)
{
    return &self->nodes[ps_node_index(self, copy->incarnation)];
}

bool ps_copy_may_lead(ps_look_t *look, const ps_copy_t *copy)
{
    const ps_registry_t *self = look->registry;
    uint64_t from = ps_copy_node(self, copy)->started_ms + self->args.lease_ms;

    ps_look_due(look, from);
    return look->now_ms >= from;
}

bool ps_copy_lives(const ps_registry_t *self, const ps_copy_t *copy)
{
    return ps_copy_node(self, copy)->up;
}

bool ps_copy_is_suspect(const ps_registry_t *self, const ps_copy_t *copy)
{
    return ps_copy_node(self, copy)->suspect;
}

bool ps_spot_is_served(const ps_look_t *look, const ps_spot_t *spot)
{
    return !spot->copies->fenced && ps_copy_lives(look->registry, &spot->copies->at[0]);
}

bool ps_copy_is_given_up(ps_look_t *look, const ps_copy_t *copy)
{
    const ps_node_t *node = ps_copy_node(look->registry, copy);
    uint64_t after = look->registry->args.repair_after_ms;

    if (!node->suspect) {
        return false;
    }
    ps_look_due(look, node->last_seen_ms + after);
    return is_silent(node, after, look->now_ms);
}

bool ps_copy_stays(ps_look_t *look, const ps_copy_t *copy)
{
    return !copy->leaving && !ps_copy_node(look->registry, copy)->draining &&
           !ps_copy_is_given_up(look, copy);
}
