/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on their way out: from this worker's client to those that the plan puts below it, and from
 * the one above it to its client. */
#include "base/alloc.h"
#include "client/relay/relay_inner.h"

/* The worker above this one, for that partition; PS_OVERLAY_NODES: the shard itself. */
static uint32_t above(const ps_relay_thread_t *self, const ps_down_key_t *key)
{
    const ps_relay_facts_t *facts = &self->facts;
    size_t me = ps_relay_facts_find(facts, self->speaker.worker);
    uint32_t place = PS_OVERLAY_NODES;

    if (me != SIZE_MAX && facts->n_colours > 0) {
        uint32_t colour = (key->table + key->partition) % facts->n_colours;

        place = facts->parents[colour * facts->n_members + me];
    }
    return place == PS_OVERLAY_NODES ? PS_OVERLAY_NODES : facts->members[place].worker;
}

void ps_rows_plan(ps_relay_thread_t *self)
{
    const ps_relay_facts_t *facts = &self->facts;
    size_t me = ps_relay_facts_find(facts, self->speaker.worker);
    uint32_t come = 0;
    uint32_t go = 0;

    for (uint32_t c = 0; self->down != NULL && me != SIZE_MAX && c < facts->n_colours; c++) {
        const uint32_t *parents = facts->parents + c * facts->n_members;

        come |= parents[me] != PS_OVERLAY_NODES ? UINT32_C(1) << c : 0;
        for (size_t i = 0; i < facts->n_members; i++) {
            go |= parents[i] == me ? UINT32_C(1) << c : 0;
        }
    }
    ps_desk_set_rows(self->desk, self->down != NULL && me != SIZE_MAX ? facts->n_colours : 0, come,
                     go);
}

static void note(ps_relay_thread_t *self, ps_relay_trace_kind_t kind, uint32_t worker,
                 const ps_down_key_t *key, const ps_payload_t *payload)
{
    ps_relay_trace_note(&self->trace, &(ps_relay_trace_event_t){
                                          .kind = kind,
                                          .worker = worker,
                                          .table = key->table,
                                          .partition = key->partition,
                                          .clock = key->clock,
                                          .bytes = payload == NULL ? 0 : ps_payload_size(payload)});
}

/* ---- the client ---- */

static void give(ps_relay_thread_t *self, ps_down_deed_t *deed)
{
    ps_desk_rows_t *rows = ps_alloc(1, sizeof *rows);

    note(self, deed->payload == NULL ? PS_TRACE_ROWS_MISSED : PS_TRACE_ROWS_GOT, 0, &deed->key,
         deed->payload);
    if (rows == NULL) { /* the client has a patience of its own */
        ps_payload_destroy(&deed->payload);
        return;
    }
    rows->request = deed->request;
    rows->key = deed->key;
    rows->payload = deed->payload;
    deed->payload = NULL;
    ps_desk_give_rows(self->desk, rows);
}

static void ask(ps_relay_thread_t *self, const ps_desk_rows_t *question)
{
    const ps_down_key_t *key = &question->key;
    const ps_message_t want = {.kind = PS_KIND_WANT,
                               .want = {.request = question->request,
                                        .table = key->table,
                                        .partition = key->partition,
                                        .clock = key->clock,
                                        .first_row = key->first_row,
                                        .n_rows = key->n_rows,
                                        .wait_ms = question->wait_ms}};
    uint32_t worker = above(self, key);

    note(self, PS_TRACE_ROWS_ASKED, worker, key, NULL);
    ps_relay_down_ask(self->down, self->now_ms, worker, question->request, key, question->wait_ms);
    if (!ps_ways_want(self, worker, &want)) {
        ps_relay_down_heard(self->down, worker, question->request, key, NULL);
    }
}

void ps_rows_from_desk(ps_relay_thread_t *self)
{
    struct ps_desk_rows_list list;

    ps_desk_take_rows(self->desk, &list);
    while (!STAILQ_EMPTY(&list)) {
        ps_desk_rows_t *rows = STAILQ_FIRST(&list);

        STAILQ_REMOVE_HEAD(&list, in_list);
        if (self->down != NULL && rows->begins) {
            ps_relay_down_begin(self->down, &rows->key);
        } else if (self->down != NULL && rows->request == 0) {
            ps_relay_down_keep(self->down, &rows->key, rows->payload);
        } else if (self->down != NULL) {
            ask(self, rows);
        }
        ps_desk_rows_free(&rows);
    }
}

/* ---- other workers ---- */

static void rows_on(const ps_down_deed_t *deed, ps_message_t *ret_message)
{
    *ret_message = (ps_message_t){.kind = PS_KIND_ROWS_ON,
                                  .rows_on = {.request = deed->request,
                                              .table = deed->key.table,
                                              .partition = deed->key.partition,
                                              .clock = deed->key.clock,
                                              .has = deed->payload != NULL}};
}

static void send(ps_relay_thread_t *self, ps_down_deed_t *deed)
{
    ps_message_t message;

    rows_on(deed, &message);
    if (deed->payload != NULL) {
        note(self, PS_TRACE_ROWS_GAVE, deed->worker, &deed->key, deed->payload);
    }
    if (!ps_callers_send_rows(self, deed->worker, &message, deed->payload)) {
        ps_relay_down_unsent(self->down, self->now_ms, deed);
    }
    ps_payload_destroy(&deed->payload);
}

void ps_rows_turn(ps_relay_thread_t *self)
{
    ps_down_deed_t deed;

    if (self->down == NULL) {
        return;
    }
    ps_relay_down_tick(self->down, self->now_ms);
    while (ps_relay_down_next(self->down, &deed)) {
        if (deed.kind == PS_DOWN_GIVE) {
            give(self, &deed);
        } else {
            send(self, &deed);
        }
    }
}
