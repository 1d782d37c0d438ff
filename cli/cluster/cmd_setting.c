/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster settings, get, set, unset. */
#include <string.h>

#include "base/alloc.h"
#include "cli/cluster/cluster.h"

static const ps_column_t SETTINGS[] = {
    {"KEY", "key", PS_UNIT_NONE, false},   {"VALUE", "value", PS_UNIT_NONE, false},
    {"UNIT", "unit", PS_UNIT_NONE, false}, {"ORIGIN", "origin", PS_UNIT_NONE, false},
    {"OWN", "own", PS_UNIT_NONE, true},    {"OWN_ORIGIN", "own_origin", PS_UNIT_NONE, true},
    {NULL, NULL, PS_UNIT_NONE, false}};

static psd_status_t ask_all(ps_cli_t *cli, json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = json_pack("{s:s}", "op", "settings");

    return ps_cli_ask(cli, request, ret_reply, err);
}

psd_status_t ps_cmd_cluster_settings(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ask_all(cli, &reply, err);

    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "settings", SETTINGS);
    }
    return rc;
}

/* The value alone, as of one key; JSON has the rest. */
static void show_value(const ps_cli_t *cli, const json_t *setting)
{
    if (cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE) {
        ps_print(cli->out.out, "%s\n", ps_json_text(setting, "value"));
    } else {
        ps_out_object(&cli->out, setting, SETTINGS);
    }
}

psd_status_t ps_cmd_cluster_get(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *key = cli->args.words[0];
    const json_t *setting = NULL;
    size_t i = 0;
    psd_status_t rc = ask_all(cli, &reply, err);

    if (rc != PSD_OK) {
        return rc;
    }
    json_array_foreach(ps_json_at(reply, "settings"), i, setting)
    {
        if (strcmp(ps_json_text(setting, "key"), key) == 0) {
            show_value(cli, setting);
            return PSD_OK;
        }
    }
    return psd_error_set(err, PSD_INVALID,
                         "there is no setting \"%.60s\" of the cluster; pscli cluster settings "
                         "lists them",
                         key);
}

static psd_status_t change(ps_cli_t *cli, const char *value, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:s}", "op", "setting_set", "key", cli->args.words[0]);
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = PSD_OK;

    if (value != NULL) {
        (void)json_object_set_new(request, "value", json_string(value));
    }
    rc = ps_cli_ask(cli, request, &reply, err);
    if (rc == PSD_OK) {
        ps_out_answer(&cli->out, reply, SETTINGS, "%s is %s, from %s", ps_json_text(reply, "key"),
                      ps_json_text(reply, "value"),
                      value == NULL ? ps_json_text(reply, "origin") : "the cluster");
    }
    return rc;
}

psd_status_t ps_cmd_cluster_set(ps_cli_t *cli, psd_error_t *err)
{
    return change(cli, cli->args.words[1], err);
}

psd_status_t ps_cmd_cluster_unset(ps_cli_t *cli, psd_error_t *err)
{
    return change(cli, NULL, err);
}
