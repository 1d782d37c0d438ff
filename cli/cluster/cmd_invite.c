/* SPDX-License-Identifier: Apache-2.0 */
/* pscli node invite, auth invite: a token, by which somebody comes in. */
#include <string.h>

#include "base/alloc.h"
#include "cli/cluster/auth_rule.h"
#include "cli/cluster/cluster.h"
#include "transport/sockets/curve.h"

#define MS_IN_S 1000

static const ps_column_t NODE_TOKEN[] = {{"NODE", "name", PS_UNIT_NONE, false},
                                         {"SECONDS", "ttl_s", PS_UNIT_NONE, false},
                                         {"TOKEN", "token", PS_UNIT_NONE, false},
                                         {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t CLIENT_TOKEN[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                           {"SECONDS", "ttl_s", PS_UNIT_NONE, false},
                                           {"TOKEN", "token", PS_UNIT_NONE, false},
                                           {NULL, NULL, PS_UNIT_NONE, false}};

/* What both ask: who is invited, the public half of the token, how long it counts. */
static psd_status_t add_common(const ps_cli_t *cli, json_t *request, const char *name,
                               const ps_key_pair_t *pair, psd_error_t *err)
{
    if (request == NULL || json_object_set_new(request, "name", json_string(name)) != 0 ||
        json_object_set_new(request, "key", json_string(pair->public_key)) != 0) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the request");
    }
    if (ps_args_given(&cli->args, "ttl")) {
        json_int_t ttl_s = ((json_int_t)ps_args_ms(&cli->args, "ttl") + MS_IN_S - 1) / MS_IN_S;

        (void)json_object_set_new(request, "ttl_s", json_integer(ttl_s));
    }
    return PSD_OK;
}

/* The secret half is made here, and goes to whoever reads the line. */
static psd_status_t invite(ps_cli_t *cli, json_t *request, const char *name,
                           const ps_column_t *columns, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t pair = {.name = ""};
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    char token[PS_TOKEN_MAX + 1] = "";
    psd_status_t rc = ps_key_pair_make("token", &pair, err);

    if (rc == PSD_OK) {
        rc = add_common(cli, request, name, &pair, err);
    }
    if (rc == PSD_OK) {
        rc = ps_cli_ask(cli, request, &reply, err);
    }
    if (rc == PSD_OK && !ps_curve_print_token(ps_json_text(reply, "endpoint"), &pair, token)) {
        rc = psd_error_set(err, PSD_PROTO, "the endpoint in the answer is too long");
    }
    if (rc == PSD_OK) {
        (void)json_object_set_new(reply, "token", json_string(token));
        ps_out_answer(&cli->out, reply, columns, "%s", token);
        if (json_is_true(json_object_get(reply, "local"))) {
            ps_say(&cli->out,
                   "only this host reaches %s, where the token is to be used: for other machines "
                   "psd needs another address in listen.endpoints",
                   ps_json_text(reply, "endpoint"));
        }
    }
    explicit_bzero(token, sizeof token);
    return rc;
}

psd_status_t ps_cmd_node_invite(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = json_pack("{s:s}", "op", "node_invite");
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    return rc == PSD_OK ? invite(cli, request, name, NODE_TOKEN, err) : rc;
}

psd_status_t ps_cmd_auth_invite(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = json_pack("{s:s}", "op", "auth_invite");
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = ps_auth_add_rule(cli, request, err);
    }
    return rc == PSD_OK ? invite(cli, request, name, CLIENT_TOKEN, err) : rc;
}
