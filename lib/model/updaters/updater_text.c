/* SPDX-License-Identifier: Apache-2.0 */
/* An updater as text: "adam:alpha=0.01,eps=1e-6", "plugin:NAME:TEXT". */
#include <stdio.h>
#include <string.h>

#include "model/updaters/updater_rule.h"
#include "model/tables/words.h"

static psd_status_t unknown_parameter(const ps_updater_rule_t *rule, const char *name,
                                      psd_error_t *err)
{
    char allowed[PS_RULE_PARAMETERS_MAX * PS_NUMBER_SIZE] = "";
    size_t length = 0;

    for (const ps_rule_parameter_t *at = rule->parameters; at->name != NULL; at++) {
        const char *joint = at == rule->parameters ? "" : at[1].name == NULL ? " or " : ", ";

        length +=
            (size_t)snprintf(allowed + length, sizeof allowed - length, "%s%s", joint, at->name);
    }
    return ps_word_unknown("updater parameter", name, allowed, err);
}

/* One "name=number". */
static psd_status_t read_parameter(const ps_updater_rule_t *rule, ps_updater_spec_t *spec,
                                   const char *part, psd_error_t *err)
{
    char name[PS_NUMBER_SIZE] = {0};
    const char *number = part;
    const ps_rule_parameter_t *at = rule->parameters;
    double value = 0;
    psd_status_t rc = PSD_OK;

    if (!ps_word_take(&number, '=', name) || strlen(number) >= PS_NUMBER_SIZE) {
        return ps_word_no_number("updater parameter", part, err);
    }
    while (at->name != NULL && strcmp(at->name, name) != 0) {
        at++;
    }
    if (at->name == NULL) {
        return unknown_parameter(rule, name, err);
    }
    rc = ps_word_number(name, number, &value, err);
    if (rc == PSD_OK) {
        ps_rule_parameter_set(at, spec, value);
    }
    return rc;
}

/* ":name=number,…" up to the end. */
static psd_status_t read_parameters(const ps_updater_rule_t *rule, ps_updater_spec_t *spec,
                                    const char *text, psd_error_t *err)
{
    while (*text != '\0') {
        char part[PS_NUMBER_SIZE + PS_NUMBER_SIZE] = {0};
        size_t length = strcspn(text + 1, ",");
        psd_status_t rc = PSD_OK;

        text++; /* ':' or ',' */
        if (length >= sizeof part) {
            return ps_word_no_number("updater parameter", text, err);
        }
        memcpy(part, text, length);
        rc = read_parameter(rule, spec, part, err);
        if (rc != PSD_OK) {
            return rc;
        }
        text += length;
    }
    return PSD_OK;
}

/* Copies text of at most size - 1 bytes; false: it is longer. */
static bool keep(const char *text, size_t length, char *ret, size_t size)
{
    if (length >= size) {
        return false;
    }
    memcpy(ret, text, length);
    ret[length] = '\0';
    return true;
}

/* ":NAME" or ":NAME:TEXT"; only the plug-in interprets text. */
static psd_status_t read_plugin(ps_updater_spec_t *spec, const char *text, psd_error_t *err)
{
    const char *name = *text == ':' ? text + 1 : text;
    size_t length = strcspn(name, ":");
    const char *rest = name[length] == ':' ? name + length + 1 : name + length;

    if (length == 0 || !keep(name, length, spec->plugin, sizeof spec->plugin)) {
        return psd_error_set(err, PSD_INVALID,
                             "updater \"plugin%.80s\" names no plug-in; "
                             "allowed is plugin:NAME or plugin:NAME:TEXT with "
                             "a name of 1 to %d characters",
                             text, PS_NAME_MAX);
    }
    if (!keep(rest, strlen(rest), spec->parameters, sizeof spec->parameters)) {
        return psd_error_set(err, PSD_INVALID,
                             "parameters of plug-in %s have %zu bytes; 0..%d "
                             "are allowed",
                             spec->plugin, strlen(rest), PS_PLUGIN_TEXT_SIZE - 1);
    }
    return PSD_OK;
}

psd_status_t ps_updater_spec_parse(const char *text, ps_updater_spec_t *ret, psd_error_t *err)
{
    size_t length = strcspn(text, ":");
    const ps_updater_rule_t *rule = ps_updater_rule_find(text, length);
    ps_updater_spec_t spec = {0};
    psd_status_t rc = PSD_OK;

    if (rule == NULL) {
        return ps_word_unknown("updater", text, ps_rules_text, err);
    }
    spec = ps_updater_rule_spec(rule);
    if (rule->kind == PS_UPDATER_PLUGIN) {
        rc = read_plugin(&spec, text + length, err);
    } else if (text[length] == ':' && rule->parameters[0].name == NULL) {
        rc = psd_error_set(err, PSD_INVALID, "updater \"%.80s\" takes no parameters", text);
    } else {
        rc = read_parameters(rule, &spec, text + length, err);
    }
    if (rc == PSD_OK) {
        *ret = spec;
    }
    return rc;
}

const char *ps_updater_name(ps_updater_kind_t value)
{
    const ps_updater_rule_t *rule = ps_updater_rule_of(value);

    return rule == NULL ? "?" : rule->name;
}

void ps_updater_spec_format(const ps_updater_spec_t *self, char ret[PS_SPEC_TEXT_SIZE])
{
    const ps_updater_rule_t *rule = ps_updater_rule_of(self->kind);
    size_t length = 0;

    if (rule != NULL && rule->kind == PS_UPDATER_PLUGIN) {
        (void)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s:%s%s%s", rule->name, self->plugin,
                       *self->parameters == '\0' ? "" : ":", self->parameters);
        return;
    }
    length = (size_t)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s", ps_updater_name(self->kind));
    if (rule == NULL) {
        return;
    }
    for (const ps_rule_parameter_t *at = rule->parameters; at->name != NULL; at++) {
        char number[PS_NUMBER_SIZE] = {0};

        ps_word_format_number(ps_rule_parameter_get(at, self), number);
        length += (size_t)snprintf(ret + length, PS_SPEC_TEXT_SIZE - length, "%c%s=%s",
                                   at == rule->parameters ? ':' : ',', at->name, number);
    }
}
