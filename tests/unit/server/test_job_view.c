/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/nodes/job_view.h: whose push a relay has, and for whom it waits. */
#include "server/nodes/job_view.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "base/alloc.h"
#include "support/registry_fixture.h"

#define N 4
#define TABLE 8 /* with partition 0: a tree of the first colour, 1 to 0, 3 to 2, 2 to 0 */
#define NOW_MS 9000

static ps_worker_t workers[N];
static const ps_id_t key = {{7}};
static const ps_job_t job = {.id = 3, .name = "lr", .workers = workers, .n_workers = N};
static ps_watch_t watch;
static ps_worker_view_t seen[N];
static ps_job_view_t view;
static ps_registry_t *registry;

static void open_job(void)
{
    const ps_registry_args_t args = fixture_args();

    cr_assert_eq(ps_registry_new(&args, &registry, NULL), PSD_OK);
    for (uint32_t i = 0; i < N; i++) {
        char relay[32];
        const ps_overlay_beat_t beat = {.relay = relay, .unix_ms = 1, .key = &key};

        workers[i] =
            (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
        seen[i] = (ps_worker_view_t){.is = &workers[i], .clock = 6};
        (void)snprintf(relay, sizeof relay, "tcp://h%u:1", i);
        ps_watch_worker(&watch, i, 1)->clock = 6;
        ps_watch_find(&watch, i)->clock_ms = NOW_MS - 1200 - 100 * i;
        cr_assert_eq(ps_overlay_job_beat(&watch.overlay, &job, &workers[i], &beat, NULL), PSD_OK);
    }
    view = (ps_job_view_t){
        .registry = registry, .job = &job, .workers = seen, .now_ms = NOW_MS, .watch = &watch};
    seen[1].wait = PS_WAIT_PULL;
    seen[1].table = TABLE;
    seen[1].for_clock = 6;
    seen[1].adds_up = true;
}

static void close_job(void)
{
    ps_registry_destroy(&registry);
    ps_overlay_job_done(&watch.overlay);
    ps_free(watch.workers);
    watch = (ps_watch_t){.job = 0};
}

TestSuite(job_view, .init = open_job, .fini = close_job);

/* What worker 1 hears of that one. */
static void says(uint32_t other, const char *wanted)
{
    char text[PS_HOLDER_SIZE];

    ps_job_view_print(&view, &seen[1], other, 5, text);
    cr_assert_str_eq(text, wanted, "%s, not %s", text, wanted);
}

Test(job_view, a_push_is_where_somebody_is_waited_for)
{
    seen[3].clock = 5;
    ps_watch_find(&watch, 3)->clock = 5;
    says(1, "its own push (with the relay of worker 0 for 1.3 s, which waits for worker 3)");
    says(0, "the push of worker 0 (with the relay of worker 0 for 1.2 s, which waits for worker "
            "3)");
    says(2, "the push of worker 2 (with the relay of worker 2 for 1.4 s, which waits for worker "
            "3)");
}

Test(job_view, a_push_that_waits_for_nobody_goes_on)
{
    says(1, "its own push (with the relay of worker 0 for 1.3 s, which goes on to the node)");
    seen[1].partition = 1; /* another tree */
    says(0, "the push of worker 0 (with the relay of worker 1 for 1.2 s, which goes on to the "
            "node)");
}

Test(job_view, a_push_is_with_no_relay_for_long)
{
    view.now_ms += 10000;
    says(3, "worker 3 at clock 5");
}

Test(job_view, pushes_of_other_tables_go_directly)
{
    seen[1].adds_up = false;
    says(3, "worker 3 at clock 5");
}

Test(job_view, nobody_waits_for_a_worker_that_is_lost)
{
    seen[3].clock = 5;
    ps_watch_find(&watch, 3)->clock = 5;
    workers[3].state = PS_WORKER_LOST;
    says(1, "its own push (with the relay of worker 0 for 1.3 s, which goes on to the node)");
}

/* Its last heartbeat came before it had finished the clock whose end it pulls. */
Test(job_view, who_pulls_has_finished_its_clock)
{
    seen[1].clock = 5;
    seen[1].since_ms = NOW_MS - 300;
    ps_watch_find(&watch, 1)->clock = 5;
    says(1, "its own push (with the relay of worker 0 for 0.3 s, which goes on to the node)");
}
