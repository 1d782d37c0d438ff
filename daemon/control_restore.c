/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint restore, verify; and how far the work at hand has come. */
#include "daemon/control_checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "protocol/table_doc.h"
#include "storage/snapshot_file.h"

#define TABLES_MAX 65536
#define FILES_MAX 65536

/* ---- the words of a restore ---- */

/* The table of that name in the manifest. */
static psd_status_t
find_table(const ps_doc_t *manifest,
           const char *name,
           uint64_t *ret_id,
           const ps_doc_t **ret_spec,
           psd_error_t *err)
{
    const ps_doc_t *tables = NULL;
    psd_status_t rc =
        ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(tables); i++) {
        const ps_doc_t *item = NULL;
        const char *found = NULL;

        rc = ps_doc_at_object(tables, i, &item, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_object(item, "spec", ret_spec, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(*ret_spec, "name", PS_NAME_MAX, &found, err);
        }
        if (rc == PSD_OK && strcmp(found, name) == 0) {
            return ps_doc_get_u64(item, "id", 1, UINT32_MAX, ret_id, err);
        }
    }
    return rc == PSD_OK
               ? psd_error_set(err, PSD_NO_TABLE,
                               "the checkpoint has no table \"%s\"", name)
               : rc;
}

/* "files": those of the table; 0: of all tables. */
static psd_status_t
add_files(const ps_doc_t *manifest,
          uint64_t table,
          ps_doc_t *words,
          psd_error_t *err)
{
    static const char *const KEYS[] = {"table", "partition", "lsn", "sum",
                                       "bytes"};
    ps_doc_t *to = ps_doc_add_array(words, "files");
    const ps_doc_t *files = NULL;
    psd_status_t rc =
        ps_doc_get_array(manifest, "files", FILES_MAX, &files, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(files); i++) {
        const ps_doc_t *file = NULL;
        ps_doc_t *item = NULL;
        uint64_t of = 0;

        rc = ps_doc_at_object(files, i, &file, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(file, "table", 1, UINT32_MAX, &of, err);
        }
        if (rc != PSD_OK || (table != 0 && of != table)) {
            continue;
        }
        item = to == NULL ? NULL : ps_doc_append_object(to);
        for (size_t k = 0; rc == PSD_OK && k < sizeof KEYS / sizeof KEYS[0];
             k++) {
            uint64_t value = 0;

            rc = ps_doc_get_u64(file, KEYS[k], 0, UINT64_MAX, &value, err);
            if (rc == PSD_OK &&
                (item == NULL || !ps_doc_set_u64(item, KEYS[k], value))) {
                rc = ps_control_no_memory(err);
            }
        }
    }
    return rc;
}

/* Files of the work at hand, into a table that is here, or (table 0) only to be
 * read, by this node's first shard. */
static psd_status_t
ask_to_read(ps_control_t *self,
            ps_control_request_t *request,
            uint64_t from,
            uint64_t table,
            psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    const ps_checkpoint_work_t *work = &self->checkpoint;
    ps_id_t cluster;
    psd_status_t rc = ps_doc_get_id(work->manifest, "cluster", &cluster, err);

    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_path((const char *)dir.data, work->name, &path, err);
    }
    if (rc == PSD_OK &&
        (words == NULL || !ps_doc_set_text(words, "do", "restore") ||
         !ps_doc_set_u64(words, "number", work->number) ||
         !ps_doc_set_text(words, "dir", (const char *)path.data) ||
         !ps_doc_set_id(words, "cluster", &cluster) ||
         !ps_doc_set_u64(words, "table", table) ||
         !ps_doc_set_u64(words, "reader", self->is.incarnation))) {
        rc = ps_control_no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = add_files(work->manifest, from, words, err);
    }
    return rc == PSD_OK ? ps_control_ask_words(request, words, err) : rc;
}

/* ---- restore and verify ---- */

static psd_status_t
read_manifest(ps_control_t *self,
              const ps_control_request_t *request,
              const char **ret_name,
              ps_doc_t **ret,
              psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    psd_status_t rc =
        ps_doc_get_text(request->doc, "name", 4096, ret_name, err);

    if (rc == PSD_OK) {
        rc = ps_checkpoint_check_name(*ret_name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_is_free(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    return rc == PSD_OK
               ? ps_checkpoint_read(ps_disk_real(), (const char *)dir.data,
                                    *ret_name, ret, err)
               : rc;
}

/* The spec as it shall be. */
static psd_status_t
read_spec(const ps_doc_t *request,
          const ps_doc_t *doc,
          const char *table,
          ps_table_spec_t *ret,
          psd_error_t *err)
{
    const char *as = NULL;
    uint64_t partitions = 0;
    uint64_t replicas = 0;
    psd_status_t rc = ps_table_spec_from_doc(doc, ret, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(request, "as", PS_NAME_MAX, table, &as, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request, "partitions", 1, UINT32_MAX, 0,
                               &partitions, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request, "replicas", 1, UINT32_MAX, 0, &replicas,
                               err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(ret->name, sizeof ret->name, "%s", as);
    if (partitions != 0) {
        ret->n_partitions = (uint32_t)partitions;
        ret->n_col_slices = 0; /* chosen anew */
    }
    if (replicas != 0) {
        ret->replicas = (uint32_t)replicas;
    }
    return PSD_OK;
}

static psd_status_t
make_table(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    const ps_doc_t *doc = NULL;
    const char *name = NULL;
    const char *table = NULL;
    uint64_t id = 0;
    psd_status_t rc = read_manifest(self, request, &name, &manifest, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "table", PS_NAME_MAX, &table, err);
    }
    if (rc == PSD_OK) {
        rc = find_table(manifest, table, &id, &doc, err);
    }
    if (rc == PSD_OK) {
        rc = read_spec(request->doc, doc, table, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_make_table(self, &spec, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_checkpoint_start(self, PS_CHECKPOINT_RESTORE, name, &manifest);
    memcpy(self->checkpoint.table, spec.name, sizeof spec.name);
    request->clock = id; /* that the files are of */
    return ps_control_ask(request, PS_CALL_INSPECT, 0);
}

/* All that were asked do it, or one cannot. */
static psd_status_t
check_taken(const ps_control_request_t *request, psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (uint32_t i = 0; rc == PSD_OK && i < request->answers->n_calls; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;

        rc = ps_control_read_words(request, i, &answer, err);
    }
    return rc;
}

static psd_status_t
go_on_restore(ps_control_t *self,
              ps_control_request_t *request,
              psd_error_t *err)
{
    const ps_table_t *table =
        ps_registry_table(self->is.registry, self->checkpoint.table);
    psd_status_t rc = table == NULL
                          ? psd_error_set(err, PSD_NO_TABLE,
                                          "the table was dropped meanwhile")
                          : ps_control_check_answered(request, err);

    if (rc == PSD_OK && request->step == 1) {
        rc = ps_fleet_refusal(self->fleet, table->id, err);
        return rc == PSD_OK
                   ? ask_to_read(self, request, request->clock, table->id, err)
                   : rc;
    }
    if (rc == PSD_OK) {
        rc = check_taken(request, err);
    }
    return rc != PSD_OK || ps_doc_set_u64(request->reply, "number",
                                          self->checkpoint.number)
               ? rc
               : ps_control_no_memory(err);
}

/* Half a table must not stay. */
static void
give_up(ps_control_t *self)
{
    if (self->checkpoint.kind == PS_CHECKPOINT_RESTORE) {
        ps_control_take_table_back(self, self->checkpoint.table);
    }
    self->checkpoint.number = 0;
}

psd_status_t
ps_control_checkpoint_restore(ps_control_t *self,
                              ps_control_request_t *request,
                              psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (request->step == 0) {
        return make_table(self, request, err);
    }
    rc = go_on_restore(self, request, err);
    if (rc != PSD_OK) {
        give_up(self);
    }
    return rc;
}

psd_status_t
ps_control_checkpoint_verify(ps_control_t *self,
                             ps_control_request_t *request,
                             psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    const char *name = NULL;
    psd_status_t rc = PSD_OK;

    if (request->step > 0) {
        rc = check_taken(request, err);
        return rc != PSD_OK || ps_doc_set_u64(request->reply, "number",
                                              self->checkpoint.number)
                   ? rc
                   : ps_control_no_memory(err);
    }
    rc = read_manifest(self, request, &name, &manifest, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_checkpoint_start(self, PS_CHECKPOINT_VERIFY, name, &manifest);
    return ask_to_read(self, request, 0, 0, err);
}

/* ---- how far it is ---- */

/* What all shards have done. */
typedef struct progress {
    bool is_done;
    uint64_t row_bytes;
    uint64_t done;
    uint64_t of;
    uint64_t file_bytes;
    uint64_t n_files;
    ps_doc_t *files; /* NULL: they are not wanted */
} progress_t;

static psd_status_t
take_file(progress_t *self, const ps_doc_t *from, psd_error_t *err)
{
    static const char *const KEYS[] = {"table", "partition", "lsn",
                                       "epoch", "version",   "clock",
                                       "rows",  "bytes",     "sum"};
    ps_doc_t *item = ps_doc_append_object(self->files);
    psd_status_t rc = item == NULL ? ps_control_no_memory(err) : PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof KEYS / sizeof KEYS[0]; i++) {
        uint64_t value = 0;

        rc = ps_doc_get_u64(from, KEYS[i], 0, UINT64_MAX, &value, err);
        if (rc == PSD_OK && !ps_doc_set_u64(item, KEYS[i], value)) {
            rc = ps_control_no_memory(err);
        }
        if (strcmp(KEYS[i], "bytes") == 0) {
            self->file_bytes += value;
        }
    }
    self->n_files++;
    return rc;
}

static psd_status_t
take_answer(progress_t *self, const ps_doc_t *answer, psd_error_t *err)
{
    const ps_doc_t *items = NULL;
    bool is_done = false;
    uint64_t numbers[3] = {0};
    psd_status_t rc = ps_doc_get_bool(answer, "is_done", &is_done, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "row_bytes", 0, UINT64_MAX, &numbers[0],
                            err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "done", 0, UINT64_MAX, &numbers[1], err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "of", 0, UINT64_MAX, &numbers[2], err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(answer, "items", FILES_MAX, &items, err);
    }
    self->is_done = self->is_done && is_done;
    self->row_bytes += numbers[0];
    self->done += numbers[1];
    self->of += numbers[2];
    for (size_t i = 0;
         rc == PSD_OK && self->files != NULL && i < ps_doc_count(items); i++) {
        const ps_doc_t *item = NULL;

        rc = ps_doc_at_object(items, i, &item, err);
        if (rc == PSD_OK) {
            rc = take_file(self, item, err);
        }
    }
    return rc;
}

/* Partitions that must have a file. */
static uint64_t
n_wanted(const ps_doc_t *manifest)
{
    const ps_doc_t *tables = NULL;
    uint64_t n = 0;

    if (ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, NULL) !=
        PSD_OK) {
        return 0;
    }
    for (size_t i = 0; i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        const ps_doc_t *spec = NULL;
        uint64_t partitions = 0;

        if (ps_doc_at_object(tables, i, &table, NULL) == PSD_OK &&
            ps_doc_get_object(table, "spec", &spec, NULL) == PSD_OK &&
            ps_doc_get_u64(spec, "n_partitions", 1, UINT32_MAX, &partitions,
                           NULL) == PSD_OK) {
            n += partitions;
        }
    }
    return n;
}

/* Every file is where this node sees it: so the nodes share the directory. */
static psd_status_t
check_files(const char *path, const ps_doc_t *manifest, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = {.disk = ps_disk_real(), .dir = path};
    const ps_doc_t *files = NULL;
    psd_status_t rc =
        ps_doc_get_array(manifest, "files", FILES_MAX, &files, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(files); i++) {
        const ps_doc_t *file = NULL;
        uint64_t numbers[4] = {0};
        uint64_t bytes = 0;
        static const char *const KEYS[] = {"table", "partition", "lsn",
                                           "bytes"};

        rc = ps_doc_at_object(files, i, &file, err);
        for (size_t k = 0; rc == PSD_OK && k < 4; k++) {
            rc = ps_doc_get_u64(file, KEYS[k], 0, UINT64_MAX, &numbers[k], err);
        }
        if (rc == PSD_OK) {
            const ps_snapshot_id_t id = {.table = (uint32_t)numbers[0],
                                         .partition = (uint32_t)numbers[1],
                                         .lsn = numbers[2]};

            rc = psd_error_wrap(
                err, ps_snapshot_size(&dir, &id, &bytes, err),
                "what another node has written is not here; checkpoint.dir "
                "must be a directory that all nodes see");
        }
        if (rc == PSD_OK && bytes != numbers[3]) {
            rc = psd_error_set(err, PSD_DAMAGED,
                               "the file of partition %" PRIu64
                               " of table %" PRIu64 " has %" PRIu64
                               " bytes; written were %" PRIu64,
                               numbers[1], numbers[0], bytes, numbers[3]);
        }
    }
    return rc;
}

/* All files are written: they become a checkpoint. */
static psd_status_t
finish_create(ps_control_t *self, const progress_t *progress, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_checkpoint_work_t *work = &self->checkpoint;
    uint64_t wanted = n_wanted(work->manifest);
    psd_status_t rc = ps_control_checkpoint_dir(self, &dir, err);

    if (rc == PSD_OK) {
        rc = ps_checkpoint_path((const char *)dir.data, work->name, &path, err);
    }
    if (rc == PSD_OK && progress->n_files != wanted) {
        rc = psd_error_set(err, PSD_BUSY,
                           "%" PRIu64 " partitions were written; there are "
                           "%" PRIu64 ": some have no node that answers for "
                           "them, or have moved",
                           progress->n_files, wanted);
    }
    if (rc == PSD_OK) {
        rc = check_files((const char *)path.data, work->manifest, err);
    }
    if (rc == PSD_OK &&
        (!ps_doc_set_u64(work->manifest, "bytes", progress->file_bytes) ||
         !ps_control_checkpoint_judge(work->manifest))) {
        rc = ps_control_no_memory(err);
    }
    return rc == PSD_OK
               ? ps_checkpoint_write(ps_disk_real(), (const char *)dir.data,
                                     work->name, work->manifest, err)
               : rc;
}

static psd_status_t
sum_up(const ps_control_request_t *request,
       progress_t *progress,
       psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (uint32_t i = 0; rc == PSD_OK && i < request->answers->n_calls; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;

        rc = ps_control_read_words(request, i, &answer, err);
        if (rc == PSD_OK) {
            rc = take_answer(progress, answer, err);
        }
    }
    return rc;
}

static psd_status_t
take_look(ps_control_t *self,
          const ps_control_request_t *request,
          progress_t *progress,
          psd_error_t *err)
{
    ps_checkpoint_work_t *work = &self->checkpoint;
    bool creates = work->kind == PS_CHECKPOINT_CREATE;
    psd_status_t rc = PSD_OK;

    if (creates) {
        progress->files = ps_doc_add_array(work->manifest, "files");
        if (progress->files == NULL) {
            return ps_control_no_memory(err);
        }
    }
    rc = sum_up(request, progress, err);
    if (rc == PSD_OK && progress->is_done && creates) {
        rc = finish_create(self, progress, err);
    }
    return rc;
}

static psd_status_t
ask_look(ps_control_t *self,
         ps_control_request_t *request,
         uint64_t number,
         psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();

    if (number != self->checkpoint.number) {
        return psd_error_set(err, PSD_INVALID,
                             "checkpoint work %" PRIu64
                             " is not known any more: it was given up, or psd "
                             "was started again",
                             number);
    }
    self->checkpoint.looked_ms = ps_now_ms();
    return words == NULL || !ps_doc_set_text(words, "do", "look") ||
                   !ps_doc_set_u64(words, "number", number)
               ? ps_control_no_memory(err)
               : ps_control_ask_words(request, words, err);
}

psd_status_t
ps_control_checkpoint_look(ps_control_t *self,
                           ps_control_request_t *request,
                           psd_error_t *err)
{
    progress_t progress = {.is_done = true};
    uint64_t number = 0;
    psd_status_t rc =
        ps_doc_get_u64(request->doc, "number", 1, UINT64_MAX, &number, err);

    if (rc == PSD_OK &&
        (request->step == 0 || number != self->checkpoint.number)) {
        return ask_look(self, request, number, err);
    }
    if (rc == PSD_OK) {
        rc = take_look(self, request, &progress, err);
    }
    if (rc != PSD_OK) {
        give_up(self);
        return rc;
    }
    if (progress.is_done) {
        self->checkpoint.number = 0;
    }
    return ps_doc_set_text(request->reply, "name", self->checkpoint.name) &&
                   ps_doc_set_bool(request->reply, "is_done",
                                   progress.is_done) &&
                   ps_doc_set_u64(request->reply, "done", progress.done) &&
                   ps_doc_set_u64(request->reply, "of", progress.of) &&
                   ps_doc_set_u64(request->reply, "row_bytes",
                                  progress.row_bytes) &&
                   ps_doc_set_u64(request->reply, "file_bytes",
                                  progress.file_bytes)
               ? PSD_OK
               : ps_control_no_memory(err);
}
