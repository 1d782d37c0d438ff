/* SPDX-License-Identifier: Apache-2.0 */
/* pscli plan: the memory that a table will need, before it is made. */
#include "cli/cluster/cluster.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/output/json_text.h"
#include "model/rows/row_index.h"
#include "model/store/plan.h"

/* Row slices of a table without a number of its own;
 * tables.default_partitions of psd.yaml, unless the operator set another
 * number. */
#define DEFAULT_PARTITIONS 8

static const ps_column_t NEEDS[] = {{"SCOPE", "scope", PS_UNIT_NONE, false},
                                    {"COUNT", "count", PS_UNIT_NONE, false},
                                    {"PARTITIONS", "partitions", PS_UNIT_NONE, false},
                                    {"ROWS", "rows", PS_UNIT_NONE, true},
                                    {"VALUES", "bytes.values", PS_UNIT_BYTES, false},
                                    {"STATE", "bytes.state", PS_UNIT_BYTES, false},
                                    {"INDEX", "bytes.index", PS_UNIT_BYTES, false},
                                    {"LOG", "bytes.log", PS_UNIT_BYTES, true},
                                    {"TOTAL", "bytes.total", PS_UNIT_BYTES, false},
                                    {NULL, NULL, PS_UNIT_NONE, false}};

/* The request and the result. */
typedef struct request {
    ps_table_spec_t spec; /* checked and complete */
    uint64_t n_rows;
    double fill;
    uint64_t n_nodes;
    uint64_t n_shards; /* of a node */
    ps_plan_t plan;
    uint64_t host_bytes; /* this host's memory; 0: not known */
} request_t;

static psd_status_t read_fill(const ps_cli_t *cli, double *ret_fill, psd_error_t *err)
{
    const char *text = ps_args_text(&cli->args, "fill");
    double fill = 0;

    if (!ps_text_f64(text, &fill) || !(fill > 0) || fill > 1) {
        return psd_error_set(err, PSD_USAGE, "--fill is \"%.40s\"; allowed: above 0, at most 1",
                             text);
    }
    *ret_fill = fill;
    return PSD_OK;
}

/* The words that stand for an enum, and the numbers. */
static psd_status_t read_spec(const ps_cli_t *cli, ps_table_spec_t *spec, psd_error_t *err)
{
    const ps_args_t *args = &cli->args;
    psd_status_t rc = PSD_OK;

    ps_table_spec_init(spec);
    (void)snprintf(spec->name, sizeof spec->name, "plan");
    spec->n_cols = (uint32_t)ps_args_u64(args, "cols");
    spec->n_partitions = (uint32_t)ps_args_u64(args, "partitions");
    spec->replicas = (uint32_t)ps_args_u64(args, "replicas");
    if (!ps_type_parse(ps_args_text(args, "type"), &spec->type)) {
        return psd_error_set(err, PSD_USAGE, "--type is not known");
    }
    rc = ps_row_format_parse(ps_args_text(args, "row-format"), &spec->row_format, err);
    if (rc == PSD_OK) {
        rc = ps_keys_parse(ps_args_text(args, "keys"), &spec->keys, err);
    }
    if (rc == PSD_OK) {
        rc = ps_updater_spec_parse(ps_args_text(args, "updater"), &spec->updater, err);
    }
    if (rc == PSD_OK) {
        spec->partition_by = ps_partition_by_default(spec->keys);
    }
    if (rc == PSD_OK && ps_args_given(args, "partition-by")) {
        rc = ps_partition_by_parse(ps_args_text(args, "partition-by"), spec, err);
    }
    return rc;
}

static psd_status_t read_request(const ps_cli_t *cli, request_t *request, psd_error_t *err)
{
    ps_table_spec_t *spec = &request->spec;
    psd_status_t rc = read_fill(cli, &request->fill, err);
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_args_given(&cli->args, "rows")) {
        return psd_error_set(err, PSD_USAGE, "\"plan\" needs --rows N");
    }
    request->n_rows = ps_args_u64(&cli->args, "rows");
    request->n_nodes = ps_args_u64(&cli->args, "nodes");
    request->n_shards = ps_args_u64(&cli->args, "shards");
    if (pages > 0 && page > 0) {
        request->host_bytes = (uint64_t)pages * (uint64_t)page;
    }
    rc = read_spec(cli, spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    spec->n_rows = spec->keys == PS_KEYS_RANGE ? request->n_rows : 0;
    ps_table_spec_settle(spec, DEFAULT_PARTITIONS);
    return ps_table_spec_check(spec, err);
}

static uint64_t divide_up(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0 ? 1 : 0);
}

static uint64_t times(uint64_t n, uint64_t factor)
{
    uint64_t product = 0;

    return __builtin_mul_overflow(n, factor, &product) ? UINT64_MAX : product;
}

static uint64_t total(const ps_store_bytes_t *bytes)
{
    uint64_t sum = 0;

    if (__builtin_add_overflow(bytes->values, bytes->state, &sum) ||
        __builtin_add_overflow(sum, bytes->index, &sum)) {
        return UINT64_MAX;
    }
    return sum;
}

/* A number as JSON; jansson's integers end at 2^63 - 1. */
static json_t *whole(uint64_t n)
{
    return json_integer(n > INT64_MAX ? INT64_MAX : (json_int_t)n);
}

/* `count` places, each with this many partitions and bytes. */
static json_t *describe(const char *scope, uint64_t count, uint64_t partitions,
                        const ps_store_bytes_t *bytes)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:i,s:o}}", "scope", scope, "count",
                     whole(count), "partitions", whole(partitions), "rows",
                     whole(bytes->rows_present), "bytes", "values", whole(bytes->values), "state",
                     whole(bytes->state), "index", whole(bytes->index), "log", 0, "total",
                     whole(total(bytes)));
}

/* Bytes of the n largest partitions. */
static ps_store_bytes_t several(const request_t *request, uint64_t partitions)
{
    const ps_store_bytes_t *one = &request->plan.largest;

    return (ps_store_bytes_t){
        .values = times(one->values, partitions),
        .state = times(one->state, partitions),
        .index = times(one->index, partitions),
        .rows_present = times(one->rows_present, partitions),
    };
}

/* Partitions, copies included, of the fullest of n places. */
static uint64_t share(const request_t *request, uint64_t places)
{
    uint64_t copies = (uint64_t)request->spec.n_partitions * request->spec.replicas;

    return divide_up(copies, places);
}

static json_t *list_needs(const request_t *request)
{
    const ps_table_spec_t *spec = &request->spec;
    uint64_t n_shards = request->n_nodes * request->n_shards;
    uint64_t of_node = share(request, request->n_nodes);
    uint64_t of_shard = share(request, n_shards);
    ps_store_bytes_t all = request->plan.table;
    ps_store_bytes_t node = several(request, of_node);
    ps_store_bytes_t shard = several(request, of_shard);
    json_t *needs = json_array();

    /* A place that holds every partition once needs the bytes of the table, no more. */
    node = of_node == spec->n_partitions ? all : node;
    shard = of_shard == spec->n_partitions ? all : shard;
    all.values = times(all.values, spec->replicas);
    all.state = times(all.state, spec->replicas);
    all.index = times(all.index, spec->replicas);
    (void)json_array_append_new(
        needs, describe("table", 1, (uint64_t)spec->n_partitions * spec->replicas, &all));
    (void)json_array_append_new(needs, describe("node", request->n_nodes, of_node, &node));
    (void)json_array_append_new(needs, describe("shard", n_shards, of_shard, &shard));
    (void)json_array_append_new(needs,
                                describe("partition", (uint64_t)spec->n_partitions * spec->replicas,
                                         1, &request->plan.largest));
    return needs;
}

static void warn(json_t *warnings, const char *format, ...) PSD_PRINTF(2, 3);

static void warn(json_t *warnings, const char *format, ...)
{
    char text[256] = "";
    va_list list;

    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    (void)json_array_append_new(warnings, json_string(text));
}

static void warn_of_memory(const request_t *request, uint64_t node_bytes, json_t *warnings)
{
    char needed[PS_NUMBER_SIZE];
    char there[PS_NUMBER_SIZE];

    ps_bytes_format((double)node_bytes, needed);
    ps_bytes_format((double)request->host_bytes, there);
    if (request->host_bytes > 0 && node_bytes > request->host_bytes) {
        warn(warnings,
             "a node needs %s, and this host has %s of memory: more nodes, "
             "fewer columns or an updater with less state",
             needed, there);
    } else if (request->host_bytes > 0 && node_bytes > request->host_bytes / 10 * 8) {
        warn(warnings,
             "a node needs %s of this host's %s of memory; requests in flight and other programs "
             "need some too",
             needed, there);
    }
}

static json_t *list_warnings(const request_t *request, uint64_t node_bytes)
{
    const ps_table_spec_t *spec = &request->spec;
    uint64_t n_shards = request->n_nodes * request->n_shards;
    json_t *warnings = json_array();

    warn_of_memory(request, node_bytes, warnings);
    if (spec->n_partitions < n_shards) {
        warn(warnings,
             "%" PRIu32 " partitions over %" PRIu64
             " shards: some shards will have none; use --partitions %" PRIu64 " to give each one",
             spec->n_partitions, n_shards, n_shards);
    }
    if (spec->replicas > request->n_nodes) {
        warn(warnings,
             "%" PRIu32 " copies of a partition need as many nodes; there are "
             "%" PRIu64,
             spec->replicas, request->n_nodes);
    }
    if (spec->keys == PS_KEYS_HASH && request->plan.partition_rows > PS_ROW_NUMBER_MAX) {
        warn(warnings,
             "a partition of hash keys holds at most %" PRIu32
             " rows; the largest would have %" PRIu64,
             PS_ROW_NUMBER_MAX, request->plan.partition_rows);
    }
    return warnings;
}

static json_t *describe_request(const request_t *request)
{
    const ps_table_spec_t *spec = &request->spec;
    char updater[PS_SPEC_TEXT_SIZE];

    ps_updater_spec_format(&spec->updater, updater);
    return json_pack("{s:o,s:I,s:s,s:s,s:s,s:s,s:f,s:I,s:I,s:I,s:I}", "rows",
                     whole(request->n_rows), "cols", (json_int_t)spec->n_cols, "type",
                     ps_type_name(spec->type), "row_format", ps_row_format_name(spec->row_format),
                     "keys", ps_keys_name(spec->keys), "updater", updater, "fill", request->fill,
                     "partitions", (json_int_t)spec->n_partitions, "replicas",
                     (json_int_t)spec->replicas, "nodes", (json_int_t)request->n_nodes, "shards",
                     (json_int_t)request->n_shards);
}

psd_status_t ps_cmd_plan(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    request_t request = {.n_rows = 0};
    const json_t *warnings = NULL;
    json_t *needs = NULL;
    psd_status_t rc = read_request(cli, &request, err);

    if (rc == PSD_OK) {
        rc = ps_plan_make(&request.spec, request.n_rows, request.fill, &request.plan, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    needs = list_needs(&request);
    warnings = list_warnings(&request, ps_json_u64(json_array_get(needs, 1), "bytes.total"));
    doc = json_pack("{s:o,s:o,s:o,s:o}", "plan", describe_request(&request), "needs", needs,
                    "host_bytes", whole(request.host_bytes), "warnings", warnings);
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    ps_out_list(&cli->out, doc, "needs", NEEDS);
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        ps_say(&cli->out, "warning: %s", json_string_value(json_array_get(warnings, i)));
    }
    return PSD_OK;
}
