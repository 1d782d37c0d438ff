/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/shard/shard.h: sessions that end, and those that give way to others. */
#include "shard_bench.h"

static bench_t bench;

static void open_it(void)
{
    cr_assert_eq(open_bench(&bench), PSD_OK);
}

static void close_it(void)
{
    close_bench(&bench);
}

TestSuite(shard_bye, .init = open_it, .fini = close_it);

static psd_status_t bye(bench_t *self)
{
    ps_message_t message = {.kind = PS_KIND_BYE, .bye = {.session = SESSION}};

    return say(self, &message, NULL);
}

/* A push came twice where the session's window was taken for a new one. */
Test(shard_bye, nothing_of_a_session_that_said_bye_is_taken)
{
    ps_msg_hello_t other = good_hello;

    cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
    cr_assert_eq(bye(&bench), PSD_OK);
    cr_assert_eq(bye(&bench), PSD_OK, "it may come twice");
    cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_SESSION, "say HELLO first");
    cr_expect_eq(said(&bench)->refused.request, 1, "which one is known");
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    cr_expect_eq(said(&bench)->refused.status, PSD_CLOSED);
    other.session = SESSION + 1;
    cr_assert_eq(hello(&bench, &other), PSD_OK);
    cr_expect_eq(pull(&bench, 0), 1);
}

/* They had taken the windows of clients that were there. */
Test(shard_bye, clients_that_said_bye_take_no_windows)
{
    ps_msg_hello_t guest = good_hello;

    cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
    for (uint64_t session = 20; session < 40; session++) {
        bench.now_ms++;
        guest.session = session;
        cr_assert_eq(hello(&bench, &guest), PSD_OK);
        cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
        cr_assert_eq(bye(&bench), PSD_OK);
    }
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    cr_assert_eq(push(&bench, 2, 0, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(pull(&bench, 0), 22);
}

/* Windows are bounded: the client idle longest is forgotten, and told so. */
Test(shard_bye, forgets_the_client_that_was_idle_longest)
{
    ps_msg_hello_t other = good_hello;

    cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
    for (uint64_t session = 6; session <= 7; session++) {
        bench.now_ms++;
        other.session = session;
        cr_assert_eq(hello(&bench, &other), PSD_OK);
        cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
        cr_assert_eq(said(&bench)->kind, PS_KIND_ACK);
    }
    cr_assert_eq(hello(&bench, &good_hello), PSD_OK);
    cr_assert_eq(push(&bench, 2, 0, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_CLOSED, "this client's session was evicted here");
}
