/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that nodes keep aside: listed, accepted, discarded. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/control/unknown.h"
#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

#define MISSING_SHOWN 64 /* partitions that nobody has, in an answer */

/* ---- what there is ---- */

static bool has_node(const ps_unknown_t *table, uint64_t incarnation)
{
    for (size_t i = 0; i < table->n_found; i++) {
        if (table->found[i].incarnation == incarnation) {
            return true;
        }
    }
    return false;
}

static bool add_nodes(const ps_control_t *self, const ps_unknown_t *table, ps_doc_t *doc)
{
    ps_doc_t *nodes = ps_doc_add_array(doc, "nodes");
    bool done = nodes != NULL;

    for (size_t i = 0; done && i < ps_registry_n_nodes(self->is.registry); i++) {
        const ps_node_t *node = ps_registry_node_at(self->is.registry, i);

        done = !has_node(table, node->incarnation) || ps_doc_append_text(nodes, node->name);
    }
    return done;
}

/* Partitions, those that nobody has, and what the best copies have. */
static bool add_sums(const ps_unknown_t *table, ps_doc_t *doc)
{
    uint64_t rows = 0;
    uint64_t bytes = 0;
    uint32_t n_found = 0;
    ps_doc_t *missing = ps_doc_add_array(doc, "missing");
    bool done = missing != NULL;

    for (uint32_t i = 0; done && i < table->spec.n_partitions; i++) {
        const ps_found_t *best = ps_found_best(table->found, table->n_found, i);

        if (best == NULL) {
            done = i - n_found >= MISSING_SHOWN || ps_doc_append_u64(missing, i);
        } else {
            n_found++;
            rows += best->rows;
            bytes += best->bytes;
        }
    }
    return done && ps_doc_set_u64(doc, "partitions", table->spec.n_partitions) &&
           ps_doc_set_u64(doc, "found", n_found) && ps_doc_set_u64(doc, "rows", rows) &&
           ps_doc_set_u64(doc, "bytes", bytes);
}

static bool add_table(const ps_control_t *self, const ps_unknown_t *table, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_u64(doc, "id", table->id) &&
           ps_doc_set_text(doc, "name", table->spec.name) &&
           ps_doc_set_text(doc, "ack", ps_ack_name(table->spec.ack)) &&
           ps_doc_set_u64(doc, "replicas", table->spec.replicas) && add_sums(table, doc) &&
           add_nodes(self, table, doc);
}

psd_status_t ps_control_registry_unknown(ps_control_t *self, ps_control_request_t *request,
                                         psd_error_t *err)
{
    PSD_AUTO(ps_unknowns_done) ps_unknowns_t unknowns = {0};
    ps_doc_t *array = NULL;
    psd_status_t rc = PSD_OK;

    if (request->step == 0) {
        return ps_control_ask(request, PS_CALL_UNKNOWN, 0);
    }
    rc = ps_unknowns_gather(request->answers, &unknowns, err);
    if (rc != PSD_OK) {
        return rc;
    }
    array = ps_doc_add_array(request->reply, "tables");
    for (size_t i = 0; array != NULL && i < unknowns.n; i++) {
        array = add_table(self, &unknowns.at[i], array) ? array : NULL;
    }
    return array != NULL && ps_doc_set_text(request->reply, "missing", request->missing)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* ---- accepted ---- */

typedef struct wish {
    const char *name; /* of one table; NULL: all */
    bool with_loss;
    bool dry_run;
} wish_t;

static psd_status_t read_wish(const ps_doc_t *doc, wish_t *wish, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(doc, "name")) {
        rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, &wish->name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(doc, "accept_loss", &wish->with_loss, err);
    }
    return rc == PSD_OK ? ps_doc_get_switch(doc, "dry_run", &wish->dry_run, err) : rc;
}

/* A node that does not answer may have newer copies than those that do. */
static psd_status_t check_all_here(const ps_control_t *self, const ps_control_request_t *request,
                                   const wish_t *wish, psd_error_t *err)
{
    if (wish->with_loss) {
        return PSD_OK;
    }
    if (request->missing[0] != '\0') {
        return psd_error_set(err, PSD_BUSY, "%s", request->missing);
    }
    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry); i++) {
        const ps_node_t *node = ps_registry_node_at(self->is.registry, i);

        if (ps_overseer_look(self->overseer, node, ps_now_ms()).state != PS_HEALTH_UP) {
            return psd_error_set(err, PSD_BUSY,
                                 "node \"%s\" is not up, and may have newer copies; start it, "
                                 "remove it (pscli node remove), or use --accept-loss",
                                 node->name);
        }
    }
    return PSD_OK;
}

static psd_status_t accept_one(ps_control_t *self, const ps_control_request_t *request,
                               const ps_unknown_t *table, const wish_t *wish, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_accept_t accept = {.table = table->id,
                                .spec = &table->spec,
                                .found = table->found,
                                .n_found = table->n_found,
                                .with_loss = wish->with_loss};
    psd_status_t rc =
        ps_registry_plan_accept(self->is.registry, &accept, ps_unix_ms(), &command, err);

    if (rc == PSD_OK) {
        rc = ps_control_check_updater(self, &table->spec, err);
    }
    if (rc != PSD_OK || wish->dry_run) {
        return rc;
    }
    if (wish->name != NULL) {
        rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_WARN, err);
    } else {
        ps_control_sign(self, request, &command);
        rc = ps_control_commit(self, &command, PS_LOG_WARN, err);
    }
    if (rc == PSD_OK) {
        ps_overseer_tell_table(self->overseer, table->id);
    }
    return rc;
}

static bool add_refused(const ps_unknown_t *table, const psd_error_t *err, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_u64(doc, "id", table->id) &&
           ps_doc_set_text(doc, "name", table->spec.name) &&
           ps_doc_set_text(doc, "why", psd_error_text(err));
}

/* One that cannot be accepted stops none of the others, but is the answer when it alone is
 * asked for. */
static psd_status_t accept_all(ps_control_t *self, const ps_control_request_t *request,
                               const ps_unknowns_t *unknowns, const wish_t *wish, psd_error_t *err)
{
    ps_doc_t *tables = ps_doc_add_array(request->reply, "tables");
    ps_doc_t *refused = ps_doc_add_array(request->reply, "refused");
    const ps_unknown_t *only = NULL;
    psd_status_t rc = tables == NULL || refused == NULL ? ps_control_no_memory(err) : PSD_OK;

    if (rc == PSD_OK && wish->name != NULL) {
        rc = ps_unknowns_find(unknowns, wish->name, &only, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < unknowns->n; i++) {
        const ps_unknown_t *table = &unknowns->at[i];

        if (only != NULL && table != only) {
            continue;
        }
        rc = accept_one(self, request, table, wish, err);
        if (rc == PSD_OK) {
            rc = add_table(self, table, tables) ? PSD_OK : ps_control_no_memory(err);
        } else if (only == NULL && rc != PSD_IO && rc != PSD_NOT_LEADER && rc != PSD_NOMEM) {
            rc = add_refused(table, err, refused) ? PSD_OK : ps_control_no_memory(err);
            psd_error_clear(err);
        }
    }
    return rc;
}

/* The nodes have the tables now, or say why not. */
static psd_status_t check_taken(const ps_control_t *self, const ps_control_request_t *request,
                                psd_error_t *err)
{
    psd_status_t rc = ps_control_check_answered(request, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_registry_n_tables(self->is.registry); i++) {
        rc = ps_overseer_refusal(self->overseer, ps_registry_table_at(self->is.registry, i)->id,
                                 err);
    }
    return rc;
}

psd_status_t ps_control_registry_accept(ps_control_t *self, ps_control_request_t *request,
                                        psd_error_t *err)
{
    PSD_AUTO(ps_unknowns_done) ps_unknowns_t unknowns = {0};
    wish_t wish = {.name = NULL};
    psd_status_t rc = read_wish(request->doc, &wish, err);

    request->was_dry = wish.dry_run;
    if (rc != PSD_OK) {
        return rc;
    }
    if (request->step == 0) {
        return ps_control_ask(request, PS_CALL_UNKNOWN, 0);
    }
    if (request->step > 1 || request->outcome.kind == PS_COMMAND_TABLE) {
        return check_taken(self, request, err);
    }
    rc = check_all_here(self, request, &wish, err);
    if (rc == PSD_OK) {
        rc = ps_unknowns_gather(request->answers, &unknowns, err);
    }
    if (rc == PSD_OK) {
        rc = accept_all(self, request, &unknowns, &wish, err);
    }
    return rc == PSD_OK && !wish.dry_run ? ps_control_ask(request, PS_CALL_UNKNOWN, 0) : rc;
}

/* ---- discarded ---- */

/* A node hears only the table's number. */
static psd_status_t check_alone(const ps_unknowns_t *unknowns, const ps_unknown_t *table,
                                psd_error_t *err)
{
    for (size_t i = 0; i < unknowns->n; i++) {
        if (&unknowns->at[i] != table && unknowns->at[i].id == table->id) {
            return psd_error_set(err, PSD_TABLE_EXISTS,
                                 "nodes keep table \"%s\" aside under the same number %" PRIu32
                                 "; remove the nodes that keep the other",
                                 unknowns->at[i].spec.name, table->id);
        }
    }
    return PSD_OK;
}

static psd_status_t discard(ps_control_t *self, const ps_control_request_t *request,
                            const ps_unknown_t *table, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_table_t *other = ps_registry_table_by_id(self->is.registry, table->id);
    char text[sizeof command.text];
    psd_status_t rc = PSD_OK;

    if (other != NULL) {
        return psd_error_set(err, PSD_TABLE_EXISTS,
                             "table \"%s\" has the number %" PRIu32
                             "; drop that one, or remove the node that keeps the other aside",
                             other->spec.name, other->id);
    }
    if (!ps_overseer_reserve(self->overseer)) {
        return ps_control_no_memory(err);
    }
    if (request->outcome.kind !=
        PS_COMMAND_NOTE) { /* else another leader could not tell the nodes */
        (void)snprintf(text, sizeof text,
                       "table %s, number %" PRIu32 ", which nodes kept aside, was discarded",
                       table->spec.name, table->id);
        command = ps_registry_plan_note(self->is.registry, ps_unix_ms(), text);
        rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_WARN, err);
    }
    if (rc == PSD_OK) {
        ps_overseer_tell_drop(self->overseer, table->id);
    }
    return rc;
}

psd_status_t ps_control_registry_discard(ps_control_t *self, ps_control_request_t *request,
                                         psd_error_t *err)
{
    PSD_AUTO(ps_unknowns_done) ps_unknowns_t unknowns = {0};
    const ps_unknown_t *table = NULL;
    const char *name = NULL;
    bool dry_run = false;
    ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(request->doc, "dry_run", &dry_run, err);
    }
    request->was_dry = dry_run;
    if (rc != PSD_OK) {
        return rc;
    }
    if (request->step == 0) {
        return ps_control_ask(request, PS_CALL_UNKNOWN, 0);
    }
    if (request->step > 1) {
        return ps_control_check_answered(request, err);
    }
    rc = ps_unknowns_gather(request->answers, &unknowns, err);
    if (rc == PSD_OK) {
        rc = ps_unknowns_find(&unknowns, name, &table, err);
    }
    if (rc == PSD_NO_TABLE && request->outcome.kind == PS_COMMAND_NOTE) {
        psd_error_clear(err);
        return ps_control_check_answered(request, err); /* it was done, and is asked again */
    }
    array = rc == PSD_OK ? ps_doc_add_array(request->reply, "tables") : NULL;
    if (rc == PSD_OK && (array == NULL || !add_table(self, table, array))) {
        rc = ps_control_no_memory(err);
    }
    if (rc != PSD_OK || dry_run) {
        return rc;
    }
    rc = check_alone(&unknowns, table, err);
    if (rc == PSD_OK) {
        rc = discard(self, request, table, err);
    }
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_UNKNOWN, 0) : rc;
}
