/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/nodes/overlay_job.h: who passes deltas on, and by which plan. */
#include "server/nodes/overlay_job.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define NODES PS_OVERLAY_NODES

static ps_worker_t workers[4];
static const ps_id_t key = {{7}};
static const ps_job_t job = {.id = 3, .name = "lr", .workers = workers, .n_workers = 4};
static ps_overlay_job_t overlay;

static void open_job(void)
{
    for (uint32_t i = 0; i < 4; i++) {
        workers[i] =
            (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
    }
}

static void close_job(void)
{
    ps_overlay_job_done(&overlay);
}

TestSuite(overlay_job, .init = open_job, .fini = close_job);

static psd_status_t beat(uint32_t worker, uint64_t clock, uint64_t unix_ms)
{
    static const char *const relays[4] = {"tcp://h0:1", "tcp://h1:1", "tcp://h2:1", "tcp://h3:1"};

    const ps_overlay_beat_t said = {
        .relay = relays[worker], .clock = clock, .unix_ms = unix_ms, .key = &key};

    return ps_overlay_job_beat(&overlay, &job, &workers[worker], &said, NULL);
}

Test(overlay_job, each_one_that_comes_makes_a_plan)
{
    const ps_relay_facts_t *facts = &overlay.facts;
    const uint32_t first[4] = {NODES, 0, 0, 2};

    cr_assert_eq(beat(2, 5, 1000), PSD_OK);
    cr_assert_eq(facts->version, 1000);
    cr_assert_eq(facts->clock, 6);
    cr_assert_eq(facts->n_colours, 1);
    cr_assert_eq(facts->parents[0], NODES);
    cr_assert_arr_eq(&facts->key, &key, sizeof key);
    cr_assert_eq(beat(2, 6, 2000), PSD_OK);
    cr_assert_eq(facts->version, 1000, "nothing has changed");
    cr_assert_eq(beat(0, 6, 900), PSD_OK, "the wall clock went back");
    cr_assert_eq(facts->version, 1001);
    cr_assert_eq(beat(3, 6, 900), PSD_OK);
    cr_assert_eq(beat(1, 6, 900), PSD_OK);
    cr_assert_eq(facts->version, 1003);
    cr_assert_eq(facts->n_members, 4);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(facts->members[i].worker, i);
    }
    cr_assert_eq(facts->n_colours, 4);
    cr_assert_arr_eq(facts->parents, first, sizeof first);
}

Test(overlay_job, who_goes_or_gets_a_client_is_in_no_plan)
{
    const ps_relay_facts_t *facts = &overlay.facts;

    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat(i, 0, 1), PSD_OK);
    }
    workers[1].n_members = 2;
    cr_assert_eq(beat(0, 0, 1), PSD_OK);
    cr_assert_eq(facts->version, 5);
    cr_assert_eq(facts->n_members, 3);
    cr_assert_eq(facts->members[1].worker, 2);
    cr_assert_eq(facts->members[1].members, 1);
    cr_assert_eq(beat(1, 0, 1), PSD_OK);
    cr_assert_eq(facts->n_members, 3, "its other client lends nothing");
    cr_assert_eq(facts->version, 5);
    workers[2].state = PS_WORKER_LOST;
    cr_assert_eq(beat(0, 0, 1), PSD_OK);
    cr_assert_eq(facts->version, 6);
    cr_assert_eq(facts->n_members, 2);
    workers[3].joins = 2; /* another life, which has not said where it listens */
    cr_assert_eq(beat(0, 0, 1), PSD_OK);
    cr_assert_eq(facts->n_members, 1);
    cr_assert_eq(beat(2, 0, 1), PSD_OK);
    cr_assert_eq(facts->n_members, 1, "it is lost");
    workers[0].n_members = 2;
    cr_assert_eq(beat(0, 0, 1), PSD_OK);
    cr_assert_eq(facts->n_members, 0);
    cr_assert_eq(facts->n_colours, 1, "a plan of nobody can be read");
}

static uint64_t version_for(uint64_t known)
{
    const ps_overlay_beat_t said = {
        .relay = "tcp://h0:1", .clock = 3, .known = known, .unix_ms = 1000, .key = &key};

    cr_assert_eq(ps_overlay_job_beat(&overlay, &job, &workers[0], &said, NULL), PSD_OK);
    return overlay.facts.version;
}

/* The registry member before this one had a wall clock that is ahead. */
Test(overlay_job, a_plan_is_newer_than_those_that_workers_have)
{
    cr_assert_eq(version_for(0), 1000);
    cr_assert_eq(version_for(1000), 1000, "it has this one");
    cr_assert_eq(version_for(5000), 5001);
    cr_assert_eq(version_for(UINT64_MAX), 5001, "no clock is that far ahead");
}

Test(overlay_job, an_address_that_is_none_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const ps_overlay_beat_t said = {.relay = "ipc:///tmp/x", .unix_ms = 1, .key = &key};

    cr_assert_eq(ps_overlay_job_beat(&overlay, &job, &workers[0], &said, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "a relay at \"ipc:///tmp/x\"; allowed: tcp://HOST:PORT");
    cr_assert_eq(overlay.facts.version, 0);
}

/* At security.level encrypt the address names the relay's own key. */
Test(overlay_job, a_relay_with_another_key_is_another_one)
{
#define ZEROES "00000000000000000000000000000000"
    static const char *const relays[] = {"tcp://h0:1#" ZEROES ZEROES, "tcp://h0:1#" ZEROES ZEROES,
                                         "tcp://h0:1#" ZEROES "11111111111111111111111111111111"};
    const uint64_t versions[] = {10, 10, 11};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    for (size_t i = 0; i < 3; i++) {
        const ps_overlay_beat_t said = {.relay = relays[i], .unix_ms = 10, .key = &key};

        cr_assert_eq(ps_overlay_job_beat(&overlay, &job, &workers[0], &said, NULL), PSD_OK);
        cr_assert_eq(overlay.facts.version, versions[i]);
        cr_assert_str_eq(overlay.facts.members[0].relay, relays[i]);
    }
    cr_assert(ps_overlay_job_view(&overlay, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_not_null(strstr((const char *)text.data, "\"relay\":\"tcp://h0:1\""));
}

Test(overlay_job, people_see_the_ways_and_not_the_key)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    cr_assert_eq(beat(0, 0, 9), PSD_OK);
    cr_assert_eq(beat(1, 0, 9), PSD_OK);
    cr_assert(ps_overlay_job_view(&overlay, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_str_eq((const char *)text.data,
                     "{\"overlay\":{\"workers\":[{\"sends_to\":[\"nodes\",\"worker 1\"],"
                     "\"worker\":0,\"relay\":\"tcp://h0:1\"},{\"sends_to\":[\"worker 0\","
                     "\"nodes\"],\"worker\":1,\"relay\":\"tcp://h1:1\"}],\"policy\":\"tree\","
                     "\"plan\":10,\"clock\":1}}");
}

Test(overlay_job, without_memory_the_next_heartbeat_begins_again)
{
    bool good = false;

    for (size_t i = 0; !good; i++) {
        fail_alloc_at(i);
        good = beat(0, 0, 1) == PSD_OK;
        fail_alloc_off();
    }
    cr_assert_eq(overlay.facts.n_members, 1);
    cr_assert_eq(beat(0, 0, 1), PSD_OK);
    cr_assert_eq(overlay.facts.n_members, 1);
}

/* ---- PSD_OVERLAY=auto ---- */

#define CLOCK_US 4000000
#define CLOCK_BYTES 8000000
#define UP_US 3900000

/* Worker's heartbeat after that number of clocks, which goes by plan `known`. */
static psd_status_t beat_auto(uint32_t worker, uint64_t clock, uint64_t known, bool is_auto)
{
    static const char *const relays[4] = {"tcp://h0:1", "tcp://h1:1", "tcp://h2:1", "tcp://h3:1"};
    const ps_overlay_report_t report = {.is_auto = is_auto,
                                        .clock = clock,
                                        .bytes = clock * CLOCK_BYTES,
                                        .n_links = clock > 0 ? 2 : 0,
                                        .links = {{NODES, CLOCK_BYTES, UP_US}, {77, 1, 1}}};
    const ps_overlay_beat_t said = {.relay = relays[worker],
                                    .clock = clock,
                                    .known = known,
                                    .report = &report,
                                    .unix_ms = 9,
                                    .now_us = clock * CLOCK_US,
                                    .key = &key};

    return ps_overlay_job_beat(&overlay, &job, &workers[worker], &said, NULL);
}

/* As workers get it. */
static bool is_star(void)
{
    PSD_AUTO(ps_relay_facts_done) ps_relay_facts_t got = {.version = 0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    cr_assert(ps_overlay_job_to_doc(&overlay, doc));
    cr_assert_eq(ps_relay_facts_from_doc(doc, &got, NULL), PSD_OK);
    cr_assert_eq(got.version, overlay.facts.version);
    cr_assert(got.n_members == 0 || got.n_members == 4);
    return got.n_members == 0;
}

static void do_clocks(uint64_t first, uint64_t last)
{
    for (uint64_t clock = first; clock <= last; clock++) {
        for (uint32_t i = 4; i > 0; i--) {
            cr_assert_eq(beat_auto(i - 1, clock, overlay.facts.version, true), PSD_OK);
        }
    }
}

Test(overlay_job, auto_begins_with_the_star_and_takes_a_tree_that_pays)
{
    const uint32_t star[4] = {NODES, NODES, NODES, NODES};
    uint64_t version = 0;

    do_clocks(0, 0);
    cr_assert(overlay.is_auto);
    cr_assert_eq(overlay.facts.n_members, 4);
    cr_assert_arr_eq(overlay.facts.parents, star, sizeof star);
    cr_assert(is_star());
    version = overlay.facts.version;
    do_clocks(1, 3);
    cr_assert_eq(overlay.facts.version, version);
    do_clocks(4, 4);
    cr_assert_eq(overlay.facts.version, version + 1);
    cr_assert_eq(overlay.facts.clock, 5);
    cr_assert_eq(overlay.facts.n_colours, 4);
    cr_assert_not(is_star());
    /* The clocks take as long as before, no longer: it is kept. */
    do_clocks(5, 12);
    cr_assert_not(is_star(), "no clock was slower than the star's");
}

Test(overlay_job, who_does_not_know_the_plan_measures_nothing)
{
    do_clocks(0, 0);
    for (uint64_t clock = 1; clock < 20; clock++) {
        cr_assert_eq(beat_auto(0, clock, overlay.facts.version - 1, true), PSD_OK);
    }
    cr_assert(is_star());
}

Test(overlay_job, links_of_another_plan_are_not_heard)
{
    do_clocks(0, 0);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat_auto(i, 1, overlay.facts.version - 1, true), PSD_OK);
    }
    cr_assert_eq(ps_overlay_pilot_rate(&overlay.pilot, 3, 4), 0);
    cr_assert_eq(beat_auto(3, 1, overlay.facts.version, true), PSD_OK);
    cr_assert_gt(ps_overlay_pilot_rate(&overlay.pilot, 3, 4), 0);
}

Test(overlay_job, a_version_that_is_ahead_leaves_the_plan_as_it_is)
{
    uint64_t version = 0;

    do_clocks(0, 4);
    cr_assert_not(is_star());
    version = overlay.facts.version;
    cr_assert_eq(beat_auto(2, 4, version + 5, true), PSD_OK);
    cr_assert_eq(overlay.facts.version, version + 6);
    cr_assert_not(is_star());
    cr_assert_eq(overlay.facts.n_colours, 4);
}

Test(overlay_job, one_worker_that_wants_a_tree_decides_for_all)
{
    do_clocks(0, 0);
    cr_assert(is_star());
    workers[3].joins = 2;
    cr_assert_eq(beat_auto(3, 0, 0, false), PSD_OK);
    cr_assert_not(overlay.is_auto);
    cr_assert_not(is_star());
}

Test(overlay_job, people_see_what_was_measured)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    do_clocks(0, 4);
    cr_assert(ps_overlay_job_view(&overlay, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert(strstr((const char *)text.data, "\"policy\":\"auto\"") != NULL);
    cr_assert(strstr((const char *)text.data, "\"uses\":\"tree\"") != NULL);
    cr_assert(strstr((const char *)text.data, "\"star_us\":4000000") != NULL);
    cr_assert(strstr((const char *)text.data, "\"clock_bytes\":8000000") != NULL);
    cr_assert(strstr((const char *)text.data, "{\"from\":3,\"bytes_s\":2051282}") != NULL);
}
