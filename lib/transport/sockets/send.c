/* SPDX-License-Identifier: Apache-2.0 */
/* Sending: small bodies after the header, large ones in frames that are the
 * payload's own memory, larger ones in pieces. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "transport/sockets/frames.h"
#include "wire/messages/doc.h"

/* What a small message adds to a batch at most. */
#define SMALL_MAX (PS_HEADER_MAX + PS_INLINE_MAX + sizeof(uint32_t))

void ps_departure_done(ps_departure_t *self)
{
    for (size_t i = 0; i < self->n_frames; i++) {
        (void)zmq_msg_close(&self->frames[i]);
    }
    self->n_frames = 0;
}

/* A frame of fresh memory; NULL: there is none. */
static uint8_t *add_frame(ps_departure_t *self, size_t size)
{
    ps_frame_t *frame = &self->frames[self->n_frames];

    if (zmq_msg_init_size(frame, size) != 0) {
        return NULL;
    }
    self->n_frames++;
    return zmq_msg_data(frame);
}

/* Runs on the carrier's thread when it is done with a frame. */
static void release_payload(void *data, void *hint)
{
    ps_payload_t *payload = hint;

    (void)data;
    ps_handover_take(payload);
    ps_payload_destroy(&payload);
}

/* A frame of an answer whose progress may be asked for. */
typedef struct counted {
    ps_payload_t *payload; /* held */
    ps_transit_t *transit; /* held */
    size_t size;
} counted_t;

/* Runs there, too. */
static void release_counted(void *data, void *hint)
{
    counted_t *self = hint;

    ps_handover_take(self);
    ps_transit_done(self->transit, self->size);
    release_payload(data, self->payload);
    ps_free(self);
}

/* NULL: no memory. */
static counted_t *count_frame(ps_transit_t *transit, size_t size, ps_payload_t *payload)
{
    counted_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        *self = (counted_t){payload, transit, size};
        ps_transit_lend(transit, size);
        ps_handover_give(self);
    }
    return self;
}

/* A frame that is the payload's own memory, held until it was sent. */
static bool lend_frame(ps_departure_t *self, ps_bytes_t bytes, ps_payload_t *payload)
{
    ps_frame_t *frame = &self->frames[self->n_frames];
    counted_t *counted = NULL;
    void *hint = payload;

    if (bytes.size == 0) {
        return add_frame(self, 0) != NULL;
    }
    if (self->transit != NULL) {
        counted = count_frame(self->transit, bytes.size, payload);
        if (counted == NULL) {
            return false;
        }
        hint = counted;
    }
    (void)ps_payload_keep(payload);
    ps_handover_give(payload);
    /* It is only read; libzmq's interface does not know const. */
    if (zmq_msg_init_data(frame, (void *)bytes.data, bytes.size,
                          counted != NULL ? release_counted : release_payload, hint) != 0) {
        if (counted != NULL) {
            release_counted(NULL, counted);
        } else {
            release_payload(NULL, payload);
        }
        return false;
    }
    self->n_frames++;
    return true;
}

/* The header and, after it in the same frame, room for inline_size bytes. */
static uint8_t *add_header(ps_departure_t *self, const ps_message_t *message, size_t inline_size)
{
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(message, header);
    uint8_t *at = add_frame(self, size + inline_size);

    if (at == NULL) {
        return NULL;
    }
    memcpy(at, header, size);
    return at + size;
}

/* Sends every frame, or (as far as the carrier lets it be known) none. */
static psd_status_t send_parcel(ps_socket_t *self, ps_departure_t *parcel, psd_error_t *err)
{
    const ps_carrier_t *carrier = ps_socket_carrier(self, parcel->conn);
    psd_status_t rc = carrier == NULL ? psd_error_set(err, PSD_BUSY, "send: peer is gone")
                                      : carrier->put(self, parcel, err);

    ps_departure_done(parcel); /* closing what was sent does nothing */
    return rc;
}

static psd_status_t no_memory(ps_departure_t *parcel, psd_error_t *err)
{
    ps_departure_done(parcel);
    return psd_error_set(err, PSD_NOMEM, "no memory for a message to send");
}

static uint8_t *append(uint8_t *at, ps_bytes_t bytes)
{
    if (bytes.size > 0) {
        memcpy(at, bytes.data, bytes.size);
    }
    return at + bytes.size;
}

/* Sends what was collected for one connection. */
static psd_status_t send_batch(ps_socket_t *self, ps_outgoing_t *out, psd_error_t *err)
{
    ps_departure_t parcel = {.conn = out->conn};
    ps_bytes_t frame = ps_batch_frame(&out->batch);
    uint32_t n = out->batch.n;
    uint8_t *at = add_frame(&parcel, frame.size);
    psd_status_t rc = PSD_OK;

    if (at == NULL) {
        rc = no_memory(&parcel, err);
    } else {
        (void)append(at, frame);
        rc = send_parcel(self, &parcel, err);
    }
    ps_batch_clear(&out->batch);
    self->n_lost += rc == PSD_OK ? 0 : n;
    return rc;
}

void ps_frames_flush(ps_socket_t *self)
{
    for (size_t i = 0; i < self->batches.n_out; i++) {
        if (self->batches.out[i].batch.n > 0) {
            psd_status_t rc = send_batch(self, &self->batches.out[i], NULL);

            (void)rc; /* counted; the protocol sends again */
        }
    }
    ps_batches_clear(&self->batches);
}

/* Puts a message with a small body into the batch of its connection. */
static psd_status_t collect(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                            const ps_payload_t *payload, psd_error_t *err)
{
    ps_outgoing_t *out = ps_batches_of(&self->batches, conn);
    psd_status_t rc = PSD_OK;

    if (out != NULL && out->batch.n > 0 && out->batch.bytes.size > PS_BATCH_BYTES - SMALL_MAX) {
        rc = send_batch(self, out, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (out == NULL || !ps_batch_add(&out->batch, message, payload)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a message to send");
    }
    return PSD_OK;
}

/* What was collected for a connection goes before what is not. */
static psd_status_t send_collected(ps_socket_t *self, uint64_t conn, psd_error_t *err)
{
    ps_outgoing_t *out = ps_batches_find(&self->batches, conn);

    return out == NULL || out->batch.n == 0 ? PSD_OK : send_batch(self, out, err);
}

/* Header, keys, index and the given values; what is one part has values only.
 */
static psd_status_t send_framed(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                                ps_payload_t *payload, ps_bytes_t values, ps_transit_t *transit,
                                psd_error_t *err)
{
    ps_departure_t parcel = {.conn = conn, .transit = transit};
    bool one_part = ps_message_is_one_part(message);
    bool has_index = payload->index.size > 0 || values.size > 0;

    if (add_header(&parcel, message, 0) == NULL ||
        (!one_part && !lend_frame(&parcel, payload->keys, payload)) ||
        (!one_part && has_index && !lend_frame(&parcel, payload->index, payload)) ||
        (values.size > 0 && !lend_frame(&parcel, values, payload))) {
        return no_memory(&parcel, err);
    }
    return send_parcel(self, &parcel, err);
}

static psd_status_t send_chunk(ps_socket_t *self, uint64_t conn, const ps_msg_chunk_t *chunk,
                               ps_payload_t *payload, ps_bytes_t piece, ps_transit_t *transit,
                               psd_error_t *err)
{
    ps_message_t message = {.kind = PS_KIND_CHUNK, .chunk = *chunk};
    ps_departure_t parcel = {.conn = conn, .transit = transit};

    if (add_header(&parcel, &message, 0) == NULL || !lend_frame(&parcel, piece, payload)) {
        return no_memory(&parcel, err);
    }
    return send_parcel(self, &parcel, err);
}

static uint64_t values_size(const ps_payload_t *payload)
{
    uint64_t size = 0;

    for (size_t i = 0; i < payload->n_spans; i++) {
        size += payload->spans[i].size;
    }
    return size;
}

/* The first piece goes with the message, the others follow as CHUNKs. */
static psd_status_t send_pieces(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                                ps_payload_t *payload, ps_transit_t *transit, psd_error_t *err)
{
    ps_message_t first = *message;
    ps_msg_chunk_t chunk = {.request = message->kind == PS_KIND_PUSH ? message->push.request
                                                                     : message->values.request};
    uint64_t size = values_size(payload);
    ps_bytes_t piece = ps_piece_at(payload, 0, self->chunk_bytes);
    psd_status_t rc = PSD_OK;

    if (piece.size < size) {
        first.flags |= PS_FLAG_MORE;
    }
    rc = send_framed(self, conn, &first, payload, piece, transit, err);
    for (chunk.offset = piece.size; rc == PSD_OK && chunk.offset < size;
         chunk.offset += piece.size) {
        piece = ps_piece_at(payload, chunk.offset, self->chunk_bytes);
        rc = send_chunk(self, conn, &chunk, payload, piece, transit, err);
    }
    return rc;
}

/* The values that a request asked for: it may be asked where they are. */
static psd_status_t send_values(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                                ps_payload_t *payload, psd_error_t *err)
{
    ps_transit_t *transit = ps_port_conns_begin(&self->conns, conn, message->values.request,
                                                message->values.epoch, ps_payload_size(payload));
    psd_status_t rc = send_pieces(self, conn, message, payload, transit, err);

    if (transit != NULL && rc != PSD_OK) {
        ps_port_conns_fail(&self->conns, conn);
    }
    return rc;
}

psd_status_t ps_frames_send(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                            ps_payload_t *payload, bool repeated, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    (void)repeated; /* of no meaning where no room is offered */
    if (message->kind == PS_KIND_WELCOME) {
        ps_port_conns_welcome(&self->conns, conn);
    }
    if (ps_payload_size(payload) <= PS_INLINE_MAX) {
        return collect(self, conn, message, payload, err);
    }
    rc = send_collected(self, conn, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (payload->n_spans == 0) {
        return send_framed(self, conn, message, payload, (ps_bytes_t){NULL, 0}, NULL, err);
    }
    if (message->kind == PS_KIND_PULL ||   /* keys through a filter */
        message->kind == PS_KIND_APPEND || /* one span; read in one piece */
        message->kind == PS_KIND_BUNDLE || message->kind == PS_KIND_ROWS ||
        message->kind == PS_KIND_ROWS_ON) {
        return send_framed(self, conn, message, payload, payload->spans[0], NULL, err);
    }
    assert(message->kind == PS_KIND_PUSH || message->kind == PS_KIND_VALUES);
    return message->kind == PS_KIND_VALUES ? send_values(self, conn, message, payload, err)
                                           : send_pieces(self, conn, message, payload, NULL, err);
}

psd_status_t ps_frames_send_text(ps_socket_t *self, uint64_t conn, ps_bytes_t text,
                                 psd_error_t *err)
{
    ps_departure_t parcel = {.conn = conn};
    uint8_t *at = NULL;

    if (text.size == 0 || text.size > PS_DOC_BYTES_MAX) {
        return psd_error_set(err, PSD_PROTO, "control text is %zu bytes; allowed: 1..%" PRIu32,
                             text.size, PS_DOC_BYTES_MAX);
    }
    at = add_frame(&parcel, text.size);
    if (at == NULL) {
        return no_memory(&parcel, err);
    }
    (void)append(at, text);
    return send_parcel(self, &parcel, err);
}
