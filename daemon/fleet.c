/* SPDX-License-Identifier: Apache-2.0 */
/* Who is there: nodes come, are heard, fall silent, and come back. */
#include "daemon/fleet.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/fleet_inner.h"

#define TICKS 4 /* looks within suspect_after */

psd_status_t
ps_fleet_new(const ps_fleet_args_t *args,
             ps_fleet_t **ret_fleet,
             psd_error_t *err)
{
    ps_fleet_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the nodes");
    }
    self->is = *args;
    self->ticked_ms = ps_now_ms();
    self->sessions = ps_registry_old_sessions(args->registry);
    *ret_fleet = self;
    return PSD_OK;
}

void
ps_fleet_destroy(ps_fleet_t **self_p)
{
    ps_fleet_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_destroy(&self->questions[i]);
    }
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_free(self->nodes[i].tells);
    }
    ps_free(self->questions);
    ps_free(self->nodes);
    ps_free(self);
    *self_p = NULL;
}

/* ---- who is there ---- */

const char *
ps_fleet_state_name(ps_fleet_state_t state)
{
    switch (state) {
    case PS_FLEET_UP:
        return "up";
    case PS_FLEET_SUSPECT:
        return "suspect";
    case PS_FLEET_DOWN:
    default:
        return "down";
    }
}

ps_fleet_node_t *
ps_fleet_find(const ps_fleet_t *self, uint64_t incarnation)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (self->nodes[i].incarnation == incarnation) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

static ps_fleet_node_t *
find_named(const ps_fleet_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (strcmp(self->nodes[i].name, name) == 0) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

ps_fleet_view_t
ps_fleet_look(const ps_fleet_t *self, const ps_node_t *node)
{
    const ps_fleet_node_t *known = ps_fleet_find(self, node->incarnation);
    uint64_t now_ms = ps_now_ms();

    if (node->incarnation == self->is.incarnation) {
        return (ps_fleet_view_t){.state = PS_FLEET_UP};
    }
    if (known == NULL) {
        return (ps_fleet_view_t){.state = PS_FLEET_DOWN,
                                 .silent_ms = now_ms - node->last_seen_ms,
                                 .never = true};
    }
    return (ps_fleet_view_t){
        .state = known->state,
        .silent_ms = now_ms > known->heard_ms ? now_ms - known->heard_ms : 0};
}

/* A node that is not up is asked nothing and given nothing. */
static void
set_state(ps_fleet_t *self, ps_fleet_node_t *node, ps_fleet_state_t state)
{
    bool was_up = node->state == PS_FLEET_UP;

    if (node->state == state) {
        return;
    }
    node->state = state;
    ps_registry_set_node_up(self->is.registry, node->incarnation,
                            state == PS_FLEET_UP, node->heard_ms);
    if (state == PS_FLEET_UP) {
        ps_log(PS_LOG_INFO, "node_up", "node=%s", node->name);
        ps_fleet_note_all(self, node); /* it may have missed anything */
        return;
    }
    ps_log(PS_LOG_WARN, state == PS_FLEET_DOWN ? "node_down" : "node_suspect",
           "node=%s silent_ms=%" PRIu64
           " hint=\"its partitions cannot be used until it is back\"",
           node->name, ps_now_ms() - node->heard_ms);
    if (was_up) {
        ps_fleet_give_up(self, node);
    }
}

psd_status_t
ps_fleet_add(ps_fleet_t *self,
             const ps_node_t *node,
             uint64_t conn,
             psd_error_t *err)
{
    ps_fleet_node_t *known = find_named(self, node->name);

    if (known == NULL) {
        if (!ps_grow(&self->nodes, &self->nodes_capacity, self->n_nodes + 1,
                     sizeof *self->nodes)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for node %s",
                                 node->name);
        }
        known = &self->nodes[self->n_nodes++];
        *known = (ps_fleet_node_t){0};
    } else if (known->state == PS_FLEET_UP) {
        ps_fleet_give_up(self, known); /* what its earlier life was asked */
    }
    memcpy(known->name, node->name, sizeof known->name);
    known->incarnation = node->incarnation;
    known->conn = conn;
    known->heard_ms = ps_now_ms();
    known->n_tells = 0;
    known->state = PS_FLEET_DOWN; /* so that it comes up now */
    set_state(self, known, PS_FLEET_UP);
    return PSD_OK;
}

psd_status_t
ps_fleet_hear(ps_fleet_t *self,
              uint64_t incarnation,
              uint64_t conn,
              psd_error_t *err)
{
    ps_fleet_node_t *node = ps_fleet_find(self, incarnation);

    if (node == NULL) {
        return psd_error_set(err, PSD_NO_NODE,
                             "the registry does not know this life of the "
                             "node; it has to announce itself");
    }
    node->heard_ms = ps_now_ms();
    if (node->conn != conn) {
        node->conn = conn; /* what went the old way may be lost */
        ps_fleet_note_all(self, node);
    }
    set_state(self, node, PS_FLEET_UP);
    return PSD_OK;
}

/* ---- time ---- */

static ps_fleet_state_t
state_after(const ps_fleet_t *self, uint64_t silent_ms)
{
    if (silent_ms < self->is.suspect_after_ms) {
        return PS_FLEET_UP;
    }
    return silent_ms < PS_FLEET_DOWN_FACTOR * self->is.suspect_after_ms
               ? PS_FLEET_SUSPECT
               : PS_FLEET_DOWN;
}

/* When this process itself stood still, nobody is blamed for that time. */
static void
forgive(ps_fleet_t *self, uint64_t now_ms)
{
    uint64_t gap_ms = now_ms - self->ticked_ms;

    self->ticked_ms = now_ms;
    if (gap_ms < self->is.suspect_after_ms) {
        return;
    }
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_node_t *node = &self->nodes[i];

        node->heard_ms =
            now_ms - node->heard_ms > gap_ms ? node->heard_ms + gap_ms : now_ms;
    }
}

void
ps_fleet_tick(ps_fleet_t *self)
{
    uint64_t now_ms = ps_now_ms();

    forgive(self, now_ms);
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_node_t *node = &self->nodes[i];
        ps_fleet_state_t state = state_after(self, now_ms - node->heard_ms);

        if (state > node->state) { /* only a sign of life brings it back */
            set_state(self, node, state);
        }
        ps_fleet_send_due(self, node);
    }
    ps_fleet_expire(self, now_ms);
}

uint64_t
ps_fleet_deadline(const ps_fleet_t *self)
{
    return self->n_nodes == 0
               ? UINT64_MAX
               : self->ticked_ms + self->is.suspect_after_ms / TICKS;
}
