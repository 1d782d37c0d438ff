/* SPDX-License-Identifier: Apache-2.0 */
/* pscli env: what programs take from the environment, and whose variable says it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "cli/jobs/jobs.h"
#include "protocol/overlay/site.h"
#include "transport/environment/environment.h"

static const ps_column_t COLUMNS[] = {{"NAME", "name", PS_UNIT_NONE, false},
                                      {"VALUE", "value", PS_UNIT_NONE, false},
                                      {"ORIGIN", "origin", PS_UNIT_NONE, false},
                                      {"ABOUT", "about", PS_UNIT_NONE, true},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

static bool add(json_t *list, const char *name, const char *value, const char *origin,
                const char *about)
{
    json_t *row = json_pack("{s:s, s:s?, s:s, s:s}", "name", name, "value", value, "origin", origin,
                            "about", about);

    return json_array_append_new(list, row) == 0;
}

/* The first of "one|two" is what holds when nobody says anything. */
static void default_of(const ps_env_setting_t *setting, char ret[PS_ENVIRONMENT_TEXT])
{
    size_t length =
        setting->kind == PS_ENV_WORDS ? strcspn(setting->fallback, "|") : strlen(setting->fallback);

    (void)snprintf(ret, PS_ENVIRONMENT_TEXT, "%.*s", (int)length, setting->fallback);
}

/* The lines of the overlay's file, and the names of sites. */
static psd_status_t check_text(const char *name, const ps_environment_t *said, psd_error_t *err)
{
    ps_site_t site;
    psd_status_t rc = PSD_OK;

    if (strcmp(name, "PSD_SITE") == 0) {
        return ps_site_find(said->text, said->origin, 0, &site, err);
    }
    if (strcmp(name, "PSD_OVERLAY_FILE") == 0) {
        rc = ps_overlay_file_check(said->text, err);
    }
    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "%s", said->origin);
}

static psd_status_t add_settings(json_t *list, psd_error_t *err)
{
    const ps_env_setting_t *setting = NULL;
    ps_environment_t said;

    for (size_t i = 0; (setting = ps_env_setting_at(i)) != NULL; i++) {
        char fallback[PS_ENVIRONMENT_TEXT];
        psd_status_t rc = ps_environment_read(setting->name, &said, err);

        if (rc == PSD_OK && said.text != NULL) {
            rc = ps_env_check(setting, said.text, said.origin, err);
        }
        if (rc == PSD_OK && said.text != NULL) {
            rc = check_text(setting->name, &said, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        default_of(setting, fallback);
        if (!add(list, setting->name, said.text != NULL ? said.text : fallback,
                 said.text != NULL ? said.origin : "default", setting->help)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for the settings");
        }
    }
    return PSD_OK;
}

static bool has(const json_t *list, const char *name)
{
    const json_t *row = NULL;
    size_t i = 0;

    json_array_foreach(list, i, row)
    {
        if (strcmp(ps_json_text(row, "name"), name) == 0) {
            return true;
        }
    }
    return false;
}

/* A key of psd.yaml, or an option of pscli, that the environment sets: its own variable,
 * or an alias. */
static psd_status_t add_other(json_t *list, const char *name, psd_error_t *err)
{
    ps_environment_t said;
    psd_status_t rc = has(list, name) ? PSD_OK : ps_environment_read(name, &said, err);

    if (rc == PSD_OK && !has(list, name) && said.text != NULL &&
        !add(list, name, said.text, said.origin,
             strncmp(name, "PSCLI_", strlen("PSCLI_")) == 0 ? "an option of pscli"
                                                            : "a key of psd.yaml")) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for the settings");
    }
    return rc;
}

static psd_status_t add_others(json_t *list, psd_error_t *err)
{
    const ps_alias_t *alias = NULL;
    char name[PS_ENV_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    for (size_t at = 0; rc == PSD_OK && ps_env_next(environ, &at, "PSD_", name);) {
        rc = add_other(list, name, err);
    }
    for (size_t i = 0; rc == PSD_OK && (alias = ps_alias_at(i)) != NULL; i++) {
        if (alias->setting[0] != '\0') {
            rc = add_other(list, alias->setting, err);
        }
    }
    return rc;
}

/* Variables that set nothing. */
static bool add_idle(json_t *list)
{
    const ps_alias_t *alias = NULL;
    bool ok = true;

    for (size_t i = 0; ok && (alias = ps_alias_at(i)) != NULL; i++) {
        const char *text = getenv(alias->name);
        char origin[200];

        if (text == NULL || text[0] == '\0' || has(list, alias->name)) {
            continue;
        }
        if (!ps_alias_is_read(alias)) {
            (void)snprintf(origin, sizeof origin, "not read: PSD_ALIASES does not name %s",
                           alias->family);
        } else if (alias->how == PS_ALIAS_NOTHING) {
            (void)snprintf(origin, sizeof origin, "nothing to do: %s", alias->help);
        } else if (ps_alias_text(alias) == NULL) {
            (void)snprintf(origin, sizeof origin, "not read: %s is not set", alias->detail);
        } else {
            continue;
        }
        ok = add(list, alias->name, text, origin, "");
    }
    return ok;
}

psd_status_t ps_cmd_env(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:[]}", "settings");
    json_t *list = json_object_get(doc, "settings");
    psd_status_t rc = ps_environment_check(err);

    if (rc == PSD_OK) {
        rc = add_settings(list, err);
    }
    if (rc == PSD_OK) {
        rc = add_others(list, err);
    }
    if (rc == PSD_OK && !add_idle(list)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for the settings");
    }
    if (rc == PSD_OK) {
        ps_out_list(&cli->out, doc, "settings", COLUMNS);
    }
    return rc;
}
