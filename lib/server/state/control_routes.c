/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of tables for clients that get no answer from a shard: what they
 * report about the shard, and which routes are newer than theirs. */
#include "server/state/control_inner.h"

#include "protocol/facts/node_names.h"
#include "protocol/facts/table_doc.h"

#define ROUTES_MAX 256   /* tables that one request asks for */
#define SILENT_MAX 64    /* shards that one request reports as silent */
#define SILENT_NUMBERS 3 /* of each: incarnation, shard, ms since its last word */

bool ps_control_add_names(const ps_control_t *self, ps_doc_t *reply)
{
    const ps_registry_t *registry = self->is.registry;
    ps_doc_t *array = ps_doc_add_array(reply, "nodes");
    bool done = array != NULL;

    for (size_t i = 0; done && i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);

        done = ps_node_name_to_doc(node->incarnation, node->name, node->control, array);
    }
    return done;
}

static bool add_place(const ps_table_t *table, ps_doc_t *places)
{
    ps_doc_t *item = ps_doc_append_object(places);
    ps_doc_t *routes = item == NULL ? NULL : ps_doc_add_array(item, "routes");

    return routes != NULL && ps_doc_set_u64(item, "table", table->id) &&
           ps_routes_to_doc(table->routes, table->spec.n_partitions, routes);
}

/* What a client reports about silent shards. */
static psd_status_t hear_silent(ps_control_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "silent", SILENT_MAX * SILENT_NUMBERS, &array, err);

    if (rc == PSD_OK && ps_doc_count(array) % SILENT_NUMBERS != 0) {
        rc = psd_error_set(err, PSD_INVALID, "silent: %zu numbers; they come in threes",
                           ps_doc_count(array));
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i += SILENT_NUMBERS) {
        uint64_t at[SILENT_NUMBERS] = {0};

        for (size_t k = 0; rc == PSD_OK && k < SILENT_NUMBERS; k++) {
            rc = ps_doc_at_u64(array, i + k, &at[k], err);
        }
        if (rc == PSD_OK && at[1] <= UINT32_MAX) {
            (void)ps_registry_unreached(self->is.registry, at[0], (uint32_t)at[1], at[2],
                                        ps_now_ms());
        }
    }
    return rc;
}

/* Whether a client knows these routes already: compares the sum of their epochs. */
static psd_status_t is_known(const ps_table_t *table, const ps_doc_t *known, size_t at, bool *ret,
                             psd_error_t *err)
{
    uint64_t sum = 0;
    psd_status_t rc = PSD_OK;

    *ret = false;
    if (known == NULL) {
        return PSD_OK;
    }
    rc = ps_doc_at_u64(known, at, &sum, err);
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        sum -= table->routes[i].epoch;
    }
    *ret = rc == PSD_OK && sum == 0;
    return rc;
}

/* For clients of a silent shard; asks no node. */
psd_status_t ps_control_routes(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    ps_doc_t *places = ps_doc_add_array(request->reply, "places");
    ps_doc_t *gone = ps_doc_add_array(request->reply, "gone");
    const ps_doc_t *array = NULL;
    const ps_doc_t *known = NULL;
    bool fits = places != NULL && gone != NULL;
    psd_status_t rc = ps_doc_get_array(request->doc, "tables", ROUTES_MAX, &array, err);

    if (rc == PSD_OK && ps_doc_has(request->doc, "known")) {
        rc = ps_doc_get_array(request->doc, "known", ROUTES_MAX, &known, err);
    }
    if (rc == PSD_OK && known != NULL && ps_doc_count(known) != ps_doc_count(array)) {
        rc = psd_error_set(err, PSD_INVALID, "known: %zu numbers for %zu tables",
                           ps_doc_count(known), ps_doc_count(array));
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "silent")) {
        rc = hear_silent(self, request->doc, err);
    }
    for (size_t i = 0; rc == PSD_OK && fits && i < ps_doc_count(array); i++) {
        const ps_table_t *table = NULL;
        uint64_t id = 0;
        bool has = false;

        rc = ps_doc_at_u64(array, i, &id, err);
        if (rc == PSD_OK && id <= UINT32_MAX) {
            table = ps_registry_table_by_id(self->is.registry, (uint32_t)id);
        }
        if (table != NULL && request->waits.session <= table->lost_sessions) {
            return psd_error_set(err, PSD_ROWS_LOST, PS_ROWS_LOST_TEXT, table->spec.name);
        }
        if (rc == PSD_OK && table != NULL) {
            rc = is_known(table, known, i, &has, err);
        }
        fits = table == NULL ? ps_doc_append_u64(gone, id) : has || add_place(table, places);
    }
    if (fits && ps_doc_count(places) > 0) {
        fits = ps_control_add_names(self, request->reply);
    }
    return rc == PSD_OK && !fits ? ps_control_no_memory(err) : rc;
}
