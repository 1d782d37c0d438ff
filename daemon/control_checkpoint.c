/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint create: which tables, behind which clock; list, inspect,
 * drop. */
#include "daemon/control_checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/commit.h"
#include "protocol/table_doc.h"

#define TABLES_MAX 65536
#define FORMAT 1

psd_status_t
ps_control_checkpoint_dir(const ps_control_t *self,
                          ps_buffer_t *ret,
                          psd_error_t *err)
{
    const char *dir = self->is.config->checkpoint.dir;
    bool fits = dir != NULL && dir[0] != '\0'
                    ? ps_buffer_print(ret, "%s", dir)
                    : ps_buffer_print(ret, "%s/checkpoints", self->is.dir);

    return fits ? PSD_OK : ps_control_no_memory(err);
}

psd_status_t
ps_control_ask_words(ps_control_request_t *request,
                     const ps_doc_t *words,
                     psd_error_t *err)
{
    request->words.size = 0;
    if (words == NULL || !ps_doc_print(words, &request->words) ||
        !ps_buffer_append(&request->words, "", 1)) {
        return ps_control_no_memory(err);
    }
    return ps_control_ask(request, PS_CALL_CHECKPOINT, 0);
}

psd_status_t
ps_control_read_words(const ps_control_request_t *request,
                      uint32_t i,
                      ps_doc_t **ret,
                      psd_error_t *err)
{
    const ps_shard_call_t *call = request->answers->calls[i];
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const char *text = "";
    uint64_t status = 0;
    psd_status_t rc = ps_doc_parse(
        (ps_bytes_t){call->words.data, call->words.size}, &doc, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "status", 0, UINT16_MAX, 0, &status, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "text", 1000, "", &text, err);
    }
    if (rc == PSD_OK && status != 0) {
        return psd_error_set(err, (psd_status_t)status,
                             "shard %" PRIu32 " of node %" PRIx64 ": %s",
                             call->shard, call->incarnation, text);
    }
    if (rc == PSD_OK) {
        *ret = doc;
        doc = NULL;
    }
    return rc;
}

psd_status_t
ps_control_checkpoint_is_free(ps_control_t *self, psd_error_t *err)
{
    const ps_checkpoint_work_t *work = &self->checkpoint;

    return work->number == 0 ||
                   work->looked_ms + PS_CHECKPOINT_LEASE_MS < ps_now_ms()
               ? PSD_OK
               : psd_error_set(err, PSD_BUSY,
                               "checkpoint \"%s\" is being worked on; one at a "
                               "time",
                               work->name);
}

void
ps_control_checkpoint_start(ps_control_t *self,
                            ps_checkpoint_kind_t kind,
                            const char *name,
                            ps_doc_t **manifest_p)
{
    ps_checkpoint_work_t *work = &self->checkpoint;

    ps_doc_destroy(&work->manifest);
    *work = (ps_checkpoint_work_t){.number = ++self->checkpoint_serial,
                                   .kind = kind,
                                   .manifest = *manifest_p,
                                   .looked_ms = ps_now_ms()};
    (void)snprintf(work->name, sizeof work->name, "%s", name);
    *manifest_p = NULL;
}

static psd_status_t
read_name(const ps_control_request_t *request,
          const char **ret_name,
          psd_error_t *err)
{
    psd_status_t rc =
        ps_doc_get_text(request->doc, "name", 4096, ret_name, err);

    return rc == PSD_OK ? ps_checkpoint_check_name(*ret_name, err) : rc;
}

/* ---- create ---- */

/* The job whose clocks the table's rows follow; 0: none. */
static uint32_t
job_of(const ps_control_t *self, uint32_t table)
{
    const ps_registry_t *registry = self->is.registry;
    uint32_t found = 0;

    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        const ps_job_t *job = ps_registry_job_at(registry, i);
        const uint32_t *ids = NULL;
        size_t n = ps_registry_job_tables(registry, job->id, &ids);

        for (size_t k = 0; k < n; k++) {
            if (ids[k] == table && job->max_delay >= 0 && !job->stopped &&
                strcmp(ps_registry_job_state(registry, job->id), "running") ==
                    0) {
                found = job->id;
            }
        }
    }
    return found;
}

/* All tables follow one job; so a clock of it is a boundary for all. */
static uint32_t
only_job(const ps_doc_t *tables)
{
    uint64_t only = 0;

    for (size_t i = 0; i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        uint64_t job = 0;

        if (ps_doc_at_object(tables, i, &table, NULL) != PSD_OK ||
            ps_doc_get_u64_or(table, "job", 0, UINT32_MAX, 0, &job, NULL) !=
                PSD_OK) {
            continue;
        }
        if (job != 0 && only != 0 && job != only) {
            return 0;
        }
        only = job != 0 ? job : only;
    }
    return (uint32_t)only;
}

static bool
add_table(const ps_control_t *self, const ps_table_t *table, ps_doc_t *tables)
{
    ps_doc_t *item = ps_doc_append_object(tables);
    ps_doc_t *spec = item == NULL ? NULL : ps_doc_add_object(item, "spec");

    return spec != NULL && ps_doc_set_u64(item, "id", table->id) &&
           ps_doc_set_u64(item, "job", job_of(self, table->id)) &&
           ps_table_spec_to_doc(&table->spec, spec);
}

/* Those that are named, or all. */
static psd_status_t
add_tables(const ps_control_t *self,
           const ps_doc_t *request,
           ps_doc_t *tables,
           psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    const ps_doc_t *names = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(request, "tables")) {
        for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
            if (!add_table(self, ps_registry_table_at(registry, i), tables)) {
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
                     ? psd_error_set(err, PSD_NO_TABLE,
                                     "table \"%s\" does not exist", name)
                     : PSD_OK;
        }
        if (rc == PSD_OK && !add_table(self, table, tables)) {
            rc = ps_control_no_memory(err);
        }
    }
    return rc;
}

static psd_status_t
make_manifest(const ps_control_t *self,
              const ps_control_request_t *request,
              const char *name,
              ps_doc_t **ret,
              psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    ps_doc_t *tables = NULL;
    ps_id_t uuid;
    uint32_t job = 0;
    psd_status_t rc = PSD_OK;

    (void)ps_registry_cluster(self->is.registry, &uuid);
    if (doc == NULL || !ps_doc_set_u64(doc, "format", FORMAT) ||
        !ps_doc_set_text(doc, "name", name) ||
        !ps_doc_set_id(doc, "cluster", &uuid) ||
        !ps_doc_set_u64(doc, "created_unix_ms", ps_unix_ms())) {
        return ps_control_no_memory(err);
    }
    tables = ps_doc_add_array(doc, "tables");
    rc = tables == NULL ? ps_control_no_memory(err)
                        : add_tables(self, request->doc, tables, err);
    if (rc == PSD_OK && ps_doc_count(tables) == 0) {
        rc = psd_error_set(err, PSD_NO_TABLE, "there is no table");
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

/* "tables":[{"id":…,"job":…,"clock":…},…] */
static psd_status_t
add_orders(const ps_control_t *self,
           uint64_t clock,
           ps_doc_t *words,
           psd_error_t *err)
{
    const ps_doc_t *manifest = self->checkpoint.manifest;
    ps_doc_t *orders = words == NULL ? NULL : ps_doc_add_array(words, "tables");
    const ps_doc_t *tables = NULL;
    uint64_t only = 0;
    psd_status_t rc =
        ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(manifest, "job", 0, UINT32_MAX, &only, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        ps_doc_t *item = orders == NULL ? NULL : ps_doc_append_object(orders);
        uint64_t id = 0;
        uint64_t job = 0;

        rc = ps_doc_at_object(tables, i, &table, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(table, "id", 1, UINT32_MAX, &id, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(table, "job", 0, UINT32_MAX, &job, err);
        }
        if (rc == PSD_OK &&
            (item == NULL || !ps_doc_set_u64(item, "id", id) ||
             !ps_doc_set_u64(item, "job", only == 0 ? 0 : job) ||
             !ps_doc_set_u64(item, "clock", clock))) {
            rc = ps_control_no_memory(err);
        }
    }
    return rc;
}

/* First step: what is wanted is clear; marks wait for the next one. */
static psd_status_t
arm(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    const char *name = NULL;
    psd_status_t rc = read_name(request, &name, err);

    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_is_free(self, err);
    }
    if (rc == PSD_OK) {
        rc = make_manifest(self, request, name, &manifest, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_begin(ps_disk_real(), (const char *)dir.data, name,
                                 err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_checkpoint_start(self, PS_CHECKPOINT_CREATE, name, &manifest);
    rc = words == NULL || !ps_doc_set_text(words, "do", "arm")
             ? ps_control_no_memory(err)
             : add_orders(self, 0, words, err);
    return rc == PSD_OK ? ps_control_ask_words(request, words, err) : rc;
}

/* The clock that the furthest partition of the cluster has closed. */
static psd_status_t
furthest(const ps_control_request_t *request, uint64_t *ret, psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (uint32_t i = 0; rc == PSD_OK && i < request->answers->n_calls; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;
        uint64_t clock = 0;

        rc = ps_control_read_words(request, i, &answer, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(answer, "clock", 0, UINT64_MAX, &clock, err);
        }
        *ret = clock > *ret ? clock : *ret;
    }
    return rc;
}

static psd_status_t
begin(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    ps_checkpoint_work_t *work = &self->checkpoint;
    uint64_t clock = 0;
    psd_status_t rc = furthest(request, &clock, err);

    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_path((const char *)dir.data, work->name, &path, err);
    }
    if (rc == PSD_OK &&
        (words == NULL || !ps_doc_set_text(words, "do", "begin") ||
         !ps_doc_set_u64(words, "number", work->number) ||
         !ps_doc_set_text(words, "dir", (const char *)path.data) ||
         !ps_doc_set_u64(words, "early_bytes",
                         self->is.config->checkpoint.early_bytes) ||
         !ps_doc_set_u64(work->manifest, "clock", clock))) {
        rc = ps_control_no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = add_orders(self, clock, words, err);
    }
    return rc == PSD_OK ? ps_control_ask_words(request, words, err) : rc;
}

/* All have begun, or one could not. */
static psd_status_t
check_begun(const ps_control_request_t *request, psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (uint32_t i = 0; rc == PSD_OK && i < request->answers->n_calls; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;

        rc = ps_control_read_words(request, i, &answer, err);
    }
    return rc;
}

psd_status_t
ps_control_checkpoint_create(ps_control_t *self,
                             ps_control_request_t *request,
                             psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (request->step == 0) {
        return arm(self, request, err);
    }
    rc = request->step == 1 ? begin(self, request, err)
                            : check_begun(request, err);
    if (rc != PSD_OK) {
        self->checkpoint.number = 0;
        return rc;
    }
    return request->asks || ps_doc_set_u64(request->reply, "number",
                                           self->checkpoint.number)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* ---- what it has become ---- */

/* The job whose clocks that table of the manifest follows; 0: none. */
static uint64_t
job_in(const ps_doc_t *manifest, uint64_t id)
{
    const ps_doc_t *tables = NULL;
    uint64_t job = 0;

    if (ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, NULL) !=
        PSD_OK) {
        return 0;
    }
    for (size_t i = 0; i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        uint64_t of = 0;

        if (ps_doc_at_object(tables, i, &table, NULL) == PSD_OK &&
            ps_doc_get_u64(table, "id", 1, UINT32_MAX, &of, NULL) == PSD_OK &&
            of == id) {
            return ps_doc_get_u64(table, "job", 0, UINT32_MAX, &job, NULL) ==
                           PSD_OK
                       ? job
                       : 0;
        }
    }
    return 0;
}

bool
ps_control_checkpoint_judge(ps_doc_t *manifest)
{
    const ps_doc_t *files = NULL;
    uint64_t clock = 0;
    uint64_t table = 0;
    uint64_t job = 0;
    bool is_even =
        ps_doc_get_u64(manifest, "clock", 0, UINT64_MAX, &clock, NULL) ==
            PSD_OK &&
        ps_doc_get_array(manifest, "files", TABLES_MAX, &files, NULL) == PSD_OK;

    for (size_t i = 0; is_even && i < ps_doc_count(files); i++) {
        const ps_doc_t *file = NULL;
        uint64_t of = 0;
        uint64_t at = 0;

        is_even =
            ps_doc_at_object(files, i, &file, NULL) == PSD_OK &&
            ps_doc_get_u64(file, "table", 1, UINT32_MAX, &of, NULL) == PSD_OK &&
            ps_doc_get_u64(file, "clock", 0, UINT64_MAX, &at, NULL) == PSD_OK;
        if (is_even && of != table) {
            table = of;
            job = job_in(manifest, of);
        }
        is_even = is_even && (job == 0 || at == clock);
    }
    return is_even || ps_doc_set_text(manifest, "consistent", "partition");
}

/* ---- list, inspect, drop ---- */

typedef struct listing {
    const char *dir;
    ps_doc_t *array;
} listing_t;

/* What a line of the list shows. */
static bool
add_summary(const ps_doc_t *manifest, ps_doc_t *item)
{
    const ps_doc_t *array = NULL;
    const char *consistent = "?";
    uint64_t created = 0;
    uint64_t bytes = 0;
    size_t n_tables = 0;

    if (ps_doc_get_text(manifest, "consistent", 32, &consistent, NULL) !=
            PSD_OK ||
        ps_doc_get_u64(manifest, "created_unix_ms", 0, UINT64_MAX, &created,
                       NULL) != PSD_OK ||
        ps_doc_get_u64(manifest, "bytes", 0, UINT64_MAX, &bytes, NULL) !=
            PSD_OK) {
        return ps_doc_set_text(item, "state", "damaged");
    }
    if (ps_doc_get_array(manifest, "tables", TABLES_MAX, &array, NULL) ==
        PSD_OK) {
        n_tables = ps_doc_count(array);
    }
    return ps_doc_set_text(item, "state", "whole") &&
           ps_doc_set_text(item, "consistent", consistent) &&
           ps_doc_set_u64(item, "tables", n_tables) &&
           ps_doc_set_u64(item, "bytes", bytes) &&
           ps_doc_set_u64(item, "created_unix_ms", created);
}

static psd_status_t
add_listed(void *context, const char *name, psd_error_t *err)
{
    const listing_t *self = context;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    ps_doc_t *item = ps_doc_append_object(self->array);
    bool fits = item != NULL && ps_doc_set_text(item, "name", name);
    psd_status_t rc =
        ps_checkpoint_read(ps_disk_real(), self->dir, name, &manifest, NULL);

    if (rc == PSD_OK) {
        fits = fits && add_summary(manifest, item);
    } else {
        fits = fits && ps_doc_set_text(item, "state", "damaged");
    }
    return fits ? PSD_OK : ps_control_no_memory(err);
}

psd_status_t
ps_control_checkpoint_list(ps_control_t *self,
                           ps_control_request_t *request,
                           psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    listing_t listing = {.array =
                             ps_doc_add_array(request->reply, "checkpoints")};
    psd_status_t rc = ps_control_checkpoint_dir(self, &dir, err);

    if (rc != PSD_OK || listing.array == NULL) {
        return rc != PSD_OK ? rc : ps_control_no_memory(err);
    }
    listing.dir = (const char *)dir.data;
    return ps_checkpoint_list(ps_disk_real(), listing.dir, add_listed, &listing,
                              err);
}

psd_status_t
ps_control_checkpoint_inspect(ps_control_t *self,
                              ps_control_request_t *request,
                              psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    const char *name = NULL;
    psd_status_t rc = read_name(request, &name, err);

    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_read(ps_disk_real(), (const char *)dir.data, name,
                                &manifest, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_doc_print(manifest, &text) && ps_buffer_append(&text, "", 1) &&
                   ps_doc_set_text(request->reply, "manifest",
                                   (const char *)text.data)
               ? PSD_OK
               : ps_control_no_memory(err);
}

psd_status_t
ps_control_checkpoint_drop(ps_control_t *self,
                           ps_control_request_t *request,
                           psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    const char *name = NULL;
    psd_status_t rc = read_name(request, &name, err);

    if (rc == PSD_OK && self->checkpoint.number != 0 &&
        strcmp(self->checkpoint.name, name) == 0) {
        rc = ps_control_checkpoint_is_free(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_drop(ps_disk_real(), (const char *)dir.data, name,
                                err);
    }
    return rc != PSD_OK || (ps_doc_set_text(request->reply, "name", name) &&
                            ps_doc_set_bool(request->reply, "dropped", true))
               ? rc
               : ps_control_no_memory(err);
}
