/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/nodes/overlay_job.h: who passes deltas on, and by which plan. */
#include "server/nodes/overlay_job.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define NODES PS_OVERLAY_NODES
#define NOW_US 200000000

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
    cr_assert(ps_overlay_job_view(&overlay, NOW_US, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_not_null(
        strstr((const char *)text.data, "\"relay\":\"tcp://h0:1\",\"link\":\"curve\""));
}

Test(overlay_job, people_see_the_ways_and_not_the_key)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    cr_assert_eq(beat(0, 0, 9), PSD_OK);
    cr_assert_eq(beat(1, 0, 9), PSD_OK);
    cr_assert(ps_overlay_job_view(&overlay, NOW_US, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_str_eq(
        (const char *)text.data,
        "{\"overlay\":{\"workers\":[{\"sends_to\":[\"nodes\",\"worker 1\"],"
        "\"worker\":0,\"relay\":\"tcp://h0:1\",\"link\":\"plain\"},{\"sends_to\":[\"worker 0\","
        "\"nodes\"],\"worker\":1,\"relay\":\"tcp://h1:1\",\"link\":\"plain\"}],\"policy\":\"tree\","
        "\"plan\":10,\"clock\":1,\"links\":[]}}");
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
    const ps_overlay_report_t report = {
        .rules = {.policy = is_auto ? PS_POLICY_AUTO : PS_POLICY_TREE},
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
    cr_assert(ps_overlay_job_view(&overlay, NOW_US, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert(strstr((const char *)text.data, "\"policy\":\"auto\"") != NULL);
    cr_assert(strstr((const char *)text.data, "\"uses\":\"tree\"") != NULL);
    cr_assert(strstr((const char *)text.data, "\"star_us\":4000000") != NULL);
    cr_assert(strstr((const char *)text.data, "\"clock_bytes\":8000000") != NULL);
    cr_assert(strstr((const char *)text.data,
                     "{\"from\":3,\"bytes\":32000000,\"bytes_s\":2051282,\"age_ms\":184000,"
                     "\"known\":true}") != NULL);
}

/* ---- pairs and queue ---- */

static ps_overlay_report_t turns_report(ps_policy_t policy)
{
    return (ps_overlay_report_t){
        .rules = {.policy = policy, .num = 4, .ratio = 0.1, .expiry = 5, .greed = 1}};
}

static psd_status_t beat_turns(uint32_t worker, const ps_overlay_report_t *report, psd_error_t *err)
{
    static const char *const relays[4] = {"tcp://h0:1", "tcp://h1:1", "tcp://h2:1", "tcp://h3:1"};
    const ps_overlay_beat_t said = {.relay = relays[worker],
                                    .clock = report->clock,
                                    .known = overlay.facts.version,
                                    .report = report,
                                    .unix_ms = 9,
                                    .now_us = report->clock * CLOCK_US,
                                    .key = &key};

    return ps_overlay_job_beat(&overlay, &job, &workers[worker], &said, err);
}

/* Everybody has finished that clock; worker 1 sends to worker 0 faster than the others do. */
static void do_turn(ps_policy_t policy, uint64_t clock)
{
    for (uint32_t i = 0; i < 4; i++) {
        ps_overlay_report_t report = turns_report(policy);

        report.clock = clock;
        report.bytes = clock * CLOCK_BYTES;
        report.n_links = i < 2 ? 1 : 0;
        report.links[0] = (ps_overlay_link_t){1 - i, CLOCK_BYTES, i == 1 ? 1000 : 9000};
        cr_assert_eq(beat_turns(i, &report, NULL), PSD_OK);
    }
}

/* name: of the policy. */
static void goes_by_what_was_measured(ps_policy_t policy, const char *name)
{
    ps_overlay_report_t report = turns_report(policy);
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    uint64_t version = 0;

    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat_turns(i, &report, NULL), PSD_OK);
    }
    version = overlay.facts.version;
    cr_assert_eq(overlay.facts.n_colours, 4);
    cr_assert_eq(overlay.facts.parents[0], 1, "nothing is known");
    for (uint64_t clock = 1; clock < 5; clock++) {
        do_turn(policy, clock);
        cr_assert_eq(overlay.facts.version, version);
    }
    do_turn(policy, 5);
    cr_assert_eq(overlay.facts.version, version + 1);
    cr_assert_eq(overlay.facts.clock, 7, "the others have heard of it by then");
    cr_assert_eq(overlay.facts.parents[1], 0);
    for (uint64_t clock = 6; clock < 30; clock++) {
        do_turn(policy, clock);
    }
    cr_assert_eq(overlay.facts.version, version + 1, "the same plan again is no plan");
    cr_assert(ps_overlay_job_view(&overlay, NOW_US, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_not_null(strstr((const char *)text.data, name));
    cr_assert_not_null(strstr((const char *)text.data,
                              "\"links\":[{\"from\":1,\"to\":0,\"bytes\":232000000,"
                              "\"bytes_s\":8000000000,\"age_ms\":84000,\"known\":true},"
                              "{\"from\":0,\"to\":1,\"bytes\":232000000,\"bytes_s\":"
                              "888888888,\"age_ms\":84000,\"known\":true}]"),
                       "%s", (const char *)text.data);
}

Test(overlay_job, pairs_goes_by_what_was_measured)
{
    goes_by_what_was_measured(PS_POLICY_PAIRS, "\"policy\":\"pairs\"");
}

Test(overlay_job, queue_goes_by_what_was_measured)
{
    goes_by_what_was_measured(PS_POLICY_QUEUE, "\"policy\":\"queue\"");
}

/* A worker measures once, and may do so before it has the newest plan. */
Test(overlay_job, turns_count_links_of_any_plan)
{
    ps_overlay_report_t report = turns_report(PS_POLICY_PAIRS);
    ps_overlay_beat_t said = {.relay = "tcp://h1:1",
                              .known = 1,
                              .report = &report,
                              .unix_ms = 9,
                              .now_us = CLOCK_US,
                              .key = &key};

    cr_assert_eq(beat_turns(0, &report, NULL), PSD_OK);
    cr_assert_eq(beat_turns(1, &report, NULL), PSD_OK);
    cr_assert_gt(overlay.facts.version, 1);
    report.clock = 1;
    report.n_links = 1;
    report.links[0] = (ps_overlay_link_t){0, CLOCK_BYTES, 1000};
    cr_assert_eq(ps_overlay_job_beat(&overlay, &job, &workers[1], &said, NULL), PSD_OK);
    cr_assert_gt(ps_overlay_matcher_rate(&overlay.matcher, 1, 0), 0);
}

Test(overlay_job, listed_workers_send_along_their_ways)
{
    const uint32_t wanted[4] = {NODES, 0, 0, NODES};
    ps_overlay_report_t report = turns_report(PS_POLICY_QUEUE);

    for (uint32_t i = 0; i < 4; i++) {
        report.rules.is_listed = true;
        report.may = (ps_may_t){{i == 1 || i == 2 ? 1 : 0}};
        if (i == 3) {
            workers[i].n_members = 2; /* it is in no plan */
        }
        cr_assert_eq(beat_turns(i, &report, NULL), PSD_OK);
    }
    cr_assert_eq(overlay.facts.n_members, 3);
    for (uint32_t c = 0; c < overlay.facts.n_colours; c++) {
        cr_assert_arr_eq(overlay.facts.parents + c * 3, wanted, 3 * sizeof *wanted);
    }
}

Test(overlay_job, rows_that_could_not_go_back_need_ways_of_both_directions)
{
    const uint32_t none[2] = {NODES, NODES};
    ps_overlay_report_t report = turns_report(PS_POLICY_PAIRS);

    report.rules.is_listed = true;
    report.rules.both_ways = true;
    report.may = (ps_may_t){{1}};
    cr_assert_eq(beat_turns(1, &report, NULL), PSD_OK);
    report.may = (ps_may_t){{0}};
    cr_assert_eq(beat_turns(0, &report, NULL), PSD_OK);
    cr_assert_eq(overlay.facts.n_members, 2);
    cr_assert_arr_eq(overlay.facts.parents, none, sizeof none);
}

/* ---- sites ---- */

static psd_status_t beat_site(uint32_t worker, ps_policy_t policy, const char *site)
{
    ps_overlay_report_t report = turns_report(policy);

    (void)snprintf(report.site.name, sizeof report.site.name, "%s", site);
    return beat_turns(worker, &report, NULL);
}

Test(overlay_job, one_of_each_site_sends_out_of_it)
{
    const uint32_t wanted[4] = {NODES, NODES, 0, 1};

    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat_site(i, PS_POLICY_TREE, i % 2 == 0 ? "east" : "west"), PSD_OK);
    }
    cr_assert_arr_eq(overlay.facts.parents, wanted, sizeof wanted);
    workers[1].state = PS_WORKER_LOST; /* west's gateway */
    cr_assert_eq(beat_site(0, PS_POLICY_TREE, "east"), PSD_OK);
    cr_assert_eq(overlay.facts.n_members, 3);
    cr_assert_eq(overlay.facts.parents[0], NODES);
    cr_assert_eq(overlay.facts.parents[1], 0);
    cr_assert_eq(overlay.facts.parents[2], NODES);
}

/* Those that name none are one site. */
Test(overlay_job, who_names_no_site_is_with_those_that_name_none)
{
    const uint32_t wanted[4] = {NODES, 0, NODES, 2};

    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat_site(i, PS_POLICY_TREE, i < 2 ? "" : "west"), PSD_OK);
    }
    cr_assert_arr_eq(overlay.facts.parents, wanted, sizeof wanted);
}

Test(overlay_job, auto_with_sites_is_a_tree_at_once)
{
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat_site(i, PS_POLICY_AUTO, i < 2 ? "east" : "west"), PSD_OK);
    }
    cr_assert_not(overlay.is_auto);
    cr_assert_eq(overlay.facts.parents[1], 0);
    cr_assert_eq(overlay.facts.parents[2], NODES);
    cr_assert_eq(overlay.facts.parents[3], 2);
    ps_overlay_job_done(&overlay);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat_site(i, PS_POLICY_AUTO, "east"), PSD_OK);
    }
    cr_assert(overlay.is_auto, "one site is as none");
    ps_overlay_job_done(&overlay);
    for (uint32_t i = 0; i < 4; i++) {
        ps_overlay_report_t report = turns_report(PS_POLICY_AUTO);

        report.rules.apart = true;
        cr_assert_eq(beat_turns(i, &report, NULL), PSD_OK);
        cr_assert_not(overlay.is_auto);
        cr_assert_eq(overlay.facts.parents[i], NODES, "nobody adds up");
    }
}

Test(overlay_job, turns_stay_within_sites)
{
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(beat_site(i, PS_POLICY_PAIRS, i == 0 || i == 3 ? "east" : "west"), PSD_OK);
    }
    for (uint32_t c = 0; c < overlay.facts.n_colours; c++) {
        const uint32_t *parents = overlay.facts.parents + c * 4;

        cr_assert((parents[0] == NODES && parents[3] == 0) ||
                  (parents[3] == NODES && parents[0] == 3));
        cr_assert((parents[1] == NODES && parents[2] == 1) ||
                  (parents[2] == NODES && parents[1] == 2));
    }
}

Test(overlay_job, people_see_where_workers_are)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    cr_assert_eq(beat_site(0, PS_POLICY_TREE, "east"), PSD_OK);
    cr_assert_eq(beat_site(1, PS_POLICY_TREE, ""), PSD_OK);
    cr_assert(ps_overlay_job_view(&overlay, NOW_US, doc));
    cr_assert(ps_doc_print(doc, &text));
    cr_assert(ps_buffer_append(&text, "", 1));
    cr_assert_not_null(strstr((const char *)text.data, "\"link\":\"plain\",\"site\":\"east\"}"));
    cr_assert_not_null(strstr((const char *)text.data, "\"worker\":1,\"relay\":\"tcp://h1:1\","
                                                       "\"link\":\"plain\"}"));
}

/* ---- many ---- */

#define CROWD (PS_OVERLAY_MATCHER_WORKERS + 1)

static psd_status_t beat_crowd(const ps_job_t *crowd, uint32_t worker,
                               const ps_overlay_report_t *report)
{
    char relay[32];
    const ps_overlay_beat_t said = {
        .relay = relay, .report = report, .unix_ms = 9, .now_us = CLOCK_US, .key = &key};

    (void)snprintf(relay, sizeof relay, "tcp://h%u:1", worker);
    return ps_overlay_job_beat(&overlay, crowd, &crowd->workers[worker], &said, NULL);
}

/* Too many for the matcher: a tree, or with few ways none. With one less it plays. */
Test(overlay_job, a_crowd_that_takes_turns_has_a_fixed_plan)
{
    static ps_worker_t many[CROWD];
    const ps_job_t crowd = {.id = 3, .name = "lr", .workers = many, .n_workers = CROWD};

    for (uint32_t is_listed = 0; is_listed < 2; is_listed++) {
        ps_overlay_report_t report = turns_report(PS_POLICY_PAIRS);

        ps_overlay_job_done(&overlay);
        report.rules.is_listed = is_listed == 1;
        for (uint32_t i = 0; i < CROWD; i++) {
            many[i] =
                (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
        }
        for (uint32_t i = 0; i < CROWD; i++) {
            cr_assert_eq(overlay.matcher.n_workers, i);
            cr_assert_eq(beat_crowd(&crowd, i, &report), PSD_OK);
        }
        cr_assert_eq(overlay.matcher.n_workers, 0);
        cr_assert_eq(overlay.facts.n_members, CROWD);
        cr_assert_eq(overlay.facts.n_colours, is_listed == 1 ? 1 : 4);
        for (uint32_t i = 0; i < CROWD; i++) {
            cr_assert(is_listed == 0 || overlay.facts.parents[i] == NODES);
        }
        cr_assert_eq(overlay.facts.parents[1], is_listed == 1 ? NODES : 0);
        report.clock = 1;
        cr_assert_eq(beat_crowd(&crowd, 0, &report), PSD_OK);
        many[5].state = PS_WORKER_LOST;
        cr_assert_eq(beat_crowd(&crowd, 0, &report), PSD_OK);
        cr_assert_eq(overlay.matcher.n_workers, CROWD - 1);
    }
}

/* ---- what does not fit ---- */

/* Of worker 0, who comes when worker 1 is there. */
static void check_misfit(const ps_overlay_report_t *other, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    char wanted[160];

    (void)snprintf(wanted, sizeof wanted, "%s; allowed: the same for all workers of a job", text);
    cr_assert_eq(beat_turns(0, other, err), PSD_JOB_MISMATCH);
    cr_assert_str_eq(psd_error_text(err), wanted);
}

Test(overlay_job, who_wants_something_else_hears_what)
{
    ps_overlay_report_t report = turns_report(PS_POLICY_PAIRS);
    ps_overlay_report_t other = turns_report(PS_POLICY_QUEUE);

    cr_assert_eq(beat_turns(1, &report, NULL), PSD_OK);
    check_misfit(&other, "PSD_OVERLAY of worker 0 is queue, and that of worker 1 is pairs");
    other = report;
    other.rules.is_listed = true;
    check_misfit(&other, "PSD_OVERLAY_LINKS of worker 0 is listed, and that of worker 1 is "
                         "complete");
    other = report;
    other.rules.both_ways = true;
    check_misfit(&other, "PSD_OVERLAY_DOWN of worker 0 is on, and that of worker 1 is off");
    other = report;
    other.rules.greed = 0.25;
    check_misfit(&other, "PSD_OVERLAY_GREED of worker 0 is 0.25, and that of worker 1 is 1");
    other = report;
    other.rules.expiry = 6;
    check_misfit(&other, "SET_BANDWIDTH_EXPIRATION of worker 0 is 6, and that of worker 1 is 5");
    other = report;
    other.rules.num = 3;
    check_misfit(&other, "SET_SCHEDULE_NUM of worker 0 is 3, and that of worker 1 is 4");
    other = report;
    other.rules.ratio = 0.5;
    cr_assert_eq(beat_turns(0, &other, NULL), PSD_OK, "a number stands above the ratio");
}

Test(overlay_job, workers_of_one_plan_say_the_same_of_sites)
{
    ps_overlay_report_t report = turns_report(PS_POLICY_TREE);
    ps_overlay_report_t other = report;

    cr_assert_eq(beat_turns(1, &report, NULL), PSD_OK);
    other.rules.between = true;
    check_misfit(&other, "PSD_OVERLAY_BETWEEN of worker 0 is tree, and that of worker 1 is off");
    other = report;
    other.rules.apart = true;
    check_misfit(&other, "PSD_OVERLAY_WITHIN of worker 0 is off, and that of worker 1 is tree");
}

Test(overlay_job, what_queue_does_not_go_by_may_differ)
{
    ps_overlay_report_t report = turns_report(PS_POLICY_QUEUE);

    cr_assert_eq(beat_turns(1, &report, NULL), PSD_OK);
    report.rules.num = 0;
    report.rules.ratio = 0.5;
    cr_assert_eq(beat_turns(0, &report, NULL), PSD_OK);
}

Test(overlay_job, a_ratio_that_counts_may_not_differ)
{
    ps_overlay_report_t report = turns_report(PS_POLICY_PAIRS);

    report.rules.num = 0;
    cr_assert_eq(beat_turns(1, &report, NULL), PSD_OK);
    report.rules.ratio = 0.5;
    check_misfit(&report, "SET_SCHEDULE_RATIO of worker 0 is 0.5, and that of worker 1 is 0.1");
}

Test(overlay_job, who_wants_something_else_is_in_no_plan)
{
    ps_overlay_report_t report = turns_report(PS_POLICY_PAIRS);
    ps_overlay_report_t other = turns_report(PS_POLICY_QUEUE);
    uint64_t version = 0;

    cr_assert_eq(beat_turns(1, &report, NULL), PSD_OK);
    cr_assert_eq(beat_turns(2, &report, NULL), PSD_OK);
    version = overlay.facts.version;
    cr_assert_eq(beat_turns(0, &other, NULL), PSD_JOB_MISMATCH);
    cr_assert_eq(beat(0, 0, 9), PSD_JOB_MISMATCH, "it says no rules: a tree");
    cr_assert_eq(overlay.facts.version, version);
    cr_assert_eq(overlay.facts.n_members, 2);
    workers[2].state = PS_WORKER_LOST;
    cr_assert_eq(beat_turns(0, &other, NULL), PSD_JOB_MISMATCH);
    cr_assert_eq(overlay.facts.version, version + 1, "worker 2 is gone");
    cr_assert_eq(overlay.facts.n_members, 1);
    workers[1].state = PS_WORKER_LOST;
    cr_assert_eq(beat_turns(0, &other, NULL), PSD_OK, "nobody wants anything else any more");
    cr_assert_eq(overlay.facts.members[0].worker, 0);
}

Test(overlay_job, pairs_without_memory_begins_again)
{
    ps_overlay_report_t report = turns_report(PS_POLICY_PAIRS);
    bool good = false;

    cr_assert_eq(beat_turns(0, &report, NULL), PSD_OK);
    for (size_t i = 0; !good; i++) {
        fail_alloc_at(i);
        good = beat_turns(1, &report, NULL) == PSD_OK;
        fail_alloc_off();
        cr_assert(good || overlay.facts.n_members == 0);
        cr_assert_eq(beat_turns(0, &report, NULL), PSD_OK);
    }
    cr_assert_eq(overlay.facts.n_members, 2);
}
