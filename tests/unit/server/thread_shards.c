/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to shards without waiting: answers in order, reports of copies. */
#include <inttypes.h>

#include "shards_kit.h"

#define QUESTIONS 1000 /* more than there is room for under way */

static bool answers_come_in_order(node_t *node)
{
    ps_shards_done_t done = {0};
    uint64_t serial = 0;

    for (uint64_t i = 1; i <= QUESTIONS; i++) {
        CHECK_OK(ps_shards_send_ask(node->shards, PS_CALL_INSPECT, 0, &serial, node->err),
                 node->err);
        CHECK(serial == i);
    }
    CHECK(!ps_shards_next_done(node->shards, &done)); /* nothing was taken */
    for (uint64_t i = 1; i <= QUESTIONS; i++) {
        CHECK(wait_done(node, &done));
        CHECK(done.serial == i && done.kind == PS_CALL_INSPECT);
        CHECK(done.status == PSD_OK && done.answers.n == 2);
        for (uint32_t k = 0; k < 2; k++) {
            CHECK(done.answers.at[k].shard == k);
            CHECK(done.answers.at[k].incarnation == node->incarnation);
        }
        ps_shards_done_done(&done);
    }
    CHECK(!ps_shards_next_done(node->shards, &done));
    return true;
}

static bool tables_come_and_go(node_t *node)
{
    ps_shards_done_t done = {0};
    ps_copies_t copies = {.epoch = 1, .n = 1};
    ps_table_t table = {.id = TABLE, .copies = &copies};
    ps_route_t route;
    uint64_t serial = 0;

    spec_init(&table.spec, 8, PS_ACK_MEMORY);
    copies.at[0] = copy_at(node, 1, PS_COPY_PRIMARY);
    route = route_to(&copies);
    table.routes = &route;
    CHECK_OK(ps_shards_send_table(node->shards, &table, &serial, node->err), node->err);
    CHECK_OK(ps_shards_send_ask(node->shards, PS_CALL_INSPECT, 0, &serial, node->err), node->err);
    CHECK_OK(ps_shards_send_drop(node->shards, TABLE, &serial, node->err), node->err);
    CHECK_OK(ps_shards_send_ask(node->shards, PS_CALL_INSPECT, 0, &serial, node->err), node->err);
    for (int i = 0; i < 4; i++) {
        CHECK(wait_done(node, &done));
        CHECK(done.status == PSD_OK && done.answers.n == 2);
        if (done.kind == PS_CALL_INSPECT) {
            CHECK(done.answers.at[0].n_partitions == 0);
            CHECK(done.answers.at[1].n_partitions == (i == 1 ? 1 : 0));
        }
        ps_shards_done_done(&done);
    }
    CHECK(done.serial == 0);
    return true;
}

/* A table that no shard can hold: the first refusal is the question's. */
static bool refusals_are_named(node_t *node)
{
    ps_shards_done_t done = {0};
    ps_copies_t copies = {.epoch = 1, .n = 1};
    ps_table_t table = {.id = TABLE + 1, .copies = &copies};
    ps_route_t route;
    uint64_t serial = 0;

    spec_init(&table.spec, UINT64_C(1) << 30, PS_ACK_MEMORY);
    copies.at[0] = copy_at(node, 1, PS_COPY_PRIMARY);
    route = route_to(&copies);
    table.routes = &route;
    CHECK_OK(ps_shards_send_table(node->shards, &table, &serial, node->err), node->err);
    CHECK(wait_done(node, &done));
    CHECK(done.serial == serial && done.status == PSD_LIMIT);
    CHECK(strstr(done.text, "shard 1: table t: ") == done.text);
    ps_shards_done_done(&done);
    return true;
}

/* Two copies of one partition on two shards: more than one that have the same
 * node is no map of the registry's, and enough to be fenced. */
static bool fences_are_reported(node_t *node)
{
    ps_shards_done_t done = {0};
    ps_report_t report = {0};
    ps_copies_t copies = {.epoch = 1, .n = 2};
    ps_table_t table = {.id = TABLE, .copies = &copies};
    ps_copy_fence_t fence = {.shard = 1, .table = TABLE, .epoch = 2};
    ps_route_t route;
    uint64_t serial = 0;

    spec_init(&table.spec, 8, PS_ACK_REPLICA);
    copies.at[0] = copy_at(node, 0, PS_COPY_PRIMARY);
    copies.at[1] = copy_at(node, 1, PS_COPY_IN_SYNC);
    route = route_to(&copies);
    table.routes = &route;
    CHECK(tell_table(node, &table));
    CHECK_OK(ps_shards_send_fence(node->shards, &fence, &serial, node->err), node->err);
    CHECK(wait_done(node, &done));
    CHECK(done.serial == serial && done.status == PSD_OK);
    CHECK(done.kind == PS_CALL_FENCE && done.answers.n == 1);
    ps_shards_done_done(&done);
    CHECK(wait_report(node, PS_REPORT_POSITION, &report));
    CHECK(report.table == TABLE && report.epoch == 2 && report.shard == 1);
    CHECK(report.incarnation == node->incarnation);
    fence.shard = 2;
    CHECK_ERROR(ps_shards_send_fence(node->shards, &fence, &serial, node->err), PSD_INVALID,
                "shard is 2; allowed: 0..1", node->err);
    return true;
}

/* What was asked and not answered goes with the shards. */
static bool stops_with_questions_open(node_t *node)
{
    uint64_t serial = 0;

    for (int i = 0; i < QUESTIONS; i++) {
        CHECK_OK(ps_shards_send_ask(node->shards, PS_CALL_INSPECT, 0, &serial, node->err),
                 node->err);
    }
    return true;
}

static bool run(ps_context_t *context)
{
    node_t node = {.context = context, .incarnation = 77};
    bool done = open_node(&node, 2) && answers_come_in_order(&node) && tables_come_and_go(&node) &&
                refusals_are_named(&node) && fences_are_reported(&node) &&
                stops_with_questions_open(&node);

    close_node(&node);
    return done;
}

int main(void)
{
    ps_context_t *context = NULL;
    bool done = false;

    if (ps_context_new(1, &context, NULL) != PSD_OK) {
        return 1;
    }
    done = run(context);
    ps_context_destroy(&context);
    return done ? 0 : 1;
}
