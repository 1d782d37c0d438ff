/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a seed. Half of the faults follow stories: histories in which
 * a promise depends on one rule alone, which chance would seldom produce. */
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"

#include "sim_cluster.h"

#define FAULT_MS 1050                      /* no faults before */
#define DISK_MS 1250                       /* nor disk faults: all nodes know the table */
#define SPAN_MS 2000                       /* within which everything starts */
#define MEMBERS UINT64_C(0x6d656d62657273) /* of the choices about members of the registry */
#ifndef CLUSTER_HAS_QUORUM
#define CLUSTER_HAS_QUORUM 0 /* built without libraft */
#endif

static uint64_t below(ps_rng_t *rng, uint64_t bound)
{
    return ps_rng_below(rng, bound);
}

static cluster_fault_t *add(cluster_plan_t *plan, cluster_fault_kind_t kind, uint32_t who,
                            uint64_t at_ms, uint64_t for_ms)
{
    cluster_fault_t *fault = &plan->faults[plan->n_faults];
    uint64_t end_ms = at_ms + for_ms;

    cluster_need(plan->n_faults < CLUSTER_FAULTS_MAX, "fewer faults");
    plan->n_faults++;
    *fault = (cluster_fault_t){.kind = kind,
                               .who = who,
                               .to = CLUSTER_NOBODY,
                               .at_ms = at_ms,
                               .end_ms = end_ms < CLUSTER_CALM_MS ? end_ms : CLUSTER_CALM_MS};
    return fault;
}

static void crash(cluster_plan_t *plan, ps_rng_t *rng, uint32_t who, uint64_t at_ms,
                  uint64_t for_ms)
{
    add(plan, CLUSTER_CRASH, who, at_ms, for_ms)->loss = (cluster_loss_t)below(rng, 3);
}

static void cut(cluster_plan_t *plan, uint32_t from, uint32_t to, uint64_t at_ms, uint64_t for_ms)
{
    add(plan, CLUSTER_CUT, from, at_ms, for_ms)->to = to;
}

/* Anything, at any time. */
static void add_any(cluster_plan_t *plan, ps_rng_t *rng)
{
    uint64_t at_ms = FAULT_MS + below(rng, SPAN_MS);
    uint32_t node = (uint32_t)below(rng, plan->n_nodes);

    switch (below(rng, 8)) {
    case 0:
    case 1:
        crash(plan, rng, node, at_ms, 50 + below(rng, 1500));
        break;
    case 2:
        (void)add(plan, CLUSTER_FREEZE, node, at_ms, 1 + below(rng, 1400));
        break;
    case 3:
    case 4:
        cut(plan, (uint32_t)below(rng, CLUSTER_PLACES), (uint32_t)below(rng, CLUSTER_PLACES), at_ms,
            below(rng, 1400));
        break;
    case 5:
        (void)add(plan, below(rng, 2) == 0 ? CLUSTER_CRASH : CLUSTER_FREEZE, CLUSTER_REGISTRY,
                  at_ms, 1 + below(rng, 900));
        break;
    case 6:
        (void)add(plan, CLUSTER_DRAIN, node, at_ms, 500 + below(rng, 2000));
        break;
    default:
        (void)add(plan, CLUSTER_LATE, node, at_ms, below(rng, 1400));
        break;
    }
}

/* A primary that is cut off only from the registry goes on, while its copies
 * learn of its end one by one. */
static void story_of_an_old_primary(cluster_plan_t *plan, ps_rng_t *rng)
{
    uint32_t node = (uint32_t)below(rng, plan->n_nodes);
    uint64_t at_ms = FAULT_MS + below(rng, SPAN_MS);
    uint64_t for_ms = 500 + below(rng, 1400);

    cut(plan, node, CLUSTER_REGISTRY, at_ms, for_ms);
    cut(plan, CLUSTER_REGISTRY, node, at_ms, for_ms);
    (void)add(plan, CLUSTER_LATE,
              (node + 1 + (uint32_t)below(rng, plan->n_nodes - 1)) % plan->n_nodes, at_ms, for_ms);
}

/* A primary that stands still for longer than its lease. */
static void story_of_a_sleeper(cluster_plan_t *plan, ps_rng_t *rng)
{
    (void)add(plan, CLUSTER_FREEZE, (uint32_t)below(rng, plan->n_nodes),
              FAULT_MS + below(rng, SPAN_MS), 400 + below(rng, 1400));
}

/* A copy is lost; while a new one is made, the primary falls silent. */
static void story_of_a_repair(cluster_plan_t *plan, ps_rng_t *rng)
{
    uint32_t lost = (uint32_t)below(rng, plan->n_nodes);
    uint32_t next = (lost + 1 + (uint32_t)below(rng, plan->n_nodes - 1)) % plan->n_nodes;
    uint64_t at_ms = FAULT_MS + below(rng, 800);
    uint64_t then_ms = at_ms + 400 + below(rng, 900);

    crash(plan, rng, lost, at_ms, 50 + below(rng, 1200));
    if (below(rng, 2) == 0) {
        (void)add(plan, CLUSTER_FREEZE, next, then_ms, 600 + below(rng, 1200));
    } else {
        cut(plan, next, CLUSTER_REGISTRY, then_ms, 600 + below(rng, 1200));
    }
}

/* Partitions move while pushes go on. */
static void story_of_a_move(cluster_plan_t *plan, ps_rng_t *rng)
{
    (void)add(plan, CLUSTER_DRAIN, (uint32_t)below(rng, plan->n_nodes),
              FAULT_MS + below(rng, SPAN_MS), 500 + below(rng, 2500));
    if (plan->n_nodes > 3 && below(rng, 2) == 0) {
        (void)add(plan, CLUSTER_ABSENT, plan->n_nodes - 1, 0, FAULT_MS + below(rng, SPAN_MS));
    }
}

/* The disk of a node takes nothing, or fails now and then. */
static void add_trouble(cluster_plan_t *plan, ps_rng_t *rng)
{
    static const cluster_fault_kind_t kinds[] = {CLUSTER_FULL, CLUSTER_STILL, CLUSTER_FAILS};

    (void)add(plan, kinds[below(rng, 3)], (uint32_t)below(rng, plan->n_nodes),
              DISK_MS + below(rng, SPAN_MS), 100 + below(rng, 1600));
}

/* All nodes are lost at once; before that, one had disk trouble, or moved away. */
static void story_of_the_end(cluster_plan_t *plan, ps_rng_t *rng)
{
    uint64_t at_ms = FAULT_MS + below(rng, SPAN_MS);

    switch (below(rng, 4)) {
    case 0:
        add_trouble(plan, rng);
        break;
    case 1:
        story_of_a_move(plan, rng);
        break;
    case 2:
        story_of_a_repair(plan, rng);
        break;
    default:
        break;
    }
    add(plan, CLUSTER_ALL, CLUSTER_NOBODY, at_ms, 20 + below(rng, 900))->loss =
        (cluster_loss_t)below(rng, 3);
}

static void plan_disk_faults(cluster_plan_t *plan, ps_rng_t *rng)
{
    if (below(rng, 3) == 0) {
        story_of_the_end(plan, rng);
    }
    for (uint64_t n = below(rng, 3); n > 0; n--) {
        add_trouble(plan, rng);
    }
}

static void plan_faults(cluster_plan_t *plan, ps_rng_t *rng)
{
    static void (*const stories[])(cluster_plan_t *, ps_rng_t *) = {
        story_of_an_old_primary, story_of_a_sleeper, story_of_a_repair, story_of_a_move};
    uint64_t n = below(rng, 4);

    if (below(rng, 2) == 0) {
        stories[below(rng, sizeof stories / sizeof *stories)](plan, rng);
        n = below(rng, 2);
    }
    if (plan->disk) {
        plan_disk_faults(plan, rng);
    }
    for (uint64_t i = 0; i < n; i++) {
        add_any(plan, rng);
    }
}

/* A node may seem lost; with a member of the registry, too. */
static bool is_rough(const cluster_plan_t *plan)
{
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        cluster_fault_kind_t kind = plan->faults[i].kind;

        if (kind == CLUSTER_CUT ||
            ((kind == CLUSTER_CRASH || kind == CLUSTER_FREEZE) &&
             (plan->faults[i].who != CLUSTER_REGISTRY || plan->n_members > 0))) {
            return true;
        }
    }
    return false;
}

/* Of choices that do not change the others. */
static void plan_members(cluster_plan_t *plan)
{
    ps_rng_t rng = {.state = plan->seed ^ MEMBERS};

    if (!CLUSTER_HAS_QUORUM || below(&rng, 2) == 0) {
        return;
    }
    plan->n_members = plan->n_nodes == CLUSTER_NODES_MAX && below(&rng, 2) == 0 ? 5 : 3;
    plan->cut_every = below(&rng, 2) == 0 ? 3 + (uint32_t)below(&rng, 40) : 0;
    plan->tears = below(&rng, 3) == 0 ? 1 + (uint32_t)below(&rng, 40) : 0;
    /* The one that leads falls, half of the time while it is busy. */
    for (uint64_t n = below(&rng, 3); n > 0 && plan->n_faults < CLUSTER_FAULTS_MAX; n--) {
        crash(plan, &rng, CLUSTER_REGISTRY, FAULT_MS + below(&rng, SPAN_MS),
              50 + below(&rng, 1200));
    }
}

void cluster_plan_make(uint64_t seed, cluster_plan_t *plan)
{
    ps_rng_t rng = {.state = seed};

    *plan = (cluster_plan_t){.seed = seed,
                             .n_nodes = 3 + (uint32_t)below(&rng, 3),
                             .n_clients = 1 + (uint32_t)below(&rng, CLUSTER_CLIENTS_MAX),
                             .n_partitions = 1 + (uint32_t)below(&rng, CLUSTER_PARTITIONS_MAX),
                             .replicas = below(&rng, 10) == 0 ? 1 : 2 + (uint32_t)below(&rng, 2),
                             .job = below(&rng, 2) == 0,
                             .max_delay = below(&rng, 3) == 0 ? 1 + (int32_t)below(&rng, 2) : 0,
                             .n_clocks = 6,
                             .n_pushes = 8 + (uint32_t)below(&rng, CLUSTER_PUSHES_MAX - 7),
                             .loss = below(&rng, 2) == 0 ? 0 : (uint32_t)below(&rng, 150),
                             .repeat = below(&rng, 2) == 0 ? 0 : (uint32_t)below(&rng, 200),
                             .delay_ms = 1 + (uint32_t)below(&rng, below(&rng, 3) == 0 ? 60 : 8),
                             .tail_bytes = below(&rng, 3) == 0 ? 2000 : 0,
                             .flight_bytes = below(&rng, 2) == 0 ? 400 : 0};
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        plan->n_shards[i] = 1 + (uint32_t)below(&rng, CLUSTER_SHARDS_MAX);
    }
    plan->disk = below(&rng, 2) == 0;
    plan->disk_ms = 1 + (uint32_t)below(&rng, below(&rng, 3) == 0 ? 60 : 8);
    plan->log_queue_bytes = below(&rng, 3) == 0 ? 3000 : 0;
    plan_faults(plan, &rng);
    plan_members(plan);
    if (is_rough(plan) && plan->replicas == 1 && !plan->disk) {
        plan->replicas = 2; /* of one copy nothing is promised then */
    }
    plan->falls = below(&rng, 4) == 0 ? 1 + (uint32_t)below(&rng, 300) : 0;
    plan->comes = plan->job && below(&rng, 2) == 0;
    plan->n_expected = plan->comes ? 1 + (uint32_t)below(&rng, plan->n_clients) : plan->n_clients;
    plan->checkpoint_ms = below(&rng, 2) == 0 ? 0 : 20 + below(&rng, 200);
    plan->versions = plan->checkpoint_ms > 0 && below(&rng, 2) == 0;
    plan->combine = ps_hash_u64(seed) % 2 == 0 ? PS_COMBINE_CLOCK_SUM : PS_COMBINE_EACH;
    plan->forgets = below(&rng, 4) == 0;
    if (plan->forgets) {
        plan->repeat = 0; /* as on one connection: forgotten messages may not
                           * come twice */
    }
}

ps_ack_t cluster_table_ack(const cluster_plan_t *plan)
{
    if (plan->disk) {
        return PS_ACK_DISK;
    }
    return plan->replicas > 1 ? PS_ACK_REPLICA : PS_ACK_MEMORY;
}

void cluster_spec_make(const cluster_plan_t *plan, ps_table_spec_t *spec)
{
    ps_table_spec_init(spec);
    (void)snprintf(spec->name, sizeof spec->name, "t");
    spec->n_rows = (uint64_t)plan->n_partitions * CLUSTER_ROWS;
    spec->type = PS_TYPE_I64;
    spec->n_partitions = plan->n_partitions;
    spec->n_col_slices = 1;
    spec->replicas = plan->replicas;
    spec->ack = cluster_table_ack(plan);
    spec->versions = plan->versions;
    spec->combine = plan->combine;
}

static const char *place_name(uint32_t place, char text[16])
{
    if (place == CLUSTER_NOBODY) {
        return "nodes";
    }
    if (place >= CLUSTER_REGISTRY) {
        return place == CLUSTER_REGISTRY ? "the registry" : "the clients";
    }
    (void)snprintf(text, 16, "n%u", place);
    return text;
}

void cluster_plan_print(const cluster_plan_t *plan, FILE *to)
{
    static const char *const kinds[] = {"",       "crash", "freeze", "cut",   "late", "drain",
                                        "absent", "all",   "full",   "still", "fails"};
    static const char *const losses[] = {"", ", not flushed", ", its disk"};
    char who[16];
    char other[16];

    (void)fprintf(to, "%u nodes, shards", plan->n_nodes);
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        (void)fprintf(to, " %u", plan->n_shards[i]);
    }
    (void)fprintf(to,
                  "; %u partitions of %u copies; %u clients%s; loss %u repeat "
                  "%u delay %u tail %" PRIu64 " flight %" PRIu64 " falls %u\n",
                  plan->n_partitions, plan->replicas, plan->n_clients, plan->job ? " of a job" : "",
                  plan->loss, plan->repeat, plan->delay_ms, plan->tail_bytes, plan->flight_bytes,
                  plan->falls);
    if (plan->n_members > 0) {
        (void)fprintf(to, "%u members of the registry, tears %u, cut every %u\n", plan->n_members,
                      plan->tears, plan->cut_every);
    }
    if (plan->job) {
        (void)fprintf(to, "max_delay %d%s, %u expected, combine %s\n", plan->max_delay,
                      plan->comes ? ", workers come and go" : "", plan->n_expected,
                      ps_combine_name(plan->combine));
    }
    if (plan->disk) {
        (void)fprintf(to, "disks: %u ms, queue %" PRIu64 "\n", plan->disk_ms,
                      plan->log_queue_bytes);
    }
    if (plan->forgets) {
        (void)fprintf(to, "partitions forget clients\n");
    }
    if (plan->checkpoint_ms > 0) {
        (void)fprintf(to, "a checkpoint every %" PRIu64 " ms%s\n", plan->checkpoint_ms,
                      plan->versions ? ", of what changed" : "");
    }
    for (uint32_t i = 0; i < plan->n_faults; i++) {
        const cluster_fault_t *fault = &plan->faults[i];

        (void)fprintf(to, "%s %s%s%s %" PRIu64 "..%" PRIu64 "%s\n", kinds[fault->kind],
                      place_name(fault->who, who), fault->kind == CLUSTER_CUT ? " -> " : "",
                      fault->kind == CLUSTER_CUT ? place_name(fault->to, other) : "", fault->at_ms,
                      fault->end_ms, plan->disk ? losses[fault->loss] : "");
    }
}
