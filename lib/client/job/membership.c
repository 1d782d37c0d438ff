/* SPDX-License-Identifier: Apache-2.0 */
/* News of a worker's job: that it runs, and which tables it has opened. */
#include "base/alloc.h"
#include "client/job/job.h"
#include "client/requests/lend.h"
#include "client/requests/marks.h"
#include "client/requests/table.h"

#define ASK_AGAIN_MS 2000 /* an answer about the tables may get lost */
#define LOOK_MS 50        /* while it waits idle, or where news cannot wake it */
#define LOOK_SELDOM_MS 1000

static void ask_for_tables(psd_client_t *client)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("job_tables");
    uint64_t id = 0;

    if (question != NULL && ps_control_name_job(client, question) &&
        ps_control_send(client, question, &id, NULL) == PSD_OK) {
        client->tables_asked = id;
        client->membership->asked_ms = ps_now_ms();
    }
}

void ps_membership_look(psd_client_t *client)
{
    const ps_membership_t *self = client->membership;
    ps_client_worker_t *worker = &client->worker;
    const char *text = "";
    bool waits = false;

    ps_beat_take_news(worker->beat, worker->stamp.member, &worker->n_news);
    client->job_due_ms =
        client->now_ms + (self->idle || worker->wake_fd < 0 ? LOOK_MS : LOOK_SELDOM_MS);
    if (ps_client_check(client, NULL) != PSD_OK) {
        ps_beat_stop(worker->beat); /* others would wait for its marks for good */
        return;
    }
    if (worker->ended == PSD_OK) {
        worker->ended = ps_beat_state(worker->beat, &text);
    }
    if (worker->ended == PSD_ROWS_LOST) { /* wherever it waits */
        ps_client_break(client, worker->ended, text);
    }
    waits = client->tables_asked != 0 && ps_now_ms() < self->asked_ms + ASK_AGAIN_MS;
    if (!waits && ps_beat_version(worker->beat) > self->version) {
        ask_for_tables(client);
    }
    ps_idle_look(client);
}

/* The answers to job_tables and work_idle. */
static bool learn(psd_client_t *client, uint64_t id, const ps_doc_t *reply)
{
    psd_status_t rc = PSD_OK;

    if (id == client->tables_asked) {
        client->tables_asked = 0;
        rc = ps_reply_status(reply, NULL);
        if (rc == PSD_OK) {
            rc = ps_membership_learn(client, reply, NULL);
        }
        (void)rc; /* the version stays as it was: it is retried */
        return true;
    }
    if (id == client->idle_asked) {
        ps_idle_learn(client, reply);
        return true;
    }
    return false;
}

static void look_and_hear(psd_client_t *client)
{
    ps_membership_look(client);
    if (client->desk != NULL && client->session != NULL && client->broken == PSD_OK) {
        ps_lend_hear(client);
    }
}

const ps_job_hooks_t ps_membership_hooks = {.look = ps_membership_look, .learn = learn};
const ps_job_hooks_t ps_membership_relay_hooks = {.look = look_and_hear, .learn = learn};

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
        rc = ps_doc_get_u64_or(reply, "version", 0, UINT64_MAX,
                               ps_beat_version(client->worker.beat), &version, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        const ps_doc_t *item = NULL;
        ps_known_table_t *table = NULL;

        rc = ps_doc_at_object(tables, i, &item, err);
        if (rc == PSD_OK) {
            rc = ps_table_learn(client, item, NULL, &table, err);
        }
        if (rc == PSD_OK) {
            rc = ps_mark_table(client, table, err);
        }
    }
    if (rc == PSD_OK && version > self->version) {
        self->version = version;
    }
    return rc;
}

void ps_membership_end(psd_client_t *client)
{
    ps_membership_t *self = client->membership;

    if (self == NULL) {
        return;
    }
    ps_overlay_end(client);
    client->membership = NULL;
    client->job_hooks = NULL;
    client->tables_asked = 0;
    client->idle_asked = 0;
    for (size_t i = 0; i < client->n_tables; i++) {
        client->tables[i]->in_job = false;
        for (uint32_t k = 0; k < client->tables[i]->n_partitions; k++) {
            ps_queue_forget_peers(&client->tables[i]->queues[k]);
        }
    }
    ps_beat_release(&client->worker.beat);
    client->worker = (ps_client_worker_t){.beat = NULL};
    ps_free(self->works);
    ps_free(self);
}
