/* SPDX-License-Identifier: Apache-2.0 */
/* The list of updaters, and the checks of an updater's spec. */
#include "model/updaters/updater_rule.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

#define TAKES_NUMBERS true
#define TAKES_FLOATS false

/* clang-format off */
#define UPDATER(NAME, number, name, types, loop, arrays, state, zero, rule) \
    {#name, PS_UPDATER_##NAME, TAKES_##types, zero, arrays, {
#define PARAMETER(joint, setting, letter, fallback, bound) \
    {#setting, offsetof(ps_updater_spec_t, setting), fallback, PS_BOUND_##bound},
#define END() {0}}},
/* clang-format on */
static const ps_updater_rule_t rules[] = {
#include "model/tables/updaters.def"
    {"plugin", PS_UPDATER_PLUGIN, true, false, 0, {{0}}},
};

#define UPDATER(NAME, number, name, ...) #name ", "
const char ps_rules_text[] =
#include "model/tables/updaters.def"
    "or plugin:NAME";

#define NAMED_NUMBERS(name) #name ", "
#define NAMED_FLOATS(name)
#define UPDATER(NAME, number, name, types, ...) NAMED_##types(name)
static const char integer_rules[] =
#include "model/tables/updaters.def"
    "or plugin:NAME";

const ps_updater_rule_t *ps_updater_rule_at(size_t i)
{
    return i < sizeof rules / sizeof *rules ? &rules[i] : NULL;
}

const ps_updater_rule_t *ps_updater_rule_of(ps_updater_kind_t kind)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].kind == kind) {
            return &rules[i];
        }
    }
    return NULL;
}

const ps_updater_rule_t *ps_updater_rule_find(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strlen(rules[i].name) == length && memcmp(rules[i].name, text, length) == 0) {
            return &rules[i];
        }
    }
    return NULL;
}

double ps_rule_parameter_get(const ps_rule_parameter_t *self, const ps_updater_spec_t *spec)
{
    double value = 0;

    memcpy(&value, (const char *)spec + self->offset, sizeof value);
    return value;
}

void ps_rule_parameter_set(const ps_rule_parameter_t *self, ps_updater_spec_t *spec, double value)
{
    memcpy((char *)spec + self->offset, &value, sizeof value);
}

ps_updater_spec_t ps_updater_rule_spec(const ps_updater_rule_t *self)
{
    ps_updater_spec_t spec = {.kind = self->kind};

    for (const ps_rule_parameter_t *at = self->parameters; at->name != NULL; at++) {
        ps_rule_parameter_set(at, &spec, at->fallback);
    }
    return spec;
}

static const char *allowed_by(ps_bound_t bound)
{
    switch (bound) {
    case PS_BOUND_NOT_NEGATIVE:
        return "finite non-negative numbers";
    case PS_BOUND_FRACTION:
        return "numbers from 0 to below 1";
    case PS_BOUND_WORKERS:
        return "whole numbers 1..255";
    case PS_BOUND_POSITIVE:
    default:
        return "finite positive numbers";
    }
}

/* `value` is the given number, `held` the number in the table's type. */
static bool is_within(ps_bound_t bound, double value, double held)
{
    if (!isfinite(held)) {
        return false;
    }
    switch (bound) {
    case PS_BOUND_NOT_NEGATIVE:
        return value == 0 || held > 0;
    case PS_BOUND_FRACTION:
        return value == 0 || (held > 0 && held < 1);
    case PS_BOUND_WORKERS:
        return value >= 1 && value <= PS_UPDATER_WORKERS_MAX && value == floor(value);
    case PS_BOUND_POSITIVE:
    default:
        return held > 0;
    }
}

static psd_status_t check_parameters(const ps_updater_rule_t *rule, const ps_table_spec_t *table,
                                     psd_error_t *err)
{
    for (const ps_rule_parameter_t *at = rule->parameters; at->name != NULL; at++) {
        double value = ps_rule_parameter_get(at, &table->updater);
        double held = table->type == PS_TYPE_F32 ? (double)(float)value : value;

        if (!is_within(at->bound, value, held)) {
            return psd_error_set(err, PSD_INVALID, "%s of updater %s is %g; %s are allowed",
                                 at->name, rule->name, value, allowed_by(at->bound));
        }
    }
    return PSD_OK;
}

/* The room that loads a plug-in asks it about type and parameters. */
static psd_status_t check_plugin(const ps_updater_spec_t *updater, psd_error_t *err)
{
    if (!ps_text_is_name(updater->plugin)) {
        return psd_error_set(err, PSD_INVALID,
                             "plug-in name \"%.80s\" is not allowed; 1 to %d "
                             "letters, digits, \"_\", \".\" and \"-\" are, not "
                             "beginning with \".\" or \"-\"",
                             updater->plugin, PS_NAME_MAX);
    }
    for (const char *at = updater->parameters; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            return psd_error_set(
                err, PSD_INVALID,
                "parameters of plug-in %s: byte %zu is not a printable ASCII character",
                updater->plugin, (size_t)(at - updater->parameters));
        }
    }
    return PSD_OK;
}

psd_status_t ps_updater_spec_check(const ps_table_spec_t *table, psd_error_t *err)
{
    const ps_updater_spec_t *updater = &table->updater;
    const ps_updater_rule_t *rule = ps_updater_rule_of(updater->kind);
    bool is_float = table->type == PS_TYPE_F32 || table->type == PS_TYPE_F64;

    if (rule == NULL) {
        return psd_error_set(err, PSD_INVALID, "updater %d is not known; %s is allowed",
                             (int)updater->kind, ps_rules_text);
    }
    if (!is_float && !rule->takes_integers) {
        return psd_error_set(err, PSD_INVALID, "updater %s needs type f32 or f64; type %s takes %s",
                             rule->name, ps_type_name(table->type), integer_rules);
    }
    return rule->kind == PS_UPDATER_PLUGIN ? check_plugin(updater, err)
                                           : check_parameters(rule, table, err);
}
