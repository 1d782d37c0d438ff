/* SPDX-License-Identifier: Apache-2.0 */
/* A worker that waits for a slice and has none finishes clocks, so that no
 * other worker waits for it. It goes only as far as the node says that others
 * may need it. */
#include "base/alloc.h"
#include "client/job/job.h"
#include "client/requests/marks.h"

#define AGAIN_MS 50 /* no worker needed them: when to ask again */
#define AWAY_MS 200 /* no answer: one clock in this time in any case */

void ps_idle_begin(psd_client_t *client)
{
    ps_membership_t *self = client->membership;

    self->idle = true;
    self->idle_to = client->worker.stamp.clock;
    self->idle_ms = 0;
    client->idle_asked = 0;
    client->job_due_ms = 0;
}

void ps_idle_end(psd_client_t *client)
{
    client->membership->idle = false;
    client->idle_asked = 0;
}

static bool has_tables(const psd_client_t *client)
{
    bool found = false;

    for (size_t i = 0; !found && i < client->n_tables; i++) {
        found = client->tables[i]->in_job;
    }
    return found;
}

static void ask_how_far(psd_client_t *client)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("work_idle");
    ps_membership_t *self = client->membership;
    uint64_t id = 0;

    if (question != NULL && ps_control_name_job(client, question) &&
        ps_doc_set_u64(question, "worker", client->worker.stamp.worker) &&
        ps_doc_set_u64(question, "clock", client->worker.stamp.clock) &&
        ps_control_send(client, question, &id, NULL) == PSD_OK) {
        client->idle_asked = id;
        self->idle_ms = ps_now_ms();
    }
}

/* Finishes the next clock when the last one is acknowledged: partitions accept
 * a mark only when the bound allows it, so the bound holds for this worker
 * too. */
void ps_idle_look(psd_client_t *client)
{
    ps_membership_t *self = client->membership;
    uint64_t now_ms = ps_now_ms();
    psd_status_t rc = PSD_OK;

    if (!self->idle || client->worker.ended != PSD_OK || !has_tables(client) ||
        ps_client_n_unknown(client) > 0) {
        return;
    }
    if (client->idle_asked != 0 && now_ms >= self->idle_ms + AWAY_MS) {
        client->idle_asked = 0;
        self->idle_ms = 0;
        self->idle_to = client->worker.stamp.clock + 1;
    }
    if (client->worker.stamp.clock < self->idle_to) {
        rc = ps_mark_clock(client, NULL);
        (void)rc; /* without memory: in the next turn */
    } else if (client->idle_asked == 0 && now_ms >= self->idle_ms) {
        ask_how_far(client);
    }
}

void ps_idle_learn(psd_client_t *client, const ps_doc_t *reply)
{
    ps_membership_t *self = client->membership;
    uint64_t clock = 0;

    if (!self->idle || ps_reply_status(reply, NULL) != PSD_OK ||
        ps_doc_get_u64(reply, "clock", 0, UINT64_MAX, &clock, NULL) != PSD_OK) {
        return; /* as if there were none */
    }
    client->idle_asked = 0;
    self->idle_to = clock;
    self->idle_ms = clock > client->worker.stamp.clock ? 0 : ps_now_ms() + AGAIN_MS;
}
