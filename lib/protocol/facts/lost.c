/* SPDX-License-Identifier: Apache-2.0 */
/* A node's damaged copies, in JSON and back. */
#include "protocol/facts/lost.h"

#include "base/alloc.h"

bool ps_lost_has(const ps_lost_t *lost, size_t n, uint32_t shard, uint32_t table,
                 uint32_t partition)
{
    for (size_t i = 0; i < n; i++) {
        if (lost[i].shard == shard &&
            (lost[i].table == 0 ||
             (lost[i].table == table && partition >= lost[i].first && partition <= lost[i].last))) {
            return true;
        }
    }
    return false;
}

bool ps_lost_to_doc(const ps_lost_t *lost, size_t n, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "lost");
    bool done = array != NULL;

    for (size_t i = 0; done && i < n; i++) {
        ps_doc_t *item = ps_doc_append_object(array);

        done = item != NULL && ps_doc_set_u64(item, "shard", lost[i].shard) &&
               ps_doc_set_u64(item, "table", lost[i].table) &&
               ps_doc_set_u64(item, "first", lost[i].first) &&
               ps_doc_set_u64(item, "last", lost[i].last);
    }
    return done;
}

static psd_status_t read_number(const ps_doc_t *doc, const char *key, uint32_t least, uint32_t *ret,
                                psd_error_t *err)
{
    uint64_t number = 0;
    psd_status_t rc = ps_doc_get_u64(doc, key, least, UINT32_MAX, &number, err);

    *ret = (uint32_t)number;
    return rc;
}

static psd_status_t read_one(const ps_doc_t *doc, ps_lost_t *ret, psd_error_t *err)
{
    psd_status_t rc = read_number(doc, "shard", 0, &ret->shard, err);

    if (rc == PSD_OK) {
        rc = read_number(doc, "table", 0, &ret->table, err);
    }
    if (rc == PSD_OK) {
        rc = read_number(doc, "first", 0, &ret->first, err);
    }
    return rc == PSD_OK ? read_number(doc, "last", ret->first, &ret->last, err) : rc;
}

psd_status_t ps_lost_from_doc(const ps_doc_t *doc, ps_lost_t **ret_lost, size_t *ret_n,
                              psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_lost_t *lost = NULL;
    const ps_doc_t *array = NULL;
    psd_status_t rc = PSD_OK;

    *ret_lost = NULL;
    *ret_n = 0;
    if (!ps_doc_has(doc, "lost")) {
        return PSD_OK;
    }
    rc = ps_doc_get_array(doc, "lost", PS_LOST_MAX, &array, err);
    if (rc == PSD_OK && ps_doc_count(array) > 0) {
        lost = ps_alloc(ps_doc_count(array), sizeof *lost);
        rc = lost != NULL ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for \"lost\"");
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i++) {
        const ps_doc_t *item = NULL;

        rc = ps_doc_at_object(array, i, &item, err);
        if (rc == PSD_OK) {
            rc = read_one(item, &lost[i], err);
        }
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_n = ps_doc_count(array);
    *ret_lost = lost;
    lost = NULL;
    return PSD_OK;
}
