/* SPDX-License-Identifier: Apache-2.0 */
/* A shard is silent: perhaps its partitions have moved. The client asks the
 * registry, and does not wait for the answer. */
#include <assert.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"
#include "protocol/facts/table_doc.h"
#include "protocol/placement/registry_decide.h"

#define SILENCE_MS 100       /* after which it is asked */
#define ASK_MS 50            /* while a new primary may be there any moment */
#define ASK_TIMES 4          /* what the last answer took, if that is more */
#define ASK_OFTEN_MS 2000    /* so long, when it answers; else … */
#define ASK_PARTS 4          /* … after a part of the silence … */
#define ASK_SELDOM_MS 1000   /* … from this … */
#define ASK_MAX_MS 2000      /* … to this, */
#define ASK_SLOW_MAX_MS 5000 /* … or this, where answers take their time */
#define LISTEN_MS 1500       /* a longer gap between two looks does not count as silence */

/* The registry still remembers one report when the next one arrives, however
 * long that is on its way. */
static_assert(PS_UNREACHED_MS > ASK_SLOW_MAX_MS + ASK_MAX_MS,
              "the registry remembers from one question to the next");

uint64_t ps_reroute_gap_ms(uint64_t silent_ms, uint64_t took_ms, bool is_asked)
{
    uint64_t often_ms = ASK_TIMES * took_ms;
    uint64_t most_ms = often_ms < ASK_SLOW_MAX_MS ? often_ms : ASK_SLOW_MAX_MS;
    uint64_t seldom_ms = silent_ms / ASK_PARTS;

    if (silent_ms < ASK_OFTEN_MS && !is_asked && often_ms < ASK_SELDOM_MS) {
        return often_ms > ASK_MS ? often_ms : ASK_MS;
    }
    if (most_ms < ASK_MAX_MS) {
        most_ms = ASK_MAX_MS;
    }
    if (seldom_ms > most_ms) {
        seldom_ms = most_ms;
    }
    return seldom_ms > ASK_SELDOM_MS ? seldom_ms : ASK_SELDOM_MS;
}

static uint64_t next_gap_ms(const psd_client_t *self)
{
    bool is_asked = self->routes_asked != 0;
    uint64_t took_ms = is_asked ? self->now_ms - self->routes_owed_ms : 0;

    if (took_ms < self->routes_took_ms) {
        took_ms = self->routes_took_ms;
    }
    return ps_reroute_gap_ms(self->now_ms - self->doubt_ms, took_ms, is_asked);
}

/* Which shards are silent, and for how long: the registry may hear a node that
 * this client does not reach. Time in which the client did not listen does not
 * count. */
static bool add_silent(const psd_client_t *self, ps_doc_t *question)
{
    ps_silent_t silent[PS_SILENT_MAX];
    size_t n = ps_session_silent(self->session, silent);
    ps_doc_t *array = ps_doc_add_array(question, "silent");
    bool fits = array != NULL;

    for (size_t i = 0; fits && i < n; i++) {
        uint64_t since_ms =
            silent[i].since_ms > self->listens_ms ? silent[i].since_ms : self->listens_ms;

        fits = ps_doc_append_u64(array, silent[i].incarnation) &&
               ps_doc_append_u64(array, silent[i].shard) &&
               ps_doc_append_u64(array, self->now_ms - since_ms);
    }
    return fits;
}

static void ask(psd_client_t *self, const uint32_t *tables, size_t n)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("routes");
    ps_doc_t *array = question == NULL ? NULL : ps_doc_add_array(question, "tables");
    ps_doc_t *known = question == NULL ? NULL : ps_doc_add_array(question, "known");
    bool fits = array != NULL && known != NULL;
    uint64_t id = 0;

    for (size_t i = 0; fits && i < n; i++) {
        fits = ps_doc_append_u64(array, tables[i]) &&
               ps_doc_append_u64(known, ps_session_epochs(self->session, tables[i]));
    }
    fits = fits && add_silent(self, question);
    if (fits && ps_control_send(self, question, &id, NULL) == PSD_OK) {
        if (self->routes_asked == 0) {
            self->routes_owed_ms = self->now_ms;
        }
        self->routes_asked = id;
        self->routes_asked_ms = self->now_ms;
    }
    self->routes_due_ms = self->now_ms + next_gap_ms(self);
}

void ps_reroute_look(psd_client_t *self)
{
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;
    uint64_t since_ms =
        self->session == NULL ? UINT64_MAX : ps_session_doubt(self->session, tables, &n);

    if (self->now_ms - self->looked_ms > LISTEN_MS) {
        self->listens_ms = self->now_ms;
    }
    self->looked_ms = self->now_ms;
    if (since_ms != self->doubt_ms) {
        self->doubt_ms = since_ms;
        self->routes_due_ms = since_ms == UINT64_MAX    ? UINT64_MAX
                              : self->routes_asked == 0 ? since_ms + SILENCE_MS
                                                        : since_ms + ASK_SELDOM_MS;
    }
    if (self->routes_due_ms <= self->now_ms) {
        ask(self, tables, n);
    }
}

static psd_status_t learn_one(psd_client_t *self, const ps_doc_t *place, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    const ps_doc_t *array = NULL;
    uint64_t table = 0;
    uint32_t n = 0;
    psd_status_t rc = ps_doc_get_u64(place, "table", 1, UINT32_MAX, &table, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_array(place, "routes", PS_TABLE_PARTITIONS_MAX, &array, err);
    }
    if (rc == PSD_OK) {
        rc = ps_routes_from_doc(array, &routes, &n, err);
    }
    return rc == PSD_OK && ps_known_table(self, (uint32_t)table) != NULL
               ? ps_session_routes(self->session, (uint32_t)table, routes, n, err)
               : rc;
}

static psd_status_t learn_all(psd_client_t *self, const ps_doc_t *reply, psd_error_t *err)
{
    const ps_doc_t *places = NULL;
    const ps_doc_t *gone = NULL;
    psd_status_t rc = ps_node_names_from_doc(ps_session_names(self->session), reply, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_array(reply, "places", PS_DOUBT_MAX, &places, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(reply, "gone", PS_DOUBT_MAX, &gone, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(places); i++) {
        const ps_doc_t *place = NULL;

        rc = ps_doc_at_object(places, i, &place, err);
        if (rc == PSD_OK) {
            rc = learn_one(self, place, err);
        }
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(gone); i++) {
        uint64_t table = 0;

        rc = ps_doc_at_u64(gone, i, &table, err);
        if (rc == PSD_OK && table <= UINT32_MAX) {
            ps_session_forget(self->session, (uint32_t)table, PSD_NO_TABLE, &self->outbox);
        }
    }
    return rc;
}

void ps_reroute_learn(psd_client_t *self, uint64_t id, const ps_doc_t *reply)
{
    psd_status_t rc = PSD_OK;

    /* Also to an older question: places only grow newer. */
    if (id != self->routes_asked && !ps_doc_has(reply, "places")) {
        return;
    }
    self->routes_asked = id == self->routes_asked ? 0 : self->routes_asked;
    if (self->routes_asked == 0) { /* that was the newest */
        self->routes_took_ms = self->now_ms - self->routes_asked_ms;
    }
    if (self->doubt_ms <= self->now_ms && self->now_ms + next_gap_ms(self) < self->routes_due_ms) {
        self->routes_due_ms = self->now_ms + next_gap_ms(self); /* it has answered */
    }
    psd_error_clear(self->scratch);
    rc = ps_reply_status(reply, self->scratch);
    if (rc == PSD_ROWS_LOST) { /* what it waits for will never come */
        ps_client_break(self, rc, psd_error_text(self->scratch));
        return;
    }
    if (rc == PSD_OK && self->session != NULL) {
        rc = learn_all(self, reply, NULL);
    }
    (void)rc; /* it is asked again */
}
