/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on tables. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <string.h>

#include "server/quorum/replica.h"
#include "server/nodes/job_view.h"
#include "protocol/placement/registry_decide.h"
#include "protocol/facts/table_doc.h"

/* "table", "stats" and, for clients, "routes" and "nodes". */
static psd_status_t fill_table(ps_control_t *self, const ps_table_t *table,
                               const ps_answers_t *answers, bool with_routes, ps_doc_t *reply,
                               psd_error_t *err)
{
    ps_doc_t *doc = ps_doc_add_object(reply, "table");
    ps_doc_t *routes = NULL;

    if (doc == NULL || !ps_control_table_doc(self, table, answers, true, doc) ||
        !ps_control_stats_doc(table, answers, reply)) {
        return ps_control_no_memory(err);
    }
    if (!with_routes) {
        return PSD_OK;
    }
    routes = ps_doc_add_array(reply, "routes");
    if (routes == NULL || !ps_routes_to_doc(table->routes, table->spec.n_partitions, routes) ||
        !ps_control_add_names(self, reply)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

/* ---- updaters ---- */

psd_status_t ps_control_check_updater(const ps_control_t *self, const ps_table_spec_t *spec,
                                      psd_error_t *err)
{
    ps_table_spec_t bound = *spec; /* its boundaries stay borrowed */

    return ps_plugins_bind(self->is.plugins, &bound, err);
}

/* ---- create and drop ---- */

psd_status_t ps_control_drop_table(ps_control_t *self, const ps_control_request_t *request,
                                   const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = ps_registry_plan_drop(self->is.registry, name, ps_unix_ms(), &command, err);

    if (rc == PSD_OK && !ps_overseer_reserve(self->overseer)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory to drop a table");
    }
    if (rc == PSD_OK) {
        rc = request == NULL ? ps_control_commit(self, &command, PS_LOG_INFO, err)
                             : ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_overseer_tell_drop(self->overseer, (uint32_t)command.number);
    return PSD_OK;
}

/* A table that a shard cannot hold must not stay in the registry. */
void ps_control_take_table_back(ps_control_t *self, const ps_control_request_t *request,
                                const char *name)
{
    psd_status_t rc = ps_control_drop_table(self, request, name, NULL);

    if (rc != PSD_OK) {
        ps_log(PS_LOG_ERROR, "table_take_back_failed", "table=%s status=%s", name,
               psd_status_name(rc));
    }
}

psd_status_t ps_control_make_table(ps_control_t *self, const ps_control_request_t *request,
                                   const ps_table_spec_t *spec, bool restoring, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    uint64_t limit = self->is.config->limits.tables;
    psd_status_t rc = ps_registry_plan_table(self->is.registry, spec, ps_unix_ms(), &command, err);

    if (rc == PSD_OK) {
        rc = ps_control_check_updater(self, spec, err);
    }
    if (rc == PSD_OK && ps_registry_n_tables(self->is.registry) >= limit) {
        return psd_error_set(err, PSD_LIMIT,
                             "%" PRIu64 " tables exist; allowed: limits.tables, "
                             "which is %" PRIu64,
                             (uint64_t)ps_registry_n_tables(self->is.registry), limit);
    }
    command.table.restoring = restoring;
    if (rc == PSD_OK) {
        rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_overseer_tell_table(self->overseer, command.table.id);
    return PSD_OK;
}

/* When every node has the table, shows it; when one has not, drops it again. But
 * a table that an earlier try made may have been in use since, and is not
 * dropped. */
static psd_status_t finish_create(ps_control_t *self, const char *name,
                                  const ps_control_request_t *request, psd_error_t *err)
{
    const ps_table_t *table = ps_registry_table(self->is.registry, name);
    psd_status_t rc = PSD_OK;

    if (table == NULL || table->id != request->made) {
        return psd_error_set(err, PSD_NO_TABLE, "table \"%s\" was dropped while it was made", name);
    }
    if (request->outcome.kind != PS_COMMAND_TABLE) {
        rc = ps_control_check_answered(request, err);
    }
    if (rc == PSD_OK) {
        rc = ps_overseer_refusal(self->overseer, table->id, err);
    }
    if (rc != PSD_OK) {
        if (request->outcome.kind != PS_COMMAND_TABLE) {
            ps_control_take_table_back(self, request, name);
        }
        return rc;
    }
    return fill_table(self, table, request->answers, true, request->reply, err);
}

/* The job has opened the table: all its workers mark their clocks there from
 * now on. */
static psd_status_t open_for_job(ps_control_t *self, const ps_control_request_t *request,
                                 uint32_t table, psd_error_t *err)
{
    const ps_table_t *found = ps_registry_table_by_id(self->is.registry, table);
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_job_t *job = NULL;
    uint32_t id = 0;
    psd_status_t rc = PSD_OK;

    ps_control_end_jobs(self); /* workers that do not know of a loss yet */
    rc = ps_control_find_job(self, request->doc, &job, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_control_may_also(self, request, PS_VERB_WORK, PS_OBJECT_JOB, job->name, err);
    if (rc == PSD_OK) { /* its workers mark their clocks in it */
        rc = ps_control_may_also(self, request, PS_VERB_WRITE, PS_OBJECT_TABLE,
                                 found == NULL ? NULL : found->spec.name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    id = job->id;
    rc = ps_registry_plan_job_table(self->is.registry, id, table, ps_unix_ms(), &command, err);
    if (rc == PSD_OK) {
        ps_control_sign(self, request, &command);
        rc = ps_control_commit(self, &command, PS_LOG_INFO, err);
    }
    if (rc != PSD_OK || command.kind == 0) {
        return rc;
    }
    ps_control_job_changed(self, id);
    return PSD_OK;
}

/* True when the nodes that have just fallen silent, or were not heard yet since this
 * node leads, would be enough: they come back, or count as down soon. */
static bool has_nodes_soon(const ps_control_t *self, const ps_table_spec_t *spec)
{
    const ps_registry_t *registry = self->is.registry;
    uint64_t patience_ms =
        PS_OVERSEER_DOWN_FACTOR * ps_registry_setting(registry, PS_SETTING_SUSPECT_AFTER);
    uint64_t now_ms = ps_now_ms();
    uint32_t n = 0;

    for (size_t i = 0; i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);
        bool is_soon = now_ms < node->last_seen_ms + patience_ms;

        n += !node->draining && (node->up || is_soon) ? 1 : 0;
    }
    return n >= spec->replicas;
}

bool ps_control_may_have_nodes(const ps_control_t *self, ps_control_request_t *request,
                               const ps_table_spec_t *spec)
{
    uint64_t timeout_ms = UINT32_MAX;

    if (request->until_ms == 0) {
        psd_status_t rc = ps_doc_get_u64_or(request->doc, "timeout_ms", 0, UINT32_MAX, UINT32_MAX,
                                            &timeout_ms, NULL);

        request->until_ms = ps_now_ms() + (rc == PSD_OK ? timeout_ms : 0);
    }
    return ps_now_ms() < request->until_ms && has_nodes_soon(self, spec);
}

/* The table is made already: what came after that is done again, as far as it
 * was not. */
static psd_status_t begin_again(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    uint32_t id = (uint32_t)request->outcome.number;
    psd_status_t rc = PSD_OK;

    request->made = id; /* the audit has it, also when the rest fails */
    if (ps_doc_has(request->doc, "job") && ps_registry_table_by_id(self->is.registry, id) != NULL) {
        rc = open_for_job(self, request, id, err);
    }
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_INSPECT, 0) : rc;
}

/* First step: creates the table, and opens it for the job that the request
 * names. Tells every node of both before it asks what the node has. */
static psd_status_t begin_create(ps_control_t *self, ps_control_request_t *request,
                                 const ps_table_spec_t *spec, psd_error_t *err)
{
    const ps_job_t *job = NULL;
    bool for_job = ps_doc_has(request->doc, "job");
    uint32_t id = 0;
    psd_status_t rc = PSD_OK;

    if (for_job) {
        rc = ps_control_find_job(self, request->doc, &job, err);
    }
    if (rc == PSD_OK && for_job) {
        rc = ps_control_may_also(self, request, PS_VERB_WORK, PS_OBJECT_JOB, job->name, err);
    }
    if (rc == PSD_OK && request->outcome.kind == PS_COMMAND_TABLE) {
        return begin_again(self, request, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_make_table(self, request, spec, false, err);
    }
    if (rc == PSD_FEW_NODES && ps_control_may_have_nodes(self, request, spec)) {
        psd_error_clear(err);
        return ps_control_pause(request);
    }
    if (rc == PSD_OK) {
        id = ps_registry_table(self->is.registry, spec->name)->id;
        request->made = id; /* also when the rest fails: the table stays */
    }
    if (rc == PSD_OK && for_job) {
        rc = open_for_job(self, request, id, err);
    }
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_INSPECT, 0) : rc;
}

psd_status_t ps_control_table_create(ps_control_t *self, ps_control_request_t *request,
                                     psd_error_t *err)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    const ps_doc_t *doc = NULL;
    psd_status_t rc = ps_doc_get_object(request->doc, "spec", &doc, err);

    if (rc == PSD_OK) {
        rc = ps_table_spec_from_doc(doc, &spec, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return request->step > 0 ? finish_create(self, spec.name, request, err)
                             : begin_create(self, request, &spec, err);
}

psd_status_t ps_control_table_drop(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    const ps_table_t *table = NULL;
    bool done = request->outcome.kind == PS_COMMAND_DROP;
    ps_doc_t *doc = ps_doc_add_object(request->reply, "table");
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK && !done) {
        rc = ps_control_find_table(self, request->doc, "name", &table, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (doc == NULL || !ps_doc_set_text(doc, "name", name) ||
        !ps_doc_set_u64(doc, "id", done ? request->outcome.number : table->id) ||
        !ps_doc_set_bool(doc, "dropped", true)) {
        return ps_control_no_memory(err);
    }
    return done ? PSD_OK : ps_control_drop_table(self, request, name, err);
}

psd_status_t ps_control_table_ack(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_table_t *table = NULL;
    bool done = request->outcome.kind == PS_COMMAND_ACK; /* of the loss that was known then */
    ps_doc_t *doc = ps_doc_add_object(request->reply, "table");
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK && !done) {
        rc = ps_control_find_table(self, request->doc, "name", &table, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (doc == NULL || !ps_doc_set_text(doc, "name", name) ||
        !ps_doc_set_bool(doc, "rows_lost", done || table->rows_lost) ||
        !ps_doc_set_bool(doc, "loss_acked", done || table->rows_lost)) {
        return ps_control_no_memory(err);
    }
    if (done) {
        return PSD_OK;
    }
    rc = ps_registry_plan_ack(self->is.registry, name, ps_unix_ms(), &command, err);
    return rc == PSD_OK ? ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err) : rc;
}

/* A plug-in is asked whether it takes sums. */
static psd_status_t check_set(const ps_control_t *self, const ps_table_t *table,
                              ps_combine_t combine, psd_error_t *err)
{
    ps_table_spec_t spec = table->spec; /* what it owns is borrowed here */

    spec.combine = combine;
    return ps_plugins_bind(self->is.plugins, &spec, err);
}

/* A worker that joins after it is told after it, to each node; so none of its job's clocks is
 * closed in two ways. One may be, where a job that runs already opens the table for the first
 * time while the nodes hear of this one after the other. */
static psd_status_t commit_set(ps_control_t *self, const ps_control_request_t *request, uint32_t id,
                               ps_combine_t combine, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const char *name = ps_registry_table_by_id(self->is.registry, id)->spec.name;
    psd_status_t rc =
        ps_registry_plan_set(self->is.registry, name, combine, ps_unix_ms(), &command, err);

    if (rc == PSD_OK) {
        rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err);
    }
    if (rc == PSD_OK) {
        ps_overseer_tell_table(self->overseer, id);
    }
    return rc;
}

psd_status_t ps_control_table_set(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    const ps_table_t *table = NULL;
    bool done = request->outcome.kind == PS_COMMAND_SET;
    ps_doc_t *doc = ps_doc_add_object(request->reply, "table");
    ps_combine_t combine = PS_COMBINE_EACH;
    const char *name = NULL;
    const char *word = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "combine", PS_NAME_MAX, &word, err);
    }
    if (rc == PSD_OK) {
        rc = ps_combine_parse(word, &combine, err);
    }
    if (rc == PSD_OK && !done) {
        rc = ps_control_find_table(self, request->doc, "name", &table, err);
    }
    if (rc == PSD_OK && !done) {
        rc = check_set(self, table, combine, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (doc == NULL || !ps_doc_set_text(doc, "name", name) ||
        !ps_doc_set_text(doc, "combine", ps_combine_name(combine))) {
        return ps_control_no_memory(err);
    }
    if (done) {
        return PSD_OK;
    }
    return commit_set(self, request, table->id, combine, err);
}

/* ---- open and look ---- */

/* Creates the table to open when it does not exist. */
static psd_status_t open_new(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    const ps_doc_t *doc = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_object(request->doc, "spec", &doc, err);
    }
    if (rc == PSD_OK) {
        rc = ps_table_spec_from_doc(doc, &spec, err);
    }
    if (rc == PSD_OK && strcmp(spec.name, name) != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "spec is of \"%s\"; allowed: name, which is "
                             "\"%s\"",
                             spec.name, name);
    }
    if (rc == PSD_OK) {
        rc = ps_control_may_also(self, request, PS_VERB_CREATE, PS_OBJECT_TABLE, name, err);
    }
    return rc == PSD_OK ? begin_create(self, request, &spec, err) : rc;
}

psd_status_t ps_control_table_open(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    const ps_table_t *table = NULL;
    psd_status_t rc = ps_control_find_table(self, request->doc, "name", &table, err);
    uint32_t id = rc == PSD_OK ? table->id : 0;

    if (rc == PSD_NO_TABLE && request->step == 0 && ps_doc_has(request->doc, "spec")) {
        psd_error_clear(err);
        return open_new(self, request, err);
    }
    if (rc == PSD_OK && request->made != 0) {
        return finish_create(self, table->spec.name, request, err);
    }
    if (rc == PSD_OK && request->step > 0) {
        return fill_table(self, table, request->answers, true, request->reply, err);
    }
    if (rc == PSD_OK && ps_control_is_made(self, id)) {
        return ps_control_pause(request);
    }
    if (rc == PSD_OK) {
        rc = ps_control_check_updater(self, &table->spec, err);
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "job")) {
        rc = open_for_job(self, request, id, err);
    }
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_INSPECT, 0) : rc;
}

/* "jobs": the running jobs that have the table open. */
static bool add_jobs(const ps_registry_t *registry, const ps_table_t *table, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "jobs");
    bool done = array != NULL;

    for (size_t i = 0; done && i < ps_registry_n_jobs(registry); i++) {
        const ps_job_t *job = ps_registry_job_at(registry, i);
        const uint32_t *ids = NULL;
        size_t n = ps_registry_job_tables(registry, job->id, &ids);
        size_t at = 0;

        while (at < n && ids[at] != table->id) {
            at++;
        }
        if (at < n && ps_job_runs(registry, job)) {
            done = ps_doc_append_text(array, job->name);
        }
    }
    return done;
}

psd_status_t ps_control_table_inspect(ps_control_t *self, ps_control_request_t *request,
                                      psd_error_t *err)
{
    const ps_table_t *table = NULL;
    ps_doc_t *warnings = NULL;
    psd_status_t rc = ps_control_find_table(self, request->doc, "name", &table, err);

    if (rc == PSD_OK) {
        rc = fill_table(self, table, request->answers, false, request->reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    warnings = ps_doc_add_array(request->reply, "warnings");
    return warnings == NULL || !add_jobs(self->is.registry, table, request->reply) ||
                   !ps_control_add_memory(self, request->answers, warnings) ||
                   !ps_control_add_skew(table, request->answers, warnings)
               ? ps_control_no_memory(err)
               : PSD_OK;
}

psd_status_t ps_control_table_list(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    const ps_answers_t *answers = request->answers;
    const ps_registry_t *registry = self->is.registry;
    ps_doc_t *array = ps_doc_add_array(request->reply, "tables");

    if (array == NULL) {
        return ps_control_no_memory(err);
    }
    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);
        ps_doc_t *doc = NULL;

        if (!ps_control_sees(self, request, PS_OBJECT_TABLE, table->spec.name)) {
            continue;
        }
        doc = ps_doc_append_object(array);
        if (doc == NULL || !ps_control_table_doc(self, table, answers, false, doc) ||
            !ps_control_stats_doc(table, answers, doc)) {
            return ps_control_no_memory(err);
        }
    }
    return PSD_OK;
}

psd_status_t ps_control_add_job_tables(ps_control_t *self, const ps_job_t *job,
                                       const ps_control_request_t *request, psd_error_t *err)
{
    ps_doc_t *reply = request->reply;
    const uint32_t *ids = NULL;
    size_t n = ps_registry_job_tables(self->is.registry, job->id, &ids);
    ps_doc_t *array = ps_doc_add_array(reply, "tables");
    uint64_t version = ps_registry_job_tables_version(self->is.registry, job->id);
    bool left_out = false;

    for (size_t i = 0; array != NULL && i < n; i++) {
        const ps_table_t *table = ps_registry_table_by_id(self->is.registry, ids[i]);
        ps_doc_t *item = NULL;
        ps_doc_t *doc = NULL;
        ps_doc_t *routes = NULL;

        if (table == NULL) {
            continue; /* it was dropped */
        }
        if (table->id > request->last_table) { /* it may not exist yet */
            left_out = true;
            continue;
        }
        item = ps_doc_append_object(array);
        doc = item == NULL ? NULL : ps_doc_add_object(item, "table");
        if (doc == NULL || !ps_control_table_doc(self, table, request->answers, false, doc)) {
            return ps_control_no_memory(err);
        }
        routes = ps_doc_add_array(item, "routes");
        if (routes == NULL || !ps_routes_to_doc(table->routes, table->spec.n_partitions, routes)) {
            return ps_control_no_memory(err);
        }
    }
    return array == NULL || !ps_doc_set_u64(reply, "version", left_out ? version - 1 : version) ||
                   !ps_control_add_names(self, reply)
               ? ps_control_no_memory(err)
               : PSD_OK;
}
