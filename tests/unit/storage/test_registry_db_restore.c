/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry_db.h: tables and jobs that come out of a checkpoint. */
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
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_not(ps_registry_table(registry, "w")->restoring);
    cr_assert(ps_registry_table(registry, "v")->restoring);
    id = ps_registry_table(registry, "v")->id;
    rc = ps_registry_plan_restored(registry, id, 6, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    cr_assert_not(ps_registry_table(registry, "v")->restoring);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_not(ps_registry_table(registry, "v")->restoring);
    cr_assert_eq(ps_registry_plan_restored(registry, id, 6, &command, err),
                 PSD_OK);
    cr_assert_eq(command.kind, 0, "it may be used already");
    command =
        (ps_command_t){.kind = PS_COMMAND_RESTORED, .epoch = 9, .number = id};
    cr_assert_eq(ps_registry_apply(registry, &command, 1, NULL), PSD_DAMAGED);
    cr_assert_eq(ps_registry_plan_restored(registry, 99, 6, &command, err),
                 PSD_NO_TABLE);
}
