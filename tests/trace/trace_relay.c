/* SPDX-License-Identifier: Apache-2.0 */
/* Stories about relays: who adds what for whom, and what happens when one does not. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/relay/relay.h"

#define RELAYS 4
#define NODES PS_OVERLAY_NODES

typedef struct world {
    ps_relay_t *relays[RELAYS];
    uint64_t now_ms;
    uint64_t n_requests;
    bool is_frozen[RELAYS]; /* neither takes nor answers */
    bool splits;            /* the nodes refuse all bundles */
    bool is_cut;            /* the nodes hear nothing */
    char text[8192];
} world_t;

static void tell(world_t *self, const char *format, ...) PSD_PRINTF(2, 3);

static void tell(world_t *self, const char *format, ...)
{
    size_t length = strlen(self->text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(self->text + length, sizeof self->text - length, format, args);
    va_end(args);
}

static void take_plan(world_t *self, uint64_t version, const uint32_t parents[RELAYS])
{
    static const uint32_t positions[RELAYS] = {0, 1, 2, 3};
    static const uint32_t members[RELAYS] = {1, 1, 1, 1};
    const ps_relay_plan_t plan = {.version = version,
                                  .n_workers = RELAYS,
                                  .n_colours = 1,
                                  .positions = positions,
                                  .members = members,
                                  .parents = parents};

    for (uint32_t i = 0; i < RELAYS; i++) {
        cr_assert_eq(ps_relay_take_plan(self->relays[i], &plan, NULL), PSD_OK);
    }
}

static void world_open(world_t *self)
{
    static const uint32_t parents[RELAYS] = {NODES, 0, 0, 2};

    for (uint32_t i = 0; i < RELAYS; i++) {
        const ps_relay_settings_t settings = {
            .worker = i, .hold_ms = 25, .patience_ms = 1000, .limit_bytes = 1 << 20};

        cr_assert_eq(ps_relay_new(&settings, &self->relays[i], NULL), PSD_OK);
    }
    take_plan(self, 1, parents);
}

static void world_done(world_t *self)
{
    for (uint32_t i = 0; i < RELAYS; i++) {
        ps_relay_destroy(&self->relays[i]);
    }
}

#define WORLD(name)                               \
    PSD_AUTO(world_done) world_t name##_at = {0}; \
    world_t *name = &name##_at;                   \
    world_open(name)

static const char *name_of(uint32_t end, char text[16])
{
    (void)snprintf(text, 16, end == NODES ? "the nodes" : "worker %" PRIu32, end);
    return text;
}

static const ps_relay_key_t KEY = {
    .table = 1, .partition = 0, .clock = 4, .type = PS_TYPE_I64, .width = 1};

static void run(world_t *self, uint32_t i);

/* The lot's workers and, of each span, its positions and value. */
static void tell_lot(world_t *self, const ps_relay_lot_t *lot)
{
    for (uint16_t i = 0; i < lot->n_spans; i++) {
        const ps_relay_span_t *span = &lot->spans[i];

        tell(self, " [%" PRIu32 "..%" PRIu32 "]=%" PRId64, span->first, span->first + span->n - 1,
             ps_load_i64(span->payload->spans[0].data));
    }
    tell(self, " of");
    for (uint16_t i = 0; i < lot->n_from; i++) {
        tell(self, " %" PRIu32 ":%" PRIu64, lot->from[i].worker, lot->from[i].first_seq);
    }
    tell(self, "\n");
}

static void send(world_t *self, uint32_t from, const ps_relay_deed_t *deed)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_relay_news_t news = PS_RELAY_TAKEN;
    uint64_t number = deed->number;
    uint32_t to = deed->to;
    char name[16];

    tell(self, "    worker %" PRIu32 " sends to %s:", from, name_of(to, name));
    tell_lot(self, deed->lot);
    if (to == NODES) {
        news = self->splits ? PS_RELAY_RETURNED : PS_RELAY_DONE;
        if (self->is_cut) {
            return;
        }
    } else if (self->is_frozen[to]) {
        return;
    } else {
        const ps_relay_giver_t giver = {
            .worker = from, .request = (uint64_t)from << 32 | number, .plan = deed->plan};

        if (ps_relay_give(self->relays[to], self->now_ms, &giver, &deed->key, deed->lot, err) !=
            PSD_OK) {
            tell(self, "    worker %" PRIu32 " refuses it: %s\n", to, psd_error_text(err));
            news = PS_RELAY_RETURNED;
        }
    }
    ps_relay_heard(self->relays[from], self->now_ms, to, number, news);
    if (to != NODES) {
        run(self, to);
    }
}

static void hear(world_t *self, uint32_t from, const ps_relay_deed_t *deed)
{
    static const char *const names[] = {"", "taken", "waits", "done", "returned"};
    bool is_own = deed->to == from;
    char name[16];

    tell(self, "    worker %" PRIu32 " tells %s %" PRIu32 ": %s", from,
         is_own ? "its client" : "worker", deed->to, names[deed->news]);
    if (deed->news == PS_RELAY_WAITS) {
        tell(self, " for %s", name_of(deed->waits_for, name));
    }
    tell(self, "%s%s\n", deed->reason != NULL ? ", " : "",
         deed->reason != NULL ? deed->reason : "");
    if (!is_own && !self->is_frozen[deed->to]) {
        ps_relay_heard(self->relays[deed->to], self->now_ms, from, (uint32_t)deed->number,
                       deed->news);
        run(self, deed->to);
    }
}

static void run(world_t *self, uint32_t i)
{
    ps_relay_deed_t deed;

    while (!self->is_frozen[i] && ps_relay_next(self->relays[i], &deed)) {
        if (deed.kind == PS_RELAY_SEND) {
            send(self, i, &deed);
        } else {
            hear(self, i, &deed);
        }
    }
}

static void push(world_t *self, uint64_t at_ms, uint32_t worker, uint64_t seq, int64_t delta)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0},
                                            (ps_bytes_t){(const uint8_t *)&delta, sizeof delta});
    ps_bundle_from_t from = {.session = 100 + worker,
                             .first_seq = seq,
                             .last_seq = seq,
                             .worker = worker,
                             .joins = 1,
                             .marks = true};
    ps_relay_span_t span = {.first = worker,
                            .n = 1,
                            .slice = {.rows = PS_ROWS_RANGE,
                                      .type = PS_TYPE_I64,
                                      .n_rows = 1,
                                      .n_cols = 1,
                                      .n_values = 1},
                            .payload = payload};
    const ps_relay_lot_t lot = {.from = &from, .spans = &span, .n_from = 1, .n_spans = 1};
    const ps_relay_giver_t giver = {.worker = worker, .request = ++self->n_requests, .plan = 1};

    self->now_ms = at_ms;
    tell(self, "[%4" PRIu64 "] worker %" PRIu32 " lends %" PRId64 ", seq %" PRIu64 "\n", at_ms,
         worker, delta, seq);
    if (ps_relay_give(self->relays[worker], at_ms, &giver, &KEY, &lot, err) != PSD_OK) {
        tell(self, "    worker %" PRIu32 " refuses it: %s\n", worker, psd_error_text(err));
    }
    run(self, worker);
}

static void tick(world_t *self, uint64_t at_ms)
{
    self->now_ms = at_ms;
    tell(self, "[%4" PRIu64 "] time passes\n", at_ms);
    for (uint32_t i = 0; i < RELAYS; i++) {
        if (!self->is_frozen[i]) {
            ps_relay_tick(self->relays[i], at_ms);
            run(self, i);
        }
    }
}

#define EXPECT_STORY(self, wanted) cr_assert_str_eq((self)->text, wanted, "%s", (self)->text)

Test(trace_relay, a_clock_is_added_up_on_its_way)
{
    WORLD(w);

    push(w, 10, 3, 7, 8);
    push(w, 11, 0, 4, 1);
    push(w, 12, 2, 5, 4);
    push(w, 13, 1, 9, 2);
    EXPECT_STORY(w, "[  10] worker 3 lends 8, seq 7\n"
                    "    worker 3 sends to worker 2: [3..3]=8 of 3:7\n"
                    "[  11] worker 0 lends 1, seq 4\n"
                    "[  12] worker 2 lends 4, seq 5\n"
                    "    worker 2 sends to worker 0: [2..3]=12 of 2:5 3:7\n"
                    "[  13] worker 1 lends 2, seq 9\n"
                    "    worker 1 sends to worker 0: [1..1]=2 of 1:9\n"
                    "    worker 0 sends to the nodes: [0..3]=15 of 0:4 1:9 2:5 3:7\n"
                    "    worker 0 tells its client 0: done\n"
                    "    worker 0 tells worker 2: done\n"
                    "    worker 2 tells worker 3: done\n"
                    "    worker 3 tells its client 3: done\n"
                    "    worker 2 tells its client 2: done\n"
                    "    worker 0 tells worker 1: done\n"
                    "    worker 1 tells its client 1: done\n");
}

/* F7: its half goes to the nodes by another way, and its own delta with what it has. */
Test(trace_relay, a_frozen_relay_is_passed_by)
{
    WORLD(w);

    w->is_frozen[2] = true;
    push(w, 10, 3, 7, 8);
    push(w, 11, 0, 4, 1);
    push(w, 12, 1, 9, 2);
    tick(w, 261);
    tick(w, 1010);
    EXPECT_STORY(w, "[  10] worker 3 lends 8, seq 7\n"
                    "    worker 3 sends to worker 2: [3..3]=8 of 3:7\n"
                    "[  11] worker 0 lends 1, seq 4\n"
                    "[  12] worker 1 lends 2, seq 9\n"
                    "    worker 1 sends to worker 0: [1..1]=2 of 1:9\n"
                    "[ 261] time passes\n"
                    "    worker 0 sends to the nodes: [0..1]=3 of 0:4 1:9\n"
                    "    worker 0 tells worker 1: done\n"
                    "    worker 1 tells its client 1: done\n"
                    "    worker 0 tells its client 0: done\n"
                    "    worker 3 tells its client 3: waits for worker 2\n"
                    "[1010] time passes\n"
                    "    worker 3 sends to the nodes: [3..3]=8 of 3:7\n"
                    "    worker 3 tells its client 3: done\n");
}

/* F3: somebody of them went directly, so that nothing of the sum may be taken. */
Test(trace_relay, what_the_nodes_split_goes_back_to_all)
{
    WORLD(w);

    w->splits = true;
    push(w, 10, 3, 7, 8);
    push(w, 11, 0, 4, 1);
    push(w, 12, 2, 5, 4);
    push(w, 13, 1, 9, 2);
    EXPECT_STORY(w, "[  10] worker 3 lends 8, seq 7\n"
                    "    worker 3 sends to worker 2: [3..3]=8 of 3:7\n"
                    "[  11] worker 0 lends 1, seq 4\n"
                    "[  12] worker 2 lends 4, seq 5\n"
                    "    worker 2 sends to worker 0: [2..3]=12 of 2:5 3:7\n"
                    "[  13] worker 1 lends 2, seq 9\n"
                    "    worker 1 sends to worker 0: [1..1]=2 of 1:9\n"
                    "    worker 0 sends to the nodes: [0..3]=15 of 0:4 1:9 2:5 3:7\n"
                    "    worker 0 tells its client 0: returned, split\n"
                    "    worker 0 tells worker 2: returned, split\n"
                    "    worker 2 tells worker 3: returned, returned\n"
                    "    worker 3 tells its client 3: returned, returned\n"
                    "    worker 2 tells its client 2: returned, returned\n"
                    "    worker 0 tells worker 1: returned, split\n"
                    "    worker 1 tells its client 1: returned, returned\n");
}

/* F6: the first relay reaches everybody but the nodes. */
Test(trace_relay, what_a_cut_relay_has_goes_back)
{
    WORLD(w);

    w->is_cut = true;
    push(w, 10, 3, 7, 8);
    push(w, 12, 2, 5, 4);
    push(w, 13, 1, 9, 2);
    push(w, 14, 0, 4, 1);
    tick(w, 264);
    tick(w, 1014);
    EXPECT_STORY(w, "[  10] worker 3 lends 8, seq 7\n"
                    "    worker 3 sends to worker 2: [3..3]=8 of 3:7\n"
                    "[  12] worker 2 lends 4, seq 5\n"
                    "    worker 2 sends to worker 0: [2..3]=12 of 2:5 3:7\n"
                    "[  13] worker 1 lends 2, seq 9\n"
                    "    worker 1 sends to worker 0: [1..1]=2 of 1:9\n"
                    "[  14] worker 0 lends 1, seq 4\n"
                    "    worker 0 sends to the nodes: [0..3]=15 of 0:4 1:9 2:5 3:7\n"
                    "[ 264] time passes\n"
                    "    worker 0 tells its client 0: waits for the nodes\n"
                    "    worker 0 tells worker 1: waits for the nodes\n"
                    "    worker 0 tells worker 2: waits for the nodes\n"
                    "    worker 1 tells its client 1: waits for worker 0\n"
                    "    worker 2 tells its client 2: waits for worker 0\n"
                    "    worker 2 tells worker 3: waits for worker 0\n"
                    "    worker 3 tells its client 3: waits for worker 2\n"
                    "[1014] time passes\n"
                    "    worker 0 tells worker 2: returned, who had it was silent\n"
                    "    worker 2 tells worker 3: returned, returned\n"
                    "    worker 3 tells its client 3: returned, returned\n"
                    "    worker 2 tells its client 2: returned, returned\n"
                    "    worker 0 tells worker 1: returned, who had it was silent\n"
                    "    worker 1 tells its client 1: returned, returned\n"
                    "    worker 0 tells its client 0: returned, who had it was silent\n");
}

/* F13: worker 2 goes by a plan that the others have left. */
Test(trace_relay, an_old_plan_ends_at_the_nodes)
{
    static const uint32_t other[RELAYS] = {2, 0, NODES, 2};
    WORLD(w);

    push(w, 10, 3, 7, 8);
    for (uint64_t version = 2; version <= 3; version++) {
        take_plan(w, version, other);
    }
    push(w, 11, 2, 5, 4);
    tick(w, 300);
    EXPECT_STORY(w, "[  10] worker 3 lends 8, seq 7\n"
                    "    worker 3 sends to worker 2: [3..3]=8 of 3:7\n"
                    "[  11] worker 2 lends 4, seq 5\n"
                    "    worker 2 refuses it: plan 1; this relay knows plans 2 and 3\n"
                    "[ 300] time passes\n"
                    "    worker 2 sends to the nodes: [3..3]=8 of 3:7\n"
                    "    worker 2 tells worker 3: done\n"
                    "    worker 3 tells its client 3: done\n");
}

/* F11 */
Test(trace_relay, one_that_leaves_passes_on_what_it_has)
{
    WORLD(w);

    push(w, 10, 3, 7, 8);
    ps_relay_leave(w->relays[2], 20);
    run(w, 2);
    push(w, 30, 2, 5, 4);
    tick(w, 280);
    EXPECT_STORY(w, "[  10] worker 3 lends 8, seq 7\n"
                    "    worker 3 sends to worker 2: [3..3]=8 of 3:7\n"
                    "    worker 2 sends to worker 0: [3..3]=8 of 3:7\n"
                    "[  30] worker 2 lends 4, seq 5\n"
                    "    worker 2 refuses it: the relay is leaving\n"
                    "[ 280] time passes\n"
                    "    worker 0 sends to the nodes: [3..3]=8 of 3:7\n"
                    "    worker 0 tells worker 2: done\n"
                    "    worker 2 tells worker 3: done\n"
                    "    worker 3 tells its client 3: done\n");
}
