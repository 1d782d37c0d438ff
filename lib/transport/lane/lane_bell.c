/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wakes an end that sleeps, and no other.
 *
 * Each end has a word in the shared memory: what it waits for when it sleeps, 0
 * when it is awake. The sleeper stores the word and then looks at the ring once
 * more; the writer moves the ring's counter and then looks at the word. All
 * four are sequentially consistent, so they have one order: if the sleeper's
 * look came before the counter moved, its store came before the writer's look,
 * and the writer rings; if not, the sleeper saw the counter. (Dekker's
 * algorithm. It needs no separate fence, because the counter is stored once
 * more with this order before the word is read.)
 *
 * The bell is a byte on the unix socket and not an eventfd: with MSG_DONTWAIT
 * the other end cannot make us block, whatever it does to its own end, while
 * the flags and the count of an eventfd belong to both.
 */
#include <errno.h>
#include <sys/socket.h>

#include "transport/lane/lane.h"

#define WAITS_FOR_MESSAGES 1u
#define WAITS_FOR_ROOM 2u
#define BYTES_A_US 4096  /* the slowest that a server adds or copies */
#define WORK_MAX_US 1000 /* that a client looks on for */
#define BELLS_AT_ONCE 64 /* more than one wait takes in; the rest stay */

static void ring(const ps_lane_t *self)
{
    ssize_t n = send(self->fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);

    (void)n; /* full of bells that wait: it will wake; gone: it is heard */
}

/* Wakes the other end if it sleeps for what was done since the last time. */
static void tell(ps_lane_t *self)
{
    uint64_t reasons = 0;

    if (self->wrote) {
        atomic_store(self->out.tail, self->out.at);
        reasons |= WAITS_FOR_MESSAGES;
    }
    if (self->took) {
        atomic_store(self->in.head, self->in.given);
        if (self->serves) {
            atomic_store(self->passed_at, self->passed);
        }
        reasons |= WAITS_FOR_ROOM;
    }
    self->wrote = false;
    self->took = false;
    if (reasons != 0 && (atomic_load(self->peer_waits) & reasons) != 0 &&
        atomic_exchange(self->peer_waits, 0) != 0) {
        ring(self);
    }
}

void ps_lane_nudge(ps_lane_t *self)
{
    tell(self);
}

static void send_on(ps_lane_t *self)
{
    if (self->n_items > 0) { /* whatever it is that the first one waits for */
        (void)ps_ring_done(&self->out);
        ps_lane_reclaim(self);
    }
    while (self->n_items > 0 && !self->gone) {
        ps_lane_waiting_t *waiting = &self->items[self->first_item & (self->items_capacity - 1)];

        waiting->item.message = &waiting->message; /* the ring may have moved */
        if (ps_lane_write(self, &waiting->item) != PS_LANE_WRITTEN) {
            self->tried_head = self->out.seen_head;
            self->tried_passed = self->passed;
            return;
        }
        ps_payload_destroy(&waiting->item.payload);
        self->first_item++;
        self->n_items--;
    }
}

void ps_lane_flush(ps_lane_t *self)
{
    send_on(self);
    if (self->out.broken && !self->gone) {
        self->gone = true;
        self->last = self->in.at;
    }
    ps_lane_give(self);
    tell(self);
}

bool ps_lane_sleep(ps_lane_t *self)
{
    uint64_t reasons = WAITS_FOR_MESSAGES;

    if (self->n_items > 0) {
        reasons |= WAITS_FOR_ROOM;
    }
    atomic_store(self->own_waits, reasons);
    if (self->gone || atomic_load(self->in.tail) != self->in.at) {
        return false;
    }
    return !ps_lane_may_go_on(self);
}

uint32_t ps_lane_work_us(ps_lane_t *self)
{
    uint64_t bytes = self->awaited_bytes;

    ps_lane_reclaim(self);
    for (size_t i = 0; i < self->n_bodies; i++) {
        bytes += self->bodies[(self->first_body + i) & (self->bodies_capacity - 1)].values;
    }
    bytes /= BYTES_A_US;
    return bytes < WORK_MAX_US ? (uint32_t)bytes : WORK_MAX_US;
}

void ps_lane_wake(ps_lane_t *self)
{
    atomic_store_explicit(self->own_waits, 0, memory_order_relaxed);
}

void ps_lane_listen(ps_lane_t *self)
{
    for (int i = 0; i < BELLS_AT_ONCE && !self->gone; i++) {
        uint8_t bell = 0;
        ssize_t n = recv(self->fd, &bell, sizeof bell, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            /* What it wrote before it went is still read, but no more. */
            self->gone = true;
            self->last = atomic_load(self->in.tail);
        } else if (n < 0) {
            return;
        }
    }
}
