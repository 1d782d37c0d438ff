/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/overlay/overlay_pilot.h: star or tree, by what was measured. Eight workers push 10 MB
 * each over one link of 12.5 MB/s, and pull as much: 12.8 s a clock in the star. */
#include "protocol/overlay/overlay_pilot.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define WORKERS 8
#define MB 1000000.0
#define STAR_S 12.8
#define TREE_S 7.2

typedef struct job {
    ps_overlay_pilot_t pilot;
    uint64_t clock;
    uint64_t at_us;
    double bytes;     /* pushed in a clock */
    double sent;      /* so far */
    double star_s;    /* how long a clock takes in the star … */
    double tree_s;    /* … and in a tree */
    double up_s;      /* of a push in the star */
    uint64_t link_us; /* of a quarter of it between two workers */
    unsigned n_changes;
} job_t;

static const uint32_t positions[WORKERS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void open_job(job_t *job)
{
    *job = (job_t){
        .bytes = 10 * MB, .star_s = STAR_S, .tree_s = TREE_S, .up_s = STAR_S / 2, .link_us = 20000};
    cr_assert_eq(ps_overlay_pilot_begin(&job->pilot, WORKERS, NULL), PSD_OK);
    cr_assert_not(job->pilot.choice.uses_tree);
}

/* One clock, and what is said of it. */
static void do_clock(job_t *job)
{
    ps_overlay_pilot_t *pilot = &job->pilot;
    bool is_tree = pilot->choice.uses_tree;
    ps_overlay_said_t said = {.has_plan = true};
    bool changed = false;

    job->clock++;
    job->sent += job->bytes;
    job->at_us += (uint64_t)((is_tree ? job->tree_s : job->star_s) * 1e6);
    for (uint32_t i = 0; i < WORKERS; i++) {
        uint32_t to = is_tree ? pilot->plan.parents[i] : PS_OVERLAY_NODES;

        if (to == PS_OVERLAY_NODES) {
            ps_overlay_pilot_link(pilot, i, WORKERS, (uint64_t)job->bytes,
                                  (uint64_t)(job->up_s * 1e6 / (is_tree ? WORKERS : 1)));
        } else {
            ps_overlay_pilot_link(pilot, i, to, (uint64_t)job->bytes / 4, job->link_us);
        }
    }
    said.clock = job->clock;
    said.at_us = job->at_us;
    said.now_us = job->at_us;
    said.bytes = (uint64_t)job->sent;
    cr_assert_eq(ps_overlay_pilot_heard(pilot, positions, &said, &changed, NULL), PSD_OK);
    job->n_changes += changed ? 1 : 0;
    cr_assert(changed || pilot->choice.uses_tree == is_tree);
}

static void do_clocks(job_t *job, int n)
{
    for (int i = 0; i < n; i++) {
        do_clock(job);
    }
}

static ps_overlay_why_t why(const ps_overlay_pilot_t *pilot)
{
    uint32_t worker = 0;

    return ps_overlay_pilot_why(pilot, &worker);
}

Test(overlay_pilot, a_tree_that_promises_enough_is_taken_and_kept)
{
    job_t job;

    open_job(&job);
    do_clocks(&job, 3);
    cr_assert_not(job.pilot.choice.uses_tree, "nothing is measured yet");
    cr_assert_eq(why(&job.pilot), PS_WHY_NEW);
    do_clock(&job);
    cr_assert_eq(why(&job.pilot), PS_WHY_NONE);
    cr_assert(job.pilot.choice.uses_tree);
    cr_assert_float_eq(job.pilot.plan.star_s, STAR_S, 0.01);
    cr_assert_lt(job.pilot.plan.seconds, STAR_S / PS_OVERLAY_GAIN);
    cr_assert_eq(job.pilot.plan.n_colours, PS_OVERLAY_COLOURS);
    do_clocks(&job, 200);
    cr_assert(job.pilot.choice.uses_tree);
    cr_assert_leq(job.n_changes, 4, "it changed %u times", job.n_changes);
    cr_assert_gt(ps_overlay_pilot_rate(&job.pilot, 0, 1) + ps_overlay_pilot_rate(&job.pilot, 1, 0),
                 0);
    ps_overlay_pilot_done(&job.pilot);
}

Test(overlay_pilot, a_tree_that_does_not_deliver_is_left_and_tried_more_and_more_seldom)
{
    unsigned n_tree = 0;
    job_t job;

    open_job(&job);
    job.tree_s = STAR_S * 1.1;
    for (int i = 0; i < 1000; i++) {
        do_clock(&job);
        n_tree += job.pilot.choice.uses_tree ? 1 : 0;
    }
    cr_assert_geq(job.n_changes, 6);
    cr_assert_eq(why(&job.pilot), PS_WHY_WAIT);
    cr_assert_lt(n_tree, 100, "%u of 1000 clocks were slow", n_tree);
    ps_overlay_pilot_done(&job.pilot);
}

/* Each tree has links that nobody has used before. */
Test(overlay_pilot, links_that_are_slower_than_guessed_bring_few_plans)
{
    job_t job;

    open_job(&job);
    job.link_us = 4000000;
    do_clocks(&job, 1000);
    cr_assert_leq(job.n_changes, 14, "it changed %u times", job.n_changes);
    ps_overlay_pilot_done(&job.pilot);
}

/* Reports that are as many as a worker likes. */
Test(overlay_pilot, plans_are_not_more_often_than_the_registrys_clock_allows)
{
    uint64_t last_us = 0;
    unsigned n_plans = 0;
    bool changed = false;
    job_t job;

    open_job(&job);
    for (uint64_t i = 1; i < 2000; i++) {
        /* It says 3 s a clock, of which its pushes take 0.1 s, every 10 ms. */
        const ps_overlay_said_t said = {.clock = i,
                                        .at_us = i * 3000000,
                                        .now_us = i * 10000,
                                        .bytes = i * 10000000,
                                        .has_plan = true};

        for (uint32_t k = 0; k < WORKERS; k++) {
            ps_overlay_pilot_link(&job.pilot, k, WORKERS, 10000000, 100000);
        }
        cr_assert_eq(ps_overlay_pilot_heard(&job.pilot, positions, &said, &changed, NULL), PSD_OK);
        cr_assert_not(changed);
        if (job.pilot.planned_us != last_us) {
            cr_assert(n_plans == 0 || said.now_us >= last_us + PS_OVERLAY_LONG_US);
            last_us = job.pilot.planned_us;
            n_plans++;
        }
    }
    cr_assert_geq(n_plans, 2);
    cr_assert_leq(n_plans, 4, "%u plans in 20 s", n_plans);
    ps_overlay_pilot_done(&job.pilot);
}

Test(overlay_pilot, many_workers_or_one_are_a_star_that_measures_nothing)
{
    const ps_overlay_said_t said = {.clock = 1, .at_us = 1, .now_us = 1, .has_plan = true};
    const uint32_t numbers[] = {1, PS_OVERLAY_PILOT_WORKERS + 1};
    ps_overlay_pilot_t pilot = {.n_workers = 0};
    bool changed = false;

    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(ps_overlay_pilot_begin(&pilot, numbers[i], NULL), PSD_OK);
        cr_assert_eq(pilot.rates, NULL);
        cr_assert_eq(why(&pilot), i == 0 ? PS_WHY_ALONE : PS_WHY_LARGE);
        cr_assert_eq(pilot.own, NULL);
        cr_assert_eq(pilot.plan.n_workers, numbers[i]);
        cr_assert_eq(pilot.plan.n_colours, 1);
        for (uint32_t k = 0; k < numbers[i]; k++) {
            cr_assert_eq(pilot.plan.parents[k], PS_OVERLAY_NODES);
        }
        ps_overlay_pilot_link(&pilot, 0, numbers[i], 1000000, 1);
        cr_assert_eq(ps_overlay_pilot_rate(&pilot, 0, numbers[i]), 0);
        cr_assert_eq(ps_overlay_pilot_heard(&pilot, positions, &said, &changed, NULL), PSD_OK);
        cr_assert_not(changed);
    }
    ps_overlay_pilot_done(&pilot);
}

/* The program computes less than before: the tree is much worse than the star is by now. */
Test(overlay_pilot, the_star_is_measured_again_now_and_then)
{
    unsigned n_tree = 0;
    job_t job;

    open_job(&job);
    do_clocks(&job, 10);
    cr_assert(job.pilot.choice.uses_tree);
    job.star_s = 1;
    job.up_s = 0.05;
    do_clocks(&job, PS_OVERLAY_CHECK);
    cr_assert_not(job.pilot.choice.uses_tree);
    cr_assert_float_eq(job.pilot.star_s, 1, 0.01);
    for (int i = 0; i < 100; i++) {
        do_clock(&job);
        n_tree += job.pilot.choice.uses_tree ? 1 : 0;
    }
    cr_assert_eq(n_tree, 0);
    ps_overlay_pilot_done(&job.pilot);
}

Test(overlay_pilot, a_small_model_stays_in_the_star)
{
    job_t job;

    open_job(&job);
    job.bytes = 65536;
    do_clocks(&job, 100);
    cr_assert_eq(job.n_changes, 0);
    cr_assert_eq(why(&job.pilot), PS_WHY_SMALL);
    ps_overlay_pilot_done(&job.pilot);
}

Test(overlay_pilot, where_computing_takes_the_time_it_stays_in_the_star)
{
    uint32_t worker = 0;
    job_t job;

    open_job(&job);
    job.star_s = 60;
    do_clocks(&job, 100);
    cr_assert_eq(job.n_changes, 0);
    cr_assert_eq(why(&job.pilot), PS_WHY_GAIN);
    cr_assert_geq(job.pilot.tree_s * PS_OVERLAY_GAIN, job.pilot.star_s);
    job.pilot.tree_s = 0;
    cr_assert_eq(why(&job.pilot), PS_WHY_PAUSE, "another star, soon after a tree");
    job.pilot.own[2] = 0;
    cr_assert_eq(ps_overlay_pilot_why(&job.pilot, &worker), PS_WHY_UNKNOWN);
    cr_assert_eq(worker, 2);
    ps_overlay_pilot_done(&job.pilot);
}

/* Clocks of 100 ms, of which each report brings some. */
Test(overlay_pilot, clocks_may_be_short)
{
    job_t job;
    bool changed = false;

    open_job(&job);
    for (uint64_t i = 1; i < 6 && !changed; i++) {
        const ps_overlay_said_t said = {.clock = i * 5,
                                        .at_us = i * 500000,
                                        .now_us = i * 500000,
                                        .bytes = i * 5 * 3000000,
                                        .has_plan = true};

        for (uint32_t k = 0; k < WORKERS; k++) {
            ps_overlay_pilot_link(&job.pilot, k, WORKERS, 5 * 3000000, 450000);
        }
        cr_assert_eq(ps_overlay_pilot_heard(&job.pilot, positions, &said, &changed, NULL), PSD_OK);
    }
    cr_assert(changed);
    cr_assert_float_eq(job.pilot.clock_s, 0.1, 0.001);
    cr_assert_float_eq(job.pilot.bytes, 3000000, 1);
    ps_overlay_pilot_done(&job.pilot);
}

Test(overlay_pilot, who_comes_or_goes_begins_with_the_star)
{
    job_t job;

    open_job(&job);
    do_clocks(&job, 5);
    cr_assert(job.pilot.choice.uses_tree);
    cr_assert_eq(ps_overlay_pilot_begin(&job.pilot, WORKERS - 1, NULL), PSD_OK);
    cr_assert_not(job.pilot.choice.uses_tree);
    cr_assert_eq(job.pilot.plan.n_workers, WORKERS - 1);
    for (uint32_t i = 0; i < WORKERS - 1; i++) {
        cr_assert_eq(job.pilot.plan.parents[i], PS_OVERLAY_NODES);
    }
    cr_assert_eq(ps_overlay_pilot_begin(&job.pilot, 0, NULL), PSD_OK);
    cr_assert_eq(job.pilot.plan.parents, NULL);
    ps_overlay_pilot_link(&job.pilot, 0, 0, 1000000, 1);
    cr_assert_eq(ps_overlay_pilot_rate(&job.pilot, 0, 0), 0);
    ps_overlay_pilot_done(&job.pilot);
}

Test(overlay_pilot, without_memory_the_plan_stays)
{
    job_t job;
    bool changed = false;
    psd_status_t rc = PSD_NOMEM;

    open_job(&job);
    do_clocks(&job, 3);
    for (size_t i = 0; rc != PSD_OK; i++) {
        const ps_overlay_said_t said = {.clock = job.clock + 1 + i,
                                        .at_us = job.at_us + (i + 1) * 12800000,
                                        .now_us = job.at_us + (i + 1) * 12800000,
                                        .bytes = (uint64_t)job.sent + (i + 1) * 10000000,
                                        .has_plan = true};

        fail_alloc_at(i);
        rc = ps_overlay_pilot_heard(&job.pilot, positions, &said, &changed, NULL);
        fail_alloc_off();
        cr_assert(rc == PSD_OK || (rc == PSD_NOMEM && !changed));
        cr_assert_eq(job.pilot.choice.uses_tree, changed);
    }
    cr_assert(changed);
    ps_overlay_pilot_done(&job.pilot);
}
