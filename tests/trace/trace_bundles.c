/* SPDX-License-Identifier: Apache-2.0 */
/* Stories about bundles: two workers' pushes that one of them brings. */
#include "trace_world.h"
#include "wire/records/bundle.h"

/* Worker `by` brings `delta` to a row: the sum of what workers 0 and 1 pushed as seq `seq`, with
 * their marks. */
static void bring(world_t *self, uint64_t at_ms, uint32_t by, uint64_t seq, uint64_t clock,
                  uint64_t row, int64_t delta)
{
    uint32_t worker = by;
    ps_bundle_from_t from[2];
    ps_bundle_span_t span = {.n = 2,
                             .n_from = 2,
                             .slice = row_slice(row, 1),
                             .body = {.values = {(const uint8_t *)&delta, sizeof delta}}};
    const ps_bundle_t bundle = {.from = from, .spans = &span, .n_from = 2, .n_spans = 1};
    ps_message_t message = {.kind = PS_KIND_BUNDLE,
                            .bundle = {FROM(300 + at_ms, clock), .n_from = 2, .n_spans = 1}};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint8_t *bytes = NULL;
    size_t size = 0;

    for (uint32_t i = 0; i < 2; i++) {
        from[i] = (ps_bundle_from_t){.session = i + 1,
                                     .first_seq = seq,
                                     .last_seq = seq,
                                     .worker = i,
                                     .joins = self->workers[i].joins,
                                     .marks = true};
    }
    cr_assert(ps_bundle_size(&bundle, &size));
    payload = ps_payload_room(0, 0, size, &bytes);
    cr_assert_not_null(payload);
    ps_bundle_write(&bundle, bytes);
    self->now_ms = at_ms;
    tell(self,
         "[%3" PRIu64 "] worker %" PRIu32 " brings %" PRId64 " of workers 0 and 1 at %" PRIu64
         " to row %" PRIu64 ", seq %" PRIu64 " of each\n",
         at_ms, by, delta, clock, row, seq);
    message_from(self, by, &message, payload);
}

static void combine(world_t *self)
{
    self->spec.combine = PS_COMBINE_CLOCK_SUM;
    table_changes(self);
    for (uint32_t i = 0; i < self->job.n_workers; i++) {
        pull(self, 0, i, 0, 0, 0); /* it is known as a client of the job */
    }
    self->text[0] = '\0';
}

Test(trace_bundles, one_bundle_for_two_workers)
{
    WORLD(w, 2, 0);

    combine(w);
    bring(w, 10, 1, 1, 0, 2, 12);
    pull(w, 20, 0, 1, 1, 2);
    EXPECT_STORY(w, "[ 10] worker 1 brings 12 of workers 0 and 1 at 0 to row 2, seq 1 of each\n"
                    "    push_logged session=1 seq=1 lsn=3 worker=0 clock=0\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    push_logged session=2 seq=1 lsn=3 worker=1 clock=0\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    clock_closed job=3 clock=1 pushes=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "    worker 1 gets ACK of seq 0\n"
                    "[ 20] worker 0 at 1 pulls row 2\n"
                    "    worker 0 gets VALUES 12\n"
                    "    pull_served session=1 worker=0 clock=1 rows=1\n");
}

/* F1: the relay is silent, origin 0 asks and goes directly; the bundle comes late. */
Test(trace_bundles, an_origin_loses_patience)
{
    WORLD(w, 2, 0);

    combine(w);
    probe(w, 10, 0, 1);
    push(w, 12, 0, 1, 0, 2, 5);
    bring(w, 20, 1, 1, 0, 2, 12);
    push(w, 30, 1, 1, 0, 2, 7);
    bring(w, 40, 1, 1, 0, 2, 12);
    EXPECT_STORY(w, "[ 10] worker 0 asks about seq 1\n"
                    "    push_gap session=1 seq=1 expected=1\n"
                    "    worker 0 gets REFUSED GAP: gap, expected 1\n"
                    "[ 12] worker 0 at 0 pushes 5 to row 2, seq 1\n"
                    "    push_logged session=1 seq=1 lsn=3 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 20] worker 1 brings 12 of workers 0 and 1 at 0 to row 2, seq 1 of each\n"
                    "    push_refused session=2 seq=0 status=SPLIT\n"
                    "    worker 1 gets REFUSED SPLIT: it is not the turn of all its "
                    "contributors\n"
                    "[ 30] worker 1 at 0 pushes 7 to row 2, seq 1\n"
                    "    push_logged session=2 seq=1 lsn=4 worker=1 clock=0\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "[ 40] worker 1 brings 12 of workers 0 and 1 at 0 to row 2, seq 1 of each\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "    worker 1 gets ACK of seq 0\n");
}

/* F2: the relay dies after the server has taken the bundle. */
Test(trace_bundles, an_origin_asks_and_the_server_has_it)
{
    WORLD(w, 3, 0);

    combine(w);
    bring(w, 10, 1, 1, 0, 2, 12);
    probe(w, 20, 0, 1);
    EXPECT_STORY(w, "[ 10] worker 1 brings 12 of workers 0 and 1 at 0 to row 2, seq 1 of each\n"
                    "    push_logged session=1 seq=1 lsn=3 worker=0 clock=0\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    push_logged session=2 seq=1 lsn=3 worker=1 clock=0\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "    worker 1 gets ACK of seq 0\n"
                    "[ 20] worker 0 asks about seq 1\n"
                    "    push_duplicate session=1 seq=1\n"
                    "    worker 0 gets ACK of seq 1\n");
}

/* F4: after a worker's loss its delta may not come in a bundle any more. */
Test(trace_bundles, a_lost_origin_splits_it)
{
    WORLD(w, 3, 0);

    combine(w);
    push(w, 5, 2, 1, 0, 1, 1);
    becomes(w, 8, 0, PS_WORKER_LOST);
    w->text[0] = '\0';
    bring(w, 10, 1, 1, 0, 2, 12);
    push(w, 20, 1, 1, 0, 2, 7);
    EXPECT_STORY(w, "[ 10] worker 1 brings 12 of workers 0 and 1 at 0 to row 2, seq 1 of each\n"
                    "    push_refused session=2 seq=0 status=SPLIT\n"
                    "    worker 1 gets REFUSED SPLIT: a contributor may not work now\n"
                    "[ 20] worker 1 at 0 pushes 7 to row 2, seq 1\n"
                    "    push_logged session=2 seq=1 lsn=5 worker=1 clock=0\n"
                    "    worker 1 gets ACK of seq 1\n");
}
