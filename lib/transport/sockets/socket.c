/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing: a port or a link with every option that matters set in
 * one place. */
#include "transport/sockets/socket.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/text.h"
#include "transport/threads/fork.h"
#include "transport/sockets/poll.h"
#include "transport/sockets/resolve.h"
#include "transport/sockets/socket_inner.h"

#define IPC_PREFIX "ipc://"

/* A peer whose host is dead or cut off is noticed by its kernel's silence; one
 * whose threads stand still by ZeroMQ's, which sees nothing of a frame before
 * its end, nor what waits in kernels before its PING: over a slow link that may
 * be long. What was lost is sent again by the protocol. */
#define SILENCE_MS 4000
#define SILENCE_SHARE 4 /* of a patience: round trips may take seconds */
#define BEATS 4         /* in a patience, and probes in a silence */
#define HEARTBEAT_TTL_MORE_MS 2000
#define MS_IN_S 1000
#define STALE_MS (2 * PS_PATIENCE_BODIES_MS) /* without a piece */
#define STALE_LOOK_MS 1000
#define BACKLOG 4096 /* a whole job may come at once; the system has a limit of its own */
#define RECONNECT_MS 20
#define RECONNECT_MAX_MS 1000

typedef struct option {
    int name;
    int value;
} option_t;

static bool is_lane(const char *endpoint)
{
    return strncmp(endpoint, PS_LANE_PREFIX, strlen(PS_LANE_PREFIX)) == 0;
}

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

static psd_status_t new_socket(bool is_port, bool is_lane, const ps_socket_args_t *args,
                               ps_socket_t **ret_socket, psd_error_t *err)
{
    PSD_AUTO(ps_socket_close) ps_socket_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    assert(args->high_water > 0 && args->chunk_bytes > 0);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a socket");
    }
    self->is_port = is_port;
    self->n_forks = ps_fork_count();
    self->chunk_bytes = args->chunk_bytes;
    self->assembly_bytes = args->assembly_bytes;
    self->unfinished_max = UINT64_MAX;
    self->linger_ms = args->linger_ms < 0 ? 0 : (uint32_t)args->linger_ms;
    self->peers = args->peers;
    self->lane_options = args->lane;
    self->lane_args = (ps_lane_args_t){.high_water = (uint32_t)args->high_water,
                                       .assembly_bytes = args->assembly_bytes};
    ps_spin_init(&self->spin, args->lane.spin_us);
    if (is_lane) {
        *ret_socket = self;
        self = NULL;
        return PSD_OK;
    }
    self->context = args->context;
    if (self->context == NULL) {
        rc = ps_context_new(1, &self->own_context, err);
        if (rc != PSD_OK) {
            return rc;
        }
        self->context = self->own_context;
    }
    rc = ps_context_open(self->context, is_port ? ZMQ_ROUTER : ZMQ_DEALER, &self->handle, err);
    if (rc == PSD_OK) {
        rc = set_up(self, args, err);
    }
    if (rc == PSD_OK) {
        self->fd = ps_poll_fd(self->handle);
        rc = self->fd < 0 ? ps_zmq_status(err, "set up socket") : PSD_OK;
    }
    if (rc == PSD_OK) {
        *ret_socket = self;
        self = NULL;
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

psd_status_t ps_socket_keep_endpoint(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    char *copy = ps_strdup(endpoint);

    if (copy == NULL ||
        !ps_grow(&self->endpoints, &self->capacity, self->n_endpoints + 1, sizeof copy)) {
        ps_free(copy);
        return psd_error_set(err, PSD_NOMEM, "no memory for an endpoint");
    }
    self->endpoints[self->n_endpoints++] = copy;
    return PSD_OK;
}

psd_status_t ps_socket_bind(const char *const *endpoints, size_t n_endpoints,
                            const ps_socket_args_t *args, ps_socket_t **ret_socket,
                            psd_error_t *err)
{
    PSD_AUTO(ps_socket_close) ps_socket_t *self = NULL;
    psd_status_t rc = new_socket(true, false, args, &self, err);

    if (rc == PSD_OK && args->is_watched) {
        rc = ps_socket_begin_watch(self, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < n_endpoints; i++) {
        rc = ps_socket_bind_more(self, endpoints[i], err);
    }
    if (rc == PSD_OK) {
        *ret_socket = self;
        self = NULL;
    }
    return rc;
}

psd_status_t ps_socket_bind_more(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    char address[PS_RESOLVE_SIZE];
    char bound[PATH_MAX] = "";
    size_t size = sizeof bound;
    psd_status_t rc = PSD_OK;

    if (is_lane(endpoint)) {
        return ps_socket_bind_lane(self, endpoint, err);
    }
    rc = ps_resolve_bind(endpoint, address, err);
    if (rc == PSD_OK) {
        rc = check_endpoint(self, address, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    assert(self != NULL);
    self->is_dry = false;
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

const char *ps_socket_endpoint(const ps_socket_t *self, size_t i)
{
    assert(i < self->n_endpoints);
    return self->endpoints[i];
}

psd_status_t ps_socket_connect(const char *endpoint, const ps_socket_args_t *args,
                               ps_socket_t **ret_socket, psd_error_t *err)
{
    PSD_AUTO(ps_socket_close) ps_socket_t *self = NULL;
    psd_status_t rc = new_socket(false, is_lane(endpoint), args, &self, err);

    if (rc == PSD_OK && is_lane(endpoint)) {
        rc = ps_socket_connect_lane(self, endpoint, err);
    } else if (rc == PSD_OK) {
        rc = check_endpoint(self, endpoint, err);
        if (rc == PSD_OK && args->is_watched) {
            rc = ps_socket_begin_watch(self, err);
        }
        if (rc == PSD_OK && zmq_connect(self->handle, endpoint) != 0) {
            rc = endpoint_error("connect", endpoint, err);
        }
    }
    if (rc == PSD_OK) {
        rc = ps_socket_keep_endpoint(self, endpoint, err);
    }
    if (rc == PSD_OK) {
        *ret_socket = self;
        self = NULL;
    }
    return rc;
}

static void drop_unfinished(ps_socket_t *self)
{
    size_t at = 0;
    uint64_t conn = 0;
    void *value = NULL;

    while (ps_map_next(&self->unfinished, &at, &conn, &value)) {
        ps_unfinished_t *unfinished = value;

        ps_assembly_done(&unfinished->assembly);
        ps_free(unfinished);
    }
    ps_map_done(&self->unfinished);
}

/* Those that the port has made; lanes remove their own. */
static void remove_files(const ps_socket_t *self)
{
    for (size_t i = 0; self->is_port && i < self->n_endpoints; i++) {
        if (is_ipc(self->endpoints[i])) {
            (void)unlink(self->endpoints[i] + strlen(IPC_PREFIX));
        }
    }
}

void ps_socket_close(ps_socket_t **self_p)
{
    ps_socket_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    if (!ps_fork_is_since(self->n_forks)) {
        ps_socket_linger_lanes(self, self->linger_ms);
        ps_socket_send_batches(self);
    }
    ps_socket_close_lanes(self);
    ps_batches_done(&self->batches);
    drop_unfinished(self);
    ps_port_conns_done(&self->conns);
    ps_socket_end_watch(self);
    remove_files(self);
    if (self->handle != NULL) {
        ps_context_close(self->context, self->handle);
    }
    ps_context_destroy(&self->own_context);
    for (size_t i = 0; i < self->n_endpoints; i++) {
        ps_free(self->endpoints[i]);
    }
    ps_free(self->endpoints);
    ps_free(self);
}

void ps_socket_drop(ps_socket_t **self_p)
{
    const option_t at_once = {ZMQ_LINGER, 0};

    if (*self_p != NULL) {
        (*self_p)->linger_ms = 0;
    }
    if (*self_p != NULL && (*self_p)->handle != NULL && !ps_fork_is_since((*self_p)->n_forks)) {
        (void)set_options((*self_p)->handle, &at_once, 1, NULL);
    }
    ps_socket_close(self_p);
}

void *ps_socket_handle(ps_socket_t *self)
{
    self->is_lent = true;
    return self->handle;
}

uint64_t ps_socket_n_refused(const ps_socket_t *self)
{
    return self->n_refused + (self->lanes == NULL ? 0 : ps_lane_port_n_refused(self->lanes));
}

uint32_t ps_socket_n_collected(const ps_socket_t *self)
{
    uint32_t n = 0;

    for (size_t i = 0; i < self->batches.n_out; i++) {
        n += self->batches.out[i].batch.n;
    }
    return n;
}

uint64_t ps_socket_n_lost(const ps_socket_t *self)
{
    return self->n_lost;
}

size_t ps_socket_n_unfinished(const ps_socket_t *self)
{
    return self->unfinished.count +
           (self->lanes == NULL ? 0 : ps_lane_port_n_unfinished(self->lanes));
}

uint64_t ps_socket_unfinished_bytes(const ps_socket_t *self)
{
    return self->unfinished_bytes;
}

void ps_socket_set_unfinished_max(ps_socket_t *self, uint64_t bytes)
{
    self->unfinished_max = bytes;
}

bool ps_socket_find_answer(ps_socket_t *self, uint64_t conn, uint64_t request, uint64_t epoch,
                           uint64_t now_ms, uint64_t *ret_sent, uint64_t *ret_bytes)
{
    return ps_port_conns_find(&self->conns, conn, request, epoch, now_ms, ret_sent, ret_bytes);
}

bool ps_socket_next_piece(ps_socket_t *self, uint64_t *ret_request)
{
    ps_unfinished_t *unfinished = ps_map_get(&self->unfinished, 0);

    return unfinished != NULL && ps_assembly_next_fresh(&unfinished->assembly, ret_request);
}

void ps_socket_set_chunk(ps_socket_t *self, uint32_t chunk_bytes)
{
    assert(chunk_bytes > 0);
    self->chunk_bytes = chunk_bytes;
}

void ps_socket_forget(ps_socket_t *self, uint64_t conn)
{
    ps_unfinished_t *unfinished = ps_map_remove(&self->unfinished, conn);
    ps_lane_t *lane = ps_socket_lane_of(self, conn);

    if (lane != NULL) {
        ps_assembly_done(&lane->assembly);
    }
    if (unfinished != NULL) {
        self->unfinished_bytes -= unfinished->assembly.bytes;
        ps_assembly_done(&unfinished->assembly);
        ps_free(unfinished);
    }
}

/* The next connection that has stopped in the middle of a message. */
static bool next_stale(const ps_socket_t *self, uint64_t now_ms, uint64_t *ret_conn)
{
    size_t at = 0;
    void *value = NULL;

    while (ps_map_next(&self->unfinished, &at, ret_conn, &value)) {
        const ps_unfinished_t *unfinished = value;

        if (now_ms >= unfinished->last_ms + STALE_MS) {
            return true;
        }
    }
    return false;
}

void ps_socket_drop_stale(ps_socket_t *self, uint64_t now_ms)
{
    uint64_t conn = 0;

    if (self->unfinished.count == 0 || now_ms < self->stale_due_ms) {
        return;
    }
    self->stale_due_ms = now_ms + STALE_LOOK_MS;
    while (next_stale(self, now_ms, &conn)) {
        ps_socket_forget(self, conn);
    }
}
