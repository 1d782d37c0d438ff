/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of the present work. At its end the files become a checkpoint. */
#include "server/checkpoints/control_checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "server/quorum/replica.h"
#include "storage/snapshot/snapshot_file.h"

#define TABLES_MAX 65536
#define FILES_MAX 65536

/* ---- how consistent it is ---- */

/* The job whose clocks that table of the manifest follows; 0: none. */
static uint64_t job_in(const ps_doc_t *manifest, uint64_t id)
{
    const ps_doc_t *tables = NULL;
    uint64_t job = 0;

    if (ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, NULL) != PSD_OK) {
        return 0;
    }
    for (size_t i = 0; i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        uint64_t of = 0;

        if (ps_doc_at_object(tables, i, &table, NULL) == PSD_OK &&
            ps_doc_get_u64(table, "id", 1, UINT32_MAX, &of, NULL) == PSD_OK && of == id) {
            return ps_doc_get_u64(table, "job", 0, UINT32_MAX, &job, NULL) == PSD_OK ? job : 0;
        }
    }
    return 0;
}

bool ps_control_checkpoint_judge(ps_doc_t *manifest)
{
    const ps_doc_t *files = NULL;
    uint64_t clock = 0;
    uint64_t table = 0;
    uint64_t job = 0;
    bool is_even = ps_doc_get_u64(manifest, "clock", 0, UINT64_MAX, &clock, NULL) == PSD_OK &&
                   ps_doc_get_array(manifest, "files", TABLES_MAX, &files, NULL) == PSD_OK;

    for (size_t i = 0; is_even && i < ps_doc_count(files); i++) {
        const ps_doc_t *file = NULL;
        uint64_t of = 0;
        uint64_t at = 0;

        is_even = ps_doc_at_object(files, i, &file, NULL) == PSD_OK &&
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

/* ---- progress ---- */

/* The sum over all shards. */
typedef struct progress {
    bool is_done;
    uint64_t row_bytes;
    uint64_t done;
    uint64_t of;
    uint64_t file_bytes;
    uint64_t n_files;
    uint64_t n_whole;    /* of them: with all rows */
    uint64_t n_restored; /* partitions that are being restored */
    uint64_t n_begun;    /* of those that are written */
    uint64_t n_inexact;  /* files */
    const char *node;    /* the node that answered; borrowed */
    ps_doc_t *files;     /* NULL: they are not wanted */
} progress_t;

static psd_status_t take_file(progress_t *self, const ps_doc_t *from, psd_error_t *err)
{
    static const char *const KEYS[] = {"table", "partition", "lsn",   "lsn_epoch",
                                       "epoch", "version",   "since", "clock",
                                       "exact", "rows",      "bytes", "sum"};
    ps_doc_t *item = ps_doc_append_object(self->files);
    psd_status_t rc = item == NULL || !ps_doc_set_text(item, "node", self->node)
                          ? ps_control_no_memory(err)
                          : PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof KEYS / sizeof KEYS[0]; i++) {
        uint64_t value = 0;

        rc = ps_doc_get_u64(from, KEYS[i], 0, UINT64_MAX, &value, err);
        if (rc == PSD_OK && !ps_doc_set_u64(item, KEYS[i], value)) {
            rc = ps_control_no_memory(err);
        }
        if (strcmp(KEYS[i], "bytes") == 0) {
            self->file_bytes += value;
        }
        if (strcmp(KEYS[i], "exact") == 0) {
            self->n_inexact += value == 0 ? 1 : 0;
        }
        if (strcmp(KEYS[i], "since") == 0) {
            self->n_whole += value == 0 ? 1 : 0;
        }
    }
    self->n_files++;
    return rc;
}

static psd_status_t take_answer(progress_t *self, const ps_doc_t *answer, psd_error_t *err)
{
    const ps_doc_t *items = NULL;
    bool is_done = false;
    uint64_t numbers[5] = {0};
    psd_status_t rc = ps_doc_get_bool(answer, "is_done", &is_done, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "row_bytes", 0, UINT64_MAX, &numbers[0], err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "done", 0, UINT64_MAX, &numbers[1], err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "of", 0, UINT64_MAX, &numbers[2], err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "partitions", 0, UINT64_MAX, &numbers[3], err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(answer, "begun", 0, UINT64_MAX, &numbers[4], err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(answer, "items", FILES_MAX, &items, err);
    }
    self->is_done = self->is_done && is_done;
    self->row_bytes += numbers[0];
    self->done += numbers[1];
    self->of += numbers[2];
    self->n_restored += numbers[3];
    self->n_begun += numbers[4];
    for (size_t i = 0; rc == PSD_OK && self->files != NULL && i < ps_doc_count(items); i++) {
        const ps_doc_t *item = NULL;

        rc = ps_doc_at_object(items, i, &item, err);
        if (rc == PSD_OK) {
            rc = take_file(self, item, err);
        }
    }
    return rc;
}

/* Partitions that must have a file. */
static uint64_t n_wanted(const ps_doc_t *manifest)
{
    const ps_doc_t *tables = NULL;
    uint64_t n = 0;

    if (ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, NULL) != PSD_OK) {
        return 0;
    }
    for (size_t i = 0; i < ps_doc_count(tables); i++) {
        const ps_doc_t *table = NULL;
        const ps_doc_t *spec = NULL;
        uint64_t partitions = 0;

        if (ps_doc_at_object(tables, i, &table, NULL) == PSD_OK &&
            ps_doc_get_object(table, "spec", &spec, NULL) == PSD_OK &&
            ps_doc_get_u64(spec, "n_partitions", 1, UINT32_MAX, &partitions, NULL) == PSD_OK) {
            n += partitions;
        }
    }
    return n;
}

/* Fails when two nodes took themselves for the primary of a partition. */
static psd_status_t check_once(ps_map_t *seen, uint64_t key, const ps_doc_t *file, psd_error_t *err)
{
    if (ps_map_get(seen, key) != NULL) {
        return psd_error_set(err, PSD_BUSY,
                             "partition %" PRIu64 " of table %" PRIu64
                             " was written by two nodes: it has moved",
                             key & UINT32_MAX, key >> 32);
    }
    return ps_map_put(seen, key, (void *)file) ? PSD_OK : ps_control_no_memory(err);
}

/* Every file is where this node sees it, so the nodes share the directory. */
static psd_status_t check_files(const char *path, const ps_doc_t *manifest, psd_error_t *err)
{
    const ps_snapshot_dir_t dir = {.disk = ps_disk_real(), .dir = path};
    PSD_AUTO(ps_map_done) ps_map_t seen = {.count = 0};
    const ps_doc_t *files = NULL;
    psd_status_t rc = ps_doc_get_array(manifest, "files", FILES_MAX, &files, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(files); i++) {
        const ps_doc_t *file = NULL;
        const char *node = NULL;
        uint64_t numbers[4] = {0};
        uint64_t bytes = 0;
        static const char *const KEYS[] = {"table", "partition", "lsn", "bytes"};

        rc = ps_doc_at_object(files, i, &file, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(file, "node", PS_NAME_MAX, &node, err);
        }
        for (size_t k = 0; rc == PSD_OK && k < 4; k++) {
            rc = ps_doc_get_u64(file, KEYS[k], 0, UINT64_MAX, &numbers[k], err);
        }
        if (rc == PSD_OK) {
            const ps_snapshot_id_t id = {.table = (uint32_t)numbers[0],
                                         .partition = (uint32_t)numbers[1],
                                         .lsn = numbers[2]};

            rc = psd_error_wrap(err, ps_snapshot_size(&dir, &id, &bytes, err),
                                "the files that node %s wrote are not here; checkpoint.dir must be "
                                "one directory that all nodes see",
                                node);
        }
        if (rc == PSD_OK) {
            rc = check_once(&seen, numbers[0] << 32 | numbers[1], file, err);
        }
        if (rc == PSD_OK && bytes != numbers[3]) {
            rc = psd_error_set(err, PSD_DAMAGED,
                               "the file of partition %" PRIu64 " of table %" PRIu64 " has %" PRIu64
                               " bytes; its node wrote %" PRIu64,
                               numbers[1], numbers[0], bytes, numbers[3]);
        }
    }
    return rc;
}

/* All files are written: commits them as a checkpoint. */
static psd_status_t finish_create(ps_control_t *self, const progress_t *progress, psd_error_t *err)
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
                           "%" PRIu64 " partitions were written; there are %" PRIu64
                           ": some have no node that serves them, or have moved",
                           progress->n_files, wanted);
    }
    if (rc == PSD_OK && work->job != 0 && progress->n_inexact > 0) {
        rc =
            psd_error_set(err, PSD_BUSY,
                          "%" PRIu64 " of %" PRIu64 " partitions are not right after clock %" PRIu64
                          ": the job has ended, or marks could not be held long enough; try again",
                          progress->n_inexact, progress->n_files, work->clock);
    }
    if (rc == PSD_OK) {
        rc = check_files((const char *)path.data, work->manifest, err);
    }
    if (rc == PSD_OK && (!ps_doc_set_u64(work->manifest, "bytes", progress->file_bytes) ||
                         !ps_control_checkpoint_judge(work->manifest))) {
        rc = ps_control_no_memory(err);
    }
    return rc == PSD_OK ? ps_checkpoint_write(ps_disk_real(), (const char *)dir.data, work->name,
                                              work->manifest, err)
                        : rc;
}

/* All rows have reached their level: clients may use the table. From here on
 * it stays, whatever happens. */
static psd_status_t finish_restore(ps_control_t *self, const ps_control_request_t *request,
                                   uint64_t row_bytes, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_table_t *table = ps_control_restored_table(self);
    uint32_t id = table->id; /* check_restored has seen it */
    psd_status_t rc = ps_registry_plan_restored(self->is.registry, id, ps_unix_ms(), &command, err);

    if (rc == PSD_OK) {
        rc = ps_control_commit_for(self, request, &command, row_bytes, PS_LOG_INFO, err);
    }
    if (rc == PSD_OK) {
        ps_overseer_tell_table(self->overseer, id);
    }
    return rc;
}

static psd_status_t sum_up(const ps_control_t *self, const ps_control_request_t *request,
                           progress_t *progress, psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (uint32_t i = 0; rc == PSD_OK && i < request->answers->n; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;

        rc = ps_control_read_words(self, request, i, &answer, err);
        if (rc == PSD_OK) {
            progress->node = ps_control_node_of(self, request, i);
            rc = take_answer(progress, answer, err);
        }
    }
    return rc;
}

/* One shard restores each partition; a shard that loses one reports it. */
static psd_status_t check_restored(const ps_control_t *self, const progress_t *progress,
                                   psd_error_t *err)
{
    const ps_table_t *table = ps_control_restored_table(self);

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "the table was dropped meanwhile");
    }
    return progress->n_restored == table->spec.n_partitions
               ? PSD_OK
               : psd_error_set(err, PSD_BUSY,
                               "%" PRIu64 " partitions are being restored; there are %" PRIu32
                               ": some have no node that serves them, or have moved",
                               progress->n_restored, table->spec.n_partitions);
}

static psd_status_t take_look(ps_control_t *self, const ps_control_request_t *request,
                              progress_t *progress, psd_error_t *err)
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
    rc = sum_up(self, request, progress, err);
    if (rc == PSD_OK && work->kind == PS_CHECKPOINT_RESTORE) {
        rc = check_restored(self, progress, err);
    }
    if (rc == PSD_OK && work->holds_work && progress->n_begun == progress->of) {
        rc = ps_control_checkpoint_take_job(self, err);
    }
    if (rc != PSD_OK || !progress->is_done) {
        return rc;
    }
    switch (work->kind) {
    case PS_CHECKPOINT_CREATE:
        return finish_create(self, progress, err);
    case PS_CHECKPOINT_RESTORE:
        return finish_restore(self, request, progress->row_bytes, err);
    case PS_CHECKPOINT_VERIFY:
        break;
    }
    return PSD_OK;
}

static psd_status_t ask_look(ps_control_t *self, ps_control_request_t *request, uint64_t number,
                             psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();

    if (number != self->checkpoint.number) {
        return psd_error_set(err, PSD_INVALID,
                             "checkpoint work %" PRIu64
                             " is not known: it was cancelled, or psd was restarted",
                             number);
    }
    self->checkpoint.looked_ms = ps_now_ms();
    return words == NULL || !ps_doc_set_text(words, "do", "look") ||
                   !ps_doc_set_u64(words, "number", number)
               ? ps_control_no_memory(err)
               : ps_control_ask_words(request, words, err);
}

static psd_status_t fill_look(const ps_control_t *self, const progress_t *progress, ps_doc_t *reply,
                              psd_error_t *err)
{
    return ps_doc_set_text(reply, "name", self->checkpoint.name) &&
                   ps_doc_set_bool(reply, "is_done", progress->is_done) &&
                   ps_doc_set_u64(reply, "done", progress->done) &&
                   ps_doc_set_u64(reply, "of", progress->of) &&
                   ps_doc_set_u64(reply, "row_bytes", progress->row_bytes) &&
                   ps_doc_set_u64(reply, "file_bytes", progress->file_bytes) &&
                   ps_doc_set_u64(reply, "whole", progress->n_whole)
               ? PSD_OK
               : ps_control_no_memory(err);
}

psd_status_t ps_control_checkpoint_look(ps_control_t *self, ps_control_request_t *request,
                                        psd_error_t *err)
{
    progress_t progress = {.is_done = true};
    uint64_t number = 0;
    psd_status_t rc = ps_doc_get_u64(request->doc, "number", 1, UINT64_MAX, &number, err);

    if (rc == PSD_OK && request->outcome.kind == PS_COMMAND_RESTORED) {
        progress.row_bytes = request->outcome.detail;
        return fill_look(self, &progress, request->reply, err);
    }
    if (rc == PSD_OK && (request->step == 0 || number != self->checkpoint.number)) {
        return ask_look(self, request, number, err);
    }
    if (rc == PSD_OK && self->checkpoint.status != PSD_OK) {
        return ps_control_checkpoint_fail(self, request, PSD_OK, err);
    }
    if (rc == PSD_OK) {
        rc = take_look(self, request, &progress, err);
    }
    if (rc != PSD_OK && self->checkpoint.kind == PS_CHECKPOINT_CREATE) {
        return ps_control_checkpoint_fail(self, request, rc, err);
    }
    if (rc != PSD_OK) {
        ps_control_checkpoint_give_up(self);
        return rc;
    }
    if (progress.is_done) {
        ps_control_count_checkpoint(self, true);
        self->checkpoint.number = 0;
    }
    return fill_look(self, &progress, request->reply, err);
}
