/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "protocol/partition/peer.h"
#include "support/fail_alloc.h"

static const ps_id_t one = {.bytes = {1}};
static const ps_id_t two = {.bytes = {2}};

static psd_status_t hello_by(ps_peers_t *peers, ps_way_t way, uint64_t conn, uint64_t session,
                             const ps_id_t *client)
{
    return ps_peers_hello(
        peers, &(ps_peer_hello_t){.conn = conn, .session = session, .client = *client, .way = way},
        1, 4, NULL);
}

static psd_status_t hello(ps_peers_t *peers, uint64_t conn, uint64_t session, const ps_id_t *client,
                          uint64_t now_ms, uint32_t max, psd_error_t *err)
{
    return ps_peers_hello(peers,
                          &(ps_peer_hello_t){.conn = conn, .session = session, .client = *client},
                          now_ms, max, err);
}

Test(peer, is_found_by_connection_and_by_session)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};

    cr_assert_eq(hello(&peers, 5, 9, &one, 1, 4, NULL), PSD_OK);
    cr_expect_not_null(ps_peers_at(&peers, 5));
    cr_expect_eq(ps_peers_at(&peers, 5), ps_peers_of(&peers, 9));
    cr_expect_null(ps_peers_at(&peers, 6));
}

Test(peer, answers_go_to_the_newest_connection)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};

    cr_assert_eq(hello(&peers, 5, 9, &one, 1, 4, NULL), PSD_OK);
    cr_assert_eq(hello(&peers, 6, 9, &one, 2, 4, NULL), PSD_OK);
    cr_expect_null(ps_peers_at(&peers, 5));
    cr_expect_eq(ps_peers_of(&peers, 9)->conns[PS_WAY_FIRST], 6);
}

Test(peer, a_session_of_another_client_is_denied)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(hello(&peers, 5, 9, &one, 1, 4, NULL), PSD_OK);
    cr_expect_eq(hello(&peers, 6, 9, &two, 1, 4, err), PSD_DENIED);
    cr_expect_str_eq(psd_error_text(err), "session 9 belongs to another client");
}

Test(peer, the_one_idle_longest_makes_room)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};

    cr_assert_eq(hello(&peers, 1, 1, &one, 10, 2, NULL), PSD_OK);
    cr_assert_eq(hello(&peers, 2, 2, &two, 20, 2, NULL), PSD_OK);
    ps_peers_of(&peers, 1)->used_ms = 30;
    cr_assert_eq(hello(&peers, 3, 3, &two, 40, 2, NULL), PSD_OK);
    cr_expect_not_null(ps_peers_of(&peers, 1));
    cr_expect_null(ps_peers_of(&peers, 2));
}

Test(peer, one_with_held_requests_stays)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(hello(&peers, 1, 1, &one, 10, 1, NULL), PSD_OK);
    ps_peers_of(&peers, 1)->n_held = 1;
    cr_expect_eq(hello(&peers, 2, 2, &two, 20, 1, err), PSD_LIMIT);
    cr_expect_str_eq(psd_error_text(err), "1 clients are connected, no more are allowed");
    ps_peers_gone(&peers, 1);
    cr_expect_not_null(ps_peers_of(&peers, 1));
    cr_expect_eq(ps_peers_of(&peers, 1)->conns[PS_WAY_FIRST], PS_PEER_NO_CONN);
}

Test(peer, large_bodies_have_a_connection_of_their_own)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};
    const ps_peer_t *peer = NULL;

    cr_assert_eq(hello_by(&peers, PS_WAY_FIRST, 5, 9, &one), PSD_OK);
    peer = ps_peers_of(&peers, 9);
    cr_expect_eq(ps_peer_conn(peer, PS_WAY_BULK), 5, "until there is one");
    cr_assert_eq(hello_by(&peers, PS_WAY_BULK, 6, 9, &one), PSD_OK);
    cr_expect_eq(ps_peers_at(&peers, 5), peer);
    cr_expect_eq(ps_peers_at(&peers, 6), peer);
    cr_expect_eq(ps_peer_conn(peer, PS_WAY_FIRST), 5);
    cr_expect_eq(ps_peer_conn(peer, PS_WAY_BULK), 6);
    cr_assert_eq(hello_by(&peers, PS_WAY_BULK, 7, 9, &one), PSD_OK);
    cr_expect_null(ps_peers_at(&peers, 6));
    cr_expect_eq(ps_peer_conn(peer, PS_WAY_BULK), 7);
}

Test(peer, one_connection_stands_in_for_the_other)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};

    cr_assert_eq(hello_by(&peers, PS_WAY_BULK, 6, 9, &one), PSD_OK);
    cr_expect_eq(ps_peer_conn(ps_peers_of(&peers, 9), PS_WAY_FIRST), 6);
    cr_assert_eq(hello_by(&peers, PS_WAY_FIRST, 5, 9, &one), PSD_OK);
    ps_peers_gone(&peers, 6);
    cr_assert_not_null(ps_peers_of(&peers, 9));
    cr_expect_eq(ps_peer_conn(ps_peers_of(&peers, 9), PS_WAY_BULK), 5);
    ps_peers_gone(&peers, 5);
    cr_expect_null(ps_peers_of(&peers, 9));
}

Test(peer, a_connection_that_changes_its_way_or_client_is_found_once)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};

    cr_assert_eq(hello_by(&peers, PS_WAY_FIRST, 5, 9, &one), PSD_OK);
    cr_assert_eq(hello_by(&peers, PS_WAY_BULK, 5, 9, &one), PSD_OK);
    cr_expect_eq(ps_peers_of(&peers, 9)->conns[PS_WAY_FIRST], PS_PEER_NO_CONN);
    cr_expect_eq(ps_peers_of(&peers, 9)->conns[PS_WAY_BULK], 5);
    cr_assert_eq(hello_by(&peers, PS_WAY_FIRST, 5, 8, &two), PSD_OK);
    cr_expect_eq(ps_peers_at(&peers, 5), ps_peers_of(&peers, 8));
    cr_expect_eq(ps_peer_conn(ps_peers_of(&peers, 9), PS_WAY_BULK), PS_PEER_NO_CONN);
}

static psd_status_t hello_twice(void *fixture)
{
    PSD_AUTO(ps_peers_done) ps_peers_t peers = {0};
    psd_status_t rc = hello(&peers, 1, 1, &one, 1, 4, NULL);

    (void)fixture;
    return rc != PSD_OK ? rc : hello(&peers, 2, 2, &two, 1, 4, NULL);
}

Test(peer, survives_every_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(hello_twice, NULL));
}
