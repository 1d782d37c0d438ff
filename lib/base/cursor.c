/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that cannot leave their bytes, and the matching appends. */
#include "base/cursor.h"

#define CURSOR_READ(name, type)                              \
    type ps_cursor_##name(ps_cursor_t *self)                 \
    {                                                        \
        type value = 0;                                      \
        ps_cursor_copy(self, &value, sizeof value);          \
        return value;                                        \
    }                                                        \
    bool ps_buffer_##name(ps_buffer_t *self, type value)     \
    {                                                        \
        return ps_buffer_append(self, &value, sizeof value); \
    }

ps_cursor_t ps_cursor_over(ps_bytes_t bytes)
{
    return (ps_cursor_t){.rest = bytes};
}

ps_bytes_t ps_cursor_take(ps_cursor_t *self, size_t size)
{
    ps_bytes_t taken = {.data = self->rest.data, .size = size};

    if (self->failed || size > self->rest.size) {
        self->failed = true;
        return (ps_bytes_t){0};
    }
    if (size > 0) { /* data may be NULL: adding to it is undefined */
        self->rest.data += size;
        self->rest.size -= size;
    }
    return taken;
}

void ps_cursor_copy(ps_cursor_t *self, void *ret, size_t size)
{
    ps_bytes_t taken = ps_cursor_take(self, size);

    if (taken.size > 0) {
        memcpy(ret, taken.data, taken.size);
    } else if (size > 0) {
        memset(ret, 0, size);
    }
}

bool ps_cursor_is_done(const ps_cursor_t *self)
{
    return !self->failed && self->rest.size == 0;
}

PS_CURSOR_TYPES(CURSOR_READ)
