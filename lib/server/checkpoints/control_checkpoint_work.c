/* SPDX-License-Identifier: Apache-2.0 */
/* What checkpoints and restores share: one at a time, and commands to all
 * shards. */
#include "server/checkpoints/control_checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

psd_status_t ps_control_checkpoint_name(const ps_control_request_t *request, const char **ret_name,
                                        psd_error_t *err)
{
    psd_status_t rc = ps_doc_get_text(request->doc, "name", 4096, ret_name, err);

    return rc == PSD_OK ? ps_checkpoint_check_name(*ret_name, err) : rc;
}

psd_status_t ps_control_checkpoint_dir(const ps_control_t *self, ps_buffer_t *ret, psd_error_t *err)
{
    const char *dir = self->is.config->checkpoint.dir;
    bool fits = dir != NULL && dir[0] != '\0'
                    ? ps_buffer_print(ret, "%s", dir)
                    : ps_buffer_print(ret, "%s/checkpoints", self->is.dir);

    return fits ? PSD_OK : ps_control_no_memory(err);
}

psd_status_t ps_control_ask_words(ps_control_request_t *request, const ps_doc_t *words,
                                  psd_error_t *err)
{
    request->words.size = 0;
    if (words == NULL || !ps_doc_print(words, &request->words) ||
        !ps_buffer_append(&request->words, "", 1)) {
        return ps_control_no_memory(err);
    }
    return ps_control_ask(request, PS_CALL_CHECKPOINT, 0);
}

const char *ps_control_node_of(const ps_control_t *self, const ps_control_request_t *request,
                               uint32_t i)
{
    const ps_node_t *node =
        ps_registry_node_by_incarnation(self->is.registry, request->answers->at[i].incarnation);

    return node == NULL ? "that is gone" : node->name;
}

psd_status_t ps_control_read_words(const ps_control_t *self, const ps_control_request_t *request,
                                   uint32_t i, ps_doc_t **ret, psd_error_t *err)
{
    const ps_shard_answer_t *call = &request->answers->at[i];
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const char *text = "";
    uint64_t status = 0;
    psd_status_t rc = ps_doc_parse((ps_bytes_t){call->words.data, call->words.size}, &doc, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "status", 0, UINT16_MAX, 0, &status, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "text", 1000, "", &text, err);
    }
    if (rc == PSD_OK && status != 0) {
        return psd_error_set(err, (psd_status_t)status, "shard %" PRIu32 " of node %s: %s",
                             call->shard, ps_control_node_of(self, request, i), text);
    }
    if (rc == PSD_OK) {
        *ret = doc;
        doc = NULL;
    }
    return rc;
}

psd_status_t ps_control_checkpoint_is_free(ps_control_t *self, psd_error_t *err)
{
    const ps_checkpoint_work_t *work = &self->checkpoint;

    return work->number == 0 || work->looked_ms + PS_CHECKPOINT_LEASE_MS < ps_now_ms()
               ? PSD_OK
               : psd_error_set(err, PSD_BUSY,
                               "checkpoint \"%s\" is in progress; one at a time is allowed",
                               work->name);
}

void ps_control_checkpoint_start(ps_control_t *self, ps_checkpoint_kind_t kind, const char *name,
                                 ps_doc_t **manifest_p)
{
    ps_checkpoint_work_t *work = &self->checkpoint;

    ps_doc_destroy(&work->manifest);
    *work = (ps_checkpoint_work_t){
        .number = ++self->checkpoint_serial, .kind = kind, .looked_ms = ps_now_ms()};
    (void)snprintf(work->name, sizeof work->name, "%s", name);
    if (manifest_p != NULL) {
        work->manifest = *manifest_p;
        *manifest_p = NULL;
    }
}

psd_status_t ps_control_check_words(const ps_control_t *self, const ps_control_request_t *request,
                                    psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (uint32_t i = 0; rc == PSD_OK && i < request->answers->n; i++) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *answer = NULL;

        rc = ps_control_read_words(self, request, i, &answer, err);
    }
    return rc;
}

const ps_table_t *ps_control_restored_table(const ps_control_t *self)
{
    const ps_table_t *table = ps_registry_table_by_id(self->is.registry, self->checkpoint.table);

    return table != NULL && table->restoring ? table : NULL;
}

/* Drops the half-restored table, but not another one of its name. */
void ps_control_checkpoint_give_up(ps_control_t *self)
{
    const ps_table_t *table = ps_control_restored_table(self);

    if (self->checkpoint.kind == PS_CHECKPOINT_RESTORE && table != NULL) {
        ps_control_take_table_back(self, NULL, table->spec.name);
    }
    ps_control_checkpoint_let_go(self);
    ps_control_count_checkpoint(self, false);
    self->checkpoint.number = 0;
}

psd_status_t ps_control_checkpoint_fail(ps_control_t *self, ps_control_request_t *request,
                                        psd_status_t rc, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    ps_checkpoint_work_t *work = &self->checkpoint;

    ps_control_checkpoint_let_go(self);
    if (work->status == PSD_OK) {
        work->status = rc;
        (void)snprintf(work->text, sizeof work->text, "%s", psd_error_text(err));
        words = ps_doc_new();
        if (words != NULL && ps_doc_set_text(words, "do", "end") &&
            ps_control_ask_words(request, words, NULL) == PSD_OK) {
            psd_error_clear(err);
            return PSD_OK;
        }
    }
    /* A shard that has not answered may still write. Then some files stay,
     * and the list shows them as unfinished. */
    if (ps_control_checkpoint_dir(self, &dir, NULL) == PSD_OK) {
        psd_status_t dropped =
            ps_checkpoint_drop(ps_disk_real(), (const char *)dir.data, work->name, NULL);

        (void)dropped;
    }
    ps_control_count_checkpoint(self, false);
    work->number = 0;
    psd_error_clear(err);
    return psd_error_set(err, work->status, "%s", work->text);
}

void ps_control_checkpoint_tick(ps_control_t *self)
{
    if (ps_control_checkpoint_deadline(self) < ps_now_ms()) {
        ps_log(PS_LOG_WARN, "checkpoint_given_up",
               "name=%s reason=\"no client polls its progress\"", self->checkpoint.name);
        ps_control_checkpoint_give_up(self);
    }
}

uint64_t ps_control_checkpoint_deadline(const ps_control_t *self)
{
    return self->checkpoint.number == 0 ? UINT64_MAX
                                        : self->checkpoint.looked_ms + PS_CHECKPOINT_LEASE_MS;
}
