/* SPDX-License-Identifier: Apache-2.0 */
/* model/tables/table.h: every rule of a spec with its message, and what is settled. */
#include "model/tables/table.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

/* A good one: 1000 x 10 f32, range keys, dense, add. */
static ps_table_spec_t good(void)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    memcpy(spec.name, "w", 2);
    spec.n_rows = 1000;
    spec.n_cols = 10;
    ps_table_spec_settle(&spec, 4);
    return spec;
}

static void allowed(const ps_table_spec_t *spec)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_table_spec_check(spec, err), PSD_OK, "%s", psd_error_text(err));
}

static void refused(const ps_table_spec_t *spec, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_table_spec_check(spec, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert_eq(ps_table_spec_check(spec, NULL), PSD_INVALID);
}

Test(table, init_is_valid_but_for_name_and_rows)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    cr_assert_eq(spec.type, PS_TYPE_F32);
    cr_assert_eq(spec.n_cols, 1);
    cr_assert_eq(spec.row_format, PS_ROW_DENSE);
    cr_assert_eq(spec.keys, PS_KEYS_RANGE);
    cr_assert_eq(spec.updater.kind, PS_UPDATER_ADD);
    cr_assert_eq(spec.init.kind, PS_INIT_ZERO);
    cr_assert_eq(spec.replicas, 1);
    cr_assert_eq(spec.ack, PS_ACK_MEMORY);
    cr_assert_eq(spec.n_partitions, 0);
    cr_assert_eq(spec.n_col_slices, 0);
    memcpy(spec.name, "w", 2);
    spec.n_rows = 1;
    ps_table_spec_settle(&spec, 1);
    allowed(&spec);
}

Test(table, name)
{
    ps_table_spec_t spec = good();

    spec.name[0] = '\0';
    refused(&spec, "name \"\" is not allowed; 1 to 63 letters, digits, \"_\", "
                   "\".\" and \"-\" are, not beginning with \".\" or \"-\"");
    memcpy(spec.name, "a b", 4);
    refused(&spec, "name \"a b\" is not allowed; 1 to 63 letters, digits, "
                   "\"_\", \".\" and \"-\" are, not beginning with \".\" or "
                   "\"-\"");
    memset(spec.name, 'a', PS_NAME_MAX);
    allowed(&spec);
}

Test(table, rows)
{
    ps_table_spec_t spec = good();

    spec.n_rows = 0;
    refused(&spec, "rows is 0; 1..1099511627776 are allowed");
    spec.n_rows = PS_TABLE_ROWS_MAX;
    allowed(&spec);
    spec.n_rows++;
    refused(&spec, "rows is 1099511627777; 1..1099511627776 are allowed");
    spec.n_rows = 5;
    spec.keys = PS_KEYS_HASH;
    refused(&spec, "rows is 5; a table with hash keys takes no number of rows");
    spec.n_rows = 0;
    allowed(&spec);
    spec.keys = (ps_keys_t)3;
    refused(&spec, "keys 3 is not known; range and hash are");
}

Test(table, columns)
{
    ps_table_spec_t spec = good();

    spec.n_cols = 0;
    refused(&spec, "cols is 0; 1..2147483648 are allowed");
    spec.n_cols = PS_TABLE_COLS_MAX;
    allowed(&spec);
    spec.n_cols++;
    refused(&spec, "cols is 2147483649; 1..2147483648 are allowed");
}

Test(table, words)
{
    ps_table_spec_t spec = good();

    spec.type = (ps_type_t)0;
    refused(&spec, "type 0 is not known; i32, i64, f32 and f64 are");
    spec = good();
    spec.row_format = (ps_row_format_t)4;
    refused(&spec, "row format 4 is not known; dense, sparse and auto are");
    spec = good();
    spec.ack = PS_ACK_DEFAULT;
    refused(&spec, "ack level 0 is not known; memory, replica and disk are");
    spec = good();
    spec.replicas = 0;
    refused(&spec, "replicas is 0; 1 or more are allowed");
}

#define RULES_ARE                                                                         \
    "add, assign, min, max, sgd, momentum, adagrad, adam, adamw, rmsprop, ftrl, dcasgd, " \
    "nesterov, or plugin:NAME"

Test(table, updater)
{
    static const char *const floats[] = {"sgd",     "momentum", "adagrad", "adam",    "adamw",
                                         "rmsprop", "ftrl",     "dcasgd",  "nesterov"};
    static const char *const any[] = {"add", "assign", "min", "max", "plugin:mine"};
    ps_table_spec_t spec = good();

    spec.updater.kind = (ps_updater_kind_t)15;
    refused(&spec, "updater 15 is not known; " RULES_ARE " is allowed");
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        cr_assert_eq(ps_updater_spec_parse(floats[i], &spec.updater, NULL), PSD_OK);
        spec.type = PS_TYPE_F64;
        allowed(&spec);
        spec.type = PS_TYPE_F32;
        allowed(&spec);
        spec.type = PS_TYPE_I64;
        cr_assert_eq(ps_table_spec_check(&spec, NULL), PSD_INVALID);
    }
    refused(&spec, "updater nesterov needs type f32 or f64; type i64 takes add, "
                   "assign, min, max, or plugin:NAME");
    for (size_t i = 0; i < sizeof any / sizeof *any; i++) {
        cr_assert_eq(ps_updater_spec_parse(any[i], &spec.updater, NULL), PSD_OK);
        allowed(&spec);
    }
}

Test(table, plugins)
{
    ps_table_spec_t spec = good();

    spec.updater = (ps_updater_spec_t){.kind = PS_UPDATER_PLUGIN};
    refused(&spec, "plug-in name \"\" is not allowed; 1 to 63 letters, "
                   "digits, \"_\", \".\" and \"-\" are, not beginning with "
                   "\".\" or \"-\"");
    memcpy(spec.updater.plugin, "../x", 5);
    refused(&spec, "plug-in name \"../x\" is not allowed; 1 to 63 letters, "
                   "digits, \"_\", \".\" and \"-\" are, not beginning with "
                   "\".\" or \"-\"");
    memcpy(spec.updater.plugin, "mine", 5);
    memcpy(spec.updater.parameters, "a=\n", 4);
    refused(&spec, "parameters of plug-in mine: byte 2 is not a printable ASCII character");
    memcpy(spec.updater.parameters, "a=~ ", 5);
    allowed(&spec);
}

Test(table, updater_parameters)
{
    ps_table_spec_t spec = good();

    spec.updater = (ps_updater_spec_t){.kind = PS_UPDATER_SGD};
    refused(&spec, "alpha of updater sgd is 0; finite positive numbers are "
                   "allowed");
    spec.updater.alpha = 1e-60; /* nothing is left of it in f32 */
    refused(&spec, "alpha of updater sgd is 1e-60; finite positive numbers are "
                   "allowed");
    spec.type = PS_TYPE_F64;
    allowed(&spec);
    spec.updater.alpha = 1;
    spec.updater.beta = -1; /* sgd has none */
    allowed(&spec);
    spec.updater.kind = PS_UPDATER_ADAGRAD;
    refused(&spec, "beta of updater adagrad is -1; finite non-negative numbers "
                   "are allowed");
    spec.updater.beta = 0;
    spec.updater.l1 = INFINITY;
    refused(&spec, "l1 of updater adagrad is inf; finite non-negative numbers "
                   "are allowed");
    spec.updater.l1 = 0;
    spec.updater.l2 = NAN;
    refused(&spec, "l2 of updater adagrad is nan; finite non-negative numbers "
                   "are allowed");
    spec.updater.kind = PS_UPDATER_ADD; /* takes no parameters at all */
    allowed(&spec);
}

Test(table, updater_parameters_have_bounds)
{
    ps_table_spec_t spec = good();

    cr_assert_eq(ps_updater_spec_parse("adam", &spec.updater, NULL), PSD_OK);
    spec.updater.beta2 = 1 - 1e-12; /* 1 in f32 */
    refused(&spec, "beta2 of updater adam is 1; numbers from 0 to below 1 are "
                   "allowed");
    spec.updater.beta2 = 0;
    spec.updater.eps = 0;
    refused(&spec, "eps of updater adam is 0; finite positive numbers are "
                   "allowed");
    spec.updater.eps = 1;
    allowed(&spec);
    spec.updater.beta1 = -0.5;
    refused(&spec, "beta1 of updater adam is -0.5; numbers from 0 to below 1 "
                   "are allowed");
    cr_assert_eq(ps_updater_spec_parse("dcasgd:workers=255", &spec.updater, NULL), PSD_OK);
    allowed(&spec);
    spec.updater.workers = 256;
    refused(&spec, "workers of updater dcasgd is 256; whole numbers 1..255 are "
                   "allowed");
    spec.updater.workers = 1.5;
    refused(&spec, "workers of updater dcasgd is 1.5; whole numbers 1..255 are "
                   "allowed");
    spec.updater.workers = NAN;
    refused(&spec, "workers of updater dcasgd is nan; whole numbers 1..255 are "
                   "allowed");
}

static void try_init(ps_type_t type, ps_init_kind_t kind, double a, double b, const char *text)
{
    ps_table_spec_t spec = good();

    spec.type = type;
    spec.init = (ps_init_spec_t){.kind = kind, .a = a, .b = b};
    if (text == NULL) {
        allowed(&spec);
    } else {
        refused(&spec, text);
    }
}

Test(table, init_of_floats)
{
    try_init(PS_TYPE_F32, (ps_init_kind_t)0, 0, 0,
             "init 0 is not known; zero, constant, uniform and normal are");
    try_init(PS_TYPE_F64, PS_INIT_CONSTANT, 1e300, 0, NULL);
    try_init(PS_TYPE_F32, PS_INIT_CONSTANT, 1e300, 0,
             "init constant:1e+300 is not allowed; its numbers must be finite "
             "in the table's type");
    try_init(PS_TYPE_F32, PS_INIT_UNIFORM, -1, 1, NULL);
    try_init(PS_TYPE_F32, PS_INIT_UNIFORM, 0, NAN,
             "init uniform:0,nan is not allowed; its numbers must be finite in "
             "the table's type");
    try_init(PS_TYPE_F32, PS_INIT_UNIFORM, 1, 1,
             "init uniform:1,1 is not allowed; the lower bound must be below "
             "the upper one");
    try_init(PS_TYPE_F64, PS_INIT_UNIFORM, 1, 1.0000000000000002, NULL);
    try_init(PS_TYPE_F32, PS_INIT_UNIFORM, 1, 1.0000000000000002,
             "init uniform:1,1.0000000000000002 is not allowed; the lower "
             "bound must be below the upper one");
    try_init(PS_TYPE_F32, PS_INIT_NORMAL, 5, 0, NULL);
    try_init(PS_TYPE_F32, PS_INIT_NORMAL, 0, -1,
             "init normal:0,-1 is not allowed; the standard deviation must not "
             "be negative, nor leave the table's type");
    try_init(PS_TYPE_F32, PS_INIT_NORMAL, 0, 1e38,
             "init normal:0,1e+38 is not allowed; the standard deviation must "
             "not be negative, nor leave the table's type");
}

Test(table, init_of_integers)
{
    try_init(PS_TYPE_I32, PS_INIT_CONSTANT, -0x1p31, 0, NULL);
    try_init(PS_TYPE_I32, PS_INIT_CONSTANT, 0x1p31, 0,
             "init constant:2147483648 is not allowed; i32 takes whole numbers "
             "of its range");
    try_init(PS_TYPE_I64, PS_INIT_CONSTANT, 0x1p31, 0, NULL);
    try_init(PS_TYPE_I64, PS_INIT_CONSTANT, 0.5, 0,
             "init constant:0.5 is not allowed; i64 takes whole numbers of its "
             "range");
    try_init(PS_TYPE_I64, PS_INIT_UNIFORM, -0x1p63, 0x1p63, NULL);
    try_init(PS_TYPE_I32, PS_INIT_UNIFORM, 0, 0x1p31, NULL);
    try_init(PS_TYPE_I32, PS_INIT_UNIFORM, 0, 2.5,
             "init uniform:0,2.5 is not allowed; i32 takes whole numbers of "
             "its range");
    try_init(PS_TYPE_I32, PS_INIT_NORMAL, 0, 1,
             "init normal:0,1 is not allowed; integer types take whole "
             "numbers");
}

Test(table, sparse_auto_and_ftrl_begin_at_zero)
{
    ps_table_spec_t spec = good();

    spec.init = (ps_init_spec_t){.kind = PS_INIT_CONSTANT, .a = 1};
    spec.row_format = PS_ROW_SPARSE;
    refused(&spec, "init constant:1 is not allowed; rows of format sparse and "
                   "auto begin at zero");
    spec.row_format = PS_ROW_AUTO;
    refused(&spec, "init constant:1 is not allowed; rows of format sparse and "
                   "auto begin at zero");
    spec.row_format = PS_ROW_DENSE;
    spec.updater = (ps_updater_spec_t){.kind = PS_UPDATER_FTRL, .alpha = 1};
    refused(&spec, "init constant:1 is not allowed; rows of updater ftrl begin "
                   "at zero");
    spec.init.a = 0;
    allowed(&spec);
}

Test(table, partitions)
{
    ps_table_spec_t spec = good();

    spec.n_partitions = 0;
    refused(&spec, "partitions is 0; 1..4096 are allowed");
    spec.n_partitions = 4097;
    refused(&spec, "partitions is 4097; 1..4096 are allowed");
    spec.n_partitions = 4096;
    allowed(&spec);
    spec.n_col_slices = 0;
    refused(&spec, "column slices is 0; 1..10, the columns, are allowed");
    spec.n_col_slices = 11;
    refused(&spec, "column slices is 11; 1..10, the columns, are allowed");
    spec.n_col_slices = 3;
    refused(&spec, "partitions is 4096; multiples of the 3 column slices are "
                   "allowed");
    spec.n_partitions = 9;
    allowed(&spec);
    spec.partition_by = (ps_partition_by_t)0;
    refused(&spec, "partition 0 is not known; range, hash and list are");
}

Test(table, boundaries)
{
    ps_table_spec_t spec = good();
    uint64_t rows[] = {10, 20, 999};

    spec.boundaries = rows;
    spec.n_boundaries = 3;
    refused(&spec, "3 boundaries are given; only partition list takes any");
    spec.partition_by = PS_PARTITION_BY_LIST;
    allowed(&spec);
    spec.n_col_slices = 2;
    refused(&spec, "partition list has 3 boundaries; 2 row slices need 1");
    spec.n_col_slices = 1;
    rows[1] = 10;
    refused(&spec, "boundary 1 is row 10; boundaries must ascend and lie in "
                   "1..999");
    rows[1] = 20;
    rows[2] = 1000;
    refused(&spec, "boundary 2 is row 1000; boundaries must ascend and lie in "
                   "1..999");
    rows[0] = 0;
    refused(&spec, "boundary 0 is row 0; boundaries must ascend and lie in "
                   "1..999");
    spec.keys = PS_KEYS_HASH;
    spec.n_rows = 0;
    rows[0] = 1;
    rows[2] = UINT64_MAX;
    allowed(&spec);
    rows[1] = UINT64_MAX;
    refused(&spec, "boundary 2 is row 18446744073709551615; boundaries must "
                   "ascend and lie in 1..18446744073709551615");
}

static void check_settled(uint64_t n_rows, uint32_t n_cols, uint32_t asked_partitions,
                          uint32_t asked_slices, uint32_t n_partitions, uint32_t n_col_slices)
{
    ps_table_spec_t spec = good();

    spec.n_rows = n_rows;
    spec.n_cols = n_cols;
    spec.n_partitions = asked_partitions;
    spec.n_col_slices = asked_slices;
    ps_table_spec_settle(&spec, 8);
    cr_assert_eq(spec.n_partitions, n_partitions);
    cr_assert_eq(spec.n_col_slices, n_col_slices);
    allowed(&spec);
}

Test(table, settle_chooses_what_is_left_open)
{
    uint32_t mib = 1024 * 1024 / 4; /* columns of f32 */

    check_settled(1000, 10, 0, 0, 8, 1);
    check_settled(3, 10, 0, 0, 3, 1); /* not more than rows */
    check_settled(3, 10, 5, 0, 5, 1); /* unless they are asked for */
    check_settled(3, 10, 0, 2, 6, 2);
    check_settled(1, 16 * mib, 0, 0, 1, 1);
    check_settled(1, 16 * mib + 1, 0, 0, 2, 2);
    check_settled(10, 64 * mib, 0, 0, 32, 4);
    check_settled(10, 64 * mib, 10, 0, 10, 5); /* must divide them */
    check_settled(10, 64 * mib, 2, 0, 2, 2);
    check_settled(10, PS_TABLE_COLS_MAX, 0, 0, 4096, 512);
}

Test(table, settle_keeps_a_list)
{
    uint64_t rows[] = {10, 20};
    ps_table_spec_t spec = good();

    spec.partition_by = PS_PARTITION_BY_LIST;
    spec.boundaries = rows;
    spec.n_boundaries = 2;
    spec.n_partitions = 0;
    spec.n_col_slices = 0;
    ps_table_spec_settle(&spec, 8);
    cr_assert_eq(spec.n_partitions, 3);
    allowed(&spec);
    spec.n_partitions = 6;
    spec.n_col_slices = 0;
    ps_table_spec_settle(&spec, 8);
    cr_assert_eq(spec.n_col_slices, 2);
    allowed(&spec);
    spec.n_partitions = 2;
    spec.n_col_slices = 0;
    ps_table_spec_settle(&spec, 8);
    refused(&spec, "partition list has 2 boundaries; 2 row slices need 1");
}

/* Numbers that are wrong anyway must neither hang nor divide by zero. */
Test(table, settle_leaves_nonsense_to_the_check)
{
    ps_table_spec_t spec = good();

    spec.n_cols = PS_TABLE_COLS_MAX;
    spec.n_partitions = 4294967291; /* a prime */
    spec.n_col_slices = 0;
    ps_table_spec_settle(&spec, 8);
    refused(&spec, "partitions is 4294967291; 1..4096 are allowed");
    spec.n_partitions = 0;
    spec.n_col_slices = UINT32_MAX;
    ps_table_spec_settle(&spec, 0);
    refused(&spec, "partitions is 4294967295; 1..4096 are allowed");
}

Test(table, a_copy_has_its_own_boundaries)
{
    uint64_t rows[] = {10, 20, 30};
    ps_table_spec_t spec = good();
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t copy;

    spec.partition_by = PS_PARTITION_BY_LIST;
    spec.boundaries = rows;
    spec.n_boundaries = 3;
    cr_assert_eq(ps_table_spec_copy(&spec, &copy, NULL), PSD_OK);
    rows[0] = 0;
    cr_assert_neq(copy.boundaries, rows);
    cr_assert_eq(copy.boundaries[0], 10);
    allowed(&copy);
    ps_table_spec_done(&copy);
    cr_assert_null(copy.boundaries);
    cr_assert_eq(copy.n_rows, 0);
}

Test(table, a_copy_without_memory)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t rows[] = {10};
    ps_table_spec_t spec = good();
    ps_table_spec_t copy = {.n_rows = 77};

    spec.boundaries = rows;
    spec.n_boundaries = 1;
    fail_alloc_at(0);
    cr_assert_eq(ps_table_spec_copy(&spec, &copy, err), PSD_NOMEM);
    fail_alloc_off();
    cr_assert_str_eq(psd_error_text(err), "no memory for 1 boundaries");
    cr_assert_eq(copy.n_rows, 77);
}
