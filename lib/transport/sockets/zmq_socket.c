/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier ZeroMQ: a ROUTER or a DEALER with every option that matters set
 * in one place, over tcp and ipc. */
#include "transport/sockets/zmq_socket.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "base/text.h"
#include "transport/sockets/curve.h"
#include "transport/sockets/resolve.h"
#include "transport/sockets/socket_parts.h"
#include "transport/sockets/zap.h"
#include "transport/threads/fork.h"

#define IPC_PREFIX "ipc://"
#define ZMQ_AFTER 64 /* messages of other carriers, or looks in vain, before ZeroMQ */

/* A peer whose host is dead or cut off is noticed by its kernel's silence; one
 * whose threads stand still by ZeroMQ's, which sees nothing of a frame before
 * its end, nor what waits in kernels before its PING: over a slow link that may
 * be long. What was lost is sent again by the protocol. */
#define SILENCE_MS 4000
#define SILENCE_SHARE 4 /* of a patience: round trips may take seconds */
#define BEATS 4         /* in a patience, and probes in a silence */
#define HEARTBEAT_TTL_MORE_MS 2000
#define MS_IN_S 1000
#define BACKLOG 4096 /* a whole job may come at once; the system has a limit of its own */
#define ZAP_ENFORCE_DOMAIN \
    93                    /* in zmq.h only among drafts; without a ZAP thread nobody is let in */
#define HANDSHAKE_MS 5000 /* of a guarded port: a stranger holds a descriptor no longer */
#define RECONNECT_MS 20
#define RECONNECT_MAX_MS 1000

typedef struct option {
    int name;
    int value;
} option_t;

static bool is_ipc(const char *endpoint)
{
    return strncmp(endpoint, IPC_PREFIX, strlen(IPC_PREFIX)) == 0;
}

static psd_status_t set_options(void *handle, const option_t *options, size_t n, psd_error_t *err)
{
    for (size_t i = 0; i < n; i++) {
        if (zmq_setsockopt(handle, options[i].name, &options[i].value, sizeof options[i].value) !=
            0) {
            return ps_zmq_status(err, "set up socket");
        }
    }
    return PSD_OK;
}

static psd_status_t set_up(ps_socket_t *self, const ps_socket_args_t *args, psd_error_t *err)
{
    int64_t frame_bytes = args->frame_bytes > INT64_MAX ? -1 : (int64_t)args->frame_bytes;
    int patience_ms = args->patience_ms == 0 ? SILENCE_MS : (int)args->patience_ms;
    int silence_ms = args->patience_ms == 0 ? SILENCE_MS : patience_ms / SILENCE_SHARE;
    int probe_s = silence_ms < BEATS * MS_IN_S ? 1 : silence_ms / BEATS / MS_IN_S;
    const option_t common[] = {
        {ZMQ_SNDHWM, args->high_water},
        {ZMQ_RCVHWM, args->high_water},
        {ZMQ_LINGER, args->linger_ms},
        {ZMQ_HEARTBEAT_IVL, patience_ms / BEATS},
        {ZMQ_HEARTBEAT_TIMEOUT, patience_ms},
        {ZMQ_HEARTBEAT_TTL, patience_ms + HEARTBEAT_TTL_MORE_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, probe_s},
        {ZMQ_TCP_KEEPALIVE_INTVL, probe_s},
        {ZMQ_TCP_MAXRT, silence_ms},
    };
    const option_t port[] = {{ZMQ_ROUTER_MANDATORY, 1}, {ZMQ_BACKLOG, BACKLOG}};
    const option_t link[] = {{ZMQ_RECONNECT_IVL, RECONNECT_MS},
                             {ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS}};
    psd_status_t rc = PSD_OK;

    rc = set_options(self->handle, common, sizeof common / sizeof *common, err);
    if (rc == PSD_OK && self->is_port) {
        rc = set_options(self->handle, port, 2, err);
    } else if (rc == PSD_OK) {
        rc = set_options(self->handle, link, 2, err);
    }
    if (rc == PSD_OK &&
        zmq_setsockopt(self->handle, ZMQ_MAXMSGSIZE, &frame_bytes, sizeof frame_bytes) != 0) {
        rc = ps_zmq_status(err, "set up socket");
    }
    return rc;
}

/* The port asks the context's ZAP thread about each peer. */
static psd_status_t guard(ps_socket_t *self, psd_error_t *err)
{
    const option_t options[] = {{ZAP_ENFORCE_DOMAIN, 1}, {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS}};

    if (!ps_context_is_guarded(self->context)) {
        return psd_error_set(err, PSD_IO, "the port would not know its callers (no ZAP thread)");
    }
    self->is_guarded = true;
    if (zmq_setsockopt(self->handle, ZMQ_ZAP_DOMAIN, PS_ZAP_DOMAIN, strlen(PS_ZAP_DOMAIN)) != 0) {
        return ps_zmq_status(err, "set up socket");
    }
    return set_options(self->handle, options, sizeof options / sizeof *options, err);
}

/* What follows is bound with CURVE, or without: a port may have both. */
static psd_status_t speak_curve(ps_socket_t *self, bool does, psd_error_t *err)
{
    const option_t server = {ZMQ_CURVE_SERVER, does ? 1 : 0};

    if (self->keys == NULL) {
        return PSD_OK;
    }
    if (does && zmq_setsockopt(self->handle, ZMQ_CURVE_SECRETKEY, self->keys->secret_key,
                               PS_KEY_SIZE + 1) != 0) {
        return ps_zmq_status(err, "set up socket");
    }
    return set_options(self->handle, &server, 1, err);
}

/* A link to the server that has this key. */
static psd_status_t call_curve(ps_socket_t *self, const char *server_key, psd_error_t *err)
{
    if (self->keys == NULL) {
        return psd_error_set(err, PSD_DENIED,
                             "that psd asks for a key, and this program has none: set PSD_KEY_FILE "
                             "to its file (pscli auth keygen makes one, pscli auth allow lets it "
                             "in)");
    }
    if (zmq_setsockopt(self->handle, ZMQ_CURVE_SERVERKEY, server_key, PS_KEY_SIZE + 1) != 0 ||
        zmq_setsockopt(self->handle, ZMQ_CURVE_PUBLICKEY, self->keys->public_key,
                       PS_KEY_SIZE + 1) != 0 ||
        zmq_setsockopt(self->handle, ZMQ_CURVE_SECRETKEY, self->keys->secret_key,
                       PS_KEY_SIZE + 1) != 0) {
        return ps_zmq_status(err, "set up socket");
    }
    self->is_curve = true;
    return PSD_OK;
}

psd_status_t ps_zmq_open(ps_socket_t *self, const ps_socket_args_t *args, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->context == NULL) {
        rc = ps_context_new(1, &self->own_context, err);
        if (rc != PSD_OK) {
            return rc;
        }
        self->context = self->own_context;
    }
    rc =
        ps_context_open(self->context, self->is_port ? ZMQ_ROUTER : ZMQ_DEALER, &self->handle, err);
    if (rc == PSD_OK) {
        rc = set_up(self, args, err);
    }
    if (rc == PSD_OK && self->is_port && args->is_guarded) {
        rc = guard(self, err);
    }
    if (rc == PSD_OK) {
        self->fd = ps_poll_fd(self->handle);
        rc = self->fd < 0 ? ps_zmq_status(err, "set up socket") : PSD_OK;
    }
    if (rc == PSD_OK && args->is_watched) {
        rc = ps_socket_begin_watch(self, err);
    }
    return rc;
}

/* ZeroMQ cuts a port of more than 16 bits, and connects elsewhere. */
static bool has_port(const char *endpoint, bool is_port)
{
    const char *colon = strrchr(endpoint + strlen("tcp://"), ':');
    uint64_t port = 0;

    if (colon == NULL) {
        return false;
    }
    return (ps_text_u64(colon + 1, &port) && port <= 65535 && (port > 0 || is_port)) ||
           (is_port && strcmp(colon + 1, "*") == 0);
}

static psd_status_t check_endpoint(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    const option_t ipv6 = {ZMQ_IPV6, 1};

    assert(self != NULL);
    if (!is_ipc(endpoint) &&
        (strncmp(endpoint, "tcp://", 6) != 0 || !has_port(endpoint, self->is_port))) {
        return psd_error_set(err, PSD_INVALID,
                             "endpoint is \"%.300s\"; allowed: "
                             "tcp://HOST:PORT with a PORT of %s65535, "
                             "ipc://PATH or lane://PATH",
                             endpoint, self->is_port ? "* or 0 .. " : "1 .. ");
    }
    if (strncmp(endpoint, "tcp://[", 7) == 0) {
        return set_options(self->handle, &ipv6, 1, err);
    }
    return PSD_OK;
}

/* ZeroMQ would make the file with the umask's mode, and take the place of
 * whatever lies there. */
static psd_status_t bind_ipc(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    const char *path = endpoint + strlen(IPC_PREFIX);
    option_t use = {ZMQ_USE_FD, -1};
    psd_status_t rc = ps_door_listen(path, SOCK_STREAM, self->peers, &use.value, err);

    if (rc == PSD_OK) {
        rc = set_options(self->handle, &use, 1, err);
    }
    if (rc == PSD_OK && zmq_bind(self->handle, endpoint) != 0) {
        rc = ps_zmq_status(err, "use its file");
    }
    if (rc != PSD_OK && use.value >= 0) {
        (void)unlink(path);
        (void)close(use.value);
    }
    use.value = -1; /* for those that follow */
    if (rc == PSD_OK) {
        rc = set_options(self->handle, &use, 1, err);
    }
    return rc == PSD_OK ? ps_socket_keep_endpoint(self, endpoint, err)
                        : psd_error_wrap(err, rc, "bind \"%.300s\"", endpoint);
}

/* What a bind or connect failed with: a bad endpoint is the caller's fault. */
static psd_status_t endpoint_error(const char *doing, const char *endpoint, psd_error_t *err)
{
    int code = zmq_errno();
    bool is_bad = code == EINVAL || code == EPROTONOSUPPORT || code == ENAMETOOLONG;

    return psd_error_set(err, is_bad ? PSD_INVALID : PSD_IO, "%s \"%.300s\": %s", doing, endpoint,
                         zmq_strerror(code));
}

static psd_status_t bind_to(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    char address[PS_RESOLVE_SIZE];
    char bound[PATH_MAX] = "";
    size_t size = sizeof bound;
    psd_status_t rc = ps_resolve_bind(endpoint, address, err);

    if (rc == PSD_OK) {
        rc = check_endpoint(self, address, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    assert(self != NULL);
    self->is_dry = false;
    rc = speak_curve(self, !is_ipc(endpoint), err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (is_ipc(endpoint)) {
        return bind_ipc(self, endpoint, err);
    }
    if (zmq_bind(self->handle, address) != 0) {
        return endpoint_error("bind", endpoint, err);
    }
    if (zmq_getsockopt(self->handle, ZMQ_LAST_ENDPOINT, bound, &size) != 0) {
        return endpoint_error("ask what was bound for", endpoint, err);
    }
    return ps_socket_keep_endpoint(self, bound, err);
}

static psd_status_t connect_to(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    char address[PS_ENDPOINT_MAX + 1];
    char server_key[PS_KEY_SIZE + 1];
    psd_status_t rc = ps_curve_split(endpoint, address, server_key, err);

    if (rc == PSD_OK) {
        rc = check_endpoint(self, address, err);
    }
    if (rc == PSD_OK && server_key[0] != '\0') {
        rc = call_curve(self, server_key, err);
    } else if (rc == PSD_OK && self->keys != NULL && !is_ipc(address)) {
        rc =
            psd_error_set(err, PSD_DENIED,
                          "\"%.300s\" names no key, and this program has one (PSD_KEY_FILE), so it "
                          "sends nothing in the clear: take the endpoint from the psd's "
                          "endpoints.json or log (tcp://HOST:PORT#KEY), or unset PSD_KEY_FILE",
                          endpoint);
    }
    if (rc == PSD_OK && zmq_connect(self->handle, address) != 0) {
        rc = endpoint_error("connect", endpoint, err);
    }
    return rc == PSD_OK ? ps_socket_keep_endpoint(self, endpoint, err) : rc;
}

void ps_zmq_drop(ps_socket_t *self)
{
    const option_t at_once = {ZMQ_LINGER, 0};

    if (self->handle != NULL && !ps_fork_is_since(self->n_forks)) {
        (void)set_options(self->handle, &at_once, 1, NULL);
    }
}

/* Those that the port has made. */
static void remove_files(const ps_socket_t *self)
{
    for (size_t i = 0; self->is_port && i < self->n_endpoints; i++) {
        if (is_ipc(self->endpoints[i])) {
            (void)unlink(self->endpoints[i] + strlen(IPC_PREFIX));
        }
    }
}

/* ZeroMQ's own threads send for the handle's linger. */
static void linger(ps_socket_t *self, uint32_t linger_ms)
{
    (void)linger_ms;
    ps_frames_flush(self);
}

static void close_zmq(ps_socket_t *self)
{
    ps_socket_end_watch(self);
    remove_files(self);
    if (self->handle != NULL) {
        ps_context_close(self->context, self->handle);
        self->handle = NULL;
    }
    ps_context_destroy(&self->own_context);
}

/* A port that has other carriers asks them first, which is free; ZeroMQ when it
 * is known to have something, and now and then. */
static bool has_turn(ps_socket_t *self)
{
    if (self->lanes == NULL && self->plugin.end == NULL) {
        return true;
    }
    if (self->zmq_is_ready || ++self->n_received >= ZMQ_AFTER ||
        (self->plugin.end == NULL && ps_lane_port_n(self->lanes) == 0)) {
        self->n_received = 0;
        return true;
    }
    return false;
}

static psd_status_t receive(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                            ps_message_t *ret_message, ps_payload_t **ret_payload,
                            ps_room_t *ret_room, psd_error_t *err)
{
    (void)ret_room; /* none is offered */
    if (!has_turn(self)) {
        *ret_got = false;
        return PSD_OK;
    }
    return ps_frames_receive(self, &ps_carrier_zmq, ret_got, ret_conn, ret_message, ret_payload,
                             err);
}

static psd_status_t receive_text(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                 ps_asker_t *ret_caller, ps_buffer_t *ret_text, psd_error_t *err)
{
    return ps_frames_receive_text(self, &ps_carrier_zmq, ret_got, ret_conn, ret_caller, ret_text,
                                  err);
}

/* A port's monitor names connections; nobody else holds anything of them. */
static bool next_gone(ps_socket_t *self, uint64_t *ret_conn)
{
    (void)ret_conn;
    if (self->is_port) {
        ps_socket_look_closed(self);
    }
    return false;
}

static void forget(ps_socket_t *self, uint64_t conn)
{
    ps_unfinished_forget(self, conn);
}

static uint64_t n_refused(const ps_socket_t *self)
{
    return self->n_refused;
}

static size_t n_unfinished(const ps_socket_t *self)
{
    return self->unfinished.count;
}

static void item(const ps_socket_t *self, ps_poll_item_t *ret_item)
{
    *ret_item = (ps_poll_item_t){
        .socket = self->handle, .fd = self->fd, .is_dry = self->is_dry && !self->is_lent};
}

static bool heard(ps_socket_t *self, const ps_poll_item_t *said)
{
    self->is_dry = said->is_dry;
    self->zmq_is_ready = said->is_ready || ps_batches_is_open(&self->batches);
    return self->zmq_is_ready;
}

const ps_carrier_t ps_carrier_zmq = {
    .slot = 0,
    .bind = bind_to,
    .connect = connect_to,
    .linger = linger,
    .close = close_zmq,
    .send = ps_frames_send,
    .receive = receive,
    .send_text = ps_frames_send_text,
    .receive_text = receive_text,
    .flush = ps_frames_flush,
    .put = ps_zmq_put,
    .take = ps_zmq_take,
    .next_gone = next_gone,
    .is_gone = ps_socket_was_lost,
    .is_up = ps_socket_is_connected,
    .forget = forget,
    .n_refused = n_refused,
    .n_unfinished = n_unfinished,
    .item = item,
    .heard = heard,
};
