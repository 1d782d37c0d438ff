/* SPDX-License-Identifier: Apache-2.0 */
/* Hello: the cluster's identity, and a session number for the client. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <string.h>

#include "server/quorum/replica.h"
#include "wire/messages/message.h"

#define SESSIONS_AHEAD 1024 /* session numbers reserved on disk at a time */

psd_status_t ps_control_check_session(const ps_control_t *self, uint64_t session, psd_error_t *err)
{
    uint64_t old = ps_registry_old_sessions(self->is.registry);

    if (session >= PS_GUEST_FIRST) {
        return psd_error_set(err, PSD_NO_SESSION,
                             "a guest asks for no change; say hello first for a session");
    }
    if (session == 0 || (session > self->last_session && session > old)) {
        return psd_error_set(err, PSD_NO_SESSION,
                             "session %" PRIu64 " was not assigned; say hello first", session);
    }
    return PSD_OK;
}

psd_status_t ps_control_check_rows(const ps_control_t *self, const ps_control_request_t *request,
                                   psd_error_t *err)
{
    const ps_job_t *job = NULL;
    uint64_t id = 0;

    if (ps_doc_get_u64(request->doc, "job_id", 1, UINT32_MAX, &id, NULL) != PSD_OK) {
        return PSD_OK; /* no worker, or not one yet */
    }
    job = ps_registry_job_by_id(self->is.registry, (uint32_t)id);
    return job == NULL || job->lost_table[0] == '\0' || request->waits.session > job->lost_sessions
               ? PSD_OK
               : psd_error_set(err, PSD_ROWS_LOST, PS_ROWS_LOST_TEXT, job->lost_table);
}

psd_status_t ps_control_check_versions(const ps_doc_t *doc, const char *who, uint64_t spoken,
                                       const char *hint, psd_error_t *err)
{
    const ps_doc_t *versions = NULL;
    uint64_t lowest = 0;
    uint64_t highest = 0;
    psd_status_t rc = ps_doc_get_array(doc, "versions", 2, &versions, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_doc_count(versions) != 2) {
        return psd_error_set(err, PSD_PROTO,
                             "versions has %zu numbers; allowed: 2, the lowest "
                             "and the highest",
                             ps_doc_count(versions));
    }
    rc = ps_doc_at_u64(versions, 0, &lowest, err);
    if (rc == PSD_OK) {
        rc = ps_doc_at_u64(versions, 1, &highest, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (lowest > spoken || highest < spoken) {
        return psd_error_set(err, PSD_VERSION,
                             "the %s speaks %s versions %" PRIu64 " .. %" PRIu64
                             ", this psd speaks %" PRIu64 "; %s",
                             who, who, lowest, highest, spoken, hint);
    }
    return PSD_OK;
}

psd_status_t ps_control_check_uuid(const ps_control_t *self, const ps_id_t *wanted,
                                   psd_error_t *err)
{
    char wanted_text[PS_ID_TEXT_SIZE];
    char mine_text[PS_ID_TEXT_SIZE];
    ps_id_t mine;

    (void)ps_registry_cluster(self->is.registry, &mine);
    if (ps_id_equal(wanted, &mine)) {
        return PSD_OK;
    }
    ps_id_format(wanted, wanted_text);
    ps_id_format(&mine, mine_text);
    return psd_error_set(err, PSD_CLUSTER, "cluster %s was asked for, this node belongs to %s",
                         wanted_text, mine_text);
}

psd_status_t ps_control_check_cluster(const ps_control_t *self, const ps_doc_t *doc,
                                      psd_error_t *err)
{
    ps_id_t wanted;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(doc, "cluster")) {
        return PSD_OK;
    }
    rc = ps_doc_get_id(doc, "cluster", &wanted, err);
    return rc == PSD_OK ? ps_control_check_uuid(self, &wanted, err) : rc;
}

/* The session that the registry gave this client lately; 0 for none. */
static uint64_t known_session(const ps_control_t *self, const ps_id_t *client)
{
    for (size_t i = 0; i < PS_CLIENTS_MAX && i < self->n_clients; i++) {
        if (ps_id_equal(&self->clients[i].client, client)) {
            return self->clients[i].session;
        }
    }
    return 0;
}

static psd_status_t take_session(ps_control_t *self, const ps_id_t *client, uint64_t *ret_session,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = PSD_OK;

    *ret_session = known_session(self, client);
    if (*ret_session != 0) {
        return PSD_OK;
    }
    rc = ps_registry_plan_sessions(self->is.registry, SESSIONS_AHEAD, ps_unix_ms(), &command, err);
    if (rc == PSD_OK) {
        rc = ps_control_commit(self, &command, PS_LOG_DEBUG, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (command.kind != 0) {
        ps_overseer_tell_sessions(self->overseer, command.number);
    }
    *ret_session = ps_registry_take_session(self->is.registry);
    if (*ret_session == 0) {
        return psd_error_set(err, PSD_LIMIT, "no session numbers are left");
    }
    self->last_session = *ret_session;
    self->clients[self->n_clients++ % PS_CLIENTS_MAX] =
        (ps_client_row_t){.client = *client, .session = *ret_session};
    return PSD_OK;
}

bool ps_control_add_members(const ps_control_t *self, ps_doc_t *reply)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, self->is.node);
    ps_seat_t seats[PS_SEATS_MAX];
    char leader[PS_NAME_MAX + 1];
    ps_members_t members = {.n = ps_replica_seats(self->is.replica, seats, leader)};

    for (size_t i = 0; i < members.n; i++) {
        memcpy(members.items[i].node, seats[i].node, sizeof members.items[i].node);
        memcpy(members.items[i].endpoint, seats[i].endpoint, sizeof members.items[i].endpoint);
    }
    if (members.n == 0 && node != NULL) {
        members.n = 1;
        memcpy(members.items[0].node, node->name, sizeof node->name);
        memcpy(members.items[0].endpoint, node->control, sizeof node->control);
    }
    return members.n == 0 || ps_members_to_doc(&members, reply);
}

static bool fill_welcome(const ps_control_t *self, ps_doc_t *reply, uint64_t session)
{
    ps_id_t uuid;
    const char *name = ps_registry_cluster(self->is.registry, &uuid);
    const ps_registry_t *registry = self->is.registry;
    ps_doc_t *cluster = ps_doc_add_object(reply, "cluster");

    return cluster != NULL && ps_doc_set_text(cluster, "name", name) &&
           ps_doc_set_id(cluster, "uuid", &uuid) && ps_doc_set_text(reply, "node", self->is.node) &&
           ps_doc_set_u64(reply, "incarnation", self->is.incarnation) &&
           ps_doc_set_u64(reply, "session", session) &&
           ps_doc_set_u64(reply, "epoch", ps_registry_epoch(self->is.registry)) &&
           ps_doc_set_u64(reply, "heartbeat_ms",
                          ps_registry_setting(registry, PS_SETTING_HEARTBEAT)) &&
           ps_doc_set_u64(reply, "lost_after_ms",
                          ps_registry_setting(registry, PS_SETTING_LOST_AFTER)) &&
           ps_doc_set_text(reply, "version", PSD_RELEASE) &&
           (self->is.rights == NULL || ps_doc_set_text(reply, "level", "encrypt")) &&
           ps_control_add_members(self, reply);
}

psd_status_t ps_control_hello(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    ps_id_t client;
    uint64_t session = 0;
    psd_status_t rc = ps_control_check_versions(
        request->doc, "client", PS_VERSION,
        "install the same version of psd and of programs with libpsd", err);

    if (rc == PSD_OK) {
        rc = ps_control_check_cluster(self, request->doc, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(request->doc, "client", &client, err);
    }
    if (rc == PSD_OK && ps_id_is_zero(&client)) {
        rc = psd_error_set(err, PSD_INVALID, "client is all zeroes; allowed: 128 random bits");
    }
    if (rc == PSD_OK) {
        rc = take_session(self, &client, &session, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_own_session(self, request, session, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return fill_welcome(self, request->reply, session) ? PSD_OK : ps_control_no_memory(err);
}
