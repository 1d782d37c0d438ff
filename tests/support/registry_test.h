/* SPDX-License-Identifier: Apache-2.0 */
/* registry_test - shared by the Criterion tests of the registry: one
 * registry for a test, plans executed as a shell does, refusals by their
 * text. */
#ifndef PS_TESTS_REGISTRY_TEST_H
#define PS_TESTS_REGISTRY_TEST_H

#include <criterion/criterion.h>

#include "support/registry_fixture.h"

static psd_error_t *err;
static ps_registry_t *registry;
static ps_command_t command;
static uint64_t now_ms;

static inline void make_registry(void)
{
    ps_registry_args_t args = fixture_args();

    now_ms = 0;
    err = psd_error_new();
    cr_assert_not_null(err);
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
}

static inline void drop_registry(void)
{
    ps_command_done(&command);
    ps_registry_destroy(&registry);
    cr_assert_null(registry);
    psd_error_destroy(&err);
}

/* Executes a plan as a shell does. */
static inline void do_planned(psd_status_t planned)
{
    cr_assert_eq(fixture_do(registry, planned, &command, now_ms, NULL, NULL, err), PSD_OK, "%s",
                 psd_error_text(err));
}

static inline void assert_refused(psd_status_t got, psd_status_t status, const char *text)
{
    cr_assert_eq(got, status, "%s", psd_error_text(err));
    cr_assert_eq(psd_error_status(err), status);
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert_eq(command.kind, 0, "a refused plan is no command");
    psd_error_clear(err);
}

static inline void assert_nothing_to_do(psd_status_t got)
{
    cr_assert_eq(got, PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(command.kind, 0);
}

static inline void make_cluster(void)
{
    ps_id_t uuid = fixture_uuid();

    do_planned(ps_registry_plan_cluster(registry, "psd", &uuid, 1, &command, err));
}

static inline void start_node(const char *name, uint64_t incarnation, uint32_t n_shards)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node(name, incarnation, n_shards, shards);

    do_planned(ps_registry_plan_node(registry, &node, 2, &command, err));
}

static inline const ps_table_t *make_table(const char *name, uint32_t n_partitions)
{
    ps_table_spec_t spec = fixture_spec(name);

    spec.n_partitions = n_partitions;
    do_planned(ps_registry_plan_table(registry, &spec, 3, &command, err));
    return ps_registry_table(registry, name);
}

/* Jobs: a cluster with one node first (fits .init). */

static inline void make_registry_with_node(void)
{
    make_registry();
    make_cluster();
    start_node("n0", 7, 2);
}

static inline psd_status_t plan_join(const char *job, uint32_t worker, uint32_t n,
                                     int32_t max_delay)
{
    ps_join_t join = {.job = job, .worker = worker, .n_workers = n, .max_delay = max_delay};

    return ps_registry_plan_join(registry, &join, 5, &command, err);
}

static inline psd_status_t plan_attach(const char *job, uint32_t worker)
{
    ps_join_t join = {.job = job, .worker = worker, .attach = true};

    return ps_registry_plan_join(registry, &join, 5, &command, err);
}

static inline psd_status_t plan_end(uint32_t job, uint32_t worker, ps_worker_state_t state)
{
    return ps_registry_plan_end(registry, job, worker, state, 5, &command, err);
}

static inline psd_status_t plan_start(uint32_t job, uint32_t worker)
{
    return ps_registry_plan_start(registry, job, worker, NULL, NULL, 0, 5, &command, err);
}

static inline const ps_worker_t *worker_of(const char *job, uint32_t worker)
{
    const ps_worker_t *found = ps_job_worker(ps_registry_job(registry, job), worker);

    cr_assert_not_null(found);
    return found;
}

/* Joins and starts; reports no clocks. */
static inline void run_worker(const char *job, uint32_t worker, uint32_t n, int32_t max_delay)
{
    do_planned(plan_join(job, worker, n, max_delay));
    do_planned(plan_start(ps_registry_job(registry, job)->id, worker));
}

static inline void end_worker(const char *job, uint32_t worker, ps_worker_state_t state)
{
    do_planned(plan_end(ps_registry_job(registry, job)->id, worker, state));
}
#endif
