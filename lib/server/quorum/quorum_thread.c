/* SPDX-License-Identifier: Apache-2.0 */
/* The thread's start and end, and what the main thread says to it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/config/endpoint.h"
#include "server/quorum/quorum_inner.h"
#include "server/quorum/quorum_steps.h"
#include "transport/sockets/curve.h"
#include "transport/threads/thread.h"

#define ELECTION_MS 200
#define PATIENCE_MS 800 /* where members hear each other late */
#define HEARTBEAT_MS 40
#define ORDER_MS 1000 /* for the thread to come to an order … */
#define TAKE_MS 5000  /* … to propose: until it has, nothing is in doubt, and the lead is kept */
#define MESSAGE_BYTES ((size_t)1 << 20)
#define SEGMENT_BYTES (UINT64_C(8) << 20)
#define PEERS_MAX (2 * PS_QUORUM_MEMBERS_MAX) /* that made themselves known */

void ps_quorum_lock(ps_quorum_thread_t *self)
{
    (void)pthread_mutex_lock(&self->mutex);
}

void ps_quorum_unlock(ps_quorum_thread_t *self)
{
    (void)pthread_mutex_unlock(&self->mutex);
}

void ps_quorum_break(ps_quorum_thread_t *self, psd_status_t rc)
{
    char quoted[512];

    if (self->status != rc) {
        ps_log(PS_LOG_ERROR, "registry_log_failed", "status=%s reason=%s", psd_status_name(rc),
               ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
        ps_quorum_ring(self->news_fd);
    }
    self->status = rc;
    (void)pthread_cond_broadcast(&self->moved); /* nobody waits for it any more */
    (void)snprintf(self->text, sizeof self->text, "%s", psd_error_text(self->err));
    psd_error_clear(self->err);
}

/* ---- starting ---- */

static psd_status_t new_quorum(ps_quorum_thread_t *self, const ps_quorum_thread_args_t *args,
                               psd_error_t *err)
{
    ps_quorum_args_t quorum = {.node = args->node,
                               .cluster = args->cluster,
                               .now_ms = ps_now_ms(),
                               .election_ms = ELECTION_MS,
                               .patience_ms = PATIENCE_MS,
                               .heartbeat_ms = HEARTBEAT_MS,
                               .message_bytes = MESSAGE_BYTES,
                               .snapshot = args->snapshot};
    psd_status_t rc = ps_random(&quorum.seed, sizeof quorum.seed, err);

    return rc == PSD_OK ? ps_quorum_start(self->log, &quorum, &self->quorum, &self->life, err) : rc;
}

/* What it says to members that do not know where it listens. */
static bool make_hello(ps_quorum_thread_t *self, const ps_id_t *token)
{
    ps_node_message_t hello = ps_quorum_new_message(self, PS_NODE_MEMBER);

    hello.serial = self->life;
    hello.at.index = PS_SM_VERSION;
    hello.token = *token;
    memcpy(hello.node.name, self->node, sizeof hello.node.name);
    memcpy(hello.node.control, self->endpoint, sizeof hello.node.control);
    ps_proof_place(ps_quorum_thread_key(self), &self->cluster, self->member, self->life, self->node,
                   self->endpoint, &hello.proof);
    ps_buffer_done(&self->hello);
    return ps_node_message_encode(&hello, &self->hello);
}

static psd_status_t new_guard(ps_quorum_thread_t *self, const ps_quorum_thread_args_t *args,
                              psd_error_t *err)
{
    ps_speaker_t own = {.cluster = args->cluster,
                        .lineage = ps_registry_log_lineage(self->log),
                        .member = self->member};
    ps_id_t seed;
    psd_status_t rc = ps_random(&seed, sizeof seed, err);

    (void)snprintf(own.node, sizeof own.node, "%s", args->node);
    (void)snprintf(own.build, sizeof own.build, "%s", PSD_RELEASE);
    ps_proof_key(&args->secret, &args->cluster, args->node, &own.key);
    return rc == PSD_OK ? ps_guard_new(&own, &seed, &self->guard, err) : rc;
}

/* The endpoint names the node's key, where it has one. */
static psd_status_t name_key(ps_quorum_thread_t *self, psd_error_t *err)
{
    char named[PS_ENDPOINT_MAX + 1];

    if (self->socket.keys == NULL) {
        return PSD_OK;
    }
    if (!ps_curve_join(self->endpoint, self->socket.keys->public_key, named)) {
        return psd_error_set(err, PSD_CONFIG, "%s is too long for its key", self->endpoint);
    }
    memcpy(self->endpoint, named, sizeof named);
    return PSD_OK;
}

static psd_status_t open_port(ps_quorum_thread_t *self, const ps_quorum_thread_args_t *args,
                              psd_error_t *err)
{
    char endpoint[PS_ENDPOINT_MAX + 1];
    const char *const endpoints[] = {endpoint};
    const ps_id_t none = {{0}};
    psd_status_t rc = PSD_OK;

    (void)snprintf(endpoint, sizeof endpoint, args->host[0] == '\0' ? "ipc://%s" : "tcp://%s:*",
                   args->host[0] == '\0' ? args->path : args->host);
    rc = ps_socket_bind(endpoints, 1, &self->socket, &self->port, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (args->host[0] != '\0' && args->advertise[0] != '\0') {
        ps_endpoint_with_host(ps_socket_endpoint(self->port, 0), args->advertise, self->endpoint);
    } else {
        (void)snprintf(self->endpoint, sizeof self->endpoint, "%s",
                       ps_socket_endpoint(self->port, 0));
    }
    rc = name_key(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_socket_wake_by(self->port, self->wake_fd);
    (void)snprintf(self->node, sizeof self->node, "%s", args->node);
    return make_hello(self, &none)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for the registry's port");
}

static psd_status_t open_all(ps_quorum_thread_t *self, const ps_quorum_thread_args_t *args,
                             psd_error_t *err)
{
    const ps_registry_log_args_t log = {.disk = ps_disk_real(),
                                        .dir = args->dir,
                                        .cluster = args->cluster,
                                        .segment_bytes = SEGMENT_BYTES};
    psd_status_t rc = ps_registry_log_open(&log, &self->log, err);

    if (rc == PSD_OK && self->log == NULL) {
        return psd_error_set(err, PSD_DAMAGED, "%s has no log", args->dir);
    }
    if (rc == PSD_OK) {
        self->member = ps_registry_log_member(self->log);
        rc = new_quorum(self, args, err);
    }
    if (rc == PSD_OK) {
        rc = new_guard(self, args, err);
    }
    if (rc == PSD_OK) {
        rc = open_port(self, args, err);
    }
    return rc;
}

static void destroy(ps_quorum_thread_t *self)
{
    ps_socket_close(&self->port);
    ps_quorum_destroy(&self->quorum);
    ps_guard_destroy(&self->guard);
    ps_registry_log_close(&self->log);
    ps_buffer_done(&self->sending.bytes);
    ps_buffer_done(&self->coming);
    ps_buffer_done(&self->hello);
    ps_free(self->peers);
    psd_error_destroy(&self->err);
    (void)close(self->wake_fd);
    (void)close(self->news_fd);
    (void)pthread_cond_destroy(&self->moved);
    (void)pthread_mutex_destroy(&self->mutex);
    ps_free(self);
}

psd_status_t ps_quorum_thread_start(const ps_quorum_thread_args_t *args,
                                    ps_quorum_thread_t **ret_thread, psd_error_t *err)
{
    ps_quorum_thread_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;
    int number = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry's thread");
    }
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    (void)ps_cond_init(&self->moved);
    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->err = psd_error_new();
    self->socket = args->socket;
    self->knows = args->knows;
    self->knows_of = args->knows_of;
    self->turns = args->turns;
    self->take_ms = TAKE_MS;
    self->cluster = args->cluster;
    self->incarnation = args->incarnation;
    self->applied = args->snapshot == NULL ? 0 : args->snapshot->index;
    self->flushed = self->applied;
    self->cut = self->applied;
    if (self->err == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for the registry's thread");
    } else if (self->wake_fd < 0 || self->news_fd < 0) {
        rc = psd_error_set(err, PSD_IO, "no descriptor for the registry's thread");
    }
    if (rc == PSD_OK) {
        rc = open_all(self, args, err);
    }
    if (rc == PSD_OK) {
        number = ps_thread_start(&self->thread, ps_quorum_run, self);
        rc = number == 0 ? PSD_OK : psd_error_set(err, PSD_IO, "start a thread: error %d", number);
    }
    if (rc != PSD_OK) {
        destroy(self);
        return rc;
    }
    *ret_thread = self;
    return PSD_OK;
}

void ps_quorum_thread_stop(ps_quorum_thread_t **self_p)
{
    ps_quorum_thread_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_quorum_lock(self);
    self->stopping = true;
    ps_quorum_unlock(self);
    ps_quorum_ring(self->wake_fd);
    (void)pthread_join(self->thread, NULL);
    destroy(self);
    *self_p = NULL;
}

/* ---- the main thread ---- */

int ps_quorum_thread_fd(const ps_quorum_thread_t *self)
{
    return self->news_fd;
}

const char *ps_quorum_thread_endpoint(const ps_quorum_thread_t *self)
{
    return self->endpoint;
}

const ps_id_t *ps_quorum_thread_key(const ps_quorum_thread_t *self)
{
    return &ps_guard_own(self->guard)->key;
}

void ps_quorum_thread_trust(ps_quorum_thread_t *self, const ps_trust_t *nodes, size_t n)
{
    ps_quorum_lock(self);
    if (!ps_guard_trust(self->guard, nodes, n)) {
        ps_log(PS_LOG_WARN, "members_not_known", "nodes=%zu reason=\"no memory\"", n);
    }
    ps_quorum_unlock(self);
    ps_quorum_ring(self->wake_fd);
}

/* With the lock. NULL: no memory, or it would be this member. */
static ps_member_peer_t *meet(ps_quorum_thread_t *self, uint64_t member, const char *node)
{
    ps_member_peer_t *peer = ps_quorum_find_peer(self, member);

    if (member == self->member) {
        return NULL;
    }
    if (peer == NULL &&
        ps_grow(&self->peers, &self->peers_capacity, self->n_peers + 1, sizeof *self->peers)) {
        peer = &self->peers[self->n_peers++];
        *peer = (ps_member_peer_t){.member = member};
        (void)snprintf(peer->node, sizeof peer->node, "%s", node);
    }
    if (self->stranger.member == member) {
        self->stranger = (ps_node_message_t){.member = 0};
    }
    return peer;
}

/* Where it listens now. */
static void move(ps_member_peer_t *peer, char at[PS_ENDPOINT_MAX + 1], const char *endpoint)
{
    if (endpoint[0] != '\0' && strcmp(at, endpoint) != 0) {
        (void)snprintf(at, PS_ENDPOINT_MAX + 1, "%s", endpoint);
        peer->moved = true;
    }
}

void ps_quorum_thread_meet(ps_quorum_thread_t *self, uint64_t member, const char *node,
                           const char *control, const char *endpoint)
{
    ps_member_peer_t *peer = NULL;

    ps_quorum_lock(self);
    peer = meet(self, member, node);
    if (peer != NULL) {
        move(peer, peer->control, control);
        move(peer, peer->endpoint, endpoint);
    }
    ps_quorum_unlock(self);
    ps_quorum_ring(self->wake_fd);
}

/* It is of the member that it names, and no older than what is known. */
static bool is_right(const ps_quorum_thread_t *self, const ps_node_message_t *message)
{
    const ps_id_t *key = ps_guard_key(self->guard, message->node.name);
    const ps_member_peer_t *peer = ps_quorum_find_peer(self, message->member);
    ps_id_t proof;

    if (key == NULL || message->member == 0 || message->member > PS_QUORUM_MEMBER_MAX ||
        !ps_id_equal(&message->cluster, &self->cluster)) {
        return false;
    }
    ps_proof_place(key, &self->cluster, message->member, message->serial, message->node.name,
                   message->node.control, &proof);
    return ps_proof_equal(&proof, &message->proof) &&
           (peer == NULL
                ? self->n_peers < PEERS_MAX
                : strcmp(peer->node, message->node.name) == 0 && message->serial >= peer->life);
}

void ps_quorum_thread_hear(ps_quorum_thread_t *self, const ps_node_message_t *message)
{
    ps_member_peer_t *peer = NULL;

    ps_quorum_lock(self);
    if (is_right(self, message)) {
        peer = meet(self, message->member, message->node.name);
    }
    if (peer != NULL) {
        peer->life = message->serial;
        move(peer, peer->endpoint, message->node.control);
    }
    ps_quorum_unlock(self);
    ps_quorum_ring(self->wake_fd);
}

void ps_quorum_thread_hush(const ps_quorum_thread_t *self)
{
    uint64_t count = 0;
    ssize_t n = read(self->news_fd, &count, sizeof count);

    (void)n;
}

void ps_quorum_thread_repeat(ps_quorum_thread_t *self, const ps_id_t *token)
{
    ps_quorum_lock(self);
    if (!make_hello(self, token)) {
        ps_buffer_done(&self->hello); /* the next invitation brings it */
    }
    ps_quorum_unlock(self);
}

void ps_quorum_thread_look(ps_quorum_thread_t *self, ps_quorum_view_t *ret_view)
{
    ps_quorum_lock(self);
    *ret_view = (ps_quorum_view_t){.state = ps_quorum_state(self->quorum),
                                   .term = ps_quorum_term(self->quorum),
                                   .leader = ps_quorum_leader(self->quorum),
                                   .committed = ps_quorum_commit_index(self->quorum),
                                   .last = ps_quorum_last_index(self->quorum),
                                   .is_changing = ps_quorum_is_changing(self->quorum),
                                   .member = self->member,
                                   .stranger = {.id = self->stranger.member},
                                   .token = self->stranger.token,
                                   .stranger_machine = ps_quorum_machine_of(&self->stranger),
                                   .wants_database = self->sending.wanted,
                                   .installs = self->installs && !self->installed,
                                   .n_refused = ps_guard_n_refused(self->guard),
                                   .status = self->status};
    ps_quorum_members_sure(self->quorum, &ret_view->members);
    memcpy(ret_view->text, self->text, sizeof ret_view->text);
    memcpy(ret_view->stranger.node, self->stranger.node.name, sizeof ret_view->stranger.node);
    memcpy(ret_view->endpoint, self->stranger.node.control, sizeof ret_view->endpoint);
    ps_quorum_unlock(self);
}

bool ps_quorum_thread_peer(ps_quorum_thread_t *self, uint64_t member,
                           ps_quorum_peer_info_t *ret_info, bool *ret_caught_up)
{
    const ps_member_peer_t *peer = NULL;
    bool is_there = false;

    ps_quorum_lock(self);
    is_there = ps_quorum_peer_info(self->quorum, member, ret_info);
    *ret_caught_up = is_there && ps_quorum_has_caught_up(self->quorum, ps_now_ms(), member);
    peer = ps_quorum_find_peer(self, member);
    if (is_there && ps_quorum_state(self->quorum) != PS_QUORUM_LEADER && peer != NULL &&
        peer->said_ms > ret_info->heard_ms) {
        ret_info->heard_ms = peer->said_ms;
    }
    ps_quorum_unlock(self);
    return is_there;
}

uint32_t ps_quorum_machine_of(const ps_node_message_t *hello)
{
    return hello->at.index == 0 || hello->at.index > UINT32_MAX ? 1 : (uint32_t)hello->at.index;
}

uint32_t ps_quorum_thread_machine(ps_quorum_thread_t *self, uint64_t member)
{
    const ps_member_peer_t *peer = NULL;
    uint32_t machine = 0;

    ps_quorum_lock(self);
    peer = ps_quorum_find_peer(self, member);
    machine = member == self->member ? PS_SM_VERSION : peer == NULL ? 0 : peer->machine;
    ps_quorum_unlock(self);
    return machine;
}

uint64_t ps_quorum_thread_majority_ms(ps_quorum_thread_t *self)
{
    uint64_t at_ms = 0;

    ps_quorum_lock(self);
    at_ms = ps_quorum_heard_majority_ms(self->quorum, ps_now_ms());
    ps_quorum_unlock(self);
    return at_ms;
}

bool ps_quorum_thread_next(ps_quorum_thread_t *self, uint64_t *ret_index,
                           ps_quorum_entry_t *ret_entry)
{
    const ps_quorum_entry_t *entry = NULL;
    bool got = false;

    ps_quorum_lock(self);
    if (!self->installs && self->applied < ps_quorum_applicable(self->quorum)) {
        entry = ps_quorum_entry(self->quorum, self->applied + 1);
    }
    if (entry != NULL) {
        *ret_index = self->applied + 1;
        *ret_entry = (ps_quorum_entry_t){.term = entry->term, .kind = entry->kind};
        got = ps_buffer_append(&ret_entry->bytes, entry->bytes.data, entry->bytes.size);
    }
    ps_quorum_unlock(self);
    return got;
}

void ps_quorum_thread_applied(ps_quorum_thread_t *self, uint64_t index, uint64_t flushed)
{
    ps_quorum_lock(self);
    self->applied = index;
    self->flushed = flushed;
    ps_quorum_unlock(self);
}

/* Waits until the entry may be applied. */
static psd_status_t await(ps_quorum_thread_t *self, uint64_t index, uint64_t term, uint64_t ms,
                          psd_error_t *err)
{
    const struct timespec until = ps_cond_end_in((uint32_t)ms);
    int rc = 0;

    while (rc == 0 && ps_quorum_applicable(self->quorum) < index &&
           ps_quorum_state(self->quorum) == PS_QUORUM_LEADER &&
           ps_quorum_term(self->quorum) == term && !ps_quorum_thread_is_broken(self)) {
        rc = pthread_cond_timedwait(&self->moved, &self->mutex, &until);
    }
    if (ps_quorum_applicable(self->quorum) >= index && ps_quorum_term(self->quorum) == term) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_DEADLINE,
                         "the registry's members have not agreed within %" PRIu64 " ms", ms);
}

/* Whether the thread may still come to it. One that follows another leader takes no
 * proposal, and may wait for the main thread meanwhile. */
static bool may_take(const ps_quorum_thread_t *self, const ps_quorum_order_t *order)
{
    return !ps_quorum_thread_is_broken(self) &&
           (order->kind != PS_ORDER_PROPOSE || ps_quorum_state(self->quorum) == PS_QUORUM_LEADER);
}

/* Has the thread carry out an order, with the lock held. Errors: PSD_NOT_LEADER
 * the thread did not come to it. */
static psd_status_t give(ps_quorum_thread_t *self, ps_quorum_order_t *order, uint64_t ms)
{
    const struct timespec until = ps_cond_end_in((uint32_t)ms);
    int rc = 0;

    self->order = order;
    ps_quorum_ring(self->wake_fd);
    while (rc == 0 && !order->done && may_take(self, order)) {
        rc = pthread_cond_timedwait(&self->moved, &self->mutex, &until);
    }
    self->order = NULL;
    return order->done
               ? order->status
               : psd_error_set(order->err, PSD_NOT_LEADER, "this member of the registry is busy");
}

uint64_t ps_quorum_thread_last(ps_quorum_thread_t *self)
{
    uint64_t last = 0;

    ps_quorum_lock(self);
    last = ps_quorum_last_index(self->quorum);
    ps_quorum_unlock(self);
    return last;
}

psd_status_t ps_quorum_thread_propose(ps_quorum_thread_t *self, uint64_t term,
                                      const ps_bytes_t *commands, size_t n, uint64_t ms,
                                      uint64_t *ret_first, psd_error_t *err)
{
    ps_quorum_order_t order = {
        .kind = PS_ORDER_PROPOSE, .term = term, .commands = commands, .n = n, .err = err};
    psd_status_t rc = PSD_OK;

    ps_quorum_lock(self);
    rc = give(self, &order, self->take_ms);
    if (rc == PSD_OK) {
        *ret_first = order.index;
        rc = await(self, order.index + n - 1, order.term, ms, err);
    } else if (rc == PSD_DENIED || rc == PSD_BUSY) {
        rc = psd_error_set(err, PSD_NOT_LEADER, "another member of the registry leads");
    }
    ps_quorum_unlock(self);
    return rc;
}

psd_status_t ps_quorum_thread_change(ps_quorum_thread_t *self, ps_quorum_change_t change,
                                     uint64_t member, const char *node, psd_error_t *err)
{
    ps_quorum_order_t order = {
        .kind = PS_ORDER_CHANGE, .change = change, .member = member, .node = node, .err = err};
    psd_status_t rc = PSD_OK;

    ps_quorum_lock(self);
    rc = give(self, &order, ORDER_MS);
    ps_quorum_unlock(self);
    return rc;
}

psd_status_t ps_quorum_thread_transfer(ps_quorum_thread_t *self, uint64_t member, psd_error_t *err)
{
    ps_quorum_order_t order = {.kind = PS_ORDER_TRANSFER, .member = member, .err = err};
    psd_status_t rc = PSD_OK;

    ps_quorum_lock(self);
    rc = give(self, &order, ORDER_MS);
    ps_quorum_unlock(self);
    return rc;
}

void ps_quorum_thread_send_database(ps_quorum_thread_t *self, ps_buffer_t *backup,
                                    const ps_quorum_snapshot_t *snapshot)
{
    ps_quorum_lock(self);
    if (self->sending.wanted) {
        self->sending.wanted = false;
        self->sending.bytes = *backup; /* ownership moves */
        *backup = (ps_buffer_t){0};
        self->sending.snapshot = *snapshot;
    }
    ps_quorum_unlock(self);
    ps_quorum_ring(self->wake_fd);
}

ps_bytes_t ps_quorum_thread_installing(ps_quorum_thread_t *self,
                                       const ps_quorum_snapshot_t **ret_snapshot)
{
    *ret_snapshot = &self->snapshot; /* the thread waits */
    return (ps_bytes_t){.data = self->coming.data, .size = self->coming.size};
}

void ps_quorum_thread_installed(ps_quorum_thread_t *self)
{
    ps_quorum_lock(self);
    self->installed = true;
    ps_quorum_unlock(self);
    ps_quorum_ring(self->wake_fd);
}
