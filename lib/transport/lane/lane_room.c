/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room for answers. A request offers a part of the arena, and the server writes
 * the values of its answer there. Only the first send of a request may offer
 * room, even if it had none to offer. The sender says which send it is, because
 * the lane does not remember a request after the first send has ended. A shard
 * answers a waiting request once, however often it was resent. So after the
 * first end of the request no server writes to the room. One case differs: when
 * the request was resent, a refusal may concern a resend that could not even be
 * read, while the first send still waits. Then the room is kept until an end
 * comes that concerns both.
 */
#include "base/alloc.h"
#include "transport/lane/lane.h"

#define ROOM_MIN 4096 /* bytes; smaller answers go through the ring */

typedef struct room {
    uint64_t at;
    uint64_t size;
    bool repeated; /* it was sent again */
} room_t;

static bool request_of(const ps_message_t *message, uint64_t *ret_request)
{
    if (message->kind == PS_KIND_PULL) {
        *ret_request = message->pull.request;
        return true;
    }
    if (message->kind == PS_KIND_PUSH && message->push.pull != 0) {
        *ret_request = message->push.request;
        return true;
    }
    return false;
}

/* The maximum bytes of the answer's values; 0: unknown. */
static uint64_t answer_size(const ps_message_t *message)
{
    ps_slice_t slice;
    uint64_t size = 0;

    ps_message_slice(message, &slice);
    if (slice.layout != PS_LAYOUT_DENSE ||
        __builtin_mul_overflow(slice.n_rows, (uint64_t)slice.n_cols, &size) ||
        __builtin_mul_overflow(size, (uint64_t)ps_type_size(slice.type), &size)) {
        return 0;
    }
    return size;
}

static room_t *take_room(ps_lane_t *self, uint64_t size)
{
    ps_lane_share_t *share = self->share;
    room_t *room = NULL;
    uint64_t at = 0;

    /* Half of the arena is left to requests: those that were sent may have to
     * wait for one that was not. */
    if (size > share->sizes.arena_bytes / 2 - share->room_bytes) {
        return NULL;
    }
    ps_lane_reclaim(self);
    if (!ps_arena_take(&share->free, size, &at)) {
        return NULL;
    }
    room = ps_alloc(1, sizeof *room);
    if (room == NULL) {
        ps_arena_give(&share->free, at, size);
        return NULL;
    }
    *room = (room_t){.at = at, .size = size};
    share->room_bytes += size;
    self->awaited_bytes += size;
    return room;
}

static void give_room(ps_lane_t *self, room_t *room)
{
    ps_arena_give(&self->share->free, room->at, room->size);
    self->share->room_bytes -= room->size;
    self->awaited_bytes -= room->size;
    ps_free(room);
}

void ps_lane_offer_room(ps_lane_t *self, ps_lane_item_t *item)
{
    uint64_t request = 0;
    uint64_t size = 0;
    room_t *room = NULL;

    if (self->serves || !request_of(item->message, &request)) {
        return;
    }
    room = ps_map_get(&self->rooms, request);
    if (room != NULL) {
        room->repeated = true;
        return;
    }
    if (item->repeated) {
        return;
    }
    size = answer_size(item->message);
    room = size < ROOM_MIN ? NULL : take_room(self, size);
    if (room == NULL) {
        return; /* the answer comes through the ring */
    }
    if (!ps_map_put(&self->rooms, request, room)) {
        give_room(self, room);
        return;
    }
    item->room_at = room->at;
    item->room_size = room->size;
}

uint64_t ps_lane_room_of(const ps_lane_t *self, uint64_t request, uint64_t at)
{
    const room_t *room = ps_map_get(&self->rooms, request);

    return room != NULL && room->at == at ? room->size : 0;
}

void ps_lane_room_used(ps_lane_t *self, uint64_t request)
{
    room_t *room = ps_map_remove(&self->rooms, request);

    if (room != NULL) {
        self->awaited_bytes -= room->size;
    }
    ps_free(room);
}

/* The request that the message ends; false: it ends none. is_sure: also if it
 * was sent more than once. */
static bool ends_request(const ps_message_t *message, uint64_t *ret_request, bool *is_sure)
{
    *is_sure = false;
    if (message->kind == PS_KIND_VALUES) {
        *ret_request = message->values.request;
        *is_sure = true;
    } else if (message->kind == PS_KIND_REFUSED) {
        *ret_request = message->refused.request;
        *is_sure = message->refused.status == PSD_DEADLINE;
    } else if (message->kind == PS_KIND_MOVED) {
        *ret_request = message->moved.request;
    } else {
        return false;
    }
    return true;
}

void ps_lane_room_answered(ps_lane_t *self, const ps_message_t *message)
{
    room_t *room = NULL;
    uint64_t request = 0;
    bool is_sure = false;

    if (self->rooms.count == 0 || !ends_request(message, &request, &is_sure)) {
        return;
    }
    room = ps_map_get(&self->rooms, request);
    if (room != NULL && (is_sure || !room->repeated)) {
        (void)ps_map_remove(&self->rooms, request);
        give_room(self, room);
    }
}

void ps_lane_rooms_done(ps_lane_t *self)
{
    size_t at = 0;
    uint64_t request = 0;
    void *value = NULL;

    while (ps_map_next(&self->rooms, &at, &request, &value)) {
        ps_free(value); /* the arena goes with the lane */
    }
    ps_map_done(&self->rooms);
}
