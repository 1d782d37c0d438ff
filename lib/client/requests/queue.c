/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which errands go to a partition. The session gives credits in
 * the order in which it gets operations; so that a greater priority can still
 * overtake, no more is handed to it than keeps a connection busy: a large push
 * is many slices, and what is in front of a pull is a few of them. */
#include "base/alloc.h"
#include "client/requests/ticket.h"

/* Before the first WELCOME. */
#define FIRST_REQUESTS 16
#define FIRST_BYTES (UINT64_C(16) << 20)
/* Bodies handed over at a time, whatever the credits are: some milliseconds of
 * a fast network. */
#define WINDOW_BYTES (UINT64_C(16) << 20)

void ps_queue_init(ps_queue_t *self, const ps_known_table_t *table, uint32_t partition)
{
    *self = (ps_queue_t){.table = table, .partition = partition};
    TAILQ_INIT(&self->waiting);
}

/* It finishes a clock: nothing passes it. */
static bool marks(const ps_errand_t *errand)
{
    return errand->kind == PS_ERRAND_MARK || errand->marks;
}

static bool goes_before(const ps_errand_t *a, const ps_errand_t *b)
{
    bool a_marks = marks(a);
    bool b_marks = marks(b);

    if (a->round != b->round) {
        return a->round < b->round;
    }
    if (a_marks != b_marks) {
        return b_marks;
    }
    return a->priority > b->priority;
}

void ps_queue_add(psd_client_t *client, ps_errand_t *errand)
{
    ps_queue_t *queue = errand->queue;
    ps_errand_t *at = TAILQ_LAST(&queue->waiting, ps_errands);

    if (at == NULL) {
        TAILQ_INSERT_TAIL(&client->busy, queue, in_busy);
    }
    while (at != NULL && goes_before(errand, at)) {
        at = TAILQ_PREV(at, ps_errands, in_list);
    }
    if (at == NULL) {
        TAILQ_INSERT_HEAD(&queue->waiting, errand, in_list);
    } else {
        TAILQ_INSERT_AFTER(&queue->waiting, at, errand, in_list);
    }
    client->n_after += errand->after != 0 ? 1 : 0;
    client->n_waiting += errand->kind != PS_ERRAND_PULL ? 1 : 0;
}

void ps_queue_remove(psd_client_t *client, ps_errand_t *errand)
{
    ps_queue_t *queue = errand->queue;

    TAILQ_REMOVE(&queue->waiting, errand, in_list);
    if (TAILQ_EMPTY(&queue->waiting)) {
        TAILQ_REMOVE(&client->busy, queue, in_busy);
    }
    client->n_after -= errand->after != 0 ? 1 : 0;
    client->n_waiting -= errand->kind != PS_ERRAND_PULL ? 1 : 0;
}

/* The ticket that it names has not ended. */
static bool waits_for_ticket(const psd_client_t *client, const ps_errand_t *errand)
{
    const ps_ticket_t *ticket = errand->after == 0 ? NULL : ps_ticket_find(client, errand->after);

    return ticket != NULL && !ticket->has_ended;
}

static bool has_room(const psd_client_t *client, const ps_queue_t *queue, const ps_errand_t *errand)
{
    uint32_t requests = client->credit_requests > 0 ? client->credit_requests : FIRST_REQUESTS;
    uint64_t bytes = client->credit_bytes > 0 ? client->credit_bytes : FIRST_BYTES;
    uint64_t size = ps_payload_size(errand->payload);

    if (bytes > WINDOW_BYTES) {
        bytes = WINDOW_BYTES;
    }
    return queue->n_sent == 0 || (queue->n_sent < requests && queue->sent_bytes <= bytes &&
                                  size <= bytes - queue->sent_bytes);
}

/* One that waits for a ticket is passed by its neighbours, but by no mark. */
void ps_queue_run(psd_client_t *client, ps_queue_t *queue)
{
    ps_errand_t *errand = TAILQ_FIRST(&queue->waiting);
    bool passed = false; /* one was left waiting */

    while (errand != NULL && has_room(client, queue, errand)) {
        ps_errand_t *next = TAILQ_NEXT(errand, in_list);

        bool waits = waits_for_ticket(client, errand);

        if ((passed || waits) && marks(errand)) {
            return;
        }
        if (waits) {
            passed = true;
        } else {
            ps_queue_remove(client, errand);
            ps_errand_send(client, errand);
        }
        errand = next;
    }
}

void ps_queues_run(psd_client_t *client)
{
    ps_queue_t *next = NULL;

    for (ps_queue_t *queue = TAILQ_FIRST(&client->busy); queue != NULL; queue = next) {
        next = TAILQ_NEXT(queue, in_busy);
        ps_queue_run(client, queue);
    }
}

static void destroy_all(psd_client_t *client, struct ps_errands *errands)
{
    while (!TAILQ_EMPTY(errands)) {
        ps_errand_t *errand = TAILQ_FIRST(errands);

        TAILQ_REMOVE(errands, errand, in_list);
        ps_errand_destroy(client, &errand);
    }
}

void ps_errands_done(psd_client_t *client)
{
    while (!TAILQ_EMPTY(&client->busy)) {
        ps_errand_t *errand = TAILQ_FIRST(&TAILQ_FIRST(&client->busy)->waiting);

        ps_queue_remove(client, errand);
        ps_errand_destroy(client, &errand);
    }
    destroy_all(client, &client->sent);
    destroy_all(client, &client->ended);
    while (!TAILQ_EMPTY(&client->spare)) {
        ps_errand_t *errand = TAILQ_FIRST(&client->spare);

        TAILQ_REMOVE(&client->spare, errand, in_list);
        ps_free(errand);
    }
    client->n_spare = 0;
}
