/* SPDX-License-Identifier: Apache-2.0 */
/* The coder's memory, and the head of a coded body. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "wire/filters/filter_inner.h"

#define KEEP_MAX                                                 \
    ((size_t)8 << 20) /* bytes of a buffer kept for the next one \
                       */

const char *const PS_PART_NAMES[PS_N_PARTS] = {"keys", "index", "values"};

ps_coder_t *ps_coder_new(uint64_t seed)
{
    ps_coder_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    self->rng.state = seed;
    self->packer = ps_packer_new();
    if (self->packer == NULL) {
        ps_coder_destroy(&self);
    }
    return self;
}

void ps_coder_destroy(ps_coder_t **self_p)
{
    ps_coder_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    ps_packer_destroy(&self->packer);
    ps_buffer_done(&self->whole);
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        ps_buffer_done(&self->parts[i]);
    }
    ps_buffer_done(&self->packed);
    ps_free(self);
}

static void empty(ps_buffer_t *buffer)
{
    buffer->size = 0;
    if (buffer->capacity > KEEP_MAX) {
        ps_buffer_done(buffer);
    }
}

void ps_coder_tidy(ps_coder_t *self)
{
    empty(&self->whole);
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        empty(&self->parts[i]);
    }
    empty(&self->packed);
}

psd_status_t ps_coder_join(const ps_payload_t *payload, ps_buffer_t *room, ps_bytes_t *ret_values,
                           psd_error_t *err)
{
    *ret_values = (ps_bytes_t){NULL, 0};
    if (payload == NULL || payload->n_spans == 0) {
        return PSD_OK;
    }
    if (payload->n_spans == 1 && !payload->shared) {
        *ret_values = payload->spans[0];
        return PSD_OK;
    }
    for (size_t i = 0; i < payload->n_spans; i++) {
        if (!ps_buffer_append(room, payload->spans[i].data, payload->spans[i].size)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a filter");
        }
    }
    *ret_values = (ps_bytes_t){room->data, room->size};
    return PSD_OK;
}

/* ---- head --------------------------------------------------------------- */

static psd_status_t check_field(const char *name, uint8_t value, uint8_t most, psd_error_t *err)
{
    if (value > most) {
        return psd_error_set(err, PSD_PROTO, "coded body's %s is %u; allowed: 0..%u", name,
                             (unsigned)value, (unsigned)most);
    }
    return PSD_OK;
}

psd_status_t ps_coded_head_read(ps_bytes_t body, ps_coded_head_t *ret_head, psd_error_t *err)
{
    const uint8_t *at = body.data;
    psd_status_t rc = PSD_OK;

    if (body.size < PS_CODED_HEAD) {
        return psd_error_set(err, PSD_PROTO, "coded body is %zu bytes; its head needs %d",
                             body.size, PS_CODED_HEAD);
    }
    rc = check_field("keys_as", at[0], PS_KEYS_DELTA, err);
    if (rc == PSD_OK) {
        rc = check_field("values_as", at[1], PS_VALUES_AS_MAX, err);
    }
    if (rc == PSD_OK) {
        rc = check_field("pack", at[2], PS_PACK_MAX, err);
    }
    if (rc == PSD_OK) {
        rc = check_field("packed", at[3], at[2] == PS_PACK_NONE ? 0 : (1U << PS_N_PARTS) - 1, err);
    }
    if (rc == PSD_OK && ps_load_u32(at + 4) != 0) {
        rc = psd_error_set(err, PSD_PROTO, "coded body's bytes 4..7 are not zero");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ret_head->keys_as = (ps_keys_as_t)at[0];
    ret_head->values_as = (ps_values_as_t)at[1];
    ret_head->pack = (ps_pack_t)at[2];
    ret_head->packed = at[3];
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        ret_head->sizes[i] = ps_load_u64(at + 8 * (1 + i));
    }
    return PSD_OK;
}

psd_status_t ps_coded_head_size(const ps_coded_head_t *head, uint64_t *ret_size, psd_error_t *err)
{
    uint64_t size = PS_CODED_HEAD + PS_CODED_UNIT - 1;

    for (size_t i = 0; i < PS_N_PARTS; i++) {
        if (__builtin_add_overflow(size, head->sizes[i], &size)) {
            return psd_error_set(err, PSD_PROTO,
                                 "coded body's %s are %" PRIu64 " bytes; they cannot be counted",
                                 PS_PART_NAMES[i], head->sizes[i]);
        }
    }
    *ret_size = size / PS_CODED_UNIT * PS_CODED_UNIT;
    return PSD_OK;
}

psd_status_t ps_coded_size(ps_bytes_t piece, uint64_t *ret_size, psd_error_t *err)
{
    ps_coded_head_t head = {0};
    psd_status_t rc = ps_coded_head_read(piece, &head, err);

    return rc == PSD_OK ? ps_coded_head_size(&head, ret_size, err) : rc;
}

psd_status_t ps_coded_bits(const ps_payload_t *payload, uint32_t *ret_bits, psd_error_t *err)
{
    uint8_t bytes[PS_CODED_HEAD];
    ps_coded_head_t head = {0};
    ps_filter_t filter = {0};
    size_t size = 0;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; payload != NULL && i < payload->n_spans; i++) {
        size_t room = sizeof bytes - size;
        size_t n = payload->spans[i].size;

        n = n < room ? n : room;
        if (n > 0) {
            memcpy(bytes + size, payload->spans[i].data, n);
        }
        size += n;
    }
    rc = ps_coded_head_read((ps_bytes_t){bytes, size}, &head, err);
    if (rc != PSD_OK) {
        return rc;
    }
    filter.delta = head.keys_as == PS_KEYS_DELTA;
    filter.pack = head.pack;
    filter.values_as = head.values_as;
    *ret_bits = ps_filter_bits(&filter);
    return PSD_OK;
}

void ps_coded_head_write(const ps_coded_head_t *self, uint8_t ret[PS_CODED_HEAD])
{
    ps_store_u8(ret, (uint8_t)self->keys_as);
    ps_store_u8(ret + 1, (uint8_t)self->values_as);
    ps_store_u8(ret + 2, (uint8_t)self->pack);
    ps_store_u8(ret + 3, self->packed);
    ps_store_u32(ret + 4, 0);
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        ps_store_u64(ret + 8 * (1 + i), self->sizes[i]);
    }
}
