/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a record out of the ring. It checks the record against the ring's
 * content, loads its head once, and copies everything except values in the
 * arena before any code reads it. An invalid record ends the lane: its writer
 * is not trusted any further.
 */
#include "transport/lane/lane_take.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define ROOM_ALIGN 64

void ps_taken_done(ps_taken_t *self)
{
    ps_free(self->block);
    self->block = NULL;
}

/* Nothing more is read of what cannot be. */
static psd_status_t broken(ps_lane_t *self, psd_error_t *err, const char *what, uint64_t value)
{
    self->in.broken = true;
    self->gone = true;
    self->last = self->in.at;
    return psd_error_set(err, PSD_PROTO, "lane: %s is %" PRIu64 "; the lane is closed", what,
                         value);
}

/* Bytes of keys, index and values that the record has inline, when the numbers
 * of its head agree with its size and with what came before. */
static psd_status_t check_message(ps_lane_t *self, const ps_record_head_t *head, uint64_t *ret_rest,
                                  psd_error_t *err)
{
    uint64_t parts = 0;
    uint64_t inline_values = ps_values_are_inline(head) ? head->values_size : 0;

    if (head->header_size > PS_HEADER_MAX) {
        return broken(self, err, "size of a header", head->header_size);
    }
    if (__builtin_add_overflow(head->keys_size, head->index_size, &parts) ||
        head->parts_size != self->parts.size || head->parts_size > parts) {
        return broken(self, err, "size of keys and index", head->parts_size);
    }
    *ret_rest = head->size - PS_LANE_RECORD_FULL_HEAD - head->header_size;
    if (head->size < PS_LANE_RECORD_FULL_HEAD + head->header_size ||
        parts - head->parts_size > *ret_rest ||
        inline_values != *ret_rest - (parts - head->parts_size)) {
        return broken(self, err, "size of a record", head->size);
    }
    if (ps_values_are_placed(head) &&
        !ps_lane_share_has(self->share, head->values_at, head->values_size)) {
        return broken(self, err, "place of values", head->values_at);
    }
    if (head->room_size > 0 && (head->room_at % ROOM_ALIGN != 0 ||
                                !ps_lane_share_has(self->share, head->room_at, head->room_size))) {
        return broken(self, err, "place of room", head->room_at);
    }
    return PSD_OK;
}

static void load_head(const uint8_t *record, ps_record_head_t *ret_head)
{
    ret_head->keys_size = ps_record_load(record + 8);
    ret_head->index_size = ps_record_load(record + 16);
    ret_head->parts_size = ps_record_load(record + 24);
    ret_head->values_at = ps_record_load(record + 32);
    ret_head->values_size = ps_record_load(record + 40);
    ret_head->room_at = ps_record_load(record + 48);
    ret_head->room_size = ps_record_load(record + 56);
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a message");
}

/* Copies what is inline; what came in PARTs is in front of it. */
static psd_status_t copy_rest(ps_lane_t *self, ps_taken_t *taken, const uint8_t *rest,
                              uint64_t size, psd_error_t *err)
{
    if (taken->head.parts_size > 0) {
        if (!ps_buffer_append(&self->parts, rest, (size_t)size)) {
            ps_buffer_done(&self->parts); /* they go with their message */
            return no_memory(err);
        }
        taken->block = self->parts.data;
        self->parts = (ps_buffer_t){.size = 0};
    } else if (size > 0) {
        taken->block = ps_alloc_raw((size_t)size, 1);
        if (taken->block == NULL) {
            return no_memory(err);
        }
        memcpy(taken->block, rest, (size_t)size);
    }
    return PSD_OK;
}

static psd_status_t take_message(ps_lane_t *self, const uint8_t *record, ps_taken_t *taken,
                                 psd_error_t *err)
{
    uint64_t rest = 0;
    psd_status_t rc = PSD_OK;

    if (taken->head.size < PS_LANE_RECORD_FULL_HEAD) {
        return broken(self, err, "size of a record", taken->head.size);
    }
    load_head(record, &taken->head);
    rc = check_message(self, &taken->head, &rest, err);
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(taken->header, record + PS_LANE_RECORD_FULL_HEAD, taken->head.header_size);
    return copy_rest(self, taken, record + PS_LANE_RECORD_FULL_HEAD + taken->head.header_size, rest,
                     err);
}

static psd_status_t take_part(ps_lane_t *self, const uint8_t *record, const ps_record_head_t *head,
                              psd_error_t *err)
{
    size_t size = head->size - PS_LANE_RECORD_HEAD;

    if (size > self->args.assembly_bytes || self->parts.size > self->args.assembly_bytes - size) {
        return broken(self, err, "size of keys and index", self->parts.size + size);
    }
    /* Without this record the following ones make no sense. */
    if (!ps_buffer_append(&self->parts, record + PS_LANE_RECORD_HEAD, size)) {
        return broken(self, err, "keys and index without memory", size);
    }
    return PSD_OK;
}

psd_status_t ps_lane_take(ps_lane_t *self, ps_taken_t *taken, psd_error_t *err)
{
    uint64_t waiting = ps_ring_waiting(&self->in);
    const uint8_t *record = ps_ring_next(&self->in);
    uint64_t word = ps_record_load(record);
    ps_record_head_t *head = &taken->head;
    psd_status_t rc = PSD_OK;

    taken->block = NULL;
    if (self->in.broken) {
        return broken(self, err, "position in the ring", self->in.at);
    }
    *head = (ps_record_head_t){.size = (uint32_t)word,
                               .header_size = (uint16_t)(word >> 32),
                               .kind = (uint8_t)(word >> 48),
                               .flags = (uint8_t)(word >> 56)};
    taken->position = self->in.at;
    if (head->size <= PS_LANE_RECORD_HEAD || ps_record_room(head->size) > waiting) {
        return broken(self, err, "size of a record", head->size);
    }
    switch (head->kind) {
    case PS_LANE_RECORD_INLINE:
        if (head->size - PS_LANE_RECORD_HEAD > sizeof taken->header) {
            return broken(self, err, "size of a small record", head->size);
        }
        memcpy(taken->header, record + PS_LANE_RECORD_HEAD, head->size - PS_LANE_RECORD_HEAD);
        break;
    case PS_LANE_RECORD_PART:
        rc = take_part(self, record, head, err);
        break;
    case PS_LANE_RECORD_MESSAGE:
        rc = take_message(self, record, taken, err);
        break;
    default:
        return broken(self, err, "kind of a record", head->kind);
    }
    self->in.at += ps_record_room(head->size);
    return rc;
}
