/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster registry unknown, accept, discard; cluster rebuild: tables that nodes have and
 * the registry does not know. */
#include "cli/cluster/cluster.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "cli/run/confirm.h"

#define WHAT_SIZE (PS_CONFIRM_NAMES_SIZE + 200)

static const ps_column_t UNKNOWN[] = {
    {"TABLE", "name", PS_UNIT_NONE, false},   {"ID", "id", PS_UNIT_NONE, false},
    {"LEVEL", "ack", PS_UNIT_NONE, false},    {"PARTITIONS", "partitions", PS_UNIT_COUNT, false},
    {"FOUND", "found", PS_UNIT_COUNT, false}, {"ROWS", "rows", PS_UNIT_COUNT, false},
    {"BYTES", "bytes", PS_UNIT_BYTES, false}, {"NODES", "nodes", PS_UNIT_NONE, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

psd_status_t ps_cmd_registry_unknown(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "registry_unknown", NULL, NULL, &reply, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_json_text(reply, "missing")[0] != '\0') {
        ps_say(&cli->out, "%s: what it keeps aside is not in this list",
               ps_json_text(reply, "missing"));
    }
    ps_out_list(&cli->out, reply, "tables", UNKNOWN);
    return PSD_OK;
}

/* ---- accept ---- */

/* name NULL: all. */
static psd_status_t ask_accept(ps_cli_t *cli, const char *name, json_t **ret_reply,
                               psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:b,s:b}", "op", "registry_accept", "accept_loss",
                                ps_args_on(&cli->args, "accept-loss") ? 1 : 0, "dry_run",
                                ps_args_on(&cli->args, "dry-run") ? 1 : 0);

    if (name != NULL && json_object_set_new(request, "name", json_string(name)) != 0) {
        return psd_error_set(err, PSD_INVALID, "the table's name is not UTF-8");
    }
    return ps_cli_ask(cli, request, ret_reply, err);
}

/* What was accepted, then what was not. */
static psd_status_t show_accepted(ps_cli_t *cli, const json_t *reply, psd_error_t *err)
{
    const json_t *refused = ps_json_at(reply, "refused");
    const json_t *first = json_array_get(refused, 0);

    ps_out_list(&cli->out, reply, "tables", UNKNOWN);
    return first == NULL
               ? PSD_OK
               : psd_error_set(
                     err, PSD_FAILED,
                     "%zu table%s not accepted; the first is \"%s\", number %" PRIu64 ": %s",
                     json_array_size(refused), json_array_size(refused) == 1 ? " was" : "s were",
                     ps_json_text(first, "name"), ps_json_u64(first, "id"),
                     ps_json_text(first, "why"));
}

static psd_status_t accept(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ask_accept(cli, name, &reply, err);

    return rc == PSD_OK ? show_accepted(cli, reply, err) : rc;
}

psd_status_t ps_cmd_registry_accept(ps_cli_t *cli, psd_error_t *err)
{
    bool all = ps_args_on(&cli->args, "all");
    const char *name = NULL;
    psd_status_t rc = PSD_OK;

    if (all == (cli->args.n_words > 0)) {
        return psd_error_set(err, PSD_USAGE, "\"cluster registry accept\" needs a TABLE, or --all");
    }
    if (!all) {
        rc = ps_cli_name(cli, 0, "TABLE", &name, err);
    }
    return rc == PSD_OK ? accept(cli, name, err) : rc;
}

psd_status_t ps_cmd_cluster_rebuild(ps_cli_t *cli, psd_error_t *err)
{
    return ps_args_on(&cli->args, "from-nodes")
               ? accept(cli, NULL, err)
               : psd_error_set(err, PSD_USAGE, "\"cluster rebuild\" needs --from-nodes");
}

/* ---- discard ---- */

static psd_status_t ask_discard(ps_cli_t *cli, const char *name, bool dry_run, json_t **ret_reply,
                                psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:s,s:b}", "op", "registry_discard", "name", name, "dry_run",
                                dry_run ? 1 : 0);

    return ps_cli_ask(cli, request, ret_reply, err);
}

psd_status_t ps_cmd_registry_discard(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *found = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    const json_t *table = NULL;
    char what[WHAT_SIZE];
    psd_status_t rc = ps_cli_name(cli, 0, "TABLE", &name, err);

    if (rc == PSD_OK) {
        rc = ask_discard(cli, name, true, &found, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    table = json_array_get(ps_json_at(found, "tables"), 0);
    if (ps_args_on(&cli->args, "dry-run")) {
        ps_out_list(&cli->out, found, "tables", UNKNOWN);
        return PSD_OK;
    }
    (void)snprintf(what, sizeof what,
                   "table \"%s\", number %" PRIu64 ", with %" PRIu64 " rows that nobody else has,",
                   ps_json_text(table, "name"), ps_json_u64(table, "id"),
                   ps_json_u64(table, "rows"));
    rc = ps_confirm_drop(cli, what, err);
    if (rc == PSD_OK) {
        rc = ask_discard(cli, name, false, &reply, err);
    }
    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "tables", UNKNOWN);
    }
    return rc;
}
