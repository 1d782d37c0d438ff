/* SPDX-License-Identifier: Apache-2.0 */
/* Routes from random bytes; the first byte says how many. What is accepted has
 * to encode to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "wire/messages/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void check_same(ps_bytes_t bytes, const ps_route_t *routes, uint32_t n)
{
    ps_buffer_t buffer = {0};

    for (uint32_t i = 0; i < n; i++) {
        check(ps_route_encode(&routes[i], &buffer));
    }
    check(buffer.size == bytes.size);
    check(bytes.size == 0 || memcmp(buffer.data, bytes.data, bytes.size) == 0);
    ps_buffer_done(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, size});
    uint32_t n = ps_cursor_u8(&cursor);
    psd_error_t *err = psd_error_new();
    ps_route_t *routes = NULL;
    psd_status_t rc = ps_routes_decode(cursor.rest, n, &routes, err);

    if (rc == PSD_OK) {
        check_same(cursor.rest, routes, n);
    } else {
        check(rc == PSD_PROTO && routes == NULL);
        check(psd_error_text(err)[0] != '\0');
    }
    ps_free(routes);
    psd_error_destroy(&err);
    return 0;
}
