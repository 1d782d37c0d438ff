/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which errands go to a partition. The session gives credits in
 * the order in which it gets operations; so that a greater priority can still
 * overtake, no more than the credits of one connection are handed to it. */
#include "base/alloc.h"
#include "client/ticket.h"

/* Before the first WELCOME. */
#define FIRST_REQUESTS 16
#define FIRST_BYTES (UINT64_C(16) << 20)

ps_lane_t *
ps_lane_of(psd_client_t *client, uint32_t table, uint32_t partition)
{
    uint64_t key = (uint64_t)table << 32 | partition;
    ps_lane_t *lane = ps_map_get(&client->lanes, key);

    if (lane != NULL) {
        return lane;
    }
    lane = ps_alloc(1, sizeof *lane);
    if (lane == NULL || !ps_map_put(&client->lanes, key, lane)) {
        ps_free(lane);
        return NULL;
    }
    lane->table = table;
    lane->partition = partition;
    TAILQ_INIT(&lane->waiting);
    return lane;
}

static bool
goes_before(const ps_errand_t *a, const ps_errand_t *b)
{
    bool a_marks = a->kind == PS_ERRAND_MARK;
    bool b_marks = b->kind == PS_ERRAND_MARK;

    if (a->round != b->round) {
        return a->round < b->round;
    }
    if (a_marks != b_marks) {
        return b_marks;
    }
    return a->priority > b->priority;
}

void
ps_lane_add(psd_client_t *client, ps_errand_t *errand)
{
    struct ps_errands *waiting = &errand->lane->waiting;
    ps_errand_t *at = TAILQ_LAST(waiting, ps_errands);

    while (at != NULL && goes_before(errand, at)) {
        at = TAILQ_PREV(at, ps_errands, in_lane);
    }
    if (at == NULL) {
        TAILQ_INSERT_HEAD(waiting, errand, in_lane);
    } else {
        TAILQ_INSERT_AFTER(waiting, at, errand, in_lane);
    }
    client->n_after += errand->after != 0 ? 1 : 0;
}

void
ps_lane_remove(psd_client_t *client, ps_errand_t *errand)
{
    TAILQ_REMOVE(&errand->lane->waiting, errand, in_lane);
    client->n_after -= errand->after != 0 ? 1 : 0;
}

/* The ticket that it names has not ended. */
static bool
waits_for_ticket(const psd_client_t *client, const ps_errand_t *errand)
{
    const ps_ticket_t *ticket =
        errand->after == 0 ? NULL
                           : ps_map_get(&client->ticket_of, errand->after);

    return ticket != NULL && !ticket->has_ended;
}

static bool
has_room(const psd_client_t *client,
         const ps_lane_t *lane,
         const ps_errand_t *errand)
{
    uint32_t requests =
        client->credit_requests > 0 ? client->credit_requests : FIRST_REQUESTS;
    uint64_t bytes =
        client->credit_bytes > 0 ? client->credit_bytes : FIRST_BYTES;
    uint64_t size = ps_payload_size(errand->payload);

    return lane->n_sent == 0 ||
           (lane->n_sent < requests && lane->sent_bytes <= bytes &&
            size <= bytes - lane->sent_bytes);
}

/* One that waits for a ticket is passed by its neighbours, but by no mark. */
void
ps_lane_run(psd_client_t *client, ps_lane_t *lane)
{
    ps_errand_t *errand = TAILQ_FIRST(&lane->waiting);
    bool passed = false; /* one was left waiting */

    while (errand != NULL && has_room(client, lane, errand)) {
        ps_errand_t *next = TAILQ_NEXT(errand, in_lane);

        if (passed && errand->kind == PS_ERRAND_MARK) {
            return;
        }
        if (waits_for_ticket(client, errand)) {
            passed = true;
        } else {
            ps_lane_remove(client, errand);
            ps_errand_send(client, errand);
        }
        errand = next;
    }
}

void
ps_lanes_run(psd_client_t *client)
{
    size_t at = 0;
    uint64_t key = 0;
    void *lane = NULL;

    while (ps_map_next(&client->lanes, &at, &key, &lane)) {
        ps_lane_run(client, lane);
    }
}

size_t
ps_lanes_n_pushes(const psd_client_t *client)
{
    size_t at = 0;
    size_t n = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&client->lanes, &at, &key, &value)) {
        const ps_lane_t *lane = value;
        const ps_errand_t *errand = NULL;

        TAILQ_FOREACH(errand, &lane->waiting, in_lane)
        {
            n += errand->kind != PS_ERRAND_PULL ? 1 : 0;
        }
    }
    return n;
}

void
ps_lanes_done(psd_client_t *client)
{
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    while (ps_map_next(&client->lanes, &at, &key, &value)) {
        ps_lane_t *lane = value;

        while (!TAILQ_EMPTY(&lane->waiting)) {
            ps_errand_t *errand = TAILQ_FIRST(&lane->waiting);

            ps_lane_remove(client, errand);
            ps_errand_destroy(client, &errand);
        }
        ps_free(lane);
    }
    ps_map_done(&client->lanes);
}
