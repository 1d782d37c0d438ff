/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in pieces. A receiver keeps the pieces as they came and, when all
 * are there, makes a payload whose spans point into them. */
#include "protocol/session/assembly.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "wire/filters/filter_code.h"

#define PIECE_ALIGN 64                /* bytes; pieces are multiples of it */
#define WIDEST_VALUE 8                /* bytes */
#define OPEN_COST 8                   /* an unfinished message costs as much as pieces */
#define PIECE_COST 128                /* approximate overhead of each piece, in bytes */
#define COST_FREE (UINT64_C(1) << 18) /* of these that no limit asks about */

/* The pieces of one message; also what a finished payload owns. */
typedef struct pieces {
    ps_payload_t **items; /* each held */
    size_t n_items;
    size_t capacity;
} pieces_t;

struct ps_assembling {
    struct ps_assembling *next;
    ps_message_t message; /* the first one */
    uint64_t request;
    uint64_t have;   /* bytes of values so far */
    uint64_t total;  /* bytes of values announced */
    uint64_t held;   /* bytes of all pieces, keys and index too */
    bool fresh;      /* a piece came since it was last named */
    size_t n_pieces; /* and OPEN_COST for the message itself */
    pieces_t *pieces;
};

static void release_pieces(void *owner)
{
    pieces_t *pieces = owner;

    if (pieces == NULL) {
        return;
    }
    for (size_t i = 0; i < pieces->n_items; i++) {
        ps_payload_destroy(&pieces->items[i]);
    }
    ps_free(pieces->items);
    ps_free(pieces);
}

/* The place in the list where the request stands, or its end. */
static struct ps_assembling **find(ps_assembly_t *self, uint64_t request)
{
    struct ps_assembling **at = &self->open;

    while (*at != NULL && (*at)->request != request) {
        at = &(*at)->next;
    }
    return at;
}

/* Takes one out of the list; its pieces may have been given away. */
static void drop(ps_assembly_t *self, struct ps_assembling **at)
{
    struct ps_assembling *dropped = *at;

    if (dropped == NULL) {
        return;
    }
    *at = dropped->next;
    self->n_open--;
    self->bytes -= dropped->held;
    self->n_pieces -= dropped->n_pieces;
    release_pieces(dropped->pieces);
    ps_free(dropped);
}

void ps_assembly_done(ps_assembly_t *self)
{
    while (self->open != NULL) {
        drop(self, &self->open);
    }
}

/* Many small pieces cost more than their bytes: they count, beyond some. */
static bool fits(const ps_assembly_t *self, uint64_t more, uint64_t limit_bytes)
{
    uint64_t cost = (uint64_t)(self->n_pieces + 1) * PIECE_COST;
    uint64_t free = COST_FREE + limit_bytes / 8;

    return more <= limit_bytes && self->bytes <= limit_bytes - more && cost <= free;
}

static bool keep_piece(ps_assembly_t *self, struct ps_assembling *open, ps_payload_t *piece,
                       size_t value_bytes)
{
    pieces_t *pieces = open->pieces;
    size_t size = ps_payload_size(piece);

    if (piece == NULL) {
        return true; /* a first message without keys and values */
    }
    if (!ps_grow(&pieces->items, &pieces->capacity, pieces->n_items + 1, sizeof(ps_payload_t *))) {
        return false;
    }
    pieces->items[pieces->n_items++] = piece;
    open->fresh = true;
    open->n_pieces++;
    open->held += size;
    open->have += value_bytes;
    self->n_pieces++;
    self->bytes += size;
    return true;
}

/* Bytes of values in a piece. */
static size_t value_bytes_of(const ps_payload_t *payload)
{
    if (payload == NULL) {
        return 0;
    }
    return ps_payload_size(payload) - payload->keys.size - payload->index.size;
}

/* One payload over all pieces, which takes them over. NULL: no memory. */
static ps_payload_t *join(struct ps_assembling *open)
{
    pieces_t *pieces = open->pieces;
    ps_bytes_t keys = {0};
    ps_bytes_t index = {0};
    ps_bytes_t *spans = NULL;
    ps_payload_t *whole = NULL;
    size_t n_spans = 0;

    for (size_t i = 0; i < pieces->n_items; i++) {
        n_spans += pieces->items[i]->n_spans;
    }
    spans = ps_alloc(n_spans, sizeof *spans);
    if (spans == NULL) {
        return NULL;
    }
    if (pieces->n_items > 0) {
        keys = pieces->items[0]->keys;
        index = pieces->items[0]->index;
    }
    whole = ps_payload_new(keys, index, (ps_bytes_t){0}, pieces, release_pieces);
    if (whole == NULL) {
        ps_free(spans);
        return NULL;
    }
    whole->spans = spans;
    for (size_t i = 0; i < pieces->n_items; i++) {
        const ps_payload_t *piece = pieces->items[i];

        whole->shared = whole->shared || piece->shared;
        for (size_t j = 0; j < piece->n_spans; j++) {
            spans[whole->n_spans++] = piece->spans[j];
        }
    }
    open->pieces = NULL; /* the payload's now */
    return whole;
}

static psd_status_t add_first(ps_assembly_t *self, const ps_message_t *message,
                              ps_payload_t **payload_p, uint64_t limit_bytes, psd_error_t *err)
{
    uint64_t keys = 0;
    uint64_t index = 0;
    uint64_t values = 0;
    ps_slice_t slice;
    struct ps_assembling *open = NULL;

    ps_message_slice(message, &slice);
    if ((message->flags & PS_FLAG_CODED) != 0) {
        ps_bytes_t piece = *payload_p == NULL || (*payload_p)->n_spans == 0
                               ? (ps_bytes_t){NULL, 0}
                               : (*payload_p)->spans[0];
        psd_status_t rc = ps_coded_size(piece, &values, err);

        if (rc != PSD_OK) {
            return rc;
        }
    } else if (!ps_slice_sizes(&slice, &keys, &index, &values)) {
        values = 0;
    }
    if (value_bytes_of(*payload_p) >= values) {
        return psd_error_set(err, PSD_PROTO, "%s with MORE has no values to come",
                             ps_kind_name(message->kind));
    }
    if (values > limit_bytes || !fits(self, ps_payload_size(*payload_p), limit_bytes)) {
        return psd_error_set(err, PSD_LIMIT,
                             "%" PRIu64 " bytes of values in pieces; at most "
                             "%" PRIu64 " bytes may be unfinished",
                             values, limit_bytes);
    }
    open = ps_alloc(1, sizeof *open);
    if (open != NULL) {
        open->pieces = ps_alloc(1, sizeof *open->pieces);
    }
    if (open == NULL || open->pieces == NULL ||
        !keep_piece(self, open, *payload_p, value_bytes_of(*payload_p))) {
        if (open != NULL) {
            release_pieces(open->pieces);
        }
        ps_free(open);
        return psd_error_set(err, PSD_NOMEM, "no memory for a piece");
    }
    *payload_p = NULL;
    open->message = *message;
    open->request = message->kind == PS_KIND_PUSH ? message->push.request : message->values.request;
    open->total = values;
    open->n_pieces += OPEN_COST;
    self->n_pieces += OPEN_COST;
    open->next = self->open;
    self->open = open;
    self->n_open++;
    return PSD_OK;
}

/* Checks a piece. */
static psd_status_t check_piece(const ps_assembly_t *self, const struct ps_assembling *open,
                                uint64_t offset, const ps_payload_t *payload, uint64_t limit_bytes,
                                psd_error_t *err)
{
    size_t size = value_bytes_of(payload);
    ps_slice_t slice;

    ps_message_slice(&open->message, &slice);
    if (offset != open->have || size == 0 || size > open->total - open->have ||
        size % ps_type_size(slice.type) != 0) {
        return psd_error_set(err, PSD_PROTO,
                             "CHUNK of %zu bytes at offset %" PRIu64 "; expected at %" PRIu64
                             ", at most %" PRIu64 " bytes of whole values",
                             size, offset, open->have, open->total - open->have);
    }
    if (!fits(self, ps_payload_size(payload), limit_bytes)) {
        return psd_error_set(err, PSD_LIMIT,
                             "unfinished messages of a connection hold more "
                             "than %" PRIu64 " bytes",
                             limit_bytes);
    }
    return PSD_OK;
}

/* Completes the message when its last piece has arrived. */
static psd_status_t finish(struct ps_assembling *open, ps_message_t *message,
                           ps_payload_t **payload_p, bool *ret_whole, psd_error_t *err)
{
    ps_payload_t *whole = NULL;

    if (open->have < open->total) {
        *ret_whole = false;
        return PSD_OK;
    }
    whole = join(open);
    if (whole == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a message");
    }
    *message = open->message;
    message->flags &= (uint8_t)~PS_FLAG_MORE;
    *payload_p = whole;
    *ret_whole = true;
    return PSD_OK;
}

static psd_status_t add_chunk(ps_assembly_t *self, ps_message_t *message, ps_payload_t **payload_p,
                              uint64_t limit_bytes, bool *ret_whole, psd_error_t *err)
{
    struct ps_assembling **at = find(self, message->chunk.request);
    struct ps_assembling *open = *at;
    psd_status_t rc;

    if (open == NULL) {
        /* Not an error: ZeroMQ sends messages queued for the old connection on
         * the new one, and the rest of a message refused for its size still
         * arrives. */
        ps_payload_destroy(payload_p);
        *ret_whole = false;
        return PSD_OK;
    }
    rc = check_piece(self, open, message->chunk.offset, *payload_p, limit_bytes, err);
    if (rc == PSD_OK && !keep_piece(self, open, *payload_p, value_bytes_of(*payload_p))) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a piece");
    }
    if (rc == PSD_OK) {
        *payload_p = NULL;
        rc = finish(open, message, payload_p, ret_whole, err);
    }
    if (rc != PSD_OK || *ret_whole) {
        drop(self, at);
    }
    return rc;
}

psd_status_t ps_assembly_add(ps_assembly_t *self, ps_message_t *message, ps_payload_t **payload_p,
                             uint64_t limit_bytes, bool *ret_whole, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (message->kind == PS_KIND_CHUNK) {
        return add_chunk(self, message, payload_p, limit_bytes, ret_whole, err);
    }
    if (message->kind == PS_KIND_PUSH) {
        drop(self, find(self, message->push.request));
    } else if (message->kind == PS_KIND_VALUES) {
        drop(self, find(self, message->values.request));
    } else if ((message->flags & PS_FLAG_MORE) != 0) {
        return psd_error_set(err, PSD_PROTO, "%s with MORE has no values",
                             ps_kind_name(message->kind));
    }
    if ((message->flags & PS_FLAG_MORE) == 0) {
        *ret_whole = true;
        return PSD_OK;
    }
    rc = add_first(self, message, payload_p, limit_bytes, err);
    if (rc == PSD_OK) {
        *ret_whole = false;
    }
    return rc;
}

bool ps_assembly_has(const ps_assembly_t *self, uint64_t request)
{
    const struct ps_assembling *at = self->open;

    while (at != NULL && at->request != request) {
        at = at->next;
    }
    return at != NULL;
}

bool ps_assembly_next_fresh(ps_assembly_t *self, uint64_t *ret_request)
{
    for (struct ps_assembling *at = self->open; at != NULL; at = at->next) {
        if (at->fresh) {
            at->fresh = false;
            *ret_request = at->request;
            return true;
        }
    }
    return false;
}

ps_bytes_t ps_piece_at(const ps_payload_t *payload, uint64_t offset, uint32_t chunk_bytes)
{
    size_t unit = chunk_bytes >= PIECE_ALIGN ? PIECE_ALIGN : WIDEST_VALUE;
    size_t most = chunk_bytes >= unit ? chunk_bytes / unit * unit : unit;

    for (size_t i = 0; payload != NULL && i < payload->n_spans; i++) {
        ps_bytes_t span = payload->spans[i];

        if (offset < span.size) {
            span.data += offset;
            span.size -= (size_t)offset;
            if (span.size > most) {
                span.size = most;
            }
            return span;
        }
        offset -= span.size;
    }
    return (ps_bytes_t){0};
}
