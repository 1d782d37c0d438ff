/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies_cost - what a second copy costs
 *
 *   copies_cost [SECONDS]
 *
 * Two shards and a client in one process, over tcp loopback. The client keeps
 * some pushes under way; they are acknowledged at level memory, with one copy,
 * and at level replica, with two, in turn. Prints throughput and the process
 * time for each byte (the client's, the shards' and ZeroMQ's together).
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "unit/server/shards_kit.h"

#define ROUNDS 3

typedef struct work {
    uint64_t rows;   /* of a push */
    uint64_t window; /* pushes under way */
} work_t;

typedef struct figures {
    double mb_per_s;
    double ns_per_byte;
    double us_per_push;
} figures_t;

static double cpu_s(void)
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static bool open_table(node_t *a, node_t *b, const work_t *work, ps_ack_t ack)
{
    ps_copies_t copies = {.epoch = 1, .n = ack == PS_ACK_MEMORY ? 1 : 2};
    ps_table_t table = {.id = TABLE, .copies = &copies};
    ps_route_t route;

    copies.at[0] = copy_at(a, 0, PS_COPY_PRIMARY);
    copies.at[1] = copy_at(b, 0, PS_COPY_IN_SYNC);
    route = route_to(&copies);
    table.routes = &route;
    spec_init(&table.spec, work->rows, ack);
    return tell_table(a, &table) && (copies.n == 1 || tell_table(b, &table));
}

static bool push_for(client_t *client, const work_t *work, ps_ack_t ack, uint64_t until_ms)
{
    while (ps_now_ms() < until_ms) {
        ps_message_t message;

        while (client->n_pushes - client->n_acks < work->window) {
            CHECK(client_push(client, TABLE, work->rows));
        }
        CHECK(client_hear(client, &message));
        CHECK(message.kind == PS_KIND_ACK && message.ack.level == ack);
        client->n_acks++;
    }
    return client_wait_acks(client, ack);
}

static bool measure(const work_t *work, ps_ack_t ack, uint64_t ms, figures_t *ret)
{
    ps_context_t *context = NULL;
    node_t a = {.incarnation = 1001};
    node_t b = {.incarnation = 1002};
    client_t client = {.link = NULL};
    bool done = ps_context_new(1, &context, NULL) == PSD_OK;
    double cpu = 0;
    uint64_t from_ms = 0;
    double bytes = 0;
    double pushes = 0;

    a.context = context;
    b.context = context;
    done = done && open_node(&a, 1) && open_node(&b, 1) && open_table(&a, &b, work, ack) &&
           open_client(&client, &a, 1) && push_for(&client, work, ack, ps_now_ms() + ms / 5);
    cpu = cpu_s();
    from_ms = ps_now_ms();
    pushes = -(double)client.n_acks;
    done = done && push_for(&client, work, ack, from_ms + ms);
    pushes += (double)client.n_acks;
    bytes = pushes * (double)work->rows * 8;
    cpu = cpu_s() - cpu;
    ret->mb_per_s = bytes / (double)(ps_now_ms() - from_ms) / 1e3;
    ret->ns_per_byte = cpu * 1e9 / bytes;
    ret->us_per_push = cpu * 1e6 / pushes;
    close_client(&client);
    close_node(&a);
    close_node(&b);
    ps_context_destroy(&context);
    return done;
}

int main(int argc, char **argv)
{
    static const work_t works[] = {{1, 64}, {512, 64}, {8192, 16}, {131072, 8}};
    uint64_t ms = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000 : 1000;

    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        for (int round = 0; round < ROUNDS; round++) {
            figures_t one = {0};
            figures_t two = {0};

            if (!measure(&works[i], PS_ACK_MEMORY, ms, &one) ||
                !measure(&works[i], PS_ACK_REPLICA, ms, &two)) {
                return 1;
            }
            (void)printf("%8lu bytes: memory %8.1f MB/s %7.3f ns/byte %8.2f "
                         "us/push; replica %8.1f MB/s %7.3f ns/byte %8.2f "
                         "us/push; throughput %4.0f %%, time %.2f x\n",
                         (unsigned long)works[i].rows * 8, one.mb_per_s, one.ns_per_byte,
                         one.us_per_push, two.mb_per_s, two.ns_per_byte, two.us_per_push,
                         100 * two.mb_per_s / one.mb_per_s, two.us_per_push / one.us_per_push);
        }
    }
    return 0;
}
