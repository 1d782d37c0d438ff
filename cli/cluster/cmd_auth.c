/* SPDX-License-Identifier: Apache-2.0 */
/* pscli auth: keys of this user, and who may do what. */
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cluster/auth_rule.h"
#include "cli/cluster/cluster.h"
#include "transport/keys/key_file.h"

#define NO_EXIT 1 /* of can-i */

/* What a change is worth there. */
static const char *unchecked(const json_t *reply)
{
    return json_is_true(ps_json_at(reply, "checked"))
               ? ""
               : "; this psd checks no rights (security.level: plain)";
}

static const ps_column_t PRINCIPALS[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                         {"STATE", "state", PS_UNIT_NONE, false},
                                         {"ROLES", "roles", PS_UNIT_NONE, false},
                                         {"TABLES", "tables", PS_UNIT_NONE, false},
                                         {"JOBS", "jobs", PS_UNIT_NONE, false},
                                         {"UID", "uid", PS_UNIT_NONE, false},
                                         {"KEY", "key", PS_UNIT_NONE, false},
                                         {"OLD KEY", "old_key", PS_UNIT_NONE, false},
                                         {"UNTIL", "old_until_unix_ms", PS_UNIT_UNIX_MS, false},
                                         {"EPOCH", "epoch", PS_UNIT_NONE, true},
                                         {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t KEYS[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                   {"KEY", "key", PS_UNIT_NONE, false},
                                   {"FILE", "file", PS_UNIT_NONE, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t ANSWER[] = {
    {"MAY", "may", PS_UNIT_NONE, false},   {"AS", "as", PS_UNIT_NONE, false},
    {"VERB", "verb", PS_UNIT_NONE, false}, {"OBJECT", "object", PS_UNIT_NONE, false},
    {"NAME", "name", PS_UNIT_NONE, false}, {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t CALLER[] = {{"PRINCIPAL", "principal", PS_UNIT_NONE, false},
                                     {"STATE", "state", PS_UNIT_NONE, false},
                                     {"UID", "uid", PS_UNIT_NONE, false},
                                     {"KEY", "key", PS_UNIT_NONE, false},
                                     {"ADDRESS", "address", PS_UNIT_NONE, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

/* ---- keygen ---- */

psd_status_t ps_cmd_auth_keygen(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t pair = {.name = ""};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    char path[PATH_MAX] = "";
    const char *name = NULL;
    const char *file = ps_args_text(&cli->args, "file");
    psd_status_t rc = ps_cli_name(cli, 0, "principal", &name, err);

    if (rc == PSD_OK && file == NULL) {
        rc = ps_auth_key_path(name, path, err);
        file = path;
    }
    if (rc == PSD_OK) {
        rc = ps_key_pair_make(name, &pair, err);
    }
    if (rc == PSD_OK) {
        rc = ps_key_file_write(file, &pair, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    doc = json_pack("{s:s,s:s,s:s}", "name", name, "key", pair.public_key, "file", file);
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the answer");
    }
    ps_out_answer(&cli->out, doc, KEYS,
                  "key of %s is in %s\nan admin lets it in by: pscli auth allow %s --role ROLE "
                  "--tables 'GLOB' --jobs 'GLOB' --key='%s'",
                  name, file, name, pair.public_key);
    return PSD_OK;
}

/* ---- list ---- */

psd_status_t ps_cmd_auth_list(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "auth_list", NULL, NULL, &reply, err);

    if (rc == PSD_OK) {
        ps_out_list(&cli->out, reply, "principals", PRINCIPALS);
    }
    return rc;
}

/* ---- allow, deny ---- */

psd_status_t ps_cmd_auth_allow(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "principal", &name, err);

    if (rc == PSD_OK) {
        request = json_pack("{s:s,s:s}", "op", "auth_allow", "name", name);
        rc = ps_auth_add_rule(cli, request, err);
    }
    if (rc == PSD_OK && ps_args_given(&cli->args, "key")) {
        rc = ps_auth_add_text(request, "key", ps_args_text(&cli->args, "key"), err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_args_given(&cli->args, "uid")) {
        (void)json_object_set_new(request, "uid",
                                  json_integer((json_int_t)ps_args_u64(&cli->args, "uid")));
    }
    if (ps_args_on(&cli->args, "add")) {
        (void)json_object_set_new(request, "add", json_true());
    }
    rc = ps_cli_ask(cli, request, &reply, err);
    if (rc == PSD_OK) {
        char reach[PS_REACH_SIZE];

        ps_auth_print_reach(reply, reach);
        ps_out_answer(&cli->out, reply, PRINCIPALS, "%s is allowed: %s%s%s",
                      ps_json_text(reply, "name"), ps_json_text(reply, "roles"), reach,
                      unchecked(reply));
    }
    return rc;
}

psd_status_t ps_cmd_auth_deny(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "principal", &name, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "auth_deny", "name", name, &reply, err);
    }
    if (rc == PSD_OK && strcmp(ps_json_text(reply, "state"), "unknown") == 0) {
        ps_out_answer(&cli->out, reply, PRINCIPALS, "%s is no principal; its token is void",
                      ps_json_text(reply, "name"));
    } else if (rc == PSD_OK) {
        ps_out_answer(&cli->out, reply, PRINCIPALS, "%s is denied%s", ps_json_text(reply, "name"),
                      unchecked(reply));
    }
    return rc;
}

/* ---- can-i ---- */

psd_status_t ps_cmd_auth_can(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *as = ps_args_text(&cli->args, "as");
    bool may = false;
    psd_status_t rc = PSD_OK;

    request = json_pack("{s:s,s:s,s:s}", "op", "auth_can", "verb", ps_cli_word(cli, 0), "object",
                        ps_cli_word(cli, 1));
    if (as != NULL) {
        rc = ps_auth_add_text(request, "as", as, err);
    }
    if (rc == PSD_OK && cli->args.n_words > 2) {
        rc = ps_auth_add_text(request, "name", ps_cli_word(cli, 2), err);
    }
    if (rc == PSD_OK) {
        rc = ps_cli_ask(cli, request, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    may = json_is_true(ps_json_at(reply, "may"));
    ps_out_answer(&cli->out, reply, ANSWER, "%s%s", may ? "yes" : "no",
                  json_is_true(ps_json_at(reply, "denied")) ? ": it is denied"
                                                            : ps_json_text(reply, "reach"));
    cli->exit_code = may ? 0 : NO_EXIT;
    return PSD_OK;
}

/* ---- whoami ---- */

psd_status_t ps_cmd_auth_whoami(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "auth_whoami", NULL, NULL, &reply, err);

    if (rc == PSD_OK) {
        const char *state = ps_json_text(reply, "state");

        ps_out_answer(&cli->out, reply, CALLER, "%s%s", ps_json_text(reply, "who"),
                      strcmp(state, "unknown") == 0  ? ": no principal"
                      : strcmp(state, "denied") == 0 ? ": denied"
                                                     : "");
    }
    return rc;
}
