/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong besides single messages. */
#include "sim_overlay.h"

#define RELINKED_MS 60
#define GONE_MS 200
#define STILL_MS 4000 /* most that a worker or relay stands still */
#define MUTE_MS 5000

void overlay_cut(overlay_t *self, overlay_life_t *life, bool is_courier, uint64_t link)
{
    overlay_speaker_t *speaker = is_courier ? &life->relay.courier : &life->client;
    overlay_event_t *event = NULL;
    uint64_t old = 0;

    if (speaker->session == NULL || link >= speaker->n_links) {
        return;
    }
    old = speaker->links[link].conn;
    overlay_conn(self, old)->is_cut = true;
    overlay_speaker_open(self, life, is_courier, link);
    event = overlay_at(self, self->now_ms + overlay_below(self, RELINKED_MS),
                       OVERLAY_EVENT_RELINKED, life->number);
    event->b = link;
    event->c = is_courier ? 1 : 0;
    if (overlay_conn(self, old)->shard_life == self->shard_lives[overlay_conn(self, old)->number]) {
        overlay_at(self, self->now_ms + overlay_below(self, GONE_MS), OVERLAY_EVENT_GONE,
                   overlay_conn(self, old)->number)
            ->b = old;
    }
}

static overlay_life_t *any_life(overlay_t *self)
{
    return &self->lives[overlay_below(self, self->n_lives)];
}

static void cut_any(overlay_t *self)
{
    overlay_life_t *life = any_life(self);
    bool is_courier = overlay_below(self, 2) == 0;
    const overlay_speaker_t *speaker = is_courier ? &life->relay.courier : &life->client;

    if (speaker->session != NULL && speaker->n_links > 0) {
        overlay_trace(self, "fault: a cut of %s of worker %u",
                      is_courier ? "the relay" : "the client", life->rank);
        overlay_cut(self, life, is_courier, overlay_below(self, speaker->n_links));
    }
}

static void mute_any(overlay_t *self)
{
    overlay_conn_t *conn = NULL;
    uint64_t n = self->n_conns;

    if (n == 0) {
        return;
    }
    conn = overlay_conn(self, n - overlay_below(self, n < 24 ? n : 24));
    conn->mute_ms[overlay_below(self, 2)] = self->now_ms + overlay_below(self, MUTE_MS);
    overlay_trace(self, "fault: a connection of worker %u is mute", self->lives[conn->life].rank);
}

static void still_any(overlay_t *self, bool is_relay)
{
    overlay_life_t *life = any_life(self);
    uint64_t until_ms = self->now_ms + overlay_below(self, STILL_MS);

    overlay_trace(self, "fault: %s of worker %u stands still until %" PRIu64,
                  is_relay ? "the relay" : "all", life->rank, until_ms);
    if (is_relay) {
        life->relay.still_ms = until_ms;
    } else {
        life->still_ms = until_ms;
    }
}

static void forget_any(overlay_t *self)
{
    overlay_life_t *life = any_life(self);

    if (life->relay.machine != NULL) {
        overlay_relay_forget(self, life);
    }
}

static void break_way(overlay_t *self)
{
    overlay_life_t *life = any_life(self);

    if (life->relay.machine != NULL && life->relay.n_ways > 0) {
        overlay_trace(self, "fault: a way of worker %u breaks", life->rank);
        overlay_ways_close(self, life, &life->relay.ways[overlay_below(self, life->relay.n_ways)]);
        overlay_relay_turn(self, life);
    }
}

static void take_over_any(overlay_t *self)
{
    overlay_at(self, self->now_ms, OVERLAY_EVENT_TAKE_OVER,
               overlay_below(self, self->plan.n_shards));
}

static void move_any(overlay_t *self)
{
    if (self->plan.n_shards > 1) {
        overlay_node_move(self, (uint32_t)overlay_below(self, self->plan.spec.n_partitions));
    }
}

void overlay_fault(overlay_t *self)
{
    uint64_t dice = overlay_below(self, 100);

    if (overlay_is_calm(self)) {
        return;
    }
    if (dice < 20) {
        cut_any(self);
    } else if (dice < 40) {
        mute_any(self);
    } else if (dice < 52) {
        still_any(self, true);
    } else if (dice < 60) {
        still_any(self, false);
    } else if (dice < 75) {
        forget_any(self);
    } else if (dice < 88) {
        break_way(self);
    } else if (dice < 94) {
        take_over_any(self);
    } else {
        move_any(self);
    }
    overlay_at(self, self->now_ms + 1 + overlay_below(self, UINT64_C(2) * self->weather.fault_ms),
               OVERLAY_EVENT_FAULT, 0);
}

void overlay_fault_start(overlay_t *self)
{
    if (self->weather.fault_ms > 0) {
        overlay_at(self, overlay_below(self, UINT64_C(2) * self->weather.fault_ms),
                   OVERLAY_EVENT_FAULT, 0);
    }
}

void overlay_fault_moment(overlay_t *self, overlay_life_t *life)
{
    if (!overlay_chance(self, self->weather.crash)) {
        return;
    }
    if (overlay_below(self, 2) == 0) {
        life->relay.is_doomed = true;
    } else {
        life->relay.still_ms = self->now_ms + overlay_below(self, STILL_MS);
        overlay_trace(self, "fault: the relay of worker %u stands still until %" PRIu64, life->rank,
                      life->relay.still_ms);
    }
}
