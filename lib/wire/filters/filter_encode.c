/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes bodies: encodes each part as asked, then packs it. A part that did
 * not get smaller stays plain. */
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "wire/filters/filter_inner.h"
#include "wire/filters/keys.h"

#define KEEP_MAX                                                 \
    ((size_t)8 << 20) /* bytes of a buffer kept for the next one \
                       */
#define PADDING 8     /* a coded body is a multiple of it */

/* ---- parts -------------------------------------------------------------- */

static psd_status_t write_keys(ps_coder_t *self, const ps_slice_t *slice, ps_coded_head_t *head,
                               ps_bytes_t *keys)
{
    ps_buffer_t *to = &self->parts[PS_PART_KEYS];
    bool ascending = true;
    psd_status_t rc = PSD_OK;

    if (slice->rows == PS_ROWS_LIST) {
        rc = ps_keys_delta_encode(keys->data, slice->n_rows, to, &ascending);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (ascending) { /* or there is no list: then the head says what the answer may use */
        head->keys_as = PS_KEYS_DELTA;
    }
    if (ascending && slice->rows == PS_ROWS_LIST) {
        *keys = (ps_bytes_t){to->data, to->size};
    }
    return PSD_OK;
}

static uint64_t mix(uint64_t seed, uint64_t number)
{
    return ps_hash_u64(seed + number + 1);
}

/* The seed for the random rounding of a message. For a worker's push and for
 * answers it follows from the message, so that a repeated job or a retried
 * message rounds in the same way. */
static uint64_t seed_of(ps_coder_t *self, const ps_message_t *message)
{
    const ps_msg_push_t *push = &message->push;
    const ps_msg_values_t *values = &message->values;
    uint64_t seed = 0;

    if (message->kind == PS_KIND_PUSH && push->job != 0) {
        seed = mix(mix(mix(0, push->table), push->partition), push->seq);
        return mix(mix(seed, push->worker), push->member);
    }
    if (message->kind == PS_KIND_VALUES) {
        seed = mix(mix(mix(0, values->table), values->partition), values->seq);
        return mix(seed, values->request);
    }
    return ps_rng_u64(&self->rng);
}

static psd_status_t write_values(ps_coder_t *self, const ps_slice_t *slice, uint64_t seed,
                                 ps_values_as_t as, ps_coded_head_t *head, ps_bytes_t *values)
{
    ps_buffer_t *to = &self->parts[PS_PART_VALUES];
    uint64_t size = 0;

    if (slice->n_values == 0) {
        head->values_as = as; /* what the answer may use */
        return PSD_OK;
    }
    if (!ps_quant_size(as, slice->type, slice->n_values, &size) || size > SIZE_MAX ||
        !ps_buffer_reserve(to, (size_t)size)) {
        return PSD_NOMEM;
    }
    if (ps_quant_encode(as, slice->type, values->data, slice->n_values, seed, to->data)) {
        to->size = (size_t)size;
        *values = (ps_bytes_t){to->data, to->size};
        head->values_as = as;
    }
    return PSD_OK;
}

/* Packs the parts one after the other into one buffer. */
static psd_status_t pack_parts(ps_coder_t *self, ps_pack_t pack, ps_coded_head_t *head,
                               ps_bytes_t parts[PS_N_PARTS])
{
    size_t starts[PS_N_PARTS];

    for (size_t i = 0; i < PS_N_PARTS; i++) {
        bool packed = false;
        psd_status_t rc = PSD_OK;

        starts[i] = self->packed.size;
        rc = ps_pack(self->packer, pack, parts[i], &self->packed, &packed);
        if (rc != PSD_OK) {
            return rc;
        }
        if (packed) {
            head->packed |= (uint8_t)(1U << i);
            parts[i].size = self->packed.size - starts[i];
        }
    }
    for (size_t i = 0; i < PS_N_PARTS; i++) { /* it does not move any more */
        if ((head->packed & 1U << i) != 0) {
            parts[i].data = self->packed.data + starts[i];
        }
    }
    head->pack = pack;
    return PSD_OK;
}

/* ---- the whole ---------------------------------------------------------- */

static size_t padded(size_t size)
{
    return (size + PS_CODED_UNIT - 1) / PS_CODED_UNIT * PS_CODED_UNIT;
}

static ps_payload_t *put_together(const ps_coded_head_t *head, const ps_bytes_t parts[PS_N_PARTS])
{
    size_t size = PS_CODED_HEAD;
    ps_coded_head_t full = *head;
    ps_payload_t *coded = NULL;
    uint8_t *to = NULL;

    for (size_t i = 0; i < PS_N_PARTS; i++) {
        size += parts[i].size; /* each lies in memory: no overflow */
        full.sizes[i] = parts[i].size;
    }
    coded = ps_payload_room(0, 0, padded(size), &to);
    if (coded == NULL) {
        return NULL;
    }
    memset(to + size, 0, padded(size) - size);
    ps_coded_head_write(&full, to);
    to += PS_CODED_HEAD;
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        if (parts[i].size > 0) {
            memcpy(to, parts[i].data, parts[i].size);
            to += parts[i].size;
        }
    }
    return coded;
}

/* Whether the body is worth its head. A request for values is always coded,
 * because its head carries what the answer may use. */
static bool pays(const ps_message_t *message, const ps_coded_head_t *head,
                 const ps_bytes_t parts[PS_N_PARTS], size_t plain_size)
{
    size_t size = PS_CODED_HEAD;

    if (message->kind == PS_KIND_PULL &&
        (head->values_as != PS_VALUES_RAW || head->pack != PS_PACK_NONE ||
         (head->keys_as == PS_KEYS_DELTA && parts[PS_PART_KEYS].size == 0))) {
        return true;
    }
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        size += parts[i].size;
    }
    return padded(size) < plain_size;
}

static psd_status_t write_parts(ps_coder_t *self, const ps_filter_t *filter,
                                const ps_message_t *message, const ps_slice_t *slice,
                                ps_coded_head_t *head, ps_bytes_t parts[PS_N_PARTS])
{
    psd_status_t rc = PSD_OK;

    if (filter->delta && slice->rows != PS_ROWS_CACHED) {
        rc = write_keys(self, slice, head, &parts[PS_PART_KEYS]);
    }
    if (rc == PSD_OK && filter->values_as != PS_VALUES_RAW &&
        ps_quant_takes(filter->values_as, slice->type)) {
        rc = write_values(self, slice, seed_of(self, message), filter->values_as, head,
                          &parts[PS_PART_VALUES]);
    }
    if (rc == PSD_OK && filter->pack != PS_PACK_NONE) {
        rc = pack_parts(self, filter->pack, head, parts);
    }
    return rc;
}

psd_status_t ps_coder_encode(ps_coder_t *self, const ps_filter_t *filter, ps_message_t *message,
                             const ps_payload_t *payload, ps_payload_t **ret_coded,
                             psd_error_t *err)
{
    ps_bytes_t parts[PS_N_PARTS] = {{NULL, 0}};
    ps_coded_head_t head = {0};
    ps_payload_t *coded = NULL;
    ps_slice_t slice;
    psd_status_t rc = PSD_OK;

    *ret_coded = NULL;
    if (!filter->delta && filter->pack == PS_PACK_NONE && filter->values_as == PS_VALUES_RAW) {
        return PSD_OK;
    }
    ps_message_slice(message, &slice);
    if (payload != NULL) {
        parts[PS_PART_KEYS] = payload->keys;
        parts[PS_PART_INDEX] = payload->index;
    }
    rc = ps_coder_join(payload, &self->whole, &parts[PS_PART_VALUES], err);
    if (rc == PSD_OK) {
        rc = write_parts(self, filter, message, &slice, &head, parts);
    }
    if (rc == PSD_OK && pays(message, &head, parts, ps_payload_size(payload))) {
        coded = put_together(&head, parts);
        rc = coded == NULL ? PSD_NOMEM : PSD_OK;
    }
    ps_coder_tidy(self);
    if (rc != PSD_OK) {
        return psd_error_set(err, rc, "no memory for a filter");
    }
    if (coded != NULL) {
        message->flags |= PS_FLAG_CODED;
        *ret_coded = coded;
    }
    return PSD_OK;
}
