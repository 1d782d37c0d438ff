/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_db.h: tables and jobs that come out of a checkpoint. */
#include "protocol/registry/registry_work.h"
#include "support/registry_db_test.h"

TestSuite(registry_db_restore, .init = make_temp, .fini = drop_temp);

Test(registry_db_restore, a_table_is_being_restored_until_that_is_stored)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    ps_command_t command = {0};
    ps_table_spec_t spec = fixture_spec("v");
    uint32_t id = 0;
    psd_status_t rc = PSD_OK;

    make_cluster(db, registry, "w");
    rc = ps_registry_plan_table(registry, &spec, 5, &command, err);
    command.table.restoring = true;
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_not(ps_registry_table(registry, "w")->restoring);
    cr_assert(ps_registry_table(registry, "v")->restoring);
    id = ps_registry_table(registry, "v")->id;
    rc = ps_registry_plan_restored(registry, id, 6, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    cr_assert_not(ps_registry_table(registry, "v")->restoring);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_not(ps_registry_table(registry, "v")->restoring);
    cr_assert_eq(ps_registry_plan_restored(registry, id, 6, &command, err), PSD_OK);
    cr_assert_eq(command.kind, 0, "it may be used already");
    command = (ps_command_t){.kind = PS_COMMAND_RESTORED, .epoch = 9, .number = id};
    cr_assert_eq(ps_registry_apply(registry, &command, 1, NULL), PSD_DAMAGED);
    cr_assert_eq(ps_registry_plan_restored(registry, 99, 6, &command, err), PSD_NO_TABLE);
}

/* A job of two workers behind clock 9, with slices 0, 1 and 4 of 6 done. */
static psd_status_t plan_resume(const ps_registry_t *registry, ps_command_t *command)
{
    static uint32_t done[] = {0, 1, 4};
    const ps_work_resumed_t queue = {
        .name = "input", .n_slices = 6, .n_epochs = 5, .epoch = 3, .done = done, .n_done = 3};
    const ps_resume_t resume = {
        .job = "lr", .n_workers = 2, .max_delay = 2, .clock = 9, .queues = &queue, .n_queues = 1};

    psd_error_clear(err);
    return ps_registry_plan_resume(registry, &resume, 5, command, err);
}

static psd_status_t join(ps_registry_db_t *db, ps_registry_t *registry, uint32_t worker)
{
    const ps_join_t is = {.job = "lr", .worker = worker, .n_workers = 2, .max_delay = 2};
    ps_command_t command = {0};
    psd_status_t rc = ps_registry_plan_join(registry, &is, 6, &command, err);

    rc = fixture_do(registry, rc, &command, 1000, store_in, db, err);
    if (rc == PSD_OK) {
        rc = ps_registry_plan_start(registry, 1, worker, NULL, NULL, 0, 6, &command, err);
    }
    return fixture_do(registry, rc, &command, 1000, store_in, db, err);
}

static bool has_silent(const ps_registry_t *registry, uint64_t now_ms)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};

    cr_assert_eq(ps_registry_plan_silent(registry, now_ms, 1, &command, err), PSD_OK);
    return command.kind != 0;
}

Test(registry_db_restore, a_job_goes_on_at_its_clock_with_what_was_not_done)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    ps_command_t command = {0};
    ps_queue_info_t info = {0};
    psd_status_t rc = PSD_OK;

    make_cluster(db, registry, "w");
    rc = plan_resume(registry, &command);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert(ps_registry_queue_at(registry, 1, 0, &info));
    cr_assert_str_eq(info.name, "input");
    cr_assert_eq(info.epoch, 3);
    cr_assert_eq(info.n_done, 3);
    cr_assert(ps_registry_slice_is_done(registry, 1, 0, 4));
    cr_assert_not(ps_registry_slice_is_done(registry, 1, 0, 2));
    cr_assert_not(has_silent(registry, UINT64_MAX - 1), "it waits for its first worker");
    cr_assert_eq(plan_resume(registry, &command), PSD_BUSY, "it runs");
    cr_assert_eq(join(db, registry, 1), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_registry_job(registry, "lr")->workers[1].start, 9);
    cr_assert_not(has_silent(registry, 1000 + FIXTURE_LOST_AFTER_MS - 1));
    cr_assert(has_silent(registry, 1000 + FIXTURE_JOIN_WITHIN_MS),
              "the other one is waited for from then on");
    cr_assert_eq(join(db, registry, 0), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_registry_job(registry, "lr")->workers[0].start, 9);
}

Test(registry_db_restore, a_queue_that_cannot_be_is_refused)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    uint32_t done[] = {1, 1, 2};
    ps_work_resumed_t queue = {.name = "q", .n_slices = 3, .epoch = 1, .done = done};
    const ps_resume_t resume = {.job = "lr", .n_workers = 1, .queues = &queue, .n_queues = 1};
    static const struct {
        uint32_t n_slices;
        uint64_t n_epochs;
        uint64_t epoch;
        uint32_t n_done;
    } cases[] = {{3, 0, 1, 2}, /* one of them twice */
                 {3, 0, 1, 3}, /* all are done */
                 {1, 0, 1, 1}, /* there is no slice 1 */
                 {3, 2, 4, 0}, /* behind its end */
                 {3, 0, 0, 0}, /* there is no epoch 0 */
                 {0, 0, 1, 0}, /* no slices */
                 {PS_WORK_SLICES_MAX + 1, 0, 1, 0}};

    make_cluster(db, registry, "w");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ps_command_t command = {0};

        queue.n_slices = cases[i].n_slices;
        queue.n_epochs = cases[i].n_epochs;
        queue.epoch = cases[i].epoch;
        queue.n_done = cases[i].n_done;
        psd_error_clear(err);
        cr_expect_eq(ps_registry_plan_resume(registry, &resume, 5, &command, err), PSD_INVALID,
                     "case %zu", i);
        cr_expect_eq(command.kind, 0);
    }
}
