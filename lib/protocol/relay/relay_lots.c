/* SPDX-License-Identifier: Apache-2.0 */
/* Lots that are held: whose they are, and what they wait for. */
#include <string.h>

#include "base/alloc.h"
#include "protocol/relay/relay_state.h"

#define CLIENT_BYTES 80 /* of a client_t, its block and its slots in a map */

void ps_relay_append(lots_t *lots, lot_t *lot)
{
    lot->next = NULL;
    if (lots->last != NULL) {
        lots->last->next = lot;
    } else {
        lots->first = lot;
    }
    lots->last = lot;
    lots->n++;
}

/* ---- lots ---- */

void ps_relay_drop_spans(ps_relay_lot_t *goods)
{
    for (uint16_t i = 0; i < goods->n_spans; i++) {
        ps_payload_destroy(&goods->spans[i].payload);
    }
    ps_free(goods->spans);
    goods->spans = NULL;
    goods->n_spans = 0;
}

uint64_t ps_relay_cost(const ps_relay_lot_t *goods)
{
    return sizeof(lot_t) + goods->n_from * (uint64_t)CLIENT_BYTES + ps_relay_lot_bytes(goods);
}

void ps_relay_forget_client(place_t *place, uint64_t session)
{
    client_t *client = ps_map_get(&place->clients, session);

    if (client != NULL && --client->n_lots == 0) {
        ps_free(ps_map_remove(&place->clients, session));
    }
}

/* Drops what a lot has told or will not tell; it is in no list but its place's. */
void ps_relay_lot_end(ps_relay_t *self, lot_t *lot)
{
    lot_t **at = &lot->place->lots;

    while (*at != lot) {
        at = &(*at)->next_here;
    }
    *at = lot->next_here;
    for (uint16_t i = 0; i < lot->goods.n_from; i++) {
        ps_relay_forget_client(lot->place, lot->goods.from[i].session);
    }
    self->bytes -= lot->bytes;
    self->n_lots--;
    ps_relay_lot_done(&lot->goods);
    ps_free(lot);
}

/* WAITS is replaced by what ends it. */
void ps_relay_tell(ps_relay_t *self, lot_t *lot, ps_relay_news_t news, const char *reason)
{
    bool is_queued = lot->news != 0;

    lot->news = news;
    lot->reason = reason;
    if (is_queued) {
        return;
    }
    lot->next_news = NULL;
    if (self->last_news != NULL) {
        self->last_news->next_news = lot;
    } else {
        self->news = lot;
    }
    self->last_news = lot;
}

void ps_relay_end_lots(ps_relay_t *self, lots_t *lots, ps_relay_news_t news, const char *reason)
{
    for (lot_t *lot = lots->first; lot != NULL; lot = lot->next) {
        lot->group = NULL;
        lot->bundle = NULL;
        ps_relay_tell(self, lot, news, reason);
    }
    *lots = (lots_t){.n = 0};
}

/* ---- plans ---- */

const ps_relay_tree_t *ps_relay_tree_of_version(const ps_relay_t *self, uint64_t version)
{
    if (version == 0) {
        return NULL;
    }
    if (self->tree.version == version) {
        return &self->tree;
    }
    return self->before.version == version ? &self->before : NULL;
}

/* The plan by which deltas of that clock go. */
const ps_relay_tree_t *ps_relay_tree_of_clock(const ps_relay_t *self, const ps_relay_key_t *key)
{
    bool is_old = !key->is_timed && key->clock < self->tree.clock && self->before.version != 0;

    return is_old ? &self->before : &self->tree;
}

/* ---- what a group waits for ---- */

void ps_relay_count_marks(const ps_relay_tree_t *tree, const group_t *group,
                          uint32_t marks[PS_OVERLAY_WORKERS_MAX])
{
    memset(marks, 0, tree->n_workers * sizeof *marks);
    for (const lot_t *lot = group->held.first; lot != NULL; lot = lot->next) {
        for (uint16_t i = 0; i < lot->goods.n_from; i++) {
            const ps_bundle_from_t *from = &lot->goods.from[i];
            uint32_t number = ps_relay_tree_find(tree, from->worker);

            if ((from->marks > 0 || group->key.is_timed) && number != UINT32_MAX) {
                marks[number]++;
            }
        }
    }
}

/* Debts are of the newest plan: deltas of clocks before it change none. */
static bool has_debts(const ps_relay_t *self, const group_t *group)
{
    return !group->key.is_timed && ps_relay_tree_of_clock(self, &group->key) == &self->tree;
}

static bool is_in_debt(const ps_relay_t *self, const group_t *group, uint32_t number)
{
    const place_t *place = group->place;

    return has_debts(self, group) && place->debts_plan == self->tree.version &&
           place->debts[number] >= PS_RELAY_DEBT;
}

void ps_relay_note_debts(ps_relay_t *self, uint64_t now_ms, group_t *group,
                         const uint32_t marks[PS_OVERLAY_WORKERS_MAX])
{
    const ps_relay_tree_t *tree = &self->tree;
    place_t *place = group->place;
    uint32_t colour = 0;
    bool in_vain = !group->has_waited && now_ms >= ps_relay_group_due(self, group);

    if (!has_debts(self, group)) {
        return;
    }
    colour = group->key.colour % tree->n_colours;
    if (place->debts_plan != tree->version) {
        memset(place->debts, 0, sizeof place->debts);
        place->debts_plan = tree->version;
    }
    for (uint32_t i = 0; i < tree->n_workers; i++) {
        uint8_t *debt = &place->debts[i];

        if (!ps_relay_tree_is_below(tree, colour, i)) {
            continue;
        }
        if (marks[i] >= ps_relay_tree_members(tree, i)) {
            *debt = (uint8_t)(*debt - (*debt > 0 ? 1 : 0));
        } else if (in_vain && !ps_relay_has_bit(group->passed, ps_relay_tree_position(tree, i))) {
            *debt = *debt < PS_RELAY_DEBT ? (uint8_t)(*debt + PS_RELAY_DEBT) : PS_RELAY_DEBT_MOST;
        }
    }
    group->has_waited = group->has_waited || in_vain;
}

/* Where no clock says who brings more: who was in the last bundle. */
static bool is_expected(const group_t *group, uint32_t position)
{
    return group->key.is_timed ? ps_relay_has_bit(group->went, position)
                               : !ps_relay_has_bit(group->passed, position);
}

/* The first worker below that is waited for and not in; PS_RELAY_NOBODY: there is none. */
uint32_t ps_relay_missing(const ps_relay_t *self, const group_t *group)
{
    const ps_relay_tree_t *tree = ps_relay_tree_of_clock(self, &group->key);
    uint32_t colour = group->key.colour % tree->n_colours;
    uint32_t marks[PS_OVERLAY_WORKERS_MAX];

    ps_relay_count_marks(tree, group, marks);
    for (uint32_t i = 0; i < tree->n_workers; i++) {
        uint32_t position = ps_relay_tree_position(tree, i);

        if (ps_relay_tree_is_below(tree, colour, i) && marks[i] < ps_relay_tree_members(tree, i) &&
            is_expected(group, position) && !ps_relay_has_bit(self->gone, position) &&
            !is_in_debt(self, group, i)) {
            return position;
        }
    }
    return PS_RELAY_NOBODY;
}

/* What it would take without the overlay, where nobody has measured it: waiting at most doubles
 * that. Workers that pull over one slow link are as far apart. */
static uint64_t guess_ms(const ps_relay_t *self, const ps_relay_tree_t *tree, const group_t *group)
{
    uint64_t own = self->own_bytes > self->own_before ? self->own_bytes : self->own_before;
    uint64_t each = own > group->bytes ? own : group->bytes;
    uint64_t guess = each * tree->n_workers * 1000 / PS_RELAY_GUESS;

    return guess < PS_RELAY_WAIT_MOST_MS ? guess : PS_RELAY_WAIT_MOST_MS;
}

/* A bundle of the partition has not arrived there yet. */
static bool is_on_its_way(const place_t *place)
{
    for (const lot_t *lot = place->lots; lot != NULL; lot = lot->next_here) {
        if (lot->bundle != NULL && !lot->bundle->is_taken) {
            return true;
        }
    }
    return false;
}

/* Where no clock holds lots together: a moment, for who is expected as long as one lot of each
 * worker would take without the overlay, or this one takes. A bundle that is on its way is waited
 * for; it has its own patience. */
static uint64_t timed_ms(const ps_relay_t *self, const ps_relay_tree_t *tree, const group_t *group)
{
    uint64_t rate = tree->rates[group->key.colour % tree->n_colours];
    uint64_t hold =
        self->settings.hold_timed_ms > 0 ? self->settings.hold_timed_ms : self->settings.hold_ms;
    uint64_t bytes = group->held.n == 0 ? 0 : group->held.first->bytes;
    uint64_t wait = 0;

    if (is_on_its_way(group->place)) {
        return UINT64_MAX;
    }
    if (ps_relay_missing(self, group) == PS_RELAY_NOBODY) {
        return hold;
    }
    wait = rate > 0 ? bytes * 1000 / rate : bytes * tree->n_workers * 1000 / PS_RELAY_GUESS;
    wait = wait < self->settings.patience_ms ? wait : self->settings.patience_ms;
    return wait > hold ? wait : hold;
}

/* How long deltas wait for others: as long as they are predicted to travel. */
static uint64_t wait_ms(const ps_relay_t *self, const group_t *group)
{
    const ps_relay_tree_t *tree = ps_relay_tree_of_clock(self, &group->key);
    uint64_t rate = tree->rates[group->key.colour % tree->n_colours];
    uint64_t hold = self->settings.hold_ms;
    uint64_t most = self->settings.patience_ms;
    uint64_t wait = 0;

    if (group->key.is_timed) {
        return timed_ms(self, tree, group);
    }
    if (rate > 0) {
        wait = group->bytes > UINT64_MAX / 1000 ? most : group->bytes * 1000 / rate;
        wait = wait < most ? wait : most;
    } else {
        wait = guess_ms(self, tree, group);
    }
    return wait > hold ? wait : hold;
}

uint64_t ps_relay_group_due(const ps_relay_t *self, const group_t *group)
{
    uint64_t due = ps_relay_add_ms(group->first_ms, wait_ms(self, group));
    uint64_t urgent = ps_relay_add_ms(group->urgent_ms, self->settings.hold_ms);

    return due < urgent || group->key.is_timed ? due : urgent;
}

bool ps_relay_is_ready(const ps_relay_t *self, uint64_t now_ms, const group_t *group)
{
    return self->is_leaving || now_ms >= ps_relay_group_due(self, group) ||
           (!group->key.is_timed && ps_relay_missing(self, group) == PS_RELAY_NOBODY);
}
