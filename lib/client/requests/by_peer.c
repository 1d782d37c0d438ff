/* SPDX-License-Identifier: Apache-2.0 */
/* Which pulls get their rows from another worker, and when they go to the shard after all. */
#include "client/requests/by_peer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "client/connection/desk.h"

#define PATIENCE_MS 1000
#define MARK_MS 100             /* that a mark may wait for rows, … */
#define MARK_BYTES_PER_MS 12500 /* … and as long as they take at 100 Mbit/s */
#define CLOCKS_MOST 9  /* that a partition is pulled from the shard, after rows were late … */
#define REFUSED_MOST 3 /* … or were refused in that many clocks in a row */
#define DIGEST_VALUES 2
#define FRAME_BYTES (UINT64_C(4) << 20) /* rows go from relay to relay as one frame */

struct ps_by_peer {
    TAILQ_ENTRY(ps_by_peer) in_list;
    ps_slice_request_t *request;
    uint64_t number;    /* of the question for its rows */
    bool is_refused;    /* they are not to be had */
    ps_payload_t *rows; /* owned; NULL: not yet */
    bool has_digest;
    ps_id_t digest;
    uint64_t digest_ms; /* when it came */
};

static uint64_t bytes_of(const ps_slice_t *slice)
{
    uint64_t row = (uint64_t)slice->n_cols * ps_type_size(slice->type);

    return row == 0 || slice->n_rows > FRAME_BYTES / row ? UINT64_MAX : row * slice->n_rows;
}

/* Its rows are those that any worker gets at that clock. */
static bool is_shared(const psd_client_t *client, const ps_slice_request_t *request)
{
    const ps_slice_t *slice = &request->slice;
    const ps_ticket_t *ticket = request->ticket;

    return client->desk != NULL && request->kind == PS_REQUEST_PULL && request->detour == 0 &&
           request->row_op.op == PS_READ_VALUES && request->row_op.since == 0 &&
           slice->rows == PS_ROWS_RANGE && slice->layout == PS_LAYOUT_DENSE &&
           slice->cols == PS_COLS_ALL && ticket != NULL && ticket->result == NULL &&
           ticket->values != NULL && request->aggregate == NULL && request->worker.job != 0 &&
           request->queue->table->in_job && request->queue->table->adds_up &&
           bytes_of(slice) >= PS_BY_PEER_LEAST_BYTES && bytes_of(slice) <= FRAME_BYTES;
}

static ps_desk_rows_t *new_rows(const ps_slice_request_t *request)
{
    ps_desk_rows_t *rows = ps_alloc(1, sizeof *rows);

    if (rows != NULL) {
        rows->key = (ps_down_key_t){.table = request->queue->table->id,
                                    .partition = request->queue->partition,
                                    .first_row = request->slice.first_row,
                                    .n_rows = request->slice.n_rows,
                                    .clock = request->worker.clock};
    }
    return rows;
}

/* Another pull of the program waits for the same rows: a relay knows one question of a worker. */
static bool is_asked(const psd_client_t *client, const ps_slice_request_t *request)
{
    const ps_by_peer_t *other = NULL;

    TAILQ_FOREACH(other, &client->by_peer, in_list)
    {
        if (other->request->queue == request->queue &&
            other->request->slice.first_row == request->slice.first_row) {
            return true;
        }
    }
    return false;
}

/* It goes to the shard; others may wait for its rows. */
static void tell_begin(const psd_client_t *client, const ps_slice_request_t *request)
{
    const ps_request_queue_t *queue = request->queue;
    ps_desk_rows_t *rows = NULL;

    if (!ps_desk_rows_go(client->desk, queue->table->id, queue->partition)) {
        return;
    }
    rows = new_rows(request);
    if (rows != NULL) {
        rows->begins = true;
        ps_desk_put_rows(client->desk, rows);
    }
}

bool ps_by_peer_begin(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;
    ps_by_peer_t *self = NULL;
    ps_desk_rows_t *question = NULL;
    uint64_t left_ms = 0;

    if (request->by_peer != NULL || request->is_direct || !is_shared(client, request)) {
        return false;
    }
    if (request->worker.clock < queue->direct_until || request->trace != NULL ||
        is_asked(client, request) ||
        !ps_desk_rows_come(client->desk, queue->table->id, queue->partition)) {
        tell_begin(client, request);
        return false;
    }
    self = ps_alloc(1, sizeof *self);
    question = self == NULL ? NULL : new_rows(request);
    if (question == NULL) {
        ps_free(self);
        return false;
    }
    left_ms = request->ticket->deadline_ms > client->now_ms
                  ? request->ticket->deadline_ms - client->now_ms
                  : 1;
    *self = (ps_by_peer_t){.request = request, .number = ++client->last_want};
    question->request = self->number;
    question->wait_ms = left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
    request->by_peer = self;
    queue->n_by_peer++;
    TAILQ_INSERT_TAIL(&client->by_peer, self, in_list);
    ps_desk_put_rows(client->desk, question);
    return true;
}

void ps_by_peer_drop(psd_client_t *client, ps_slice_request_t *request)
{
    ps_by_peer_t *self = request->by_peer;

    if (self == NULL) {
        return;
    }
    request->by_peer = NULL;
    request->queue->n_by_peer--;
    TAILQ_REMOVE(&client->by_peer, self, in_list);
    ps_payload_destroy(&self->rows);
    ps_free(self);
}

bool ps_by_peer_waits(const ps_slice_request_t *request)
{
    return request->by_peer != NULL && request->by_peer->has_digest;
}

void ps_by_peer_pass_on(const psd_client_t *client, const ps_slice_request_t *request,
                        ps_payload_t *payload, uint64_t n_done)
{
    const ps_request_queue_t *queue = request->queue;
    ps_desk_rows_t *rows = NULL;

    if (client->desk == NULL || n_done != request->slice.n_rows || !is_shared(client, request) ||
        !ps_desk_shares_rows(client->desk) ||
        ps_payload_size(payload) != bytes_of(&request->slice)) {
        return;
    }
    rows = new_rows(request);
    if (rows == NULL) {
        return;
    }
    if (ps_desk_rows_go(client->desk, queue->table->id, queue->partition)) {
        /* The relay's thread ends what it has: a lane's room is this thread's alone. */
        rows->payload = ps_payload_clone(payload);
    }
    ps_desk_put_rows(client->desk, rows);
}

/* ---- how it ends ---- */

/* The rows are asked of the shard. The request is in no list. */
static void go_direct(psd_client_t *client, ps_slice_request_t *request)
{
    ps_by_peer_drop(client, request);
    request->is_direct = true;
    request->n_sends = request->n_fixed_sends = 0;
    ps_slice_request_send(client, request);
}

/* The relay says that they are not to be had: when that happens again and again, the next
 * clocks do without. */
static void go_refused(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;

    queue->n_refused += queue->refused_at != request->worker.clock ? 1 : 0;
    queue->refused_at = request->worker.clock;
    if (queue->n_refused >= REFUSED_MOST) {
        queue->direct_until = request->worker.clock + 1 + CLOCKS_MOST;
        queue->n_refused = 0;
    }
    go_direct(client, request);
}

/* Late, or not what the shard says: the next clocks do without. */
static void go_late(psd_client_t *client, ps_slice_request_t *request)
{
    ps_request_queue_t *queue = request->queue;

    queue->n_late = 2 * queue->n_late + 1 < CLOCKS_MOST ? 2 * queue->n_late + 1 : CLOCKS_MOST;
    queue->direct_until = request->worker.clock + 1 + queue->n_late;
    go_direct(client, request);
}

static bool are_right(const ps_by_peer_t *self)
{
    ps_id_t digest;

    if (ps_payload_size(self->rows) != bytes_of(&self->request->slice)) {
        return false;
    }
    ps_hash_id_spans(self->rows->spans, self->rows->n_spans, &digest);
    return memcmp(digest.bytes, self->digest.bytes, sizeof digest.bytes) == 0;
}

static void take_rows(psd_client_t *client, ps_slice_request_t *request)
{
    const ps_slice_t *slice = &request->slice;
    size_t n_rows = (size_t)slice->n_rows;
    ps_payload_t *rows = request->by_peer->rows;

    request->by_peer->rows = NULL;
    ps_by_peer_drop(client, request);
    client->rows_heard_ms = client->now_ms;
    request->queue->n_late = request->queue->n_refused = 0;
    ps_places_scatter(&request->places, rows, n_rows, slice->n_cols, ps_type_size(slice->type),
                      request->ticket->values);
    ps_places_skip(&request->places, n_rows);
    ps_by_peer_pass_on(client, request, rows, slice->n_rows);
    ps_payload_destroy(&rows);
    ps_slice_request_end(client, request, PSD_OK, NULL);
}

/* The shard has said what the rows are. The request is in no list. */
static void compare(psd_client_t *client, ps_slice_request_t *request)
{
    if (are_right(request->by_peer)) {
        take_rows(client, request);
    } else {
        go_late(client, request);
    }
}

/* The worker has ended its clock meanwhile: all others wait for its mark. */
static bool holds_mark(const ps_request_queue_t *queue)
{
    const ps_slice_request_t *other = NULL;

    TAILQ_FOREACH(other, &queue->waiting, in_list)
    {
        if (other->marks) {
            return true;
        }
    }
    return false;
}

static uint64_t due_of(const psd_client_t *client, const ps_by_peer_t *self)
{
    uint64_t deadline_ms = self->request->ticket->deadline_ms;
    uint64_t from_ms =
        self->digest_ms > client->rows_heard_ms ? self->digest_ms : client->rows_heard_ms;
    uint64_t due_ms =
        from_ms + PATIENCE_MS + bytes_of(&self->request->slice) * 1000 / PS_RELAY_SLOWEST;
    uint64_t half_ms = deadline_ms <= self->digest_ms
                           ? self->digest_ms
                           : self->digest_ms + (deadline_ms - self->digest_ms) / 2;

    if (holds_mark(self->request->queue)) {
        due_ms = from_ms + MARK_MS + bytes_of(&self->request->slice) / MARK_BYTES_PER_MS;
    }
    return due_ms < half_ms ? due_ms : half_ms;
}

void ps_by_peer_digest(psd_client_t *client, ps_slice_request_t *request,
                       const ps_message_t *message, const ps_payload_t *payload)
{
    ps_by_peer_t *self = request->by_peer;
    const ps_msg_values_t *values = &message->values;

    if (request->ticket == NULL) {
        ps_slice_request_end(client, request, PSD_OK, NULL);
        return;
    }
    if (values->type != PS_TYPE_I64 || values->n_values != DIGEST_VALUES || payload == NULL ||
        payload->n_spans != 1 || payload->spans[0].size != PS_ID_SIZE) {
        ps_slice_request_end(client, request, PSD_PROTO, "the answer is no digest");
        return;
    }
    memcpy(self->digest.bytes, payload->spans[0].data, PS_ID_SIZE);
    if (self->is_refused) {
        go_refused(client, request);
    } else if (values->n_done != request->slice.n_rows || client->desk == NULL) {
        go_direct(client, request);
    } else if (self->rows != NULL) {
        compare(client, request);
    } else {
        self->has_digest = true;
        self->digest_ms = client->now_ms;
        TAILQ_INSERT_TAIL(&client->sent, request, in_list);
    }
}

/* ---- turns ---- */

static void hear_one(psd_client_t *client, ps_desk_rows_t *rows)
{
    ps_by_peer_t *self = NULL;

    TAILQ_FOREACH(self, &client->by_peer, in_list)
    {
        if (self->number == rows->request && self->rows == NULL && !self->is_refused) {
            self->is_refused = rows->payload == NULL;
            self->rows = rows->payload;
            rows->payload = NULL;
            return;
        }
    }
}

static void hear(psd_client_t *client)
{
    struct ps_desk_rows_list list;

    ps_desk_hear_rows(client->desk, &list);
    while (!STAILQ_EMPTY(&list)) {
        ps_desk_rows_t *rows = STAILQ_FIRST(&list);

        STAILQ_REMOVE_HEAD(&list, in_list);
        hear_one(client, rows);
        ps_desk_rows_free(&rows);
    }
}

static void look_at(psd_client_t *client, ps_by_peer_t *self)
{
    ps_slice_request_t *request = self->request;
    bool is_over = client->desk == NULL || client->broken != PSD_OK;
    bool is_late = !is_over && !self->is_refused && self->rows == NULL &&
                   client->now_ms >= due_of(client, self);

    if (self->rows == NULL && !is_over && !is_late && !self->is_refused) {
        return;
    }
    TAILQ_REMOVE(&client->sent, request, in_list);
    if (is_over) {
        go_direct(client, request);
    } else if (self->is_refused) {
        go_refused(client, request);
    } else if (is_late) {
        go_late(client, request);
    } else {
        compare(client, request);
    }
}

void ps_by_peer_look(psd_client_t *client)
{
    ps_by_peer_t *next = NULL;

    if (client->desk != NULL) {
        hear(client);
    }
    for (ps_by_peer_t *self = TAILQ_FIRST(&client->by_peer); self != NULL; self = next) {
        next = TAILQ_NEXT(self, in_list);
        if (self->has_digest) {
            look_at(client, self);
        }
    }
}

uint64_t ps_by_peer_due(const psd_client_t *client)
{
    const ps_by_peer_t *self = NULL;
    uint64_t due_ms = UINT64_MAX;

    TAILQ_FOREACH(self, &client->by_peer, in_list)
    {
        if (self->has_digest && due_of(client, self) < due_ms) {
            due_ms = due_of(client, self);
        }
    }
    return due_ms;
}
