/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint create: which tables, after which clock, since which
 * earlier checkpoint. */
#include "server/checkpoints/control_checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/quorum/replica.h"
#include "protocol/facts/table_doc.h"
#include "storage/snapshot/checkpoint_chain.h"

#define TABLES_MAX 65536

/* The job whose clocks the table's rows follow; 0: none. */
static uint32_t job_of(const ps_control_t *self, uint32_t table)
{
    const ps_registry_t *registry = self->is.registry;
    uint32_t found = 0;

    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        const ps_job_t *job = ps_registry_job_at(registry, i);
        const uint32_t *ids = NULL;
        size_t n = ps_registry_job_tables(registry, job->id, &ids);

        for (size_t k = 0; k < n; k++) {
            if (ids[k] == table && job->max_delay >= 0 && !job->stopped &&
                strcmp(ps_registry_job_state(registry, job->id), "running") == 0) {
                found = job->id;
            }
        }
    }
    return found;
}

/* All tables follow one job, so a clock of that job is a boundary for all of them. */
static uint32_t only_job(const ps_doc_t *tables)
{
    uint64_t only = 0;

    for (size_t i = 0; i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        uint64_t job = 0;

        if (ps_doc_at_object(tables, i, &table, NULL) != PSD_OK ||
            ps_doc_get_u64_or(table, "job", 0, UINT32_MAX, 0, &job, NULL) != PSD_OK) {
            continue;
        }
        if (job != 0 && only != 0 && job != only) {
            return 0;
        }
        only = job != 0 ? job : only;
    }
    return (uint32_t)only;
}

static bool add_table(const ps_table_t *table, uint32_t job, ps_doc_t *tables)
{
    ps_doc_t *item = ps_doc_append_object(tables);
    ps_doc_t *spec = item == NULL ? NULL : ps_doc_add_object(item, "spec");

    return spec != NULL && ps_doc_set_u64(item, "id", table->id) &&
           ps_doc_set_u64(item, "job", job) && ps_table_spec_to_doc(&table->spec, spec);
}

/* The tables of the job whose clock is the boundary. */
static psd_status_t add_tables_of(const ps_control_t *self, const ps_job_t *job, ps_doc_t *tables,
                                  psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    const uint32_t *ids = NULL;
    size_t n = ps_registry_job_tables(registry, job->id, &ids);

    for (size_t i = 0; i < n; i++) {
        const ps_table_t *table = ps_registry_table_by_id(registry, ids[i]);

        if (!add_table(table, job->id, tables)) {
            return ps_control_no_memory(err);
        }
    }
    return PSD_OK;
}

/* The tables that the request names, or all. */
static psd_status_t add_tables(const ps_control_t *self, const ps_doc_t *request, ps_doc_t *tables,
                               psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    const ps_doc_t *names = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(request, "tables")) {
        for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
            const ps_table_t *table = ps_registry_table_at(registry, i);

            if (!add_table(table, job_of(self, table->id), tables)) {
                return ps_control_no_memory(err);
            }
        }
        return PSD_OK;
    }
    rc = ps_doc_get_array(request, "tables", TABLES_MAX, &names, err);
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(names); i++) {
        const ps_table_t *table = NULL;
        const char *name = NULL;

        rc = ps_doc_at_text(names, i, PS_NAME_MAX, &name, err);
        if (rc == PSD_OK) {
            table = ps_registry_table(registry, name);
            rc = table == NULL
                     ? psd_error_set(err, PSD_NO_TABLE, "table \"%s\" does not exist", name)
                     : PSD_OK;
        }
        if (rc == PSD_OK && !add_table(table, job_of(self, table->id), tables)) {
            rc = ps_control_no_memory(err);
        }
    }
    return rc;
}

static psd_status_t make_manifest(const ps_control_t *self, const ps_control_request_t *request,
                                  const char *name, const ps_job_t *of, /* NULL: no job's */
                                  ps_doc_t **ret, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *tables = NULL;
    ps_id_t uuid;
    uint32_t job = 0;
    psd_status_t rc = PSD_OK;

    (void)ps_registry_cluster(self->is.registry, &uuid);
    if (doc == NULL || !ps_doc_set_u64(doc, "format", PS_CHECKPOINT_FORMAT) ||
        !ps_doc_set_text(doc, "name", name) || !ps_doc_set_id(doc, "cluster", &uuid) ||
        !ps_doc_set_u64(doc, "created_unix_ms", ps_unix_ms())) {
        return ps_control_no_memory(err);
    }
    tables = ps_doc_add_array(doc, "tables");
    rc = tables == NULL ? ps_control_no_memory(err)
         : of == NULL   ? add_tables(self, request->doc, tables, err)
                        : add_tables_of(self, of, tables, err);
    if (rc == PSD_OK && ps_doc_count(tables) == 0) {
        rc = psd_error_set(err, PSD_NO_TABLE, "the cluster has no tables");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    job = only_job(tables);
    if (!ps_doc_set_u64(doc, "job", job) ||
        !ps_doc_set_text(doc, "consistent", job == 0 ? "partition" : "clock")) {
        return ps_control_no_memory(err);
    }
    *ret = doc;
    doc = NULL;
    return PSD_OK;
}

/* What the registry sends a shard about one table of the manifest. */
static psd_status_t add_order(const ps_doc_t *table, bool follows_job, uint64_t clock,
                              const ps_chain_t *parent, ps_doc_t *orders, psd_error_t *err)
{
    ps_doc_t *item = ps_doc_append_object(orders);
    const ps_doc_t *spec = NULL;
    uint64_t id = 0;
    uint64_t job = 0;
    uint64_t n_partitions = 0;
    psd_status_t rc = ps_doc_get_u64(table, "id", 1, UINT32_MAX, &id, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(table, "job", 0, UINT32_MAX, &job, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_object(table, "spec", &spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(spec, "n_partitions", 1, UINT32_MAX, &n_partitions, err);
    }
    if (rc == PSD_OK && (item == NULL || !ps_doc_set_u64(item, "id", id) ||
                         !ps_doc_set_u64(item, "job", follows_job ? job : 0) ||
                         !ps_doc_set_u64(item, "clock", clock))) {
        rc = ps_control_no_memory(err);
    }
    return rc == PSD_OK && parent->n > 0 ? ps_chain_since(parent, id, n_partitions, item, err) : rc;
}

/* "tables":[{"id":…,"job":…,"clock":…,"since":…},…] */
static psd_status_t add_orders(const ps_control_t *self, uint64_t clock, const ps_chain_t *parent,
                               ps_doc_t *words, psd_error_t *err)
{
    const ps_doc_t *manifest = self->checkpoint.manifest;
    ps_doc_t *orders = words == NULL ? NULL : ps_doc_add_array(words, "tables");
    const ps_doc_t *tables = NULL;
    uint64_t only = 0;
    psd_status_t rc = orders == NULL
                          ? ps_control_no_memory(err)
                          : ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(manifest, "job", 0, UINT32_MAX, &only, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;

        rc = ps_doc_at_object(tables, i, &table, err);
        if (rc == PSD_OK) {
            rc = add_order(table, only != 0, clock, parent, orders, err);
        }
    }
    return rc;
}

/* ---- the parent checkpoint ---- */

/* Whether a checkpoint can be built on the parent. */
static psd_status_t check_parent(const ps_control_t *self, const ps_chain_t *parent,
                                 const char *name, psd_error_t *err)
{
    ps_id_t of = {{0}};
    ps_id_t uuid;
    psd_status_t rc = ps_doc_get_id(ps_chain_manifest(parent), "cluster", &of, err);

    (void)ps_registry_cluster(self->is.registry, &uuid);
    if (rc == PSD_OK && memcmp(&of, &uuid, sizeof of) != 0) {
        return psd_error_set(
            err, PSD_INVALID,
            "checkpoint \"%s\" is of another cluster; its row versions mean nothing here", name);
    }
    if (rc == PSD_OK && parent->n >= PS_CHAIN_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "checkpoint \"%s\" needs %zu others; allowed: "
                             "%d: make one without --since",
                             name, parent->n - 1, PS_CHAIN_MAX - 2);
    }
    return rc;
}

/* Copies "since" from the request to the manifest. */
static psd_status_t name_parent(const ps_control_t *self, const ps_control_request_t *request,
                                const char *dir, ps_doc_t *manifest, psd_error_t *err)
{
    PSD_AUTO(ps_chain_done) ps_chain_t parent = {.n = 0};
    const char *name = NULL;
    ps_doc_t *since = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(request->doc, "since")) {
        return PSD_OK;
    }
    rc = ps_doc_get_text(request->doc, "since", 4096, &name, err);
    if (rc == PSD_OK) {
        rc = ps_checkpoint_check_name(name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_chain_read(&parent, ps_disk_real(), dir, name, err);
    }
    if (rc == PSD_OK) {
        rc = check_parent(self, &parent, name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    since = ps_doc_add_object(manifest, "since");
    return since != NULL && ps_doc_set_text(since, "name", name) &&
                   ps_doc_set_u64(since, "sum", ps_chain_sum(&parent))
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* The parent that the manifest names; parent stays empty when it names none. */
static psd_status_t read_parent(const ps_doc_t *manifest, const char *dir, ps_chain_t *parent,
                                psd_error_t *err)
{
    const char *name = NULL;
    uint64_t sum = 0;
    psd_status_t rc = ps_chain_parent(manifest, &name, &sum, err);

    if (rc != PSD_OK || name[0] == '\0') {
        return rc;
    }
    rc = ps_chain_read(parent, ps_disk_real(), dir, name, err);
    return rc == PSD_OK && ps_chain_sum(parent) != sum
               ? psd_error_set(err, PSD_BUSY, "checkpoint \"%s\" was replaced meanwhile", name)
               : rc;
}

/* ---- the steps ---- */

/* What an earlier try of the request has begun, and nobody will end, goes. */
static psd_status_t drop_begun(const char *dir, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    psd_status_t rc = ps_checkpoint_read(ps_disk_real(), dir, name, &manifest, NULL, NULL);

    if (rc != PSD_NO_CHECKPOINT) {
        return PSD_OK; /* it is whole, or damaged: a refusal will say so */
    }
    rc = ps_checkpoint_drop(ps_disk_real(), dir, name, err);
    if (rc == PSD_NO_CHECKPOINT) {
        psd_error_clear(err);
        return PSD_OK;
    }
    return rc;
}

/* Makes the directory, and notes it for a repetition of the request. */
static psd_status_t begin_files(ps_control_t *self, const ps_control_request_t *request,
                                const char *dir, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    bool again = request->outcome.kind == PS_COMMAND_NOTE;
    char text[sizeof command.text];
    psd_status_t rc = again ? drop_begun(dir, name, err) : PSD_OK;

    if (rc == PSD_OK) {
        rc = ps_checkpoint_begin(ps_disk_real(), dir, name, err);
    }
    if (rc != PSD_OK || again) {
        return rc;
    }
    (void)snprintf(text, sizeof text, "checkpoint %s was begun", name);
    command = ps_registry_plan_note(self->is.registry, ps_unix_ms(), text);
    rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err);
    rc = rc == PSD_OK ? ps_control_check_flushed(self, err) : rc;
    if (rc != PSD_OK) {
        psd_status_t dropped = ps_checkpoint_drop(ps_disk_real(), dir, name, NULL);

        (void)dropped; /* the first cause is reported */
    }
    return rc;
}

/* First step: the request is complete; marks wait for the next step. */
static psd_status_t arm(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    const ps_chain_t none = {.n = 0};
    const ps_job_t *job = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_control_checkpoint_name(request, &name, err);

    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_is_free(self, err);
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "job")) {
        rc = ps_control_checkpoint_find_job(self, request, &job, err);
    }
    if (rc == PSD_OK) {
        rc = make_manifest(self, request, name, job, &manifest, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = name_parent(self, request, (const char *)dir.data, manifest, err);
    }
    if (rc == PSD_OK) {
        rc = begin_files(self, request, (const char *)dir.data, name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_checkpoint_start(self, PS_CHECKPOINT_CREATE, name, &manifest);
    self->checkpoint.job = job == NULL ? 0 : job->id;
    self->checkpoint.holds_work = job != NULL;
    rc = words == NULL || !ps_doc_set_text(words, "do", "arm") ||
                 !ps_doc_set_bool(words, "exact", job != NULL)
             ? ps_control_no_memory(err)
             : add_orders(self, 0, &none, words, err);
    if (rc == PSD_OK) {
        rc = ps_control_ask_words(request, words, err);
    }
    if (rc != PSD_OK) { /* no shard was asked yet */
        psd_status_t dropped =
            ps_checkpoint_drop(ps_disk_real(), (const char *)dir.data, name, NULL);

        (void)dropped;
        ps_control_checkpoint_give_up(self);
    }
    return rc;
}

/* The clock that the furthest partition of the cluster has closed. */
static psd_status_t furthest(const ps_control_t *self, const ps_control_request_t *request,
                             uint64_t *ret, psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (uint32_t i = 0; rc == PSD_OK && i < request->answers->n; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;
        uint64_t clock = 0;

        rc = ps_control_read_words(self, request, i, &answer, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(answer, "clock", 0, UINT64_MAX, &clock, err);
        }
        *ret = clock > *ret ? clock : *ret;
    }
    return rc;
}

static psd_status_t begin(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    PSD_AUTO(ps_chain_done) ps_chain_t parent = {.n = 0};
    ps_checkpoint_work_t *work = &self->checkpoint;
    uint64_t clock = 0;
    psd_status_t rc = furthest(self, request, &clock, err);

    if (rc == PSD_OK && work->job != 0) {
        rc = ps_control_checkpoint_next_clock(self, clock, &clock, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_path((const char *)dir.data, work->name, &path, err);
    }
    if (rc == PSD_OK &&
        (words == NULL || !ps_doc_set_text(words, "do", "begin") ||
         !ps_doc_set_u64(words, "number", work->number) ||
         !ps_doc_set_bool(words, "exact", work->job != 0) ||
         !ps_doc_set_text(words, "dir", (const char *)path.data) ||
         !ps_doc_set_u64(words, "early_bytes", self->is.config->checkpoint.early_bytes) ||
         !ps_doc_set_u64(work->manifest, "clock", clock))) {
        rc = ps_control_no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = read_parent(work->manifest, (const char *)dir.data, &parent, err);
    }
    if (rc == PSD_OK) {
        rc = add_orders(self, clock, &parent, words, err);
    }
    return rc == PSD_OK ? ps_control_ask_words(request, words, err) : rc;
}

/* The next leader would look for it in its own data directory. */
static psd_status_t check_shared(const ps_control_t *self, psd_error_t *err)
{
    const char *dir = self->is.config->checkpoint.dir;

    return (dir != NULL && dir[0] != '\0') || ps_control_n_voters(self) < 2
               ? PSD_OK
               : psd_error_set(err, PSD_CONFIG,
                               "several nodes have the registry, and checkpoint.dir is not set: "
                               "give all nodes one directory that they share");
}

psd_status_t ps_control_checkpoint_create(ps_control_t *self, ps_control_request_t *request,
                                          psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (request->step == 0) {
        rc = check_shared(self, err);
        return rc == PSD_OK ? arm(self, request, err) : rc;
    }
    if (self->checkpoint.status != PSD_OK) {
        return ps_control_checkpoint_fail(self, request, PSD_OK, err);
    }
    rc =
        request->step == 1 ? begin(self, request, err) : ps_control_check_words(self, request, err);
    if (rc != PSD_OK) {
        return ps_control_checkpoint_fail(self, request, rc, err);
    }
    return request->waits.kind != 0 ||
                   ps_doc_set_u64(request->reply, "number", self->checkpoint.number)
               ? PSD_OK
               : ps_control_no_memory(err);
}
