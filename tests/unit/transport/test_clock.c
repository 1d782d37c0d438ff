/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/sockets/routing_id.h"
#include "transport/sockets/socket.h"

Test(clock, does_not_go_back)
{
    uint64_t last = ps_now_ms();

    cr_assert_gt(last, 0);
    for (int i = 0; i < 1000; i++) {
        uint64_t now = ps_now_ms();

        cr_assert_geq(now, last);
        last = now;
    }
}

Test(random, fills_all_bytes)
{
    uint8_t a[64] = {0};
    uint8_t b[64] = {0};

    cr_assert_eq(ps_random(a, sizeof a, NULL), PSD_OK);
    cr_assert_eq(ps_random(b, sizeof b, NULL), PSD_OK);
    cr_assert_neq(memcmp(a, b, sizeof a), 0);
    cr_assert_eq(ps_random(a, 0, NULL), PSD_OK);
}

Test(routing_id, names_connections_from_one)
{
    const uint64_t conns[] = {1, 2, 0x12345678, UINT64_C(1) << 32};
    uint8_t id[PS_ROUTING_ID_SIZE];
    uint64_t conn = 0;

    for (size_t i = 0; i < sizeof conns / sizeof *conns; i++) {
        ps_routing_id_of(conns[i], id);
        cr_assert(ps_routing_id_conn((ps_bytes_t){id, sizeof id}, &conn));
        cr_assert_eq(conn, conns[i]);
    }
}

Test(routing_id, of_another_form_was_chosen_by_the_peer)
{
    const uint8_t id[] = {1, 0, 0, 0, 1, 0};
    uint64_t conn = 7;

    cr_assert_not(ps_routing_id_conn((ps_bytes_t){id, 5}, &conn));
    cr_assert_not(ps_routing_id_conn((ps_bytes_t){id + 1, 4}, &conn));
    cr_assert_not(ps_routing_id_conn((ps_bytes_t){NULL, 0}, &conn));
    cr_assert_eq(conn, 7);
}
