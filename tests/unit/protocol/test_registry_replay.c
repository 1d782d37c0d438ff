/* SPDX-License-Identifier: Apache-2.0 */
/* ps_registry is a state machine: its state follows from its commands, plans
 * change nothing, and a lack of memory leaves it as it was. */
#include "support/fail_alloc.h"
#include "support/registry_walk.h"
#include "support/registry_test.h"

TestSuite(registry_replay, .init = make_registry, .fini = drop_registry);

Test(registry_replay, same_commands_give_the_same_state)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *first = NULL;
        PSD_AUTO(ps_registry_destroy) ps_registry_t *second = NULL;
        ps_registry_args_t args = fixture_args();
        walk_t walk = {.rng = {seed}};
        int n_done = 0;

        args.copies_max = FIXTURE_COPIES_MAX;
        cr_assert_eq(ps_registry_new(&args, &first, err), PSD_OK);
        cr_assert_eq(ps_registry_new(&args, &second, err), PSD_OK);
        for (int i = 0; i < 900; i++) {
            PSD_AUTO(ps_command_done) ps_command_t step = {0};

            if (walk_plan(&walk, first, &step, NULL) != PSD_OK || step.kind == 0) {
                continue;
            }
            psd_error_clear(err);
            cr_assert_eq(ps_registry_apply(first, &step, 1, err), PSD_OK, "%s",
                         psd_error_text(err));
            cr_assert_eq(ps_registry_apply(second, &step, 2, err), PSD_OK);
            cr_assert_eq(ps_registry_take_session(first), ps_registry_take_session(second));
            n_done++;
        }
        {
            PSD_AUTO(ps_free_at) char *a = fixture_dump(first);
            PSD_AUTO(ps_free_at) char *b = fixture_dump(second);

            cr_assert_str_eq(a, b);
        }
        cr_assert_gt(n_done, 100, "most of a life is no refusal");
    }
}

Test(registry_replay, plans_change_nothing)
{
    walk_t walk = {.rng = {99}};

    for (int i = 0; i < 400; i++) {
        PSD_AUTO(ps_command_done) ps_command_t step = {0};
        PSD_AUTO(ps_free_at) char *before = fixture_dump(registry);
        psd_status_t rc = walk_plan(&walk, registry, &step, NULL);
        PSD_AUTO(ps_free_at) char *after = fixture_dump(registry);

        cr_assert_str_eq(before, after);
        if (rc == PSD_OK && step.kind != 0) {
            cr_assert_neq(step.text[0], '\0', "history is for people");
            cr_assert_eq(ps_registry_apply(registry, &step, 1, err), PSD_OK);
        }
    }
}

/* Memory */

/* Whatever fails, the state is that of before or of after. */
static psd_status_t live_a_life(void *fixture)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *self = NULL;
    ps_registry_args_t args = fixture_args();
    walk_t walk = {.rng = {*(uint64_t *)fixture}};
    psd_status_t rc = PSD_OK;

    args.copies_max = FIXTURE_COPIES_MAX;
    rc = ps_registry_new(&args, &self, NULL);

    for (int i = 0; i < 60 && rc == PSD_OK; i++) {
        PSD_AUTO(ps_command_done) ps_command_t step = {0};

        rc = walk_plan(&walk, self, &step, NULL);
        if (rc == PSD_NOMEM) {
            cr_assert_eq(step.kind, 0);
        } else if (rc == PSD_OK && step.kind != 0) {
            uint64_t epoch = ps_registry_epoch(self);
            size_t n = ps_registry_n_tables(self) + ps_registry_n_jobs(self);

            rc = ps_registry_apply(self, &step, 1, NULL);
            if (rc != PSD_OK) {
                cr_assert_eq(ps_registry_epoch(self), epoch);
                cr_assert_eq(ps_registry_n_tables(self) + ps_registry_n_jobs(self), n);
                /* the shell tries again */
                cr_assert_eq(ps_registry_apply(self, &step, 1, NULL), PSD_OK);
            }
        } else {
            rc = PSD_OK; /* refused, as may be */
        }
    }
    return rc;
}

Test(registry_replay, no_memory_is_said_and_nothing_changes_or_leaks)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        cr_assert_null(fail_alloc_sweep(live_a_life, &seed));
    }
}
