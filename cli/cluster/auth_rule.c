/* SPDX-License-Identifier: Apache-2.0 */
/* The rule that somebody gets, and the place of a key. */
#include "cli/cluster/auth_rule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the file ---- */

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

psd_status_t ps_auth_key_path(const char *name, char ret_path[PATH_MAX], psd_error_t *err)
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

/* ---- the rule ---- */

psd_status_t ps_auth_add_text(json_t *request, const char *name, const char *text, psd_error_t *err)
{
    return json_object_set_new(request, name, json_string(text)) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE, "the text for \"%s\" is not UTF-8", name);
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

psd_status_t ps_auth_add_rule(const ps_cli_t *cli, json_t *request, psd_error_t *err)
{
    static const char *const OPTIONS[] = {"role", "tables", "jobs"};
    psd_status_t rc = PSD_OK;

    if (!ps_args_given(&cli->args, "role")) {
        return psd_error_set(err, PSD_USAGE,
                             "--role is missing; allowed: admin, operator, job, reader, metrics");
    }
    rc = check_globs(cli, err);
    for (size_t i = 0; rc == PSD_OK && i < sizeof OPTIONS / sizeof OPTIONS[0]; i++) {
        if (ps_args_given(&cli->args, OPTIONS[i])) {
            rc = ps_auth_add_text(request, OPTIONS[i], ps_args_text(&cli->args, OPTIONS[i]), err);
        }
    }
    return rc;
}

void ps_auth_print_reach(const json_t *principal, char ret[PS_REACH_SIZE])
{
    const json_t *rules = ps_json_at(principal, "rules");
    const json_t *rule = json_array_get(rules, json_array_size(rules) - 1);
    const char *tables = ps_json_text(rule, "tables");
    const char *jobs = ps_json_text(rule, "jobs");

    ret[0] = '\0';
    if (rule == NULL || strcmp(ps_json_text(rule, "role"), "admin") == 0) {
        return;
    }
    (void)(strcmp(tables, "*") == 0 && strcmp(jobs, "*") == 0
               ? snprintf(ret, PS_REACH_SIZE, "; the rule covers all tables and jobs")
               : snprintf(ret, PS_REACH_SIZE, "; the rule covers tables \"%s\" and jobs \"%s\"",
                          tables, jobs));
}
