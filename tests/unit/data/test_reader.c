/* SPDX-License-Identifier: Apache-2.0 */
/* psd_data.h, readers: files one behind the other, bad lines, shares. */
#include <criterion/criterion.h>
#include <math.h>
#include <sys/stat.h>

#include "psd_data.h"

#include "base/alloc.h"
#include "sample_file.h"
#include "support/fail_alloc.h"

static temp_dir_t dir;
static char path[SAMPLE_PATH];

static void make_dir(void)
{
    cr_assert(temp_dir_make(&dir));
}

static void drop_dir(void)
{
    temp_dir_drop(&dir);
}

TestSuite(reader, .init = make_dir, .fini = drop_dir);

static void write_text(const char *name, const char *text)
{
    sample_file_write(&dir, name, text, strlen(text), path);
}

/* Labels of all samples, in the order in which they come. */
static size_t read_labels(const char *from, const psd_reader_options_t *options, float *labels,
                          size_t most)
{
    psd_reader_t *reader = NULL;
    psd_samples_t *batch = psd_samples_new();
    psd_error_t *err = psd_error_new();
    size_t n = 0;

    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, err), PSD_OK, "%s",
                 psd_error_text(err));
    do {
        cr_assert_eq(psd_reader_next(reader, 2, batch, err), PSD_OK, "%s", psd_error_text(err));
        for (size_t i = 0; i < psd_samples_count(batch); i++) {
            cr_assert_lt(n, most);
            labels[n++] = psd_samples_labels(batch)[i];
        }
    } while (psd_samples_count(batch) > 0);
    cr_expect_eq(psd_reader_sample_count(reader), n);
    psd_reader_close(&reader);
    cr_expect_null(reader);
    psd_samples_destroy(&batch);
    psd_error_destroy(&err);
    return n;
}

Test(reader, files_of_a_directory_come_by_name)
{
    float labels[8];
    char hidden[SAMPLE_PATH];

    write_text("b.gz", "2 1:1\n3 1:1\n");
    write_text("c.zst", "4 1:1");
    write_text("a", "0 1:1\n1 1:1");
    write_text(".hidden", "9 1:1\n");
    (void)snprintf(hidden, sizeof hidden, "%s/sub", dir.path);
    cr_assert_eq(mkdir(hidden, 0700), 0);
    cr_assert_eq(read_labels(dir.path, NULL, labels, 8), 5);
    for (int i = 0; i < 5; i++) {
        cr_expect_eq(labels[i], (float)i);
    }
}

Test(reader, patterns_name_files)
{
    float labels[8];
    char pattern[SAMPLE_PATH];

    write_text("x1", "1 1:1\n");
    write_text("x2", "2 1:1\n");
    write_text("y", "9 1:1\n");
    (void)snprintf(pattern, sizeof pattern, "%s/x[0-9]", dir.path);
    cr_assert_eq(read_labels(pattern, NULL, labels, 8), 2);
    cr_expect(labels[0] == 1 && labels[1] == 2);
}

Test(reader, shares_agree_on_what_the_first_lines_are)
{
    psd_reader_options_t *options = psd_reader_options_new();
    float labels[4];
    size_t n = 0;

    /* Alone, the second half would be binary keys and labels of +-1. */
    write_text("a", "0.5; 1 1.5 2;\n2; 1 3 4;\n1; 1 5 6;\n1; 1 7 8;\n");
    for (uint32_t part = 0; part < 3; part++) {
        psd_reader_t *reader = NULL;
        psd_samples_t *batch = psd_samples_new();
        const char *from = path;

        cr_assert_eq(psd_reader_options_set_share(options, part, 3, NULL), PSD_OK);
        n += read_labels(path, options, labels, 4);
        cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
        cr_assert_eq(psd_reader_next(reader, 9, batch, NULL), PSD_OK);
        cr_expect_eq(psd_samples_entries(batch), PSD_ENTRIES_DENSE);
        psd_reader_close(&reader);
        psd_samples_destroy(&batch);
    }
    cr_expect_eq(n, 4);
    psd_reader_options_destroy(&options);
}

Test(reader, bad_lines_are_counted_and_the_first_ten_named)
{
    char text[1024] = "";
    size_t size = 0;
    const char *from = path;
    psd_reader_t *reader = NULL;
    psd_samples_t *batch = psd_samples_new();
    char expected[SAMPLE_PATH + 100];

    for (int i = 0; i < 30; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s",
                                 i % 2 == 0 ? "1 1:1\n" : "1 x\n");
    }
    write_text("a", text);
    {
        psd_reader_options_t *options = psd_reader_options_new();

        cr_assert_eq(psd_reader_options_set_format(options, "libsvm", NULL), PSD_OK);
        cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
        psd_reader_options_destroy(&options);
    }
    cr_assert_eq(psd_reader_next(reader, 100, batch, NULL), PSD_OK);
    cr_expect_eq(psd_samples_count(batch), 15);
    cr_expect_eq(psd_reader_bad_count(reader), 15);
    (void)snprintf(expected, sizeof expected,
                   "%s:2: \"x\" is not KEY:VALUE of a whole number below 2^64 "
                   "and a finite number",
                   path);
    cr_expect_str_eq(psd_reader_bad(reader, 0), expected, "%s", psd_reader_bad(reader, 0));
    cr_expect_not_null(psd_reader_bad(reader, 9));
    cr_expect_null(psd_reader_bad(reader, 10));
    psd_reader_close(&reader);
    psd_samples_destroy(&batch);
}

/* A marker file that some tools leave beside the parts. */
Test(reader, empty_files_in_front_say_nothing)
{
    float labels[4];

    write_text("_SUCCESS", "");
    write_text("a", " \n\n");
    write_text("b", "0.5; 1 1:1\n2; 1 2:1\n");
    cr_expect_eq(read_labels(dir.path, NULL, labels, 4), 2);
}

Test(reader, entries_are_for_the_format_that_leaves_them_open)
{
    psd_reader_options_t *options = psd_reader_options_new();
    psd_samples_t *batch = psd_samples_new();
    psd_reader_t *reader = NULL;
    const char *from = path;

    write_text("a", "1 3:0.5 7:2\n");
    cr_assert_eq(psd_reader_options_set_entries(options, PSD_ENTRIES_BINARY, NULL), PSD_OK);
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(reader, 9, batch, NULL), PSD_OK);
    cr_expect_eq(psd_samples_entries(batch), PSD_ENTRIES_SPARSE);
    cr_expect_eq(psd_samples_values(batch)[0], 0.5);
    psd_reader_close(&reader);
    psd_samples_destroy(&batch);
    psd_reader_options_destroy(&options);
}

Test(reader, so_many_lines_of_each_input)
{
    psd_reader_options_t *options = psd_reader_options_new();
    float labels[8];

    write_text("a", "1 1:1\n2 1:1\n3 1:1\n");
    write_text("b", "4 1:1\n5 1:1\n6 1:1\n");
    psd_reader_options_set_max_lines(options, 2);
    cr_assert_eq(read_labels(dir.path, options, labels, 8), 4);
    cr_expect(labels[1] == 2 && labels[2] == 4);
    psd_reader_options_destroy(&options);
}

Test(reader, strict_ends_at_the_first_bad_line)
{
    const char *from = path;
    psd_reader_t *reader = NULL;
    psd_samples_t *batch = psd_samples_new();
    psd_error_t *err = psd_error_new();
    psd_reader_options_t *options = psd_reader_options_new();
    char expected[SAMPLE_PATH + 100];

    write_text("a.gz", "1 1:1\n# x\n-1 3:1 2:1\n1 1:1\n");
    psd_reader_options_set_strict(options, true);
    cr_assert_eq(psd_reader_options_set_format(options, "libsvm", NULL), PSD_OK);
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, err), PSD_OK);
    cr_expect_eq(psd_reader_next(reader, 100, batch, err), PSD_INVALID);
    (void)snprintf(expected, sizeof expected, "%s:3: key 2 after 3; keys of a line must ascend",
                   path);
    cr_expect_str_eq(psd_error_text(err), expected);
    cr_expect_eq(psd_samples_count(batch), 1, "what came before is there");
    psd_reader_options_destroy(&options);
    psd_reader_close(&reader);
    psd_samples_destroy(&batch);
    psd_error_destroy(&err);
}

/* Whether the format is named or not, the file and the line are told; and that
 * it was guessed, for that may be what is wrong. */
Test(reader, a_bad_line_of_a_guessed_format_is_named)
{
    static const struct {
        const char *text;
        const char *expected;
    } cases[] = {
        {"1 1:1\n1 1:1\n1 1:1\n1 1:1\n1 1:1\n"
         "1 1:1\n1 1:1\n1 1:1\n1 1:1\n1 2:1 1:1\n",
         ":10: key 1 after 2; keys of a line must ascend; the format was guessed as libsvm; if it "
         "is another one, name it"},
        {"# x\n1 1:1\nx y\n-1 1:1\n",
         ":3: \"x…\" is not libsvm, guessed by only 2 of the first 3 lines: name its format"},
    };
    psd_reader_options_t *options = psd_reader_options_new();

    psd_reader_options_set_strict(options, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *from = path;
        psd_reader_t *reader = NULL;
        psd_samples_t *batch = psd_samples_new();
        psd_error_t *err = psd_error_new();
        char expected[SAMPLE_PATH + 200];
        psd_status_t rc = PSD_OK;

        write_text("a", cases[i].text);
        rc = psd_reader_open(&from, 1, options, &reader, err);
        if (rc == PSD_OK) {
            rc = psd_reader_next(reader, 100, batch, err);
        }
        cr_expect_eq(rc, PSD_INVALID);
        (void)snprintf(expected, sizeof expected, "%s%s", path, cases[i].expected);
        cr_expect_str_eq(psd_error_text(err), expected);
        psd_reader_close(&reader);
        psd_samples_destroy(&batch);
        psd_error_destroy(&err);
    }
    psd_reader_options_destroy(&options);
}

Test(reader, what_cannot_be_opened_is_said)
{
    static const char *const nothing = "/nowhere/x";
    static const char *const pattern = "/nowhere/*.x";
    const char *from = path;
    psd_reader_t *reader = NULL;
    psd_error_t *err = psd_error_new();

    cr_expect_eq(psd_reader_open(&nothing, 1, NULL, &reader, err), PSD_IO);
    psd_error_clear(err);
    cr_expect_eq(psd_reader_open(&pattern, 1, NULL, &reader, err), PSD_INVALID);
    cr_expect_str_eq(psd_error_text(err),
                     "/nowhere/*.x is neither a file nor a pattern that matches one");
    psd_error_clear(err);
    cr_expect_eq(psd_reader_open(&pattern, 0, NULL, &reader, err), PSD_INVALID);
    psd_error_clear(err);
    write_text("a", "hello world\n");
    cr_expect_eq(psd_reader_open(&from, 1, NULL, &reader, err), PSD_INVALID);
    cr_expect_not_null(strstr(psd_error_text(err), "match no known format"));
    cr_expect_null(reader);
    psd_error_destroy(&err);
}

Test(reader, options_refuse_what_is_out_of_range)
{
    psd_reader_options_t *options = psd_reader_options_new();

    cr_expect_eq(psd_reader_options_set_share(options, 0, 0, NULL), PSD_INVALID);
    cr_expect_eq(psd_reader_options_set_share(options, 2, 2, NULL), PSD_INVALID);
    cr_expect_eq(psd_reader_options_set_entries(options, (psd_entries_t)3, NULL), PSD_INVALID);
    cr_expect_eq(psd_reader_options_set_bits(options, 0, NULL), PSD_INVALID);
    cr_expect_eq(psd_reader_options_set_bits(options, 62, NULL), PSD_INVALID);
    cr_expect_eq(psd_reader_options_set_format(options, "xml", NULL), PSD_INVALID);
    psd_reader_options_destroy(&options);
    cr_expect_null(options);
}

static psd_status_t read_twice(void *fixture)
{
    const char *from = fixture;
    psd_reader_t *reader = NULL;
    psd_samples_t *batch = psd_samples_new();
    psd_status_t rc = batch == NULL ? PSD_NOMEM : psd_reader_open(&from, 1, NULL, &reader, NULL);

    while (rc == PSD_OK) {
        rc = psd_reader_next(reader, 100, batch, NULL);
        if (rc == PSD_OK && psd_samples_count(batch) == 0) {
            break;
        }
    }
    psd_reader_close(&reader);
    psd_samples_destroy(&batch);
    return rc;
}

Test(reader, no_memory_is_told)
{
    char text[4096] = "";
    size_t size = 0;

    for (int i = 0; i < 300; i++) {
        size += (size_t)snprintf(text + size, sizeof text - size, "%s",
                                 i % 20 == 7 ? "1 x\n" : "1 1:1 2:2\n");
    }
    write_text("a", text);
    cr_assert_null(fail_alloc_sweep(read_twice, path));
}
