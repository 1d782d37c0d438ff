/* SPDX-License-Identifier: Apache-2.0 */
/* Turns of a loop: what has arrived, what is due, what the machine wants. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/quorum/quorum_inner.h"
#include "server/quorum/quorum_steps.h"

#define ROOM_MS 1000   /* between two tries to write where there was no room */
#define STRAY_MS 10000 /* for a member that was removed to learn it */
#define BATCH 256
#define TRAILING 1024  /* entries that stay for members that are a bit late */
#define CUT_EVERY 8192 /* entries between two cuts of the log */

static void hush(int fd)
{
    uint64_t count = 0;
    ssize_t n = read(fd, &count, sizeof count);

    (void)n;
}

ps_node_message_t ps_quorum_new_message(const ps_quorum_thread_t *self, ps_node_message_kind_t kind)
{
    return (ps_node_message_t){.kind = kind,
                               .serial = 1,
                               .cluster = self->cluster,
                               .incarnation = self->incarnation,
                               .member = self->member};
}

static bool is_member(const ps_quorum_thread_t *self, uint64_t id)
{
    ps_quorum_members_t members = {0};

    return ps_quorum_members(self->quorum, &members) != 0 &&
           ps_quorum_members_find(&members, id) != NULL;
}

/* A peer that has been no member for a while was removed. One that leads may be a
 * member of which this one does not know yet. */
static void forget_strays(ps_quorum_thread_t *self, uint64_t now_ms)
{
    for (size_t i = self->n_peers; i > 0; i--) {
        ps_member_peer_t *peer = &self->peers[i - 1];

        if (is_member(self, peer->member) || ps_quorum_leader(self->quorum) == peer->member ||
            ps_quorum_leader(self->quorum) == 0) {
            peer->stray_ms = 0;
        } else if (peer->stray_ms == 0) {
            peer->stray_ms = now_ms;
        } else if (now_ms >= peer->stray_ms + STRAY_MS) {
            ps_socket_drop(&peer->door);
            ps_socket_drop(&peer->link);
            memmove(peer, peer + 1, (self->n_peers - i) * sizeof *peer);
            self->n_peers--;
        }
    }
}

/* ---- effects ---- */

static void send_to(ps_quorum_thread_t *self, uint64_t member, ps_bytes_t bytes)
{
    ps_member_peer_t *peer = ps_quorum_find_peer(self, member);

    if (peer != NULL) {
        ps_quorum_send_sealed(peer, bytes);
    }
}

static void obey(ps_quorum_thread_t *self, const ps_quorum_effect_t *effect)
{
    psd_status_t rc = PSD_OK;

    switch (effect->kind) {
    case PS_QUORUM_TERM:
        rc = ps_registry_log_set_term(self->log, effect->term, effect->vote, self->err);
        break;
    case PS_QUORUM_BEGIN:
    case PS_QUORUM_CUT:
    case PS_QUORUM_EXTEND:
        self->op = effect->op;
        rc = self->room_ms == 0 || effect->kind != PS_QUORUM_EXTEND
                 ? ps_quorum_log_obey(self->log, self->quorum, effect, self->err)
                 : PSD_OK;
        break;
    case PS_QUORUM_SEND:
        send_to(self, effect->to, effect->bytes);
        break;
    case PS_QUORUM_SEND_SNAPSHOT:
        ps_quorum_want_database(self, effect->to);
        break;
    case PS_QUORUM_INSTALL:
        self->installs = true;
        self->installed = false;
        self->snapshot = *effect->snapshot;
        ps_quorum_ring(self->news_fd);
        break;
    case PS_QUORUM_COMMITTED:
    case PS_QUORUM_ROLE:
    default:
        (void)pthread_cond_broadcast(&self->moved);
        ps_quorum_ring(self->news_fd);
        break;
    }
    if (rc == PSD_LIMIT && effect->kind == PS_QUORUM_EXTEND) {
        self->room_ms = ps_now_ms() + ROOM_MS;
    }
    if (rc != PSD_OK) {
        ps_quorum_break(self, rc);
    }
}

bool ps_quorum_thread_is_broken(const ps_quorum_thread_t *self)
{
    return (self->status != PSD_OK && self->status != PSD_LIMIT) ||
           ps_quorum_is_broken(self->quorum);
}

/* Flushes what was written, without the lock. */
static void flush(ps_quorum_thread_t *self)
{
    uint64_t op = self->op;
    psd_status_t rc = PSD_OK;

    self->op = 0;
    ps_quorum_unlock(self);
    rc = ps_registry_log_flush(self->log, self->err);
    ps_quorum_lock(self);
    if (rc == PSD_OK) {
        rc = ps_quorum_flushed(self->quorum, ps_now_ms(), op, self->err);
    }
    if (rc != PSD_OK) {
        ps_quorum_break(self, rc);
    }
}

/* Carries out what the machine wants, until it wants nothing, or waits for the
 * main thread. */
static void carry_out(ps_quorum_thread_t *self)
{
    ps_quorum_effect_t effect;

    while (!ps_quorum_thread_is_broken(self)) {
        while (!ps_quorum_thread_is_broken(self) && !(self->installs && !self->installed) &&
               ps_quorum_next(self->quorum, &effect)) {
            obey(self, &effect);
        }
        if (self->installs && self->installed) {
            psd_status_t rc = ps_registry_log_flush(self->log, self->err);

            self->installs = false;
            ps_buffer_done(&self->coming);
            self->coming_index = 0;
            self->coming_whole = false;
            rc = rc == PSD_OK ? ps_quorum_installed(self->quorum, ps_now_ms(), self->err) : rc;
            if (rc != PSD_OK) {
                ps_quorum_break(self, rc);
            }
        } else if (self->unwanted != 0) {
            uint64_t to = self->unwanted;

            self->unwanted = 0;
            if (ps_quorum_snapshot_sent(self->quorum, ps_now_ms(), to, NULL, self->err) != PSD_OK) {
                ps_quorum_break(self, PSD_NOMEM);
            }
        } else if (self->op != 0 && self->room_ms == 0 && !ps_quorum_thread_is_broken(self)) {
            flush(self);
        } else {
            return;
        }
    }
}

/* There was no room: tries again, and has another member lead meanwhile. */
static void try_room(ps_quorum_thread_t *self, uint64_t now_ms)
{
    psd_status_t rc = PSD_OK;

    if (self->room_ms == 0 || now_ms < self->room_ms) {
        return;
    }
    if (ps_quorum_state(self->quorum) == PS_QUORUM_LEADER) {
        /* When nobody else can, it leads on, and takes no command. */
        (void)!ps_quorum_transfer(self->quorum, now_ms, 0, NULL);
        carry_out(self);
    }
    rc = ps_quorum_log_rest(self->log, self->quorum, self->err);
    self->room_ms = rc == PSD_LIMIT ? now_ms + ROOM_MS : 0;
    if (rc == PSD_OK) {
        ps_log(PS_LOG_INFO, "registry_log_has_room", "index=%" PRIu64,
               ps_registry_log_last(self->log));
        self->status = PSD_OK;
    } else {
        ps_quorum_break(self, rc);
    }
}

/* ---- what arrives ---- */

static void take_node_message(ps_quorum_thread_t *self, const ps_guard_word_t *word)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

    if (ps_node_message_decode(word->message, &message, NULL) != PSD_OK ||
        !ps_id_equal(&message.cluster, &self->cluster) || message.member != word->member) {
        return;
    }
    if (message.kind == PS_NODE_PIECE && !self->installs) {
        ps_quorum_take_piece(self, &message);
    } else if (message.kind == PS_NODE_GOT) {
        ps_quorum_take_got(self, &message);
    } else if (message.kind == PS_NODE_MEMBER && strcmp(message.node.name, word->node) == 0) {
        ps_member_peer_t *peer = ps_quorum_find_peer(self, message.member);

        if (!is_member(self, message.member)) {
            self->stranger = message;
            ps_quorum_ring(self->news_fd);
        }
        if (peer == NULL) {
            return;
        }
        peer->said_ms = ps_now_ms();
        peer->machine = ps_quorum_machine_of(&message);
        if (strcmp(peer->endpoint, message.node.control) != 0) {
            memcpy(peer->endpoint, message.node.control, sizeof peer->endpoint);
            peer->moved = true;
        }
    }
}

static void take_message(ps_quorum_thread_t *self, const ps_guard_word_t *word)
{
    psd_status_t rc = PSD_OK;

    if (ps_node_message_is(word->message)) {
        take_node_message(self, word);
        return;
    }
    if (ps_quorum_message_from(word->message) != word->member) {
        return;
    }
    if (ps_quorum_message_kind(word->message) == PS_QUORUM_SNAPSHOT &&
        !ps_quorum_describes(word->message, self->coming_whole ? self->coming_index : 0)) {
        return; /* the database did not arrive: it is sent again */
    }
    rc = ps_quorum_receive(self->quorum, ps_now_ms(), word->message, self->err);
    if (rc == PSD_NOMEM) {
        ps_quorum_break(self, rc);
    } else if (rc != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "member_message_refused", "status=%s reason=\"%s\"",
               psd_status_name(rc), psd_error_text(self->err));
        psd_error_clear(self->err);
    }
}

static void receive(ps_quorum_thread_t *self)
{
    for (int i = 0; i < BATCH && !ps_quorum_thread_is_broken(self) && !self->installs; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        ps_guard_word_t word;
        ps_asker_t asker;
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc =
            self->knows == NULL
                ? ps_socket_receive_text(self->port, &got, &conn, &text, NULL)
                : ps_socket_receive_from(self->port, &got, &conn, &asker, &text, NULL);

        if (rc == PSD_OK && !got) {
            return;
        }
        if (rc == PSD_OK && (self->knows == NULL || self->knows(self->knows_of, &asker)) &&
            ps_quorum_admit(self, conn, (ps_bytes_t){.data = text.data, .size = text.size},
                            &word)) {
            take_message(self, &word);
            carry_out(self);
        }
    }
}

/* ---- the thread ---- */

/* Entries that the database has may leave cache and log. */
static void cut_log(ps_quorum_thread_t *self, uint64_t now_ms)
{
    psd_status_t rc = PSD_OK;

    if (self->flushed < self->cut + CUT_EVERY) {
        return;
    }
    self->cut = self->flushed;
    rc = ps_quorum_snapshot_taken(self->quorum, now_ms, self->cut, TRAILING, self->err);
    if (rc == PSD_OK) {
        rc = ps_registry_log_cut_head(self->log, self->cut - TRAILING, self->err);
    }
    if (rc != PSD_OK) {
        ps_quorum_break(self, rc);
    }
}

static void take_order(ps_quorum_thread_t *self)
{
    ps_quorum_order_t *order = self->order;
    uint64_t now_ms = ps_now_ms();

    if (order == NULL || ps_quorum_thread_is_broken(self) || self->installs) {
        return;
    }
    switch (order->kind) {
    case PS_ORDER_PROPOSE:
        order->status = ps_quorum_term(self->quorum) == order->term
                            ? ps_quorum_propose(self->quorum, now_ms, order->commands, order->n,
                                                &order->index, order->err)
                            : psd_error_set(order->err, PSD_DENIED, "its term is over");
        break;
    case PS_ORDER_CHANGE:
        order->status =
            ps_quorum_propose_members(self->quorum, now_ms, order->change, order->member,
                                      order->node, &order->index, order->err);
        break;
    case PS_ORDER_TRANSFER:
    default:
        order->status = ps_quorum_transfer(self->quorum, now_ms, order->member, order->err);
        break;
    }
    order->done = true;
    self->order = NULL;
    (void)pthread_cond_broadcast(&self->moved);
    carry_out(self);
}

static void turn(ps_quorum_thread_t *self)
{
    uint64_t now_ms = ps_now_ms();

    forget_strays(self, now_ms);
    ps_quorum_receive_links(self);
    for (size_t i = 0; i < self->n_peers; i++) {
        ps_quorum_greet(self, &self->peers[i], now_ms);
    }
    carry_out(self);
    if (ps_quorum_thread_is_broken(self) || self->installs) {
        return;
    }
    take_order(self);
    receive(self);
    now_ms = ps_now_ms();
    if (!self->installs && now_ms >= ps_quorum_deadline(self->quorum)) {
        psd_status_t rc = ps_quorum_tick(self->quorum, now_ms, self->err);

        if (rc != PSD_OK) {
            ps_quorum_break(self, rc);
        }
    }
    if (!self->installs) {
        carry_out(self);
        try_room(self, now_ms);
        carry_out(self);
        ps_quorum_go_on_sending(self, now_ms);
        carry_out(self);
        cut_log(self, now_ms);
    }
    carry_out(self);
}

static uint64_t wait_ms(const ps_quorum_thread_t *self)
{
    uint64_t now_ms = ps_now_ms();
    uint64_t due_ms = ps_quorum_thread_is_broken(self) || self->installs
                          ? UINT64_MAX
                          : ps_quorum_deadline(self->quorum);

    if (due_ms <= now_ms) {
        return 0;
    }
    return due_ms - now_ms < PS_TURN_WAIT_MS ? due_ms - now_ms : PS_TURN_WAIT_MS;
}

void *ps_quorum_run(void *argument)
{
    ps_quorum_thread_t *self = argument;
    ps_turn_t *place = ps_turns_enter(self->turns, "registry");

    ps_quorum_lock(self);
    while (!self->stopping) {
        uint64_t rest_ms = 0;
        size_t n = 0;
        psd_status_t rc = PSD_OK;

        turn(self);
        rest_ms = wait_ms(self);
        n = ps_quorum_gather_waits(self);
        ps_quorum_unlock(self);
        ps_turn_waits(place);
        rc = ps_socket_wait(self->waits, n, rest_ms, self->ready, NULL);
        ps_turn_works(place);
        hush(self->wake_fd);
        ps_quorum_lock(self);
        if (rc != PSD_OK) {
            break; /* the context was stopped */
        }
    }
    for (size_t i = 0; i < self->n_peers; i++) {
        ps_socket_drop(&self->peers[i].door);
        ps_socket_drop(&self->peers[i].link);
    }
    ps_quorum_unlock(self);
    ps_turn_leave(&place);
    return NULL;
}
