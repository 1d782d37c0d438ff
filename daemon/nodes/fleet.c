/* SPDX-License-Identifier: Apache-2.0 */
/* Who is there: nodes come, are heard, fall silent, and come back. */
#include "daemon/nodes/fleet.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/fleet_inner.h"
#include "daemon/nodes/sizes.h"
#include "protocol/placement/registry_decide.h"

#define TICKS 4     /* looks within suspect_after */
#define HASTE_MS 50 /* between two looks while somebody is in haste */

psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet, psd_error_t *err)
{
    PSD_AUTO(ps_fleet_destroy) ps_fleet_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->is = *args;
        self->ticked_ms = ps_now_ms();
        self->sessions = ps_registry_old_sessions(args->registry);
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL ||
        !ps_grow(&self->nodes, &self->nodes_capacity, 1, sizeof *self->nodes)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the nodes");
    }
    self->nodes[self->n_nodes++] =
        (ps_fleet_node_t){.incarnation = args->incarnation, .state = PS_FLEET_UP, .here = true};
    (void)snprintf(self->nodes[0].name, sizeof self->nodes[0].name, "%s", args->node);
    *ret_fleet = self;
    self = NULL;
    return PSD_OK;
}

void ps_fleet_destroy(ps_fleet_t **self_p)
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
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

/* ---- who is there ---- */

const char *ps_fleet_state_name(ps_fleet_state_t state)
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

ps_fleet_node_t *ps_fleet_find(const ps_fleet_t *self, uint64_t incarnation)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (self->nodes[i].incarnation == incarnation) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

static ps_fleet_node_t *find_named(const ps_fleet_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (strcmp(self->nodes[i].name, name) == 0) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

ps_fleet_view_t ps_fleet_look(const ps_fleet_t *self, const ps_node_t *node)
{
    const ps_fleet_node_t *known = ps_fleet_find(self, node->incarnation);
    uint64_t now_ms = ps_now_ms();
    ps_fleet_view_t view = {.state = PS_FLEET_DOWN, .never = true, .damage = ""};

    if (known != NULL) {
        view = (ps_fleet_view_t){
            .state = known->state, .damage = known->damage, .files_out = known->files_out};
    }
    if ((known == NULL || !known->here) && now_ms > node->last_seen_ms) {
        view.silent_ms = now_ms - node->last_seen_ms;
    }
    return view;
}

/* A node that is not up is asked nothing and told nothing. */
static void set_state(ps_fleet_t *self, ps_fleet_node_t *node, ps_fleet_state_t state,
                      uint64_t silent_ms)
{
    bool was_up = node->state == PS_FLEET_UP;

    if (node->state == state) {
        return;
    }
    node->state = state;
    node->silent_ms = silent_ms;
    if (state == PS_FLEET_UP) {
        ps_log(PS_LOG_INFO, "node_up", "node=%s", node->name);
        ps_fleet_note_all(self, node); /* it may have missed anything */
        return;
    }
    ps_log(PS_LOG_WARN, state == PS_FLEET_DOWN ? "node_down" : "node_suspect",
           "node=%s silent_ms=%" PRIu64
           " hint=\"partitions with no copy elsewhere cannot be used until it "
           "is back\"",
           node->name, silent_ms);
    if (was_up) {
        ps_fleet_give_up(self, node);
    }
}

bool ps_fleet_next_news(ps_fleet_t *self, ps_fleet_news_t *ret_news)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_node_t *node = &self->nodes[i];
        ps_fleet_state_t before = node->told;

        if (before == node->state) {
            continue;
        }
        node->told = node->state;
        if (before == 0) { /* its start was news enough */
            continue;
        }
        memcpy(ret_news->name, node->name, sizeof ret_news->name);
        ret_news->state = node->state;
        ret_news->silent_ms = node->silent_ms;
        return true;
    }
    return false;
}

psd_status_t ps_fleet_add(ps_fleet_t *self, const ps_node_t *node, uint64_t conn, psd_error_t *err)
{
    ps_fleet_node_t *known = find_named(self, node->name);

    if (known == NULL) {
        if (!ps_grow(&self->nodes, &self->nodes_capacity, self->n_nodes + 1, sizeof *self->nodes)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for node %s", node->name);
        }
        known = &self->nodes[self->n_nodes++];
        *known = (ps_fleet_node_t){0};
    } else if (known->state == PS_FLEET_UP) {
        ps_fleet_give_up(self, known); /* what its earlier life was asked */
    }
    memcpy(known->name, node->name, sizeof known->name);
    known->incarnation = node->incarnation;
    known->conn = conn;
    known->n_tells = 0;
    known->state = PS_FLEET_DOWN; /* so that it comes up now */
    set_state(self, known, PS_FLEET_UP, 0);
    return PSD_OK;
}

void ps_fleet_set_files_out(ps_fleet_t *self, uint64_t incarnation, bool is_out)
{
    ps_fleet_node_t *node = ps_fleet_find(self, incarnation);

    if (node != NULL) {
        node->files_out = is_out;
    }
}

void ps_fleet_set_damage(ps_fleet_t *self, uint64_t incarnation, const char *text)
{
    ps_fleet_node_t *node = ps_fleet_find(self, incarnation);

    if (node != NULL) {
        (void)snprintf(node->damage, sizeof node->damage, "%s", text);
    }
}

psd_status_t ps_fleet_hear(ps_fleet_t *self, uint64_t incarnation, uint64_t conn, psd_error_t *err)
{
    ps_fleet_node_t *node = ps_fleet_find(self, incarnation);

    if (node == NULL || node->here || node->conn != conn) {
        return psd_error_set(err, PSD_NO_NODE,
                             "the registry does not know this life of the "
                             "node by this connection; it has to announce "
                             "itself");
    }
    return PSD_OK;
}

psd_status_t ps_fleet_beat(ps_fleet_t *self, uint64_t incarnation, uint64_t max_epoch,
                           psd_error_t *err)
{
    ps_fleet_node_t *node = ps_fleet_find(self, incarnation);
    psd_status_t rc = PSD_OK;

    if (node == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "no such node has come");
    }
    rc = ps_registry_node_beat(self->is.registry, node->name, incarnation, max_epoch, ps_now_ms(),
                               err);
    if (rc == PSD_OK) {
        set_state(self, node, PS_FLEET_UP, 0);
    }
    return rc;
}

/* ---- time ---- */

/* As the registry sees the node; one that it does not have any more is down. */
static void look_at(ps_fleet_t *self, ps_fleet_node_t *node, uint64_t now_ms)
{
    const ps_node_t *known = ps_registry_node_by_incarnation(self->is.registry, node->incarnation);
    uint64_t silent_ms =
        known == NULL || now_ms < known->last_seen_ms ? 0 : now_ms - known->last_seen_ms;
    ps_fleet_state_t state = PS_FLEET_UP;

    if (known == NULL || silent_ms >= PS_FLEET_DOWN_FACTOR * self->is.suspect_after_ms) {
        state = PS_FLEET_DOWN;
    } else if (known->suspect) {
        state = PS_FLEET_SUSPECT;
    }
    if (state > node->state) { /* only a sign of life brings it back */
        set_state(self, node, state, silent_ms);
    }
}

void ps_fleet_tick(ps_fleet_t *self)
{
    uint64_t now_ms = ps_now_ms();

    self->ticked_ms = now_ms;
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_node_t *node = &self->nodes[i];

        if (!node->here) {
            look_at(self, node, now_ms);
        }
        ps_fleet_send_due(self, node);
    }
    ps_fleet_expire(self, now_ms);
    if (self->n_nodes > 1 && self->look == 0 && now_ms >= self->look_ms) {
        self->look_ms = now_ms + PS_SIZES_EVERY_MS;
        if (ps_shards_send_ask(self->is.shards, PS_CALL_SIZES, 0, &self->look, NULL) != PSD_OK) {
            self->look = 0; /* then at the next time */
        }
    }
}

/* Somebody waits who wants a quick answer. */
static bool is_in_haste(const ps_fleet_t *self)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        if (self->questions[i]->brief) {
            return true;
        }
    }
    return false;
}

uint64_t ps_fleet_deadline(const ps_fleet_t *self)
{
    bool waits = self->n_nodes > 1 || self->n_questions > 0 || self->nodes[0].n_tells > 0 ||
                 self->nodes[0].stale;
    uint64_t every_ms = self->is.suspect_after_ms / TICKS;

    if (is_in_haste(self) && every_ms > HASTE_MS) {
        every_ms = HASTE_MS;
    }
    return waits ? self->ticked_ms + every_ms : UINT64_MAX;
}
