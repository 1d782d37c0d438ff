/* SPDX-License-Identifier: Apache-2.0 */
/* registry_copies_test - a registry with three nodes, and checks of its
 * decisions, in a line each; for the Criterion tests of copies. */
#ifndef PS_TESTS_REGISTRY_COPIES_TEST_H
#define PS_TESTS_REGISTRY_COPIES_TEST_H

#include "protocol/placement/registry_decide.h"
#include "support/registry_test.h"

/* Three nodes of two shards, incarnations 1, 2, 3, and an even number of time.
 */
static inline void make_three_that(bool rebalance_on_request)
{
    ps_registry_args_t args = fixture_args();

    args.copies_max = 3;
    args.nodes_max = 4;
    args.rebalance_on_request = rebalance_on_request;
    now_ms = 1000;
    err = psd_error_new();
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    make_cluster();
    start_node("n0", 1, 2);
    start_node("n1", 2, 2);
    start_node("n2", 3, 2);
    now_ms += 1000; /* leases from before the start have ended */
    for (size_t i = 0; i < 3; i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);

        cr_assert_eq(ps_registry_node_beat(registry, node->name, node->incarnation, 0, now_ms, err),
                     PSD_OK);
    }
}

static inline void make_three(void)
{
    make_three_that(false);
}

static inline const ps_table_t *make_copied(const char *name, uint32_t n_partitions,
                                            uint32_t replicas)
{
    ps_table_spec_t spec = fixture_spec(name);

    spec.n_partitions = n_partitions;
    spec.replicas = replicas;
    do_planned(ps_registry_plan_table(registry, &spec, 3, &command, err));
    return ps_registry_table(registry, name);
}

static inline void beat(uint64_t incarnation, uint64_t max_epoch)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(registry, incarnation);

    cr_assert_eq(ps_registry_node_beat(registry, node->name, incarnation, max_epoch, now_ms, err),
                 PSD_OK);
}

static inline ps_decision_t decide(void)
{
    ps_decision_t decision;

    cr_assert_eq(ps_registry_decide(registry, now_ms, 9, &decision, err), PSD_OK);
    return decision;
}

/* Checks that the next decision is a command with that text, and applies it. */
static inline void assert_commits(const char *text)
{
    ps_decision_t decision = decide();

    cr_assert_eq(decision.kind, PS_DECIDE_COMMIT);
    cr_assert_str_eq(decision.command.text, text);
    cr_assert_eq(ps_registry_apply(registry, &decision.command, now_ms, err), PSD_OK, "%s",
                 psd_error_text(err));
    ps_decision_done(&decision);
}

static inline void assert_rests(void)
{
    ps_decision_t decision = decide();

    cr_assert_eq(decision.kind, PS_DECIDE_NOTHING, "%s", decision.command.text);
}

/* Partition 0 is asked, on n nodes; the first is given. */
static inline void assert_asks(uint32_t n, uint64_t first)
{
    PSD_AUTO(ps_decision_done) ps_decision_t decision = decide();

    cr_assert_eq(decision.kind, PS_DECIDE_FENCE);
    cr_assert_eq(decision.n_fences, 1);
    cr_assert_eq(decision.fences[0].partition, 0);
    cr_assert_eq(decision.fences[0].epoch, ps_registry_epoch(registry));
    cr_assert_eq(decision.fences[0].n, n);
    cr_assert_eq(decision.fences[0].to[0], first);
}

static inline bool say(ps_report_kind_t kind, uint64_t from, uint64_t copy)
{
    ps_report_t report = {
        .kind = kind, .table = 1, .epoch = ps_registry_epoch(registry), .incarnation = copy};

    return ps_registry_report(registry, from, &report);
}

/* Its last record has that lsn and is of that epoch. */
static inline bool answer_of(uint64_t incarnation, uint64_t lsn_epoch, uint64_t lsn)
{
    ps_report_t position = {.kind = PS_REPORT_POSITION,
                            .table = 1,
                            .epoch = ps_registry_epoch(registry),
                            .lsn = lsn,
                            .lsn_epoch = lsn_epoch};

    return ps_registry_fenced(registry, incarnation, &position);
}

static inline bool answer(uint64_t incarnation, uint64_t lsn)
{
    return answer_of(incarnation, 0, lsn);
}
#endif
