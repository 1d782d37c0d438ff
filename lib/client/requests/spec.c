/* SPDX-License-Identifier: Apache-2.0 */
/* The specification of a new table, as keys and values. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "client/requests/spec.h"
#include "protocol/facts/table_filter.h"
#include "transport/environment/environment.h"

psd_spec_t *psd_spec_new(void)
{
    psd_spec_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        ps_table_spec_init(&self->spec);
    }
    return self;
}

void psd_spec_destroy(psd_spec_t **self_p)
{
    if (self_p != NULL && *self_p != NULL) {
        ps_table_spec_done(&(*self_p)->spec);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

typedef psd_status_t setter_t(ps_table_spec_t *spec, const char *key, const char *value,
                              psd_error_t *err);

static psd_status_t read_number(const char *key, const char *value, uint64_t min, uint64_t max,
                                uint64_t *ret, psd_error_t *err)
{
    uint64_t number = 0;

    if (!ps_text_u64(value, &number) || number < min || number > max) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.80s\"; allowed: %" PRIu64 "..%" PRIu64,
                             key, value, min, max);
    }
    *ret = number;
    return PSD_OK;
}

static psd_status_t set_rows(ps_table_spec_t *spec, const char *key, const char *value,
                             psd_error_t *err)
{
    return read_number(key, value, 1, PS_TABLE_ROWS_MAX, &spec->n_rows, err);
}

static psd_status_t read_u32(const char *key, const char *value, uint32_t max, uint32_t *ret,
                             psd_error_t *err)
{
    uint64_t number = 0;
    psd_status_t rc = read_number(key, value, 1, max, &number, err);

    if (rc == PSD_OK) {
        *ret = (uint32_t)number;
    }
    return rc;
}

static psd_status_t set_cols(ps_table_spec_t *spec, const char *key, const char *value,
                             psd_error_t *err)
{
    return read_u32(key, value, PS_TABLE_COLS_MAX, &spec->n_cols, err);
}

static psd_status_t set_type(ps_table_spec_t *spec, const char *key, const char *value,
                             psd_error_t *err)
{
    if (ps_type_parse(value, &spec->type)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID, "%s is \"%.80s\"; allowed: i32, i64, f32, f64", key,
                         value);
}

static psd_status_t set_row_format(ps_table_spec_t *spec, const char *key, const char *value,
                                   psd_error_t *err)
{
    (void)key;
    return ps_row_format_parse(value, &spec->row_format, err);
}

static psd_status_t set_keys(ps_table_spec_t *spec, const char *key, const char *value,
                             psd_error_t *err)
{
    (void)key;
    return ps_keys_parse(value, &spec->keys, err);
}

static psd_status_t set_updater(ps_table_spec_t *spec, const char *key, const char *value,
                                psd_error_t *err)
{
    (void)key;
    return ps_updater_spec_parse(value, &spec->updater, err);
}

static psd_status_t set_init(ps_table_spec_t *spec, const char *key, const char *value,
                             psd_error_t *err)
{
    (void)key;
    return ps_init_spec_parse(value, &spec->init, err);
}

static psd_status_t set_seed(ps_table_spec_t *spec, const char *key, const char *value,
                             psd_error_t *err)
{
    return read_number(key, value, 0, UINT64_MAX, &spec->seed, err);
}

static psd_status_t set_partitions(ps_table_spec_t *spec, const char *key, const char *value,
                                   psd_error_t *err)
{
    return read_u32(key, value, PS_TABLE_PARTITIONS_MAX, &spec->n_partitions, err);
}

static psd_status_t set_partition_by(ps_table_spec_t *spec, const char *key, const char *value,
                                     psd_error_t *err)
{
    (void)key;
    return ps_partition_by_parse(value, spec, err);
}

static psd_status_t set_replicas(ps_table_spec_t *spec, const char *key, const char *value,
                                 psd_error_t *err)
{
    return read_u32(key, value, UINT32_MAX, &spec->replicas, err);
}

static psd_status_t set_ack(ps_table_spec_t *spec, const char *key, const char *value,
                            psd_error_t *err)
{
    (void)key;
    return ps_ack_parse(value, &spec->ack, err);
}

static psd_status_t parse_bool(const char *key, const char *value, bool *ret, psd_error_t *err)
{
    bool is_true = strcmp(value, "true") == 0;

    if (!is_true && strcmp(value, "false") != 0) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.80s\"; allowed: true, false", key, value);
    }
    *ret = is_true;
    return PSD_OK;
}

static psd_status_t set_allow_nonfinite(ps_table_spec_t *spec, const char *key, const char *value,
                                        psd_error_t *err)
{
    return parse_bool(key, value, &spec->allow_nonfinite, err);
}

static psd_status_t set_versions(ps_table_spec_t *spec, const char *key, const char *value,
                                 psd_error_t *err)
{
    return parse_bool(key, value, &spec->versions, err);
}

static psd_status_t set_combine(ps_table_spec_t *spec, const char *key, const char *value,
                                psd_error_t *err)
{
    (void)key;
    return ps_combine_parse(value, &spec->combine, err);
}

static psd_status_t set_filter(ps_table_spec_t *spec, const char *key, const char *value,
                               psd_error_t *err)
{
    (void)key;
    return ps_table_filter_set(spec, value, err);
}

static const struct {
    const char *key;
    setter_t *set;
} keys[] = {
    {"rows", set_rows},
    {"cols", set_cols},
    {"type", set_type},
    {"row-format", set_row_format},
    {"keys", set_keys},
    {"updater", set_updater},
    {"init", set_init},
    {"seed", set_seed},
    {"partitions", set_partitions},
    {"partition-by", set_partition_by},
    {"replicas", set_replicas},
    {"ack", set_ack},
    {"allow-nonfinite", set_allow_nonfinite},
    {"versions", set_versions},
    {"combine", set_combine},
    {"filter", set_filter},
};

/* What keys[i] set may say more than its own key does. */
static void note_set(psd_spec_t *self, size_t i)
{
    self->partition_by_set = self->partition_by_set || keys[i].set == set_partition_by;
    self->combine_set = self->combine_set || keys[i].set == set_combine;
    self->replicas_set = self->replicas_set || keys[i].set == set_replicas;
    if (keys[i].set == set_keys && !self->partition_by_set) {
        self->spec.partition_by = ps_partition_by_default(self->spec.keys);
    }
}

psd_status_t ps_spec_settle_combine(ps_table_spec_t *spec, ps_combine_t fallback, psd_error_t *err)
{
    ps_environment_t said;
    ps_combine_t combine = fallback;
    psd_status_t rc = ps_environment_read("PSD_COMBINE", &said, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = said.text == NULL ? PSD_OK : ps_combine_parse(said.text, &combine, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "%s", said.origin);
    }
    switch ((int)spec->updater.kind) {
    case PS_UPDATER_ASSIGN: /* a sum is not what these mean */
    case PS_UPDATER_MIN:
    case PS_UPDATER_MAX:
    case PS_UPDATER_DCASGD:
    case PS_UPDATER_PLUGIN:
        break;
    default:
        spec->combine = combine;
        break;
    }
    return PSD_OK;
}

psd_status_t ps_spec_settle_replicas(ps_table_spec_t *spec, psd_error_t *err)
{
    int64_t replicas = spec->replicas;
    psd_status_t rc = ps_environment_number("PSD_REPLICAS", &replicas, err);

    spec->replicas = (uint32_t)replicas;
    return rc;
}

psd_status_t psd_spec_set(psd_spec_t *self, const char *key, const char *value, psd_error_t *err)
{
    psd_error_clear(err);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].key, key) == 0) {
            psd_status_t rc = keys[i].set(&self->spec, key, value, err);

            if (rc == PSD_OK) {
                note_set(self, i);
            }
            return rc;
        }
    }
    return psd_error_set(err, PSD_INVALID,
                         "key is \"%.80s\"; allowed: rows, cols, type, "
                         "row-format, keys, updater, init, seed, partitions, "
                         "partition-by, replicas, ack, allow-nonfinite, "
                         "versions, combine, filter",
                         key);
}
