/* SPDX-License-Identifier: Apache-2.0 */
/* A relay's lots and news as messages, and back. */
#include "protocol/relay/relay_message.h"

#include "model/combine/combine_check.h"
#include "protocol/relay/relay_verify.h"
#include "relay_kit.h"
#include "support/fail_alloc.h"

static const ps_relay_speaker_t SPEAKER = {.job = 9, .worker = 4, .member = 1, .joins = 2};

/* Worker 2's push, and a mark of worker 3. */
typedef struct pair {
    kit_lot_t push;
    ps_bundle_from_t from[2];
    ps_relay_lot_t lot;
} pair_t;

static void make_pair(pair_t *self)
{
    kit_lot(&self->push, 2, 5, true, 1.5F);
    self->from[0] = self->push.from;
    self->from[1] =
        (ps_bundle_from_t){.session = 103, .first_seq = 7, .last_seq = 8, .worker = 3, .joins = 1};
    self->lot =
        (ps_relay_lot_t){.from = self->from, .spans = &self->push.span, .n_from = 2, .n_spans = 1};
}

static ps_relay_deed_t deed_of(const ps_relay_lot_t *lot)
{
    return (ps_relay_deed_t){.kind = PS_RELAY_SEND,
                             .to = PS_OVERLAY_NODES,
                             .key = KIT_KEY,
                             .number = 77,
                             .plan = 3,
                             .lot = lot};
}

Test(relay_message, a_lot_comes_back)
{
    pair_t pair;
    ps_relay_deed_t deed;
    ps_message_t message;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t got = {.from = NULL};

    make_pair(&pair);
    deed = deed_of(&pair.lot);
    ps_relay_bundle(&deed, &SPEAKER, 6, &message);
    cr_assert_eq(message.kind, PS_KIND_BUNDLE);
    cr_assert_eq(message.bundle.request, 77);
    cr_assert_eq(message.bundle.table, 1);
    cr_assert_eq(message.bundle.partition, 2);
    cr_assert_eq(message.bundle.epoch, 6);
    cr_assert_eq(message.bundle.job, 9);
    cr_assert_eq(message.bundle.worker, 4);
    cr_assert_eq(message.bundle.member, 1);
    cr_assert_eq(message.bundle.joins, 2);
    cr_assert_eq(message.bundle.clock, 7);
    cr_assert_eq(message.bundle.plan, 3);
    cr_assert_eq(ps_relay_lot_write(&pair.lot, &payload, NULL), PSD_OK);
    cr_assert_eq(ps_relay_lot_read(&message.bundle, payload, &got, NULL), PSD_OK);
    ps_payload_destroy(&payload); /* the lot holds it */
    cr_assert_eq(got.n_from, 2);
    cr_assert_eq(got.from[1].session, 103);
    cr_assert_eq(got.from[1].last_seq, 8);
    cr_assert_eq(got.n_spans, 1);
    cr_assert_eq(got.spans[0].first, 2);
    cr_assert_eq(got.spans[0].n, 1);
    cr_assert_eq(kit_value(&got.spans[0]), 1.5F);
    kit_lot_done(&pair.push);
}

Test(relay_message, a_body_that_is_no_bundle_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_msg_bundle_t message = {.n_from = 2, .n_spans = 1};
    ps_relay_lot_t got;
    pair_t pair;

    make_pair(&pair);
    cr_assert_eq(ps_relay_lot_read(&message, NULL, &got, err), PSD_PROTO);
    cr_assert_eq(ps_relay_lot_write(&pair.lot, &payload, NULL), PSD_OK);
    message.n_spans = 0;
    psd_error_clear(err);
    cr_assert_eq(ps_relay_lot_read(&message, payload, &got, err), PSD_PROTO);
    cr_assert(strstr(psd_error_text(err), "bytes after its end") != NULL);
    kit_lot_done(&pair.push);
}

static psd_status_t there_and_back(void *fixture)
{
    const pair_t *pair = fixture;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t got = {.from = NULL};
    const ps_msg_bundle_t message = {.n_from = 2, .n_spans = 1};
    psd_status_t rc = ps_relay_lot_write(&pair->lot, &payload, NULL);

    return rc == PSD_OK ? ps_relay_lot_read(&message, payload, &got, NULL) : rc;
}

Test(relay_message, memory_may_be_short)
{
    pair_t pair;

    make_pair(&pair);
    cr_assert_null(fail_alloc_sweep(there_and_back, &pair));
    kit_lot_done(&pair.push);
}

Test(relay_message, news_go_there_and_back)
{
    ps_relay_deed_t deed = {.kind = PS_RELAY_TELL,
                            .key = KIT_KEY,
                            .number = 12,
                            .news = PS_RELAY_WAITS,
                            .waits_for = 3,
                            .reason = NULL};
    ps_message_t message;
    ps_relay_news_t news = PS_RELAY_DONE;
    uint64_t number = 0;

    ps_relay_relayed(&deed, &message);
    cr_assert_eq(message.relayed.waits_for, 3);
    cr_assert(ps_relay_news(&message, &number, &news));
    cr_assert_eq(number, 12);
    cr_assert_eq(news, PS_RELAY_WAITS);
    deed.news = PS_RELAY_RETURNED;
    deed.reason = "no room";
    ps_relay_relayed(&deed, &message);
    cr_assert_eq(message.relayed.waits_for, 0);
    cr_assert_str_eq(message.relayed.text, "no room");
    cr_assert(ps_relay_news(&message, &number, &news));
    cr_assert_eq(news, PS_RELAY_RETURNED);
}

Test(relay_message, what_a_shard_says_is_news)
{
    const struct {
        ps_message_t message;
        ps_relay_news_t news;
    } answers[] = {
        {{.kind = PS_KIND_ACK, .ack = {.request = 5}}, PS_RELAY_DONE},
        {{.kind = PS_KIND_PARKED, .parked = {.request = 5}}, PS_RELAY_WAITS},
        {{.kind = PS_KIND_REFUSED, .refused = {.request = 5, .status = PSD_SPLIT}},
         PS_RELAY_RETURNED},
        {{.kind = PS_KIND_MOVED, .moved = {.request = 5}}, PS_RELAY_RETURNED},
    };
    const ps_message_t own = {.kind = PS_KIND_ACK, .ack = {.seq = 5}};
    const ps_message_t other = {.kind = PS_KIND_WELCOME};
    ps_relay_news_t news = PS_RELAY_TAKEN;
    uint64_t number = 0;

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        cr_assert(ps_relay_news(&answers[i].message, &number, &news));
        cr_assert_eq(number, 5);
        cr_assert_eq(news, answers[i].news);
    }
    cr_assert_not(ps_relay_news(&own, &number, &news), "of an origin");
    cr_assert_not(ps_relay_news(&other, &number, &news));
}

/* ---- checks ---- */

/* The same value in all columns, as i32; with its check. */
static void kit_integers(kit_lot_t *self, uint32_t worker, int32_t value)
{
    kit_lot(self, worker, 5, true, 0);
    self->span.slice.type = PS_TYPE_I32;
    for (size_t i = 0; i < KIT_COLS; i++) {
        ps_store_i32((uint8_t *)(uintptr_t)self->span.payload->spans[0].data + 4 * i, value);
    }
    self->from.has_check = true;
    self->from.check = ps_combine_check(&self->span.slice, self->span.payload, 0);
}

static bool is_right(const ps_relay_lot_t *lot)
{
    return ps_relay_lot_is_right(lot, PS_TYPE_I32, 0);
}

/* What workers 0 and 1 have pushed, one as much as 2^31: their sum wraps around. */
Test(relay_message, the_check_of_a_sum_goes_on_with_it)
{
    static const uint32_t parents[] = {PS_OVERLAY_NODES, 0};
    const ps_relay_plan_t plan = kit_plan(1, parents, 2);
    const uint64_t went[PS_COMBINE_POSITIONS / 64] = {0};
    ps_relay_tree_t tree = {.version = 0};
    const ps_relay_sum_args_t args = {
        .tree = &tree, .went = went, .type = PS_TYPE_I32, .width = KIT_COLS};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t sum = {.from = NULL};
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t got = {.from = NULL};
    const ps_msg_bundle_t message = {.n_from = 2, .n_spans = 1};
    const ps_relay_lot_t *lots[2];
    bool fits = false;
    kit_lot_t pushes[2];

    cr_assert_eq(ps_relay_tree_make(&plan, 0, &tree, NULL), PSD_OK);
    kit_integers(&pushes[0], 0, INT32_MIN);
    kit_integers(&pushes[1], 1, -5);
    for (size_t i = 0; i < 2; i++) {
        lots[i] = &pushes[i].lot;
        cr_assert(is_right(lots[i]));
    }
    cr_assert_eq(ps_relay_sum_make(&args, lots, 2, &fits, &sum, NULL), PSD_OK);
    cr_assert(fits);
    cr_assert_eq(sum.n_spans, 1);
    cr_assert_eq(ps_relay_lot_write(&sum, &payload, NULL), PSD_OK);
    cr_assert_eq(ps_relay_lot_read(&message, payload, &got, NULL), PSD_OK);
    cr_assert_eq(got.from[1].check, pushes[1].from.check);
    cr_assert(is_right(&got));
    got.from[1].check += 2;
    cr_assert_not(is_right(&got), "a worker's delta is not in it");
    got.from[1].has_check = false;
    cr_assert(is_right(&got), "nobody knows");
    got.from[1] = pushes[1].from;
    got.n_spans = 0;
    cr_assert_not(is_right(&got), "its rows are gone");
    got.n_spans = 1;
    cr_assert_not(ps_relay_lot_is_right(&got, PS_TYPE_I64, 0));
    cr_assert(ps_relay_lot_is_right(&got, PS_TYPE_F32, 0), "sums of floats have no checks");
    ps_relay_tree_done(&tree);
    kit_lot_done(&pushes[0]);
    kit_lot_done(&pushes[1]);
}
