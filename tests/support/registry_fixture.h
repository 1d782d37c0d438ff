/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_fixture - a small cluster for tests of the registry
 *
 * What     Builds registries, nodes and tables in a line, executes a plan as a
 *          shell does (try, store, keep), and writes the whole state as text,
 *          so that two states can be compared and a difference be read.
 */
#ifndef PS_TESTS_REGISTRY_FIXTURE_H
#define PS_TESTS_REGISTRY_FIXTURE_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_queue.h"

#define FIXTURE_LOST_AFTER_MS 1000
#define FIXTURE_JOIN_WITHIN_MS 5000
#define FIXTURE_TABLES_MAX 64
#define FIXTURE_JOBS_MAX 4
#define FIXTURE_NODES_MAX 3
#define FIXTURE_COPIES_MAX 2
#define FIXTURE_SHARDS_MAX 8

static inline ps_registry_args_t fixture_args(void)
{
    return (ps_registry_args_t){.default_partitions = 4,
                                .lost_after_ms = FIXTURE_LOST_AFTER_MS,
                                .join_within_ms = FIXTURE_JOIN_WITHIN_MS,
                                .tables_max = FIXTURE_TABLES_MAX,
                                .jobs_max = FIXTURE_JOBS_MAX,
                                .nodes_max = FIXTURE_NODES_MAX};
}

static inline ps_id_t fixture_uuid(void)
{
    return (ps_id_t){.bytes = {0xC1, 1, 2, 3}};
}

/* Endpoints that contain name, incarnation and shard. shards is room for
 * them; the node borrows it. */
static inline ps_node_t fixture_node(const char *name, uint64_t incarnation, uint32_t n_shards,
                                     ps_route_t shards[FIXTURE_SHARDS_MAX])
{
    ps_node_t node = {.incarnation = incarnation, .n_shards = n_shards, .shards = shards};

    (void)snprintf(node.name, sizeof node.name, "%s", name);
    (void)snprintf(node.control, sizeof node.control, "tcp://%s:7171", name);
    for (uint32_t i = 0; i < n_shards; i++) {
        shards[i] = (ps_route_t){0};
        (void)snprintf(shards[i].tcp, sizeof shards[i].tcp, "tcp://%s:%" PRIu64 "%u", name,
                       incarnation % 1000, i);
        (void)snprintf(shards[i].ipc, sizeof shards[i].ipc, "ipc:///run/%s/%u", name, i);
    }
    return node;
}

/* 100 rows of one f32 column, by default in four partitions. */
static inline ps_table_spec_t fixture_spec(const char *name)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "%s", name);
    spec.n_rows = 100;
    return spec;
}

/* Executes a plan as a shell does. store may be NULL; takes command. */
typedef psd_status_t fixture_store_t(void *context, const ps_registry_t *registry,
                                     const ps_command_t *command, psd_error_t *err);
static inline psd_status_t fixture_do(ps_registry_t *registry, psd_status_t planned,
                                      ps_command_t *command, uint64_t now_ms,
                                      fixture_store_t *store, void *context, psd_error_t *err)
{
    psd_status_t rc = planned;

    if (rc == PSD_OK && command->kind != 0) {
        rc = ps_registry_try(registry, command, now_ms, err);
        if (rc == PSD_OK && store != NULL) {
            rc = store(context, registry, command, err);
            if (rc != PSD_OK) {
                ps_registry_undo(registry);
            }
        }
        if (rc == PSD_OK) {
            ps_registry_keep(registry);
        }
    }
    ps_command_done(command);
    return rc;
}

static inline bool fixture_dump_copies(const ps_copies_t *copies, ps_buffer_t *text)
{
    bool ok = ps_buffer_print(text, "    epoch %" PRIu64 "%s:", copies->epoch,
                              copies->fenced ? " fenced" : "");

    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];

        ok =
            ok && ps_buffer_print(text, " %" PRIu64 "/%u %s%s%s %s", copy->incarnation, copy->shard,
                                  ps_copy_state_name(copy->state), copy->leaving ? " leaving" : "",
                                  copy->dropped ? " dropped" : "", copy->tcp);
    }
    return ok && ps_buffer_append(text, "\n", 1);
}

static inline bool fixture_dump_table(const ps_table_t *table, ps_buffer_t *text)
{
    const ps_table_spec_t *spec = &table->spec;
    char updater[PS_SPEC_TEXT_SIZE];
    char init[PS_SPEC_TEXT_SIZE];
    bool ok = true;

    ps_updater_spec_format(&spec->updater, updater);
    ps_init_spec_format(&spec->init, init);
    ok = ps_buffer_print(text,
                         "table %u %s created %" PRIu64 " lost %d %d %" PRIu64 " %u rows %" PRIu64
                         " cols %u %s %s %s %s %s seed %" PRIu64
                         " parts %u slices %u replicas %u ack %s nonfinite %d versions %d "
                         "combine %s restoring %d filter \"%s\" ",
                         table->id, spec->name, table->created_unix_ms, table->rows_lost,
                         table->loss_acked, table->lost_sessions, table->lost_jobs, spec->n_rows,
                         spec->n_cols, ps_type_name(spec->type),
                         ps_row_format_name(spec->row_format), ps_keys_name(spec->keys), updater,
                         init, spec->seed, spec->n_partitions, spec->n_col_slices, spec->replicas,
                         ps_ack_name(spec->ack), spec->allow_nonfinite, spec->versions,
                         ps_combine_name(spec->combine), table->restoring, spec->filter) &&
         ps_partition_by_format(spec, text) && ps_buffer_append(text, "\n", 1);
    for (uint32_t i = 0; i < spec->n_partitions; i++) {
        const ps_route_t *route = &table->routes[i];

        ok = ok &&
             ps_buffer_print(text,
                             "  %u: epoch %" PRIu64 " incarnation %" PRIu64 " shard %u %s %s\n",
                             route->partition, route->epoch, route->incarnation, route->shard,
                             route->tcp, route->ipc) &&
             fixture_dump_copies(&table->copies[i], text);
    }
    return ok;
}

/* The next hold by session and question; NULL after the last. */
static inline const ps_work_hold_t *fixture_next_hold(const ps_queue_t *queue,
                                                      const ps_work_hold_t *before)
{
    const ps_work_hold_t *next = NULL;

    for (size_t i = 0; i < queue->n_holds; i++) {
        const ps_work_hold_t *hold = &queue->holds[i];

        if ((before == NULL || hold->session > before->session ||
             (hold->session == before->session && hold->ask > before->ask)) &&
            (next == NULL || hold->session < next->session ||
             (hold->session == next->session && hold->ask < next->ask))) {
            next = hold;
        }
    }
    return next;
}

static inline bool fixture_dump_queue(const ps_queue_t *queue, ps_buffer_t *text)
{
    const ps_work_hold_t *hold = NULL;
    bool ok = ps_buffer_print(
        text, "\n  queue %s epoch %" PRIu64 " of %" PRIu64 " done %u free from %u ", queue->name,
        queue->epoch, queue->n_epochs, queue->n_done, queue->first_free);

    for (uint32_t i = 0; i < queue->n_slices; i++) {
        ok = ok && ps_buffer_append(text, &"fgd"[queue->slices[i]], 1);
    }
    while (ok && (hold = fixture_next_hold(queue, hold)) != NULL) {
        ok = ps_buffer_print(text, "\n    %" PRIu64 ".%" PRIu64 " %d: %" PRIu64 "/%u worker %u.%u",
                             hold->session, hold->ask, (int)hold->kind, hold->epoch, hold->slice,
                             hold->worker, hold->joins);
    }
    return ok;
}

static inline bool fixture_dump_job(const ps_registry_t *self, const ps_job_t *job,
                                    ps_buffer_t *text)
{
    uint32_t n_expected = 0;
    uint64_t created = 0;
    const uint32_t *tables = NULL;
    size_t n = ps_registry_job_tables(self, job->id, &tables);
    bool ok = ps_registry_job_facts(self, job->id, &n_expected, &created) &&
              ps_buffer_print(text,
                              "job %u %s %s max_delay %d version %" PRIu64
                              " expected %u created %" PRIu64 " ended %" PRIu64 " tables",
                              job->id, job->name, ps_registry_job_state(self, job->id),
                              job->max_delay, job->version, n_expected, created,
                              ps_registry_find_job(self, job->id)->ended);

    for (size_t i = 0; i < n; i++) {
        ok = ok && ps_buffer_print(text, " %u", tables[i]);
    }
    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];

        ok = ok && ps_buffer_print(text, "\n  %u: %s members %u joins %u start %" PRIu64,
                                   worker->worker, ps_worker_state_name(worker->state),
                                   worker->n_members, worker->joins, worker->start);
    }
    for (uint32_t i = 1; ps_job_queue(ps_registry_find_job(self, job->id), i) != NULL; i++) {
        ok = ok && fixture_dump_queue(ps_job_queue(ps_registry_find_job(self, job->id), i), text);
    }
    return ok && ps_buffer_append(text, "\n", 1);
}

static inline bool fixture_dump_outcomes(const ps_registry_t *self, ps_buffer_t *text)
{
    bool ok = true;

    for (uint64_t id = 1; ok && id <= self->n_outcomes; id++) {
        const ps_outcome_t *outcome = ps_registry_outcome(self, id);

        ok = outcome == NULL || ps_buffer_print(text,
                                                "outcome %" PRIu64 " of %" PRIu64 ".%" PRIu64
                                                ": %u made %" PRIu64 " with %" PRIu64 "\n",
                                                id, outcome->session, outcome->request,
                                                outcome->kind, outcome->number, outcome->detail);
    }
    return ok;
}

static inline bool fixture_dump_principals(const ps_registry_t *self, ps_buffer_t *text)
{
    bool ok = true;

    for (size_t i = 0; ok && i < ps_registry_n_principals(self); i++) {
        const ps_principal_t *principal = ps_registry_principal_at(self, i);

        ok = ps_buffer_print(text,
                             "principal %u %s key \"%s\" uid %u%s epoch %" PRIu64
                             " old key \"%s\" until %" PRIu64 "\n",
                             principal->id, principal->name, principal->key, principal->uid,
                             principal->denied ? " denied" : "", principal->epoch,
                             principal->old_key, principal->old_until_unix_ms);
        for (uint32_t j = 0; ok && j < principal->n_rules; j++) {
            ok = ps_buffer_print(text, "  %s of \"%s\" \"%s\"\n",
                                 ps_role_word(principal->rules[j].role), principal->rules[j].tables,
                                 principal->rules[j].jobs);
        }
    }
    return ok;
}

/* The stored part of a state as text; the caller frees it (ps_free). NULL
 * when there is no memory. It leaves out `up`, which is not stored. */
static inline char *fixture_dump(const ps_registry_t *self)
{
    ps_buffer_t text = {0};
    ps_id_t uuid = {{0}};
    char uuid_text[PS_ID_TEXT_SIZE];
    char secret[PS_ID_TEXT_SIZE];
    char lineage[PS_ID_TEXT_SIZE];
    const char *cluster = ps_registry_cluster(self, &uuid);
    bool ok = true;

    ps_id_format(&uuid, uuid_text);
    ps_id_format(ps_registry_lineage(self), lineage);
    ok = ps_buffer_print(
        &text, "cluster %s %s lineage %s machine %u epoch %" PRIu64 " last table %u job %u\n",
        cluster == NULL ? "-" : cluster, uuid_text, lineage, self->cluster.sm_version,
        ps_registry_epoch(self), self->cluster.last_table, self->cluster.last_job);
    for (int id = 1; id < PS_SETTING_END; id++) {
        ok = ok && (!ps_registry_is_set(self, (ps_setting_id_t)id) ||
                    ps_buffer_print(&text, "setting %s is %" PRIu64 "\n",
                                    ps_setting_key((ps_setting_id_t)id),
                                    ps_registry_setting(self, (ps_setting_id_t)id)));
    }
    ok = ok && fixture_dump_principals(self, &text);
    for (size_t i = 0; i < ps_registry_n_nodes(self); i++) {
        const ps_node_t *node = ps_registry_node_at(self, i);

        ps_id_format(&node->secret, secret);
        ok = ok && ps_buffer_print(&text,
                                   "node %u %s started %" PRIu64 " secret %s incarnation %" PRIu64
                                   " %s weight %u%s held %u\n",
                                   node->id, node->name, node->started_unix_ms, secret,
                                   node->incarnation, node->control, node->weight,
                                   node->draining ? " draining" : "", node->held);
        for (uint32_t j = 0; j < node->n_shards; j++) {
            ok = ok && ps_buffer_print(&text, "  %u: %s %s\n", node->shards[j].shard,
                                       node->shards[j].tcp, node->shards[j].ipc);
        }
    }
    for (size_t i = 0; i < ps_registry_n_tables(self); i++) {
        ok = ok && fixture_dump_table(ps_registry_table_at(self, i), &text);
    }
    for (size_t i = 0; i < ps_registry_n_jobs(self); i++) {
        ok = ok && fixture_dump_job(self, ps_registry_job_at(self, i), &text);
    }
    ok = ok && fixture_dump_outcomes(self, &text) && ps_buffer_append(&text, "", 1);
    if (!ok) {
        ps_buffer_done(&text);
        return NULL;
    }
    return (char *)text.data; /* ownership moves to the caller */
}
#endif
