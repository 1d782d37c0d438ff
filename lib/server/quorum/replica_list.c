/* SPDX-License-Identifier: Apache-2.0 */
/* What a member says about all members. */
#include "server/quorum/replica_list.h"

#include <string.h>

#include "transport/threads/clock.h"

uint32_t ps_replica_look(const ps_replica_t *self, ps_quorum_view_t *ret_view,
                         ps_member_sight_t ret_members[PS_QUORUM_MEMBERS_MAX])
{
    ps_quorum_thread_t *thread = ps_replica_thread(self);
    const uint64_t now_ms = ps_now_ms();

    *ret_view = (ps_quorum_view_t){.leader = 0};
    if (thread == NULL) {
        return 0;
    }
    ps_quorum_thread_look(thread, ret_view);
    for (uint32_t i = 0; i < ret_view->members.n; i++) {
        const ps_quorum_member_t *from = &ret_view->members.at[i];
        ps_member_sight_t *to = &ret_members[i];
        ps_quorum_peer_info_t info = {0};

        *to = (ps_member_sight_t){.id = from->id,
                                  .role = (ps_quorum_role_t)from->role,
                                  .leads = from->id == ret_view->leader,
                                  .is_self = from->id == ret_view->member};
        memcpy(to->node, from->node, sizeof to->node);
        if (to->is_self) {
            to->is_up = true;
            to->caught_up = to->leads;
            to->heard_ms = now_ms;
            to->match = ret_view->last;
        } else if (ps_quorum_thread_peer(thread, from->id, &info, &to->caught_up)) {
            to->heard_ms = info.heard_ms;
            to->match = info.match;
            to->is_up = info.heard_ms != 0 && now_ms < info.heard_ms + PS_MEMBER_SILENT_MS;
        }
    }
    return ret_view->members.n;
}

/* A number that may be unknown. */
static bool set_known(ps_doc_t *doc, const char *key, bool is_known, uint64_t value)
{
    return is_known ? ps_doc_set_u64(doc, key, value) : ps_doc_set_null(doc, key);
}

static bool set_name(ps_doc_t *doc, const char *key, const char *name)
{
    return name[0] == '\0' ? ps_doc_set_null(doc, key) : ps_doc_set_text(doc, key, name);
}

static bool add_member(const ps_replica_t *self, const ps_quorum_view_t *view,
                       const ps_member_sight_t *member, ps_doc_t *doc)
{
    const ps_node_t *node = ps_registry_node(ps_replica_registry(self), member->node);
    const uint64_t now_ms = ps_now_ms();
    const uint64_t applied = ps_registry_db_applied(ps_replica_db(self)).index;
    bool knows = member->match != 0;

    return ps_doc_set_text(doc, "node", member->node) &&
           ps_doc_set_text(doc, "endpoint", node == NULL ? "" : node->control) &&
           ps_doc_set_text(doc, "role",
                           member->leads                     ? "leader"
                           : member->role == PS_QUORUM_VOTER ? "voter"
                                                             : "stand-by") &&
           ps_doc_set_text(doc, "state", member->is_up ? "up" : "silent") &&
           ps_doc_set_u64(doc, "member", member->id) &&
           set_known(doc, "term", knows || member->leads, view->term) &&
           set_known(doc, "last", knows, member->match) &&
           set_known(doc, "applied", member->is_self, applied) &&
           set_known(doc, "lag", knows,
                     view->last > member->match ? view->last - member->match : 0) &&
           (member->heard_ms == 0
                ? ps_doc_set_null(doc, "heard_s")
                : ps_doc_set_f64(doc, "heard_s", (double)(now_ms - member->heard_ms) / 1000.0));
}

static bool add_members(const ps_replica_t *self, const ps_quorum_view_t *view,
                        const ps_member_sight_t *members, uint32_t n, ps_doc_t *reply)
{
    ps_doc_t *array = ps_doc_add_array(reply, "members");
    const char *leader = "";
    uint64_t n_voters = 0;
    uint64_t n_up = 0;
    bool done = array != NULL;

    for (uint32_t i = 0; done && i < n; i++) {
        ps_doc_t *doc = ps_doc_append_object(array);

        n_voters += members[i].role == PS_QUORUM_VOTER ? 1 : 0;
        n_up += members[i].role == PS_QUORUM_VOTER && members[i].is_up ? 1 : 0;
        leader = members[i].leads ? members[i].node : leader;
        done = doc != NULL && add_member(self, view, &members[i], doc);
    }
    return done && ps_doc_set_u64(reply, "voters", n_voters) &&
           ps_doc_set_u64(reply, "voters_up", n_up) && set_name(reply, "leader", leader);
}

/* A registry alone: its node, and nobody else. */
static bool add_alone(const ps_replica_t *self, const char *node, const char *control,
                      ps_doc_t *reply)
{
    const uint64_t index = ps_registry_db_applied(ps_replica_db(self)).index;
    ps_doc_t *array = ps_doc_add_array(reply, "members");
    ps_doc_t *doc = array == NULL ? NULL : ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_text(doc, "node", node) &&
           ps_doc_set_text(doc, "endpoint", control) && ps_doc_set_text(doc, "role", "leader") &&
           ps_doc_set_text(doc, "state", "up") && ps_doc_set_null(doc, "member") &&
           ps_doc_set_null(doc, "term") && ps_doc_set_u64(doc, "last", index) &&
           ps_doc_set_u64(doc, "applied", index) && ps_doc_set_u64(doc, "lag", 0) &&
           ps_doc_set_f64(doc, "heard_s", 0) && ps_doc_set_u64(reply, "voters", 1) &&
           ps_doc_set_u64(reply, "voters_up", 1) && ps_doc_set_text(reply, "leader", node);
}

/* What an operator took from nodes, members or not. */
static bool add_held(const ps_replica_t *self, ps_doc_t *reply)
{
    const ps_registry_t *registry = ps_replica_registry(self);
    ps_doc_t *array = ps_doc_add_array(reply, "held");
    bool done = array != NULL;

    for (size_t i = 0; done && i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);
        ps_doc_t *doc = node->held == PS_HOLD_NOT ? NULL : ps_doc_append_object(array);

        done = node->held == PS_HOLD_NOT ||
               (doc != NULL && ps_doc_set_text(doc, "node", node->name) &&
                ps_doc_set_text(doc, "lacks", node->held == PS_HOLD_OUT ? "part" : "vote"));
    }
    return done;
}

bool ps_replica_list(const ps_replica_t *self, const char *node, const char *control,
                     ps_doc_t *reply)
{
    ps_member_sight_t members[PS_QUORUM_MEMBERS_MAX];
    ps_quorum_view_t view;
    uint32_t n = ps_replica_look(self, &view, members);
    bool leads = n == 0 || (view.state == PS_QUORUM_LEADER && ps_replica_may_answer(self));

    return ps_doc_set_text(reply, "answered_by", node) &&
           ps_doc_set_bool(reply, "replicated", n > 0) && ps_doc_set_bool(reply, "stale", !leads) &&
           ps_doc_set_u64(reply, "term", view.term) &&
           ps_doc_set_u64(reply, "committed",
                          n > 0 ? view.committed
                                : ps_registry_db_applied(ps_replica_db(self)).index) &&
           add_held(self, reply) &&
           (n == 0 ? add_alone(self, node, control, reply)
                   : add_members(self, &view, members, n, reply));
}
