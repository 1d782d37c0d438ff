/* SPDX-License-Identifier: Apache-2.0 */
/* A database on its way to a member that lacks what the log has no more: pieces,
 * one in flight. */
#include "base/alloc.h"
#include "server/quorum/quorum_inner.h"
#include "storage/registry/registry_backup.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define DATABASE_MAX (UINT64_C(4) << 30)
#define PIECE_MS 1000   /* after that a piece is sent again */
#define PIECES_MS 30000 /* after that a database is not sent */

void ps_quorum_want_database(ps_quorum_thread_t *self, uint64_t to)
{
    if (self->sending.to != 0) {
        self->unwanted = to; /* one at a time: it is asked for again */
        return;
    }
    self->sending =
        (ps_quorum_sending_t){.to = to, .wanted = true, .until_ms = ps_now_ms() + PIECES_MS};
    ps_quorum_ring(self->news_fd);
}

static void end_sending(ps_quorum_thread_t *self, bool arrived)
{
    psd_status_t rc = ps_quorum_snapshot_sent(self->quorum, ps_now_ms(), self->sending.to,
                                              arrived ? &self->sending.snapshot : NULL, self->err);

    if (rc != PSD_OK) {
        ps_quorum_break(self, rc);
    }
    ps_buffer_done(&self->sending.bytes);
    self->sending = (ps_quorum_sending_t){0};
}

static void send_piece(ps_quorum_thread_t *self, uint64_t now_ms)
{
    ps_quorum_sending_t *sending = &self->sending;
    ps_node_message_t message = ps_quorum_new_message(self, PS_NODE_PIECE);
    size_t rest = sending->bytes.size - sending->offset;

    message.serial = sending->snapshot.index;
    message.offset = sending->offset;
    message.total = sending->bytes.size;
    message.words = (ps_buffer_t){.data = sending->bytes.data + sending->offset,
                                  .size = rest < PIECE_BYTES ? rest : PIECE_BYTES};
    sending->sent_ms = now_ms;
    ps_quorum_say(ps_quorum_find_peer(self, sending->to), &message);
}

void ps_quorum_go_on_sending(ps_quorum_thread_t *self, uint64_t now_ms)
{
    ps_quorum_sending_t *sending = &self->sending;

    if (sending->to == 0) {
        return;
    }
    if (now_ms >= sending->until_ms) {
        end_sending(self, false);
    } else if (!sending->wanted && now_ms >= sending->sent_ms + PIECE_MS) {
        send_piece(self, now_ms);
    }
}

/* The member has it up to there. */
void ps_quorum_take_got(ps_quorum_thread_t *self, const ps_node_message_t *message)
{
    ps_quorum_sending_t *sending = &self->sending;

    if (sending->to != message->member || sending->wanted ||
        message->serial != sending->snapshot.index || message->offset <= sending->offset ||
        message->offset > sending->bytes.size) {
        return;
    }
    if (message->offset == sending->bytes.size) {
        end_sending(self, true);
    } else {
        sending->offset = message->offset;
        sending->until_ms = ps_now_ms() + PIECES_MS;
        send_piece(self, ps_now_ms());
    }
}

void ps_quorum_take_piece(ps_quorum_thread_t *self, const ps_node_message_t *message)
{
    ps_node_message_t got = ps_quorum_new_message(self, PS_NODE_GOT);

    if (message->total > DATABASE_MAX || message->words.size > PIECE_BYTES) {
        return; /* of no member that was asked */
    }
    if (message->offset == 0 && message->serial != self->coming_index) {
        ps_buffer_done(&self->coming);
        self->coming_index = message->serial;
        self->coming_whole = false;
    }
    if (message->serial == self->coming_index && message->offset == self->coming.size &&
        message->offset < message->total) {
        if (message->total - message->offset < message->words.size ||
            !ps_buffer_append(&self->coming, message->words.data, message->words.size)) {
            return; /* it comes again */
        }
    }
    if (!self->coming_whole && self->coming.size == message->total) {
        self->coming_whole =
            ps_registry_backup_check(
                (ps_bytes_t){.data = self->coming.data, .size = self->coming.size}, NULL) == PSD_OK;
        if (!self->coming_whole) { /* from its beginning */
            ps_buffer_done(&self->coming);
            self->coming_index = 0;
        }
    }
    got.serial = message->serial;
    got.offset = self->coming.size;
    ps_quorum_say(ps_quorum_find_peer(self, message->member), &got);
}
