/* SPDX-License-Identifier: Apache-2.0 */
/* server/metrics: the text of /metrics, and the words of /readyz. */
#include "server/metrics/metrics.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static const char *const KINDS[] = {"hello", "table_create"};
static ps_metrics_t *metrics;
static ps_buffer_t text;

static void make(bool names, uint32_t series)
{
    const ps_metrics_args_t args = {
        .n_shards = 2, .kinds = KINDS, .n_kinds = 2, .names = names, .series_max = series};

    cr_assert_eq(ps_metrics_new(&args, &metrics, NULL), PSD_OK);
}

static void finish(void)
{
    ps_buffer_done(&text);
    ps_metrics_destroy(&metrics);
}

TestSuite(metrics, .fini = finish);

static void print(void)
{
    ps_buffer_done(&text);
    cr_assert(ps_metrics_print(metrics, &text));
}

static bool has(const char *line)
{
    char whole[256];

    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    return strstr((const char *)text.data, whole) != NULL;
}

static bool mentions(const char *part)
{
    return strstr((const char *)text.data, part) != NULL;
}

Test(metrics, buckets_are_powers_of_two_of_a_microsecond)
{
    cr_expect_eq(ps_bucket_of(0), 0);
    cr_expect_eq(ps_bucket_of(1000), 0);
    cr_expect_eq(ps_bucket_of(1001), 1);
    cr_expect_eq(ps_bucket_of(2000), 1);
    cr_expect_eq(ps_bucket_of(2001), 2);
    cr_expect_eq(ps_bucket_of(UINT64_C(1000) << 26), 26);
    cr_expect_eq(ps_bucket_of((UINT64_C(1000) << 26) + 1), PS_BUCKETS);
    cr_expect_eq(ps_bucket_of(UINT64_MAX / 2), PS_BUCKETS);
}

Test(metrics, counters_and_gauges_are_shown_by_shard)
{
    make(false, 10);
    ps_count_add(ps_metrics_shard(metrics, 0)->counts.pushes, 3);
    ps_count_add(ps_metrics_shard(metrics, 1)->counts.pushes, 4);
    ps_count_add(&ps_metrics_shard(metrics, 1)->counts.refusals[PSD_NO_TABLE], 2);
    ps_count_add(&ps_metrics_control(metrics)->counts.requests[1], 5);
    ps_count_set(ps_metrics_shard(metrics, 0)->counts.lag_ms, 1250);
    print();
    cr_expect(has("psd_pushes_total{shard=\"0\"} 3"));
    cr_expect(has("psd_pushes_total{shard=\"1\"} 4"));
    cr_expect(has("psd_refusals_total{shard=\"1\",code=\"E2003\"} 2"));
    cr_expect(!mentions("psd_refusals_total{shard=\"0\""), "zeroes are not shown");
    cr_expect(has("psd_control_requests_total{kind=\"table_create\"} 5"));
    cr_expect(!mentions("kind=\"hello\""));
    cr_expect(has("psd_copy_lag_seconds{shard=\"0\"} 1.250"));
    cr_expect(has("psd_partitions{shard=\"0\",role=\"primary\"} 0"));
    cr_expect(mentions("# TYPE psd_pushes_total counter\n"));
    cr_expect_null(ps_metrics_shard(metrics, 2));
    cr_expect_null(ps_metrics_shard(NULL, 0));
}

Test(metrics, histograms_add_up)
{
    ps_histogram_t *handled = NULL;

    make(false, 10);
    handled = &ps_metrics_shard(metrics, 0)->counts.handled[PS_COUNTED_PULL];
    ps_histogram_add(handled, 1500);
    ps_histogram_add(handled, 1500);
    ps_histogram_add(handled, UINT64_C(100000000000));
    print();
    cr_expect(has("psd_request_seconds_bucket{shard=\"0\",request=\"pull\",le=\"1e-06\"} 0"));
    cr_expect(has("psd_request_seconds_bucket{shard=\"0\",request=\"pull\",le=\"2e-06\"} 2"));
    cr_expect(has("psd_request_seconds_bucket{shard=\"0\",request=\"pull\",le=\"67.108864\"} 2"));
    cr_expect(has("psd_request_seconds_bucket{shard=\"0\",request=\"pull\",le=\"+Inf\"} 3"));
    cr_expect(has("psd_request_seconds_sum{shard=\"0\",request=\"pull\"} 100.000003000"));
    cr_expect(has("psd_request_seconds_count{shard=\"0\",request=\"pull\"} 3"));
    cr_expect(!mentions("request=\"push\",le"));
}

/* A look of a shard at tables of these numbers, each with so many rows. */
static void look_at_tables(uint32_t shard, const uint32_t *tables, size_t n, uint64_t rows)
{
    ps_shard_look_t *look = ps_alloc(1, sizeof *look);

    look->tables = ps_alloc(n, sizeof *look->tables);
    look->n_tables = n;
    for (size_t i = 0; i < n; i++) {
        look->tables[i].table = tables[i];
        ps_count_set(look->tables[i].counts.rows, rows);
    }
    look = ps_box_put(&ps_metrics_shard(metrics, shard)->look, look);
    ps_shard_look_destroy(&look);
}

static void name_table(uint32_t id, const char *name)
{
    ps_cluster_look_t *look = ps_alloc(1, sizeof *look);

    look->tables = ps_alloc(1, sizeof *look->tables);
    look->n_tables = 1;
    look->tables[0].id = id;
    (void)snprintf(look->tables[0].name, sizeof look->tables[0].name, "%s", name);
    look = ps_box_put(&ps_metrics_control(metrics)->look, look);
    ps_cluster_look_destroy(&look);
}

Test(metrics, tables_are_summed_over_shards_and_the_rest_is_other)
{
    make(true, 2);
    look_at_tables(0, (uint32_t[]){9, 7, 8, 11}, 4, 10);
    look_at_tables(1, (uint32_t[]){7, 11}, 2, 5);
    name_table(7, "w");
    print();
    cr_expect(has("psd_table_rows{table=\"7\"} 15"));
    cr_expect(has("psd_table_rows{table=\"8\"} 10"));
    cr_expect(has("psd_table_rows{table=\"other\"} 25"));
    cr_expect(!mentions("table=\"9\""));
    cr_expect(has("psd_table_info{table=\"7\",name=\"w\"} 1"));
    cr_expect(!mentions("psd_table_info{table=\"8\""), "its name is not known");
    look_at_tables(1, (uint32_t[]){8}, 1, 1);
    print();
    cr_expect(has("psd_table_rows{table=\"7\"} 10"), "the newest look counts");
    cr_expect(has("psd_table_rows{table=\"8\"} 11"));
}

Test(metrics, names_are_shown_only_when_told)
{
    make(false, 10);
    look_at_tables(0, (uint32_t[]){7}, 1, 10);
    name_table(7, "hidden-name");
    print();
    cr_expect(has("psd_table_rows{table=\"7\"} 10"));
    cr_expect(!mentions("hidden-name"));
}

static void look_at_workers(uint32_t shard, const uint64_t (*workers)[3], size_t n)
{
    ps_shard_look_t *look = ps_alloc(1, sizeof *look);

    look->workers = ps_alloc(n, sizeof *look->workers);
    look->n_workers = n;
    for (size_t i = 0; i < n; i++) {
        look->workers[i].job = (uint32_t)workers[i][0];
        look->workers[i].worker = (uint32_t)workers[i][1];
        look->workers[i].is_here = true;
        ps_count_set(look->workers[i].counts.clock, workers[i][2]);
    }
    look = ps_box_put(&ps_metrics_shard(metrics, shard)->look, look);
    ps_shard_look_destroy(&look);
}

Test(metrics, a_worker_is_as_far_as_where_it_is_least_far)
{
    make(false, 10);
    look_at_workers(0, (const uint64_t[][3]){{1, 0, 7}, {1, 1, 4}, {2, 0, 1}}, 3);
    look_at_workers(1, (const uint64_t[][3]){{1, 0, 6}, {1, 1, 5}}, 2);
    print();
    cr_expect(has("psd_worker_clock{job=\"1\",worker=\"0\"} 6"));
    cr_expect(has("psd_worker_clock{job=\"1\",worker=\"1\"} 4"));
    cr_expect(has("psd_worker_staleness_clocks{job=\"1\",worker=\"0\"} 0"));
    cr_expect(has("psd_worker_staleness_clocks{job=\"1\",worker=\"1\"} 2"));
    cr_expect(has("psd_worker_clock{job=\"2\",worker=\"0\"} 1"));
    cr_expect(has("psd_worker_staleness_clocks{job=\"2\",worker=\"0\"} 0"));
}

static bool says(const char *line)
{
    bool done = true;
    bool is_ready = false;

    ps_buffer_done(&text);
    is_ready = ps_metrics_say_ready(metrics, &text, &done);
    cr_assert(done);
    cr_expect_eq(is_ready, strcmp(line, "ready\n") == 0);
    return strcmp((const char *)text.data, line) == 0;
}

Test(metrics, it_is_ready_when_all_that_is_here_is_served)
{
    make(false, 10);
    cr_expect(says("psd starts\n"));
    ps_metrics_set_stage(metrics, PS_STAGE_RECOVERING);
    cr_expect(says("the shards read their logs\n"));
    ps_metrics_set_stage(metrics, PS_STAGE_JOINING);
    cr_expect(says("the registry does not know of this start yet\n"));
    ps_metrics_set_stage(metrics, PS_STAGE_SERVING);
    cr_expect(says("ready\n"));
    ps_count_set(ps_metrics_shard(metrics, 1)->counts.headless, 1);
    cr_expect(says("shard 1: 1 partition has no primary now; the registry chooses one\n"));
    ps_count_set(ps_metrics_shard(metrics, 1)->counts.headless, 0);
    ps_count_set(ps_metrics_shard(metrics, 0)->counts.restoring, 2);
    cr_expect(says("shard 0: rows of 2 partitions are still read from a checkpoint\n"));
    ps_count_set(ps_metrics_shard(metrics, 0)->counts.restoring, 0);
    ps_metrics_set_stage(metrics, PS_STAGE_STOPPING);
    cr_expect(says("psd stops\n"));
}
