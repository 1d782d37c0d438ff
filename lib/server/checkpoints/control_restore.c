/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint restore, verify. */
#include "server/checkpoints/control_checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "protocol/facts/table_doc.h"
#include "storage/snapshot/checkpoint_chain.h"

#define TABLES_MAX 65536

/* ---- the command of a restore ---- */

/* The table of that name in the manifest. */
static psd_status_t find_table(const ps_doc_t *manifest, const char *name, uint64_t *ret_id,
                               const ps_doc_t **ret_spec, psd_error_t *err)
{
    const ps_doc_t *tables = NULL;
    psd_status_t rc = ps_doc_get_array(manifest, "tables", TABLES_MAX, &tables, err);

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
               ? psd_error_set(err, PSD_NO_TABLE, "the checkpoint has no table \"%s\"", name)
               : rc;
}

/* The files of the present work, to restore into an existing table or (table
 * 0) only to be read by this node's first shard. */
static psd_status_t ask_to_read(ps_control_t *self, ps_control_request_t *request, uint64_t from,
                                uint64_t table, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_chain_done) ps_chain_t chain = {.n = 0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *words = ps_doc_new();
    ps_id_t cluster = {{0}};
    psd_status_t rc = ps_control_checkpoint_dir(self, &dir, err);

    if (rc == PSD_OK) {
        rc = ps_chain_read(&chain, ps_disk_real(), (const char *)dir.data, self->checkpoint.name,
                           err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(ps_chain_manifest(&chain), "cluster", &cluster, err);
    }
    if (rc == PSD_OK &&
        (words == NULL || !ps_doc_set_text(words, "do", "restore") ||
         !ps_doc_set_u64(words, "number", self->checkpoint.number) ||
         !ps_doc_set_id(words, "cluster", &cluster) || !ps_doc_set_u64(words, "table", table) ||
         !ps_doc_set_u64(words, "reader", self->is.incarnation))) {
        rc = ps_control_no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = ps_chain_files(&chain, from, words, err);
    }
    return rc == PSD_OK ? ps_control_ask_words(request, words, err) : rc;
}

/* ---- restore and verify ---- */

/* The checkpoint that the request names, with its parents. */
static psd_status_t read_chain(ps_control_t *self, const ps_control_request_t *request,
                               const char **ret_name, ps_chain_t *chain, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    psd_status_t rc = ps_control_checkpoint_name(request, ret_name, err);

    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_is_free(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    return rc == PSD_OK
               ? ps_chain_read(chain, ps_disk_real(), (const char *)dir.data, *ret_name, err)
               : rc;
}

/* The spec of the restored table. */
static psd_status_t read_spec(const ps_doc_t *request, const ps_doc_t *doc, const char *table,
                              ps_table_spec_t *ret, psd_error_t *err)
{
    const char *as = NULL;
    const char *ack = NULL;
    uint64_t partitions = 0;
    uint64_t replicas = 0;
    psd_status_t rc = ps_table_spec_from_doc(doc, ret, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(request, "as", PS_NAME_MAX, table, &as, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request, "partitions", 1, UINT32_MAX, 0, &partitions, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request, "replicas", 1, UINT32_MAX, 0, &replicas, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(request, "ack", 32, ps_ack_name(ret->ack), &ack, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(ret->name, sizeof ret->name, "%s", as);
    if (partitions != 0) {
        ret->n_partitions = (uint32_t)partitions;
        ret->n_col_slices = 0; /* chosen again */
    }
    if (replicas != 0) {
        ret->replicas = (uint32_t)replicas;
    }
    return psd_error_wrap(err, ps_ack_parse(ack, &ret->ack, err), "ack");
}

static psd_status_t make_table(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_chain_done) ps_chain_t chain = {.n = 0};
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    const ps_doc_t *doc = NULL;
    const char *name = NULL;
    const char *table = NULL;
    uint64_t id = 0;
    psd_status_t rc = read_chain(self, request, &name, &chain, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "table", PS_NAME_MAX, &table, err);
    }
    if (rc == PSD_OK) {
        rc = find_table(ps_chain_manifest(&chain), table, &id, &doc, err);
    }
    if (rc == PSD_OK) {
        rc = read_spec(request->doc, doc, table, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_make_table(self, request, &spec, true, err);
    }
    if (rc == PSD_FEW_NODES && ps_control_may_have_nodes(self, request, &spec)) {
        psd_error_clear(err);
        return ps_control_pause(request);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_checkpoint_start(self, PS_CHECKPOINT_RESTORE, name, NULL);
    self->checkpoint.table = ps_registry_table(self->is.registry, spec.name)->id;
    request->clock = id; /* that the files came from */
    return ps_control_ask(request, PS_CALL_INSPECT, 0);
}

static psd_status_t go_on_restore(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    const ps_table_t *table = ps_control_restored_table(self);
    psd_status_t rc = table == NULL
                          ? psd_error_set(err, PSD_NO_TABLE, "the table was dropped meanwhile")
                          : ps_control_check_answered(request, err);

    if (rc == PSD_OK && request->step == 1) {
        rc = ps_overseer_refusal(self->overseer, table->id, err);
        return rc == PSD_OK ? ask_to_read(self, request, request->clock, table->id, err) : rc;
    }
    if (rc == PSD_OK) {
        rc = ps_control_check_words(self, request, err);
    }
    return rc != PSD_OK || ps_doc_set_u64(request->reply, "number", self->checkpoint.number)
               ? rc
               : ps_control_no_memory(err);
}

static psd_status_t resume_job(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_chain_done) ps_chain_t chain = {.n = 0};
    const char *name = NULL;
    psd_status_t rc = read_chain(self, request, &name, &chain, err);

    return rc == PSD_OK
               ? ps_control_checkpoint_resume(self, request, ps_chain_manifest(&chain), err)
               : rc;
}

psd_status_t ps_control_checkpoint_restore(ps_control_t *self, ps_control_request_t *request,
                                           psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(request->doc, "job")) {
        return resume_job(self, request, err);
    }
    if (request->step == 0) {
        return make_table(self, request, err);
    }
    rc = go_on_restore(self, request, err);
    if (rc != PSD_OK) {
        ps_control_checkpoint_give_up(self);
    }
    return rc;
}

psd_status_t ps_control_checkpoint_verify(ps_control_t *self, ps_control_request_t *request,
                                          psd_error_t *err)
{
    PSD_AUTO(ps_chain_done) ps_chain_t chain = {.n = 0};
    const char *name = NULL;
    psd_status_t rc = PSD_OK;

    if (request->step > 0) {
        rc = ps_control_check_words(self, request, err);
        return rc != PSD_OK || ps_doc_set_u64(request->reply, "number", self->checkpoint.number)
                   ? rc
                   : ps_control_no_memory(err);
    }
    rc = read_chain(self, request, &name, &chain, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_checkpoint_start(self, PS_CHECKPOINT_VERIFY, name, NULL);
    return ask_to_read(self, request, 0, 0, err);
}
