/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster: how it is, and what happened. */
#include "cli/cli.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "cli/cmd_node.h"

static const ps_column_t STATUS[] = {
    {"CLUSTER", "cluster.name", PS_UNIT_NONE, false},
    {"UUID", "cluster.uuid", PS_UNIT_NONE, false},
    {"EPOCH", "cluster.epoch", PS_UNIT_NONE, false},
    {"HEALTHY", "cluster.healthy", PS_UNIT_NONE, false},
    {"NODES", "nodes", PS_UNIT_COUNT, false},
    {"TABLES", "tables", PS_UNIT_NONE, false},
    {"JOBS", "jobs", PS_UNIT_NONE, false},
    {"PROBLEMS", "problems", PS_UNIT_COUNT, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t EVENTS[] = {
    {"NUMBER", "id", PS_UNIT_NONE, true},
    {"TIME", "unix_ms", PS_UNIT_UNIX_MS, false},
    {"KIND", "kind", PS_UNIT_NONE, false},
    {"EPOCH", "epoch", PS_UNIT_NONE, true},
    {"WHAT", "text", PS_UNIT_NONE, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static void
show_problems(const ps_cli_t *cli, const json_t *problems)
{
    if (json_array_size(problems) == 0) {
        ps_print(cli->out.out, "problems  none\n");
        return;
    }
    ps_print(cli->out.out, "problems\n");
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *problem = json_array_get(problems, i);
        const char *text = json_string_value(problem);

        ps_print(cli->out.out, "  %s\n",
                 text != NULL ? text : ps_json_text(problem, "text"));
    }
}

static void
show_screen(const ps_cli_t *cli, const json_t *status)
{
    bool healthy = json_is_true(ps_json_at(status, "cluster.healthy"));

    ps_print(cli->out.out, "cluster  %s  %s  epoch %" PRIu64 "  %s\n",
             ps_json_text(status, "cluster.name"),
             ps_json_text(status, "cluster.uuid"),
             ps_json_u64(status, "cluster.epoch"),
             healthy ? "healthy" : "NOT HEALTHY");
    ps_print(cli->out.out, "tables   %" PRIu64 "\njobs     %" PRIu64 "\n\n",
             ps_json_u64(status, "tables"), ps_json_u64(status, "jobs"));
    ps_out_table(&cli->out, ps_json_at(status, "nodes"), ps_node_columns);
    (void)putc('\n', cli->out.out);
    show_problems(cli, ps_json_at(status, "problems"));
}

psd_status_t
ps_cmd_cluster_status(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *status = NULL;
    psd_status_t rc =
        ps_cli_request(cli, "cluster_status", NULL, NULL, &status, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format == PS_FORMAT_TABLE ||
        cli->out.format == PS_FORMAT_WIDE) {
        show_screen(cli, status);
    } else {
        ps_out_object(&cli->out, status, STATUS);
    }
    return PSD_OK;
}

psd_status_t
ps_cmd_cluster_events(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:I}", "op", "cluster_events", "limit",
                                (json_int_t)ps_args_u64(&cli->args, "last"));
    psd_status_t rc = ps_cli_ask(cli, request, &reply, err);

    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "events", EVENTS);
    }
    return rc;
}
