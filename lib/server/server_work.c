/* SPDX-License-Identifier: Apache-2.0 */
/* A running node: passes what arrives to the control part, or to the member. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/nodes/fleet.h"
#include "server/server_inner.h"

#define LOOK_MS 100 /* between two, of a node that knows no leader */

void *ps_server_handle(ps_server_t *self)
{
    return ps_socket_handle(self->port);
}

void *ps_server_link_handle(ps_server_t *self)
{
    return ps_member_handle(self->member);
}

ps_socket_t *ps_server_port(const ps_server_t *self)
{
    return self->port;
}

ps_socket_t *ps_server_link(const ps_server_t *self)
{
    return ps_member_link(self->member);
}

uint32_t ps_server_n_pipes(const ps_server_t *self)
{
    return ps_shards_n(self->shards);
}

void *ps_server_pipe_handle(ps_server_t *self, uint32_t i)
{
    return ps_shards_handle(self->shards, i);
}

/* From the agent. true: there was one. */
static bool carry_up(ps_server_t *self)
{
    ps_bytes_t bytes;
    bool any = false;

    while (ps_member_next_message(self->member, &bytes)) {
        ps_control_take_node(self->control, PS_CONN_OWN, bytes);
        any = true;
    }
    if (any) {
        ps_control_settle(self->control);
    }
    return any;
}

/* To the agent. */
static bool carry_down(ps_server_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    if (!ps_control_next_own(self->control, &bytes)) {
        return false;
    }
    ps_member_take(self->member, (ps_bytes_t){.data = bytes.data, .size = bytes.size});
    return true;
}

void ps_server_exchange(ps_server_t *self)
{
    while (self->control != NULL && (carry_down(self) || carry_up(self))) {
    }
}

void ps_server_receive_shards(ps_server_t *self)
{
    ps_member_receive_shards(self->member);
    ps_server_exchange(self);
}

void ps_server_receive(ps_server_t *self)
{
    if (self->control == NULL) {
        ps_member_receive_port(self->member, self->replica);
    } else {
        ps_control_receive(self->control);
        ps_server_exchange(self);
    }
}

void ps_server_receive_link(ps_server_t *self)
{
    ps_member_receive(self->member);
    ps_server_take_invite(self);
}

/* There is somebody to speak to: not for a member that knows no leader. */
static bool speaks(const ps_server_t *self)
{
    return self->control != NULL || ps_member_link(self->member) != NULL;
}

void ps_server_tick(ps_server_t *self)
{
    const ps_socket_args_t socket = ps_server_socket_args(self);

    if (self->control != NULL) {
        ps_control_tick(self->control);
    }
    if (speaks(self)) {
        ps_member_tick(self->member);
    }
    if (self->replica == NULL || !ps_replica_has_members(self->replica)) {
        ps_member_search(self->member, &socket);
    }
    ps_member_sign(self->member, self->replica, &socket);
    if (self->replica != NULL && self->control == NULL) {
        ps_replica_listen(self->replica);
    }
    ps_server_exchange(self);
    ps_server_receive_quorum(self);
    ps_server_tell_rights(self);
    ps_server_check_seat(self);
}

uint64_t ps_server_deadline(const ps_server_t *self)
{
    uint64_t member = speaks(self) ? ps_member_deadline(self->member) : ps_now_ms() + LOOK_MS;
    uint64_t control = self->control == NULL ? UINT64_MAX : ps_control_deadline(self->control);

    uint64_t sign = ps_member_sign_due(self->member);

    member = member < sign ? member : sign;
    return member < control ? member : control;
}

bool ps_server_is_broken(const ps_server_t *self)
{
    return ps_server_failure(self, NULL) != PSD_OK;
}

psd_status_t ps_server_failure(const ps_server_t *self, psd_error_t *err)
{
    if (ps_shards_are_deaf(self->shards)) {
        return psd_error_set(err, PSD_FAILED, "a shard receives no more messages; start it again");
    }
    if (self->failed != PSD_OK) {
        return psd_error_set(err, self->failed, "%s", psd_error_text(self->err));
    }
    if (self->replica != NULL && ps_registry_db_is_broken(ps_replica_db(self->replica))) {
        return psd_error_set(err, PSD_IO,
                             "the registry could not be flushed: what is stored is read again "
                             "at the next start");
    }
    return ps_member_failure(self->member, err);
}

bool ps_server_is_known(const ps_server_t *self)
{
    return ps_member_is_announced(self->member);
}

const char *ps_server_endpoint(const ps_server_t *self)
{
    return self->endpoint;
}

const char *ps_server_own_endpoint(const ps_server_t *self)
{
    return self->ipc[0] != '\0' ? self->ipc : self->endpoint;
}

const char *ps_server_node(const ps_server_t *self)
{
    return self->node;
}

uint64_t ps_server_bytes(const ps_server_t *self)
{
    return ps_shards_bytes(self->shards);
}

void ps_server_status(const ps_server_t *self, char *ret_text, size_t size)
{
    if (self->control != NULL) {
        (void)snprintf(ret_text, size, "serving on %s, %zu tables, %zu nodes", self->endpoint,
                       ps_registry_n_tables(ps_replica_registry(self->replica)),
                       ps_registry_n_nodes(ps_replica_registry(self->replica)));
    } else {
        (void)snprintf(ret_text, size, "serving for the registry at %s, which %s",
                       ps_member_registry(self->member),
                       ps_member_is_heard(self->member) ? "is reachable" : "is silent");
    }
}

void ps_server_set_files_out(ps_server_t *self, bool is_out)
{
    ps_member_set_files_out(self->member, is_out);
    if (self->control != NULL && ps_member_deadline(self->member) == 0) {
        ps_member_tick(self->member); /* nothing else may come */
        ps_server_exchange(self);
    }
}

void ps_server_reloaded(ps_server_t *self)
{
    ps_log_set_level((ps_log_level_t)self->config->log.level);
    ps_shards_set_log_level(self->shards, self->config->log.level);
    if (self->control != NULL) {
        ps_control_set_config(self->control, self->config);
    }
}
