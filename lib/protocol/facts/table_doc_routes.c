/* SPDX-License-Identifier: Apache-2.0 */
/* A table's routes in JSON, and back. */
#include "protocol/facts/table_doc.h"

#include <string.h>

#include "base/alloc.h"
#include "model/tables/table.h"

static bool route_to_doc(const ps_route_t *route, ps_doc_t *doc)
{
    return doc != NULL && ps_doc_set_u64(doc, "partition", route->partition) &&
           ps_doc_set_u64(doc, "epoch", route->epoch) &&
           ps_doc_set_u64(doc, "incarnation", route->incarnation) &&
           ps_doc_set_u64(doc, "shard", route->shard) && ps_doc_set_text(doc, "tcp", route->tcp) &&
           ps_doc_set_text(doc, "ipc", route->ipc);
}

bool ps_routes_to_doc(const ps_route_t *routes, uint32_t n, ps_doc_t *array)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!route_to_doc(&routes[i], ps_doc_append_object(array))) {
            return false;
        }
    }
    return true;
}

static psd_status_t read_endpoint(const ps_doc_t *doc, const char *key,
                                  char ret[PS_ENDPOINT_MAX + 1], psd_error_t *err)
{
    const char *text = NULL;
    psd_status_t rc = ps_doc_get_text(doc, key, PS_ENDPOINT_MAX, &text, err);

    if (rc == PSD_OK) {
        memcpy(ret, text, strlen(text) + 1);
    }
    return rc;
}

static psd_status_t read_route(const ps_doc_t *doc, size_t i, ps_route_t *route, psd_error_t *err)
{
    uint64_t shard = 0;
    uint64_t partition = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "partition", i, i, &partition, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "epoch", 1, UINT64_MAX, &route->epoch, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "incarnation", 0, UINT64_MAX, &route->incarnation, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "shard", 0, UINT32_MAX, &shard, err);
    }
    if (rc == PSD_OK) {
        rc = read_endpoint(doc, "tcp", route->tcp, err);
    }
    if (rc == PSD_OK) {
        rc = read_endpoint(doc, "ipc", route->ipc, err);
    }
    route->partition = (uint32_t)partition;
    route->shard = (uint32_t)shard;
    return rc;
}

psd_status_t ps_routes_from_doc(const ps_doc_t *array, ps_route_t **ret_routes, uint32_t *ret_n,
                                psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    size_t n = ps_doc_count(array);

    if (n < 1 || n > PS_TABLE_PARTITIONS_MAX) {
        return psd_error_set(err, PSD_PROTO, "the number of routes is %zu; allowed: 1..%u", n,
                             PS_TABLE_PARTITIONS_MAX);
    }
    routes = ps_alloc(n, sizeof *routes);
    if (routes == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu routes", n);
    }
    for (size_t i = 0; i < n; i++) {
        const ps_doc_t *item = NULL;
        psd_status_t rc = ps_doc_at_object(array, i, &item, err);

        if (rc == PSD_OK) {
            rc = read_route(item, i, &routes[i], err);
        }
        if (rc != PSD_OK) {
            return psd_error_wrap(err, rc, "route %zu", i);
        }
    }
    *ret_routes = routes; /* ownership moves to the caller */
    routes = NULL;
    *ret_n = (uint32_t)n;
    return PSD_OK;
}
