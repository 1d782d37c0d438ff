/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_db.h: which jobs a loss of rows ends, over a crash. */
#include "support/registry_db_test.h"

#define TABLE 1 /* w, all of it on n0 */

static ps_registry_db_t *db;
static ps_registry_t *registry;
static ps_command_t command;

static void do_planned(psd_status_t planned)
{
    cr_assert_eq(fixture_do(registry, planned, &command, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
}

static void start_node(const char *name, uint64_t incarnation)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node(name, incarnation, 2, shards);

    do_planned(ps_registry_plan_node(registry, &node, 2, &command, err));
}

static void start_job(const char *name)
{
    ps_join_t join = {.job = name, .n_workers = 1};

    do_planned(ps_registry_plan_join(registry, &join, 5, &command, err));
}

static void open_table(uint32_t job)
{
    do_planned(ps_registry_plan_job_table(registry, job, TABLE, 5, &command, err));
}

/* psd ends and starts again; what is loaded is what was there. */
static void load_again(void)
{
    PSD_AUTO(ps_free_at) char *before = fixture_dump(registry);
    PSD_AUTO(ps_free_at) char *after = NULL;

    ps_registry_destroy(&registry);
    ps_registry_db_close(&db);
    db = open_db();
    registry = load_db(db);
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
}

static void setup(void)
{
    make_temp();
    db = open_db();
    registry = load_db(db);
    make_cluster(db, registry, "w");
    cr_assert_eq(ps_registry_table(registry, "w")->id, TABLE);
}

static void teardown(void)
{
    ps_registry_destroy(&registry);
    ps_registry_db_close(&db);
    drop_temp();
}

TestSuite(registry_db_loss, .init = setup, .fini = teardown);

Test(registry_db_loss, a_job_is_told_by_the_next_start)
{
    start_job("a");
    open_table(1);
    start_node("n0", 8);
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    load_again();
    do_planned(ps_registry_plan_loss(registry, 5, &command, err));
    cr_expect_str_eq(ps_registry_job_state(registry, 1), "lost");
    load_again();
}

Test(registry_db_loss, what_was_acknowledged_stays_so_until_a_further_loss)
{
    start_node("n0", 10);
    do_planned(ps_registry_plan_ack(registry, "w", 6, &command, err));
    load_again();
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    cr_assert(ps_registry_table(registry, "w")->loss_acked);
    cr_assert_eq(ps_registry_plan_ack(registry, "w", 7, &command, err), PSD_OK);
    cr_assert_eq(command.kind, 0, "once is enough");
    cr_assert_eq(ps_registry_plan_ack(registry, "x", 7, &command, err), PSD_NO_TABLE);
    start_node("n0", 11);
    cr_assert_not(ps_registry_table(registry, "w")->loss_acked);
}

Test(registry_db_loss, a_table_may_be_opened_behind_its_loss)
{
    start_job("a");
    start_job("b");
    open_table(2);
    start_node("n0", 8);
    do_planned(ps_registry_plan_loss(registry, 5, &command, err));
    cr_expect_str_eq(ps_registry_job_state(registry, 2), "lost");
    open_table(1);
    load_again();
    start_node("n1", 9);
    cr_assert_eq(ps_registry_plan_loss(registry, 5, &command, err), PSD_OK);
    cr_assert_eq(command.kind, 0, "%s", command.text);
    load_again();
}
