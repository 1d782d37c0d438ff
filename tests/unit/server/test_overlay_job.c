/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/nodes/overlay_job.h: who passes deltas on, and by which plan. */
#include "server/nodes/overlay_job.h"

#include <criterion/criterion.h>

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

    return ps_overlay_job_beat(&overlay, &job, &workers[worker], relays[worker], clock, 0, unix_ms,
                               &key, NULL);
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
    cr_assert_eq(
        ps_overlay_job_beat(&overlay, &job, &workers[0], "tcp://h0:1", 3, known, 1000, &key, NULL),
        PSD_OK);
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

    cr_assert_eq(
        ps_overlay_job_beat(&overlay, &job, &workers[0], "ipc:///tmp/x", 0, 0, 1, &key, err),
        PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "a relay at \"ipc:///tmp/x\"; allowed: tcp://HOST:PORT");
    cr_assert_eq(overlay.facts.version, 0);
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
