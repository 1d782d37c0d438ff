/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of clocks, from a worker to the partitions of its job's tables. */
#include "client/requests/marks.h"

#include <inttypes.h>

#include "client/requests/hold.h"

psd_status_t ps_worker_check(const psd_client_t *client, psd_error_t *err)
{
    const ps_client_worker_t *self = &client->worker;

    if (self->beat == NULL) {
        return psd_error_set(err, PSD_NOT_JOINED, "client is not a worker");
    }
    if (self->ended != PSD_OK && self->ended != PSD_ROWS_LOST) {
        return psd_error_set(err, self->ended, "worker %" PRIu32 " of job \"%s\": %s",
                             self->stamp.worker, self->job, psd_status_text(self->ended));
    }
    return ps_client_check(client, err);
}

/* Makes the marks for every partition of a table that gets none with a push. */
static bool make_marks(psd_client_t *client, const ps_known_table_t *table,
                       const ps_op_worker_t *stamp, struct ps_slice_requests *marks)
{
    for (uint32_t i = 0; i < table->n_partitions; i++) {
        const ps_slice_request_t *last = table->queues[i].last;
        bool has_mark = last != NULL ? last->marks : table->queues[i].held != NULL;
        ps_cut_t nothing = {.partition = i};
        ps_slice_request_t *mark = NULL;

        if (has_mark) {
            continue;
        }
        mark = ps_slice_request_new(client, PS_REQUEST_MARK, &nothing);
        if (mark == NULL) {
            return false;
        }
        mark->queue = &table->queues[i];
        mark->worker = *stamp;
        mark->round = client->round;
        mark->detour = client->desk == NULL ? 0 : PS_DETOUR_LEND;
        TAILQ_INSERT_TAIL(marks, mark, in_list);
    }
    return true;
}

static void send_marks(psd_client_t *client, struct ps_slice_requests *marks)
{
    while (!TAILQ_EMPTY(marks)) {
        ps_slice_request_t *mark = TAILQ_FIRST(marks);
        ps_request_queue_t *queue = mark->queue;

        TAILQ_REMOVE(marks, mark, in_list);
        ps_queue_add(client, mark);
        ps_queue_run(client, queue);
    }
    client->round++;
}

static psd_status_t no_memory(psd_client_t *client, struct ps_slice_requests *marks,
                              psd_error_t *err)
{
    ps_slice_requests_drop(client, marks);
    return psd_error_set(err, PSD_NOMEM, "no memory for the marks of a clock");
}

/* A push that is a mark may go by the relay. */
static void offer_pushes(ps_ticket_t *ticket)
{
    ps_slice_request_t *push = NULL;

    TAILQ_FOREACH(push, &ticket->requests, in_ticket)
    {
        push->detour |= push->marks ? PS_DETOUR_LEND : 0;
    }
}

/* The last push of a call to each partition is also its mark, unless it asks
 * for another acknowledgement level than its table's, which marks have. */
static void choose_pushes(ps_ticket_t *ticket)
{
    ps_slice_request_t *push = NULL;

    TAILQ_FOREACH(push, &ticket->requests, in_ticket)
    {
        push->queue->last = push;
    }
    TAILQ_FOREACH(push, &ticket->requests, in_ticket)
    {
        push->marks =
            push->queue->last == push && push->queue->table->in_job && push->ack == PS_ACK_DEFAULT;
    }
}

static void forget_pushes(ps_ticket_t *ticket)
{
    ps_slice_request_t *push = NULL;

    TAILQ_FOREACH(push, &ticket->requests, in_ticket)
    {
        push->queue->last = NULL;
    }
}

psd_status_t ps_marks_make(psd_client_t *client, ps_ticket_t *ticket,
                           struct ps_slice_requests *marks, psd_error_t *err)
{
    ps_op_worker_t stamp = client->worker.stamp;
    bool made = true;

    stamp.clock++;
    if (ticket != NULL) {
        choose_pushes(ticket);
    }
    if (ticket != NULL && client->desk != NULL) {
        offer_pushes(ticket);
    }
    for (size_t i = 0; made && i < client->n_tables; i++) {
        made = !client->tables[i]->in_job || make_marks(client, client->tables[i], &stamp, marks);
    }
    if (ticket != NULL) {
        forget_pushes(ticket);
    }
    return made ? PSD_OK : no_memory(client, marks, err);
}

void ps_marks_send(psd_client_t *client, struct ps_slice_requests *marks)
{
    ps_client_worker_t *self = &client->worker;

    self->stamp.clock++;
    ps_beat_set_clock(self->beat, self->stamp.member, self->stamp.clock);
    if (client->desk != NULL) {
        ps_desk_clock(client->desk, self->stamp.clock, ps_now_us());
    }
    ps_hold_mark(client);
    send_marks(client, marks);
}

psd_status_t ps_mark_clock(psd_client_t *client, psd_error_t *err)
{
    struct ps_slice_requests marks = TAILQ_HEAD_INITIALIZER(marks);
    psd_status_t rc = ps_marks_make(client, NULL, &marks, err);

    if (rc == PSD_OK) {
        ps_marks_send(client, &marks);
    }
    return rc;
}

psd_status_t ps_mark_table(psd_client_t *client, ps_known_table_t *table, psd_error_t *err)
{
    const ps_client_worker_t *self = &client->worker;
    struct ps_slice_requests marks = TAILQ_HEAD_INITIALIZER(marks);

    if (table->in_job) {
        return PSD_OK;
    }
    /* The clocks before the table was the job's: one mark stands for all. */
    if (self->stamp.clock > self->start) {
        if (!make_marks(client, table, &self->stamp, &marks)) {
            return no_memory(client, &marks, err);
        }
        send_marks(client, &marks);
    }
    table->in_job = true;
    return PSD_OK;
}
