/* SPDX-License-Identifier: Apache-2.0 */
/* Few links, searched linearly; many accepted connections, in a map. */
#include "protocol/replica/shard_links.h"

#include "base/alloc.h"

#define PAUSE_MIN_MS 20
#define PAUSE_MAX_MS 1000

void ps_shard_links_done(ps_shard_links_t *self)
{
    size_t at = 0;
    uint64_t conn = 0;
    void *name = NULL;

    while (ps_map_next(&self->in, &at, &conn, &name)) {
        ps_free(name);
    }
    ps_map_done(&self->in);
    ps_free(self->out);
    *self = (ps_shard_links_t){0};
}

ps_shard_link_t *ps_shard_links_find(const ps_shard_links_t *self, ps_shard_name_t name)
{
    for (size_t i = 0; i < self->n_out; i++) {
        const ps_copy_t *to = &self->out[i].to;

        if (to->incarnation == name.incarnation && to->shard == name.shard) {
            return &self->out[i];
        }
    }
    return NULL;
}

ps_shard_link_t *ps_shard_links_of_conn(const ps_shard_links_t *self, uint64_t conn)
{
    for (size_t i = 0; i < self->n_out && conn >= PS_LINK_CONN; i++) {
        if (self->out[i].conn == conn) {
            return &self->out[i];
        }
    }
    return NULL;
}

ps_shard_link_t *ps_shard_links_to(ps_shard_links_t *self, const ps_copy_t *to)
{
    ps_shard_link_t *link =
        ps_shard_links_find(self, (ps_shard_name_t){to->incarnation, to->shard});

    if (link != NULL) {
        return link;
    }
    if (!ps_grow(&self->out, &self->capacity, self->n_out + 1, sizeof *self->out)) {
        return NULL;
    }
    link = &self->out[self->n_out++];
    *link = (ps_shard_link_t){.to = *to};
    return link;
}

void ps_shard_links_remove(ps_shard_links_t *self, size_t at)
{
    self->out[at] = self->out[--self->n_out];
}

uint64_t ps_shard_links_new_conn(ps_shard_links_t *self)
{
    return PS_LINK_CONN + self->n_opened++;
}

/* The connection by which that shard spoke before; false: none. */
static bool find_from(const ps_shard_links_t *self, ps_shard_name_t from, uint64_t *ret_conn)
{
    size_t at = 0;
    void *name = NULL;

    while (ps_map_next(&self->in, &at, ret_conn, &name)) {
        if (ps_shard_name_equal(*(const ps_shard_name_t *)name, from)) {
            return true;
        }
    }
    return false;
}

psd_status_t ps_shard_links_accept(ps_shard_links_t *self, uint64_t conn, ps_shard_name_t from,
                                   psd_error_t *err)
{
    ps_shard_name_t *name = ps_map_get(&self->in, conn);
    uint64_t old = 0;

    if (name != NULL) {
        *name = from;
        return PSD_OK;
    }
    while (find_from(self, from, &old)) {
        ps_free(ps_map_remove(&self->in, old));
    }
    if (self->in.count >= PS_LINKS_IN_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%d shards send records here, no more are allowed",
                             PS_LINKS_IN_MAX);
    }
    name = ps_alloc(1, sizeof *name);
    if (name == NULL || !ps_map_put(&self->in, conn, name)) {
        ps_free(name);
        return psd_error_set(err, PSD_NOMEM, "no memory for a shard");
    }
    *name = from;
    return PSD_OK;
}

const ps_shard_name_t *ps_shard_links_from(const ps_shard_links_t *self, uint64_t conn)
{
    return self->in.count == 0 ? NULL : ps_map_get(&self->in, conn);
}

void ps_shard_links_gone(ps_shard_links_t *self, uint64_t conn, uint64_t now_ms)
{
    ps_shard_link_t *link = ps_shard_links_of_conn(self, conn);

    if (link != NULL) {
        link->pause_ms = link->welcome         ? 0
                         : link->pause_ms == 0 ? PAUSE_MIN_MS
                                               : 2 * link->pause_ms;
        if (link->pause_ms > PAUSE_MAX_MS) {
            link->pause_ms = PAUSE_MAX_MS;
        }
        link->open_ms = now_ms + link->pause_ms;
        link->conn = 0;
        link->welcome = false;
        link->say_ms = 0;
    } else if (self->in.count > 0) {
        ps_free(ps_map_remove(&self->in, conn));
    }
}
