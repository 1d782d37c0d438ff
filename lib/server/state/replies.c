/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of answers. */
#include "server/state/replies.h"

#include "base/alloc.h"

static ps_kept_reply_t *at(const ps_replies_t *self, size_t i)
{
    return &self->ring[(self->first + i) % PS_REPLIES_MAX];
}

static void drop_oldest(ps_replies_t *self)
{
    ps_kept_reply_t *oldest = at(self, 0);

    self->bytes -= oldest->text.size;
    ps_buffer_done(&oldest->text);
    self->first = (self->first + 1) % PS_REPLIES_MAX;
    self->n--;
}

void ps_replies_done(ps_replies_t *self)
{
    while (self->n > 0) {
        drop_oldest(self);
    }
    ps_free(self->ring);
    *self = (ps_replies_t){0};
}

void ps_replies_keep(ps_replies_t *self, uint64_t session, uint64_t id, ps_bytes_t text)
{
    ps_kept_reply_t reply = {.session = session, .id = id};

    if (self->ring == NULL) {
        self->ring = ps_alloc(PS_REPLIES_MAX, sizeof *self->ring);
    }
    if (self->ring == NULL || text.size > PS_REPLIES_BYTES_MAX ||
        !ps_buffer_append(&reply.text, text.data, text.size)) {
        return;
    }
    while (self->n == PS_REPLIES_MAX || self->bytes + text.size > PS_REPLIES_BYTES_MAX) {
        drop_oldest(self);
    }
    *at(self, self->n++) = reply;
    self->bytes += text.size;
}

bool ps_replies_find(const ps_replies_t *self, uint64_t session, uint64_t id, ps_bytes_t *ret_text)
{
    for (size_t i = self->n; i > 0; i--) {
        const ps_kept_reply_t *reply = at(self, i - 1);

        if (reply->session == session && reply->id == id) {
            *ret_text = (ps_bytes_t){.data = reply->text.data, .size = reply->text.size};
            return true;
        }
    }
    return false;
}
