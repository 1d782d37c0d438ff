/* SPDX-License-Identifier: Apache-2.0 */
/* A shard is silent: perhaps its partitions have moved. The registry is asked,
 * and not waited for. */
#include "base/alloc.h"
#include "client/client_state.h"

#define SILENCE_MS 100    /* after which it is asked */
#define ASK_MS 50         /* while a new primary may be there any moment */
#define ASK_OFTEN_MS 2000 /* so long; from then on: */
#define ASK_SELDOM_MS 1000

static uint64_t
gap_ms(const psd_client_t *self)
{
    return self->now_ms - self->doubt_ms < ASK_OFTEN_MS ? ASK_MS
                                                        : ASK_SELDOM_MS;
}

static void
ask(psd_client_t *self, uint32_t table)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_control_new("table_open");
    const ps_known_table_t *known = ps_known_table(self, table);
    uint64_t id = 0;

    if (question != NULL && known != NULL &&
        ps_doc_set_text(question, "name", known->name) &&
        ps_control_send(self, question, &id, NULL) == PSD_OK) {
        self->routes_asked = id;
    }
    self->routes_due_ms = self->now_ms + gap_ms(self);
}

void
ps_reroute_look(psd_client_t *self)
{
    uint32_t table = 0;
    uint64_t since_ms = self->session == NULL
                            ? UINT64_MAX
                            : ps_session_doubt(self->session, &table);

    if (since_ms != self->doubt_ms) {
        self->doubt_ms = since_ms;
        self->routes_due_ms =
            since_ms == UINT64_MAX ? UINT64_MAX : since_ms + SILENCE_MS;
    }
    if (self->routes_due_ms <= self->now_ms) {
        ask(self, table);
    }
}

void
ps_reroute_learn(psd_client_t *self, const ps_doc_t *reply)
{
    ps_known_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    psd_error_clear(self->scratch);
    rc = ps_reply_status(reply, self->scratch);
    if (rc == PSD_ROWS_LOST) { /* what it waits for will never come */
        ps_client_break(self, rc, psd_error_text(self->scratch));
        return;
    }
    if (rc == PSD_OK) {
        rc = ps_table_learn(self, reply, NULL, &table, NULL);
    }
    (void)rc; /* it is asked again */
}
