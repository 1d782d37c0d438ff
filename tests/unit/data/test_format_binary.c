/* SPDX-License-Identifier: Apache-2.0 */
/* binary: matrices written and read, whole and by rows; what is broken. */
#include <stdlib.h>
#include <unistd.h>

#include "sample_file.h"
#include "sample_read.h"
#include "sample_write.h"
#include "support/fail_alloc.h"

static temp_dir_t dir;
static char path[SAMPLE_PATH]; /* of the last name asked for */
static psd_reader_options_t *options;

static void set_up(void)
{
    cr_assert(temp_dir_make(&dir));
    options = psd_reader_options_new();
}

static void tear_down(void)
{
    psd_reader_options_destroy(&options);
    temp_dir_drop(&dir);
}

TestSuite(format_binary, .init = set_up, .fini = tear_down);

static const char *at(const char *name)
{
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    return path;
}

static void put_text(const char *name, const char *text)
{
    sample_file_put(at(name), text, strlen(text));
}

#define EXAMPLE "1 0:1 1:2\n-1 1:3 2:9\n0.5 1:1 2:4\n"

Test(format_binary, the_example_is_three_arrays)
{
    static const uint64_t offset[] = {0, 2, 4, 6};
    static const uint64_t index[] = {0, 1, 1, 2, 1, 2};
    static const float value[] = {1, 2, 3, 9, 1, 4};
    char got[256];

    sample_write_expect("libsvm", EXAMPLE, at("name"), "binary");
    cr_assert_eq(sample_file_get(at("name.offset"), got, sizeof got), sizeof offset);
    cr_expect_arr_eq(got, offset, sizeof offset);
    cr_assert_eq(sample_file_get(at("name.index"), got, sizeof got), sizeof index);
    cr_expect_arr_eq(got, index, sizeof index);
    cr_assert_eq(sample_file_get(at("name.value"), got, sizeof got), sizeof value);
    cr_expect_arr_eq(got, value, sizeof value);
    got[sample_file_get(at("name.info"), got, sizeof got - 1)] = '\0';
    cr_expect_str_eq(got, "type: SPARSE\nrow_major: true\nid: 0\nrow {\n"
                          "  begin: 0\n  end: 3\n}\ncol {\n  begin: 0\n"
                          "  end: 3\n}\nnnz: 6\nsizeof_index: 8\n"
                          "sizeof_value: 4\n");
    sample_read_expect(at("name.info"), NULL, "1 {0 0:1 1:2}\n-1 {0 1:3 2:9}\n0.5 {0 1:1 2:4}\n",
                       0);
}

Test(format_binary, each_group_is_a_matrix)
{
    sample_write_expect("ps",
                        "1;-3 1:1 5:2;7 7:2;\n2;7 7:3;\n"
                        "0;-3 18446744073709551615:4;0 1:9;\n",
                        at("g"), "binary");
    sample_read_expect(at("g.y.info"), NULL,
                       "1 {-3 1:1 5:2} {7 7:2}\n2 {7 7:3}\n"
                       "0 {0 1:9} {-3 18446744073709551615:4}\n",
                       0);
    sample_read_expect(at("g.7.info"), NULL, "1 {7 7:2}\n2 {7 7:3}\n0 {7}\n", 0);
    cr_assert_eq(psd_reader_options_set_labels(options, "none", NULL), PSD_OK);
    sample_read_expect(at("g.7.info"), options, "none {7 7:2}\nnone {7 7:3}\nnone {7}\n", 0);
}

Test(format_binary, dense_and_binary_entries_have_fewer_files)
{
    char got[8];

    sample_write_expect("csv", "1,5,6\n2,0,8\n", at("d"), "binary");
    cr_expect_eq(sample_file_get(at("d.y.value"), got, sizeof got), 8);
    sample_read_expect(at("d.info"), NULL, "1 {0 0:5 1:6}\n2 {0 0:0 1:8}\n", 0);
    sample_write_expect("adfea", "1 1 1 4:2 9:2\n2 1 0 8:2\n", at("b"), "binary");
    sample_read_expect(at("b.y.info"), NULL, "1 {2 4:1 9:1}\n-1 {2 8:1}\n", 0);
    /* Without labels there is no matrix of them. */
    sample_write_expect("csv", ",5,6\n,0,8\n", at("n"), "binary");
    sample_read_expect(at("n.info"), NULL, "none {0 0:5 1:6}\nnone {0 0:0 1:8}\n", 0);
    sample_read_refused(at("n.y.info"), NULL, PSD_IO, "n.y.info");
    sample_write_expect("csv", "", at("e"), "binary");
    sample_read_expect(at("e.info"), NULL, "", 0);
}

Test(format_binary, other_widths_and_the_names_of_others_are_read)
{
    static const uint64_t offset[] = {0, 1, 3};
    static const uint32_t index[] = {4, 0, 2};
    static const double value[] = {0.5, 1, 2};
    static const double labels[] = {1, -1};

    sample_file_put(at("a.X.offset"), offset, sizeof offset);
    sample_file_put(at("a.X.index"), index, sizeof index);
    sample_file_put(at("a.X.value"), value, sizeof value);
    sample_file_put(at("a.y.value"), labels, sizeof labels);
    put_text("a.y.info", "type: DENSE row_major: true row { begin: 0 end: 2 } "
                         "col: { begin: 0 end: 1 } sizeof_value: 8");
    put_text("a.X.info", "type: SPARSE\nrow_major: true\nrow {\n begin: 5\n end"
                         ": 7\n}\ncol {\n begin: 0\n end: 5\n}\nnnz: 3\n"
                         "sizeof_index: 4\nsizeof_value: 8\n"
                         "nnz_per_row: 1.5\n");
    sample_read_expect(at("a.y.info"), NULL, "1 {0 4:0.5}\n-1 {0 0:1 2:2}\n", 0);
    sample_read_expect(at("a.X.info"), NULL, "1 {0 4:0.5}\n-1 {0 0:1 2:2}\n", 0);
}

/* What read() and pread() have given to this process. */
static long bytes_read(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    char line[64] = "";

    cr_assert_not_null(file);
    cr_assert_not_null(fgets(line, sizeof line, file));
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(strncmp(line, "rchar: ", 7), 0, "%s", line);
    return strtol(line + 7, NULL, 10);
}

#define ROWS 20000
#define EACH 16

/* Row i is of label i and has the entries i:0, i + 1:1, … */
static void write_big(void)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;

    cr_assert_not_null(samples);
    for (uint64_t i = 0; i < ROWS; i++) {
        cr_assert(ps_samples_reserve(samples, 1, EACH));
        ps_samples_begin(samples, (float)i);
        for (uint64_t e = 0; e < EACH; e++) {
            ps_samples_add(samples, i + e, (float)e);
        }
        ps_samples_end_group(samples, 0);
        ps_samples_end(samples);
    }
    cr_assert_eq(psd_writer_open(at("big"), "binary", &writer, NULL), PSD_OK);
    cr_assert_eq(psd_writer_write(writer, samples, NULL), PSD_OK);
    cr_assert_eq(psd_writer_commit(writer, NULL), PSD_OK);
}

static void expect_rows(uint64_t first, uint64_t end)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = at("big.info");

    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(reader, ROWS, batch, NULL), PSD_OK);
    cr_assert_eq(batch->n, end - first);
    for (uint64_t i = 0; i < batch->n; i++) {
        cr_assert_eq(batch->labels[i], (float)(first + i));
        cr_assert_eq(batch->starts[i + 1] - batch->starts[i], EACH);
        for (uint64_t e = 0; e < EACH; e++) {
            cr_assert_eq(batch->keys[batch->starts[i] + e], first + i + e);
            cr_assert_eq(batch->values[batch->starts[i] + e], (float)e);
        }
    }
}

Test(format_binary, rows_are_read_from_where_they_lie)
{
    long before = 0;
    long whole = 0;
    long part = 0;

    write_big();
    before = bytes_read();
    expect_rows(0, ROWS);
    whole = bytes_read() - before;
    cr_expect_gt(whole, ROWS * (8 + 4 + EACH * 12));
    cr_assert_eq(psd_reader_options_set_rows(options, 12345, 12355, NULL), PSD_OK);
    before = bytes_read();
    expect_rows(12345, 12355);
    part = bytes_read() - before;
    /* Ten rows are 2 kB; the .info files and this count are some more. */
    cr_expect_lt(part, 8192, "%ld bytes of %ld", part, whole);
    cr_assert_eq(psd_reader_options_set_share(options, 1, 2, NULL), PSD_OK);
    expect_rows(12350, 12355);
    cr_assert_eq(psd_reader_options_set_rows(options, 19999, 30000, NULL), PSD_OK);
    expect_rows(19999, 20000);
    cr_assert_eq(psd_reader_options_set_share(options, 0, 2, NULL), PSD_OK);
    expect_rows(19999, 19999);
    cr_expect_eq(psd_reader_options_set_rows(options, 5, 5, NULL), PSD_INVALID);
}

Test(format_binary, rows_of_lines_cannot_be_had_by_number)
{
    put_text("a.libsvm", "1 1:1\n");
    cr_assert_eq(psd_reader_options_set_rows(options, 0, 1, NULL), PSD_OK);
    sample_read_refused(at("a.libsvm"), options, PSD_INVALID,
                        "libsvm files do not say where they are");
}

Test(format_binary, what_it_cannot_hold_is_refused)
{
    sample_write_refused("ps", "1;2 1:1;2 2:1;\n", at("a"), "binary", "group 2 is there twice");
    sample_write_refused("csv", "1,5,6\n", "-", "binary", "give NAME");
    sample_write_expect("libsvm", EXAMPLE, at("a"), "binary");
    sample_write_refused("libsvm", EXAMPLE, at("a"), "binary", "a.info exists");
    /* Nothing of what was refused has stayed. */
    cr_expect_neq(access(at("a.2.info"), F_OK), 0);
}

Test(format_binary, what_is_broken_is_refused)
{
    static const uint64_t descends[] = {0, 4, 2, 6};
    static const uint64_t far[] = {0, 2, 4, UINT64_C(1) << 61};
    static const uint64_t late[] = {7, 7, 7, 7};
    static const float infinite[] = {1, 2, 3, INFINITY, 1, 4};

    sample_write_expect("libsvm", EXAMPLE, at("a"), "binary");
    sample_file_put(at("a.offset"), descends, sizeof descends);
    sample_read_refused(at("a.info"), NULL, PSD_DAMAGED,
                        "row 1 begins after 4 entries and ends after 2");
    sample_file_put(at("a.offset"), far, sizeof far);
    sample_read_refused(at("a.info"), NULL, PSD_DAMAGED, "end after 2305843009213693952 entries");
    sample_file_put(at("a.offset"), late, sizeof late - 8);
    sample_read_refused(at("a.info"), NULL, PSD_DAMAGED, "a.offset ends early");
    sample_write_expect("libsvm", EXAMPLE, at("b"), "binary");
    sample_file_put(at("b.value"), infinite, sizeof infinite);
    sample_read_expect(at("b.info"), NULL, "1 {0 0:1 1:2}\n0.5 {0 1:1 2:4}\n", 1);
    sample_file_put(at("b.index"), late, sizeof late);
    sample_read_refused(at("b.info"), NULL, PSD_DAMAGED, "b.index ends early");
    sample_write_expect("libsvm", EXAMPLE EXAMPLE, at("c"), "binary");
    sample_write_expect("libsvm", EXAMPLE, at("d"), "binary");
    cr_assert_eq(psd_reader_options_set_labels(options, at("d.y.info"), NULL), PSD_OK);
    sample_read_refused(at("c.info"), options, PSD_INVALID, "has 3 rows");
}

Test(format_binary, a_name_that_reads_as_a_part_is_refused)
{
    sample_write_refused("libsvm", EXAMPLE, at("a.1"), "binary",
                         "is read as a part of the data set");
    sample_write_refused("libsvm", EXAMPLE, at("a.-7"), "binary", "give another NAME");
    sample_write_refused("libsvm", EXAMPLE, at("a.X"), "binary", "give another NAME");
    sample_write_refused("libsvm", EXAMPLE, at("a.y"), "binary", "give another NAME");
    sample_write_expect("libsvm", EXAMPLE, at("a.01"), "binary");
    sample_read_expect(at("a.01.info"), NULL, "1 {0 0:1 1:2}\n-1 {0 1:3 2:9}\n0.5 {0 1:1 2:4}\n",
                       0);
}

Test(format_binary, what_is_there_is_not_written_over)
{
    put_text("y.y.info", "");
    sample_write_refused("libsvm", EXAMPLE, at("y"), "binary", "y.y.info exists");
    for (int i = 1; i <= 201; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "m.%d.info", i);
        put_text(name, "");
    }
    cr_expect_eq(sample_write_text("libsvm", EXAMPLE, at("m"), "binary", NULL), PSD_LIMIT);
    cr_expect_neq(access(at("m.info"), F_OK), 0);
    cr_expect_eq(sample_write_text("libsvm", EXAMPLE, at("no/m"), "binary", NULL), PSD_IO);
}

Test(format_binary, a_later_input_of_another_kind_is_refused)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    char keys[SAMPLE_PATH];
    char values[SAMPLE_PATH];
    const char *paths[] = {keys, values};
    const char *turned[] = {values, keys};
    psd_reader_t *reader = NULL;

    sample_write_expect("adfea", "1 1 1 4:2 9:2\n", at("k"), "binary");
    sample_write_expect("libsvm", EXAMPLE, at("v"), "binary");
    (void)snprintf(keys, sizeof keys, "%s", at("k.y.info"));
    (void)snprintf(values, sizeof values, "%s", at("v.info"));
    cr_assert_eq(psd_reader_open(paths, 2, NULL, &reader, err), PSD_OK);
    cr_expect_eq(psd_reader_next(reader, 9, batch, err), PSD_INVALID);
    cr_expect(strstr(psd_error_text(err), keys) != NULL &&
                  strstr(psd_error_text(err), values) != NULL,
              "%s", psd_error_text(err));
    psd_reader_close(&reader);
    /* Keys alone are entries of 1. */
    cr_assert_eq(psd_reader_open(turned, 2, NULL, &reader, NULL), PSD_OK);
    cr_expect_eq(psd_reader_next(reader, 9, batch, NULL), PSD_OK);
    cr_expect_eq(psd_samples_count(batch), 4);
    psd_reader_close(&reader);
}

Test(format_binary, dense_rows_that_are_not_there_are_refused)
{
    put_text("d.value", "12345678");
    put_text("d.info", "type: DENSE row_major: true row { end: 99999999999 } "
                       "col { end: 0 } sizeof_value: 4");
    sample_read_refused(at("d.info"), NULL, PSD_INVALID, "99999999999 dense rows without a column");
    put_text("d.info", "type: DENSE row_major: true row { end: 3 } "
                       "col { end: 1 } sizeof_value: 4");
    sample_read_refused(at("d.info"), NULL, PSD_DAMAGED,
                        "d.value ends early: it has 8 bytes, of 3 rows");
}

Test(format_binary, an_info_that_is_none_is_refused)
{
    cr_assert_eq(psd_reader_options_set_format(options, "binary", NULL), PSD_OK);
    put_text("a.info", "type: ROUND");
    sample_read_refused(at("a.info"), options, PSD_INVALID, "byte 0: no field");
    put_text("a.info", "row {");
    sample_read_refused(at("a.info"), options, PSD_INVALID, "type, row or sizeof_value is missing");
    put_text("a.info", "type: SPARSE row { end: 2 } sizeof_value: 4");
    sample_read_refused(at("a.info"), options, PSD_INVALID, "sizeof_index is neither 4 nor 8");
    put_text("a.info", "type: DENSE row { end: 2 } sizeof_value: 3");
    sample_read_refused(at("a.info"), options, PSD_INVALID, "sizeof_value is neither 4 nor 8");
    put_text("a.info", "type: DENSE row_major: false row { end: 2 } "
                       "sizeof_value: 4");
    sample_read_refused(at("a.info"), options, PSD_INVALID, "it is stored by columns");
    put_text("a.txt", "");
    sample_read_refused(at("a.txt"), options, PSD_INVALID,
                        "name the binary file that ends with .info");
}

static psd_status_t write_once(void *fixture)
{
    (void)fixture;
    return sample_write_text("ps", "1;-3 1:1;7 7:2;\n", at("f"), "binary", NULL);
}

static psd_status_t read_once(void *fixture)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = fixture;
    psd_status_t rc = batch == NULL ? PSD_NOMEM : psd_reader_open(&from, 1, NULL, &reader, NULL);

    return rc == PSD_OK ? psd_reader_next(reader, 9, batch, NULL) : rc;
}

Test(format_binary, memory_that_is_not_there_is_said)
{
    cr_assert_null(fail_alloc_sweep(write_once, NULL));
    cr_assert_null(fail_alloc_sweep(read_once, (void *)at("f.y.info")));
}
