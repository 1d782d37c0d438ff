/* SPDX-License-Identifier: Apache-2.0 */
/* pscli table create, list, inspect, ack, set: the tables of the cluster. */
#include "cli/tables/tables.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

static const ps_column_t TABLES[] = {{"TABLE", "name", PS_UNIT_NONE, false},
                                     {"ROWS", "rows", PS_UNIT_NONE, false},
                                     {"COLS", "cols", PS_UNIT_NONE, false},
                                     {"TYPE", "type", PS_UNIT_NONE, false},
                                     {"FORMAT", "row_format", PS_UNIT_NONE, false},
                                     {"KEYS", "keys", PS_UNIT_NONE, false},
                                     {"UPDATER", "updater", PS_UNIT_NONE, false},
                                     {"PRESENT", "rows_present", PS_UNIT_NONE, false},
                                     {"VALUES", "bytes.values", PS_UNIT_BYTES, false},
                                     {"STATE", "bytes.state", PS_UNIT_BYTES, true},
                                     {"INDEX", "bytes.index", PS_UNIT_BYTES, true},
                                     {"PARTITIONS", "partitions|n_partitions", PS_UNIT_COUNT, true},
                                     {"REPLICAS", "replicas", PS_UNIT_NONE, true},
                                     {"ACK", "ack", PS_UNIT_NONE, true},
                                     {"COMBINE", "combine", PS_UNIT_NONE, true},
                                     {"ID", "id", PS_UNIT_NONE, true},
                                     {"LOST", "lost", PS_UNIT_NONE, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t TABLE[] = {
    {"TABLE", "table.name", PS_UNIT_NONE, false},
    {"ROWS", "table.rows", PS_UNIT_NONE, false},
    {"COLS", "table.cols", PS_UNIT_NONE, false},
    {"TYPE", "table.type", PS_UNIT_NONE, false},
    {"FORMAT", "table.row_format", PS_UNIT_NONE, false},
    {"KEYS", "table.keys", PS_UNIT_NONE, false},
    {"UPDATER", "table.updater", PS_UNIT_NONE, false},
    {"INIT", "table.init", PS_UNIT_NONE, false},
    {"SEED", "table.seed", PS_UNIT_NONE, false},
    {"REPLICAS", "table.replicas", PS_UNIT_NONE, false},
    {"ACK", "table.ack", PS_UNIT_NONE, false},
    {"COMBINE", "table.combine", PS_UNIT_NONE, false},
    {"FILTER", "table.filter", PS_UNIT_NONE, false},
    {"PARTITIONS", "table.partitions|table.n_partitions", PS_UNIT_COUNT, false},
    {"PRESENT", "table.rows_present", PS_UNIT_NONE, false},
    {"ROWS_LOST", "table.rows_lost", PS_UNIT_NONE, false},
    {"VALUES", "table.bytes.values", PS_UNIT_BYTES, false},
    {"STATE", "table.bytes.state", PS_UNIT_BYTES, false},
    {"INDEX", "table.bytes.index", PS_UNIT_BYTES, false},
    {"LOG", "table.bytes.log", PS_UNIT_BYTES, false},
    {"LIMIT", "table.limit_bytes", PS_UNIT_BYTES, false},
    {"PUSHES", "stats.pushes", PS_UNIT_NONE, false},
    {"PULLS", "stats.pulls", PS_UNIT_NONE, false},
    {"ROWS_PUSHED", "stats.rows_pushed", PS_UNIT_NONE, false},
    {"ROWS_PULLED", "stats.rows_pulled", PS_UNIT_NONE, false},
    {"ID", "table.id", PS_UNIT_NONE, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t PARTITIONS[] = {{"PARTITION", "id", PS_UNIT_NONE, false},
                                         {"FIRST_ROW", "first_row", PS_UNIT_NONE, false},
                                         {"LAST_ROW", "last_row", PS_UNIT_NONE, false},
                                         {"PRIMARY", "primary", PS_UNIT_NONE, false},
                                         {"IN_SYNC", "in_sync", PS_UNIT_NONE, false},
                                         {"CATCHING_UP", "catching_up", PS_UNIT_NONE, false},
                                         {"LSN", "lsn", PS_UNIT_NONE, false},
                                         {"PRESENT", "rows_present", PS_UNIT_NONE, false},
                                         {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t COPIES[] = {{"PARTITION", "partition", PS_UNIT_NONE, false},
                                     {"PLACE", "place", PS_UNIT_NONE, false},
                                     {"STATE", "state", PS_UNIT_NONE, false},
                                     {"LEAVING", "leaving", PS_UNIT_NONE, false},
                                     {"PRESENT", "rows_present", PS_UNIT_NONE, false},
                                     {"SIZE", "bytes", PS_UNIT_BYTES, false},
                                     {"LSN", "lsn", PS_UNIT_NONE, false},
                                     {"LAG_RECORDS", "lag_records", PS_UNIT_NONE, false},
                                     {"LAG_BYTES", "lag_bytes", PS_UNIT_BYTES, false},
                                     {"LAG", "lag_s", PS_UNIT_SECONDS, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t ACKED[] = {{"TABLE", "table.name", PS_UNIT_NONE, false},
                                    {"ROWS_LOST", "table.rows_lost", PS_UNIT_NONE, false},
                                    {"ACKED", "table.loss_acked", PS_UNIT_NONE, false},
                                    {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t SET[] = {{"TABLE", "table.name", PS_UNIT_NONE, false},
                                  {"COMBINE", "table.combine", PS_UNIT_NONE, false},
                                  {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t PLANNED[] = {{"TABLE", "table", PS_UNIT_NONE, false},
                                      {"DRY_RUN", "dry_run", PS_UNIT_NONE, false},
                                      {"SPEC", "spec", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

/* The options of `table create` that make a spec. */
static const char *const SPEC_KEYS[] = {"rows",     "cols", "type",   "row-format", "keys",
                                        "updater",  "init", "seed",   "partitions", "partition-by",
                                        "replicas", "ack",  "filter", "combine"};

/* A visible word for people, beside "rows_lost" for programs. */
static void mark_lost(const ps_out_t *out, json_t *tables)
{
    for (size_t i = 0; !ps_format_is_json(out->format) && i < json_array_size(tables); i++) {
        json_t *table = json_array_get(tables, i);
        bool lost = json_is_true(ps_json_at(table, "rows_lost"));
        bool acked = json_is_true(ps_json_at(table, "loss_acked"));

        (void)json_object_set_new(table, "lost",
                                  json_string(!lost   ? "-"
                                              : acked ? "known"
                                                      : "ROWS LOST"));
    }
}

psd_status_t ps_cmd_table_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "table_list", NULL, NULL, &reply, err);

    if (rc == PSD_OK) {
        mark_lost(&cli->out, json_object_get(reply, "tables"));
        ps_out_list(&cli->out, reply, "tables", TABLES);
    }
    return rc;
}

/* The copies of all partitions in one list. */
static psd_status_t show_copies(const ps_out_t *out, const json_t *table, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *list = json_array();
    const json_t *partitions = ps_json_at(table, "partitions");

    for (size_t i = 0; i < json_array_size(partitions); i++) {
        const json_t *partition = json_array_get(partitions, i);
        const json_t *copies = ps_json_at(partition, "copies");

        for (size_t k = 0; k < json_array_size(copies); k++) {
            json_t *line = json_copy(json_array_get(copies, k));

            if (line == NULL ||
                json_object_set(line, "partition", json_object_get(partition, "id")) != 0 ||
                json_array_append_new(list, line) != 0) {
                return psd_error_set(err, PSD_NOMEM, "no memory for copies");
            }
        }
    }
    ps_print(out->out, "\n");
    ps_out_table(out, list, COPIES);
    return PSD_OK;
}

static void say_warnings(const ps_out_t *out, const json_t *warnings)
{
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        ps_say(out, "warning: %s", json_string_value(json_array_get(warnings, i)));
    }
}

static psd_status_t show_table(ps_cli_t *cli, const json_t *reply, psd_error_t *err)
{
    say_warnings(&cli->out, ps_json_at(reply, "warnings"));
    ps_out_object(&cli->out, reply, TABLE);
    if (cli->out.format == PS_FORMAT_WIDE) {
        (void)putc('\n', cli->out.out);
        ps_out_table(&cli->out, ps_json_at(reply, "table.partitions"), PARTITIONS);
    }
    return cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE
               ? show_copies(&cli->out, ps_json_at(reply, "table"), err)
               : PSD_OK;
}

/* 'created table "w" (1000 x 1 f32, 8 partitions)'; all of it with -v and in
 * other formats. */
static psd_status_t show_created(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    char rows[24] = "any";
    psd_status_t rc = ps_cli_request(cli, "table_inspect", "name", name, &reply, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format != PS_FORMAT_TABLE || cli->out.verbose) {
        return show_table(cli, reply, err);
    }
    say_warnings(&cli->out, ps_json_at(reply, "warnings"));
    if (ps_json_u64(reply, "table.rows") > 0) {
        (void)snprintf(rows, sizeof rows, "%" PRIu64, ps_json_u64(reply, "table.rows"));
    }
    ps_out_answer(&cli->out, reply, TABLE,
                  "created table \"%s\" (%s x %" PRIu64 " %s, %zu partitions)", name, rows,
                  ps_json_u64(reply, "table.cols"), ps_json_text(reply, "table.type"),
                  json_array_size(ps_json_at(reply, "table.partitions")));
    return PSD_OK;
}

psd_status_t ps_cmd_table_inspect(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "table_inspect", "name", name, &reply, err);
    }
    return rc != PSD_OK ? rc : show_table(cli, reply, err);
}

static psd_status_t fill_spec(const ps_cli_t *cli, psd_spec_t *spec, json_t *shown,
                              psd_error_t *err)
{
    static const char *const switches[] = {"allow-nonfinite", "versions"};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < sizeof SPEC_KEYS / sizeof SPEC_KEYS[0]; i++) {
        const char *key = SPEC_KEYS[i];
        const ps_opt_t *opt = NULL;
        const char *value = ps_opts_value(&cli->args.opts, key, &opt)->text;
        char digits[24];

        if (value == NULL) {
            continue;
        }
        if (opt->kind == PS_OPT_COUNT) {
            (void)snprintf(digits, sizeof digits, "%" PRIu64, ps_args_u64(&cli->args, key));
            value = digits;
        }
        rc = psd_spec_set(spec, key, value, err);
        if (rc != PSD_OK) {
            return rc;
        }
        (void)json_object_set_new(shown, key, json_string(value));
    }
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (rc == PSD_OK && ps_args_on(&cli->args, switches[i])) {
            rc = psd_spec_set(spec, switches[i], "true", err);
            (void)json_object_set_new(shown, switches[i], json_true());
        }
    }
    return rc;
}

/* Needs the cluster only to check whether the name is free. */
static psd_status_t plan_create(ps_cli_t *cli, const char *name, json_t *shown, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    psd_status_t rc = ps_cli_request(cli, "table_inspect", "name", name, &reply, err);

    if (rc == PSD_OK) {
        return psd_error_set(err, PSD_TABLE_EXISTS, "table \"%s\" exists already", name);
    }
    if (rc != PSD_NO_TABLE) {
        return rc;
    }
    psd_error_clear(err);
    doc = json_pack("{s:s,s:b,s:O}", "table", name, "dry_run", 1, "spec", shown);
    ps_out_answer(&cli->out, doc, PLANNED, "would create table \"%s\"", name);
    return PSD_OK;
}

psd_status_t ps_cmd_table_create(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(psd_spec_destroy) psd_spec_t *spec = psd_spec_new();
    PSD_AUTO(psd_table_close) psd_table_t *table = NULL;
    PSD_AUTO(ps_json_unref) json_t *shown = json_object();
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (spec == NULL || shown == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a spec");
    }
    if (!ps_args_given(&cli->args, "rows") &&
        strcmp(ps_args_text(&cli->args, "keys"), "hash") != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "\"table create\" needs --rows N, except with hash keys");
    }
    rc = fill_spec(cli, spec, shown, err);
    if (rc == PSD_OK && ps_args_on(&cli->args, "dry-run")) {
        return plan_create(cli, name, shown, err);
    }
    if (rc == PSD_OK) {
        rc = ps_cli_connect(cli, err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_create(cli->client, name, spec, &table, err);
    }
    return rc != PSD_OK ? rc : show_created(cli, name, err);
}

psd_status_t ps_cmd_table_ack(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "table_ack", "name", name, &reply, err);
    }
    if (rc == PSD_OK) {
        ps_out_answer(&cli->out, reply, ACKED,
                      json_is_true(ps_json_at(reply, "table.rows_lost"))
                          ? "table \"%s\" continues without the lost rows"
                          : "table \"%s\" has lost no rows",
                      name);
    }
    return rc;
}

psd_status_t ps_cmd_table_set(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    const char *combine = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK && !ps_args_given(&cli->args, "combine")) {
        rc = psd_error_set(err, PSD_USAGE, "\"table set\" needs --combine HOW");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    combine = ps_args_text(&cli->args, "combine");
    request = json_pack("{s:s,s:s,s:s}", "op", "table_set", "name", name, "combine", combine);
    rc = ps_cli_ask(cli, request, &reply, err);
    if (rc == PSD_OK) {
        ps_out_answer(&cli->out, reply, SET, "table \"%s\" combines %s", name, combine);
    }
    return rc;
}
