/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_pair - relays of worker 0 and worker 1, whose turns a test takes itself
 *
 * What     Worker 1 sends to worker 0, by a plan that the test may change. With keys both speak
 *          CURVE, as at security.level encrypt.
 * Owner    The caller; close_relay, also of one that did not open.
 * Threads  one; ZeroMQ's beside it
 */
#ifndef PS_TESTS_RELAY_PAIR_H
#define PS_TESTS_RELAY_PAIR_H

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "client/relay/relay_inner.h"
#include "support/check.h"

#define WAIT_MS 60000
#define TURN_MS 5 /* at most, by the clock of the relays */
#define TABLE 5
#define DELTAS "these are the deltas of worker 1, in plain text of 64 bytes....."

static ps_relay_member_t members[2] = {{.worker = 0, .joins = 1, .members = 1},
                                       {.worker = 1, .joins = 1, .members = 1}};
static uint32_t parents[2] = {PS_OVERLAY_NODES, 0};

static const ps_relay_facts_t plan = {.version = 7,
                                      .key = {{3, 1, 4}},
                                      .n_colours = 1,
                                      .n_members = 2,
                                      .members = members,
                                      .parents = parents};

static inline void close_relay(ps_relay_thread_t *self)
{
    ps_desk_table_t *table = ps_map_remove(&self->tables, TABLE);

    ps_ways_done(self);
    ps_socket_drop(&self->port);
    ps_context_destroy(&self->context);
    ps_key_pair_done(&self->keys);
    ps_relay_destroy(&self->relay);
    ps_relay_down_destroy(&self->down);
    if (table != NULL) {
        ps_desk_table_free(&table);
    }
    ps_map_done(&self->tables);
    ps_free(self->callers);
}

static inline bool open_relay(ps_relay_thread_t *self, uint32_t worker, bool encrypts,
                              psd_error_t *err)
{
    const ps_relay_settings_t settings = {
        .worker = worker, .hold_ms = 100000, .patience_ms = 100000, .limit_bytes = 1 << 20};
    ps_desk_table_t *table = ps_alloc(1, sizeof *table);

    *self = (ps_relay_thread_t){.speaker = {.job = 2, .worker = worker, .joins = 1},
                                .self = {.key = plan.key, .job = 2, .worker = worker, .joins = 1}};
    CHECK(table != NULL);
    *table = (ps_desk_table_t){.id = TABLE, .type = PS_TYPE_F32, .width = 1, .n_routes = 1};
    CHECK(ps_map_put(&self->tables, TABLE, table));
    CHECK_OK(ps_context_new(1, &self->context, err), err);
    CHECK(!encrypts || ps_relay_begin_keys(self));
    CHECK_OK(ps_relay_bind(self, "tcp://127.0.0.1:*", err), err);
    CHECK(ps_relay_place(self, members[worker].relay));
    CHECK_OK(ps_relay_new(&settings, &self->relay, err), err);
    CHECK_OK(ps_relay_down_new(1 << 20, &self->down, err), err);
    CHECK_OK(ps_relay_facts_give(&plan, self->relay, err), err);
    self->facts = plan;
    self->now_ms = ps_now_ms();
    return true;
}

/* Both take a turn; waits a moment for what comes. Their clock counts turns: on a machine that lets
 * this thread wait for seconds neither of them thinks that the other one is silent. */
static inline bool turn(ps_relay_thread_t *child, ps_relay_thread_t *parent)
{
    ps_socket_t *sockets[3] = {parent->port};
    bool ready[3] = {false};
    size_t n = 1;

    if (child->n_ways > 0 && child->ways[0].socket != NULL) {
        sockets[n++] = child->ways[0].socket;
    }
    if (ps_socket_wait(sockets, n, TURN_MS, ready, NULL) != PSD_OK) {
        return false;
    }
    child->now_ms += TURN_MS;
    parent->now_ms = child->now_ms;
    ps_callers_receive(parent);
    ps_rows_turn(parent);
    ps_socket_flush(parent->port);
    ps_ways_receive(child);
    ps_ways_tick(child);
    return true;
}

/* Callers that have proved to be that worker. One that has asked in vain before may be there too.
 */
static inline size_t count_proved(const ps_relay_thread_t *parent, uint32_t worker)
{
    size_t n = 0;

    for (size_t i = 0; i < parent->n_callers; i++) {
        n += parent->callers[i].is_proved && parent->callers[i].asked.worker == worker ? 1 : 0;
    }
    return n;
}

static inline bool is_met(const ps_relay_thread_t *child, const ps_relay_thread_t *parent)
{
    return child->n_ways == 1 && child->ways[0].is_ready && count_proved(parent, 1) == 1;
}

static inline bool meet(ps_relay_thread_t *child, ps_relay_thread_t *parent)
{
    uint64_t until_ms = ps_now_ms() + WAIT_MS;

    ps_relay_admit(parent, &parent->facts);
    ps_relay_admit(child, &child->facts);
    ps_ways_plan(child);
    while (!is_met(child, parent) && ps_now_ms() < until_ms) {
        CHECK(turn(child, parent));
    }
    CHECK(is_met(child, parent));
    return true;
}

/* A push of worker 1, lent to its own relay. */
static inline bool lend(ps_relay_thread_t *child, uint64_t seq, psd_error_t *err)
{
    const ps_bytes_t values = {(const uint8_t *)DELTAS, strlen(DELTAS)};
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, values);
    ps_bundle_from_t from = {
        .session = 11, .first_seq = seq, .last_seq = seq, .worker = 1, .joins = 1, .marks = true};
    ps_relay_span_t span = {.first = 1,
                            .n = 1,
                            .slice = {.rows = PS_ROWS_RANGE,
                                      .type = PS_TYPE_F32,
                                      .n_rows = (uint32_t)strlen(DELTAS) / sizeof(float),
                                      .n_cols = 1,
                                      .n_values = (uint32_t)strlen(DELTAS) / sizeof(float)},
                            .payload = payload};
    const ps_relay_lot_t lot = {.from = &from, .spans = &span, .n_from = 1, .n_spans = 1};
    const ps_relay_giver_t giver = {.worker = 1, .request = seq, .plan = plan.version};
    ps_relay_key_t key;

    CHECK(ps_relay_key_of(child, TABLE, 0, seq, &key));
    CHECK(!ps_relay_key_of(child, TABLE, 1, seq, &key));
    CHECK(!ps_relay_key_of(child, TABLE + 1, 0, seq, &key));
    CHECK(payload != NULL);
    CHECK_OK(ps_relay_give(child->relay, child->now_ms, &giver, &key, &lot, err), err);
    return true;
}
#endif
