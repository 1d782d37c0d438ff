/* SPDX-License-Identifier: Apache-2.0 */
/* Adds and sends what is held; bundles that are under way. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/relay/relay_state.h"

/* ---- sending ---- */

static void note_passing(ps_relay_t *self, uint64_t now_ms, group_t *group)
{
    const ps_relay_tree_t *tree = ps_relay_tree_of_clock(self, &group->key);
    uint32_t marks[PS_OVERLAY_WORKERS_MAX];

    ps_relay_count_marks(tree, group, marks);
    ps_relay_note_debts(self, now_ms, group, marks);
    if (group->key.is_timed) {
        memset(group->went, 0, sizeof group->went); /* of the last bundle */
    }
    for (const lot_t *lot = group->held.first; lot != NULL; lot = lot->next) {
        for (uint16_t i = 0; i < lot->goods.n_from; i++) {
            uint32_t position = lot->goods.from[i].worker;
            uint32_t number = ps_relay_tree_find(tree, position);

            ps_relay_set_bit(group->went, position);
            if (!group->key.is_timed && number != UINT32_MAX &&
                marks[number] >= ps_relay_tree_members(tree, number)) {
                ps_relay_set_bit(group->passed, position);
            }
        }
    }
}

/* Bytes on their way to there. */
static uint64_t bytes_to(const ps_relay_t *self, uint32_t to)
{
    uint64_t bytes = 0;

    for (const bundle_t *bundle = self->bundles; bundle != NULL; bundle = bundle->next) {
        bytes += bundle->to == to && !bundle->is_taken ? bundle->bytes : 0;
    }
    return bytes;
}

/* Sends goods, which it takes over, for these lots; without memory they go back. */
static void send(ps_relay_t *self, uint64_t now_ms, const ps_relay_key_t *key, uint32_t to,
                 ps_relay_lot_t *goods, lots_t *lots)
{
    bundle_t *bundle = ps_alloc(1, sizeof *bundle);

    if (bundle == NULL) {
        ps_relay_lot_done(goods);
        ps_relay_end_lots(self, lots, PS_RELAY_RETURNED, "no memory");
        return;
    }
    *bundle = (bundle_t){.number = ++self->n_bundles,
                         .plan = ps_relay_tree_of_clock(self, key)->version,
                         .to = to,
                         .key = *key,
                         .goods = *goods,
                         .lots = *lots,
                         .sent_ms = now_ms,
                         .heard_ms = now_ms,
                         .other_ms = now_ms,
                         .is_unsent = true};
    *goods = (ps_relay_lot_t){.from = NULL};
    bundle->bytes = sizeof *bundle + ps_relay_lot_bytes(&bundle->goods);
    bundle->ahead = bytes_to(self, to) + bundle->bytes;
    self->bytes += bundle->bytes;
    self->n_unsent++;
    for (lot_t *lot = lots->first; lot != NULL; lot = lot->next) {
        uint64_t bytes = lot->bytes;

        ps_relay_drop_spans(&lot->goods);
        lot->bytes = ps_relay_cost(&lot->goods);
        self->bytes -= bytes - lot->bytes;
        lot->group = NULL;
        lot->bundle = bundle;
    }
    if (self->last_bundle != NULL) {
        self->last_bundle->next = bundle;
    } else {
        self->bundles = bundle;
    }
    self->last_bundle = bundle;
    *lots = (lots_t){.n = 0};
}

static void send_alone(ps_relay_t *self, uint64_t now_ms, lot_t *lot)
{
    ps_relay_lot_t goods = {.from = NULL};
    lots_t lots = {.n = 0};

    ps_relay_append(&lots, lot);
    if (ps_relay_lot_copy(&lot->goods, &goods, NULL) == PSD_OK) {
        send(self, now_ms, &lot->key, PS_OVERLAY_NODES, &goods, &lots);
    } else {
        ps_relay_end_lots(self, &lots, PS_RELAY_RETURNED, "no memory");
    }
}

/* The arrays that a group is looked at with. */
typedef struct desk {
    lot_t **all;                  /* owned */
    const ps_relay_lot_t **goods; /* owned */
    bool *alone;                  /* owned */
    size_t n;
} desk_t;

static void desk_done(desk_t *self)
{
    ps_free(self->all);
    ps_free(self->goods);
    ps_free(self->alone);
}

/* Takes the lots off the group. */
static bool desk_open(desk_t *self, group_t *group)
{
    *self = (desk_t){.all = ps_alloc(group->held.n, sizeof *self->all),
                     .goods = ps_alloc(group->held.n, sizeof *self->goods),
                     .alone = ps_alloc(group->held.n, sizeof *self->alone)};
    if (self->all == NULL || self->goods == NULL || self->alone == NULL) {
        return false;
    }
    for (lot_t *lot = group->held.first; lot != NULL; lot = lot->next) {
        self->all[self->n] = lot;
        self->goods[self->n++] = &lot->goods;
    }
    return true;
}

static void clear_held(group_t *group)
{
    group->held = (lots_t){.n = 0};
    group->n_from = 0;
    group->n_spans = 0;
    group->bytes = 0;
    group->urgent_ms = UINT64_MAX;
}

/* Sends those that may be added as one, where they fit; the others stay alone. false: no
 * memory. */
static bool send_sum(ps_relay_t *self, uint64_t now_ms, const ps_relay_sum_args_t *args,
                     const ps_relay_key_t *key, desk_t *desk)
{
    ps_relay_lot_t sum = {.from = NULL};
    lots_t lots = {.n = 0};
    bool fits = false;
    size_t n = 0;

    for (size_t i = 0; i < desk->n; i++) {
        if (!desk->alone[i]) {
            desk->goods[n++] = &desk->all[i]->goods;
        }
    }
    if (n == 0) {
        return true;
    }
    if (ps_relay_sum_make(args, desk->goods, n, &fits, &sum, NULL) != PSD_OK) {
        return false;
    }
    if (fits && n > 1 && self->most_bytes > 0 && ps_relay_lot_bytes(&sum) > self->most_bytes) {
        ps_relay_lot_done(&sum);
        fits = false;
    }
    for (size_t i = 0; i < desk->n; i++) {
        if (!desk->alone[i] && fits) {
            ps_relay_append(&lots, desk->all[i]);
            desk->all[i] = NULL;
        }
    }
    if (fits) {
        send(self, now_ms, key,
             ps_relay_tree_parent(args->tree, key->colour % args->tree->n_colours,
                                  self->settings.worker),
             &sum, &lots);
    }
    return true;
}

void ps_relay_flush(ps_relay_t *self, uint64_t now_ms, group_t *group)
{
    const ps_relay_key_t *key = &group->key;
    uint64_t went[PS_RELAY_WORDS]; /* before these */
    const ps_relay_sum_args_t args = {.tree = ps_relay_tree_of_clock(self, key),
                                      .went = went,
                                      .any_order = key->any_order,
                                      .type = key->type,
                                      .first_col = key->first_col,
                                      .width = key->width};
    PSD_AUTO(desk_done) desk_t desk = {.n = 0};
    bool is_added = false;

    if (group->held.n == 0) {
        return;
    }
    memcpy(went, group->went, sizeof went);
    note_passing(self, now_ms, group);
    if (!desk_open(&desk, group)) {
        ps_relay_end_lots(self, &group->held, PS_RELAY_RETURNED, "no memory");
        clear_held(group);
        return;
    }
    is_added = ps_relay_sum_look(&args, desk.goods, desk.n, desk.alone, NULL) == PSD_OK &&
               send_sum(self, now_ms, &args, key, &desk);
    clear_held(group);
    for (size_t i = 0; i < desk.n; i++) {
        lots_t lots = {.n = 0};

        if (desk.all[i] != NULL && is_added) {
            send_alone(self, now_ms, desk.all[i]);
        } else if (desk.all[i] != NULL) {
            ps_relay_append(&lots, desk.all[i]);
            ps_relay_end_lots(self, &lots, PS_RELAY_RETURNED, "no memory");
        }
    }
}

/* True when one was sent. Who was waited for in vain then is not waited for in other clocks. */
static bool flush_those(ps_relay_t *self, uint64_t now_ms, const place_t *place)
{
    bool is_sent = false;

    for (group_t *group = place->groups; group != NULL; group = group->next) {
        if (group->held.n > 0 && ps_relay_is_ready(self, now_ms, group)) {
            ps_relay_flush(self, now_ms, group);
            is_sent = true;
        }
    }
    return is_sent;
}

void ps_relay_flush_ready(ps_relay_t *self, uint64_t now_ms)
{
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        bool is_sent = true;

        while (is_sent) {
            is_sent = flush_those(self, now_ms, value);
        }
    }
}

void ps_relay_flush_largest(ps_relay_t *self, uint64_t now_ms)
{
    group_t *largest = NULL;
    void *value = NULL;
    uint64_t number = 0;
    size_t at = 0;

    while (ps_map_next(&self->places, &at, &number, &value)) {
        for (group_t *group = ((place_t *)value)->groups; group != NULL; group = group->next) {
            if (group->held.n > 0 && (largest == NULL || group->bytes > largest->bytes)) {
                largest = group;
            }
        }
    }
    if (largest != NULL) {
        ps_relay_flush(self, now_ms, largest);
    }
}

/* ---- bundles that are under way ---- */

void ps_relay_drop_bundle(ps_relay_t *self, bundle_t *bundle)
{
    bundle_t *before = NULL;
    bundle_t *at = self->bundles;

    while (at != bundle) {
        before = at;
        at = at->next;
    }
    if (before != NULL) {
        before->next = bundle->next;
    } else {
        self->bundles = bundle->next;
    }
    if (self->last_bundle == bundle) {
        self->last_bundle = before;
    }
    self->n_unsent -= bundle->is_unsent ? 1 : 0;
    self->bytes -= bundle->bytes;
    ps_relay_lot_done(&bundle->goods);
    ps_free(bundle);
}

static void end_bundle(ps_relay_t *self, bundle_t *bundle, ps_relay_news_t news, const char *reason)
{
    ps_relay_end_lots(self, &bundle->lots, news, reason);
    ps_relay_drop_bundle(self, bundle);
}

/* Who has it does not bring it. */
void ps_relay_fail(ps_relay_t *self, uint64_t now_ms, bundle_t *bundle, const char *reason)
{
    if (bundle->to == PS_OVERLAY_NODES || bundle->is_taken) {
        end_bundle(self, bundle, PS_RELAY_RETURNED, reason);
        return;
    }
    bundle->ahead = bytes_to(self, PS_OVERLAY_NODES) + bundle->bytes;
    bundle->to = PS_OVERLAY_NODES;
    bundle->sent_ms = now_ms;
    bundle->heard_ms = now_ms;
    bundle->other_ms = now_ms;
    self->n_unsent += bundle->is_unsent ? 0 : 1;
    bundle->is_unsent = true;
}

static void note_taken(ps_relay_t *self, bundle_t *bundle)
{
    uint64_t bytes = bundle->bytes;

    if (bundle->to == PS_OVERLAY_NODES || bundle->is_unsent) {
        return;
    }
    bundle->is_taken = true;
    ps_relay_drop_spans(&bundle->goods);
    bundle->bytes = sizeof *bundle + ps_relay_lot_bytes(&bundle->goods);
    self->bytes -= bytes - bundle->bytes;
}

/* What goes there moves. Who has taken one says itself that it lives. */
static void hear_of_others(ps_relay_t *self, uint64_t now_ms, uint32_t from)
{
    for (bundle_t *bundle = self->bundles; bundle != NULL; bundle = bundle->next) {
        if (bundle->to == from && !bundle->is_taken) {
            bundle->other_ms = now_ms;
        }
    }
}

void ps_relay_heard(ps_relay_t *self, uint64_t now_ms, uint32_t from, uint64_t number,
                    ps_relay_news_t news)
{
    bundle_t *bundle = self->bundles;

    while (bundle != NULL && bundle->number != number) {
        bundle = bundle->next;
    }
    if (bundle == NULL || bundle->to != from) {
        return;
    }
    bundle->heard_ms = now_ms;
    hear_of_others(self, now_ms, from);
    switch (news) {
    case PS_RELAY_TAKEN:
        note_taken(self, bundle);
        break;
    case PS_RELAY_DONE:
        end_bundle(self, bundle, PS_RELAY_DONE, NULL);
        break;
    case PS_RELAY_RETURNED:
        ps_relay_fail(self, now_ms, bundle, from == PS_OVERLAY_NODES ? "split" : "returned");
        break;
    case PS_RELAY_WAITS:
    default:
        break;
    }
}

void ps_relay_lost(ps_relay_t *self, uint64_t now_ms, uint32_t worker)
{
    for (bundle_t *bundle = self->bundles, *next = NULL; bundle != NULL; bundle = next) {
        next = bundle->next;
        if (bundle->to == worker) {
            ps_relay_fail(self, now_ms, bundle, "the relay that had it is lost");
        }
    }
}

void ps_relay_without(ps_relay_t *self, uint64_t now_ms, uint32_t worker)
{
    if (worker < PS_COMBINE_POSITIONS) {
        ps_relay_set_bit(self->gone, worker);
        ps_relay_flush_ready(self, now_ms);
    }
}

void ps_relay_set_most(ps_relay_t *self, uint64_t bytes)
{
    self->most_bytes = bytes;
}

void ps_relay_set_own(ps_relay_t *self, uint64_t bytes)
{
    if (self->own_clock == 0 && bytes > self->own_bytes) {
        self->own_bytes = bytes;
    }
}

void ps_relay_leave(ps_relay_t *self, uint64_t now_ms)
{
    self->is_leaving = true;
    ps_relay_flush_ready(self, now_ms);
}

bool ps_relay_is_empty(const ps_relay_t *self)
{
    return self->n_lots == 0 && self->bundles == NULL;
}

uint64_t ps_relay_bytes(const ps_relay_t *self)
{
    return self->bytes;
}
