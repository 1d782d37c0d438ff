/* SPDX-License-Identifier: Apache-2.0 */
/* pscli table drop: asks before it drops rows. */
#include "cli/tables/tables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/output/json_text.h"
#include "cli/run/confirm.h"

#define WHAT_SIZE (2 * PS_CONFIRM_NAMES_SIZE + 150)

static const ps_column_t DROPPED[] = {
    {"TABLE", "table", PS_UNIT_NONE, false},     {"DROPPED", "dropped", PS_UNIT_NONE, false},
    {"DRY_RUN", "dry_run", PS_UNIT_NONE, false}, {"ROWS", "rows", PS_UNIT_NONE, false},
    {"BYTES", "bytes", PS_UNIT_BYTES, false},    {NULL, NULL, PS_UNIT_NONE, false}};

static uint64_t sum_bytes(const json_t *bytes)
{
    uint64_t sum = 0;
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach((json_t *)bytes, key, value)
    {
        sum += json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    }
    return sum;
}

static bool is_among(const json_t *tables, const char *name)
{
    bool found = false;

    for (size_t i = 0; i < json_array_size(tables); i++) {
        found = found || strcmp(ps_json_text(json_array_get(tables, i), "table"), name) == 0;
    }
    return found;
}

static void add_new(json_t *jobs, const json_t *more)
{
    for (size_t i = 0; i < json_array_size(more); i++) {
        json_t *job = json_array_get(more, i);
        bool found = false;

        for (size_t k = 0; k < json_array_size(jobs); k++) {
            found = found || json_equal(json_array_get(jobs, k), job) == 1;
        }
        if (!found) {
            (void)json_array_append(jobs, job);
        }
    }
}

/* Finds the tables to drop for each word, in order, before it drops
 * anything, and the jobs that use any of them. */
static psd_status_t look(ps_cli_t *cli, json_t *tables, json_t *jobs, psd_error_t *err)
{
    for (size_t i = 0; i < cli->args.n_words; i++) {
        PSD_AUTO(ps_json_unref) json_t *reply = NULL;
        const char *name = NULL;
        psd_status_t rc = ps_cli_name(cli, i, "NAME", &name, err);

        if (rc == PSD_OK && is_among(tables, name)) {
            rc = psd_error_set(err, PSD_USAGE, "table \"%s\" is named twice", name);
        }
        if (rc == PSD_OK) {
            rc = ps_cli_request(cli, "table_inspect", "name", name, &reply, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        add_new(jobs, ps_json_at(reply, "jobs"));
        (void)json_array_append_new(
            tables, json_pack("{s:s,s:b,s:I,s:I}", "table", name, "dropped", 0, "rows",
                              (json_int_t)ps_json_u64(reply, "table.rows_present"), "bytes",
                              (json_int_t)sum_bytes(ps_json_at(reply, "table.bytes"))));
    }
    return PSD_OK;
}

/* `table "w" with 3 rows (12 B)`, `tables "v", "w" with 9 rows (1 KiB, used by
 * job "lr")`. */
static void name_them(const json_t *tables, const json_t *jobs, char ret_what[WHAT_SIZE])
{
    uint64_t rows = 0;
    uint64_t bytes = 0;
    char size[PS_NUMBER_SIZE];
    char names[PS_CONFIRM_NAMES_SIZE];
    int used = 0;

    for (size_t i = 0; i < json_array_size(tables); i++) {
        rows += ps_json_u64(json_array_get(tables, i), "rows");
        bytes += ps_json_u64(json_array_get(tables, i), "bytes");
    }
    ps_bytes_format((double)bytes, size);
    ps_confirm_names(tables, names);
    used =
        snprintf(ret_what, WHAT_SIZE, "table%s %s with %" PRIu64 " row%s (%s",
                 json_array_size(tables) == 1 ? "" : "s", names, rows, rows == 1 ? "" : "s", size);
    if (json_array_size(jobs) > 0) {
        ps_confirm_names(jobs, names);
        used += snprintf(ret_what + used, WHAT_SIZE - (size_t)used, ", used by job%s %s",
                         json_array_size(jobs) == 1 ? "" : "s", names);
    }
    (void)snprintf(ret_what + used, WHAT_SIZE - (size_t)used, ")");
}

static psd_status_t drop(ps_cli_t *cli, json_t *table, psd_error_t *err)
{
    const char *name = ps_json_text(table, "table");
    psd_status_t rc = psd_table_drop(cli->client, name, err);

    if (rc == PSD_OK) {
        (void)json_object_set_new(table, "dropped", json_true());
        ps_say(&cli->out, "dropped table \"%s\"", name);
    }
    return rc;
}

static void show(const ps_cli_t *cli, json_t *tables)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;

    if (json_array_size(tables) == 1) {
        ps_out_object(&cli->out, json_array_get(tables, 0), DROPPED);
        return;
    }
    doc = json_pack("{s:O}", "tables", tables);
    ps_out_list(&cli->out, doc, "tables", DROPPED);
}

psd_status_t ps_cmd_table_drop(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *tables = json_array();
    PSD_AUTO(ps_json_unref) json_t *jobs = json_array();
    bool dry_run = ps_args_on(&cli->args, "dry-run");
    size_t n_dropped = 0;
    char what[WHAT_SIZE];
    psd_status_t rc = look(cli, tables, jobs, err);

    if (rc == PSD_OK && !dry_run) {
        name_them(tables, jobs, what);
        rc = ps_confirm_drop(cli, what, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < json_array_size(tables); i++) {
        json_t *table = json_array_get(tables, i);

        if (dry_run) {
            (void)json_object_set_new(table, "dry_run", json_true());
            ps_say(&cli->out, "would drop table \"%s\"", ps_json_text(table, "table"));
        } else {
            rc = drop(cli, table, err);
            n_dropped += rc == PSD_OK ? 1 : 0;
        }
    }
    if (rc == PSD_OK || n_dropped > 0) { /* also what a failed drop left */
        show(cli, tables);
    }
    return rc;
}
