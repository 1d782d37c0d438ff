/* SPDX-License-Identifier: Apache-2.0 */
/* pscli table drop: asks before rows are gone. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/json_text.h"

static const ps_column_t DROPPED[] = {
    {"TABLE", "table", PS_UNIT_NONE, false},
    {"DROPPED", "dropped", PS_UNIT_NONE, false},
    {"DRY_RUN", "dry_run", PS_UNIT_NONE, false},
    {"ROWS", "rows", PS_UNIT_NONE, false},
    {"BYTES", "bytes", PS_UNIT_BYTES, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static uint64_t
sum_bytes(const json_t *bytes)
{
    uint64_t sum = 0;
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach((json_t *)bytes, key, value)
    {
        sum += json_integer_value(value) > 0
                   ? (uint64_t)json_integer_value(value)
                   : 0;
    }
    return sum;
}

static psd_status_t
confirm(const ps_cli_t *cli, const char *question, psd_error_t *err)
{
    char answer[64] = "";

    if (ps_args_on(&cli->args, "yes")) {
        return PSD_OK;
    }
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return psd_error_set(
            err, PSD_USAGE,
            "dropping %s needs --yes where there is no terminal to ask on",
            question);
    }
    ps_print(cli->out.err, "drop %s? [y/N] ", question);
    (void)fflush(cli->out.err);
    if (fgets(answer, sizeof answer, stdin) != NULL &&
        (answer[0] == 'y' || answer[0] == 'Y')) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_FAILED, "not dropped");
}

static psd_status_t
drop(ps_cli_t *cli,
     const char *name,
     uint64_t rows,
     uint64_t bytes,
     psd_error_t *err)
{
    bool dry_run = ps_args_on(&cli->args, "dry-run");
    psd_status_t rc = dry_run ? PSD_OK : psd_table_drop(cli->client, name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    PSD_AUTO(ps_json_unref)
    json_t *doc =
        json_pack("{s:s,s:b,s:I,s:I}", "table", name, "dropped", !dry_run,
                  "rows", (json_int_t)rows, "bytes", (json_int_t)bytes);

    if (dry_run) {
        (void)json_object_set_new(doc, "dry_run", json_true());
    }
    ps_say(&cli->out, "%s table \"%s\"", dry_run ? "would drop" : "dropped",
           name);
    ps_out_object(&cli->out, doc, DROPPED);
    return PSD_OK;
}

psd_status_t
ps_cmd_table_drop(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    char question[256];
    char size[PS_NUMBER_SIZE];
    const char *name = NULL;
    uint64_t rows = 0;
    uint64_t bytes = 0;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "table_inspect", "name", name, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rows = ps_json_u64(reply, "table.rows_present");
    bytes = sum_bytes(ps_json_at(reply, "table.bytes"));
    ps_bytes_format((double)bytes, size);
    (void)snprintf(question, sizeof question,
                   "table \"%s\" with %" PRIu64 " rows (%s)", name, rows, size);
    if (!ps_args_on(&cli->args, "dry-run")) {
        rc = confirm(cli, question, err);
    }
    return rc != PSD_OK ? rc : drop(cli, name, rows, bytes, err);
}
