/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/placement/registry_decide.h: nodes are evened out only when that is asked for.
 */
#include "support/registry_copies_test.h"

#define LEASE_MS 300 /* the registry's default */

static void make_three_that_wait(void)
{
    make_three_that(true);
}

TestSuite(registry_even, .init = make_three_that_wait, .fini = drop_registry);

/* Every copy that is catching up has caught up. false: there was none. */
static bool tell_caught_up(const ps_table_t *table)
{
    bool found = false;

    for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
        const ps_copies_t *copies = &table->copies[k];

        for (uint32_t i = 1; i < copies->n; i++) {
            const ps_report_t report = {.kind = PS_REPORT_CAUGHT_UP,
                                        .table = table->id,
                                        .partition = k,
                                        .epoch = copies->epoch,
                                        .incarnation = copies->at[i].incarnation};

            if (copies->at[i].state == PS_COPY_CATCHING_UP) {
                found = ps_registry_report(registry, copies->at[0].incarnation, &report) || found;
            }
        }
    }
    return found;
}

static void answer_fences(const ps_decision_t *decision)
{
    for (size_t i = 0; i < decision->n_fences; i++) {
        const ps_fence_t *fence = &decision->fences[i];
        const ps_report_t position = {.kind = PS_REPORT_POSITION,
                                      .table = fence->table,
                                      .partition = fence->partition,
                                      .epoch = fence->epoch,
                                      .lsn = 50};

        for (uint32_t k = 0; k < fence->n; k++) {
            (void)ps_registry_fenced(registry, fence->to[k], &position);
        }
    }
}

/* Nodes and primaries do at once what they are to do, until nothing is left
 * that could be done now. Time stands still. */
static void go_until_rest(const ps_table_t *table)
{
    for (int i = 0; i < 500; i++) {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = decide();

        if (decision.kind == PS_DECIDE_NOTHING && !tell_caught_up(table)) {
            return;
        }
        if (decision.kind == PS_DECIDE_COMMIT) {
            cr_assert_eq(ps_registry_apply(registry, &decision.command, now_ms, err), PSD_OK, "%s",
                         psd_error_text(err));
        }
        answer_fences(&decision);
    }
    cr_assert_fail("no rest");
}

static uint32_t n_primaries(const ps_table_t *table, uint64_t incarnation)
{
    uint32_t n = 0;

    for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
        n += table->copies[k].at[0].incarnation == incarnation ? 1 : 0;
    }
    return n;
}

/* What was asked for was forgotten where primaries could not move yet. */
Test(registry_even, primaries_move_when_a_node_that_has_just_started_may_lead)
{
    const ps_table_t *table = make_copied("w", 12, 2);

    start_node("n3", 4, 2);
    beat(4, 0);
    go_until_rest(table);
    cr_assert_eq(n_primaries(table, 4), 0, "nobody has asked");
    ps_registry_even_out(registry);
    go_until_rest(table);
    cr_assert_eq(n_primaries(table, 4), 0, "it may not lead yet");
    now_ms += LEASE_MS;
    for (uint64_t i = 1; i <= 4; i++) {
        beat(i, 0);
    }
    go_until_rest(table);
    cr_assert_eq(n_primaries(table, 4), 3);
}
