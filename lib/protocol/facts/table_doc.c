/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a table's spec as JSON. */
#include "protocol/facts/table_doc.h"

#include "model/updaters/updater_rule.h"
#include "protocol/facts/table_doc_words.h"

static bool parameter_to_doc(const ps_rule_parameter_t *parameter, const ps_updater_spec_t *updater,
                             ps_doc_t *doc)
{
    double value = ps_rule_parameter_get(parameter, updater);

    if (parameter->bound == PS_BOUND_WORKERS) {
        return ps_doc_set_u64(doc, parameter->name, (uint64_t)value);
    }
    return ps_doc_set_f64(doc, parameter->name, value);
}

static bool updater_to_doc(const ps_updater_spec_t *updater, ps_doc_t *doc)
{
    const ps_updater_rule_t *rule = ps_updater_rule_of(updater->kind);
    bool ok = doc != NULL && rule != NULL;

    ok = ok && ps_doc_set_text(doc, "name", rule->name);
    if (ok && rule->kind == PS_UPDATER_PLUGIN) {
        return ps_doc_set_text(doc, "plugin", updater->plugin) &&
               ps_doc_set_text(doc, "parameters", updater->parameters);
    }
    for (size_t i = 0; ok && rule->parameters[i].name != NULL; i++) {
        ok = parameter_to_doc(&rule->parameters[i], updater, doc);
    }
    return ok;
}

const char *ps_init_key_a(ps_init_kind_t kind)
{
    switch (kind) {
    case PS_INIT_CONSTANT:
        return "value";
    case PS_INIT_UNIFORM:
        return "low";
    case PS_INIT_NORMAL:
        return "mean";
    case PS_INIT_ZERO:
    default:
        return NULL;
    }
}

const char *ps_init_key_b(ps_init_kind_t kind)
{
    switch (kind) {
    case PS_INIT_UNIFORM:
        return "high";
    case PS_INIT_NORMAL:
        return "std";
    case PS_INIT_CONSTANT:
    case PS_INIT_ZERO:
    default:
        return NULL;
    }
}

static bool init_to_doc(const ps_init_spec_t *init, ps_doc_t *doc)
{
    const char *key_a = ps_init_key_a(init->kind);
    const char *key_b = ps_init_key_b(init->kind);

    if (doc == NULL || !ps_doc_set_text(doc, "name", ps_init_name(init->kind))) {
        return false;
    }
    return (key_a == NULL || ps_doc_set_f64(doc, key_a, init->a)) &&
           (key_b == NULL || ps_doc_set_f64(doc, key_b, init->b));
}

const char *ps_partition_by_name(ps_partition_by_t value)
{
    switch (value) {
    case PS_PARTITION_BY_RANGE:
        return "range";
    case PS_PARTITION_BY_HASH:
        return "hash";
    case PS_PARTITION_BY_LIST:
        return "list";
    default:
        return "?";
    }
}

static bool partitions_to_doc(const ps_table_spec_t *spec, ps_doc_t *doc)
{
    ps_doc_t *boundaries = NULL;

    if (!ps_doc_set_u64(doc, "n_partitions", spec->n_partitions) ||
        !ps_doc_set_u64(doc, "n_col_slices", spec->n_col_slices) ||
        !ps_doc_set_text(doc, "partition_by", ps_partition_by_name(spec->partition_by))) {
        return false;
    }
    if (spec->partition_by != PS_PARTITION_BY_LIST) {
        return true;
    }
    boundaries = ps_doc_add_array(doc, "boundaries");
    if (boundaries == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < spec->n_boundaries; i++) {
        if (!ps_doc_append_u64(boundaries, spec->boundaries[i])) {
            return false;
        }
    }
    return true;
}

bool ps_table_spec_to_doc(const ps_table_spec_t *spec, ps_doc_t *doc)
{
    return ps_doc_set_text(doc, "name", spec->name) && ps_doc_set_u64(doc, "rows", spec->n_rows) &&
           ps_doc_set_u64(doc, "cols", spec->n_cols) &&
           ps_doc_set_text(doc, "type", ps_type_name(spec->type)) &&
           ps_doc_set_text(doc, "row_format", ps_row_format_name(spec->row_format)) &&
           ps_doc_set_text(doc, "keys", ps_keys_name(spec->keys)) &&
           updater_to_doc(&spec->updater, ps_doc_add_object(doc, "updater")) &&
           init_to_doc(&spec->init, ps_doc_add_object(doc, "init")) &&
           ps_doc_set_u64(doc, "seed", spec->seed) && partitions_to_doc(spec, doc) &&
           ps_doc_set_u64(doc, "replicas", spec->replicas) &&
           ps_doc_set_text(doc, "ack", ps_ack_name(spec->ack)) &&
           ps_doc_set_bool(doc, "allow_nonfinite", spec->allow_nonfinite) &&
           (!spec->versions || ps_doc_set_bool(doc, "versions", true)) &&
           ps_doc_set_text(doc, "combine", ps_combine_name(spec->combine)) &&
           (spec->filter[0] == '\0' || ps_doc_set_text(doc, "filter", spec->filter));
}
