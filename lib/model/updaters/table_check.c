/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of a table's spec, each with the message that explains it. */
#include "model/tables/table.h"

#include <inttypes.h>
#include <math.h>

#include "base/text.h"
#include "model/updaters/init.h"
#include "model/updaters/updater_rule.h"

static psd_status_t check_size(const ps_table_spec_t *self, psd_error_t *err)
{
    if (!ps_text_is_name(self->name)) {
        return psd_error_set(err, PSD_INVALID,
                             "name \"%s\" is not allowed; 1 to %d letters, "
                             "digits, \"_\", \".\" and \"-\" are, not "
                             "beginning with \".\" or \"-\"",
                             self->name, PS_NAME_MAX);
    }
    if (self->keys != PS_KEYS_RANGE && self->keys != PS_KEYS_HASH) {
        return psd_error_set(err, PSD_INVALID, "keys %d is not known; range and hash are",
                             (int)self->keys);
    }
    if (self->keys == PS_KEYS_HASH && self->n_rows != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "rows is %" PRIu64 "; a table with hash keys "
                             "takes no number of rows",
                             self->n_rows);
    }
    if (self->keys == PS_KEYS_RANGE && (self->n_rows < 1 || self->n_rows > PS_TABLE_ROWS_MAX)) {
        return psd_error_set(err, PSD_INVALID, "rows is %" PRIu64 "; 1..%" PRIu64 " are allowed",
                             self->n_rows, PS_TABLE_ROWS_MAX);
    }
    if (self->n_cols < 1 || self->n_cols > PS_TABLE_COLS_MAX) {
        return psd_error_set(err, PSD_INVALID, "cols is %" PRIu32 "; 1..%" PRIu32 " are allowed",
                             self->n_cols, PS_TABLE_COLS_MAX);
    }
    return PSD_OK;
}

static psd_status_t check_words(const ps_table_spec_t *self, psd_error_t *err)
{
    if (ps_type_size(self->type) == 0) {
        return psd_error_set(err, PSD_INVALID, "type %d is not known; i32, i64, f32 and f64 are",
                             (int)self->type);
    }
    if (self->row_format < PS_ROW_DENSE || self->row_format > PS_ROW_AUTO) {
        return psd_error_set(err, PSD_INVALID,
                             "row format %d is not known; dense, sparse and auto are",
                             (int)self->row_format);
    }
    if (self->ack < PS_ACK_MEMORY || self->ack > PS_ACK_DISK) {
        return psd_error_set(err, PSD_INVALID,
                             "ack level %d is not known; memory, replica and disk are",
                             (int)self->ack);
    }
    if (self->combine < PS_COMBINE_EACH || self->combine > PS_COMBINE_CLOCK_MEAN) {
        return psd_error_set(err, PSD_INVALID,
                             "combine %d is not known; each, clock-sum and clock-mean are",
                             (int)self->combine);
    }
    if (self->replicas < 1) {
        return psd_error_set(err, PSD_INVALID, "replicas is 0; 1 or more are allowed");
    }
    return PSD_OK;
}

/* A rule that tells workers apart cannot run on their sum. A plug-in is asked when it is bound. */
static psd_status_t check_combine(const ps_table_spec_t *self, psd_error_t *err)
{
    if (self->combine == PS_COMBINE_EACH || self->updater.kind != PS_UPDATER_DCASGD) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "combine %s is not allowed with updater dcasgd, which keeps a backup for "
                         "each worker; each is",
                         ps_combine_name(self->combine));
}

/* The number as the table's type stores it. */
static double in_type(const ps_table_spec_t *self, double value)
{
    return self->type == PS_TYPE_F32 ? (double)(float)value : value;
}

static psd_status_t init_refused(const ps_table_spec_t *self, const char *allowed, psd_error_t *err)
{
    char text[PS_SPEC_TEXT_SIZE] = {0};

    ps_init_spec_format(&self->init, text);
    return psd_error_set(err, PSD_INVALID, "init %s is not allowed; %s", text, allowed);
}

/* First values of an integer table: b of a uniform init may be one past the
 * greatest value. */
static psd_status_t check_integer_init(const ps_table_spec_t *self, psd_error_t *err)
{
    const ps_init_spec_t *init = &self->init;
    double bound = self->type == PS_TYPE_I32 ? 0x1p31 : 0x1p63;
    bool is_uniform = init->kind == PS_INIT_UNIFORM;
    bool a_fits = init->a == trunc(init->a) && init->a >= -bound && init->a < bound;
    bool b_fits = init->b == trunc(init->b) && init->b <= bound;

    if (init->kind == PS_INIT_NORMAL) {
        return init_refused(self, "integer types take whole numbers", err);
    }
    if (!a_fits || (is_uniform && !b_fits)) {
        return init_refused(self,
                            self->type == PS_TYPE_I32 ? "i32 takes whole numbers of its range"
                                                      : "i64 takes whole numbers of its range",
                            err);
    }
    return PSD_OK;
}

static psd_status_t check_init_numbers(const ps_table_spec_t *self, psd_error_t *err)
{
    const ps_init_spec_t *init = &self->init;
    double a = in_type(self, init->a);
    double b = in_type(self, init->b);

    if (!isfinite(a) || (init->kind != PS_INIT_CONSTANT && !isfinite(b))) {
        return init_refused(self, "its numbers must be finite in the table's type", err);
    }
    if (init->kind == PS_INIT_UNIFORM && !(a < b)) {
        return init_refused(self, "the lower bound must be below the upper one", err);
    }
    /* No draw is further than 9 standard deviations out: see model/init.h. */
    if (init->kind == PS_INIT_NORMAL &&
        (init->b < 0 || !isfinite(in_type(self, fabs(a) + 9 * b)))) {
        return init_refused(self,
                            "the standard deviation must not be negative, nor "
                            "leave the table's type",
                            err);
    }
    return PSD_OK;
}

static psd_status_t check_init(const ps_table_spec_t *self, psd_error_t *err)
{
    bool is_integer = self->type == PS_TYPE_I32 || self->type == PS_TYPE_I64;
    psd_status_t rc = PSD_OK;

    if (self->init.kind < PS_INIT_ZERO || self->init.kind > PS_INIT_NORMAL) {
        return psd_error_set(err, PSD_INVALID,
                             "init %d is not known; zero, constant, uniform and normal are",
                             (int)self->init.kind);
    }
    if (ps_init_is_zero(&self->init)) {
        return PSD_OK;
    }
    if (self->row_format != PS_ROW_DENSE) {
        return init_refused(self, "rows of format sparse and auto begin at zero", err);
    }
    if (ps_updater_rule_of(self->updater.kind)->begins_at_zero) {
        return init_refused(self, "rows of updater ftrl begin at zero", err);
    }
    rc = check_init_numbers(self, err);
    if (rc == PSD_OK && is_integer) {
        rc = check_integer_init(self, err);
    }
    return rc;
}

static psd_status_t check_partition_count(const ps_table_spec_t *self, psd_error_t *err)
{
    if (self->n_partitions < 1 || self->n_partitions > PS_TABLE_PARTITIONS_MAX) {
        return psd_error_set(err, PSD_INVALID,
                             "partitions is %" PRIu32 "; 1..%" PRIu32 " are allowed",
                             self->n_partitions, PS_TABLE_PARTITIONS_MAX);
    }
    if (self->n_col_slices < 1 || self->n_col_slices > self->n_cols) {
        return psd_error_set(err, PSD_INVALID,
                             "column slices is %" PRIu32 "; 1..%" PRIu32
                             ", the columns, are allowed",
                             self->n_col_slices, self->n_cols);
    }
    if (self->n_partitions % self->n_col_slices != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "partitions is %" PRIu32 "; multiples of the %" PRIu32
                             " column slices are allowed",
                             self->n_partitions, self->n_col_slices);
    }
    return PSD_OK;
}

static psd_status_t check_boundaries(const ps_table_spec_t *self, psd_error_t *err)
{
    uint32_t row_slices = self->n_partitions / self->n_col_slices;
    uint64_t last = self->keys == PS_KEYS_RANGE ? self->n_rows - 1 : UINT64_MAX;

    if (self->n_boundaries != row_slices - 1) {
        return psd_error_set(err, PSD_INVALID,
                             "partition list has %" PRIu32 " boundaries; %" PRIu32
                             " row slices need %" PRIu32,
                             self->n_boundaries, row_slices, row_slices - 1);
    }
    for (uint32_t i = 0; i < self->n_boundaries; i++) {
        uint64_t row = self->boundaries[i];
        uint64_t least = i == 0 ? 1 : self->boundaries[i - 1] + 1;

        if (row < least || row > last || least == 0) {
            return psd_error_set(err, PSD_INVALID,
                                 "boundary %" PRIu32 " is row %" PRIu64
                                 "; boundaries must ascend and lie in 1..%" PRIu64,
                                 i, row, last);
        }
    }
    return PSD_OK;
}

static psd_status_t check_partitions(const ps_table_spec_t *self, psd_error_t *err)
{
    psd_status_t rc = check_partition_count(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    switch (self->partition_by) {
    case PS_PARTITION_BY_LIST:
        return check_boundaries(self, err);
    case PS_PARTITION_BY_RANGE:
    case PS_PARTITION_BY_HASH:
        break;
    default:
        return psd_error_set(err, PSD_INVALID,
                             "partition %d is not known; range, hash and list are",
                             (int)self->partition_by);
    }
    if (self->n_boundaries != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "%" PRIu32 " boundaries are given; only partition "
                             "list takes any",
                             self->n_boundaries);
    }
    return PSD_OK;
}

psd_status_t ps_table_spec_check(const ps_table_spec_t *self, psd_error_t *err)
{
    psd_status_t rc = check_size(self, err);

    if (rc == PSD_OK) {
        rc = check_words(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_updater_spec_check(self, err);
    }
    if (rc == PSD_OK) {
        rc = check_combine(self, err);
    }
    if (rc == PSD_OK) {
        rc = check_init(self, err);
    }
    if (rc == PSD_OK) {
        rc = check_partitions(self, err);
    }
    return rc;
}
