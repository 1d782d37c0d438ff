/* SPDX-License-Identifier: Apache-2.0 */
/* A partition's copies in JSON, and back. */
#include "protocol/facts/copies.h"

#include <string.h>

#define WORD_MAX 32

static bool copy_to_doc(const ps_copy_t *copy, ps_doc_t *doc)
{
    return doc != NULL && ps_doc_set_u64(doc, "incarnation", copy->incarnation) &&
           ps_doc_set_u64(doc, "shard", copy->shard) &&
           ps_doc_set_text(doc, "state", ps_copy_state_name(copy->state)) &&
           (!copy->leaving || ps_doc_set_bool(doc, "leaving", true)) &&
           (!copy->dropped || ps_doc_set_bool(doc, "dropped", true)) &&
           ps_doc_set_text(doc, "tcp", copy->tcp);
}

bool ps_copies_to_doc(const ps_copies_t *self, ps_doc_t *doc)
{
    ps_doc_t *array = NULL;

    if (!ps_doc_set_u64(doc, "epoch", self->epoch) ||
        (self->fenced && !ps_doc_set_bool(doc, "fenced", true))) {
        return false;
    }
    array = ps_doc_add_array(doc, "copies");
    for (uint32_t i = 0; array != NULL && i < self->n; i++) {
        if (!copy_to_doc(&self->at[i], ps_doc_append_object(array))) {
            return false;
        }
    }
    return array != NULL;
}

static psd_status_t read_flag(const ps_doc_t *doc, const char *key, bool *ret, psd_error_t *err)
{
    return ps_doc_has(doc, key) ? ps_doc_get_bool(doc, key, ret, err) : PSD_OK;
}

static psd_status_t read_copy(const ps_doc_t *doc, ps_copy_t *copy, psd_error_t *err)
{
    const char *state = NULL;
    const char *tcp = NULL;
    uint64_t shard = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "incarnation", 0, UINT64_MAX, &copy->incarnation, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "shard", 0, UINT32_MAX, &shard, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "state", WORD_MAX, &state, err);
    }
    if (rc == PSD_OK) {
        rc = read_flag(doc, "leaving", &copy->leaving, err);
    }
    if (rc == PSD_OK) {
        rc = read_flag(doc, "dropped", &copy->dropped, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "tcp", PS_ENDPOINT_MAX, &tcp, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    copy->shard = (uint32_t)shard;
    copy->state = ps_copy_state_parse(state);
    memcpy(copy->tcp, tcp, strlen(tcp) + 1);
    return PSD_OK;
}

psd_status_t ps_copies_from_doc(const ps_doc_t *doc, ps_copies_t *ret_copies, psd_error_t *err)
{
    ps_copies_t copies = {0};
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_u64(doc, "epoch", 1, UINT64_MAX, &copies.epoch, err);

    if (rc == PSD_OK) {
        rc = read_flag(doc, "fenced", &copies.fenced, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "copies", PS_COPIES_MAX, &array, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (; copies.n < ps_doc_count(array) && rc == PSD_OK; copies.n++) {
        const ps_doc_t *item = NULL;

        rc = ps_doc_at_object(array, copies.n, &item, err);
        if (rc == PSD_OK) {
            rc = read_copy(item, &copies.at[copies.n], err);
        }
    }
    if (rc == PSD_OK) {
        rc = ps_copies_check(&copies, err);
    }
    if (rc == PSD_OK) {
        *ret_copies = copies;
    }
    return rc;
}
