/* SPDX-License-Identifier: Apache-2.0 */
/* Records become messages and payloads: small bodies copied, large ones where
 * they lie in the shared memory, those in pieces put together. */
#include <inttypes.h>

#include "base/alloc.h"
#include "model/updaters/finite.h"
#include "transport/lane/lane_take.h"

#define RECORDS_AT_ONCE 1024 /* taken before others have their turn */
#define KIND_AT 6            /* of a header */

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a message");
}

/* ---- payloads ---------------------------------------------------------- */

static void release_hold(void *owner)
{
    ps_lane_hold_t *hold = owner;

    if (hold->lane != NULL) {
        TAILQ_REMOVE(&hold->lane->holds, hold, in_order);
    }
    if (hold->size > 0) {
        ps_arena_give(&hold->share->free, hold->at, hold->size);
        hold->share->room_bytes -= hold->size;
    }
    ps_free(hold->block);
    ps_lane_share_drop(&hold->share);
    ps_free(hold);
}

/* A payload over values in the shared memory. room_size: of the client's room
 * that they lie in. */
static ps_payload_t *placed_payload(ps_lane_t *self, ps_taken_t *taken, const ps_body_t *body,
                                    uint64_t room_size)
{
    ps_lane_hold_t *hold = ps_alloc(1, sizeof *hold);
    ps_payload_t *payload = NULL;

    if (hold != NULL) {
        payload = ps_payload_new(body->keys, body->index, body->values, hold, release_hold);
    }
    if (payload == NULL) {
        ps_free(hold);
        return NULL;
    }
    *hold = (ps_lane_hold_t){.share = ps_lane_share_keep(self->share),
                             .block = taken->block,
                             .position = taken->position,
                             .at = taken->head.values_at,
                             .size = room_size};
    taken->block = NULL;
    if (self->serves) {
        hold->lane = self;
        TAILQ_INSERT_TAIL(&self->holds, hold, in_order);
        payload->shared = true;
    }
    return payload;
}

static psd_status_t make_payload(ps_lane_t *self, ps_taken_t *taken, const ps_body_t *body,
                                 uint64_t room_size, ps_payload_t **ret_payload, psd_error_t *err)
{
    ps_payload_t *payload = NULL;

    if (body->keys.size + body->index.size + body->values.size == 0) {
        return PSD_OK;
    }
    if (ps_values_are_placed(&taken->head)) {
        payload = placed_payload(self, taken, body, room_size);
    } else if (taken->head.kind == PS_LANE_RECORD_INLINE) {
        payload = ps_payload_copy(body->keys, body->index, body->values);
    } else {
        payload = ps_payload_new(body->keys, body->index, body->values, taken->block, ps_free);
        if (payload != NULL) {
            taken->block = NULL;
        }
    }
    if (payload == NULL) {
        return no_memory(err);
    }
    /* Trusted only for values that are checked again when they are applied. */
    payload->finite =
        self->serves && payload->shared && (taken->head.flags & PS_LANE_RECORD_FINITE) != 0;
    *ret_payload = payload;
    return PSD_OK;
}

/* ---- messages ---------------------------------------------------------- */

/* The parts as if they had come in frames; returns how many. */
static size_t frames_of(const ps_lane_t *self, const ps_taken_t *taken, ps_bytes_t *ret_frames)
{
    const ps_record_head_t *head = &taken->head;
    uint64_t parts = head->keys_size + head->index_size;
    ps_bytes_t values = {.data = NULL, .size = (size_t)head->values_size};

    ret_frames[0] = (ps_bytes_t){taken->header, head->header_size};
    if (head->kind == PS_LANE_RECORD_INLINE) {
        ret_frames[0].size = head->size - PS_LANE_RECORD_HEAD;
        return 1;
    }
    if (values.size > 0) {
        values.data = ps_values_are_inline(head) ? taken->block + parts
                                                 : self->share->arena + head->values_at;
    }
    if (head->header_size > KIND_AT && taken->header[KIND_AT] == PS_KIND_CHUNK && parts == 0) {
        ret_frames[1] = values;
        return 2;
    }
    ret_frames[1] = (ps_bytes_t){taken->block, (size_t)head->keys_size};
    ret_frames[2] = (ps_bytes_t){NULL, (size_t)head->index_size};
    if (head->index_size > 0) {
        ret_frames[2].data = taken->block + head->keys_size;
    }
    ret_frames[3] = values;
    if (values.size > 0) {
        return 4;
    }
    if (head->index_size > 0) {
        return 3;
    }
    return head->keys_size > 0 ? 2 : 1;
}

/* Client: the room that an answer may lie in, or 0: it lies elsewhere. */
static psd_status_t check_room(ps_lane_t *self, const ps_taken_t *taken,
                               const ps_message_t *message, uint64_t *ret_size, psd_error_t *err)
{
    const ps_record_head_t *head = &taken->head;

    if (self->serves || !ps_values_are_placed(head)) {
        return PSD_OK;
    }
    if (message->kind == PS_KIND_VALUES && (message->flags & PS_FLAG_MORE) == 0) {
        *ret_size = ps_lane_room_of(self, message->values.request, head->values_at);
    }
    if (head->values_size > *ret_size) {
        return psd_error_set(err, PSD_PROTO,
                             "%s has %" PRIu64 " bytes of values in room of %" PRIu64 " bytes",
                             ps_kind_name(message->kind), head->values_size, *ret_size);
    }
    return PSD_OK;
}

/* Only small records may have a body after the fields of their header, for
 * only theirs is copied from there. */
static psd_status_t check_body(const ps_taken_t *taken, size_t n_frames, const ps_body_t *body,
                               psd_error_t *err)
{
    size_t size = body->keys.size + body->index.size + body->values.size;

    if (taken->head.kind == PS_LANE_RECORD_INLINE || n_frames > 1 || size == 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_PROTO, "lane: header has %zu bytes of body; allowed: 0", size);
}

/* The message and the piece of its body that one record holds. */
static psd_status_t read_message(ps_lane_t *self, ps_taken_t *taken, ps_message_t *ret_message,
                                 ps_payload_t **ret_payload, psd_error_t *err)
{
    ps_bytes_t frames[PS_FRAMES_MAX];
    ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    size_t n_frames = frames_of(self, taken, frames);
    uint64_t room_size = 0;
    psd_status_t rc = ps_message_decode(frames, n_frames, ret_message, &body, err);

    if (rc == PSD_OK) {
        rc = check_body(taken, n_frames, &body, err);
    }
    if (rc == PSD_OK) {
        rc = check_room(self, taken, ret_message, &room_size, err);
    }
    if (rc == PSD_OK) {
        rc = make_payload(self, taken, &body, room_size, ret_payload, err);
    }
    if (rc == PSD_OK && room_size > 0) {
        ps_lane_room_used(self, ret_message->values.request);
    } else if (rc == PSD_OK && !self->serves) {
        ps_lane_room_answered(self, ret_message);
    }
    return rc;
}

/* ---- what is known of a push while it comes ----------------------------- */

/* Checks the values of a piece while they are warm, and records the result for
 * the whole message. A piece that its writer has checked is trusted: a writer
 * that lies could as well change it after our check. */
static void look_at_piece(ps_lane_t *self, const ps_message_t *message, ps_payload_t *payload,
                          ps_room_t room)
{
    ps_lane_coming_t *coming = &self->coming;
    ps_type_t type = (ps_type_t)message->push.type;
    bool coded = (message->flags & PS_FLAG_CODED) != 0;

    if (message->kind == PS_KIND_CHUNK) {
        if (!coming->is_some || coming->request != message->chunk.request) {
            return;
        }
        type = coming->type;
    } else {
        *coming = (ps_lane_coming_t){.request = message->push.request,
                                     .type = type,
                                     .is_some = true,
                                     .is_finite = !coded,
                                     .room = room};
    }
    for (size_t i = 0; coming->is_finite && !payload->finite && i < payload->n_spans; i++) {
        ps_bytes_t span = payload->spans[i];

        coming->is_finite = ps_finite_all(type, span.data, span.size / ps_type_size(type));
    }
}

/* What was learned of the message that is whole now. */
static void finish_piece(ps_lane_t *self, const ps_message_t *message, ps_payload_t *payload,
                         ps_room_t *room)
{
    ps_lane_coming_t *coming = &self->coming;

    if (coming->is_some && message->kind == PS_KIND_PUSH &&
        coming->request == message->push.request) {
        *room = coming->room;
        coming->is_some = false;
        if (payload != NULL) {
            payload->finite = coming->is_finite;
        }
    }
}

static psd_status_t assemble(ps_lane_t *self, ps_message_t *message, ps_payload_t **payload_p,
                             ps_room_t *room, bool *ret_whole, psd_error_t *err)
{
    bool is_piece = message->kind == PS_KIND_CHUNK || (message->flags & PS_FLAG_MORE) != 0;
    psd_status_t rc = PSD_OK;

    if (self->serves && *payload_p != NULL &&
        (message->kind == PS_KIND_PUSH || message->kind == PS_KIND_CHUNK)) {
        look_at_piece(self, message, *payload_p, *room);
    }
    if (!is_piece && self->assembly.n_open == 0) {
        *ret_whole = true;
    } else {
        rc = ps_assembly_add(&self->assembly, message, payload_p, self->args.assembly_bytes,
                             ret_whole, err);
    }
    if (rc == PSD_OK && *ret_whole && self->serves) {
        finish_piece(self, message, *payload_p, room);
    }
    return rc;
}

bool ps_lane_has_record(ps_lane_t *self)
{
    if (self->gone && (int64_t)(self->last - self->in.at) <= 0) {
        return false;
    }
    /* A position that cannot be is found out, and reported, by receiving. */
    return ps_ring_waiting(&self->in) > 0 || self->in.broken;
}

/* The writer should know of room before it has none. */
static void give_early(ps_lane_t *self)
{
    if (self->in.at - self->in.given > self->in.size / 4) {
        ps_lane_give(self);
    }
}

static ps_room_t room_of(const ps_lane_t *self, const ps_record_head_t *head)
{
    if (!self->serves || head->room_size == 0) {
        return (ps_room_t){.data = NULL, .size = 0};
    }
    return (ps_room_t){.data = self->share->arena + head->room_at, .size = (size_t)head->room_size};
}

psd_status_t ps_lane_receive(ps_lane_t *self, bool *ret_got, ps_message_t *ret_message,
                             ps_payload_t **ret_payload, ps_room_t *ret_room, psd_error_t *err)
{
    bool whole = false;

    *ret_got = false;
    for (int i = 0; i < RECORDS_AT_ONCE && !whole && ps_lane_has_record(self); i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        PSD_AUTO(ps_taken_done) ps_taken_t taken;
        psd_status_t rc = PSD_OK;

        taken.head.kind = 0; /* the rest is large, and filled in */
        taken.block = NULL;
        rc = ps_lane_take(self, &taken, err);
        give_early(self);
        if (rc == PSD_OK && taken.head.kind != PS_LANE_RECORD_PART) {
            *ret_room = room_of(self, &taken.head);
            rc = read_message(self, &taken, ret_message, &payload, err);
            if (rc == PSD_OK) {
                rc = assemble(self, ret_message, &payload, ret_room, &whole, err);
            }
        }
        if (rc != PSD_OK) {
            *ret_room = (ps_room_t){.data = NULL, .size = 0};
            return rc;
        }
        if (whole) {
            *ret_payload = payload;
            payload = NULL;
        }
    }
    if (!whole) {
        *ret_room = (ps_room_t){.data = NULL, .size = 0};
    }
    *ret_got = whole;
    return PSD_OK;
}
