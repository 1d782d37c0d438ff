/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sockets/socket_parts.h"

#include "base/alloc.h"

#define STALE_MS (2 * PS_PATIENCE_BODIES_MS) /* without a piece */

psd_status_t ps_socket_keep_endpoint(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    char *copy = ps_strdup(endpoint);

    if (copy == NULL ||
        !ps_grow(&self->endpoints, &self->capacity, self->n_endpoints + 1, sizeof copy)) {
        ps_free(copy);
        return psd_error_set(err, PSD_NOMEM, "no memory for an endpoint");
    }
    self->endpoints[self->n_endpoints++] = copy;
    return PSD_OK;
}

ps_unfinished_t *ps_unfinished_of(ps_socket_t *self, uint64_t conn)
{
    ps_unfinished_t *unfinished = ps_map_get(&self->unfinished, conn);

    if (unfinished == NULL) {
        unfinished = ps_alloc(1, sizeof *unfinished);
        if (unfinished == NULL || !ps_map_put(&self->unfinished, conn, unfinished)) {
            ps_free(unfinished);
            return NULL;
        }
    }
    return unfinished;
}

void ps_unfinished_forget(ps_socket_t *self, uint64_t conn)
{
    ps_unfinished_t *unfinished = ps_map_remove(&self->unfinished, conn);

    if (unfinished != NULL) {
        self->unfinished_bytes -= unfinished->assembly.bytes;
        ps_assembly_done(&unfinished->assembly);
        ps_free(unfinished);
    }
}

bool ps_unfinished_next_stale(const ps_socket_t *self, uint64_t now_ms, uint64_t *ret_conn)
{
    size_t at = 0;
    void *value = NULL;

    while (ps_map_next(&self->unfinished, &at, ret_conn, &value)) {
        const ps_unfinished_t *unfinished = value;

        if (now_ms >= unfinished->last_ms + STALE_MS) {
            return true;
        }
    }
    return false;
}

void ps_unfinished_done(ps_socket_t *self)
{
    size_t at = 0;
    uint64_t conn = 0;
    void *value = NULL;

    while (ps_map_next(&self->unfinished, &at, &conn, &value)) {
        ps_unfinished_t *unfinished = value;

        ps_assembly_done(&unfinished->assembly);
        ps_free(unfinished);
    }
    ps_map_done(&self->unfinished);
}
