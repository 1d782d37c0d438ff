/* SPDX-License-Identifier: Apache-2.0 */
/* Three shards hold copies of one partition, over real sockets: pushes reach
 * all before they are acknowledged; a copy that goes, that is cut off, that
 * never answers, and one whose port speaks rubbish hold up their own partition
 * only. */
#include <stdlib.h>

#include "base/bytes.h"
#include "shards_kit.h"
#include "support/tcp_proxy.h"

#define ALONE (TABLE + 1) /* a table without copies on the same shard */
#define ROWS (1 << 18)    /* 2 MiB: pieces for a client, one frame for a copy */
#define PUSHES 50

typedef struct world {
    node_t a; /* the primary's */
    node_t b; /* the one that fares ill */
    node_t c;
    client_t client;
    ps_copies_t copies;
} world_t;

/* Tells a node the map as it is now. */
static bool
tell_table(node_t *node, uint32_t id, ps_copies_t *copies, ps_ack_t ack)
{
    ps_table_t table = {.id = id, .copies = copies};
    ps_route_t route = route_to(copies);

    spec_init(&table.spec, ROWS, ack);
    table.routes = &route;
    CHECK_OK(ps_shards_tell_table(node->shards, &table, node->err), node->err);
    return true;
}

/* Nodes a and b, of which b has a copy that is found at `tcp`; NULL: where it
 * is. And a client of a. */
static bool
open_world(world_t *self, ps_context_t *context, const char *tcp)
{
    ps_copies_t alone = {.epoch = 1, .n = 1};

    *self = (world_t){.a = {.context = context, .incarnation = 1001},
                      .b = {.context = context, .incarnation = 1002},
                      .c = {.context = context, .incarnation = 1003}};
    CHECK(open_node(&self->a, 1) && open_node(&self->b, 1));
    CHECK(open_node(&self->c, 1));
    self->copies.epoch = 1;
    self->copies.n = 3;
    self->copies.at[0] = copy_at(&self->a, 0, PS_COPY_PRIMARY);
    self->copies.at[1] = copy_at(&self->b, 0, PS_COPY_IN_SYNC);
    self->copies.at[2] = copy_at(&self->c, 0, PS_COPY_IN_SYNC);
    if (tcp != NULL) {
        (void)snprintf(self->copies.at[1].tcp, sizeof self->copies.at[1].tcp,
                       "%s", tcp);
    }
    alone.at[0] = self->copies.at[0];
    CHECK(tell_table(&self->a, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_table(&self->b, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_table(&self->c, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_table(&self->a, ALONE, &alone, PS_ACK_MEMORY));
    return open_client(&self->client, &self->a, 1);
}

static void
close_world(world_t *self)
{
    close_client(&self->client);
    close_node(&self->a);
    close_node(&self->b);
    close_node(&self->c);
}

/* The last record of a node's copy. */
static bool
lsn_of(node_t *node, uint64_t *ret_lsn)
{
    ps_answers_t answers = {0};

    CHECK_OK(
        ps_shards_ask(node->shards, PS_CALL_INSPECT, 0, &answers, node->err),
        node->err);
    CHECK(answers.n_calls == 1 && answers.calls[0]->n_partitions >= 1);
    for (size_t i = 0; i < answers.calls[0]->n_partitions; i++) {
        if (answers.calls[0]->partitions[i].table == TABLE) {
            *ret_lsn = answers.calls[0]->partitions[i].lsn;
        }
    }
    ps_answers_done(&answers);
    return true;
}

static bool
push_some(world_t *self, uint64_t n)
{
    for (int i = 0; i < PUSHES; i++) {
        CHECK(client_push(&self->client, TABLE, i % 10 == 0 ? n : 1));
    }
    return true;
}

static bool
is_equal(world_t *self, node_t *copy)
{
    uint64_t of_a = 0;
    uint64_t of_copy = 0;

    CHECK(lsn_of(&self->a, &of_a) && lsn_of(copy, &of_copy));
    CHECK(of_a == of_copy && of_a >= self->client.n_pushes);
    return true;
}

/* The table without copies is served whatever becomes of the other one. */
static bool
others_are_served(world_t *self)
{
    client_t other;
    bool done = open_client(&other, &self->a, 2) &&
                client_push(&other, ALONE, ROWS) &&
                client_wait_acks(&other, PS_ACK_MEMORY);

    close_client(&other);
    return done;
}

/* The registry has found b to be lost: the others go on. */
static bool
go_on_without_b(world_t *self)
{
    self->copies.epoch++;
    self->copies.n = 2;
    self->copies.at[1] = self->copies.at[2];
    CHECK(tell_table(&self->a, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_table(&self->c, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(client_wait_acks(&self->client, PS_ACK_REPLICA));
    return is_equal(self, &self->c);
}

static bool
pushes_reach_all(world_t *self)
{
    CHECK(push_some(self, ROWS));
    CHECK(client_wait_acks(&self->client, PS_ACK_REPLICA));
    return is_equal(self, &self->b) && is_equal(self, &self->c);
}

/* The copy's shard ends: what is pushed waits, and that is reported; the others
 * go on without it. */
static bool
a_copy_goes(world_t *self)
{
    ps_report_t report = {0};

    CHECK(push_some(self, ROWS));
    CHECK(client_wait_acks(&self->client, PS_ACK_REPLICA));
    ps_shards_stop(&self->b.shards);
    CHECK(push_some(self, ROWS));
    CHECK(wait_report(&self->a, PS_REPORT_SLOW, &report));
    CHECK(report.table == TABLE && report.incarnation == 1002);
    CHECK(others_are_served(self));
    return go_on_without_b(self);
}

static bool
run_story(ps_context_t *context, bool (*story)(world_t *self), const char *tcp)
{
    world_t world;
    bool done = open_world(&world, context, tcp) && story(&world);

    close_world(&world);
    return done;
}

int
main(void)
{
    ps_context_t *context = NULL;
    bool done = false;

    if (ps_context_new(2, &context, NULL) != PSD_OK) {
        return 1;
    }
    zsys_handler_set(NULL);
    done = run_story(context, pushes_reach_all, NULL) &&
           run_story(context, a_copy_goes, NULL);
    ps_context_destroy(&context);
    return done ? 0 : 1;
}
