/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry.h: settings of the cluster, and the machine version that all
 * members of the registry know. */
#include "protocol/registry/command_code.h"
#include "protocol/registry/registry_accept.h"
#include "support/registry_test.h"

TestSuite(registry_setting, .init = make_registry, .fini = drop_registry);

static void set(ps_setting_id_t id, uint64_t value)
{
    do_planned(ps_registry_plan_setting(registry, id, &value, "v", 1, &command, err));
}

static void unset(ps_setting_id_t id)
{
    do_planned(ps_registry_plan_setting(registry, id, NULL, "", 1, &command, err));
}

Test(registry_setting, a_value_of_the_cluster_counts_until_it_is_unset)
{
    uint64_t own = 0;
    uint64_t same = 7777;

    make_cluster();
    own = ps_registry_setting(registry, PS_SETTING_REPAIR_AFTER);
    cr_assert_neq(own, same);
    cr_assert_not(ps_registry_is_set(registry, PS_SETTING_REPAIR_AFTER));
    set(PS_SETTING_REPAIR_AFTER, same);
    cr_assert(ps_registry_is_set(registry, PS_SETTING_REPAIR_AFTER));
    cr_assert_eq(ps_registry_setting(registry, PS_SETTING_REPAIR_AFTER), same);
    cr_assert_eq(ps_registry_own_setting(registry, PS_SETTING_REPAIR_AFTER), own);
    cr_assert_eq(registry->args.repair_after_ms, same, "decisions go by it");
    assert_nothing_to_do(ps_registry_plan_setting(registry, PS_SETTING_REPAIR_AFTER, &same, "7777",
                                                  1, &command, err));
    set(PS_SETTING_EVEN_OUT, 0);
    cr_assert(registry->args.rebalance_on_request);
    unset(PS_SETTING_REPAIR_AFTER);
    cr_assert_eq(ps_registry_setting(registry, PS_SETTING_REPAIR_AFTER), own);
    cr_assert(registry->args.rebalance_on_request, "the other one stays");
    assert_nothing_to_do(
        ps_registry_plan_setting(registry, PS_SETTING_REPAIR_AFTER, NULL, "", 1, &command, err));
}

Test(registry_setting, every_setting_can_be_set_and_has_a_key)
{
    make_cluster();
    for (int id = 1; id < PS_SETTING_END; id++) {
        cr_assert_not_null(ps_setting_key((ps_setting_id_t)id));
        set((ps_setting_id_t)id, id == PS_SETTING_EVEN_OUT ? 0 : 100U + (unsigned)id);
        cr_assert_eq(ps_registry_setting(registry, (ps_setting_id_t)id),
                     id == PS_SETTING_EVEN_OUT ? 0 : 100U + (unsigned)id, "%d", id);
    }
}

/* What is not set is not told: the node's file counts. */
Test(registry_setting, nodes_are_told_what_is_set)
{
    const ps_setting_t *settings = NULL;
    size_t n = 1;

    make_cluster();
    (void)ps_registry_settings(registry, &n);
    cr_assert_eq(n, 0);
    set(PS_SETTING_COPY_RATE, 0);
    set(PS_SETTING_SLOW_AFTER, 4000);
    settings = ps_registry_settings(registry, &n);
    cr_assert_eq(n, 2);
    cr_assert_eq(settings[0].id, PS_SETTING_COPY_RATE);
    cr_assert_eq(settings[0].value, 0, "no limit");
    cr_assert_eq(settings[1].value, 4000);
    cr_assert_eq(registry->args.unreached_after_ms, 4000);
    unset(PS_SETTING_COPY_RATE);
    settings = ps_registry_settings(registry, &n);
    cr_assert_eq(n, 1);
    cr_assert_eq(settings[0].id, PS_SETTING_SLOW_AFTER);
}

Test(registry_setting, one_that_cannot_be_stored_is_undone)
{
    const uint64_t value = 4711;
    uint64_t before = 0;
    uint64_t own = 0;

    make_cluster();
    before = ps_registry_hash(registry);
    own = ps_registry_setting(registry, PS_SETTING_LOST_AFTER);
    cr_assert_eq(
        ps_registry_plan_setting(registry, PS_SETTING_LOST_AFTER, &value, "4711", 1, &command, err),
        PSD_OK);
    cr_assert_eq(ps_registry_try(registry, &command, 1, err), PSD_OK);
    cr_assert_neq(ps_registry_hash(registry), before);
    ps_registry_undo(registry);
    cr_assert_eq(ps_registry_hash(registry), before);
    cr_assert_eq(ps_registry_setting(registry, PS_SETTING_LOST_AFTER), own);
}

Test(registry_setting, what_is_no_setting_does_not_fit)
{
    ps_command_t bad = {0};

    make_cluster();
    bad = ps_registry_command(registry, PS_COMMAND_SETTING, 1);
    bad.is_set = true;
    bad.setting = (ps_setting_t){.id = PS_SETTING_END, .value = 1};
    cr_assert_eq(ps_registry_apply(registry, &bad, 1, err), PSD_DAMAGED);
    bad.setting = (ps_setting_t){.id = PS_SETTING_LOST_AFTER, .value = 0};
    cr_assert_eq(ps_registry_apply(registry, &bad, 1, err), PSD_DAMAGED);
    bad.setting = (ps_setting_t){.id = PS_SETTING_MOVES_MAX, .value = UINT64_C(1) << 40};
    cr_assert_eq(ps_registry_apply(registry, &bad, 1, err), PSD_DAMAGED);
}

/* A cluster that an older psd made. */
Test(registry_setting, a_cluster_of_an_older_machine_has_none_until_it_is_raised)
{
    const uint64_t value = 7777;

    make_cluster();
    registry->cluster.sm_version = 1;
    cr_assert_eq(ps_registry_plan_setting(registry, PS_SETTING_REPAIR_AFTER, &value, "7777", 1,
                                          &command, err),
                 PSD_UNSUPPORTED);
    cr_assert_not_null(strstr(psd_error_text(err), "machine version 1"));
    psd_error_clear(err);
    assert_nothing_to_do(ps_registry_plan_machine(registry, 0, 1, &command, err));
    assert_nothing_to_do(ps_registry_plan_machine(registry, 1, 1, &command, err));
    assert_refused(ps_registry_plan_machine(registry, PS_SM_VERSION + 1, 1, &command, err),
                   PSD_INVALID, "machine version 7; this psd knows 1..6");
    do_planned(ps_registry_plan_machine(registry, 2, 1, &command, err));
    cr_assert_eq(ps_registry_machine(registry), 2);
    set(PS_SETTING_REPAIR_AFTER, value);
    assert_nothing_to_do(ps_registry_plan_machine(registry, 2, 1, &command, err));
}

static psd_status_t plan_summed(const char *name)
{
    ps_table_spec_t spec = fixture_spec(name);

    spec.combine = PS_COMBINE_CLOCK_SUM;
    return ps_registry_plan_table(registry, &spec, 1, &command, err);
}

static psd_status_t accept_summed(const char *name)
{
    ps_table_spec_t spec = fixture_spec(name);
    const ps_accept_t accept = {.table = 9, .spec = &spec, .with_loss = true};

    ps_table_spec_settle(&spec, 1);
    spec.combine = PS_COMBINE_CLOCK_SUM;
    return ps_registry_plan_accept(registry, &accept, 1, &command, err);
}

/* Older members know no `combine`: they could not read the commands. */
Test(registry_setting, nothing_is_added_up_before_all_members_know_that)
{
    const char *reason = "combine is clock-sum; supported: each: the registry is of machine "
                         "version 1, as a node that has a part of it runs an older psd";
    ps_command_t bad = {.kind = PS_COMMAND_SET, .combine = PS_COMBINE_CLOCK_SUM};

    make_cluster();
    start_node("n0", 7, 2);
    bad.number = make_table("w", 1)->id;
    registry->cluster.sm_version = 1;
    assert_refused(ps_registry_plan_set(registry, "w", PS_COMBINE_CLOCK_SUM, 1, &command, err),
                   PSD_UNSUPPORTED, reason);
    assert_refused(plan_summed("v"), PSD_UNSUPPORTED, reason);
    assert_refused(accept_summed("v"), PSD_UNSUPPORTED, reason);
    cr_assert_eq(ps_registry_apply(registry, &bad, 1, err), PSD_DAMAGED);
    psd_error_clear(err);
    registry->cluster.sm_version = 2;
    cr_assert_eq(plan_summed("v"), PSD_OK);
    registry->cluster.sm_version = 1;
    cr_assert_eq(ps_registry_apply(registry, &command, 1, err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), "combines before machine version 2"));
    psd_error_clear(err);
    registry->cluster.sm_version = 2;
    cr_assert_eq(ps_registry_apply(registry, &command, 1, err), PSD_OK);
    ps_command_done(&command);
    do_planned(ps_registry_plan_set(registry, "w", PS_COMBINE_CLOCK_SUM, 1, &command, err));
}

static uint8_t version_of(int kind)
{
    if (kind == PS_COMMAND_TABLE || kind == PS_COMMAND_SET) {
        return 4;
    }
    if (kind == PS_COMMAND_PRINCIPAL) {
        return 5;
    }
    return kind < PS_COMMAND_SETTING ? 2 : 3;
}

/* Kinds that older psds know keep their version, so that these read them. */
Test(registry_setting, commands_have_the_version_of_their_kind)
{
    for (int kind = PS_COMMAND_CLUSTER; kind <= PS_COMMAND_PRINCIPAL; kind++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(ps_command_done) ps_command_t read = {0};
        const ps_command_t written = {.kind = (ps_command_kind_t)kind};

        cr_assert(ps_command_encode(&written, &bytes));
        cr_assert_eq(bytes.data[4], version_of(kind), "%d", kind);
        bytes.data[4] = version_of(kind) == 3 ? 4 : 3;
        cr_assert_eq(ps_command_decode((ps_bytes_t){bytes.data, bytes.size}, &read, NULL),
                     PSD_VERSION, "%d", kind);
    }
}

/* So that older members take it. */
Test(registry_setting, a_table_that_combines_each_is_as_older_ones_write_it)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    const ps_command_t written = {.kind = PS_COMMAND_TABLE, .table.spec.combine = PS_COMBINE_EACH};

    cr_assert(ps_command_encode(&written, &bytes));
    cr_assert_eq(bytes.data[4], 2);
}
