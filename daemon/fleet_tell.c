/* SPDX-License-Identifier: Apache-2.0 */
/* Telling: what is noted for a node is sent until the node has it. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/fleet_doc.h"
#include "daemon/fleet_inner.h"
#include "protocol/table_doc.h"

#define AGAIN_MS 1000 /* after what was sent and not answered, or refused */

static const char *
op_of(ps_tell_kind_t kind)
{
    static const char *const OPS[] = {
#define TELL_OP(NAME, op) op,
        PS_TELL_MAP(TELL_OP)
#undef TELL_OP
    };

    return OPS[kind];
}

ps_doc_t *
ps_fleet_message(const char *op, uint64_t serial)
{
    ps_doc_t *doc = ps_doc_new();

    if (doc != NULL &&
        (!ps_doc_set_u64(doc, "v", 1) || !ps_doc_set_text(doc, "op", op) ||
         !ps_doc_set_u64(doc, "serial", serial))) {
        ps_doc_destroy(&doc);
    }
    return doc;
}

bool
ps_fleet_send(ps_fleet_t *self,
              const ps_fleet_node_t *node,
              const ps_doc_t *doc)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    return ps_doc_print(doc, &text) &&
           ps_socket_send_text(
               self->is.port, node->conn,
               (ps_bytes_t){.data = text.data, .size = text.size},
               NULL) == PSD_OK;
}

/* ---- what is told ---- */

static bool
fill_known(const ps_fleet_t *self, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "tables");
    bool done = array != NULL;

    for (size_t i = 0; done && i < ps_registry_n_tables(self->is.registry);
         i++) {
        done = ps_doc_append_u64(
            array, ps_registry_table_at(self->is.registry, i)->id);
    }
    return done;
}

static bool
fill_table(const ps_table_t *table, ps_doc_t *doc)
{
    ps_doc_t *spec = ps_doc_add_object(doc, "spec");
    ps_doc_t *routes = ps_doc_add_array(doc, "routes");

    return spec != NULL && routes != NULL &&
           ps_doc_set_u64(doc, "table", table->id) &&
           ps_table_spec_to_doc(&table->spec, spec) &&
           ps_routes_to_doc(table->routes, table->spec.n_partitions, routes);
}

/* The newest state. false: no memory. *ret_gone: there is nothing to tell any
 * more. */
static bool
fill(const ps_fleet_t *self, const ps_tell_t *tell, ps_doc_t *doc, bool *gone)
{
    const ps_table_t *table = NULL;
    const ps_job_t *job = NULL;

    *gone = false;
    switch (tell->kind) {
    case PS_TELL_KNOWN:
        return fill_known(self, doc);
    case PS_TELL_SESSIONS:
        return ps_doc_set_u64(doc, "session", self->sessions);
    case PS_TELL_DROP:
        return ps_doc_set_u64(doc, "table", tell->id);
    case PS_TELL_TABLE:
        table = ps_registry_table_by_id(self->is.registry, tell->id);
        *gone = table == NULL;
        return table == NULL || fill_table(table, doc);
    case PS_TELL_JOB:
        job = ps_registry_job_by_id(self->is.registry, tell->id);
        *gone = job == NULL;
        return job == NULL || ps_job_to_doc(job, doc);
    case PS_TELL_COUNT:
    default:
        *gone = true;
        return true;
    }
}

static void
forget(ps_fleet_node_t *node, size_t i)
{
    node->n_tells--;
    memmove(&node->tells[i], &node->tells[i + 1],
            (node->n_tells - i) * sizeof *node->tells);
}

/* ---- noting and sending ---- */

void
ps_fleet_send_due(ps_fleet_t *self, ps_fleet_node_t *node)
{
    uint64_t now_ms = ps_now_ms();
    size_t i = 0;

    if (node->state != PS_FLEET_UP) {
        return;
    }
    if (node->stale) {
        ps_fleet_note_all(self, node);
        return;
    }
    while (i < node->n_tells) {
        PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
        ps_tell_t *tell = &node->tells[i];
        bool gone = false;

        if (tell->serial != 0 && tell->due_ms > now_ms) {
            i++;
            continue;
        }
        tell->serial = ++self->last_serial;
        tell->due_ms = now_ms + AGAIN_MS;
        doc = ps_fleet_message(op_of(tell->kind), tell->serial);
        if (doc == NULL || !fill(self, tell, doc, &gone) ||
            (!gone && !ps_fleet_send(self, node, doc))) {
            return; /* the order is kept: the rest goes with it, later */
        }
        if (gone) {
            forget(node, i);
        } else {
            i++;
        }
    }
}

/* Puts it behind all others; what is noted already moves there. */
static bool
put(ps_fleet_node_t *node, ps_tell_kind_t kind, uint32_t id)
{
    for (size_t i = 0; i < node->n_tells; i++) {
        if (node->tells[i].kind == kind && node->tells[i].id == id) {
            forget(node, i);
            break;
        }
    }
    if (!ps_grow(&node->tells, &node->tells_capacity, node->n_tells + 1,
                 sizeof *node->tells)) {
        node->stale = true;
        return false;
    }
    node->tells[node->n_tells++] = (ps_tell_t){.kind = kind, .id = id};
    return true;
}

void
ps_fleet_note(ps_fleet_t *self,
              ps_fleet_node_t *node,
              ps_tell_kind_t kind,
              uint32_t id)
{
    if (put(node, kind, id)) {
        ps_fleet_send_due(self, node);
    }
}

void
ps_fleet_note_all(ps_fleet_t *self, ps_fleet_node_t *node)
{
    const ps_registry_t *registry = self->is.registry;
    bool fits = true;

    node->stale = false;
    node->n_tells = 0;
    fits = put(node, PS_TELL_KNOWN, 0) && put(node, PS_TELL_SESSIONS, 0);
    for (size_t i = 0; fits && i < ps_registry_n_tables(registry); i++) {
        fits = put(node, PS_TELL_TABLE, ps_registry_table_at(registry, i)->id);
    }
    for (size_t i = 0; fits && i < ps_registry_n_jobs(registry); i++) {
        fits = put(node, PS_TELL_JOB, ps_registry_job_at(registry, i)->id);
    }
    if (fits) {
        ps_fleet_send_due(self, node);
    }
}

bool
ps_fleet_told(ps_fleet_node_t *node,
              uint64_t serial,
              psd_status_t status,
              const char *text)
{
    for (size_t i = 0; i < node->n_tells; i++) {
        ps_tell_t *tell = &node->tells[i];
        char quoted[512];

        if (tell->serial != serial) {
            continue;
        }
        if (status == PSD_OK) {
            forget(node, i);
            return true;
        }
        if (tell->status == PSD_OK) {
            ps_log(PS_LOG_ERROR, "node_not_told",
                   "node=%s what=%s id=%" PRIu32
                   " status=%s reason=%s hint=\"tried again\"",
                   node->name, op_of(tell->kind), tell->id,
                   psd_status_name(status),
                   ps_log_quote(text, quoted, sizeof quoted));
        }
        tell->status = status;
        (void)snprintf(tell->text, sizeof tell->text, "%.*s",
                       (int)sizeof tell->text - 1, text);
        return true;
    }
    return false;
}

/* ---- the face ---- */

static void
note_everywhere(ps_fleet_t *self, ps_tell_kind_t kind, uint32_t id)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_note(self, &self->nodes[i], kind, id);
    }
}

psd_status_t
ps_fleet_tell_table(ps_fleet_t *self, const ps_table_t *table, psd_error_t *err)
{
    ps_table_t bound = *table; /* its arrays stay borrowed */
    psd_status_t rc = ps_plugins_bind(self->is.plugins, &bound.spec, err);

    if (rc == PSD_OK) {
        rc = ps_shards_tell_table(self->is.shards, &bound, err);
    }
    if (rc == PSD_OK) {
        note_everywhere(self, PS_TELL_TABLE, table->id);
    }
    return rc;
}

psd_status_t
ps_fleet_tell_drop(ps_fleet_t *self, uint32_t table, psd_error_t *err)
{
    note_everywhere(self, PS_TELL_DROP, table);
    return ps_shards_tell_drop(self->is.shards, table, err);
}

psd_status_t
ps_fleet_tell_job(ps_fleet_t *self, const ps_job_t *job, psd_error_t *err)
{
    note_everywhere(self, PS_TELL_JOB, job->id);
    return ps_shards_tell_job(self->is.shards, job, err);
}

void
ps_fleet_tell_sessions(ps_fleet_t *self, uint64_t session)
{
    if (session > self->sessions) {
        self->sessions = session;
        note_everywhere(self, PS_TELL_SESSIONS, 0);
    }
}

psd_status_t
ps_fleet_refusal(const ps_fleet_t *self, uint32_t table, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_fleet_node_t *node = &self->nodes[i];

        for (size_t k = 0; k < node->n_tells; k++) {
            const ps_tell_t *tell = &node->tells[k];

            if (tell->kind == PS_TELL_TABLE && tell->id == table &&
                tell->status != PSD_OK) {
                return psd_error_set(err, tell->status, "node %s: %s",
                                     node->name, tell->text);
            }
        }
    }
    return PSD_OK;
}
