/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry.h: what a member does when it begins to lead, and
 * what is known of requests that are repeated. */
#include "protocol/placement/registry_decide.h"
#include "support/registry_test.h"

TestSuite(registry_term, .init = make_registry, .fini = drop_registry);

static void apply(ps_registry_t *to, const ps_command_t *step)
{
    cr_assert_eq(ps_registry_apply(to, step, 50, err), PSD_OK, "%s", psd_error_text(err));
}

static ps_registry_t *make_member(void)
{
    ps_registry_args_t args = fixture_args();
    ps_registry_t *member = NULL;

    cr_assert_eq(ps_registry_new(&args, &member, err), PSD_OK);
    return member;
}

/* Both members apply what one of them planned. */
static void apply_both(ps_registry_t *first, ps_registry_t *second, psd_status_t planned,
                       ps_command_t *step)
{
    cr_assert_eq(planned, PSD_OK, "%s", psd_error_text(err));
    if (step->kind != 0) {
        apply(first, step);
        apply(second, step);
    }
    ps_command_done(step);
    cr_assert_eq(ps_registry_hash(first), ps_registry_hash(second));
}

/* Two members lead in turn, each gives what it can: no number comes twice, and
 * they grow. */
Test(registry_term, no_session_is_given_by_two_leaders)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *a = make_member();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *b = make_member();
    ps_command_t step = {0};
    ps_id_t uuid = fixture_uuid();
    uint64_t last = 0;

    apply_both(a, b, ps_registry_plan_cluster(a, "psd", &uuid, 1, &step, err), &step);
    for (uint64_t term = 1; term <= 6; term++) {
        ps_registry_t *leader = term % 2 == 0 ? b : a;
        uint64_t session = 0;

        apply_both(a, b, ps_registry_plan_term(leader, term, 7 + term % 2, 1, &step, err), &step);
        cr_assert_eq(ps_registry_take_session(leader), 0, "the block of before is burnt");
        cr_assert_geq(ps_registry_old_sessions(leader), last);
        apply_both(a, b, ps_registry_plan_sessions(leader, 10, 1, &step, err), &step);
        for (uint64_t i = 0; i < term; i++) {
            session = ps_registry_take_session(leader);
            cr_assert_gt(session, last);
            last = session;
        }
    }
}

static void make_restoring(const char *name)
{
    ps_table_spec_t spec = fixture_spec(name);
    ps_command_t step = {0};

    cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &step, err), PSD_OK);
    step.table.restoring = true;
    apply(registry, &step);
    ps_command_done(&step);
}

static void begin(void)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 7, 2, shards);
    ps_table_spec_t spec = fixture_spec("w");
    ps_id_t uuid = fixture_uuid();
    ps_command_t step = {0};

    cr_assert_eq(ps_registry_plan_cluster(registry, "psd", &uuid, 1, &step, err), PSD_OK);
    apply(registry, &step);
    cr_assert_eq(ps_registry_plan_node(registry, &node, 2, &step, err), PSD_OK);
    apply(registry, &step);
    ps_command_done(&step);
    cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &step, err), PSD_OK);
    apply(registry, &step);
    ps_command_done(&step);
}

Test(registry_term, tables_whose_restore_was_cut_off_go)
{
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    ps_command_t step = {0};

    begin();
    make_restoring("r1");
    make_restoring("r2");
    cr_assert_eq(ps_registry_plan_term(registry, 3, 9, 4, &step, err), PSD_OK);
    cr_assert_not_null(strstr(step.text, "term 3 begins, member 9 leads"));
    cr_assert_not_null(strstr(step.text, "table r1 was being restored: it is dropped"));
    cr_assert_not_null(strstr(step.text, "table r2 was being restored: it is dropped"));
    cr_assert_gt(step.epoch, ps_registry_epoch(registry));
    before = fixture_dump(registry);
    cr_assert_eq(ps_registry_try(registry, &step, 5, err), PSD_OK);
    ps_registry_undo(registry);
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
    apply(registry, &step);
    cr_assert_eq(ps_registry_n_tables(registry), 1);
    cr_assert_not_null(ps_registry_table(registry, "w"));
    cr_assert_eq(ps_registry_last_table(registry), 3, "their numbers are not given again");
}

/* What the member itself had heard before is no proof of life. */
Test(registry_term, who_lives_is_not_known)
{
    const ps_join_t join = {.job = "lr", .worker = 0, .n_workers = 1};
    ps_command_t step = {0};
    uint64_t seen_ms = 0;
    uint64_t clock = 0;

    begin();
    cr_assert_eq(ps_registry_plan_join(registry, &join, 4, &step, err), PSD_OK);
    apply(registry, &step);
    ps_command_done(&step);
    cr_assert_eq(ps_registry_heartbeat(registry, 1, 0, 1, 5, 20, err), PSD_OK);
    cr_assert(ps_registry_node(registry, "n0")->up);
    cr_assert_eq(ps_registry_plan_term(registry, 1, 9, 4, &step, err), PSD_OK);
    cr_assert_eq(step.epoch, ps_registry_epoch(registry), "the map is the same");
    apply(registry, &step);
    cr_assert_not(ps_registry_node(registry, "n0")->up);
    cr_assert_eq(ps_registry_node(registry, "n0")->started_ms, 50);
    cr_assert_not(ps_registry_last_seen(registry, 1, 0, &seen_ms, &clock));
    cr_assert_eq(ps_registry_deadline(registry), 50 + FIXTURE_LOST_AFTER_MS);
}

/* The overseer of the new lead tells nodes that know nothing all workers of a job. */
Test(registry_term, what_changed_in_a_job_is_still_known)
{
    const ps_join_t join = {.job = "lr", .worker = 0, .n_workers = 2};
    ps_command_t step = {0};
    ps_job_t job = {0};

    begin();
    cr_assert_eq(ps_registry_plan_join(registry, &join, 4, &step, err), PSD_OK);
    apply(registry, &step);
    ps_command_done(&step);
    cr_assert_eq(ps_registry_plan_term(registry, 1, 9, 4, &step, err), PSD_OK);
    apply(registry, &step);
    cr_assert(ps_registry_job_changes(registry, 1, 0, &job));
    cr_expect_eq(job.n_workers, 2);
    ps_job_done(&job);
}

/* A node is there from 50 on; this member hears the nodes from 100 on. */
static void listen(void)
{
    ps_registry_args_t args = fixture_args();

    args.suspect_after_ms = 400;
    ps_registry_destroy(&registry);
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    begin();
    ps_registry_listen(registry, 100);
}

static void lead_at(uint64_t at_ms)
{
    ps_command_t step = {0};

    cr_assert_eq(ps_registry_plan_term(registry, 1, 9, 4, &step, err), PSD_OK);
    cr_assert_eq(ps_registry_apply(registry, &step, at_ms, err), PSD_OK);
}

/* A member that hears the nodes itself knows who lives, … */
Test(registry_term, who_lives_is_what_a_member_has_heard)
{
    const ps_node_t *node = NULL;

    listen();
    node = ps_registry_node(registry, "n0");
    cr_assert_eq(ps_registry_node_beat(registry, "n0", node->incarnation, 0, 150, err), PSD_OK);
    lead_at(200);
    node = ps_registry_node(registry, "n0");
    cr_assert(node->up);
    cr_assert_eq(node->last_seen_ms, 150);
    cr_assert_eq(node->started_ms, 50, "it did not start again");
    cr_assert(ps_registry_knows_nodes(registry, 200));
}

/* … and since when others are silent. */
Test(registry_term, who_was_not_heard_is_silent_since_the_member_listens)
{
    listen();
    lead_at(200);
    cr_assert_not(ps_registry_node(registry, "n0")->up);
    cr_assert_eq(ps_registry_node(registry, "n0")->last_seen_ms, 100);
    cr_assert_not(ps_registry_knows_nodes(registry, 499));
    cr_assert(ps_registry_knows_nodes(registry, 501));
}

/* While the member itself was paused it could not hear them. */
Test(registry_term, a_pause_of_the_member_is_no_silence_of_nodes)
{
    const ps_node_t *node = NULL;

    listen();
    node = ps_registry_node(registry, "n0");
    cr_assert_eq(ps_registry_node_beat(registry, "n0", node->incarnation, 0, 150, err), PSD_OK);
    ps_registry_listen(registry, 160);
    ps_registry_listen(registry, 5000);
    lead_at(5001);
    cr_assert_geq(ps_registry_node(registry, "n0")->last_seen_ms, 4900);
}

Test(registry_term, what_is_no_term_is_refused)
{
    ps_command_t step = {0};
    static const uint64_t bad[][2] = {{0, 1}, {1, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX}};

    begin();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        psd_error_clear(err);
        cr_assert_eq(ps_registry_plan_term(registry, bad[i][0], bad[i][1], 1, &step, err),
                     PSD_INVALID);
        step = (ps_command_t){.kind = PS_COMMAND_TERM,
                              .epoch = ps_registry_epoch(registry),
                              .number = bad[i][0],
                              .member = bad[i][1]};
        psd_error_clear(err);
        cr_assert_eq(ps_registry_apply(registry, &step, 1, err), PSD_DAMAGED);
    }
}

/* ---- outcomes ---- */

static ps_command_t note_for(uint64_t session, uint64_t request, uint64_t detail)
{
    ps_command_t step = ps_registry_plan_note(registry, 5, "a note");

    step.session = session;
    step.request = request;
    step.detail = detail;
    return step;
}

Test(registry_term, an_outcome_says_what_was_made)
{
    const ps_outcome_t *outcome = NULL;
    ps_table_spec_t spec = fixture_spec("v");
    ps_command_t step = {0};

    begin();
    cr_assert_null(ps_registry_answer(registry, 3, 4));
    cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &step, err), PSD_OK);
    step.session = 3;
    step.request = UINT64_MAX;
    step.detail = 77;
    apply(registry, &step);
    ps_command_done(&step);
    outcome = ps_registry_answer(registry, 3, UINT64_MAX);
    cr_assert_not_null(outcome);
    cr_assert_eq(outcome->kind, PS_COMMAND_TABLE);
    cr_assert_eq(outcome->number, 2);
    cr_assert_eq(outcome->detail, 77);
    cr_assert_null(ps_registry_answer(registry, 3, 4));
    cr_assert_null(ps_registry_answer(registry, 4, UINT64_MAX));
    cr_assert_eq(ps_registry_plan_drop(registry, "v", 3, &step, err), PSD_OK);
    step.session = 3;
    step.request = UINT64_MAX;
    apply(registry, &step);
    cr_assert_eq(ps_registry_answer(registry, 3, UINT64_MAX)->kind, PS_COMMAND_DROP, "the newest");
    cr_assert_eq(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_DRAINING, false, 1, &step, err),
        PSD_OK);
    step.session = 5;
    apply(registry, &step);
    cr_assert_eq(ps_registry_answer(registry, 5, 0)->number, 1, "the node's id");
    cr_assert_eq(registry->n_outcomes, 3);
}

Test(registry_term, the_last_outcomes_are_kept)
{
    uint64_t n = 3 * PS_OUTCOMES_KEPT / 2;

    begin();
    for (uint64_t i = 1; i <= n; i++) {
        ps_command_t step = note_for(1 + i % 7, i, 0);
        uint64_t hash = ps_registry_hash(registry);

        cr_assert_eq(ps_registry_try(registry, &step, 1, err), PSD_OK);
        if (i % 500 == 0) {
            ps_registry_undo(registry);
            cr_assert_eq(ps_registry_hash(registry), hash);
            cr_assert_null(ps_registry_answer(registry, 1 + i % 7, i));
            apply(registry, &step);
        } else {
            ps_registry_keep(registry);
        }
    }
    for (uint64_t i = 1; i <= n; i++) {
        const ps_outcome_t *outcome = ps_registry_answer(registry, 1 + i % 7, i);

        cr_assert_eq(outcome != NULL, i > n - PS_OUTCOMES_KEPT, "%llu", (unsigned long long)i);
        cr_assert(outcome == NULL || outcome->id == i);
    }
}

Test(registry_term, an_outcome_of_no_session_is_refused)
{
    ps_command_t step = {0};

    begin();
    step = note_for(UINT64_MAX, 1, 0);
    cr_assert_eq(ps_registry_apply(registry, &step, 1, err), PSD_DAMAGED);
    cr_assert_eq(registry->n_outcomes, 0);
}
