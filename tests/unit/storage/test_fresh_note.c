/* SPDX-License-Identifier: Apache-2.0 */
/* Logs that are new stay so until a start with them has joined, whatever
 * happens between. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "storage/log/fresh_note.h"
#include "support/sim_disk.h"

#define DIR "data"
#define OPS_MAX 20 /* more than a start takes */

static sim_disk_t *sim;
static ps_fresh_note_t note; /* of the start under way */

static void begin(void)
{
    sim = sim_disk_new(1);
}

static void finish(void)
{
    ps_fresh_note_done(&note);
    sim_disk_destroy(&sim);
}

TestSuite(fresh_note, .init = begin, .fini = finish);

static psd_status_t settle(uint32_t n_shards, bool *ret_is_fresh)
{
    psd_status_t rc = PSD_OK;

    ps_fresh_note_done(&note);
    rc = ps_fresh_note_settle(sim_disk_face(sim), DIR, n_shards, &note, NULL);
    *ret_is_fresh = note.is_fresh;
    return rc;
}

static bool is_fresh(uint32_t n_shards)
{
    bool fresh = false;

    cr_assert_eq(settle(n_shards, &fresh), PSD_OK);
    return fresh;
}

/* As a journal does; what fails has no effect. */
static void open_log(const char *path, const char *dir)
{
    ps_disk_t *disk = sim_disk_face(sim);

    if (disk->make_dir(disk, dir, NULL) == PSD_OK) {
        (void)!ps_disk_make(disk, dir, path, (ps_bytes_t){NULL, 0}, NULL, NULL);
    }
}

static void open_logs(void)
{
    open_log(DIR "/log-0/log-flushed", DIR "/log-0");
    open_log(DIR "/log-1/log-flushed", DIR "/log-1");
}

static void join(void)
{
    cr_assert_eq(ps_fresh_note_remove(&note, sim_disk_face(sim), DIR, NULL), PSD_OK);
}

static psd_status_t take_back(void)
{
    return ps_fresh_note_take_back(&note, sim_disk_face(sim), DIR, NULL);
}

Test(fresh_note, logs_are_kept_when_a_start_with_them_has_joined)
{
    cr_expect(is_fresh(2), "there are none");
    open_logs();
    cr_expect(is_fresh(2), "nobody has heard of them");
    join();
    cr_expect_not(is_fresh(2));
    join();
    cr_expect_not(is_fresh(2), "another start");
}

Test(fresh_note, one_that_was_lost_makes_all_of_them_new)
{
    (void)is_fresh(2);
    open_logs();
    join();
    sim_disk_drop(sim, DIR "/log-1/log-flushed");
    cr_expect(is_fresh(2));
    open_logs();
    cr_expect(is_fresh(2), "a start that did not join made it");
    join();
    cr_expect_not(is_fresh(2));
    cr_expect(is_fresh(3), "one more shard");
}

Test(fresh_note, a_log_is_there_by_any_of_its_files)
{
    static const char *const names[] = {"log-0000000000000003.seg", "snap-7-0-0-6.rows",
                                        "table-7.spec"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[64];

        (void)is_fresh(2);
        open_logs();
        join();
        (void)snprintf(path, sizeof path, DIR "/log-1/%s", names[i]);
        open_log(path, DIR "/log-1");
        sim_disk_drop(sim, DIR "/log-1/log-flushed");
        cr_expect_not(is_fresh(2), "%s", names[i]);
        cr_expect_not(sim_disk_has(sim, DIR "/logs-new"), "%s", names[i]);
        sim_disk_drop(sim, path);
        cr_expect(is_fresh(2), "without %s", names[i]);
        cr_assert_eq(take_back(), PSD_OK);
    }
}

Test(fresh_note, a_start_that_nobody_heard_of_takes_back_what_it_made)
{
    (void)is_fresh(1);
    open_log(DIR "/log-0/log-flushed", DIR "/log-0");
    join();
    cr_expect(is_fresh(2), "one more shard");
    open_logs();
    cr_assert_eq(take_back(), PSD_OK);
    cr_expect_eq(sim_disk_count(sim), 1);
    cr_expect(sim_disk_has(sim, DIR "/log-0/log-flushed"));
    cr_expect_not(is_fresh(1), "as before");
    cr_expect(is_fresh(2));
    open_logs();
    join();
    cr_assert_eq(take_back(), PSD_OK);
    cr_expect_not(is_fresh(2), "they are the node's");
}

Test(fresh_note, a_note_of_before_is_not_taken_back)
{
    (void)is_fresh(2);
    open_logs();
    cr_expect(is_fresh(2));
    cr_assert_eq(take_back(), PSD_OK);
    cr_expect(is_fresh(2));
    cr_expect(sim_disk_has(sim, DIR "/log-1/log-flushed"));
}

Test(fresh_note, what_was_written_to_is_not_taken_back)
{
    (void)is_fresh(2);
    open_logs();
    open_log(DIR "/log-0/table-7.spec", DIR "/log-0");
    cr_assert_eq(take_back(), PSD_OK);
    cr_expect(is_fresh(2), "its note stays");
    cr_expect(sim_disk_has(sim, DIR "/log-0/log-flushed"));
}

/* Nor does a crash while they are taken back make them old ones. */
Test(fresh_note, taking_back_may_be_cut_short)
{
    for (uint64_t op = 0; op < OPS_MAX; op++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            sim_disk_destroy(&sim);
            sim = sim_disk_new(seed);
            (void)is_fresh(2);
            open_logs();
            sim_disk_plan(sim, sim_disk_ops(sim) + op, 1, SIM_DISK_CRASH);
            (void)!take_back();
            sim_disk_restart(sim);
            cr_assert(is_fresh(2), "operation %d", (int)op);
        }
    }
}

Test(fresh_note, new_logs_are_never_taken_for_old_ones_behind_a_crash)
{
    for (uint64_t op = 0; op < OPS_MAX; op++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            bool fresh = false;

            sim_disk_destroy(&sim);
            sim = sim_disk_new(seed);
            sim_disk_plan(sim, op, 1, SIM_DISK_CRASH);
            if (settle(2, &fresh) == PSD_OK) {
                open_logs();
            }
            sim_disk_restart(sim);
            cr_assert(is_fresh(2), "operation %d", (int)op);
        }
    }
}

Test(fresh_note, a_disk_that_fails_is_said)
{
    bool fresh = false;

    sim_disk_plan(sim, 0, OPS_MAX, SIM_DISK_FAIL);
    cr_expect_eq(settle(2, &fresh), PSD_IO);
    sim_disk_plan(sim, 0, 0, SIM_DISK_SOUND);
    cr_expect(is_fresh(2));
    open_logs();
    sim_disk_plan(sim, sim_disk_ops(sim), 1, SIM_DISK_FAIL);
    cr_expect_eq(ps_fresh_note_remove(&note, sim_disk_face(sim), DIR, NULL), PSD_IO);
    cr_expect(is_fresh(2));
}
