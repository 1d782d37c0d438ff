/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of members: who is at the other end, and what may be said. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/quorum/quorum_inner.h"

#define HELLO_MS 500 /* between two, to a member that is not heard */
#define GREET_MS 500 /* for a greeting to be answered */
#define AGAIN_MS 100 /* between two greetings, when the other end wants one */
#define BATCH 256

void ps_quorum_ring(int fd)
{
    const uint64_t one = 1;
    ssize_t n = write(fd, &one, sizeof one);

    (void)n; /* a full counter rings as well */
}

ps_member_peer_t *ps_quorum_find_peer(const ps_quorum_thread_t *self, uint64_t member)
{
    for (size_t i = 0; i < self->n_peers; i++) {
        if (self->peers[i].member == member) {
            return &self->peers[i];
        }
    }
    return NULL;
}

/* The first, the second, the fourth … */
static bool is_told(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

static void log_refusal(ps_quorum_thread_t *self, const char *node, uint64_t n, psd_status_t rc)
{
    char quoted[512];

    if (is_told(n)) {
        ps_log(PS_LOG_WARN, "member_refused", "node=%s n=%" PRIu64 " status=%s reason=%s",
               node[0] == '\0' ? "-" : node, n, psd_status_name(rc),
               ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
    }
    psd_error_clear(self->err);
}

/* ---- to others ---- */

static ps_socket_t *connect_to(ps_quorum_thread_t *self, const char *endpoint)
{
    ps_socket_t *link = NULL;

    if (ps_socket_connect(endpoint, &self->socket, &link, self->err) != PSD_OK) {
        char quoted[512];

        ps_log(PS_LOG_WARN, "member_not_reached", "endpoint=%s reason=%s", endpoint,
               ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
        psd_error_clear(self->err);
    }
    return link;
}

static void say(ps_socket_t *link, ps_bytes_t bytes)
{
    if (link != NULL && bytes.size > 0 && ps_socket_send_text(link, 0, bytes, NULL) != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "member_message_dropped", "bytes=%zu", bytes.size);
    }
}

void ps_quorum_send_sealed(ps_member_peer_t *peer, ps_bytes_t bytes)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t sealed = {0};

    if (peer->link != NULL && peer->caller.state == PS_CALLER_PROVEN &&
        ps_caller_seal(&peer->caller, bytes, &sealed)) {
        say(peer->link, (ps_bytes_t){.data = sealed.data, .size = sealed.size});
    }
}

void ps_quorum_say(ps_member_peer_t *peer, const ps_node_message_t *message)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    if (peer != NULL && ps_node_message_encode(message, &bytes)) {
        ps_quorum_send_sealed(peer, (ps_bytes_t){.data = bytes.data, .size = bytes.size});
    }
}

static void call(ps_quorum_thread_t *self, ps_member_peer_t *peer, uint64_t now_ms)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_id_t nonce;

    peer->greeted_ms = now_ms;
    ps_guard_nonce(self->guard, &nonce);
    if (ps_caller_greet(&peer->caller, ps_guard_own(self->guard), peer->member, peer->node, &nonce,
                        &bytes)) {
        say(peer->link, (ps_bytes_t){.data = bytes.data, .size = bytes.size});
    }
}

static bool is_call_due(const ps_member_peer_t *peer, uint64_t now_ms)
{
    uint64_t gap_ms = peer->caller.state == PS_CALLER_SILENT ? AGAIN_MS : GREET_MS;

    return peer->link != NULL && peer->caller.state != PS_CALLER_PROVEN &&
           (peer->greeted_ms == 0 || now_ms >= peer->greeted_ms + gap_ms);
}

void ps_quorum_greet(ps_quorum_thread_t *self, ps_member_peer_t *peer, uint64_t now_ms)
{
    const ps_bytes_t hello = {.data = self->hello.data, .size = self->hello.size};
    ps_quorum_peer_info_t info = {0};
    bool is_member = ps_quorum_peer_info(self->quorum, peer->member, &info);

    if (peer->moved) {
        peer->moved = false;
        ps_socket_drop(&peer->door);
        ps_socket_drop(&peer->link);
        peer->link = peer->endpoint[0] == '\0' ? NULL : connect_to(self, peer->endpoint);
        peer->caller = (ps_caller_t){.state = PS_CALLER_SILENT};
        peer->greeted_ms = 0;
        peer->hello_ms = 0;
    }
    if (is_call_due(peer, now_ms)) {
        call(self, peer, now_ms);
    }
    if ((is_member && now_ms < info.heard_ms + HELLO_MS) || now_ms < peer->hello_ms + HELLO_MS) {
        return;
    }
    peer->hello_ms = now_ms;
    if (peer->door == NULL && peer->control[0] != '\0') {
        peer->door = connect_to(self, peer->control);
    }
    say(peer->door, hello);
    ps_quorum_send_sealed(peer, hello);
}

/* The other end of a link answers. Once both have proved themselves, it learns
 * where this member listens. */
static void take_answer(ps_quorum_thread_t *self, ps_member_peer_t *peer, ps_bytes_t bytes)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t answer = {0};
    bool was_proven = peer->caller.state == PS_CALLER_PROVEN;
    psd_status_t rc =
        ps_caller_take(&peer->caller, ps_guard_own(self->guard),
                       ps_guard_key(self->guard, peer->node), bytes, &answer, self->err);

    if (rc != PSD_OK) {
        log_refusal(self, peer->node, ++peer->n_refused, rc);
    }
    say(peer->link, (ps_bytes_t){.data = answer.data, .size = answer.size});
    if (!was_proven && peer->caller.state == PS_CALLER_PROVEN) {
        ps_quorum_send_sealed(peer,
                              (ps_bytes_t){.data = self->hello.data, .size = self->hello.size});
    }
}

void ps_quorum_receive_links(ps_quorum_thread_t *self)
{
    for (size_t i = 0; i < self->n_peers; i++) {
        ps_member_peer_t *peer = &self->peers[i];

        for (int k = 0; peer->link != NULL && k < BATCH; k++) {
            PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
            uint64_t conn = 0;
            bool got = false;

            if (ps_socket_receive_text(peer->link, &got, &conn, &text, NULL) != PSD_OK || !got) {
                break;
            }
            take_answer(self, peer, (ps_bytes_t){.data = text.data, .size = text.size});
        }
    }
}

/* ---- from others ---- */

/* Of one that is not known, only where it listens: a node's secret alone makes no member. */
static bool is_introduction(const ps_guard_word_t *word)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

    return ps_node_message_is(word->message) &&
           ps_node_message_decode(word->message, &message, NULL) == PSD_OK &&
           message.kind == PS_NODE_MEMBER;
}

bool ps_quorum_admit(ps_quorum_thread_t *self, uint64_t conn, ps_bytes_t bytes,
                     ps_guard_word_t *ret_word)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t answer = {0};
    const ps_member_peer_t *peer = NULL;

    if (ps_guard_take(self->guard, ps_now_ms(), conn, bytes, ret_word, &answer, self->err) !=
        PSD_OK) {
        psd_error_clear(self->err);
        return false; /* it is said again */
    }
    if (ret_word->verdict == PS_GUARD_REFUSED) {
        log_refusal(self, ret_word->node, ret_word->n_refused, ret_word->status);
        ps_quorum_ring(self->news_fd);
    } else if (ret_word->verdict == PS_GUARD_PROVEN) {
        ps_log(PS_LOG_DEBUG, "member_proven", "node=%s member=%" PRIu64, ret_word->node,
               ret_word->member);
    }
    psd_error_clear(self->err);
    if (answer.size > 0) { /* when it does not arrive, the other end greets again */
        (void)!ps_socket_send_text(self->port, conn,
                                   (ps_bytes_t){.data = answer.data, .size = answer.size}, NULL);
    }
    peer = ps_quorum_find_peer(self, ret_word->member);
    return ret_word->verdict == PS_GUARD_MESSAGE &&
           (peer == NULL ? is_introduction(ret_word) : strcmp(peer->node, ret_word->node) == 0);
}

size_t ps_quorum_gather_waits(ps_quorum_thread_t *self)
{
    size_t n = 0;

    self->waits[n++] = self->port;
    for (size_t i = 0; i < self->n_peers && n < WAITS_MAX; i++) {
        if (self->peers[i].link != NULL) {
            self->waits[n++] = self->peers[i].link;
        }
    }
    return n;
}
