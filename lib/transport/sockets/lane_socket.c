/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier lane: what a socket does with its lanes. */
#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

#include "transport/sockets/socket_parts.h"

#define ZMQ_AFTER 64                   /* messages of lanes, or looks in vain, before ZeroMQ */
#define ARENA_UNIT (UINT64_C(1) << 16) /* whole pages on every machine */
#define CALLER_SHARE 4                 /* part of an arena that callers may take */

static psd_status_t bind_lane(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    const ps_lane_options_t *options = &self->lane_options;
    ps_lane_port_args_t args = {.most = options->most == 0 ? PS_LANE_MOST : options->most,
                                .arena_bytes = options->arena_bytes == 0 ? PS_LANE_ARENA_BYTES
                                                                         : options->arena_bytes,
                                .peers = self->peers,
                                .lane = self->lane_args};
    const char *path = "";
    psd_status_t rc = ps_lane_path(endpoint, &path, err);

    assert(self->is_port && args.most <= PS_LANES_MAX);
    args.arena_bytes = (args.arena_bytes + ARENA_UNIT - 1) / ARENA_UNIT * ARENA_UNIT;
    if (rc == PSD_OK && self->lanes == NULL) {
        rc = ps_lane_port_new(&args, &self->lanes, err);
    }
    if (rc == PSD_OK) {
        ps_socket_use_carrier(self, ps_carrier_lane.slot, &ps_carrier_lane);
        rc = ps_lane_port_bind(self->lanes, path, err);
    }
    return rc == PSD_OK ? ps_socket_keep_endpoint(self, endpoint, err) : rc;
}

static psd_status_t connect_lane(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    uint32_t wait_ms =
        self->lane_options.wait_ms == 0 ? PS_LANE_WAIT_MS : self->lane_options.wait_ms;
    ps_lane_share_t *share = NULL;
    const char *path = "";
    int fd = -1;
    psd_status_t rc = ps_lane_path(endpoint, &path, err);

    if (rc == PSD_OK) {
        rc = ps_lane_meet(path, wait_ms, &fd, &share, err);
    }
    if (rc == PSD_OK) {
        rc = ps_lane_new(share, fd, false, &self->lane_args, &self->lane, err);
    }
    return rc == PSD_OK ? ps_socket_keep_endpoint(self, endpoint, err) : rc;
}

/* Sends deferred messages until there are none or the time is over. */
static void send_rest(ps_lane_t *lane, uint32_t linger_ms)
{
    uint64_t now_ms = ps_now_ms();
    uint64_t until_ms = now_ms + linger_ms;

    ps_lane_flush(lane);
    for (; lane->n_items > 0 && !lane->gone && now_ms < until_ms; now_ms = ps_now_ms()) {
        struct pollfd item = {.fd = lane->fd, .events = POLLIN};
        uint64_t left_ms = until_ms - now_ms;

        if (ps_lane_sleep(lane)) {
            (void)poll(&item, 1, left_ms < INT_MAX ? (int)left_ms : INT_MAX);
            ps_lane_listen(lane);
        }
        ps_lane_wake(lane);
        ps_lane_flush(lane);
    }
}

static void linger(ps_socket_t *self, uint32_t linger_ms)
{
    if (self->lane != NULL) {
        send_rest(self->lane, linger_ms);
    }
    if (self->lanes != NULL) {
        ps_lane_port_flush(self->lanes);
    }
}

static void close_lanes(ps_socket_t *self)
{
    ps_lane_destroy(&self->lane);
    ps_lane_port_close(&self->lanes);
}

ps_lane_t *ps_socket_lane_of(ps_socket_t *self, uint64_t conn)
{
    if (self->lane != NULL) {
        return self->lane;
    }
    return self->lanes == NULL ? NULL : ps_lane_port_at(self->lanes, conn);
}

bool ps_socket_lane_user(ps_socket_t *self, uint64_t conn, uint32_t *ret_uid)
{
    const ps_lane_t *lane = ps_socket_lane_of(self, conn);
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;

    if (lane == NULL || getsockopt(lane->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        size != sizeof peer) {
        return false;
    }
    *ret_uid = (uint32_t)peer.uid;
    return true;
}

static psd_status_t send_message(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                                 ps_payload_t *payload, bool repeated, psd_error_t *err)
{
    ps_lane_t *lane = ps_socket_lane_of(self, conn);

    return lane == NULL ? psd_error_set(err, PSD_BUSY, "send: peer is gone")
                        : ps_lane_send(lane, message, payload, repeated, err);
}

static psd_status_t receive(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                            ps_message_t *ret_message, ps_payload_t **ret_payload,
                            ps_room_t *ret_room, psd_error_t *err)
{
    if (self->lane != NULL) {
        *ret_conn = 0;
        return ps_lane_receive(self->lane, ret_got, ret_message, ret_payload, ret_room, err);
    }
    /* ZeroMQ has its turn too while lanes are busy. */
    if (++self->n_received % ZMQ_AFTER == 0) {
        self->n_received = ZMQ_AFTER;
        ps_lane_port_look(self->lanes);
        *ret_got = false;
        return PSD_OK;
    }
    return ps_lane_port_receive(self->lanes, ret_got, ret_conn, ret_message, ret_payload, ret_room,
                                err);
}

static psd_status_t send_text(ps_socket_t *self, uint64_t conn, ps_bytes_t text, psd_error_t *err)
{
    (void)self;
    (void)conn;
    (void)text;
    return psd_error_set(err, PSD_UNSUPPORTED, "control text over a lane; use tcp or ipc");
}

static psd_status_t receive_text(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                 ps_asker_t *ret_caller, ps_buffer_t *ret_text, psd_error_t *err)
{
    (void)self;
    (void)ret_conn;
    (void)ret_caller;
    (void)ret_text;
    (void)err;
    *ret_got = false;
    return PSD_OK;
}

static void flush(ps_socket_t *self)
{
    if (self->lane != NULL) {
        ps_lane_flush(self->lane);
    }
    if (self->lanes != NULL) {
        ps_lane_port_flush(self->lanes);
    }
}

static bool next_gone(ps_socket_t *self, uint64_t *ret_conn)
{
    return self->lanes != NULL && ps_lane_port_gone(self->lanes, ret_conn);
}

static bool is_gone(ps_socket_t *self)
{
    return self->lane->gone;
}

static bool is_up(ps_socket_t *self)
{
    return !self->lane->gone;
}

static void forget(ps_socket_t *self, uint64_t conn)
{
    ps_lane_t *lane = ps_socket_lane_of(self, conn);

    if (lane != NULL) {
        ps_assembly_done(&lane->assembly);
    }
}

static uint64_t n_refused(const ps_socket_t *self)
{
    return self->lanes == NULL ? 0 : ps_lane_port_n_refused(self->lanes);
}

static size_t n_unfinished(const ps_socket_t *self)
{
    return self->lanes == NULL ? 0 : ps_lane_port_n_unfinished(self->lanes);
}

/* ---- waiting ------------------------------------------------------------- */

static void poll_item(const ps_socket_t *self, ps_poll_item_t *ret_item)
{
    *ret_item =
        (ps_poll_item_t){.fd = self->lane != NULL ? self->lane->fd : ps_lane_port_fd(self->lanes)};
}

static bool is_ready(const ps_socket_t *self)
{
    return self->lane != NULL ? ps_lane_is_ready(self->lane) : ps_lane_port_is_ready(self->lanes);
}

static bool heard(ps_socket_t *self, const ps_poll_item_t *said)
{
    if (said->is_ready && self->lane != NULL) {
        ps_lane_listen(self->lane);
    } else if (said->is_ready) {
        ps_lane_port_look(self->lanes);
    }
    return false; /* is_ready looks */
}

static bool is_open(const ps_socket_t *self)
{
    return self->lane != NULL || ps_lane_port_n(self->lanes) > 0;
}

static bool lie_down(const ps_socket_t *self)
{
    return self->lane != NULL ? ps_lane_sleep(self->lane) : ps_lane_port_sleep(self->lanes);
}

static void get_up(const ps_socket_t *self)
{
    if (self->lane != NULL) {
        ps_lane_wake(self->lane);
    } else {
        ps_lane_port_wake(self->lanes);
    }
}

static uint32_t work_us(const ps_socket_t *self)
{
    return self->lane == NULL ? 0 : ps_lane_work_us(self->lane);
}

const ps_carrier_t ps_carrier_lane = {
    .slot = 1,
    .bind = bind_lane,
    .connect = connect_lane,
    .linger = linger,
    .close = close_lanes,
    .send = send_message,
    .receive = receive,
    .send_text = send_text,
    .receive_text = receive_text,
    .flush = flush,
    .next_gone = next_gone,
    .is_gone = is_gone,
    .is_up = is_up,
    .forget = forget,
    .n_refused = n_refused,
    .n_unfinished = n_unfinished,
    .item = poll_item,
    .heard = heard,
    .is_ready = is_ready,
    .is_open = is_open,
    .lie_down = lie_down,
    .get_up = get_up,
    .work_us = work_us,
};

/* ---- blocks -------------------------------------------------------------- */

bool ps_socket_take_block(ps_socket_t *self, size_t size, ps_block_t *ret_block)
{
    ps_lane_share_t *share = self->lane == NULL ? NULL : self->lane->share;
    uint64_t at = 0;

    if (share == NULL || size > share->sizes.arena_bytes / CALLER_SHARE - share->caller_bytes) {
        return false;
    }
    ps_lane_reclaim(self->lane);
    if (!ps_arena_take(&share->free, size, &at)) {
        return false;
    }
    share->caller_bytes += size;
    *ret_block =
        (ps_block_t){.data = share->arena + at, .size = size, .share = ps_lane_share_keep(share)};
    return true;
}

void ps_block_done(ps_block_t *self)
{
    ps_lane_share_t *share = self->share;

    if (share == NULL) {
        return;
    }
    ps_arena_give(&share->free, (uint64_t)(self->data - share->arena), self->size);
    share->caller_bytes -= self->size;
    ps_lane_share_drop(&share);
    *self = (ps_block_t){.data = NULL};
}
