/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_walk - a random but repeatable life of a cluster
 *
 * What     Each step plans one request that could come next: tables made and
 *          dropped, restored, their loss acknowledged, workers that join,
 *          start, finish, are lost, jobs stopped and resumed, nodes started
 *          again, drained and removed, principals allowed and denied. Refusals
 *          are part of the life.
 */
#ifndef PS_TESTS_REGISTRY_WALK_H
#define PS_TESTS_REGISTRY_WALK_H

#include "base/rng.h"
#include "protocol/registry/registry_work.h"
#include "support/registry_fixture.h"

#define WALK_NAMES 6
#define WALK_WORKERS 5

typedef struct walk {
    ps_rng_t rng;
    uint64_t unix_ms;
    uint64_t incarnations; /* given so far */
    uint64_t terms;        /* that have begun */
} walk_t;

static inline psd_status_t walk_table(walk_t *self, const ps_registry_t *registry,
                                      ps_command_t *command, psd_error_t *err)
{
    char name[16];
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    uint32_t kind = (uint32_t)ps_rng_below(&self->rng, 4);
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "t%u", (unsigned)ps_rng_below(&self->rng, WALK_NAMES));
    if (kind == 0) {
        return ps_registry_plan_drop(registry, name, self->unix_ms, command, err);
    }
    spec = fixture_spec(name);
    spec.seed = ps_rng_u64(&self->rng);
    spec.replicas = ps_rng_below(&self->rng, 4) == 0 ? 2 : 1;
    if (kind == 1) {
        rc = ps_partition_by_parse("list:3,50,99", &spec, err);
    } else if (kind == 2) {
        spec.keys = PS_KEYS_HASH;
        spec.n_rows = 0;
        spec.row_format = PS_ROW_AUTO;
        rc = ps_updater_spec_parse("ftrl:alpha=0.1,l1=0.3", &spec.updater, err);
    } else {
        spec.n_cols = 8;
        spec.n_col_slices = 2;
        spec.n_partitions = 2 + 2 * (uint32_t)ps_rng_below(&self->rng, 4);
        rc = ps_init_spec_parse("normal:0,0.001", &spec.init, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_plan_table(registry, &spec, self->unix_ms, command, err);
    }
    command->table.restoring = command->kind == PS_COMMAND_TABLE && spec.seed % 4 == 0;
    return rc;
}

static inline psd_status_t walk_join(walk_t *self, const ps_registry_t *registry,
                                     ps_command_t *command, psd_error_t *err)
{
    char name[16];
    uint32_t of = (uint32_t)ps_rng_below(&self->rng, WALK_NAMES);
    ps_join_t join = {.job = name,
                      .worker = (uint32_t)ps_rng_below(&self->rng, WALK_WORKERS),
                      .n_workers = 1 + of % 3,
                      .max_delay = (int32_t)(of % 3) - 1,
                      .attach = ps_rng_below(&self->rng, 8) == 0};

    (void)snprintf(name, sizeof name, "j%u", of);
    return ps_registry_plan_join(registry, &join, self->unix_ms, command, err);
}

/* Plans an event of a worker of the newest job of a name. */
static inline psd_status_t walk_worker(walk_t *self, const ps_registry_t *registry,
                                       ps_command_t *command, psd_error_t *err)
{
    char name[16];
    const ps_job_t *job = NULL;
    uint32_t worker = (uint32_t)ps_rng_below(&self->rng, WALK_WORKERS);
    uint64_t clocks[WALK_WORKERS];
    static const uint32_t ranks[WALK_WORKERS] = {0, 1, 2, 3, 4};

    (void)snprintf(name, sizeof name, "j%u", (unsigned)ps_rng_below(&self->rng, WALK_NAMES));
    job = ps_registry_job(registry, name);
    if (job == NULL) {
        return PSD_NO_JOB;
    }
    for (int i = 0; i < WALK_WORKERS; i++) {
        clocks[i] = ps_rng_below(&self->rng, 100);
    }
    switch (ps_rng_below(&self->rng, 5)) {
    case 0:
    case 1:
        return ps_registry_plan_start(registry, job->id, worker, ranks, clocks, WALK_WORKERS,
                                      self->unix_ms, command, err);
    case 2:
        return ps_registry_plan_end(registry, job->id, worker, PS_WORKER_FINISHED, self->unix_ms,
                                    command, err);
    case 3:
        return ps_registry_plan_end(registry, job->id, worker, PS_WORKER_LOST, self->unix_ms,
                                    command, err);
    default:
        return ps_registry_plan_job_table(registry, job->id,
                                          1 + (uint32_t)ps_rng_below(&self->rng, 30), self->unix_ms,
                                          command, err);
    }
}

static inline psd_status_t walk_node(walk_t *self, const ps_registry_t *registry,
                                     ps_command_t *command, psd_error_t *err)
{
    static const char *const names[] = {"n0", "n1", "n2"};
    static const ps_node_state_t states[] = {PS_NODE_UP, PS_NODE_UP, PS_NODE_DRAINING,
                                             PS_NODE_REMOVED};
    const char *name = names[ps_rng_below(&self->rng, 3)];
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node =
        fixture_node(name, ++self->incarnations, 1 + (uint32_t)ps_rng_below(&self->rng, 4), shards);

    if (ps_rng_below(&self->rng, 2) == 0) {
        return ps_registry_plan_node_state(registry, name, states[ps_rng_below(&self->rng, 4)],
                                           ps_rng_below(&self->rng, 2) == 0, self->unix_ms, command,
                                           err);
    }
    if (ps_rng_below(&self->rng, 4) == 0) {
        return ps_registry_plan_hold(registry, name, (ps_hold_t)ps_rng_below(&self->rng, 3),
                                     self->unix_ms, command, err);
    }
    node.weight = (uint32_t)ps_rng_below(&self->rng, 3);
    return ps_registry_plan_node(registry, &node, self->unix_ms, command, err);
}

/* Clients of workers ask for slices and finish them: one to three questions
 * in a command, some repeated, or of former lives. */
static inline psd_status_t walk_work(walk_t *self, const ps_registry_t *registry,
                                     ps_command_t *command, psd_error_t *err)
{
    char name[16];
    const ps_job_t *job = NULL;
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "j%u", (unsigned)ps_rng_below(&self->rng, WALK_NAMES));
    job = ps_registry_job(registry, name);
    if (job == NULL) {
        return PSD_NO_JOB;
    }
    if (ps_rng_below(&self->rng, 8) == 0) {
        uint32_t of = (uint32_t)ps_rng_below(&self->rng, 2);

        return ps_registry_plan_queue(registry, job->id, of == 0 ? "a" : "b", 2 + 3 * of, 2 * of,
                                      self->unix_ms, command, err);
    }
    for (uint64_t n = 1 + ps_rng_below(&self->rng, 3); n > 0; n--) {
        ps_work_answer_t answer;
        ps_work_ask_t ask = {.job = job->id,
                             .queue = ps_rng_below(&self->rng, 2) == 0 ? "a" : "b",
                             .worker = (uint32_t)ps_rng_below(&self->rng, WALK_WORKERS),
                             .number = 1 + self->unix_ms / 8,
                             .epoch = 1 + ps_rng_below(&self->rng, 4),
                             .slice = (uint32_t)ps_rng_below(&self->rng, 6)};

        ask.session = 1 + ask.worker + 10 * ps_rng_below(&self->rng, 2);
        rc = ps_rng_below(&self->rng, 2) == 0
                 ? ps_registry_plan_work_next(registry, &ask, self->unix_ms, command, &answer, err)
                 : ps_registry_plan_work_done(registry, &ask, self->unix_ms, command, err);
        if (rc == PSD_NOMEM) {
            return rc;
        }
    }
    return command->kind == 0 ? rc : PSD_OK;
}

/* A job goes on where a checkpoint has it: slices of a queue are done. */
static inline psd_status_t walk_resume(walk_t *self, const ps_registry_t *registry,
                                       ps_command_t *command, psd_error_t *err)
{
    char name[16];
    uint32_t done[] = {1, 3};
    const ps_work_resumed_t queue = {
        .name = "a", .n_slices = 5, .n_epochs = 4, .epoch = 2, .done = done, .n_done = 2};
    const ps_resume_t resume = {.job = name,
                                .n_workers = 2,
                                .clock = ps_rng_below(&self->rng, 50),
                                .queues = &queue,
                                .n_queues = 1};

    (void)snprintf(name, sizeof name, "j%u", (unsigned)ps_rng_below(&self->rng, WALK_NAMES));
    return ps_registry_plan_resume(registry, &resume, self->unix_ms, command, err);
}

/* What an operator, or a restore, does to a table. */
static inline psd_status_t walk_mark(walk_t *self, const ps_registry_t *registry,
                                     ps_command_t *command, psd_error_t *err)
{
    uint32_t of = (uint32_t)ps_rng_below(&self->rng, WALK_NAMES);
    const ps_table_t *table = NULL;
    char name[16];

    (void)snprintf(name, sizeof name, "t%u", (unsigned)of);
    table = ps_registry_table(registry, name);
    if (of == 0) {
        *command = ps_registry_plan_note(registry, self->unix_ms, "a note");
        return PSD_OK;
    }
    if (table != NULL && table->restoring) {
        return ps_registry_plan_restored(registry, table->id, self->unix_ms, command, err);
    }
    return ps_registry_plan_ack(registry, name, self->unix_ms, command, err);
}

/* A key of its own, at times beside the one that it has. */
static inline void walk_keys(walk_t *self, const ps_registry_t *registry, uint32_t name,
                             ps_principal_t *principal)
{
    const ps_principal_t *known = ps_registry_principal(registry, principal->name);

    if (ps_rng_below(&self->rng, 2) == 0) {
        return;
    }
    memset(principal->key, 'a' + (int)name, PS_PUBLIC_KEY_SIZE);
    principal->key[0] = (char)('0' + (int)ps_rng_below(&self->rng, 3));
    if (!principal->denied && known != NULL && known->key[0] != '\0' &&
        strcmp(known->key, principal->key) != 0) {
        memcpy(principal->old_key, known->key, sizeof principal->old_key);
        principal->old_until_unix_ms = self->unix_ms + 1 + ps_rng_below(&self->rng, 5);
    }
}

static inline psd_status_t walk_principal(walk_t *self, const ps_registry_t *registry,
                                          ps_command_t *command, psd_error_t *err)
{
    uint32_t of = (uint32_t)ps_rng_below(&self->rng, 4);
    uint32_t name = (uint32_t)ps_rng_below(&self->rng, WALK_NAMES);
    ps_principal_t principal = {.uid = of,
                                .denied = ps_rng_below(&self->rng, 3) == 0,
                                .n_rules = (uint32_t)ps_rng_below(&self->rng, 4)};

    (void)snprintf(principal.name, sizeof principal.name, "p%u", (unsigned)name);
    walk_keys(self, registry, name, &principal);
    for (uint32_t i = 0; i < principal.n_rules; i++) {
        principal.rules[i] =
            (ps_rule_t){(ps_role_t)(1 + ps_rng_below(&self->rng, PS_ROLE_END - 1)), "*", "*"};
    }
    return ps_registry_plan_principal(registry, &principal, self->unix_ms, command, err);
}

static inline psd_status_t walk_any(walk_t *self, const ps_registry_t *registry,
                                    ps_command_t *command, psd_error_t *err)
{
    uint64_t dice = ps_rng_below(&self->rng, 100);
    ps_id_t uuid = fixture_uuid();
    char name[16];

    self->unix_ms++;
    if (ps_registry_cluster(registry, NULL) == NULL) {
        return ps_registry_plan_cluster(registry, "psd", &uuid, self->unix_ms, command, err);
    }
    if (ps_registry_n_nodes(registry) == 0 || dice < 6) {
        return walk_node(self, registry, command, err);
    }
    if (dice == 6 && ps_rng_below(&self->rng, 4) == 0) {
        return ps_registry_plan_term(registry, ++self->terms, 1 + ps_rng_below(&self->rng, 3),
                                     self->unix_ms, command, err);
    }
    if (dice < 8) {
        return ps_registry_plan_sessions(registry, 10, self->unix_ms, command, err);
    }
    if (dice >= 75) {
        return walk_work(self, registry, command, err);
    }
    if (dice == 9) {
        return walk_principal(self, registry, command, err);
    }
    if (dice < 10) {
        (void)snprintf(name, sizeof name, "j%u", (unsigned)ps_rng_below(&self->rng, WALK_NAMES));
        return ps_registry_plan_stop(registry, name, self->unix_ms, command, err);
    }
    if (dice == 10) {
        return ps_registry_plan_loss(registry, self->unix_ms, command, err);
    }
    if (dice < 13) {
        return walk_resume(self, registry, command, err);
    }
    if (dice < 16) {
        return walk_mark(self, registry, command, err);
    }
    if (dice < 30) {
        return walk_table(self, registry, command, err);
    }
    return dice < 60 ? walk_join(self, registry, command, err)
                     : walk_worker(self, registry, command, err);
}

/* Plans the next step, some for a client's request. Refusals are returned;
 * command->kind is 0 when there is nothing to do. */
static inline psd_status_t walk_plan(walk_t *self, const ps_registry_t *registry,
                                     ps_command_t *command, psd_error_t *err)
{
    psd_status_t rc = walk_any(self, registry, command, err);

    if (rc == PSD_OK && command->kind != 0 && self->unix_ms % 3 == 0) {
        command->session = 1 + self->unix_ms % 5;
        command->request = self->unix_ms;
        command->detail = self->unix_ms / 2;
    }
    return rc;
}
#endif
