/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a lane: opening, closing, and deferred messages. */
#include "transport/lane/lane.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

static void join_rings(ps_lane_t *self)
{
    ps_lane_share_t *share = self->share;
    ps_lane_counters_t *counters = share->counters;
    ps_ring_out_t requests = {.data = share->requests,
                              .size = share->sizes.request_bytes,
                              .tail = &counters->request_tail,
                              .head = &counters->request_head};
    ps_ring_out_t replies = {.data = share->replies,
                             .size = share->sizes.reply_bytes,
                             .tail = &counters->reply_tail,
                             .head = &counters->reply_head};
    const ps_ring_out_t *in = self->serves ? &requests : &replies;

    self->out = self->serves ? replies : requests;
    self->in =
        (ps_ring_in_t){.data = in->data, .size = in->size, .tail = in->tail, .head = in->head};
    self->passed_at = &counters->request_passed;
    self->own_waits = self->serves ? &counters->server_waits : &counters->client_waits;
    self->peer_waits = self->serves ? &counters->client_waits : &counters->server_waits;
}

psd_status_t ps_lane_new(ps_lane_share_t *share, int fd, bool serves, const ps_lane_args_t *args,
                         ps_lane_t **ret_lane, psd_error_t *err)
{
    ps_lane_t *self = ps_alloc(1, sizeof *self);

    assert(args->high_water > 0);
    if (self == NULL) {
        ps_lane_share_drop(&share);
        (void)close(fd);
        return psd_error_set(err, PSD_NOMEM, "no memory for a lane");
    }
    self->share = share;
    self->args = *args;
    self->fd = fd;
    self->serves = serves;
    TAILQ_INIT(&self->holds);
    join_rings(self);
    self->apart.fd = &self->fd;
    ps_fork_add(&self->apart);
    *ret_lane = self;
    return PSD_OK;
}

static void drop_items(ps_lane_t *self)
{
    for (size_t i = 0; i < self->n_items; i++) {
        size_t at = (self->first_item + i) & (self->items_capacity - 1);

        ps_payload_destroy(&self->items[at].item.payload);
    }
    for (size_t i = 0; i < self->n_bodies; i++) {
        size_t at = (self->first_body + i) & (self->bodies_capacity - 1);

        ps_payload_destroy(&self->bodies[at].payload);
    }
    ps_free(self->items);
    ps_free(self->bodies);
}

void ps_lane_destroy(ps_lane_t **self_p)
{
    ps_lane_t *self = *self_p;
    ps_lane_hold_t *hold = NULL;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    drop_items(self);
    ps_assembly_done(&self->assembly);
    ps_buffer_done(&self->parts);
    ps_lane_rooms_done(self);
    TAILQ_FOREACH(hold, &self->holds, in_order)
    {
        hold->lane = NULL; /* lives on with its payload */
    }
    ps_fork_remove(&self->apart);
    if (self->fd >= 0) {
        (void)close(self->fd);
    }
    ps_lane_share_drop(&self->share);
    ps_free(self);
}

/* Makes room for one more in a ring of records that counts from `first`. */
static bool grow_ring(void *items_p, size_t *capacity_p, size_t first, size_t n, size_t item_size)
{
    size_t old = *capacity_p;
    size_t split = old == 0 ? 0 : first & (old - 1);
    uint8_t *items = NULL;

    if (n < old) {
        return true;
    }
    if (!ps_grow(items_p, capacity_p, old == 0 ? 8 : 2 * old, item_size)) {
        return false;
    }
    assert((*capacity_p & (*capacity_p - 1)) == 0);
    memcpy(&items, items_p, sizeof items);
    /* Those before the split move behind the old end, or the others to the new
     * one, whichever their numbers now call for. */
    if (old > 0 && (first & (*capacity_p - 1)) == split) {
        memcpy(items + old * item_size, items, split * item_size);
    } else if (old > 0) {
        memcpy(items + (old + split) * item_size, items + split * item_size,
               (old - split) * item_size);
    }
    return true;
}

/* Room to remember one more body, so that it cannot fail when it was sent. */
bool ps_lane_reserve_body(ps_lane_t *self)
{
    return grow_ring(&self->bodies, &self->bodies_capacity, self->first_body, self->n_bodies,
                     sizeof *self->bodies);
}

/* There is a place in the queue for the item. */
static void put_off(ps_lane_t *self, const ps_lane_item_t *item)
{
    ps_lane_waiting_t *waiting =
        &self->items[(self->first_item + self->n_items) & (self->items_capacity - 1)];

    if (self->n_items == 0) {
        self->tried_head = self->out.seen_head;
        self->tried_passed = self->passed;
    }
    waiting->item = *item;
    waiting->message = *item->message;
    self->n_items++;
    if (item->payload != NULL) {
        (void)ps_payload_keep(item->payload);
    }
}

psd_status_t ps_lane_send(ps_lane_t *self, const ps_message_t *message, ps_payload_t *payload,
                          bool repeated, psd_error_t *err)
{
    ps_lane_item_t item;
    ps_lane_written_t written = PS_LANE_LATER;

    if (self->gone) {
        return psd_error_set(err, PSD_BUSY, "send: peer is gone");
    }
    if (self->n_items >= self->args.high_water) {
        return psd_error_set(err, PSD_BUSY, "send: queue is full");
    }
    /* First of all, for half a message cannot be taken back. */
    if (!grow_ring(&self->items, &self->items_capacity, self->first_item, self->n_items,
                   sizeof *self->items)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a message to send");
    }
    item = (ps_lane_item_t){.message = message, .payload = payload, .repeated = repeated};
    if (self->n_items == 0) {
        written = ps_lane_write(self, &item);
    }
    if (written == PS_LANE_NO_MEMORY) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a message to send");
    }
    if (written == PS_LANE_LATER) {
        put_off(self, &item);
    }
    return PSD_OK;
}

/* Client: reads again how far the server has passed. */
static void look_at_passed(ps_lane_t *self)
{
    uint64_t passed = atomic_load_explicit(self->passed_at, memory_order_acquire);

    if (passed - self->passed > self->out.at - self->passed) {
        self->out.broken = true;
    } else {
        self->passed = passed;
    }
}

void ps_lane_reclaim(ps_lane_t *self)
{
    if (self->serves || (self->n_bodies == 0 && self->n_items == 0)) {
        return; /* another thread's line costs something to look at */
    }
    look_at_passed(self);
    while (self->n_bodies > 0) {
        ps_lane_body_t *body = &self->bodies[self->first_body & (self->bodies_capacity - 1)];

        if (self->out.at - body->end < self->out.at - self->passed) {
            return; /* the server is not done with it */
        }
        if (body->size > 0) {
            ps_arena_give(&self->share->free, body->at, body->size);
        }
        ps_payload_destroy(&body->payload);
        self->first_body++;
        self->n_bodies--;
    }
}

/* Everything that was taken was copied, except bodies in the arena: a holder
 * that keeps one of these for long occupies the arena, but not the ring. */
void ps_lane_give(ps_lane_t *self)
{
    const ps_lane_hold_t *first = TAILQ_FIRST(&self->holds);
    uint64_t passed = first == NULL ? self->in.at : first->position;

    if (self->in.at != self->in.given) {
        ps_ring_give(&self->in, self->in.at);
        self->took = true;
    }
    if (self->serves && passed != self->passed) {
        self->passed = passed;
        atomic_store_explicit(self->passed_at, passed, memory_order_release);
        self->took = true;
    }
}

bool ps_lane_may_go_on(const ps_lane_t *self)
{
    return self->n_items > 0 &&
           (atomic_load(self->out.head) != self->tried_head ||
            (!self->serves && atomic_load(self->passed_at) != self->tried_passed));
}

bool ps_lane_is_ready(ps_lane_t *self)
{
    if (ps_lane_may_go_on(self)) {
        ps_lane_flush(self);
    }
    return self->gone || ps_ring_waiting(&self->in) > 0 || self->in.broken;
}
