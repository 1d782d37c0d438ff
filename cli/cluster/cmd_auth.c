/* SPDX-License-Identifier: Apache-2.0 */
/* pscli auth: keys of this user, and who may do what. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/cluster/cluster.h"
#include "transport/keys/key_file.h"

#define NO_EXIT 1      /* of can-i */
#define REACH_SIZE 640 /* two globs, and words */

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

/* Makes the folders of the path that are missing, for this user alone. */
static psd_status_t make_folders(char *path, psd_error_t *err)
{
    for (char *at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
        int failed = 0;

        *at = '\0';
        failed = mkdir(path, S_IRWXU) != 0 && errno != EEXIST ? errno : 0;
        if (failed != 0) {
            return psd_error_set(err, PSD_IO, "cannot make %s: %s", path, strerror(failed));
        }
        *at = '/';
    }
    return PSD_OK;
}

/* $XDG_CONFIG_HOME/pscli/keys/NAME.key, or ~/.config/…; makes the folders. */
static psd_status_t find_path(const char *name, char ret_path[PATH_MAX], psd_error_t *err)
{
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    bool is_set = config != NULL && config[0] == '/';
    int n = 0;

    if (!is_set && (home == NULL || home[0] != '/')) {
        return psd_error_set(err, PSD_USAGE, "HOME is not set; --file says where the key goes");
    }
    n = snprintf(ret_path, PATH_MAX, "%s%s/pscli/keys/%s.key", is_set ? config : home,
                 is_set ? "" : "/.config", name);
    if (n < 0 || n >= PATH_MAX) {
        return psd_error_set(err, PSD_USAGE, "the path of the key is too long; --file FILE");
    }
    return make_folders(ret_path, err);
}

psd_status_t ps_cmd_auth_keygen(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t pair = {.name = ""};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    char path[PATH_MAX] = "";
    const char *name = NULL;
    const char *file = ps_args_text(&cli->args, "file");
    psd_status_t rc = ps_cli_name(cli, 0, "principal", &name, err);

    if (rc == PSD_OK && file == NULL) {
        rc = find_path(name, path, err);
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

/* A text goes into the request under its name. What is left out would mean more: all
 * tables, for one. */
static psd_status_t add_text(json_t *request, const char *name, const char *text, psd_error_t *err)
{
    return json_object_set_new(request, name, json_string(text)) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE, "the text for \"%s\" is not UTF-8", name);
}

static psd_status_t add_options(const ps_cli_t *cli, json_t *request, psd_error_t *err)
{
    static const char *const OPTIONS[] = {"role", "key", "tables", "jobs"};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof OPTIONS / sizeof OPTIONS[0]; i++) {
        if (ps_args_given(&cli->args, OPTIONS[i])) {
            rc = add_text(request, OPTIONS[i], ps_args_text(&cli->args, OPTIONS[i]), err);
        }
    }
    return rc;
}

/* Whoever narrows one of the two means to narrow: the other one is not all without a word. */
static psd_status_t check_globs(const ps_cli_t *cli, psd_error_t *err)
{
    bool has_tables = ps_args_given(&cli->args, "tables");

    return has_tables == ps_args_given(&cli->args, "jobs")
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE,
                               "--%s is missing beside --%s; allowed: a glob, or '*' for all %s",
                               has_tables ? "jobs" : "tables", has_tables ? "tables" : "jobs",
                               has_tables ? "jobs" : "tables");
}

/* What the rule covers that was just made: the last one. Nothing for an admin, who may do all. */
static void print_reach(const json_t *reply, char *ret, size_t size)
{
    const json_t *rules = ps_json_at(reply, "rules");
    const json_t *rule = json_array_get(rules, json_array_size(rules) - 1);
    const char *tables = ps_json_text(rule, "tables");
    const char *jobs = ps_json_text(rule, "jobs");

    ret[0] = '\0';
    if (rule == NULL || strcmp(ps_json_text(rule, "role"), "admin") == 0) {
        return;
    }
    (void)(strcmp(tables, "*") == 0 && strcmp(jobs, "*") == 0
               ? snprintf(ret, size, "; the rule covers all tables and jobs")
               : snprintf(ret, size, "; the rule covers tables \"%s\" and jobs \"%s\"", tables,
                          jobs));
}

psd_status_t ps_cmd_auth_allow(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_cli_name(cli, 0, "principal", &name, err);

    if (rc == PSD_OK && !ps_args_given(&cli->args, "role")) {
        rc = psd_error_set(err, PSD_USAGE,
                           "--role is missing; allowed: admin, operator, job, reader, metrics");
    }
    if (rc == PSD_OK) {
        rc = check_globs(cli, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    request = json_pack("{s:s,s:s}", "op", "auth_allow", "name", name);
    rc = add_options(cli, request, err);
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
        char reach[REACH_SIZE];

        print_reach(reply, reach, sizeof reach);
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
    if (rc == PSD_OK) {
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

    if (as == NULL) {
        return psd_error_set(err, PSD_USAGE, "--as NAME is missing: the principal to ask about");
    }
    request = json_pack("{s:s,s:s,s:s,s:s}", "op", "auth_can", "verb", ps_cli_word(cli, 0),
                        "object", ps_cli_word(cli, 1), "as", as);
    if (cli->args.n_words > 2) {
        rc = add_text(request, "name", ps_cli_word(cli, 2), err);
    }
    if (rc == PSD_OK) {
        rc = ps_cli_ask(cli, request, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    may = json_is_true(ps_json_at(reply, "may"));
    ps_out_answer(&cli->out, reply, ANSWER, "%s%s", may ? "yes" : "no",
                  json_is_true(ps_json_at(reply, "denied")) ? ": it is denied" : "");
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
