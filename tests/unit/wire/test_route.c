/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/route.h: lines of the map. */
#include "wire/messages/route.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static const ps_route_t ROUTES[] = {
    {.partition = 0x01020304,
     .shard = 3,
     .epoch = 4,
     .incarnation = UINT64_C(0x8000000000000005),
     .tcp = "tcp://h:1",
     .ipc = ""},
    {.partition = 7, .tcp = "", .ipc = "ipc://\xC3\xBC"},
};

static bool encode_both(ps_buffer_t *buffer)
{
    return ps_route_encode(&ROUTES[0], buffer) && ps_route_encode(&ROUTES[1], buffer);
}

static ps_bytes_t bytes_of(const ps_buffer_t *buffer, size_t size)
{
    return (ps_bytes_t){buffer->data, size};
}

static void assert_refused(ps_bytes_t bytes, uint32_t n, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_free_at) uint8_t *exact = ps_alloc_raw(bytes.size, 1);
    ps_route_t *routes = NULL;

    if (bytes.size > 0) {
        memcpy(exact, bytes.data, bytes.size);
    }
    bytes.data = exact;
    cr_assert_eq(ps_routes_decode(bytes, n, &routes, err), PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert_null(routes);
}

Test(route, entry_is_numbers_and_two_short_texts)
{
    static const uint8_t wanted[] = {4, 3,   2,   1,   4,   0,   0,   0,    0,   0,   0, 0,
                                     5, 0,   0,   0,   0,   0,   0,   0x80, 3,   0,   0, 0,
                                     9, 't', 'c', 'p', ':', '/', '/', 'h',  ':', '1', 0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(ps_route_encode(&ROUTES[0], &buffer));
    cr_assert_eq(buffer.size, sizeof wanted);
    cr_assert_arr_eq(buffer.data, wanted, sizeof wanted);
}

Test(route, routes_come_back)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;

    cr_assert(encode_both(&buffer));
    cr_assert_eq(ps_routes_decode(bytes_of(&buffer, buffer.size), 2, &routes, NULL), PSD_OK);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(routes[i].partition, ROUTES[i].partition);
        cr_assert_eq(routes[i].shard, ROUTES[i].shard);
        cr_assert_eq(routes[i].epoch, ROUTES[i].epoch);
        cr_assert_eq(routes[i].incarnation, ROUTES[i].incarnation);
        cr_assert_str_eq(routes[i].tcp, ROUTES[i].tcp);
        cr_assert_str_eq(routes[i].ipc, ROUTES[i].ipc);
    }
}

Test(route, endpoint_may_be_as_long_as_its_length_can_say)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    ps_route_t route = {.partition = 1};

    memset(route.tcp, 't', PS_ENDPOINT_MAX);
    memset(route.ipc, 'i', PS_ENDPOINT_MAX);
    cr_assert(ps_route_encode(&route, &buffer));
    cr_assert_eq(buffer.size, 26 + 2 * PS_ENDPOINT_MAX);
    cr_assert_eq(ps_routes_decode(bytes_of(&buffer, buffer.size), 1, &routes, NULL), PSD_OK);
    cr_assert_str_eq(routes[0].tcp, route.tcp);
    cr_assert_str_eq(routes[0].ipc, route.ipc);
}

Test(route, no_routes_are_an_array_too)
{
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;

    cr_assert_eq(ps_routes_decode((ps_bytes_t){0}, 0, &routes, NULL), PSD_OK);
    cr_assert_not_null(routes);
}

Test(route, number_is_bounded_by_the_bytes)
{
    static const uint8_t bytes[51] = {0};

    assert_refused((ps_bytes_t){bytes, 51}, 2, "routes are 51 bytes; 2 need at least 52");
    assert_refused((ps_bytes_t){bytes, 51}, 1, "routes are 51 bytes; 1 need 26");
    assert_refused((ps_bytes_t){bytes, 1}, 0, "routes are 1 bytes; 0 need 0");
    assert_refused((ps_bytes_t){bytes, 51}, UINT32_MAX,
                   "n_routes is 4294967295; allowed: 0..65536");
}

Test(route, texts_are_checked)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(encode_both(&buffer));
    assert_refused(bytes_of(&buffer, buffer.size - 1), 2, "routes[1].ipc is cut off");
    buffer.data[24] = 200;
    assert_refused(bytes_of(&buffer, buffer.size), 2, "routes[0].tcp is cut off");
    buffer.data[24] = 9;
    buffer.data[25] = '\0';
    assert_refused(bytes_of(&buffer, buffer.size), 2, "routes[0].tcp holds a 0 byte");
    buffer.data[25] = 't';
    buffer.data[buffer.size - 1] = 'x';
    assert_refused(bytes_of(&buffer, buffer.size), 2, "routes[1].ipc is not UTF-8");
}

Test(route, every_cut_is_refused)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};

    cr_assert(encode_both(&buffer));
    for (size_t size = 0; size < buffer.size; size++) {
        PSD_AUTO(ps_free_at) uint8_t *exact = ps_alloc_raw(size, 1);
        ps_route_t *routes = NULL;

        memcpy(exact, buffer.data, size);
        cr_assert_eq(ps_routes_decode((ps_bytes_t){exact, size}, 2, &routes, NULL), PSD_PROTO);
    }
}

static psd_status_t encode_and_decode(void *fixture)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    PSD_AUTO(ps_free_at) ps_route_t *routes = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = NULL;
    psd_status_t rc = PSD_OK;

    (void)fixture;
    for (size_t i = 0; i < 2; i++) {
        size_t size = buffer.size;

        if (!ps_route_encode(&ROUTES[i], &buffer)) {
            cr_assert_eq(buffer.size, size, "half an entry is none");
            return PSD_NOMEM;
        }
    }
    rc = ps_routes_decode(bytes_of(&buffer, buffer.size), 2, &routes, err);
    cr_assert((rc == PSD_OK) == (routes != NULL));
    return rc;
}

Test(route, no_memory_changes_nothing)
{
    cr_assert_null(fail_alloc_sweep(encode_and_decode, NULL));
}
