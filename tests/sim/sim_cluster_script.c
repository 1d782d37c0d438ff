/* SPDX-License-Identifier: Apache-2.0 */
/* The script of a client, from the plan's seed and its own number: pushes
 * and pulls; with clocks when it is a worker. The reader pulls everything
 * once. */
#include "base/hash.h"
#include "sim_cluster.h"

static cluster_line_t *add(cluster_client_t *client, cluster_line_kind_t kind, uint32_t partition)
{
    cluster_need(client->n_lines < CLUSTER_LINES_MAX, "fewer lines");
    client->lines[client->n_lines] = (cluster_line_t){.kind = kind, .partition = partition};
    return &client->lines[client->n_lines++];
}

static uint32_t any_partition(const cluster_t *self, ps_rng_t *rng)
{
    return (uint32_t)ps_rng_below(rng, self->plan.n_partitions);
}

/* Each push has a row of its own in its partition. */
static void add_push(cluster_t *self, uint32_t number, ps_rng_t *rng, uint32_t n_before)
{
    cluster_client_t *client = &self->clients[number];
    uint32_t partition = any_partition(self, rng);
    uint32_t row = number * CLUSTER_PUSHES_MAX + n_before;
    cluster_line_t *line = add(client, CLUSTER_PUSH, partition);

    line->row = row;
    line->pull = ps_rng_below(rng, 5) == 0;
    line->ack = client->level == cluster_table_ack(&self->plan) ? PS_ACK_DEFAULT : client->level;
    self->pushed[partition][row] = (cluster_pushed_t){.client = number, .planned = true};
}

/* It has worked, and may leave or fall silent before its clock is finished. */
static void add_moves(cluster_client_t *client, ps_rng_t *rng)
{
    if (ps_rng_below(rng, 8) == 0) {
        (void)add(client, CLUSTER_HIDE, 0);
    }
    (void)add(client, CLUSTER_COUNT, 0);
    if (ps_rng_below(rng, 6) == 0) {
        (void)add(client, CLUSTER_LEAVE, 0);
    }
}

/* One clock of a worker: at most n pushes, a mark, and its pulls. */
static void add_clock(cluster_t *self, uint32_t number, ps_rng_t *rng, uint32_t *n_pushes)
{
    cluster_client_t *client = &self->clients[number];
    uint32_t most = self->plan.n_pushes / self->plan.n_clocks;

    if (self->plan.comes) {
        (void)add(client, CLUSTER_TAKE, 0);
    }
    for (uint64_t n = ps_rng_below(rng, most + 1); n > 0; n--) {
        add_push(self, number, rng, (*n_pushes)++);
    }
    if (self->plan.comes) {
        add_moves(client, rng);
    }
    (void)add(client, CLUSTER_MARK, 0);
    for (uint64_t n = ps_rng_below(rng, 3); n > 0; n--) {
        (void)add(client, CLUSTER_PULL, any_partition(self, rng));
    }
    if (ps_rng_below(rng, 3) == 0) {
        (void)add(client, CLUSTER_WAIT, 0);
    }
}

static uint8_t pick_level(const cluster_t *self, ps_rng_t *rng)
{
    const cluster_plan_t *plan = &self->plan;
    uint64_t any = ps_rng_below(rng, 5);

    if (plan->job || any > 1) {
        return (uint8_t)cluster_table_ack(plan);
    }
    return any == 0 || plan->replicas == 1 ? PS_ACK_MEMORY : PS_ACK_REPLICA;
}

void cluster_script_make(cluster_t *self, uint32_t number)
{
    ps_rng_t rng = {.state = ps_hash_u64(self->plan.seed) + number};
    cluster_client_t *client = &self->clients[number];
    uint32_t n_pushes = 0;

    client->reader = number == self->plan.n_clients;
    client->window = 1 + (size_t)ps_rng_below(&rng, 6);
    client->pace_ms = 1 + ps_rng_below(&rng, 2) * ps_rng_below(&rng, 200);
    client->level = pick_level(self, &rng);
    client->memory = client->level == PS_ACK_MEMORY;
    for (uint32_t i = 0; client->reader && i < self->plan.n_partitions; i++) {
        (void)add(client, CLUSTER_PULL, i);
    }
    if (client->reader) {
        return;
    }
    for (uint32_t i = 0; self->plan.job && i < self->plan.n_clocks; i++) {
        add_clock(self, number, &rng, &n_pushes);
    }
    if (self->plan.comes) {
        (void)add(client, CLUSTER_LEAVE, 0);
    }
    while (!self->plan.job && n_pushes < self->plan.n_pushes) {
        add_push(self, number, &rng, n_pushes++);
        if (ps_rng_below(&rng, 3) == 0) {
            (void)add(client, CLUSTER_PULL, any_partition(self, &rng));
        }
    }
}
