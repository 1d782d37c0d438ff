/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes: they join, are heard, fall silent, and come back. */
#include "protocol/overseer/overseer.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overseer/overseer_state.h"
#include "protocol/placement/registry_decide.h"

#define TICKS 4 /* looks within suspect_after */
/* No two leaders number alike: an answer to an earlier one may come late. */
#define TERM_SHIFT 32
#define HASTE_MS 50 /* between two looks while a brief question waits */

psd_status_t ps_overseer_new(const ps_overseer_args_t *args, uint64_t now_ms,
                             ps_overseer_t **ret_overseer, psd_error_t *err)
{
    PSD_AUTO(ps_overseer_destroy) ps_overseer_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the nodes");
    }
    self->is = *args;
    self->ticked_ms = now_ms;
    self->last_serial = args->term << TERM_SHIFT;
    self->sessions = ps_registry_old_sessions(args->registry);
    *ret_overseer = self;
    self = NULL;
    return PSD_OK;
}

void ps_overseer_destroy(ps_overseer_t **self_p)
{
    ps_overseer_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_questions; i++) {
        ps_question_destroy(&self->questions[i]);
    }
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_free(self->nodes[i].tells);
        ps_map_done(&self->nodes[i].tables);
        ps_map_done(&self->nodes[i].jobs);
    }
    ps_free(self->questions);
    ps_free(self->nodes);
    ps_free(self);
    *self_p = NULL;
}

const char *ps_health_name(ps_health_t state)
{
    switch (state) {
    case PS_HEALTH_UP:
        return "up";
    case PS_HEALTH_SUSPECT:
        return "suspect";
    case PS_HEALTH_DOWN:
    default:
        return "down";
    }
}

ps_overseen_t *ps_overseen_find(const ps_overseer_t *self, uint64_t incarnation)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (self->nodes[i].incarnation == incarnation) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

static ps_overseen_t *find_named(const ps_overseer_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (strcmp(self->nodes[i].name, name) == 0) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

bool ps_overseer_find(const ps_overseer_t *self, uint64_t incarnation, uint64_t *ret_conn)
{
    const ps_overseen_t *node = ps_overseen_find(self, incarnation);

    if (node == NULL) {
        return false;
    }
    *ret_conn = node->conn;
    return true;
}

size_t ps_overseer_n_nodes(const ps_overseer_t *self)
{
    return self->n_nodes;
}

ps_sight_t ps_overseer_look(const ps_overseer_t *self, const ps_node_t *node, uint64_t now_ms)
{
    const ps_overseen_t *known = ps_overseen_find(self, node->incarnation);
    ps_sight_t sight = {.state = PS_HEALTH_DOWN, .never = true, .damage = ""};

    if (known != NULL) {
        sight = (ps_sight_t){.state = known->state,
                             .damage = known->damage,
                             .files_out = known->files_out,
                             .n_aside = known->n_aside};
    }
    if (node->incarnation != self->is.incarnation && now_ms > node->last_seen_ms) {
        sight.silent_ms = now_ms - node->last_seen_ms;
    }
    return sight;
}

/* A node that is not up gets no tells and no questions; a node that comes up
 * may have missed any of them. */
static void set_state(ps_overseer_t *self, ps_overseen_t *node, ps_health_t state,
                      uint64_t silent_ms)
{
    bool was_up = node->state == PS_HEALTH_UP;

    if (node->state == state) {
        return;
    }
    node->state = state;
    node->silent_ms = silent_ms;
    if (state == PS_HEALTH_UP) {
        ps_overseen_note_all(self, node);
    } else if (was_up) {
        ps_overseen_give_up(self, node);
    }
}

bool ps_overseer_next_news(ps_overseer_t *self, ps_sight_news_t *ret_news)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_overseen_t *node = &self->nodes[i];

        if (node->told == node->state) {
            continue;
        }
        *ret_news = (ps_sight_news_t){
            .state = node->state, .before = node->told, .silent_ms = node->silent_ms};
        memcpy(ret_news->name, node->name, sizeof ret_news->name);
        node->told = node->state;
        return true;
    }
    return false;
}

psd_status_t ps_overseer_add(ps_overseer_t *self, const ps_node_t *node, uint64_t conn,
                             psd_error_t *err)
{
    ps_overseen_t *known = find_named(self, node->name);

    if (known == NULL) {
        if (!ps_grow(&self->nodes, &self->nodes_capacity, self->n_nodes + 1, sizeof *self->nodes)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for node %s", node->name);
        }
        known = &self->nodes[self->n_nodes++];
        *known = (ps_overseen_t){0};
    } else if (known->state == PS_HEALTH_UP) {
        ps_overseen_give_up(self, known); /* what its earlier life was asked */
    }
    memcpy(known->name, node->name, sizeof known->name);
    known->incarnation = node->incarnation;
    known->conn = conn;
    known->n_tells = 0;
    ps_map_done(&known->tables); /* it may lack all of them */
    ps_map_done(&known->jobs);
    known->state = PS_HEALTH_DOWN;                               /* so that it comes up now */
    known->told = known->told == PS_HEALTH_UP ? 0 : known->told; /* another life */
    set_state(self, known, PS_HEALTH_UP, 0);
    return PSD_OK;
}

void ps_overseer_set_files_out(ps_overseer_t *self, uint64_t incarnation, bool is_out)
{
    ps_overseen_t *node = ps_overseen_find(self, incarnation);

    if (node != NULL) {
        node->files_out = is_out;
    }
}

void ps_overseer_set_aside(ps_overseer_t *self, uint64_t incarnation, uint32_t n_aside)
{
    ps_overseen_t *node = ps_overseen_find(self, incarnation);

    if (node != NULL) {
        node->n_aside = n_aside;
    }
}

void ps_overseer_set_index(ps_overseer_t *self, uint64_t index)
{
    self->index = index;
}

void ps_overseer_set_damage(ps_overseer_t *self, uint64_t incarnation, const char *text)
{
    ps_overseen_t *node = ps_overseen_find(self, incarnation);

    if (node != NULL) {
        (void)snprintf(node->damage, sizeof node->damage, "%s", text);
    }
}

psd_status_t ps_overseer_hear(const ps_overseer_t *self, uint64_t incarnation, uint64_t conn,
                              psd_error_t *err)
{
    const ps_overseen_t *node = ps_overseen_find(self, incarnation);

    if (node == NULL || node->conn != conn) {
        return psd_error_set(err, PSD_NO_NODE,
                             "the registry does not know this incarnation of the node on this "
                             "connection; the node must announce itself again");
    }
    return PSD_OK;
}

psd_status_t ps_overseer_beat(ps_overseer_t *self, uint64_t incarnation, uint64_t max_epoch,
                              uint64_t now_ms, psd_error_t *err)
{
    ps_overseen_t *node = ps_overseen_find(self, incarnation);
    psd_status_t rc = PSD_OK;

    if (node == NULL) {
        return psd_error_set(err, PSD_NO_NODE, "no such node has joined");
    }
    rc = ps_registry_node_beat(self->is.registry, node->name, incarnation, max_epoch, now_ms, err);
    if (rc == PSD_OK) {
        set_state(self, node, PS_HEALTH_UP, 0);
    }
    return rc;
}

static uint64_t suspect_after(const ps_overseer_t *self)
{
    return ps_registry_is_set(self->is.registry, PS_SETTING_SUSPECT_AFTER)
               ? ps_registry_setting(self->is.registry, PS_SETTING_SUSPECT_AFTER)
               : self->is.suspect_after_ms;
}

/* As the registry sees the node; one that it does not have any more is down. */
static void look_at(ps_overseer_t *self, ps_overseen_t *node, uint64_t now_ms)
{
    const ps_node_t *known = ps_registry_node_by_incarnation(self->is.registry, node->incarnation);
    uint64_t silent_ms =
        known == NULL || now_ms < known->last_seen_ms ? 0 : now_ms - known->last_seen_ms;
    ps_health_t state = PS_HEALTH_UP;

    if (known == NULL || silent_ms >= PS_OVERSEER_DOWN_FACTOR * suspect_after(self)) {
        state = PS_HEALTH_DOWN;
    } else if (known->suspect) {
        state = PS_HEALTH_SUSPECT;
    }
    if (state > node->state) { /* only a sign of life brings it back */
        set_state(self, node, state, silent_ms);
    }
}

void ps_overseer_tick(ps_overseer_t *self, uint64_t now_ms, bool here_hangs)
{
    self->ticked_ms = now_ms;
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (self->nodes[i].incarnation != self->is.incarnation) {
            look_at(self, &self->nodes[i], now_ms);
        }
    }
    ps_overseer_expire(self, now_ms, here_hangs);
}

bool ps_overseer_is_in_haste(const ps_overseer_t *self)
{
    for (size_t i = 0; i < self->n_questions; i++) {
        if (self->questions[i]->brief) {
            return true;
        }
    }
    return false;
}

uint64_t ps_overseer_deadline(const ps_overseer_t *self)
{
    bool waits = self->n_nodes > 1 || self->n_questions > 0 ||
                 (self->n_nodes == 1 && (self->nodes[0].n_tells > 0 || self->nodes[0].stale));
    uint64_t every_ms = suspect_after(self) / TICKS;

    if (ps_overseer_is_in_haste(self) && every_ms > HASTE_MS) {
        every_ms = HASTE_MS;
    }
    return waits ? self->ticked_ms + every_ms : UINT64_MAX;
}
