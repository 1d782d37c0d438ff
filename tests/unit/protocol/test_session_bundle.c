/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/session.h: bundles of a relay. */
#include "session_fixture.h"

static uint64_t bundle_of(fixture_t *f, uint32_t partition, size_t size)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(size);
    const ps_op_start_t wanted = {
        .kind = PS_KIND_BUNDLE,
        .table = 1,
        .partition = partition,
        .worker = {.job = 3, .worker = 2, .member = 1, .joins = 4, .clock = 8},
        .payload = payload,
        .timeout_ms = 250,
        .plan = 6,
        .n_from = 2,
        .n_spans = 1};

    return start(f, &wanted);
}

static const ps_msg_bundle_t *bundle_sent(const fixture_t *f)
{
    cr_assert_gt(f->outbox.n_effects, 0);
    cr_assert_eq(f->outbox.effects[f->outbox.n_effects - 1].message.kind, PS_KIND_BUNDLE);
    return &f->outbox.effects[f->outbox.n_effects - 1].message.bundle;
}

Test(session_bundle, it_goes_to_the_partition_s_place_as_it_was_given)
{
    FIXTURE(f);
    const ps_msg_bundle_t *sent = NULL;

    get_ready(f);
    cr_assert_eq(bundle_of(f, 0, 40), 2);
    sent = bundle_sent(f);
    cr_assert_eq(sent->request, 2);
    cr_assert_eq(sent->table, 1);
    cr_assert_eq(sent->partition, 0);
    cr_assert_eq(sent->epoch, EPOCH);
    cr_assert_eq(sent->job, 3);
    cr_assert_eq(sent->worker, 2);
    cr_assert_eq(sent->member, 1);
    cr_assert_eq(sent->joins, 4);
    cr_assert_eq(sent->clock, 8);
    cr_assert_eq(sent->plan, 6);
    cr_assert_eq(sent->timeout_ms, 250);
    cr_assert_eq(sent->n_from, 2);
    cr_assert_eq(sent->n_spans, 1);
    cr_assert_eq(ps_payload_size(f->outbox.effects[0].payload), 40);
    EXPECT(f, "0 < BUNDLE\n");
    cr_assert_eq(ps_session_pending(f->session, false), 0, "no push of this client");
    cr_assert_eq(ps_session_pending(f->session, true), 1);
    ack(f, 0, 2, 0, 0);
    EXPECT(f, "end 2 ACK\n");
}

Test(session_bundle, it_takes_no_seq)
{
    FIXTURE(f);

    get_ready(f);
    (void)bundle_of(f, 0, 40);
    (void)push(f, 0);
    EXPECT(f, "0 < BUNDLE\n"
              "0 < PUSH 3 p0 seq 2 e5\n");
}

Test(session_bundle, what_splits_it_ends_it)
{
    FIXTURE(f);

    get_ready(f);
    (void)bundle_of(f, 0, 40);
    ps_outbox_clear(&f->outbox);
    refused(f, 0, 2, 0, PSD_SPLIT, 1);
    EXPECT(f, "end 2 SPLIT: because\n");
}

/* Its bytes may be many, and origins do not rely on them. */
Test(session_bundle, silence_asks_for_a_sign_of_life_and_sends_nothing_again)
{
    FIXTURE(f);

    get_ready(f);
    (void)bundle_of(f, 0, 40);
    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < HELLO\n");
    welcome(f, 0);
    tick_at(f, f->now_ms + 2 * RESEND_MS);
    EXPECT(f, "0 < HELLO\n");
    ps_session_relinked(f->session, f->now_ms, 0, &f->outbox);
    EXPECT(f, "0 < HELLO\n");
    welcome(f, 0);
    EXPECT(f, "0 < BUNDLE\n");
}

Test(session_bundle, one_that_is_cancelled_is_forgotten)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)bundle_of(f, 0, 40);
    ps_outbox_clear(&f->outbox);
    ps_session_cancel(f->session, 3);
    ps_session_cancel(f->session, 3);
    ps_session_cancel(f->session, 99);
    ps_session_cancel(f->session, 2); /* a push */
    cr_assert_eq(ps_session_pending(f->session, true), 1);
    ack(f, 0, 3, 0, 0);
    EXPECT(f, "");
    ack(f, 0, 2, 0, 2);
    EXPECT(f, "end 2 ACK\n");
}

/* The new primary may not know that its origins were forgotten. */
Test(session_bundle, one_of_an_older_epoch_is_split)
{
    FIXTURE(f);
    ps_route_t routes[N_PARTITIONS];

    get_ready(f);
    (void)bundle_of(f, 0, 40);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    fill_routes(routes, EPOCH);
    routes[0].shard = 4;
    routes[0].epoch = EPOCH + 1;
    cr_assert_eq(ps_session_routes(f->session, 1, routes, N_PARTITIONS, NULL), PSD_OK);
    tick_at(f, f->now_ms);
    EXPECT(f, "open 1\n1 < HELLO\n");
    welcome(f, 1);
    EXPECT(f, "end 2 SPLIT: the partition has a new epoch\n"
              "1 < PUSH 3 p0 seq 2 e6\n");
}

Test(session_bundle, a_shard_says_whether_it_takes_the_largest)
{
    static const struct {
        uint32_t chunk_bytes;
        uint32_t filters;
        uint32_t bundle_bytes;
    } ROWS[] = {{64, 0, 64},
                {64, PS_SPEAKS_BUNDLES, PS_BUNDLE_BYTES},
                {64, PS_SPEAKS_TIMES, 64},
                {PS_BUNDLE_BYTES - 1, 0, PS_BUNDLE_BYTES - 1},
                {2 * PS_BUNDLE_BYTES, 0, PS_BUNDLE_BYTES}};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        FIXTURE(f);
        ps_message_t message = a_welcome(0);

        (void)push(f, 0);
        cr_expect_eq(ps_session_bundle_bytes(f->session, 0), 0, "nobody has said so");
        message.welcome.chunk_bytes = ROWS[i].chunk_bytes;
        message.welcome.filters = ROWS[i].filters;
        receive(f, 0, &message, NULL);
        cr_expect_eq(ps_session_bundle_bytes(f->session, 0), ROWS[i].bundle_bytes, "row %zu", i);
    }
}

/* The welcome takes pieces of 64 bytes. */
Test(session_bundle, one_that_the_shard_may_not_take_is_not_sent)
{
    FIXTURE(f);

    get_ready(f);
    (void)bundle_of(f, 0, 65);
    EXPECT(f, "end 2 LIMIT: a bundle of more bytes than the shard takes\n");
    cr_assert_eq(ps_session_pending(f->session, true), 0);
    (void)bundle_of(f, 0, 64);
    EXPECT(f, "0 < BUNDLE\n");
    (void)push(f, 0);
    EXPECT(f, "0 < PUSH 4 p0 seq 2 e5\n");
}

/* The welcome grants 100 bytes. */
Test(session_bundle, its_credits_are_given_back)
{
    FIXTURE(f);

    get_ready(f);
    (void)bundle_of(f, 0, 60);
    (void)bundle_of(f, 1, 60);
    EXPECT(f, "0 < BUNDLE\n");
    ps_session_cancel(f->session, 2);
    tick_at(f, f->now_ms + 1);
    EXPECT(f, "0 < BUNDLE\n");
}
