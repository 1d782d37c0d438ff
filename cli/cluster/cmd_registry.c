/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster registry: the nodes that have the registry. */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "cli/cluster/cluster.h"
#include "cli/run/ask_any.h"

static const ps_column_t MEMBERS[] = {{"NODE", "node", PS_UNIT_NONE, false},
                                      {"ROLE", "role", PS_UNIT_NONE, false},
                                      {"STATE", "state", PS_UNIT_NONE, false},
                                      {"TERM", "term", PS_UNIT_NONE, false},
                                      {"LAST", "last", PS_UNIT_NONE, false},
                                      {"APPLIED", "applied", PS_UNIT_NONE, false},
                                      {"LAG", "lag", PS_UNIT_NONE, false},
                                      {"HEARD", "heard_s", PS_UNIT_SECONDS, false},
                                      {"ENDPOINT", "endpoint", PS_UNIT_NONE, false},
                                      {"MEMBER", "member", PS_UNIT_NONE, true},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

/* "3 of 3 voters up, node "a" leads in term 7, committed 120" */
static void show_head(const ps_cli_t *cli, const json_t *reply)
{
    const uint64_t up = ps_json_u64(reply, "voters_up");
    const uint64_t voters = ps_json_u64(reply, "voters");
    const char *leader = ps_json_text(reply, "leader");

    if (!json_is_true(ps_json_at(reply, "replicated"))) {
        ps_print(cli->out.out, "registry  1 of 1, not replicated%s\n\n",
                 ps_json_u64(reply, "wanted") > 1 ? " until there are 3 nodes"
                                                  : ": registry.voters is 1");
        return;
    }
    ps_print(cli->out.out, "registry  %" PRIu64 " of %" PRIu64 " voters up, ", up, voters);
    if (leader[0] == '\0') {
        ps_print(cli->out.out, "no leader");
    } else {
        ps_print(cli->out.out, "node \"%s\" leads", leader);
    }
    ps_print(cli->out.out, ", term %" PRIu64 ", committed %" PRIu64 "%s%s%s\n\n",
             ps_json_u64(reply, "term"), ps_json_u64(reply, "committed"),
             json_is_true(ps_json_at(reply, "stale")) ? "; stale, as node \"" : "",
             json_is_true(ps_json_at(reply, "stale")) ? ps_json_text(reply, "answered_by") : "",
             json_is_true(ps_json_at(reply, "stale")) ? "\" sees it" : "");
}

psd_status_t ps_cmd_registry_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_ask_any(cli, "registry_list", &reply, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE) {
        show_head(cli, reply);
        ps_out_table(&cli->out, ps_json_at(reply, "members"), MEMBERS);
    } else if (cli->out.format == PS_FORMAT_JSON) {
        ps_out_object(&cli->out, reply, MEMBERS);
    } else {
        ps_out_list(&cli->out, reply, "members", MEMBERS);
    }
    return PSD_OK;
}
