/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster registry: the nodes that have the registry. */
#include <inttypes.h>
#include <string.h>

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
        const uint64_t wanted = ps_json_u64(reply, "wanted");

        if (wanted > 1) {
            ps_print(cli->out.out,
                     "registry  1 of 1, not replicated until there are %" PRIu64 " nodes\n\n",
                     wanted);
        } else {
            ps_print(cli->out.out, "registry  1 of 1, not replicated: registry.voters is 1\n\n");
        }
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

/* "node "c" was removed by hand; "pscli cluster registry add c" lets it back" */
static void show_held(const ps_cli_t *cli, const json_t *reply)
{
    const char *before = "\n"; /* of the first line */
    const json_t *item = NULL;
    size_t i = 0;

    json_array_foreach(ps_json_at(reply, "held"), i, item)
    {
        const char *node = ps_json_text(item, "node");
        bool is_out = strcmp(ps_json_text(item, "lacks"), "part") == 0;

        ps_print(cli->out.out,
                 "%snode \"%s\" %s by hand; \"pscli cluster registry add %s\" ends that\n", before,
                 node, is_out ? "has no part of it" : "has no vote", node);
        before = "";
    }
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
        show_held(cli, reply);
    } else if (cli->out.format == PS_FORMAT_JSON) {
        ps_out_object(&cli->out, reply, MEMBERS);
    } else {
        ps_out_list(&cli->out, reply, "members", MEMBERS);
    }
    return PSD_OK;
}

/* ---- changes ---- */

static const ps_column_t CHANGED[] = {{"NODE", "node", PS_UNIT_NONE, false},
                                      {"ROLE", "role", PS_UNIT_NONE, false},
                                      {"WAS_SO", "was_so", PS_UNIT_NONE, false},
                                      {"DRY_RUN", "dry_run", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t LEADS[] = {{"LEADER", "leader", PS_UNIT_NONE, false},
                                    {"DRY_RUN", "dry_run", PS_UNIT_NONE, false},
                                    {NULL, NULL, PS_UNIT_NONE, false}};

/* "node "a" would vote in the registry" */
static void show_role(const ps_cli_t *cli, const json_t *reply)
{
    const char *name = ps_json_text(reply, "node");
    const char *role = ps_json_text(reply, "role");
    bool was = json_is_true(ps_json_at(reply, "was_so"));
    bool would = json_is_true(ps_json_at(reply, "dry_run")) && !was;
    const char *does = would ? "would have no part of" : "has no part of";

    if (strcmp(role, "voter") == 0) {
        does = would ? "would vote in" : "votes in";
    } else if (strcmp(role, "stand-by") == 0) {
        does = would ? "would stand by for" : "stands by for";
    }
    ps_out_answer(&cli->out, reply, CHANGED, "node \"%s\" %s the registry%s", name, does,
                  was ? ", as before" : "");
}

static psd_status_t set_role(ps_cli_t *cli, const char *role, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NODE", &name, err);

    if (rc == PSD_OK) {
        request = json_pack("{s:s,s:s,s:s,s:b}", "op", "registry_set", "name", name, "role", role,
                            "dry_run", ps_args_on(&cli->args, "dry-run") ? 1 : 0);
        rc = ps_cli_ask(cli, request, &reply, err);
    }
    if (rc == PSD_OK) {
        show_role(cli, reply);
    }
    return rc;
}

psd_status_t ps_cmd_registry_add(ps_cli_t *cli, psd_error_t *err)
{
    return set_role(cli, ps_args_on(&cli->args, "standby") ? "stand-by" : "voter", err);
}

psd_status_t ps_cmd_registry_remove(ps_cli_t *cli, psd_error_t *err)
{
    return set_role(cli, "none", err);
}

psd_status_t ps_cmd_node_promote(ps_cli_t *cli, psd_error_t *err)
{
    return set_role(cli, "voter", err);
}

psd_status_t ps_cmd_node_demote(ps_cli_t *cli, psd_error_t *err)
{
    return set_role(cli, "stand-by", err);
}

/* Without a name: away from who leads now, so that the next leader does not hand on
 * when it gets the same request. */
static psd_status_t make_transfer(ps_cli_t *cli, json_t **ret_request, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *members = NULL;
    const char *name = NULL;
    psd_status_t rc = PSD_OK;

    if (cli->args.n_words > 0) {
        rc = ps_cli_name(cli, 0, "NODE", &name, err);
    } else {
        rc = ps_cli_ask_any(cli, "registry_list", &members, err);
    }
    if (rc == PSD_OK) {
        *ret_request =
            json_pack("{s:s,s:s,s:b}", "op", "registry_transfer", name == NULL ? "from" : "name",
                      name == NULL ? ps_json_text(members, "leader") : name, "dry_run",
                      ps_args_on(&cli->args, "dry-run") ? 1 : 0);
    }
    return rc;
}

psd_status_t ps_cmd_registry_transfer(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = make_transfer(cli, &request, err);

    if (rc == PSD_OK) {
        rc = ps_cli_ask(cli, request, &reply, err);
    }
    if (rc == PSD_OK) {
        ps_out_answer(&cli->out, reply, LEADS, "node \"%s\" %s the registry",
                      ps_json_text(reply, "leader"),
                      json_is_true(ps_json_at(reply, "dry_run")) ? "would lead" : "leads");
    }
    return rc;
}
