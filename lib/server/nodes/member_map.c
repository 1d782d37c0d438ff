/* SPDX-License-Identifier: Apache-2.0 */
/* What a node answers from the map that it has, while the registry has no leader: new
 * clients come in as guests, open tables and read. What they read is as old as what this node
 * can reach: docs/guarantees.md says how old that may be. */
#include <string.h>

#include "protocol/facts/node_names.h"
#include "protocol/facts/table_doc.h"
#include "server/nodes/member_inner.h"
#include "server/quorum/replica_list.h"
#include "wire/messages/message.h"
#include "wire/messages/reply.h"

#define GUEST_AFTER_MS 2000
#define GUEST_BEATS 3
#define ROUTES_MAX 256      /* tables that one request asks for */
#define BEAT_MS 1000        /* until the registry says it */
#define LOST_AFTER_MS 10000 /* … */
#define GUEST_OP_MAX 64

/* Silence that says that there is no leader: longer than an election takes, as a rule, and
 * than three beats, which the registry answers. */
static uint64_t patience_ms(const ps_member_t *self)
{
    uint64_t beats_ms = GUEST_BEATS * self->heartbeat_ms;

    return beats_ms > GUEST_AFTER_MS ? beats_ms : GUEST_AFTER_MS;
}

/* This node's part of the registry heard its leader lately; a stand-by remembers one for
 * ever. */
static bool hears_leader(const ps_member_t *self, const ps_replica_t *replica)
{
    ps_member_sight_t members[PS_QUORUM_MEMBERS_MAX];
    ps_quorum_view_t view;
    uint32_t n = replica == NULL ? 0 : ps_replica_look(replica, &view, members);
    uint64_t now_ms = ps_now_ms();

    for (uint32_t i = 0; i < n; i++) {
        if (members[i].leads && !members[i].is_self &&
            now_ms < members[i].heard_ms + patience_ms(self)) {
            return true;
        }
    }
    return false;
}

/* As far as this node can tell: one that is cut off from the others hears no leader, either. */
static bool is_leaderless(const ps_member_t *self, const ps_replica_t *replica)
{
    return ps_agent_has_map(self->agent) && !hears_leader(self, replica) &&
           ps_agent_unled_ms(self->agent, ps_now_ms()) >= patience_ms(self);
}

/* A client of this cluster and version, which takes a node without the registry. */
static bool is_guest(const ps_member_t *self, const ps_doc_t *hello)
{
    const ps_doc_t *versions = NULL;
    uint64_t lowest = 0;
    uint64_t highest = 0;
    bool guest = false;
    ps_id_t wanted = self->cluster;

    return ps_doc_has(hello, "guest") && ps_doc_get_bool(hello, "guest", &guest, NULL) == PSD_OK &&
           guest && ps_doc_get_array(hello, "versions", 2, &versions, NULL) == PSD_OK &&
           ps_doc_count(versions) == 2 && ps_doc_at_u64(versions, 0, &lowest, NULL) == PSD_OK &&
           ps_doc_at_u64(versions, 1, &highest, NULL) == PSD_OK && lowest <= PS_VERSION &&
           highest >= PS_VERSION &&
           (!ps_doc_has(hello, "cluster") ||
            ps_doc_get_id(hello, "cluster", &wanted, NULL) == PSD_OK) &&
           ps_id_equal(&wanted, &self->cluster);
}

static bool fill_welcome(const ps_member_t *self, const ps_replica_t *replica, ps_doc_t *reply)
{
    ps_doc_t *cluster = ps_doc_add_object(reply, "cluster");
    ps_members_t members = {.n = 0};

    ps_member_fill_members(self, replica, &members);
    return cluster != NULL && ps_doc_set_text(cluster, "name", self->is.cluster_name) &&
           ps_doc_set_id(cluster, "uuid", &self->cluster) &&
           ps_doc_set_text(reply, "node", self->name) &&
           ps_doc_set_u64(reply, "incarnation", self->incarnation) &&
           ps_doc_set_bool(reply, "guest", true) &&
           ps_doc_set_u64(reply, "heartbeat_ms", BEAT_MS) &&
           ps_doc_set_u64(reply, "lost_after_ms", LOST_AFTER_MS) &&
           ps_doc_set_text(reply, "version", PSD_RELEASE) && ps_members_to_doc(&members, reply);
}

static bool add_own_name(const ps_member_t *self, ps_doc_t *reply)
{
    ps_doc_t *array = ps_doc_add_array(reply, "nodes");

    return array != NULL &&
           ps_node_name_to_doc(self->incarnation, self->name, self->is.control, array);
}

static bool fill_table(const ps_member_t *self, const ps_doc_t *request, ps_doc_t *reply)
{
    const char *name = NULL;
    const ps_table_t *table = ps_doc_get_text(request, "name", PS_NAME_MAX, &name, NULL) == PSD_OK
                                  ? ps_agent_table_named(self->agent, name)
                                  : NULL;
    ps_doc_t *doc = table == NULL ? NULL : ps_doc_add_object(reply, "table");
    ps_doc_t *routes = doc == NULL ? NULL : ps_doc_add_array(reply, "routes");

    return routes != NULL && ps_doc_set_u64(doc, "id", table->id) &&
           ps_table_spec_to_doc(&table->spec, doc) &&
           ps_doc_set_bool(doc, "rows_lost", table->rows_lost) &&
           ps_routes_to_doc(table->routes, table->spec.n_partitions, routes) &&
           add_own_name(self, reply);
}

static bool add_place(const ps_table_t *table, ps_doc_t *places)
{
    ps_doc_t *item = ps_doc_append_object(places);
    ps_doc_t *routes = item == NULL ? NULL : ps_doc_add_array(item, "routes");

    return routes != NULL && ps_doc_set_u64(item, "table", table->id) &&
           ps_routes_to_doc(table->routes, table->spec.n_partitions, routes);
}

static bool fill_places(const ps_member_t *self, const ps_doc_t *request, ps_doc_t *reply)
{
    const ps_doc_t *tables = NULL;
    ps_doc_t *places = ps_doc_add_array(reply, "places");
    bool fits = places != NULL && ps_doc_add_array(reply, "gone") != NULL &&
                ps_doc_get_array(request, "tables", ROUTES_MAX, &tables, NULL) == PSD_OK;

    for (size_t i = 0; fits && i < ps_doc_count(tables); i++) {
        uint64_t id = 0;
        const ps_table_t *table = ps_doc_at_u64(tables, i, &id, NULL) == PSD_OK && id <= UINT32_MAX
                                      ? ps_agent_table(self->agent, (uint32_t)id)
                                      : NULL;

        fits = table == NULL || add_place(table, places); /* of others it says nothing */
    }
    return fits && add_own_name(self, reply);
}

bool ps_member_may_look(const ps_member_t *self, const ps_asker_t *asker, const ps_doc_t *request)
{
    const ps_doc_t *tables = NULL;
    const char *name = NULL;
    bool may = true;

    if (ps_doc_get_text(request, "name", PS_NAME_MAX, &name, NULL) == PSD_OK) {
        return ps_rights_may(self->rights, asker, PS_VERB_LOOK, PS_OBJECT_TABLE, name);
    }
    if (ps_doc_get_array(request, "tables", ROUTES_MAX, &tables, NULL) != PSD_OK) {
        return false;
    }
    for (size_t i = 0; may && i < ps_doc_count(tables); i++) {
        uint64_t id = 0;
        const ps_table_t *table = ps_doc_at_u64(tables, i, &id, NULL) == PSD_OK && id <= UINT32_MAX
                                      ? ps_agent_table(self->agent, (uint32_t)id)
                                      : NULL;

        may = table == NULL ||
              ps_rights_may(self->rights, asker, PS_VERB_LOOK, PS_OBJECT_TABLE, table->spec.name);
    }
    return may;
}

bool ps_member_answer_map(const ps_member_t *self, const ps_replica_t *replica,
                          const ps_doc_t *request, ps_doc_t *reply)
{
    const char *op = "";
    uint64_t session = 0;

    if (request == NULL || !ps_request_is_of_map(request) || !is_leaderless(self, replica) ||
        ps_doc_get_text(request, "op", GUEST_OP_MAX, &op, NULL) != PSD_OK ||
        !ps_doc_set_bool(reply, "stale", true)) {
        return false;
    }
    if (strcmp(op, "hello") == 0) {
        return is_guest(self, request) && fill_welcome(self, replica, reply);
    }
    if (ps_doc_get_u64(request, "session", 1, UINT64_MAX, &session, NULL) != PSD_OK ||
        session < PS_GUEST_FIRST) {
        return false;
    }
    return strcmp(op, "routes") == 0 ? fill_places(self, request, reply)
                                     : fill_table(self, request, reply);
}
