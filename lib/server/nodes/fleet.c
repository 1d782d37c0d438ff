/* SPDX-License-Identifier: Apache-2.0 */
/* The overseer's shell: the clock, the control port, the agent of this node. */
#include "server/nodes/fleet.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

typedef struct held {
    uint64_t conn;
    ps_buffer_t bytes; /* owned */
} held_t;

struct ps_fleet {
    ps_fleet_args_t is;
    bool holds;
    held_t *held; /* owned; in order */
    size_t n_held;
    size_t held_capacity;
    ps_buffer_t *own; /* owned, each too; to this node's agent, in order */
    size_t n_own;
    size_t own_capacity;
};

psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet, psd_error_t *err)
{
    ps_fleet_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the nodes");
    }
    self->is = *args;
    *ret_fleet = self;
    return PSD_OK;
}

void ps_fleet_destroy(ps_fleet_t **self_p)
{
    ps_fleet_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_own; i++) {
        ps_buffer_done(&self->own[i]);
    }
    for (size_t i = 0; i < self->n_held; i++) {
        ps_buffer_done(&self->held[i].bytes);
    }
    ps_free(self->held);
    ps_free(self->own);
    ps_free(self);
    *self_p = NULL;
}

void ps_fleet_log_refusal(const ps_tell_view_t *tell, psd_status_t status, const char *text)
{
    char quoted[512];

    ps_log(PS_LOG_ERROR, "node_update_failed",
           "node=%s what=%s id=%" PRIu32 " status=%s reason=%s hint=\"retrying\"", tell->node,
           ps_tell_name(tell->kind), tell->id, psd_status_name(status),
           ps_log_quote(text, quoted, sizeof quoted));
}

/* ---- sending ---- */

static bool keep_own(ps_fleet_t *self, ps_bytes_t bytes)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t copy = {0};

    if (!ps_buffer_append(&copy, bytes.data, bytes.size) ||
        !ps_grow(&self->own, &self->own_capacity, self->n_own + 1, sizeof *self->own)) {
        return false;
    }
    self->own[self->n_own++] = copy; /* ownership moves */
    copy = (ps_buffer_t){0};
    return true;
}

static bool say(ps_fleet_t *self, uint64_t conn, ps_bytes_t bytes)
{
    return conn == PS_CONN_OWN ? keep_own(self, bytes)
                               : ps_socket_send_text(self->is.port, conn, bytes, NULL) == PSD_OK;
}

static bool hold(ps_fleet_t *self, uint64_t conn, ps_bytes_t bytes)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t copy = {0};

    if (!ps_buffer_append(&copy, bytes.data, bytes.size) ||
        !ps_grow(&self->held, &self->held_capacity, self->n_held + 1, sizeof *self->held)) {
        return false;
    }
    self->held[self->n_held++] = (held_t){.conn = conn, .bytes = copy}; /* ownership moves */
    copy = (ps_buffer_t){0};
    return true;
}

bool ps_fleet_say(ps_fleet_t *self, uint64_t conn, ps_bytes_t bytes)
{
    return self->holds ? hold(self, conn, bytes) : say(self, conn, bytes);
}

void ps_fleet_hold(ps_fleet_t *self)
{
    self->holds = true;
}

bool ps_fleet_holds(const ps_fleet_t *self)
{
    return self->holds;
}

void ps_fleet_release(ps_fleet_t *self)
{
    self->holds = false;
    for (size_t i = 0; i < self->n_held; i++) {
        ps_buffer_t *bytes = &self->held[i].bytes;

        /* One that is not sent now is asked for again, or sent again. */
        (void)say(self, self->held[i].conn, (ps_bytes_t){.data = bytes->data, .size = bytes->size});
        ps_buffer_done(bytes);
    }
    self->n_held = 0;
}

bool ps_fleet_unsay(ps_fleet_t *self, uint64_t *ret_conn, ps_buffer_t *ret_bytes)
{
    self->holds = false;
    if (self->n_held == 0) {
        return false;
    }
    self->n_held--;
    *ret_conn = self->held[self->n_held].conn;
    *ret_bytes = self->held[self->n_held].bytes; /* ownership moves */
    return true;
}

bool ps_fleet_next_own(ps_fleet_t *self, ps_buffer_t *ret_bytes)
{
    if (self->n_own == 0) {
        return false;
    }
    *ret_bytes = self->own[0]; /* ownership moves */
    self->n_own--;
    memmove(&self->own[0], &self->own[1], self->n_own * sizeof *self->own);
    return true;
}

static ps_sent_t send_one(ps_fleet_t *self, const ps_sending_round_t *tell)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_sent_t sent = ps_overseer_encode(self->is.overseer, tell, &bytes);

    if (sent != PS_SENT) {
        return sent;
    }
    return ps_fleet_say(self, tell->conn, (ps_bytes_t){.data = bytes.data, .size = bytes.size})
               ? PS_SENT
               : PS_SENT_NOT;
}

void ps_fleet_send_due(ps_fleet_t *self)
{
    ps_sending_round_t round = {0};
    uint64_t now_ms = ps_now_ms();

    while (ps_overseer_next(self->is.overseer, now_ms, &round)) {
        ps_overseer_sent(self->is.overseer, &round, send_one(self, &round));
    }
}

void ps_fleet_fence(ps_fleet_t *self, const ps_copy_t *copy, uint32_t table, uint32_t partition,
                    uint64_t epoch)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    const ps_copy_fence_t fence = {copy->shard, table, partition, epoch};
    uint64_t conn = 0;

    if (ps_overseer_find(self->is.overseer, copy->incarnation, &conn) &&
        ps_overseer_encode_fence(self->is.overseer, copy->incarnation, &fence, &bytes)) {
        /* When it does not arrive, the registry asks again. */
        (void)ps_fleet_say(self, conn, (ps_bytes_t){.data = bytes.data, .size = bytes.size});
    }
}

void ps_fleet_invite(ps_fleet_t *self, uint64_t incarnation, const ps_node_message_t *invite)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    uint64_t conn = 0;

    if (ps_overseer_find(self->is.overseer, incarnation, &conn) &&
        ps_overseer_encode_invite(self->is.overseer, incarnation, invite, &bytes)) {
        /* When it does not arrive, it is invited again. */
        (void)ps_fleet_say(self, conn, (ps_bytes_t){.data = bytes.data, .size = bytes.size});
    }
}

/* ---- time ---- */

void ps_fleet_tick(ps_fleet_t *self)
{
    ps_late_t late;
    bool hangs = ps_overseer_is_in_haste(self->is.overseer) && self->is.turns != NULL &&
                 ps_turns_late(ps_turns_page(self->is.turns), &late, 1) > 0;

    ps_overseer_tick(self->is.overseer, ps_now_ms(), hangs);
}
