/* SPDX-License-Identifier: Apache-2.0 */
/* Three shards hold copies of one partition, over real sockets: pushes reach
 * all before they are acknowledged; a copy that goes, that is cut off, that
 * never answers, and one whose port speaks rubbish hold up their own partition
 * only. */
#include <stdlib.h>

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
    tcp_proxy_t *way; /* from a to b */
} world_t;

/* Tells a node the map as it is now. */
static bool tell_copies(node_t *node, uint32_t id, ps_copies_t *copies, ps_ack_t ack)
{
    ps_table_t table = {.id = id, .copies = copies};
    ps_route_t route = route_to(copies);

    spec_init(&table.spec, ROWS, ack);
    table.routes = &route;
    return tell_table(node, &table);
}

/* Where a finds b: behind a door of the proxy. */
static bool open_way(world_t *self)
{
    const char *tcp = ps_shards_route(self->b.shards, 0)->tcp;
    uint16_t port = (uint16_t)strtoul(strrchr(tcp, ':') + 1, NULL, 10);

    self->way = tcp_proxy_new("127.0.0.1");
    CHECK(self->way != NULL);
    port = tcp_proxy_open_door(self->way, 0, "127.0.0.1", port);
    CHECK(port != 0);
    (void)snprintf(self->copies.at[1].tcp, sizeof self->copies.at[1].tcp, "tcp://127.0.0.1:%u",
                   port);
    return true;
}

/* Three nodes, and a client of a. The copy of b is found at `tcp`; NULL: by the
 * proxy. */
static bool open_world(world_t *self, ps_context_t *context, const char *tcp)
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
    CHECK(open_way(self));
    if (tcp != NULL) {
        (void)snprintf(self->copies.at[1].tcp, sizeof self->copies.at[1].tcp, "%s", tcp);
    }
    alone.at[0] = self->copies.at[0];
    CHECK(tell_copies(&self->a, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_copies(&self->b, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_copies(&self->c, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_copies(&self->a, ALONE, &alone, PS_ACK_MEMORY));
    return open_client(&self->client, &self->a, 1);
}

static void close_world(world_t *self)
{
    close_client(&self->client);
    close_node(&self->a);
    close_node(&self->b);
    close_node(&self->c);
    tcp_proxy_destroy(&self->way);
}

/* The last record of a node's copy. */
static bool lsn_of(node_t *node, uint64_t *ret_lsn)
{
    ps_answers_t answers = {0};
    uint64_t serial = 0;

    CHECK_OK(ps_shards_send_ask(node->shards, PS_CALL_INSPECT, 0, &serial, node->err), node->err);
    CHECK(wait_ok(node, serial, &answers));
    CHECK(answers.n == 1 && answers.at[0].n_partitions >= 1);
    for (size_t i = 0; i < answers.at[0].n_partitions; i++) {
        if (answers.at[0].partitions[i].table == TABLE) {
            *ret_lsn = answers.at[0].partitions[i].lsn;
        }
    }
    ps_answers_done(&answers);
    return true;
}

static bool push_some(world_t *self, uint64_t n)
{
    for (int i = 0; i < PUSHES; i++) {
        CHECK(client_push(&self->client, TABLE, i % 10 == 0 ? n : 1));
    }
    return true;
}

static bool is_equal(world_t *self, node_t *copy)
{
    uint64_t of_a = 0;
    uint64_t of_copy = 0;

    CHECK(lsn_of(&self->a, &of_a) && lsn_of(copy, &of_copy));
    CHECK(of_a == of_copy && of_a >= self->client.n_pushes);
    return true;
}

/* The table without copies is served whatever becomes of the other one. */
static bool others_are_served(world_t *self)
{
    client_t other;
    bool done = open_client(&other, &self->a, 2) && client_push(&other, ALONE, ROWS) &&
                client_wait_acks(&other, PS_ACK_MEMORY);

    close_client(&other);
    return done;
}

/* The registry has found b to be lost: the others go on. */
static bool go_on_without_b(world_t *self)
{
    self->copies.epoch++;
    self->copies.n = 2;
    self->copies.at[1] = self->copies.at[2];
    CHECK(tell_copies(&self->a, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(tell_copies(&self->c, TABLE, &self->copies, PS_ACK_REPLICA));
    CHECK(client_wait_acks(&self->client, PS_ACK_REPLICA));
    return is_equal(self, &self->c);
}

static bool pushes_reach_all(world_t *self)
{
    CHECK(push_some(self, ROWS));
    CHECK(client_wait_acks(&self->client, PS_ACK_REPLICA));
    return is_equal(self, &self->b) && is_equal(self, &self->c);
}

/* b is reported. On a busy machine c, which lives, may be late as well. */
static bool wait_slow_b(world_t *self)
{
    ps_report_t report = {0};

    do {
        CHECK(wait_report(&self->a, PS_REPORT_SLOW, &report));
        CHECK(report.table == TABLE);
    } while (report.incarnation != 1002);
    return true;
}

/* The copy's shard ends: what is pushed waits, and that is reported; the others
 * go on without it. */
static bool a_copy_goes(world_t *self)
{
    CHECK(push_some(self, ROWS));
    CHECK(client_wait_acks(&self->client, PS_ACK_REPLICA));
    ps_shards_stop(&self->b.shards);
    CHECK(push_some(self, ROWS));
    CHECK(wait_slow_b(self));
    CHECK(others_are_served(self));
    return go_on_without_b(self);
}

/* ---- peers that do not behave ---- */

static bool n_accepted(const tcp_counts_t *counts, uint64_t number)
{
    return counts->n_accepted >= number;
}

/* The way to b breaks in the middle of records: the link is opened anew, and
 * what was lost is sent again. */
static bool a_way_breaks(world_t *self)
{
    for (uint64_t i = 0; i < 3; i++) {
        tcp_proxy_cut_after(self->way, TCP_WAY_IN, 1000000 * (i + 1), i == 1);
        CHECK(push_some(self, ROWS));
        CHECK(tcp_proxy_wait(self->way, n_accepted, i + 2, PATIENCE_MS));
        CHECK(client_wait_acks(&self->client, PS_ACK_REPLICA));
        CHECK(is_equal(self, &self->b) && is_equal(self, &self->c));
    }
    return true;
}

/* Nothing passes: the port takes connections, and says nothing. */
static bool a_copy_is_mute(world_t *self)
{
    tcp_proxy_set_flow(self->way, TCP_WAY_OUT, TCP_FLOW_HOLD);
    CHECK(push_some(self, ROWS));
    CHECK(wait_slow_b(self));
    CHECK(others_are_served(self));
    return go_on_without_b(self);
}

/* Answers whatever comes with what is no message, until it has been asked by
 * several connections. */
static bool talk_rubbish(world_t *self, void *port)
{
    uint8_t last[64] = {0};
    int last_size = 0;
    int n_peers = 0;

    CHECK(push_some(self, ROWS));
    for (uint64_t until_ms = ps_now_ms() + PATIENCE_MS; n_peers < 3;) {
        zmq_pollitem_t item = {.socket = port, .events = ZMQ_POLLIN};
        uint8_t id[64];
        char rest[256];
        int more = 1;
        size_t more_size = sizeof more;
        int size = 0;

        CHECK(ps_now_ms() < until_ms);
        if (zmq_poll(&item, 1, 100) <= 0) {
            continue;
        }
        size = zmq_recv(port, id, sizeof id, 0);
        while (more != 0 && zmq_getsockopt(port, ZMQ_RCVMORE, &more, &more_size) == 0 &&
               more != 0) {
            (void)zmq_recv(port, rest, sizeof rest, 0);
        }
        if (size != last_size || memcmp(id, last, (size_t)size) != 0) {
            memcpy(last, id, (size_t)size);
            last_size = size;
            n_peers++;
        }
        (void)zmq_send(port, id, (size_t)size, ZMQ_SNDMORE);
        (void)zmq_send(port, "rubbish that is longer than a head", 34, 0);
    }
    CHECK(others_are_served(self));
    return go_on_without_b(self);
}

/* In the place of b is a ROUTER that is no shard. */
static bool a_port_speaks_rubbish(ps_context_t *context)
{
    world_t world = {.way = NULL};
    char tcp[256] = "";
    size_t size = sizeof tcp;
    void *zmq = zmq_ctx_new();
    void *port = zmq_socket(zmq, ZMQ_ROUTER);
    bool done = zmq_bind(port, "tcp://127.0.0.1:*") == 0 &&
                zmq_getsockopt(port, ZMQ_LAST_ENDPOINT, tcp, &size) == 0 &&
                open_world(&world, context, tcp) && talk_rubbish(&world, port);

    close_world(&world);
    (void)zmq_setsockopt(port, ZMQ_LINGER, &(int){0}, sizeof(int));
    (void)zmq_close(port);
    (void)zmq_ctx_term(zmq);
    return done;
}

static bool run_story(ps_context_t *context, bool (*story)(world_t *self))
{
    world_t world;
    bool done = open_world(&world, context, NULL) && story(&world);

    close_world(&world);
    return done;
}

int main(void)
{
    ps_context_t *context = NULL;
    bool done = false;

    if (ps_context_new(2, &context, NULL) != PSD_OK) {
        return 1;
    }
    done = run_story(context, pushes_reach_all) && run_story(context, a_copy_goes) &&
           run_story(context, a_way_breaks) && run_story(context, a_copy_is_mute) &&
           a_port_speaks_rubbish(context);
    ps_context_destroy(&context);
    return done ? 0 : 1;
}
