/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads: who owns the bytes of a push or a pull; and the types' names. */
#include "base/slice.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

ps_payload_t *
ps_payload_new(ps_bytes_t keys,
               ps_bytes_t index,
               ps_bytes_t values,
               void *owner,
               void (*release)(void *owner))
{
    ps_payload_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    self->keys = keys;
    self->index = index;
    if (values.size > 0) {
        self->spans = ps_alloc(1, sizeof *self->spans);
        if (self->spans == NULL) {
            ps_free(self);
            return NULL;
        }
        self->spans[0] = values;
        self->n_spans = 1;
    }
    self->owner = owner;
    self->release = release;
    atomic_init(&self->n_holders, 1);
    return self;
}

/* Copies part to *at and moves *at behind it. */
static ps_bytes_t
copy_part(uint8_t **at, ps_bytes_t part)
{
    ps_bytes_t copy = {.data = *at, .size = part.size};

    if (part.size > 0) {
        memcpy(*at, part.data, part.size);
        *at += part.size;
    }
    return copy;
}

ps_payload_t *
ps_payload_copy(ps_bytes_t keys, ps_bytes_t index, ps_bytes_t values)
{
    ps_payload_t *self = NULL;
    size_t size = 0;
    uint8_t *block = NULL;
    uint8_t *at = NULL;

    if (__builtin_add_overflow(keys.size, index.size, &size) ||
        __builtin_add_overflow(size, values.size, &size)) {
        return NULL;
    }
    block = ps_alloc_raw(size, 1);
    if (block == NULL) {
        return NULL;
    }
    at = block;
    keys = copy_part(&at, keys);
    index = copy_part(&at, index);
    values = copy_part(&at, values);
    self = ps_payload_new(keys, index, values, block, ps_free);
    if (self == NULL) {
        ps_free(block);
    }
    return self;
}

ps_payload_t *
ps_payload_keep(ps_payload_t *self)
{
    unsigned before =
        atomic_fetch_add_explicit(&self->n_holders, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
    return self;
}

void
ps_payload_destroy(ps_payload_t **self_p)
{
    ps_payload_t *self = self_p == NULL ? NULL : *self_p;
    unsigned before = 0;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    before =
        atomic_fetch_sub_explicit(&self->n_holders, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1) {
        return;
    }
    if (self->release != NULL) {
        self->release(self->owner);
    }
    ps_free(self->spans);
    ps_free(self);
}

size_t
ps_payload_size(const ps_payload_t *self)
{
    size_t size = 0;

    if (self == NULL) {
        return 0;
    }
    size = self->keys.size + self->index.size;
    for (size_t i = 0; i < self->n_spans; i++) {
        size += self->spans[i].size;
    }
    return size;
}

const char *
ps_type_name(ps_type_t type)
{
    switch (type) {
    case PS_TYPE_I32:
        return "i32";
    case PS_TYPE_I64:
        return "i64";
    case PS_TYPE_F32:
        return "f32";
    case PS_TYPE_F64:
        return "f64";
    default:
        return "?";
    }
}

bool
ps_type_parse(const char *text, ps_type_t *ret_type)
{
    for (ps_type_t type = PS_TYPE_I32; type <= PS_TYPE_F64; type++) {
        if (strcmp(text, ps_type_name(type)) == 0) {
            *ret_type = type;
            return true;
        }
    }
    return false;
}
