/* SPDX-License-Identifier: Apache-2.0 */
/* Takes lots in; time, deeds, views. */
#include "protocol/relay/relay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/relay/relay_check.h"
#include "protocol/relay/relay_state.h"

/* ---- places ---- */

static uint64_t place_number(const ps_relay_key_t *key)
{
    return (uint64_t)key->table << 32 | key->partition;
}

/* Frees the groups of a place that hold nothing, below that clock. */
static void forget_groups(ps_relay_t *self, place_t *place, uint64_t clock)
{
    group_t **at = &place->groups;

    while (*at != NULL) {
        group_t *group = *at;

        if (group->held.n == 0 && group->key.clock < clock) {
            *at = group->next;
            ps_free(group);
            self->n_groups--;
        } else {
            at = &group->next;
        }
    }
}

/* Frees everything that holds nothing. */
static void forget_places(ps_relay_t *self)
{
    bool found = true;

    while (found) {
        void *value = NULL;
        uint64_t number = 0;
        size_t at = 0;

        found = false;
        while (!found && ps_map_next(&self->places, &at, &number, &value)) {
            place_t *place = value;

            forget_groups(self, place, UINT64_MAX);
            found = place->groups == NULL && place->lots == NULL;
        }
        if (found) {
            place_t *place = ps_map_remove(&self->places, number);

            ps_map_done(&place->clients);
            ps_free(place);
        }
    }
}

static place_t *find_place(ps_relay_t *self, const ps_relay_key_t *key)
{
    place_t *place = ps_map_get(&self->places, place_number(key));

    if (place == NULL) {
        place = ps_alloc(1, sizeof *place);
        if (place != NULL && !ps_map_put(&self->places, place_number(key), place)) {
            ps_free(place);
            return NULL;
        }
    }
    return place;
}

static bool is_alike(const ps_relay_key_t *a, const ps_relay_key_t *b)
{
    return a->colour == b->colour && a->is_timed == b->is_timed && a->any_order == b->any_order &&
           a->type == b->type && a->first_col == b->first_col && a->width == b->width;
}

static group_t *group_of(const place_t *place, const ps_relay_key_t *key)
{
    group_t *group = place->groups;

    while (group != NULL && group->key.clock != key->clock) {
        group = group->next;
    }
    return group;
}

static psd_status_t find_group(ps_relay_t *self, place_t *place, const ps_relay_key_t *key,
                               group_t **ret_group, psd_error_t *err)
{
    group_t *group = group_of(place, key);

    if (group != NULL && group->held.n > 0 && !is_alike(&group->key, key)) {
        return psd_error_set(err, PSD_INVALID,
                             "table %u partition %u clock %" PRIu64
                             ": colour, order, type or columns are not those of what is held",
                             key->table, key->partition, key->clock);
    }
    if (group == NULL) {
        forget_groups(self, place, key->clock);
        group = ps_alloc(1, sizeof *group);
        if (group == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for deltas that are passed on");
        }
        group->urgent_ms = UINT64_MAX;
        group->place = place;
        group->next = place->groups;
        place->groups = group;
        self->n_groups++;
    }
    group->key = *key;
    *ret_group = group;
    return PSD_OK;
}

static bool has_given(const place_t *place, const ps_relay_giver_t *giver)
{
    for (const lot_t *lot = place == NULL ? NULL : place->lots; lot != NULL; lot = lot->next_here) {
        if (lot->giver.worker == giver->worker && lot->giver.request == giver->request) {
            return true;
        }
    }
    return false;
}

/* ---- giving ---- */

/* What this relay cannot do for anybody now. */
static psd_status_t check_state(const ps_relay_t *self, const ps_relay_giver_t *giver,
                                psd_error_t *err)
{
    if (self->is_leaving) {
        return psd_error_set(err, PSD_BUSY, "the relay is leaving");
    }
    if (self->tree.version == 0) {
        return psd_error_set(err, PSD_BUSY, "the relay has no plan yet");
    }
    if (ps_relay_tree_of_version(self, giver->plan) == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "plan %" PRIu64 "; this relay knows plans %" PRIu64 " and %" PRIu64,
                             giver->plan, self->before.version, self->tree.version);
    }
    return PSD_OK;
}

static psd_status_t check_clients(const place_t *place, const ps_relay_lot_t *lot, psd_error_t *err)
{
    for (uint16_t i = 0; place != NULL && i < lot->n_from; i++) {
        const ps_bundle_from_t *from = &lot->from[i];
        const client_t *client = ps_map_get(&place->clients, from->session);

        if (client != NULL && from->first_seq <= client->last_seq) {
            return psd_error_set(err, PSD_INVALID,
                                 "twice: seq %" PRIu64 " of worker %u member %u is here already",
                                 from->first_seq, from->worker, from->member);
        }
    }
    return PSD_OK;
}

static psd_status_t check_room(ps_relay_t *self, uint64_t now_ms, uint64_t bytes, psd_error_t *err)
{
    uint64_t limit = self->settings.limit_bytes;

    if (bytes > limit) {
        return psd_error_set(err, PSD_LIMIT, "%" PRIu64 " bytes; the relay may hold %" PRIu64,
                             bytes, limit);
    }
    if (self->bytes > limit - bytes) {
        uint64_t held = self->bytes;

        ps_relay_flush_largest(self, now_ms);
        if (self->bytes > limit - bytes) {
            return psd_error_set(err, PSD_BUSY, "the relay holds %" PRIu64 " of %" PRIu64 " bytes",
                                 held, limit);
        }
    }
    if (self->n_groups >= PS_RELAY_GROUPS_MAX) {
        forget_places(self);
    }
    return self->n_groups < PS_RELAY_GROUPS_MAX
               ? PSD_OK
               : psd_error_set(err, PSD_BUSY, "the relay holds deltas of %d clocks",
                               PS_RELAY_GROUPS_MAX);
}

/* One more lot of that client. */
static psd_status_t add_client(place_t *place, const ps_bundle_from_t *from, psd_error_t *err)
{
    client_t *client = ps_map_get(&place->clients, from->session);

    if (client != NULL && from->first_seq <= client->last_seq) {
        return psd_error_set(err, PSD_INVALID, "session %" PRIu64 " contributes twice",
                             from->session);
    }
    if (client == NULL) {
        client = ps_alloc(1, sizeof *client);
        if (client == NULL || !ps_map_put(&place->clients, from->session, client)) {
            ps_free(client);
            return psd_error_set(err, PSD_NOMEM, "no memory for deltas that are passed on");
        }
    }
    client->last_seq = from->last_seq;
    client->n_lots++;
    return PSD_OK;
}

static psd_status_t add_clients(place_t *place, const ps_relay_lot_t *lot, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    uint16_t n = 0;

    while (rc == PSD_OK && n < lot->n_from) {
        rc = add_client(place, &lot->from[n], err);
        n = (uint16_t)(n + (rc == PSD_OK ? 1 : 0));
    }
    while (rc != PSD_OK && n > 0) {
        ps_relay_forget_client(place, lot->from[--n].session);
    }
    return rc;
}

static void hold(ps_relay_t *self, uint64_t now_ms, group_t *group, lot_t *lot)
{
    lot->next_here = lot->place->lots;
    lot->place->lots = lot;
    lot->group = group;
    if (group->held.n == 0) {
        group->first_ms = now_ms;
    }
    if (lot->giver.is_urgent && group->urgent_ms == UINT64_MAX) {
        group->urgent_ms = now_ms;
    }
    ps_relay_append(&group->held, lot);
    group->n_from += lot->goods.n_from;
    group->n_spans += lot->goods.n_spans;
    group->bytes += lot->bytes;
    self->said_ms = self->n_lots == 0 ? now_ms : self->said_ms;
    self->bytes += lot->bytes;
    self->n_lots++;
}

/* What its worker brings in a clock. */
static void note_own(ps_relay_t *self, const ps_relay_giver_t *giver, const lot_t *lot)
{
    if (giver->worker != self->settings.worker || lot->key.is_timed) {
        return;
    }
    if (lot->key.clock > self->own_clock) {
        self->own_before = self->own_bytes;
        self->own_bytes = 0;
        self->own_clock = lot->key.clock;
    }
    self->own_bytes += lot->bytes;
}

/* A checked lot, for which there is room. */
static psd_status_t take(ps_relay_t *self, uint64_t now_ms, const ps_relay_giver_t *giver,
                         const ps_relay_key_t *key, const ps_relay_lot_t *goods, psd_error_t *err)
{
    place_t *place = find_place(self, key);
    lot_t *lot = ps_alloc(1, sizeof *lot);
    group_t *group = NULL;
    psd_status_t rc = PSD_OK;

    if (place == NULL || lot == NULL) {
        ps_free(lot);
        return psd_error_set(err, PSD_NOMEM, "no memory for deltas that are passed on");
    }
    rc = ps_relay_lot_copy(goods, &lot->goods, err);
    if (rc == PSD_OK) {
        rc = find_group(self, place, key, &group, err);
    }
    if (rc == PSD_OK) {
        rc = add_clients(place, goods, err);
    }
    if (rc != PSD_OK) {
        ps_relay_lot_done(&lot->goods);
        ps_free(lot);
        return rc;
    }
    if (group->n_from + goods->n_from > PS_BUNDLE_FROM_MAX ||
        group->n_spans + goods->n_spans > PS_BUNDLE_SPANS_MAX) {
        ps_relay_flush(self, now_ms, group);
    }
    lot->place = place;
    lot->key = *key;
    lot->giver = *giver;
    lot->bytes = ps_relay_cost(&lot->goods);
    lot->came_ms = now_ms;
    note_own(self, giver, lot);
    hold(self, now_ms, group, lot);
    if (ps_relay_is_ready(self, now_ms, group)) {
        ps_relay_flush(self, now_ms, group);
    }
    return PSD_OK;
}

psd_status_t ps_relay_give(ps_relay_t *self, uint64_t now_ms, const ps_relay_giver_t *giver,
                           const ps_relay_key_t *key, const ps_relay_lot_t *lot, psd_error_t *err)
{
    const place_t *place = ps_map_get(&self->places, place_number(key));
    psd_status_t rc = PSD_OK;

    if (has_given(place, giver)) {
        return PSD_OK;
    }
    rc = check_state(self, giver, err);
    if (rc == PSD_OK) {
        rc = ps_relay_check(ps_relay_tree_of_version(self, giver->plan), self->settings.worker,
                            giver->worker, key, lot, err);
    }
    if (rc == PSD_OK) {
        rc = check_clients(place, lot, err);
    }
    if (rc == PSD_OK) {
        rc = check_room(self, now_ms, ps_relay_cost(lot), err);
    }
    return rc == PSD_OK ? take(self, now_ms, giver, key, lot, err) : rc;
}

/* ---- time ---- */

static void say(ps_relay_t *self, uint64_t now_ms)
{
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    if (self->n_lots == 0 || now_ms < ps_relay_add_ms(self->said_ms, PS_RELAY_SAY_MS)) {
        return;
    }
    self->said_ms = now_ms;
    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (lot_t *lot = ((place_t *)value)->lots; lot != NULL; lot = lot->next_here) {
            if (lot->news == 0) {
                ps_relay_tell(self, lot, PS_RELAY_WAITS, NULL);
            }
        }
    }
}

static uint64_t travel_ms(const ps_relay_t *self, uint64_t bytes)
{
    return self->settings.patience_ms + bytes * 1000 / PS_RELAY_SLOWEST;
}

/* When who has it has been silent for too long. */
static uint64_t silent_ms(const ps_relay_t *self, const bundle_t *bundle)
{
    uint64_t own = ps_relay_add_ms(bundle->heard_ms, travel_ms(self, bundle->bytes));
    uint64_t other = ps_relay_add_ms(bundle->other_ms, travel_ms(self, bundle->bytes));
    uint64_t most = ps_relay_add_ms(bundle->sent_ms, travel_ms(self, bundle->ahead));

    other = other < most ? other : most;
    return own > other ? own : other;
}

void ps_relay_tick(ps_relay_t *self, uint64_t now_ms)
{
    ps_relay_flush_ready(self, now_ms);
    for (bundle_t *bundle = self->bundles, *next = NULL; bundle != NULL; bundle = next) {
        next = bundle->next;
        if (now_ms >= silent_ms(self, bundle)) {
            ps_relay_fail(self, now_ms, bundle, "who had it was silent");
        }
    }
    say(self, now_ms);
}

uint64_t ps_relay_due(const ps_relay_t *self)
{
    uint64_t due = self->n_lots > 0 ? ps_relay_add_ms(self->said_ms, PS_RELAY_SAY_MS) : UINT64_MAX;
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (const group_t *group = ((place_t *)value)->groups; group != NULL;
             group = group->next) {
            uint64_t other = group->held.n > 0 ? ps_relay_group_due(self, group) : UINT64_MAX;

            due = other < due ? other : due;
        }
    }
    for (const bundle_t *bundle = self->bundles; bundle != NULL; bundle = bundle->next) {
        uint64_t other = silent_ms(self, bundle);

        due = other < due ? other : due;
    }
    return due;
}

/* ---- deeds ---- */

static bool next_send(ps_relay_t *self, ps_relay_deed_t *ret_deed)
{
    bundle_t *bundle = self->n_unsent > 0 ? self->bundles : NULL;

    while (bundle != NULL && !bundle->is_unsent) {
        bundle = bundle->next;
    }
    if (bundle == NULL) {
        return false;
    }
    bundle->is_unsent = false;
    self->n_unsent--;
    *ret_deed = (ps_relay_deed_t){.kind = PS_RELAY_SEND,
                                  .to = bundle->to,
                                  .key = bundle->key,
                                  .number = bundle->number,
                                  .plan = bundle->plan,
                                  .lot = &bundle->goods,
                                  .waits_for = PS_RELAY_NOBODY};
    return true;
}

static uint32_t waits_for(const ps_relay_t *self, const lot_t *lot)
{
    if (lot->bundle != NULL) {
        return lot->bundle->to;
    }
    return lot->group != NULL ? ps_relay_missing(self, lot->group) : PS_RELAY_NOBODY;
}

static bool next_news(ps_relay_t *self, ps_relay_deed_t *ret_deed)
{
    lot_t *lot = self->news;

    if (lot == NULL) {
        return false;
    }
    self->news = lot->next_news;
    if (self->news == NULL) {
        self->last_news = NULL;
    }
    *ret_deed = (ps_relay_deed_t){.kind = PS_RELAY_TELL,
                                  .to = lot->giver.worker,
                                  .key = lot->key,
                                  .number = lot->giver.request,
                                  .news = lot->news,
                                  .waits_for = waits_for(self, lot),
                                  .reason = lot->reason};
    lot->news = 0;
    if (ret_deed->news == PS_RELAY_DONE || ret_deed->news == PS_RELAY_RETURNED) {
        ps_relay_lot_end(self, lot);
    }
    return true;
}

bool ps_relay_next(ps_relay_t *self, ps_relay_deed_t *ret_deed)
{
    return next_send(self, ret_deed) || next_news(self, ret_deed);
}

/* ---- what is here ---- */

static void view_group(const ps_relay_t *self, const group_t *group, ps_relay_view_t *ret)
{
    *ret = (ps_relay_view_t){.key = group->key,
                             .n_lots = (uint32_t)group->held.n,
                             .bytes = group->bytes,
                             .since_ms = group->first_ms,
                             .to = PS_RELAY_NOBODY,
                             .waits_for = ps_relay_missing(self, group)};
}

size_t ps_relay_look(const ps_relay_t *self, ps_relay_view_t *ret_views, size_t most)
{
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;
    size_t n = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (const group_t *group = ((place_t *)value)->groups; group != NULL;
             group = group->next) {
            if (group->held.n > 0 && n++ < most) {
                view_group(self, group, &ret_views[n - 1]);
            }
        }
    }
    for (const bundle_t *bundle = self->bundles; bundle != NULL; bundle = bundle->next) {
        if (n++ < most) {
            ret_views[n - 1] = (ps_relay_view_t){.key = bundle->key,
                                                 .n_lots = (uint32_t)bundle->lots.n,
                                                 .bytes = bundle->bytes,
                                                 .since_ms = bundle->sent_ms,
                                                 .to = bundle->to,
                                                 .waits_for = bundle->to};
        }
    }
    return n;
}

void ps_relay_view_text(const ps_relay_view_t *view, uint64_t now_ms, char *ret_text, size_t size)
{
    uint64_t ms = now_ms > view->since_ms ? now_ms - view->since_ms : 0;

    if (view->to == PS_OVERLAY_NODES) {
        (void)snprintf(ret_text, size, "with the nodes for %" PRIu64 " ms", ms);
    } else if (view->to != PS_RELAY_NOBODY) {
        (void)snprintf(ret_text, size, "with worker %u for %" PRIu64 " ms", view->to, ms);
    } else if (view->waits_for != PS_RELAY_NOBODY) {
        (void)snprintf(ret_text, size, "held for %" PRIu64 " ms, waits for worker %u", ms,
                       view->waits_for);
    } else {
        (void)snprintf(ret_text, size, "held for %" PRIu64 " ms, complete", ms);
    }
}

/* ---- life ---- */

psd_status_t ps_relay_new(const ps_relay_settings_t *settings, ps_relay_t **ret_relay,
                          psd_error_t *err)
{
    ps_relay_t *self = NULL;

    if (settings->hold_ms == 0 || settings->patience_ms == 0 || settings->limit_bytes == 0 ||
        (settings->worker >= PS_COMBINE_POSITIONS && settings->worker != PS_RELAY_NOBODY)) {
        return psd_error_set(err, PSD_INVALID,
                             "a relay needs a position below %u, and hold, patience and limit of 1 "
                             "and more",
                             PS_COMBINE_POSITIONS);
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a relay");
    }
    self->settings = *settings;
    self->n_bundles = settings->numbers_after;
    *ret_relay = self;
    return PSD_OK;
}

psd_status_t ps_relay_take_plan(ps_relay_t *self, const ps_relay_plan_t *plan, psd_error_t *err)
{
    ps_relay_tree_t tree = {.version = 0};
    psd_status_t rc = PSD_OK;

    if (plan->version != 0 && plan->version <= self->tree.version) {
        return PSD_OK;
    }
    rc = ps_relay_tree_make(plan, self->settings.worker, &tree, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_relay_tree_done(&self->before);
    self->before = self->tree;
    self->tree = tree;
    memset(self->gone, 0, sizeof self->gone);
    return PSD_OK;
}

void ps_relay_destroy(ps_relay_t **self_p)
{
    ps_relay_t *self = self_p == NULL ? NULL : *self_p;
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    if (self == NULL) {
        return;
    }
    while (self->bundles != NULL) {
        ps_relay_drop_bundle(self, self->bundles);
    }
    while (ps_map_next(&self->places, &at, &number, &value)) {
        while (((place_t *)value)->lots != NULL) {
            ps_relay_lot_end(self, ((place_t *)value)->lots);
        }
        for (group_t *group = ((place_t *)value)->groups; group != NULL;) {
            group_t *next = group->next;

            ps_free(group);
            group = next;
        }
        ps_map_done(&((place_t *)value)->clients);
        ps_free(value);
    }
    ps_map_done(&self->places);
    ps_relay_tree_done(&self->tree);
    ps_relay_tree_done(&self->before);
    ps_free(self);
    *self_p = NULL;
}
