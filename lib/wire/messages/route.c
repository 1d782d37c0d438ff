/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the map as bytes: fixed numbers, then two short texts. */
#include "wire/messages/route.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "wire/messages/utf8.h"

#define ENTRY_SIZE_MIN 26 /* bytes of an entry with both texts empty */
/* A message has the routes of one table. Partitions of a table are bounded far
 * below this; it keeps a frame of tiny entries from asking for gigabytes. */
#define ROUTES_MAX UINT32_C(65536)

static bool append_text(ps_buffer_t *buffer, const char *text)
{
    size_t size = strnlen(text, PS_ENDPOINT_MAX);

    return ps_buffer_u8(buffer, (uint8_t)size) && ps_buffer_append(buffer, text, size);
}

const char *ps_route_any(const ps_route_t *self)
{
    return self->tcp[0] != '\0' ? self->tcp : self->ipc;
}

bool ps_route_encode(const ps_route_t *self, ps_buffer_t *buffer)
{
    size_t size = buffer->size;

    if (ps_buffer_u32(buffer, self->partition) && ps_buffer_u64(buffer, self->epoch) &&
        ps_buffer_u64(buffer, self->incarnation) && ps_buffer_u32(buffer, self->shard) &&
        append_text(buffer, self->tcp) && append_text(buffer, self->ipc)) {
        return true;
    }
    buffer->size = size; /* half an entry is none */
    return false;
}

static psd_status_t read_text(ps_cursor_t *cursor, uint32_t i, const char *field,
                              char ret[PS_ENDPOINT_MAX + 1], psd_error_t *err)
{
    size_t size = ps_cursor_u8(cursor);
    ps_bytes_t text = ps_cursor_take(cursor, size);

    if (cursor->failed) {
        return psd_error_set(err, PSD_PROTO, "routes[%" PRIu32 "].%s is cut off", i, field);
    }
    if (size == 0) {
        ret[0] = '\0';
        return PSD_OK;
    }
    if (memchr(text.data, '\0', size) != NULL) {
        return psd_error_set(err, PSD_PROTO, "routes[%" PRIu32 "].%s holds a 0 byte", i, field);
    }
    if (!ps_utf8_is_text(text.data, size)) {
        return psd_error_set(err, PSD_PROTO, "routes[%" PRIu32 "].%s is not UTF-8", i, field);
    }
    memcpy(ret, text.data, size);
    ret[size] = '\0';
    return PSD_OK;
}

static psd_status_t read_route(ps_cursor_t *cursor, uint32_t i, ps_route_t *ret, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ret->partition = ps_cursor_u32(cursor);
    ret->epoch = ps_cursor_u64(cursor);
    ret->incarnation = ps_cursor_u64(cursor);
    ret->shard = ps_cursor_u32(cursor);
    rc = read_text(cursor, i, "tcp", ret->tcp, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return read_text(cursor, i, "ipc", ret->ipc, err);
}

psd_status_t ps_routes_decode(ps_bytes_t bytes, uint32_t n, ps_route_t **ret_routes,
                              psd_error_t *err)
{
    ps_cursor_t cursor = ps_cursor_over(bytes);
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;

    if (n > ROUTES_MAX) {
        return psd_error_set(err, PSD_PROTO, "n_routes is %" PRIu32 "; allowed: 0..%" PRIu32, n,
                             ROUTES_MAX);
    }
    if (n > bytes.size / ENTRY_SIZE_MIN) {
        return psd_error_set(err, PSD_PROTO,
                             "routes are %zu bytes; %" PRIu32 " need at least %" PRIu32, bytes.size,
                             n, n * ENTRY_SIZE_MIN);
    }
    routes = ps_alloc(n, sizeof *routes);
    if (routes == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %" PRIu32 " routes", n);
    }
    for (uint32_t i = 0; i < n; i++) {
        psd_status_t rc = read_route(&cursor, i, &routes[i], err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (cursor.rest.size > 0) {
        return psd_error_set(err, PSD_PROTO, "routes are %zu bytes; %" PRIu32 " need %zu",
                             bytes.size, n, bytes.size - cursor.rest.size);
    }
    *ret_routes = routes; /* ownership moves to the caller */
    routes = NULL;
    return PSD_OK;
}
