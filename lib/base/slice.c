/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads, which own the bytes of a push or a pull; and the names of types. */
#include "base/slice.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

static void set_up(ps_payload_t *self, ps_bytes_t keys, ps_bytes_t index, ps_bytes_t values)
{
    *self = (ps_payload_t){.keys = keys, .index = index, .span = values};
    if (values.size > 0) {
        self->spans = &self->span;
        self->n_spans = 1;
    }
    atomic_init(&self->n_holders, 1);
}

ps_payload_t *ps_payload_new(ps_bytes_t keys, ps_bytes_t index, ps_bytes_t values, void *owner,
                             void (*release)(void *owner))
{
    ps_payload_t *self = ps_alloc_raw(1, sizeof *self);

    if (self != NULL) {
        set_up(self, keys, index, values);
        self->owner = owner;
        self->release = release;
    }
    return self;
}

ps_payload_t *ps_payload_room(size_t keys_size, size_t index_size, size_t values_size,
                              uint8_t **ret_bytes)
{
    size_t size = sizeof(ps_payload_t);
    ps_payload_t *self = NULL;
    uint8_t *bytes = NULL;

    if (__builtin_add_overflow(size, keys_size, &size) ||
        __builtin_add_overflow(size, index_size, &size) ||
        __builtin_add_overflow(size, values_size, &size)) {
        return NULL;
    }
    self = ps_alloc_raw(size, 1);
    if (self == NULL) {
        return NULL;
    }
    bytes = (uint8_t *)(self + 1);
    set_up(self, (ps_bytes_t){bytes, keys_size}, (ps_bytes_t){bytes + keys_size, index_size},
           (ps_bytes_t){bytes + keys_size + index_size, values_size});
    *ret_bytes = bytes;
    return self;
}

/* Copies part to *at and moves *at past it. */
static void copy_part(uint8_t **at, ps_bytes_t part)
{
    if (part.size > 0) {
        memcpy(*at, part.data, part.size);
        *at += part.size;
    }
}

ps_payload_t *ps_payload_copy(ps_bytes_t keys, ps_bytes_t index, ps_bytes_t values)
{
    uint8_t *at = NULL;
    ps_payload_t *self = ps_payload_room(keys.size, index.size, values.size, &at);

    if (self != NULL) {
        copy_part(&at, keys);
        copy_part(&at, index);
        copy_part(&at, values);
    }
    return self;
}

ps_payload_t *ps_payload_clone(const ps_payload_t *self)
{
    size_t parts = self->keys.size + self->index.size;
    size_t values = ps_payload_size(self) - parts;
    uint8_t *at = NULL;
    ps_payload_t *copy = ps_payload_room(self->keys.size, self->index.size, values, &at);

    if (copy == NULL) {
        return NULL;
    }
    copy_part(&at, self->keys);
    copy_part(&at, self->index);
    for (size_t i = 0; i < self->n_spans; i++) {
        copy_part(&at, self->spans[i]);
    }
    return copy;
}

ps_payload_t *ps_payload_own(ps_payload_t *self)
{
    return self->shared ? ps_payload_clone(self) : ps_payload_keep(self);
}

ps_payload_t *ps_payload_keep(ps_payload_t *self)
{
    unsigned before = atomic_fetch_add_explicit(&self->n_holders, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
    return self;
}

void ps_payload_destroy(ps_payload_t **self_p)
{
    ps_payload_t *self = self_p == NULL ? NULL : *self_p;
    unsigned before = 0;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    before = atomic_fetch_sub_explicit(&self->n_holders, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1) {
        return;
    }
    if (self->release != NULL) {
        self->release(self->owner);
    }
    if (self->spans != &self->span) {
        ps_free(self->spans);
    }
    ps_free(self);
}

size_t ps_payload_size(const ps_payload_t *self)
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

const char *ps_type_name(ps_type_t type)
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

bool ps_type_parse(const char *text, ps_type_t *ret_type)
{
    for (ps_type_t type = PS_TYPE_I32; type <= PS_TYPE_F64; type++) {
        if (strcmp(text, ps_type_name(type)) == 0) {
            *ret_type = type;
            return true;
        }
    }
    return false;
}
