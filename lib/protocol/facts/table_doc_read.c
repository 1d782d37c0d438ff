/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a table's spec from JSON, through every check that a spec has. */
#include "protocol/facts/table_doc.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "model/updaters/updater_rule.h"
#include "protocol/facts/table_doc_words.h"
#include "protocol/facts/table_filter.h"

/* Words longer than this are wrong whatever they say. */
#define WORD_MAX 32

static psd_status_t read_name(const ps_doc_t *doc, ps_table_spec_t *spec, psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_text_is_name(name)) {
        return psd_error_set(err, PSD_INVALID,
                             "name is \"%s\"; allowed: 1..%d of letters, "
                             "digits, \"_\", \".\", \"-\", not beginning "
                             "with \".\" or \"-\"",
                             name, PS_NAME_MAX);
    }
    memcpy(spec->name, name, strlen(name) + 1);
    return PSD_OK;
}

static psd_status_t read_u32(const ps_doc_t *doc, const char *key, uint64_t min, uint64_t max,
                             uint32_t *field, psd_error_t *err)
{
    uint64_t value = 0;
    psd_status_t rc = ps_doc_get_u64_or(doc, key, min, max, *field, &value, err);

    if (rc == PSD_OK) {
        *field = (uint32_t)value;
    }
    return rc;
}

static psd_status_t read_numbers(const ps_doc_t *doc, ps_table_spec_t *spec, psd_error_t *err)
{
    psd_status_t rc =
        ps_doc_get_u64_or(doc, "rows", 0, PS_TABLE_ROWS_MAX, spec->n_rows, &spec->n_rows, err);

    if (rc == PSD_OK) {
        rc = read_u32(doc, "cols", 1, PS_TABLE_COLS_MAX, &spec->n_cols, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "seed", 0, UINT64_MAX, spec->seed, &spec->seed, err);
    }
    if (rc == PSD_OK) {
        rc = read_u32(doc, "n_partitions", 0, PS_TABLE_PARTITIONS_MAX, &spec->n_partitions, err);
    }
    if (rc == PSD_OK) {
        rc = read_u32(doc, "n_col_slices", 0, PS_TABLE_PARTITIONS_MAX, &spec->n_col_slices, err);
    }
    if (rc == PSD_OK) {
        rc = read_u32(doc, "replicas", 1, UINT32_MAX, &spec->replicas, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "allow_nonfinite")) {
        rc = ps_doc_get_bool(doc, "allow_nonfinite", &spec->allow_nonfinite, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "versions")) {
        rc = ps_doc_get_bool(doc, "versions", &spec->versions, err);
    }
    return rc;
}

static psd_status_t read_type(const ps_doc_t *doc, ps_table_spec_t *spec, psd_error_t *err)
{
    const char *word = NULL;
    psd_status_t rc =
        ps_doc_get_text_or(doc, "type", WORD_MAX, ps_type_name(spec->type), &word, err);

    if (rc == PSD_OK && !ps_type_parse(word, &spec->type)) {
        rc = psd_error_set(err, PSD_INVALID, "type is \"%s\"; allowed: i32, i64, f32, f64", word);
    }
    return rc;
}

static psd_status_t read_words(const ps_doc_t *doc, ps_table_spec_t *spec, psd_error_t *err)
{
    const char *word = NULL;
    psd_status_t rc = read_type(doc, spec, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "row_format", WORD_MAX, ps_row_format_name(spec->row_format),
                                &word, err);
    }
    if (rc == PSD_OK) {
        rc = psd_error_wrap(err, ps_row_format_parse(word, &spec->row_format, err), "row_format");
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "keys", WORD_MAX, ps_keys_name(spec->keys), &word, err);
    }
    if (rc == PSD_OK) {
        rc = psd_error_wrap(err, ps_keys_parse(word, &spec->keys, err), "keys");
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "ack", WORD_MAX, ps_ack_name(spec->ack), &word, err);
    }
    if (rc == PSD_OK) {
        rc = psd_error_wrap(err, ps_ack_parse(word, &spec->ack, err), "ack");
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "combine", WORD_MAX, ps_combine_name(spec->combine), &word,
                                err);
    }
    if (rc == PSD_OK) {
        rc = ps_combine_parse(word, &spec->combine, err);
    }
    return rc;
}

static psd_status_t read_f64(const ps_doc_t *doc, const char *key, double *field, psd_error_t *err)
{
    return ps_doc_has(doc, key) ? ps_doc_get_f64(doc, key, field, err) : PSD_OK;
}

/* A plug-in's name and text; the spec's check also checks their contents. */
static psd_status_t read_plugin(const ps_doc_t *doc, ps_updater_spec_t *updater, psd_error_t *err)
{
    const char *name = NULL;
    const char *text = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "plugin", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text_or(doc, "parameters", PS_PLUGIN_TEXT_SIZE - 1, "", &text, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(updater->plugin, name, strlen(name) + 1);
    memcpy(updater->parameters, text, strlen(text) + 1);
    return PSD_OK;
}

static psd_status_t read_parameters(const ps_doc_t *doc, const ps_updater_rule_t *rule,
                                    ps_updater_spec_t *updater, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (rule->kind == PS_UPDATER_PLUGIN) {
        return read_plugin(doc, updater, err);
    }
    for (size_t i = 0; rc == PSD_OK && rule->parameters[i].name != NULL; i++) {
        const ps_rule_parameter_t *parameter = &rule->parameters[i];
        double value = parameter->fallback;

        rc = read_f64(doc, parameter->name, &value, err);
        ps_rule_parameter_set(parameter, updater, value);
    }
    return rc;
}

static psd_status_t read_updater(const ps_doc_t *doc, ps_updater_spec_t *updater, psd_error_t *err)
{
    const ps_doc_t *object = NULL;
    const ps_updater_rule_t *rule = NULL;
    const char *word = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(doc, "updater")) {
        return PSD_OK;
    }
    rc = ps_doc_get_object(doc, "updater", &object, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(object, "name", WORD_MAX, &word, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rule = ps_updater_rule_find(word, strlen(word));
    if (rule == NULL) {
        return psd_error_set(err, PSD_INVALID, "updater.name is \"%s\"; allowed: %s", word,
                             ps_rules_text);
    }
    *updater = (ps_updater_spec_t){.kind = rule->kind};
    return psd_error_wrap(err, read_parameters(object, rule, updater, err), "updater");
}

static psd_status_t init_kind_of(const char *word, ps_init_kind_t *ret_kind, psd_error_t *err)
{
    static const ps_init_kind_t kinds[] = {PS_INIT_ZERO, PS_INIT_CONSTANT, PS_INIT_UNIFORM,
                                           PS_INIT_NORMAL};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(word, ps_init_name(kinds[i])) == 0) {
            *ret_kind = kinds[i];
            return PSD_OK;
        }
    }
    return psd_error_set(err, PSD_INVALID,
                         "init.name is \"%s\"; allowed: zero, constant, "
                         "uniform, normal",
                         word);
}

static psd_status_t read_init(const ps_doc_t *doc, ps_init_spec_t *init, psd_error_t *err)
{
    const ps_doc_t *object = NULL;
    const char *word = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_doc_has(doc, "init")) {
        return PSD_OK;
    }
    rc = ps_doc_get_object(doc, "init", &object, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(object, "name", WORD_MAX, &word, err);
    }
    if (rc == PSD_OK) {
        rc = init_kind_of(word, &init->kind, err);
    }
    if (rc == PSD_OK && ps_init_key_a(init->kind) != NULL) {
        rc = ps_doc_get_f64(object, ps_init_key_a(init->kind), &init->a, err);
    }
    if (rc == PSD_OK && ps_init_key_b(init->kind) != NULL) {
        rc = ps_doc_get_f64(object, ps_init_key_b(init->kind), &init->b, err);
    }
    return rc;
}

static psd_status_t read_boundaries(const ps_doc_t *doc, ps_table_spec_t *spec, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    size_t n = 0;
    psd_status_t rc = ps_doc_get_array(doc, "boundaries", PS_TABLE_PARTITIONS_MAX - 1, &array, err);

    if (rc != PSD_OK) {
        return rc;
    }
    n = ps_doc_count(array);
    spec->boundaries = ps_alloc(n, sizeof *spec->boundaries);
    if (spec->boundaries == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu boundaries", n);
    }
    for (size_t i = 0; i < n; i++) {
        rc = ps_doc_at_u64(array, i, &spec->boundaries[i], err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    spec->n_boundaries = (uint32_t)n;
    return PSD_OK;
}

static psd_status_t read_partition_by(const ps_doc_t *doc, ps_table_spec_t *spec, psd_error_t *err)
{
    const char *word = NULL;
    psd_status_t rc =
        ps_doc_get_text_or(doc, "partition_by", WORD_MAX,
                           ps_partition_by_name(ps_partition_by_default(spec->keys)), &word, err);

    if (rc != PSD_OK) {
        return rc;
    }
    for (ps_partition_by_t by = PS_PARTITION_BY_RANGE; by <= PS_PARTITION_BY_LIST; by++) {
        if (strcmp(word, ps_partition_by_name(by)) == 0) {
            spec->partition_by = by;
            return by == PS_PARTITION_BY_LIST ? read_boundaries(doc, spec, err) : PSD_OK;
        }
    }
    return psd_error_set(err, PSD_INVALID, "partition_by is \"%s\"; allowed: range, hash, list",
                         word);
}

static psd_status_t read_filter(const ps_doc_t *doc, ps_table_spec_t *spec, psd_error_t *err)
{
    const char *text = NULL;
    ps_filter_t filter = {0};
    psd_status_t rc =
        ps_doc_get_text_or(doc, "filter", PS_TABLE_FILTER_SIZE - 1, spec->filter, &text, err);

    if (rc == PSD_OK) {
        rc = ps_table_filter_set(spec, text, err);
    }
    return rc == PSD_OK ? ps_table_filter_get(spec, &filter, err) : rc;
}

/* Fills in values that the cluster will choose, only for the check. */
static psd_status_t check_spec(const ps_table_spec_t *spec, psd_error_t *err)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t settled = {0};
    psd_status_t rc = ps_table_spec_copy(spec, &settled, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_table_spec_settle(&settled, 1);
    return ps_table_spec_check(&settled, err);
}

psd_status_t ps_table_spec_from_doc(const ps_doc_t *doc, ps_table_spec_t *ret_spec,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    psd_status_t rc = PSD_OK;

    ps_table_spec_init(&spec);
    rc = read_name(doc, &spec, err);
    if (rc == PSD_OK) {
        rc = read_numbers(doc, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = read_words(doc, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = read_updater(doc, &spec.updater, err);
    }
    if (rc == PSD_OK) {
        rc = read_init(doc, &spec.init, err);
    }
    if (rc == PSD_OK) {
        rc = read_partition_by(doc, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = read_filter(doc, &spec, err);
    }
    if (rc == PSD_OK) {
        rc = check_spec(&spec, err);
    }
    if (rc == PSD_OK) {
        *ret_spec = spec; /* ownership of boundaries moves to the caller */
        spec = (ps_table_spec_t){0};
    }
    return rc;
}
