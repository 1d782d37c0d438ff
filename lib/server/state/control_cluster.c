/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster, its nodes and its history. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/nodes/job_view.h"
#include "server/state/history_text.h"

#define EVENTS_DEFAULT 1000
#define EVENTS_MAX 10000

/* What a node or a shard holds. */
typedef struct load {
    uint64_t n_primaries;
    uint64_t n_replicas;
    uint64_t bytes;
    uint64_t tail_bytes; /* of records kept for copies on other nodes */
} load_t;

static uint64_t bytes_of(const ps_shard_answer_t *call)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < call->n_partitions; i++) {
        const ps_partition_info_t *info = &call->partitions[i];

        bytes += info->bytes.values + info->bytes.state + info->bytes.index + info->held_bytes;
    }
    return bytes;
}

static void count_copies(const ps_copies_t *copies, uint64_t incarnation, load_t *load)
{
    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];

        if (copy->incarnation == incarnation) {
            load->n_primaries += copy->state == PS_COPY_PRIMARY ? 1 : 0;
            load->n_replicas += copy->state == PS_COPY_PRIMARY ? 0 : 1;
        }
    }
}

static load_t load_of_node(const ps_registry_t *registry, const ps_answers_t *answers,
                           uint64_t incarnation)
{
    load_t load = {0};

    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            count_copies(&table->copies[k], incarnation, &load);
        }
    }
    for (uint32_t i = 0; i < answers->n; i++) {
        if (answers->at[i].incarnation == incarnation) {
            load.bytes += bytes_of(&answers->at[i]);
            load.tail_bytes += answers->at[i].info.tail_bytes;
        }
    }
    return load;
}

static bool add_node(const ps_control_t *self, const ps_node_t *node, const ps_answers_t *answers,
                     ps_doc_t *doc)
{
    ps_sight_t view = ps_overseer_look(self->overseer, node, ps_now_ms());
    load_t load = load_of_node(self->is.registry, answers, node->incarnation);
    ps_doc_t *partitions = NULL;

    if (!ps_doc_set_text(doc, "name", node->name) ||
        !ps_doc_set_text(doc, "state",
                         node->draining && view.state == PS_HEALTH_UP
                             ? "draining"
                             : ps_health_name(view.state)) ||
        !ps_doc_set_u64(doc, "incarnation", node->incarnation) ||
        !ps_doc_set_u64(doc, "shards", node->n_shards) ||
        !ps_doc_set_u64(doc, "weight", node->weight == 0 ? node->n_shards : node->weight) ||
        !ps_doc_set_text(doc, "endpoint", node->control) ||
        !ps_doc_set_bool(doc, "registry", node->incarnation == self->is.incarnation) ||
        !ps_doc_set_text(doc, "member", ps_replica_role(self->is.replica, node->name)) ||
        !ps_doc_set_f64(doc, "last_seen_s", (double)view.silent_ms / 1000.0)) {
        return false;
    }
    partitions = ps_doc_add_object(doc, "partitions");
    return partitions != NULL && ps_doc_set_u64(partitions, "primary", load.n_primaries) &&
           ps_doc_set_u64(partitions, "replica", load.n_replicas) &&
           ps_doc_set_u64(doc, "bytes", load.bytes) &&
           ps_doc_set_u64(doc, "tail_bytes", load.tail_bytes);
}

static psd_status_t add_nodes(ps_control_t *self, const ps_control_request_t *request,
                              psd_error_t *err)
{
    ps_doc_t *array = ps_doc_add_array(request->reply, "nodes");

    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry); i++) {
        ps_doc_t *doc = array == NULL ? NULL : ps_doc_append_object(array);

        if (doc == NULL ||
            !add_node(self, ps_registry_node_at(self->is.registry, i), request->answers, doc)) {
            return ps_control_no_memory(err);
        }
    }
    return array == NULL ? ps_control_no_memory(err) : PSD_OK;
}

static bool add_cluster(const ps_control_t *self, bool healthy, ps_doc_t *reply)
{
    const ps_registry_t *registry = self->is.registry;
    ps_doc_t *doc = ps_doc_add_object(reply, "cluster");
    ps_id_t uuid;
    const char *name = ps_registry_cluster(registry, &uuid);

    return doc != NULL && ps_doc_set_text(doc, "name", name) && ps_doc_set_id(doc, "uuid", &uuid) &&
           ps_doc_set_u64(doc, "epoch", ps_registry_epoch(registry)) &&
           ps_doc_set_bool(doc, "healthy", healthy) &&
           ps_doc_set_text(doc, "version", PSD_RELEASE) &&
           ps_doc_set_f64(doc, "uptime_s", (double)(ps_now_ms() - self->started_ms) / 1000.0);
}

/* The registry also remembers ended jobs for a while. */
static uint64_t count_running(const ps_registry_t *registry)
{
    uint64_t n = 0;

    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        n += ps_job_runs(registry, ps_registry_job_at(registry, i)) ? 1 : 0;
    }
    return n;
}

psd_status_t ps_control_cluster_status(ps_control_t *self, ps_control_request_t *request,
                                       psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    bool any = false;
    psd_status_t rc = PSD_OK;

    if (!ps_control_add_problems(self, request, request->reply, &any) ||
        !ps_control_add_warnings(self, request->answers, request->reply) ||
        !add_cluster(self, !any, request->reply) ||
        !ps_control_add_registry(self, request->reply)) {
        return ps_control_no_memory(err);
    }
    rc = add_nodes(self, request, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_doc_set_u64(request->reply, "tables", ps_registry_n_tables(registry)) ||
        !ps_doc_set_u64(request->reply, "jobs", ps_registry_n_jobs(registry)) ||
        !ps_doc_set_u64(request->reply, "jobs_running", count_running(registry)) ||
        !ps_doc_set_u64(request->reply, "nodes_denied",
                        self->n_denied + ps_replica_n_refused(self->is.replica))) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

psd_status_t ps_control_cluster_events(ps_control_t *self, ps_control_request_t *request,
                                       psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    ps_doc_t *array = ps_doc_add_array(request->reply, "events");
    uint64_t limit = 0;
    uint64_t after = 0;
    size_t n = 0;
    psd_status_t rc =
        ps_doc_get_u64_or(request->doc, "limit", 1, EVENTS_MAX, EVENTS_DEFAULT, &limit, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "after", 0, INT64_MAX, 0, &after, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_events(self->is.db, after, (size_t)limit, &rows, &n, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        ps_doc_t *doc = array == NULL ? NULL : ps_doc_append_object(array);

        ps_history_mend(rows[i].text);
        if (doc == NULL || !ps_doc_set_u64(doc, "id", rows[i].id) ||
            !ps_doc_set_u64(doc, "unix_ms", rows[i].unix_ms) ||
            !ps_doc_set_u64(doc, "epoch", rows[i].epoch) ||
            !ps_doc_set_text(doc, "kind", rows[i].kind) ||
            !ps_doc_set_text(doc, "text", rows[i].text)) {
            return ps_control_no_memory(err);
        }
    }
    return array == NULL ? ps_control_no_memory(err) : PSD_OK;
}

psd_status_t ps_control_node_list(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    return add_nodes(self, request, err);
}

/* One object a shard, beside their number. */
static bool add_shards(const ps_node_t *node, const ps_answers_t *answers, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "shard_list");
    bool done = array != NULL;

    for (uint32_t i = 0; done && i < answers->n; i++) {
        const ps_shard_answer_t *call = &answers->at[i];
        const ps_route_t *route = NULL;
        ps_doc_t *item = NULL;

        if (call->incarnation != node->incarnation || call->shard >= node->n_shards) {
            continue;
        }
        route = &node->shards[call->shard];
        item = ps_doc_append_object(array);
        done = item != NULL && ps_doc_set_u64(item, "shard", call->shard) &&
               ps_doc_set_text(item, "tcp", route->tcp) &&
               ps_doc_set_text(item, "ipc", route->ipc) &&
               ps_doc_set_u64(item, "sessions", call->info.sessions) &&
               ps_doc_set_u64(item, "held_requests", call->info.held_requests) &&
               ps_doc_set_u64(item, "held_bytes", call->info.held_bytes) &&
               ps_doc_set_u64(item, "refused", call->info.refused) &&
               ps_doc_set_u64(item, "partitions", call->n_partitions) &&
               ps_doc_set_u64(item, "bytes", bytes_of(call)) &&
               ps_doc_set_u64(item, "tail_bytes", call->info.tail_bytes);
    }
    return done;
}

/* Tables that lose rows when the node is removed, of how many partitions, and of how many
 * of those nodes that are down have copies. */
static bool add_last(const ps_registry_t *registry, const ps_node_t *node, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "last_copies");
    bool done = array != NULL;

    for (size_t i = 0; done && i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);
        const ps_last_t last = ps_registry_last_copies(registry, table, node);

        if (last.n > 0) {
            ps_doc_t *item = ps_doc_append_object(array);

            done = item != NULL && ps_doc_set_text(item, "table", table->spec.name) &&
                   ps_doc_set_u64(item, "partitions", last.n) &&
                   ps_doc_set_u64(item, "down", last.n_down);
        }
    }
    return done;
}

psd_status_t ps_control_node_inspect(ps_control_t *self, ps_control_request_t *request,
                                     psd_error_t *err)
{
    const ps_node_t *node = NULL;
    const char *name = NULL;
    ps_doc_t *doc = ps_doc_add_object(request->reply, "node");
    psd_status_t rc = ps_doc_get_text(request->doc, "name", 255, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    node = ps_registry_node(self->is.registry, name);
    if (node == NULL) {
        char shown[128];

        return psd_error_set(err, PSD_NO_NODE, "node %s does not exist",
                             ps_log_quote(name, shown, sizeof shown));
    }
    if (doc == NULL || !add_node(self, node, request->answers, doc) ||
        !add_shards(node, request->answers, doc) || !add_last(self->is.registry, node, doc)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}
