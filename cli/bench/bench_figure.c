/* SPDX-License-Identifier: Apache-2.0 */
/* Results, for programs and for people. */
#include "cli/bench/bench_figure.h"

#include "cli/machine/bench_stats.h"
#include "cli/output/json_text.h"

#define WIDE true

const ps_column_t ps_bench_columns_rate[] = {{"WHAT", "what", PS_UNIT_NONE, false},
                                             {"TRANSPORT", "transport", PS_UNIT_NONE, false},
                                             {"KEYS", "keys", PS_UNIT_NONE, false},
                                             {"FLOATS", "floats", PS_UNIT_NONE, false},
                                             {"BYTES", "bytes", PS_UNIT_BYTES, false},
                                             {"GOODPUT", "goodput_bytes_s", PS_UNIT_RATE, false},
                                             {"KEYS/S", "keys_s", PS_UNIT_NONE, false},
                                             {"REQUESTS/S", "requests_s", PS_UNIT_NONE, false},
                                             {"RATIO", "ratio", PS_UNIT_NONE, false},
                                             {"LIMIT", "limit", PS_UNIT_NONE, WIDE},
                                             {"LOW", "min_bytes_s", PS_UNIT_RATE, WIDE},
                                             {"HIGH", "max_bytes_s", PS_UNIT_RATE, WIDE},
                                             {"IN_FLIGHT", "in_flight", PS_UNIT_NONE, WIDE},
                                             {"WORKERS", "workers", PS_UNIT_NONE, WIDE},
                                             {"P50", "p50_s", PS_UNIT_SECONDS, WIDE},
                                             {"P99", "p99_s", PS_UNIT_SECONDS, WIDE},
                                             {"REPEATS", "repeats", PS_UNIT_NONE, WIDE},
                                             {NULL, NULL, PS_UNIT_NONE, false}};

const ps_column_t ps_bench_columns_time[] = {{"WHAT", "what", PS_UNIT_NONE, false},
                                             {"TRANSPORT", "transport", PS_UNIT_NONE, false},
                                             {"P50", "p50_s", PS_UNIT_SECONDS, false},
                                             {"P99", "p99_s", PS_UNIT_SECONDS, false},
                                             {"P99.9", "p999_s", PS_UNIT_SECONDS, false},
                                             {"MAX", "max_s", PS_UNIT_SECONDS, false},
                                             {"RATIO", "ratio", PS_UNIT_NONE, false},
                                             {"LIMIT", "limit", PS_UNIT_NONE, WIDE},
                                             {"REQUESTS", "requests", PS_UNIT_NONE, WIDE},
                                             {"REPEATS", "repeats", PS_UNIT_NONE, WIDE},
                                             {NULL, NULL, PS_UNIT_NONE, false}};

const ps_column_t ps_bench_columns_suite[] = {
    {"SECTION", "section", PS_UNIT_NONE, false},
    {"WHAT", "what", PS_UNIT_NONE, false},
    {"TRANSPORT", "transport", PS_UNIT_NONE, false},
    {"KEYS", "keys", PS_UNIT_NONE, false},
    {"FLOATS", "floats", PS_UNIT_NONE, false},
    {"ROWS", "rows", PS_UNIT_NONE, false},
    {"IN_FLIGHT", "in_flight", PS_UNIT_NONE, false},
    {"WORKERS", "workers", PS_UNIT_NONE, false},
    {"SHARDS", "shards", PS_UNIT_NONE, false},
    {"GOODPUT", "goodput_bytes_s", PS_UNIT_RATE, false},
    {"KEYS/S", "keys_s", PS_UNIT_NONE, false},
    {"REQUESTS/S", "requests_s", PS_UNIT_NONE, false},
    {"P50", "p50_s", PS_UNIT_SECONDS, false},
    {"P99", "p99_s", PS_UNIT_SECONDS, false},
    {"P99.9", "p999_s", PS_UNIT_SECONDS, false},
    {"RATIO", "ratio", PS_UNIT_NONE, false},
    {"LIMIT", "limit", PS_UNIT_NONE, false},
    {"MAX", "max_s", PS_UNIT_SECONDS, WIDE},
    {"ROW_OVERHEAD", "row_overhead_bytes", PS_UNIT_BYTES, WIDE},
    {"LOW", "min_requests_s", PS_UNIT_NONE, WIDE},
    {"HIGH", "max_requests_s", PS_UNIT_NONE, WIDE},
    {"REPEATS", "repeats", PS_UNIT_NONE, WIDE},
    {NULL, NULL, PS_UNIT_NONE, false}};

json_t *ps_bench_rounded(double value)
{
    return value < 100 ? json_real((double)(int64_t)(value * 100 + 0.5) / 100)
                       : json_integer((json_int_t)value);
}

/* A member; fails when the value is NULL. */
static bool set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

static bool set_shape(json_t *figure, const ps_bench_case_t *one)
{
    const ps_bench_shape_t *shape = &one->shape;

    return set(figure, "section", json_string(one->section)) &&
           set(figure, "what", json_string(ps_bench_kind_name(shape->kind))) &&
           set(figure, "transport", json_string(one->team->transport)) &&
           set(figure, "keys", json_integer((json_int_t)shape->n_keys)) &&
           set(figure, "floats", json_integer((json_int_t)shape->n_cols)) &&
           set(figure, "rows", json_integer((json_int_t)shape->n_rows)) &&
           set(figure, "key_kind", json_string(shape->hash ? "hash" : "range")) &&
           set(figure, "bytes", json_integer((json_int_t)ps_bench_bytes(shape))) &&
           set(figure, "in_flight", json_integer(shape->in_flight)) &&
           set(figure, "workers", json_integer(one->team->n)) &&
           (one->n_shards == 0 || set(figure, "shards", json_integer(one->n_shards)));
}

static bool set_rates(json_t *figure, ps_bench_case_t *one)
{
    double bytes = (double)ps_bench_bytes(&one->shape);
    double keys = (double)one->shape.n_keys;
    ps_bench_stat_t rate = ps_bench_stat_of(one->requests_s.values, one->requests_s.n);

    return set(figure, "goodput_bytes_s", ps_bench_rounded(rate.median * bytes)) &&
           set(figure, "keys_s", ps_bench_rounded(rate.median * keys)) &&
           set(figure, "requests_s", ps_bench_rounded(rate.median)) &&
           set(figure, "min_requests_s", ps_bench_rounded(rate.min)) &&
           set(figure, "max_requests_s", ps_bench_rounded(rate.max)) &&
           set(figure, "min_bytes_s", ps_bench_rounded(rate.min * bytes)) &&
           set(figure, "max_bytes_s", ps_bench_rounded(rate.max * bytes)) &&
           set(figure, "requests", json_integer((json_int_t)one->n)) &&
           set(figure, "repeats", json_integer((json_int_t)one->requests_s.n));
}

static double median_of(ps_bench_series_t *series)
{
    return ps_bench_stat_of(series->values, series->n).median;
}

/* Seconds, as whole nanoseconds. */
static json_t *seconds(double value)
{
    return json_real((double)(int64_t)(value * 1e9 + 0.5) / 1e9);
}

static bool set_times(json_t *figure, ps_bench_case_t *one)
{
    return set(figure, "p50_s", seconds(median_of(&one->p50_s))) &&
           set(figure, "p99_s", seconds(median_of(&one->p99_s))) &&
           set(figure, "p999_s", seconds(median_of(&one->p999_s))) &&
           set(figure, "max_s", seconds(one->max_s));
}

static bool set_limit(json_t *figure, ps_bench_case_t *one)
{
    const char *name = ps_limit_name(one->limits[0]);
    double ratio = median_of(&one->ratio);

    if (one->n_limits > 1) {
        name = "ring_or_add_bytes_s";
    }
    return set(figure, "limit", json_string(name)) &&
           set(figure, "limit_value", json_real(median_of(&one->limit))) &&
           set(figure, "ratio", json_real((double)(int64_t)(ratio * 10000 + 0.5) / 10000));
}

psd_status_t ps_bench_figure_add(json_t *figures, ps_bench_case_t *one, psd_error_t *err)
{
    json_t *figure = json_object();

    if (figure == NULL || !set_shape(figure, one) || !set_rates(figure, one) ||
        (one->p50_s.n > 0 && !set_times(figure, one)) ||
        (one->n_limits > 0 && !set_limit(figure, one)) ||
        (one->row_bytes > 0 &&
         !set(figure, "row_overhead_bytes", ps_bench_rounded(one->row_bytes))) ||
        json_array_append(figures, figure) != 0) {
        json_decref(figure);
        return psd_error_set(err, PSD_NOMEM, "no memory for a figure");
    }
    json_decref(figure);
    return PSD_OK;
}

psd_status_t ps_bench_figure_limits(ps_bench_series_t *limits, json_t *doc, psd_error_t *err)
{
    json_t *machine = json_object();
    json_t *list = json_array();
    bool ok = set(doc, "machine", machine) && set(doc, "limits", list);

    for (size_t i = 0; ok && i < PS_LIMIT_COUNT; i++) {
        ps_limit_t limit = (ps_limit_t)i;
        ps_bench_stat_t stat = ps_bench_stat_of(limits[i].values, limits[i].n);

        if (limits[i].n == 0) {
            continue;
        }
        ok = set(machine, ps_limit_name(limit), json_real(stat.median)) &&
             json_array_append_new(
                 list, json_pack("{s:s,s:s,s:f,s:f,s:f,s:I}", "name", ps_limit_name(limit), "what",
                                 ps_limit_text(limit), "median", stat.median, "min", stat.min,
                                 "max", stat.max, "repeats", (json_int_t)limits[i].n)) == 0;
    }
    return ok ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for the limits");
}

static void format_limit(ps_limit_t limit, double value, char ret_text[PS_NUMBER_SIZE])
{
    static const ps_unit_t UNITS[] = {
#define PS_LIMIT_UNIT(name, json, unit, what) PS_UNIT_##unit,
        PS_LIMIT_MAP(PS_LIMIT_UNIT)
#undef PS_LIMIT_UNIT
    };

    if (UNITS[limit] == PS_UNIT_RATE) {
        ps_rate_format(value, ret_text);
    } else if (UNITS[limit] == PS_UNIT_SECONDS) {
        ps_seconds_format(value, ret_text);
    } else {
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "%.3g M/s", value / 1e6);
    }
}

static void show_limit(const ps_cli_t *cli, ps_limit_t limit, const ps_bench_series_t *all)
{
    ps_bench_stat_t stat = ps_bench_stat_of(all->values, all->n);
    char median[PS_NUMBER_SIZE];
    char min[PS_NUMBER_SIZE];
    char max[PS_NUMBER_SIZE];

    format_limit(limit, stat.median, median);
    format_limit(limit, stat.min, min);
    format_limit(limit, stat.max, max);
    ps_print(cli->out.out, "  %-10s (%s to %s)  %s\n", median, min, max, ps_limit_text(limit));
}

void ps_bench_figure_show(const ps_cli_t *cli, const json_t *doc, const ps_column_t *columns,
                          const ps_bench_series_t *limits)
{
    ps_out_list(&cli->out, doc, "figures", columns);
    if (cli->out.format != PS_FORMAT_TABLE && cli->out.format != PS_FORMAT_WIDE) {
        return;
    }
    ps_print(cli->out.out, "\nlimits of the machine in this run\n");
    for (size_t i = 0; i < PS_LIMIT_COUNT; i++) {
        if (limits[i].n > 0) {
            show_limit(cli, (ps_limit_t)i, &limits[i]);
        }
    }
}
