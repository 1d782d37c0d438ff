/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tables/reader.h: rows from files, checked against the table. */
#include "cli/tables/reader.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/output/json_text.h"

/* What the reader told, as "row@first_col[cols]=values;". */
typedef struct story {
    ps_type_t type;
    char *text;
    size_t size;
    FILE *file;
} story_t;

static psd_status_t note(void *arg, uint64_t row, uint32_t first_col, const uint32_t *cols,
                         const void *values, size_t n, psd_error_t *err)
{
    story_t *self = arg;
    char number[PS_NUMBER_SIZE];

    (void)err;
    (void)fprintf(self->file, "%" PRIu64 "@", row);
    for (size_t i = 0; i < n; i++) {
        ps_value_format(self->type, (const char *)values + i * ps_type_size(self->type), number);
        (void)fprintf(self->file, "%s%" PRIu64 "=%s", i == 0 ? "" : " ",
                      cols == NULL ? first_col + (uint64_t)i : cols[i], number);
    }
    (void)fputc(';', self->file);
    return PSD_OK;
}

static psd_status_t read_text(ps_file_format_t format, const ps_view_t *view, const void *bytes,
                              size_t size, char **ret_story, uint64_t *ret_rows, psd_error_t *err)
{
    ps_progress_t progress = {0};
    story_t story = {.type = view->type};
    ps_reader_t reader = {.file = fmemopen((void *)bytes, size, "r"),
                          .path = "f",
                          .view = view,
                          .take = note,
                          .arg = &story,
                          .progress = &progress};
    psd_status_t rc = PSD_OK;

    cr_assert_not_null(reader.file);
    story.file = open_memstream(&story.text, &story.size);
    rc = ps_reader_read(&reader, format, err);
    (void)fclose(story.file);
    (void)fclose(reader.file);
    *ret_rows = reader.cells.n_rows;
    ps_reader_done(&reader);
    *ret_story = story.text;
    return rc;
}

static ps_view_t view_of(ps_type_t type, uint64_t rows, uint32_t cols)
{
    return (ps_view_t){.name = "w",
                       .type = type,
                       .value_size = ps_type_size(type),
                       .rows = rows,
                       .cols = cols,
                       .last_row = rows == 0 ? UINT64_MAX : rows - 1,
                       .is_hash = rows == 0};
}

static void good(ps_file_format_t format, ps_view_t view, const char *text, uint64_t rows,
                 const char *want)
{
    psd_error_t *err = psd_error_new();
    char *story = NULL;
    uint64_t n_rows = 0;
    psd_status_t rc = read_text(format, &view, text, strlen(text), &story, &n_rows, err);

    cr_assert_eq(rc, PSD_OK, "%s", psd_error_text(err));
    cr_assert_str_eq(story, want);
    cr_assert_eq(n_rows, rows);
    free(story);
    psd_error_destroy(&err);
}

static void bad(ps_file_format_t format, ps_view_t view, const char *text, psd_status_t status,
                const char *want)
{
    psd_error_t *err = psd_error_new();
    char *story = NULL;
    uint64_t n_rows = 0;
    psd_status_t rc = read_text(format, &view, text, strlen(text), &story, &n_rows, err);

    cr_assert_eq(rc, status, "%s", psd_error_text(err));
    cr_assert_str_eq(psd_error_text(err), want);
    free(story);
    psd_error_destroy(&err);
}

Test(reader, text_dumps)
{
    ps_view_t view = view_of(PS_TYPE_F32, 10, 4);

    good(PS_FILE_TEXT, view, "1 0:0.5 3:-1\n2 1:7\n", 2, "1@0=0.5 3=-1;2@1=7;");
    good(PS_FILE_TEXT, view, "# c\r\n\n  1\t0:1  2:2 \r\n9 3:1", 2, "1@0=1 2=2;9@3=1;");
    good(PS_FILE_TEXT, view, "5\n\n \n", 1, "");
    good(PS_FILE_TEXT, view,
         "  # a comment, whose words may be as long as they like: "
         "1111111111111111111111111111111111111111111111111111111111111111\n"
         "3 0:1\r",
         1, "3@0=1;");
    good(PS_FILE_TEXT, view, "3 0:1\n#", 1, "3@0=1;");
    good(PS_FILE_TEXT, view, "", 0, "");
    good(PS_FILE_TEXT, view_of(PS_TYPE_I64, 0, 1), "18446744073709551615 0:-9223372036854775808\n",
         1, "18446744073709551615@0=-9223372036854775808;");
}

Test(reader, wrong_text_names_its_line)
{
    ps_view_t view = view_of(PS_TYPE_F32, 10, 4);

    bad(PS_FILE_TEXT, view, "1 0:1\nx 0:1\n", PSD_INVALID, "f:2: row is \"x\"; allowed: a number");
    bad(PS_FILE_TEXT, view, "10 0:1\n", PSD_RANGE, "f:1: row 10; the last one is 9");
    bad(PS_FILE_TEXT, view, "1 4:1\n", PSD_RANGE, "f:1: column 4; the last one is 3");
    bad(PS_FILE_TEXT, view, "#\n\n1 7\n", PSD_INVALID, "f:3: \"7\" is not COLUMN:VALUE");
    bad(PS_FILE_TEXT, view, "1 :7\n", PSD_INVALID, "f:1: column is \"\"; allowed: a number");
    bad(PS_FILE_TEXT, view, "1 2:1 2:1\n", PSD_INVALID,
        "f:1: column 2 after column 2; columns of a row must ascend");
    bad(PS_FILE_TEXT, view, "1 2:one\n", PSD_TYPE,
        "f:1: row 1 column 2 is \"one\"; allowed: a number of type f32");
    bad(PS_FILE_TEXT, view, "1 2:inf\n", PSD_NOT_FINITE,
        "f:1: row 1 column 2 is \"inf\", which table \"w\" does not allow");
    bad(PS_FILE_TEXT, view_of(PS_TYPE_I32, 10, 4), "1 2:0.5\n", PSD_TYPE,
        "f:1: row 1 column 2 is \"0.5\"; allowed: a number of type i32");
}

Test(reader, a_table_may_allow_what_is_not_finite)
{
    ps_view_t view = view_of(PS_TYPE_F64, 10, 4);

    view.allow_nonfinite = true;
    good(PS_FILE_TEXT, view, "1 0:nan 1:-inf", 1, "1@0=nan 1=-inf;");
}

Test(reader, csv_with_whole_rows)
{
    ps_view_t view = view_of(PS_TYPE_F64, 10, 2);

    good(PS_FILE_CSV, view, "row,0,1\n3,1,2\r\n\n1,0.1,-3", 2, "3@0=1 1=2;1@0=0.1 1=-3;");
    bad(PS_FILE_CSV, view, "row,0\n", PSD_INVALID,
        "f:1: header line not understood; allowed: row,col,value, or row and the numbers of all "
        "columns, 0 to 1");
    bad(PS_FILE_CSV, view, "row,0,1\n1,2\n", PSD_SHAPE,
        "f:2: too few values; allowed after the row: 2");
    bad(PS_FILE_CSV, view, "row,0,1\n1,2,3,4\n", PSD_SHAPE,
        "f:2: too many values; allowed after the row: 2");
    bad(PS_FILE_CSV, view, "row,0,1\n,2,3\n", PSD_INVALID, "f:2: row is \"\"; allowed: a number");
}

Test(reader, csv_with_single_values)
{
    ps_view_t view = view_of(PS_TYPE_I32, 10, 100);

    good(PS_FILE_CSV, view, "row,col,value\n3,99,1\n3,5,2\n4,0,3\n", 2, "3@99=1;3@5=2;4@0=3;");
    bad(PS_FILE_CSV, view, "row,col,value,more\n", PSD_INVALID,
        "f:1: header line not understood; allowed: row,col,value, or row and the numbers of all "
        "columns, 0 to 99");
    bad(PS_FILE_CSV, view, "row,col,value\n3,1\n", PSD_SHAPE, "f:2: less than row,col,value");
    bad(PS_FILE_CSV, view, "row,col,value\n3,1,2,3\n", PSD_SHAPE, "f:2: more than row,col,value");
}

Test(reader, a_long_row_comes_in_pieces)
{
    ps_view_t view = view_of(PS_TYPE_I32, 1, 200000);
    psd_error_t *err = psd_error_new();
    char *text = NULL;
    char *story = NULL;
    size_t size = 0;
    uint64_t rows = 0;
    FILE *file = open_memstream(&text, &size);
    size_t pieces = 0;

    (void)fprintf(file, "0");
    for (int i = 0; i < 200000; i++) {
        (void)fprintf(file, " %d:1", i);
    }
    (void)fclose(file);
    cr_assert_eq(read_text(PS_FILE_TEXT, &view, text, size, &story, &rows, err), PSD_OK, "%s",
                 psd_error_text(err));
    for (const char *at = story; (at = strchr(at, ';')) != NULL; at++) {
        pieces++;
    }
    cr_assert_eq(pieces, 4);
    cr_assert_eq(rows, 1);
    free(text);
    free(story);
    psd_error_destroy(&err);
}

Test(reader, a_word_without_end_is_refused)
{
    ps_view_t view = view_of(PS_TYPE_I32, 1, 1);
    char text[200];

    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    bad(PS_FILE_TEXT, view, text, PSD_INVALID, "f:1: a word of more than 62 bytes");
}

Test(reader, npy_has_the_tables_shape)
{
    static const char HEAD[] = "\x93NUMPY\x01\x00\x3C\x00{'descr': '<i4', "
                               "'fortran_order': False, 'shape': (2, 1), } ";
    ps_view_t view = view_of(PS_TYPE_I32, 2, 1);
    psd_error_t *err = psd_error_new();
    char *story = NULL;
    uint64_t rows = 0;
    int32_t values[3] = {5, -6, 7};
    char bytes[128];
    size_t head = sizeof HEAD - 1;

    cr_assert_eq(head, 70);
    memcpy(bytes, HEAD, head);
    memcpy(bytes + head, values, sizeof values);
    cr_assert_eq(read_text(PS_FILE_NPY, &view, bytes, head + 8, &story, &rows, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_str_eq(story, "0@0=5;1@0=-6;");
    free(story);
    cr_assert_eq(read_text(PS_FILE_NPY, &view, bytes, head + 7, &story, &rows, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "f ends in row 1 of 2");
    free(story);
    psd_error_clear(err);
    cr_assert_eq(read_text(PS_FILE_NPY, &view, bytes, head + 9, &story, &rows, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "f has data after its last row, 1");
    free(story);
    psd_error_clear(err);
    view.rows = 3;
    cr_assert_eq(read_text(PS_FILE_NPY, &view, bytes, head + 8, &story, &rows, err), PSD_SHAPE);
    free(story);
    psd_error_destroy(&err);
}
