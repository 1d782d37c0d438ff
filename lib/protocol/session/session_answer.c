/* SPDX-License-Identifier: Apache-2.0 */
/* How a session handles messages: which answers end an operation, which cause a
 * retry, and which only a broken peer can send. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/session/session_private.h"

/* What arrived, and where: the arguments of every step below. */
typedef struct arrival {
    uint64_t now_ms;
    ps_link_t *link;
    bool by_bulk;        /* on its connection for bulk */
    uint64_t doubted_ms; /* of the link, before this came */
    const ps_message_t *message;
    ps_payload_t *payload;
    ps_outbox_t *outbox;
    uint64_t request; /* the address that all answers begin with */
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
    uint64_t seq;
} arrival_t;

static void PSD_PRINTF(3, 4)
    break_by(ps_session_t *self, const arrival_t *arrival, const char *format, ...)
{
    char text[PS_LINK_ENDPOINT_MAX + 160];
    char what[128];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    (void)snprintf(text, sizeof text, "%s broke the protocol: %s", ps_link_place(arrival->link),
                   what);
    ps_session_break(self, PSD_PROTO, text, arrival->outbox);
}

static void keep_reason(ps_op_t *op, const char *text)
{
    char *copy = ps_strdup(text);

    if (copy != NULL) { /* without memory the old reason must do */
        ps_free(op->reason);
        op->reason = copy;
    }
}

static void on_welcome(ps_session_t *self, const arrival_t *arrival)
{
    const ps_msg_welcome_t *welcome = &arrival->message->welcome;
    ps_link_t *link = arrival->link;
    bool was_ready = link->state == PS_LINK_READY;

    if (welcome->version < PS_VERSION_MIN || welcome->version > PS_VERSION ||
        !ps_id_equal(&welcome->cluster, &self->args.cluster) ||
        welcome->incarnation != link->route.incarnation || welcome->shard != link->route.shard) {
        break_by(self, arrival, "WELCOME of version %u from another shard, node or cluster",
                 welcome->version);
        return;
    }
    if (welcome->credit_requests == 0 || welcome->chunk_bytes == 0 || welcome->slice_bytes == 0) {
        break_by(self, arrival, "WELCOME without credits");
        return;
    }
    link->credit_requests = welcome->credit_requests;
    link->credit_bytes = welcome->credit_bytes;
    link->chunk_bytes = welcome->chunk_bytes;
    link->slice_bytes = welcome->slice_bytes;
    link->filters = welcome->filters & self->args.filters;
    if (arrival->by_bulk) {
        link->bulk.state = PS_LINK_READY;
    } else {
        link->state = PS_LINK_READY;
        ps_link_welcomed(link, arrival->now_ms, was_ready);
    }
}

/* A refusal of HELLO names no request. */
static void on_hello_refused(ps_session_t *self, const arrival_t *arrival)
{
    const ps_msg_refused_t *refused = &arrival->message->refused;
    psd_status_t status = (psd_status_t)refused->status;

    if (status == PSD_OK) {
        break_by(self, arrival, "REFUSED with status 0");
        return;
    }
    if (status == PSD_INCARNATION) {
        /* Another life of the node listens there: what was here has moved, or
         * is lost, which the registry knows. */
        arrival->link->doubted_ms =
            arrival->doubted_ms == 0 ? arrival->now_ms : arrival->doubted_ms;
        return;
    }
    if (status == PSD_BUSY || status == PSD_NOMEM || status == PSD_STOPPING || arrival->by_bulk) {
        return; /* HELLO is said again in its time; the first connection hears
                   what ends all */
    }
    ps_session_break(self, status, refused->text, arrival->outbox);
}

/* The operation that is answered; NULL: it has ended, also when there was no
 * memory yet to say so, or is asked of another place. */
static ps_op_t *answered(const ps_session_t *self, const arrival_t *arrival)
{
    ps_op_t *op = ps_op_find(self, arrival->request);

    return op == NULL || op->status != PSD_OK || op->part->link != arrival->link ? NULL : op;
}

/* The server does not know this connection: every request on it is lost. While
 * HELLO is in flight, this is known already. */
static void on_no_session(ps_session_t *self, const arrival_t *arrival)
{
    ps_link_t *link = arrival->link;
    ps_op_t *op = answered(self, arrival);

    if (op != NULL) {
        ps_op_not_taken(op);
    }

    if (arrival->by_bulk && link->bulk.state == PS_LINK_READY) {
        ps_bulk_greet(self, arrival->now_ms, link, arrival->outbox);
    } else if (!arrival->by_bulk && link->state == PS_LINK_READY) {
        ps_link_greet(self, arrival->now_ms, link, arrival->outbox);
    }
}

/* The server did not take it now; it is retried a little later. */
static void on_busy(ps_session_t *self, const arrival_t *arrival, ps_op_t *op, const char *text)
{
    if (text[0] != '\0') {
        keep_reason(op, text);
    }
    if (op->sent) {
        ps_part_pause(self, arrival->now_ms, op->part);
        ps_op_requeue(op);
    }
}

/* A push or mark that has ended is in the log of that epoch's primary. */
static void end_op(ps_session_t *self, const arrival_t *arrival, ps_op_t *op, ps_payload_t *payload)
{
    ps_part_t *part = op->part;

    /* Which send it answers is not known, but the first was not sooner. */
    ps_link_answered(arrival->link,
                     arrival->now_ms - (op->n_sends == 1 ? op->sent_ms : op->start_ms));
    part->pauses = 0;
    if (ps_op_is_numbered(op) && op->seq >= part->ended_seq) {
        part->ended_seq = op->seq;
        part->ended_epoch = arrival->epoch;
    }
    ps_op_end(self, op, arrival->message, payload, arrival->outbox);
}

/* A later primary expects a seq that has ended: it was acknowledged at memory,
 * and lost with the earlier primary. No copy has it any more. */
static bool is_lost(const arrival_t *arrival, const ps_part_t *part)
{
    uint64_t first = part->seq + 1; /* that has not ended */
    const ps_op_t *op = NULL;

    TAILQ_FOREACH(op, &part->ops, in_list)
    {
        if (ps_op_is_numbered(op)) {
            first = op->seq;
            break;
        }
    }
    return arrival->message->refused.detail < first && arrival->epoch > part->ended_epoch &&
           part->ended_epoch > 0;
}

static void break_by_loss(ps_session_t *self, const arrival_t *arrival)
{
    char text[160];

    (void)snprintf(text, sizeof text,
                   "partition %" PRIu32 " of table %" PRIu32
                   " has lost pushes that were acknowledged at memory: its new "
                   "primary expects seq %" PRIu64,
                   arrival->partition, arrival->table, arrival->message->refused.detail);
    ps_session_break(self, PSD_ROWS_LOST, text, arrival->outbox);
}

/*
 * The server expects `expected`, so it has discarded the later operations that
 * it received, up to the one that it answers. All of those are sent again, in
 * order; operations that were sent just now may still be in flight, and wait
 * until they are due.
 */
static void on_gap(ps_session_t *self, const arrival_t *arrival, const ps_op_t *refused)
{
    uint64_t expected = arrival->message->refused.detail;
    uint64_t gap_ms = ps_session_gap_ms(self);
    ps_op_t *op = NULL;

    TAILQ_FOREACH(op, &refused->part->ops, in_list)
    {
        if (!op->sent || op->seq < expected || !ps_op_is_numbered(op)) {
            continue;
        }
        if (arrival->now_ms - op->sent_ms >= gap_ms) {
            ps_op_requeue(op);
        } else if (op->id <= refused->id) {
            op->again = true;
            op->due_ms = op->sent_ms + gap_ms;
            ps_session_wake(self, op->due_ms);
        }
    }
    ps_part_make_ready(refused->part, arrival->now_ms);
}

/* The server has forgotten a list of keys that was only named: it goes again,
 * whole, at once. */
static void on_keys(const arrival_t *arrival, ps_op_t *op)
{
    ps_op_not_taken(op);
    if (op->sent) {
        ps_op_requeue(op);
        ps_part_make_ready(op->part, arrival->now_ms);
    }
}

/* The partition no longer knows this client. Answers to earlier sends may still
 * arrive; until then it is sent again, and refused again. */
static void on_closed(ps_session_t *self, const arrival_t *arrival, ps_op_t *op)
{
    const ps_msg_refused_t *refused = &arrival->message->refused;
    bool not_taken = refused->detail == PS_CLOSED_NOT_TAKEN;

    if (not_taken && op->n_unsure > 0) {
        op->n_unsure--;
    }
    if (not_taken && ps_part_may_begin_anew(op->part)) {
        ps_part_begin_anew(self, arrival->now_ms, op->part, arrival->outbox);
    } else if (ps_op_decides(op)) {
        ps_session_break(self, PSD_CLOSED, refused->text, arrival->outbox);
    } else if (op->sent) {
        op->again = true;
        op->due_ms = arrival->now_ms + ps_session_backoff(self->args.resend_ms, op->tries);
        ps_session_wake(self, op->due_ms);
    }
}

static void on_refused(ps_session_t *self, const arrival_t *arrival, ps_op_t *op)
{
    const ps_msg_refused_t *refused = &arrival->message->refused;
    psd_status_t status = (psd_status_t)refused->status;

    switch ((int)status) {
    case PSD_OK:
        break_by(self, arrival, "REFUSED with status 0");
        return;
    case PSD_GAP:
        if (refused->detail == 0 || refused->detail > op->seq) {
            break_by(self, arrival, "GAP before seq %" PRIu64 " expects %" PRIu64, op->seq,
                     refused->detail);
            return;
        }
        if (is_lost(arrival, op->part)) {
            break_by_loss(self, arrival);
        } else if (ps_op_is_numbered(op)) { /* a pull is asked again */
            on_gap(self, arrival, op);
        }
        return;
    case PSD_BUSY:
    case PSD_NOMEM:
    case PSD_MOVED:
    case PSD_STOPPING:
        ps_op_not_taken(op);
        on_busy(self, arrival, op, refused->text);
        return;
    case PSD_KEYS:
        on_keys(arrival, op);
        return;
    case PSD_NO_TABLE:
        ps_session_forget(self, op->part->table, PSD_NO_TABLE, arrival->outbox);
        return;
    case PSD_CLOSED:
        on_closed(self, arrival, op);
        return;
    case PSD_DENIED:
        if (op->ask.kind == PS_KIND_PULL) { /* of this table; others may be for this caller */
            break;
        }
        ps_session_break(self, status, refused->text, arrival->outbox);
        return;
    case PSD_ROWS_LOST:
    case PSD_VERSION:
    case PSD_CLUSTER:
    case PSD_INCARNATION:
    case PSD_PROTO:
        ps_session_break(self, status, refused->text, arrival->outbox);
        return;
    default:
        break;
    }
    end_op(self, arrival, op, NULL);
}

/* An answer of an epoch older than the known one: its place is the same, so it
 * is retried early. */
static void on_old(ps_session_t *self, const arrival_t *arrival, ps_op_t *op)
{
    uint64_t due_ms = arrival->now_ms + ps_session_gap_ms(self);

    if (op->sent && due_ms < op->due_ms) {
        op->due_ms = due_ms;
        ps_session_wake(self, due_ms);
    }
}

static void on_ack(ps_session_t *self, const arrival_t *arrival, ps_op_t *op)
{
    uint64_t seq = ps_op_is_numbered(op) ? op->seq : 0;

    if (op->ask.kind == PS_KIND_PULL || arrival->seq != seq) {
        break_by(self, arrival, "ACK of seq %" PRIu64 " for a request of %s", arrival->seq,
                 ps_kind_name(op->ask.kind));
        return;
    }
    if (arrival->epoch < op->part->epoch) {
        on_old(self, arrival, op);
        return;
    }
    if (op->ask.pull) {
        op->part->pauses = 0;
        /* A probe's answer: it is applied; the values come when it is sent
         * again. */
        if (op->sent && !op->again) {
            op->again = true;
            op->due_ms = arrival->now_ms + ps_session_gap_ms(self);
            ps_session_wake(self, op->due_ms);
        }
        return;
    }
    end_op(self, arrival, op, NULL);
}

static void on_values(ps_session_t *self, const arrival_t *arrival, ps_op_t *op)
{
    bool wanted = op->ask.kind == PS_KIND_PULL || op->ask.pull;
    uint64_t seq = op->ask.kind == PS_KIND_PULL ? 0 : op->seq;

    if (!wanted || arrival->seq != seq) {
        break_by(self, arrival, "VALUES of seq %" PRIu64 " for a %s", arrival->seq,
                 ps_kind_name(op->ask.kind));
        return;
    }
    if (arrival->epoch < op->part->epoch) {
        on_old(self, arrival, op);
        return;
    }
    end_op(self, arrival, op, arrival->payload);
}

static void on_parked(ps_session_t *self, const arrival_t *arrival, ps_op_t *op)
{
    keep_reason(op, arrival->message->parked.text);
    if (op->sent && !op->again) {
        ps_op_wait(self, op, arrival->now_ms + ps_link_wait_ms(self, op->part->link, op->tries));
    }
}

static void on_moved(ps_session_t *self, const arrival_t *arrival)
{
    ps_op_t *op = answered(self, arrival);
    psd_status_t rc = PSD_OK;

    if (op != NULL && arrival->seq == 0) {
        ps_op_not_taken(op);
    }
    rc = ps_session_moved(self, arrival->now_ms, &arrival->message->moved, arrival->payload,
                          arrival->outbox);
    if (rc == PSD_LIMIT) {
        ps_session_break(self, rc, "the map names too many endpoints; open a new client",
                         arrival->outbox);
        return;
    }
    if (rc != PSD_OK) {
        break_by(self, arrival, "MOVED with %" PRIu32 " routes that are not the table's",
                 arrival->message->moved.n_routes);
        return;
    }
    op = answered(self, arrival);
    if (op == NULL || !op->sent) {
        return; /* ended, or carried along */
    }
    if (op->sent_epoch < op->part->epoch) {
        ps_part_requeue(op->part); /* the same place, known better */
        ps_part_make_ready(op->part, arrival->now_ms);
    } else {
        on_busy(self, arrival, op, "the partition is moving");
    }
}

/* A relay brings what asks for the table's own level, which such an answer has. */
static bool level_is_enough(const arrival_t *arrival, const ps_op_t *op)
{
    return op->ask.ack == PS_ACK_DEFAULT || arrival->message->ack.level >= op->ask.ack;
}

/* A bundle that a relay brought had that push or mark in it. The answer names no request: the
 * relay does not know those of its origins. */
static void on_bundle_ack(ps_session_t *self, const arrival_t *arrival)
{
    ps_session_table_t *table = ps_map_get(&self->table_of, arrival->table);
    const ps_part_t *part = table == NULL || arrival->partition >= table->n_parts
                                ? NULL
                                : &table->parts[arrival->partition];
    ps_op_t *op = NULL;

    if (part == NULL || part->link != arrival->link || arrival->epoch < part->epoch) {
        return;
    }
    TAILQ_FOREACH(op, &part->ops, in_list)
    {
        if (ps_op_is_numbered(op) && op->seq == arrival->seq) {
            break;
        }
    }
    if (op != NULL && op->n_sends > 0 && !op->ask.pull && level_is_enough(arrival, op)) {
        end_op(self, arrival, op, NULL);
    }
}

/* Answers to an operation in flight on this link. */
static void on_answer(ps_session_t *self, const arrival_t *arrival)
{
    ps_op_t *op = answered(self, arrival);

    if (op == NULL) {
        return; /* late */
    }
    if (op->n_sends == 0 || op->part->table != arrival->table ||
        op->part->partition != arrival->partition) {
        break_by(self, arrival, "%s answers no request", ps_kind_name(arrival->message->kind));
        return;
    }
    op->heard_ms = arrival->now_ms;
    switch ((int)arrival->message->kind) {
    case PS_KIND_ACK:
        on_ack(self, arrival, op);
        break;
    case PS_KIND_VALUES:
        on_values(self, arrival, op);
        break;
    case PS_KIND_REFUSED:
        on_refused(self, arrival, op);
        break;
    case PS_KIND_PARKED:
        on_parked(self, arrival, op);
        break;
    default:
        assert(false); /* only answers come here */
    }
}

#define READ_ADDRESS(arrival, from)               \
    do {                                          \
        (arrival)->request = (from)->request;     \
        (arrival)->table = (from)->table;         \
        (arrival)->partition = (from)->partition; \
        (arrival)->epoch = (from)->epoch;         \
        (arrival)->seq = (from)->seq;             \
    } while (0)

static void dispatch(ps_session_t *self, arrival_t *arrival)
{
    const ps_message_t *message = arrival->message;

    switch ((int)message->kind) {
    case PS_KIND_WELCOME:
        on_welcome(self, arrival);
        return;
    case PS_KIND_ACK:
        READ_ADDRESS(arrival, &message->ack);
        if (arrival->request == 0) {
            on_bundle_ack(self, arrival);
            return;
        }
        break;
    case PS_KIND_VALUES:
        READ_ADDRESS(arrival, &message->values);
        break;
    case PS_KIND_PARKED:
        READ_ADDRESS(arrival, &message->parked);
        break;
    case PS_KIND_REFUSED:
        READ_ADDRESS(arrival, &message->refused);
        if (arrival->request == 0 && message->refused.status != PSD_NO_SESSION) {
            on_hello_refused(self, arrival);
            return;
        }
        if (message->refused.status == PSD_NO_SESSION) {
            on_no_session(self, arrival);
            return;
        }
        break;
    case PS_KIND_MOVED:
        READ_ADDRESS(arrival, &message->moved);
        on_moved(self, arrival);
        return;
    default:
        break_by(self, arrival, "%s is not for a client", ps_kind_name(message->kind));
        return;
    }
    on_answer(self, arrival);
}

void ps_session_received(ps_session_t *self, uint64_t now_ms, uint64_t link,
                         const ps_message_t *message, ps_payload_t *payload, ps_outbox_t *outbox)
{
    arrival_t arrival = {
        .now_ms = now_ms,
        .message = message,
        .payload = payload,
        .outbox = outbox,
    };

    assert(link < self->n_links);
    if (self->broken != PSD_OK) {
        return;
    }
    arrival.link = self->links[link];
    arrival.doubted_ms = arrival.link->doubted_ms;
    ps_link_lives(arrival.link, now_ms);
    arrival.by_bulk = ps_link_bulk_is(arrival.link, link);
    dispatch(self, &arrival);
    ps_link_flush(self, now_ms, arrival.link, outbox);
}
