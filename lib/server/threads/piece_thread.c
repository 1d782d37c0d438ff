/* SPDX-License-Identifier: Apache-2.0 */
/* Two lists with a thread between them: orders and results. */
#include "server/threads/piece_thread.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/threads/rest.h"
#include "transport/threads/thread.h"

#define WAITING_BYTES ((size_t)8 << 20) /* of pieces, in each of the lists */
/* Wakes the thread for this many pieces at once: each wake-up takes a
 * processor from another thread. */
#define WAKE_BYTES ((size_t)4 << 20)
#define ZSTD_LEVEL 1

typedef enum order_kind {
    ORDER_OPEN = 1,
    ORDER_ADD = 2,
    ORDER_COMMIT = 3,
    ORDER_READ = 4
} order_kind_t;

typedef struct order {
    order_kind_t kind;
    ps_snapshot_id_t id;
    ps_payload_t *piece; /* owned; ADD */
    const char *dir;     /* borrowed; READ */
} order_t;

struct ps_piece_thread {
    pthread_t thread;
    pthread_mutex_t mutex; /* of everything below except the thread's own */
    pthread_cond_t wake;
    order_t *orders; /* owned */
    size_t n_orders;
    size_t orders_capacity;
    size_t order_bytes;    /* of pieces in them, and of the one at hand */
    ps_piece_done_t *done; /* owned */
    size_t n_done;
    size_t done_capacity;
    size_t done_bytes;
    psd_status_t status;
    char text[PS_PIECE_TEXT_SIZE];
    bool stopping;
    uint32_t shard;
    ps_turns_t *turns; /* borrowed; may be NULL */
    /* the thread's own */
    ps_turn_t *turn;
    ps_snapshot_dir_t dir; /* of the file at hand */
    char *path;            /* owned; where files are written */
    ps_snapshot_writer_t *writer;
    ps_snapshot_id_t id; /* of the file at hand */
    psd_error_t *err;
};

/* ---- the thread ---- */

/* Adds a result; waits while there are too many. false: no memory, or the
 * end. */
static bool say(ps_piece_thread_t *self, const ps_piece_done_t *done)
{
    size_t size = done->piece == NULL ? 0 : done->piece->span.size;
    bool fits = false;

    (void)pthread_mutex_lock(&self->mutex);
    while (self->done_bytes >= WAITING_BYTES && !self->stopping) {
        ps_turn_wait(self->turn, &self->wake, &self->mutex);
    }
    ps_turn_works(self->turn);
    fits = !self->stopping &&
           ps_grow(&self->done, &self->done_capacity, self->n_done + 1, sizeof *self->done);
    if (fits) {
        self->done[self->n_done++] = *done;
        self->done_bytes += size;
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return fits;
}

static psd_status_t no_memory(ps_piece_thread_t *self)
{
    return psd_error_set(self->err, PSD_NOMEM, "no memory for a piece of a checkpoint");
}

static psd_status_t commit(ps_piece_thread_t *self)
{
    ps_piece_done_t done = {.id = self->id, .sum = ps_snapshot_sum(self->writer)};
    psd_status_t rc = ps_snapshot_commit(&self->writer, self->id.lsn, self->err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_snapshot_size(&self->dir, &self->id, &done.bytes, self->err);
    return rc != PSD_OK || say(self, &done) ? rc : no_memory(self);
}

/* One piece of the file. *ret_end: there are no more. */
static psd_status_t read_piece(ps_piece_thread_t *self, ps_snapshot_reader_t *reader, bool *ret_end)
{
    const ps_bytes_t none = {NULL, 0};
    ps_piece_done_t done = {.id = self->id};
    ps_snapshot_piece_t piece;
    psd_status_t rc = ps_snapshot_next(reader, &piece, self->err);

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_end = piece.is_end;
    if (piece.is_end) {
        done.sum = piece.sum;
        rc = ps_snapshot_size(&self->dir, &self->id, &done.bytes, self->err);
    } else {
        done.piece = ps_payload_copy(none, none, piece.bytes);
        rc = done.piece == NULL ? no_memory(self) : PSD_OK;
    }
    if (rc == PSD_OK && !say(self, &done)) {
        ps_payload_destroy(&done.piece);
        rc = no_memory(self);
    }
    return rc;
}

static psd_status_t read_file(ps_piece_thread_t *self)
{
    PSD_AUTO(ps_snapshot_close) ps_snapshot_reader_t *reader = NULL;
    psd_status_t rc = ps_snapshot_open(&self->dir, &self->id, &reader, self->err);
    bool is_end = false;

    while (rc == PSD_OK && !is_end) {
        rc = read_piece(self, reader, &is_end);
    }
    return rc;
}

static psd_status_t obey(ps_piece_thread_t *self, const order_t *order)
{
    switch (order->kind) {
    case ORDER_OPEN:
        self->id = order->id;
        return ps_snapshot_begin(&self->dir, &self->id, ZSTD_LEVEL, &self->writer, self->err);
    case ORDER_ADD:
        return ps_snapshot_add(self->writer, self->id.lsn, order->piece->span, self->err);
    case ORDER_COMMIT:
        return commit(self);
    case ORDER_READ:
    default:
        self->id = order->id;
        self->dir.dir = order->dir;
        return read_file(self);
    }
}

/* Waits for an order. false: the end. */
static bool next_order(ps_piece_thread_t *self, order_t *ret)
{
    bool got = false;

    (void)pthread_mutex_lock(&self->mutex);
    while (self->n_orders == 0 && !self->stopping) {
        ps_turn_wait(self->turn, &self->wake, &self->mutex);
    }
    ps_turn_works(self->turn);
    got = !self->stopping;
    if (got) {
        *ret = self->orders[0];
        self->n_orders--;
        memmove(&self->orders[0], &self->orders[1], self->n_orders * sizeof *self->orders);
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return got;
}

/* Reports that the order was done, or failed. */
static void finish(ps_piece_thread_t *self, order_t *order, psd_status_t rc)
{
    (void)pthread_mutex_lock(&self->mutex);
    if (order->piece != NULL) {
        self->order_bytes -= order->piece->span.size;
    }
    if (rc != PSD_OK && self->status == PSD_OK) {
        self->status = rc;
        (void)snprintf(self->text, sizeof self->text, "%.*s", PS_PIECE_TEXT_SIZE - 1,
                       psd_error_text(self->err));
    }
    (void)pthread_mutex_unlock(&self->mutex);
    psd_error_clear(self->err);
    ps_payload_destroy(&order->piece);
}

static void *run(void *arg)
{
    ps_piece_thread_t *self = arg;
    order_t order;
    psd_status_t rc = PSD_OK;
    ps_rest_t rest;
    char name[PS_TURN_NAME_SIZE];

    (void)snprintf(name, sizeof name, "pieces-%" PRIu32, self->shard);
    self->turn = ps_turns_enter(self->turns, name);
    ps_rest_init(&rest);
    while (next_order(self, &order)) {
        if (rc == PSD_OK) {
            rc = obey(self, &order);
        }
        finish(self, &order, rc);
        ps_rest_if_due(&rest);
    }
    ps_rest_done(&rest);
    ps_turn_leave(&self->turn);
    ps_snapshot_abort(&self->writer);
    return NULL;
}

/* ---- its owner ---- */

static void destroy(ps_piece_thread_t *self)
{
    for (size_t i = 0; i < self->n_orders; i++) {
        ps_payload_destroy(&self->orders[i].piece);
    }
    for (size_t i = 0; i < self->n_done; i++) {
        ps_payload_destroy(&self->done[i].piece);
    }
    (void)pthread_cond_destroy(&self->wake);
    (void)pthread_mutex_destroy(&self->mutex);
    psd_error_destroy(&self->err);
    ps_free(self->orders);
    ps_free(self->done);
    ps_free(self->path);
    ps_free(self);
}

psd_status_t ps_piece_thread_start(const ps_snapshot_dir_t *dir, uint32_t shard, ps_turns_t *turns,
                                   ps_piece_thread_t **ret, psd_error_t *err)
{
    ps_piece_thread_t *self = ps_alloc(1, sizeof *self);
    size_t size = strlen(dir->dir) + 1;
    int rc = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a thread");
    }
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    (void)ps_cond_init(&self->wake);
    self->shard = shard;
    self->turns = turns;
    self->err = psd_error_new();
    self->path = ps_alloc(size, 1);
    if (self->err == NULL || self->path == NULL) {
        destroy(self);
        return psd_error_set(err, PSD_NOMEM, "no memory for a thread");
    }
    memcpy(self->path, dir->dir, size);
    self->dir = *dir;
    self->dir.dir = self->path;
    rc = ps_thread_start(&self->thread, run, self);
    if (rc != 0) {
        destroy(self);
        return psd_error_set(err, PSD_IO, "start a thread: error %d", rc);
    }
    *ret = self;
    return PSD_OK;
}

void ps_piece_thread_stop(ps_piece_thread_t **self_p)
{
    ps_piece_thread_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&self->mutex);
    self->stopping = true;
    (void)pthread_cond_signal(&self->wake);
    (void)pthread_mutex_unlock(&self->mutex);
    (void)pthread_join(self->thread, NULL);
    destroy(self);
    *self_p = NULL;
}

bool ps_piece_thread_has_room(ps_piece_thread_t *self)
{
    bool has_room = false;

    (void)pthread_mutex_lock(&self->mutex);
    has_room = self->order_bytes < WAITING_BYTES;
    (void)pthread_mutex_unlock(&self->mutex);
    return has_room;
}

static bool give(ps_piece_thread_t *self, const order_t *order)
{
    bool fits = false;

    (void)pthread_mutex_lock(&self->mutex);
    fits = ps_grow(&self->orders, &self->orders_capacity, self->n_orders + 1, sizeof *self->orders);
    if (fits) {
        self->orders[self->n_orders++] = *order;
        self->order_bytes += order->piece == NULL ? 0 : order->piece->span.size;
        if (order->kind != ORDER_ADD || self->order_bytes >= WAKE_BYTES) {
            (void)pthread_cond_signal(&self->wake);
        }
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return fits;
}

bool ps_piece_thread_open(ps_piece_thread_t *self, const ps_snapshot_id_t *id)
{
    return give(self, &(order_t){.kind = ORDER_OPEN, .id = *id});
}

bool ps_piece_thread_add(ps_piece_thread_t *self, ps_payload_t **piece_p)
{
    bool fits = give(self, &(order_t){.kind = ORDER_ADD, .piece = *piece_p});

    if (fits) {
        *piece_p = NULL;
    } else {
        ps_payload_destroy(piece_p);
    }
    return fits;
}

bool ps_piece_thread_commit(ps_piece_thread_t *self)
{
    return give(self, &(order_t){.kind = ORDER_COMMIT});
}

bool ps_piece_thread_read(ps_piece_thread_t *self, const char *dir, const ps_snapshot_id_t *id)
{
    return give(self, &(order_t){.kind = ORDER_READ, .id = *id, .dir = dir});
}

bool ps_piece_thread_take(ps_piece_thread_t *self, ps_piece_done_t *ret)
{
    bool got = false;

    (void)pthread_mutex_lock(&self->mutex);
    got = self->n_done > 0;
    if (got) {
        *ret = self->done[0];
        self->n_done--;
        memmove(&self->done[0], &self->done[1], self->n_done * sizeof *self->done);
        self->done_bytes -= ret->piece == NULL ? 0 : ret->piece->span.size;
        (void)pthread_cond_signal(&self->wake);
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return got;
}

psd_status_t ps_piece_thread_look(ps_piece_thread_t *self, char ret_text[PS_PIECE_TEXT_SIZE])
{
    psd_status_t status = PSD_OK;

    (void)pthread_mutex_lock(&self->mutex);
    status = self->status;
    memcpy(ret_text, self->text, PS_PIECE_TEXT_SIZE);
    (void)pthread_mutex_unlock(&self->mutex);
    return status;
}
