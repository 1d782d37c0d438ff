/* SPDX-License-Identifier: Apache-2.0 */
/* pscli table diff: where two tables differ. */
#include "cli/tables/tables.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/value_text.h"
#include "cli/tables/rows_diff.h"

#define DIFFER_EXIT 1
#define KEY_SIZE 24

static const ps_column_t DIFFERENCES[] = {{"ROW", "row", PS_UNIT_NONE, false},
                                          {"COL", "col", PS_UNIT_NONE, false},
                                          {"A", "a", PS_UNIT_NONE, false},
                                          {"B", "b", PS_UNIT_NONE, false},
                                          {"DIFFERENCE", "difference", PS_UNIT_NONE, false},
                                          {"ONLY_IN", "only_in", PS_UNIT_NONE, false},
                                          {NULL, NULL, PS_UNIT_NONE, false}};

typedef struct shown {
    const ps_view_t *a;
    const ps_view_t *b;
    json_t *list;   /* borrowed */
    uint64_t limit; /* items of list */
} shown_t;

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for differences");
}

/* An integer; digits in a string where JSON's integers end. */
static json_t *key_json(uint64_t key)
{
    char text[KEY_SIZE];

    if (key <= INT64_MAX) {
        return json_integer((json_int_t)key);
    }
    (void)snprintf(text, sizeof text, "%" PRIu64, key);
    return json_string(text);
}

/* The number with the fewest digits that is this value; what is not finite is a string. */
static json_t *value_json(ps_type_t type, const void *value)
{
    char text[PS_NUMBER_SIZE];
    int64_t integer = 0;
    double real = 0;

    ps_value_format(type, value, text);
    if (!ps_value_is_finite(type, value)) {
        return json_string(text);
    }
    if (type == PS_TYPE_I32 || type == PS_TYPE_I64) {
        return ps_value_parse(PS_TYPE_I64, text, &integer) ? json_integer(integer) : NULL;
    }
    return ps_value_parse(PS_TYPE_F64, text, &real) ? json_real(real) : NULL;
}

static json_t *difference_json(double difference)
{
    return value_json(PS_TYPE_F64, &difference);
}

static psd_status_t found(void *arg, ps_side_t side, uint64_t row, uint32_t col, const void *a,
                          const void *b, double difference, psd_error_t *err)
{
    shown_t *self = arg;
    ps_type_t type = self->a->type;
    json_t *item = NULL;

    if (json_array_size(self->list) >= self->limit) {
        return PSD_OK;
    }
    if (side == PS_SIDE_BOTH) {
        item = json_pack("{s:o, s:I, s:o, s:o, s:o}", "row", key_json(row), "col", (json_int_t)col,
                         "a", value_json(type, a), "b", value_json(type, b), "difference",
                         difference_json(difference));
    } else {
        item = json_pack("{s:o, s:s}", "row", key_json(row), "only_in",
                         side == PS_SIDE_A ? self->a->name : self->b->name);
    }
    return json_array_append_new(self->list, item) == 0 ? PSD_OK : no_memory(err);
}

/* Errors: PSD_INVALID for tables that cannot be compared. */
static psd_status_t check(const ps_view_t *a, const ps_view_t *b, psd_error_t *err)
{
    if (a->type != b->type) {
        return psd_error_set(
            err, PSD_INVALID,
            "table \"%s\" has values of type %s, table \"%s\" of type %s; allowed: "
            "two tables of one type",
            a->name, psd_table_type(a->table), b->name, psd_table_type(b->table));
    }
    if (a->cols != b->cols) {
        return psd_error_set(err, PSD_INVALID,
                             "table \"%s\" has %" PRIu32 " columns, table \"%s\" has %" PRIu32
                             "; allowed: two tables with the same number",
                             a->name, a->cols, b->name, b->cols);
    }
    return PSD_OK;
}

static const char *s_of(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void add_only(ps_buffer_t *line, uint64_t n, const char *name)
{
    if (n > 0) {
        (void)!ps_buffer_print(line, "%s%" PRIu64 " row%s only in \"%s\"",
                               line->size == 0 ? "" : "; ", n, s_of(n), name);
    }
}

static void say(const ps_out_t *out, const ps_rows_diff_t *diff, size_t n_shown)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};
    uint64_t n_found = diff->n_values + diff->n_only_a + diff->n_only_b;
    char number[PS_NUMBER_SIZE];

    if (n_found == 0) {
        ps_f64_format(diff->tolerance, number);
        ps_say(out, "tables \"%s\" and \"%s\" are equal%s%s: %" PRIu64 " row%s", diff->a->name,
               diff->b->name, diff->tolerance > 0 ? " within " : "",
               diff->tolerance > 0 ? number : "", diff->n_rows, s_of(diff->n_rows));
        return;
    }
    if (diff->n_values > 0) {
        ps_f64_format(diff->largest, number);
        (void)!ps_buffer_print(
            &line, "%" PRIu64 " value%s differ%s in %" PRIu64 " of %" PRIu64 " row%s, by %s%s",
            diff->n_values, s_of(diff->n_values), diff->n_values == 1 ? "s" : "",
            diff->n_rows_differ, diff->n_rows, s_of(diff->n_rows), number,
            diff->n_values == 1 ? "" : " at most");
    }
    add_only(&line, diff->n_only_a, diff->a->name);
    add_only(&line, diff->n_only_b, diff->b->name);
    ps_say(out, "tables \"%s\" and \"%s\" differ: %s", diff->a->name, diff->b->name,
           line.data == NULL ? "" : (const char *)line.data);
    if (n_shown < n_found) {
        ps_say(out, "%zu of %" PRIu64 " differences are shown; --limit shows more", n_shown,
               n_found);
    }
}

static psd_status_t compare(ps_cli_t *cli, const ps_view_t *a, const ps_view_t *b, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    json_t *list = json_array();
    shown_t shown = {.a = a, .b = b, .list = list, .limit = ps_args_u64(&cli->args, "limit")};
    ps_rows_diff_t diff = {.a = a,
                           .b = b,
                           .tolerance = ps_args_real(&cli->args, "tolerance"),
                           .timeout_ms = cli->timeout_ms,
                           .found = found,
                           .arg = &shown};
    psd_status_t rc = list == NULL ? no_memory(err) : ps_rows_diff(&diff, err);
    bool is_equal = diff.n_values + diff.n_only_a + diff.n_only_b == 0;

    if (rc != PSD_OK) {
        json_decref(list);
        return rc;
    }
    doc = json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "a", a->name, "b",
                    b->name, "equal", is_equal ? 1 : 0, "rows", (json_int_t)diff.n_rows,
                    "rows_differ", (json_int_t)diff.n_rows_differ, "values_differ",
                    (json_int_t)diff.n_values, "rows_only_in_a", (json_int_t)diff.n_only_a,
                    "rows_only_in_b", (json_int_t)diff.n_only_b, "largest",
                    difference_json(diff.largest), "differences", list);
    if (doc == NULL) {
        return no_memory(err);
    }
    if (!is_equal || cli->out.format != PS_FORMAT_TABLE) {
        ps_out_list(&cli->out, doc, "differences", DIFFERENCES);
    }
    say(&cli->out, &diff, json_array_size(list));
    cli->exit_code = is_equal ? 0 : DIFFER_EXIT;
    return PSD_OK;
}

psd_status_t ps_cmd_table_diff(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_view_done) ps_view_t a = {0};
    PSD_AUTO(ps_view_done) ps_view_t b = {0};
    const char *names[2] = {NULL, NULL};
    psd_status_t rc = ps_cli_name(cli, 0, "A", &names[0], err);

    cli->only_reads = true;
    if (rc == PSD_OK) {
        rc = ps_cli_name(cli, 1, "B", &names[1], err);
    }
    if (rc == PSD_OK) {
        rc = ps_view_open(cli, names[0], &a, err);
    }
    if (rc == PSD_OK) {
        rc = ps_view_open(cli, names[1], &b, err);
    }
    if (rc == PSD_OK) {
        rc = check(&a, &b, err);
    }
    return rc != PSD_OK ? rc : compare(cli, &a, &b, err);
}
