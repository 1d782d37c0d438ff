/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's marks, and the tables that they go to. */
#include <inttypes.h>

#include "base/alloc.h"
#include "client/job/job.h"
#include "client/requests/ticket.h"

#define LOOK_MS 50        /* how late a new table of the job may be noticed */
#define ASK_AGAIN_MS 2000 /* an answer about the tables may get lost */

ps_op_worker_t ps_membership_stamp(const psd_client_t *client)
{
    const ps_membership_t *self = client->membership;
    ps_op_worker_t stamp = {.job = 0};

    if (self != NULL) {
        stamp = (ps_op_worker_t){.job = self->job_id,
                                 .worker = self->worker,
                                 .member = self->member,
                                 .joins = self->joins,
                                 .clock = self->clock};
    }
    return stamp;
}

uint64_t ps_membership_wait_ms(const psd_client_t *client)
{
    return client->membership == NULL ? UINT64_MAX : LOOK_MS;
}

bool ps_membership_name(const psd_client_t *client, ps_doc_t *question)
{
    const ps_membership_t *self = client->membership;

    return ps_doc_set_text(question, "job", self->job) &&
           ps_doc_set_u64(question, "job_id", self->job_id);
}

static void ask_for_tables(psd_client_t *client)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_control_new("job_tables");
    uint64_t id = 0;

    if (question != NULL && ps_membership_name(client, question) &&
        ps_control_send(client, question, &id, NULL) == PSD_OK) {
        client->tables_asked = id;
        client->membership->asked_ms = ps_now_ms();
    }
}

void ps_membership_look(psd_client_t *client)
{
    ps_membership_t *self = client->membership;
    const char *text = "";
    bool waits = false;

    if (self == NULL) {
        return;
    }
    if (ps_client_check(client, NULL) != PSD_OK) {
        ps_beat_stop(self->beat); /* others would wait for its marks for good */
        return;
    }
    if (self->ended == PSD_OK) {
        self->ended = ps_beat_state(self->beat, &text);
    }
    if (self->ended == PSD_ROWS_LOST) { /* wherever it waits */
        ps_client_break(client, self->ended, text);
    }
    waits = client->tables_asked != 0 && ps_now_ms() < self->asked_ms + ASK_AGAIN_MS;
    if (!waits && ps_beat_version(self->beat) > self->version) {
        ask_for_tables(client);
    }
    ps_idle_look(client);
}

void ps_membership_tables(psd_client_t *client, const ps_doc_t *reply)
{
    psd_status_t rc = PSD_OK;

    if (client->membership == NULL || ps_reply_status(reply, NULL) != PSD_OK) {
        return;
    }
    rc = ps_membership_learn(client, reply, NULL);
    (void)rc; /* the version stays as it was: it is asked again */
}

psd_status_t ps_membership_learn(psd_client_t *client, const ps_doc_t *reply, psd_error_t *err)
{
    ps_membership_t *self = client->membership;
    const ps_doc_t *tables = NULL;
    uint64_t version = 0;
    psd_status_t rc = ps_node_names_from_doc(ps_session_names(client->session), reply, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_array(reply, "tables", SIZE_MAX, &tables, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(reply, "version", 0, UINT64_MAX, ps_beat_version(self->beat),
                               &version, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        const ps_doc_t *item = NULL;
        ps_known_table_t *table = NULL;

        rc = ps_doc_at_object(tables, i, &item, err);
        if (rc == PSD_OK) {
            rc = ps_table_learn(client, item, NULL, &table, err);
        }
        if (rc == PSD_OK) {
            rc = ps_membership_add_table(client, table, err);
        }
    }
    if (rc == PSD_OK && version > self->version) {
        self->version = version;
    }
    return rc;
}

/* ---- marks --------------------------------------------------------------- */

static void drop_all(psd_client_t *client, struct ps_errands *errands)
{
    while (!TAILQ_EMPTY(errands)) {
        ps_errand_t *errand = TAILQ_FIRST(errands);

        TAILQ_REMOVE(errands, errand, in_list);
        ps_errand_destroy(client, &errand);
    }
}

/* Makes the marks for every partition of a table that gets none with a push. */
static bool make_marks(psd_client_t *client, const ps_known_table_t *table,
                       const ps_op_worker_t *stamp, struct ps_errands *marks)
{
    for (uint32_t i = 0; i < table->n_partitions; i++) {
        const ps_errand_t *last = table->queues[i].last;
        ps_cut_t nothing = {.partition = i};
        ps_errand_t *mark = NULL;

        if (last != NULL && last->marks) {
            continue;
        }
        mark = ps_errand_new(client, PS_ERRAND_MARK, &nothing);
        if (mark == NULL) {
            return false;
        }
        mark->queue = &table->queues[i];
        mark->worker = *stamp;
        mark->round = client->round;
        TAILQ_INSERT_TAIL(marks, mark, in_list);
    }
    return true;
}

static void send_marks(psd_client_t *client, struct ps_errands *marks)
{
    while (!TAILQ_EMPTY(marks)) {
        ps_errand_t *mark = TAILQ_FIRST(marks);
        ps_queue_t *queue = mark->queue;

        TAILQ_REMOVE(marks, mark, in_list);
        ps_queue_add(client, mark);
        ps_queue_run(client, queue);
    }
    client->round++;
}

static psd_status_t no_memory(psd_client_t *client, struct ps_errands *marks, psd_error_t *err)
{
    drop_all(client, marks);
    return psd_error_set(err, PSD_NOMEM, "no memory for the marks of a clock");
}

/* The last push of a call to each partition is its mark, too. One that asks for
 * another level than its table's is not: marks have that. */
static void choose_pushes(ps_ticket_t *ticket)
{
    ps_errand_t *push = NULL;

    TAILQ_FOREACH(push, &ticket->errands, in_ticket)
    {
        push->queue->last = push;
    }
    TAILQ_FOREACH(push, &ticket->errands, in_ticket)
    {
        push->marks =
            push->queue->last == push && push->queue->table->in_job && push->ack == PS_ACK_DEFAULT;
    }
}

static void forget_pushes(ps_ticket_t *ticket)
{
    ps_errand_t *push = NULL;

    TAILQ_FOREACH(push, &ticket->errands, in_ticket)
    {
        push->queue->last = NULL;
    }
}

psd_status_t ps_membership_make_marks(psd_client_t *client, ps_ticket_t *ticket,
                                      struct ps_errands *marks, psd_error_t *err)
{
    ps_op_worker_t stamp = ps_membership_stamp(client);
    bool made = true;

    stamp.clock++;
    if (ticket != NULL) {
        choose_pushes(ticket);
    }
    for (size_t i = 0; made && i < client->n_tables; i++) {
        made = !client->tables[i]->in_job || make_marks(client, client->tables[i], &stamp, marks);
    }
    if (ticket != NULL) {
        forget_pushes(ticket);
    }
    return made ? PSD_OK : no_memory(client, marks, err);
}

void ps_membership_send_marks(psd_client_t *client, struct ps_errands *marks)
{
    ps_membership_t *self = client->membership;

    self->clock++;
    ps_beat_set_clock(self->beat, self->member, self->clock);
    send_marks(client, marks);
}

psd_status_t ps_membership_mark(psd_client_t *client, psd_error_t *err)
{
    struct ps_errands marks = TAILQ_HEAD_INITIALIZER(marks);
    psd_status_t rc = ps_membership_make_marks(client, NULL, &marks, err);

    if (rc == PSD_OK) {
        ps_membership_send_marks(client, &marks);
    }
    return rc;
}

psd_status_t ps_membership_add_table(psd_client_t *client, ps_known_table_t *table,
                                     psd_error_t *err)
{
    const ps_membership_t *self = client->membership;
    ps_op_worker_t stamp = ps_membership_stamp(client);
    struct ps_errands marks = TAILQ_HEAD_INITIALIZER(marks);

    if (table->in_job) {
        return PSD_OK;
    }
    /* The clocks before the table was the job's: one mark stands for all. */
    if (self->clock > self->start) {
        if (!make_marks(client, table, &stamp, &marks)) {
            return no_memory(client, &marks, err);
        }
        send_marks(client, &marks);
    }
    table->in_job = true;
    return PSD_OK;
}

void ps_membership_marked(psd_client_t *client, uint32_t table, psd_status_t status)
{
    ps_membership_t *self = client->membership;
    ps_known_table_t *known = NULL;

    if (status == PSD_NO_TABLE) {
        known = ps_known_table(client, table);
    }
    if (known != NULL) { /* its number is never used again */
        known->in_job = false;
    }
    if (self != NULL && self->ended == PSD_OK &&
        (status == PSD_JOB_STOPPED || status == PSD_WORKER_LOST)) {
        self->ended = status;
    }
}

psd_status_t ps_membership_check(const psd_client_t *client, psd_error_t *err)
{
    const ps_membership_t *self = client->membership;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOT_JOINED, "client is no worker");
    }
    if (self->ended != PSD_OK && self->ended != PSD_ROWS_LOST) {
        return psd_error_set(err, self->ended, "worker %" PRIu32 " of job \"%s\": %s", self->worker,
                             self->job, psd_status_text(self->ended));
    }
    return ps_client_check(client, err);
}

void ps_membership_end(psd_client_t *client)
{
    ps_membership_t *self = client->membership;

    if (self == NULL) {
        return;
    }
    client->membership = NULL;
    client->tables_asked = 0;
    client->idle_asked = 0;
    for (size_t i = 0; i < client->n_tables; i++) {
        client->tables[i]->in_job = false;
    }
    ps_beat_release(&self->beat);
    ps_free(self->works);
    ps_free(self);
}
