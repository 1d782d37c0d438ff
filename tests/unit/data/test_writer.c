/* SPDX-License-Identifier: Apache-2.0 */
/* psd_data.h, writers: every pair of formats keeps what both can hold. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <locale.h>

#include "psd_data.h"

#include "base/alloc.h"
#include "sample_case.h"
#include "sample_file.h"

static temp_dir_t dir;

static void make_dir(void)
{
    cr_assert(temp_dir_make(&dir));
}

static void drop_dir(void)
{
    temp_dir_drop(&dir);
}

TestSuite(writer, .init = make_dir, .fini = drop_dir);

/* Parses text as `from`, writes it as `to` and gives the file's bytes. */
static psd_status_t convert(const char *text, const char *from, const char *to, char *ret_text,
                            size_t size, psd_error_t *err)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;
    ps_parser_t parser = sample_text_parser(from);
    char path[SAMPLE_PATH];
    psd_status_t rc = PSD_OK;

    cr_assert_eq(sample_text_parse(&parser, text, strlen(text), samples, NULL), 0);
    (void)snprintf(path, sizeof path, "%s/out", dir.path);
    rc = psd_writer_open(path, to, &writer, err);
    if (rc == PSD_OK) {
        rc = psd_writer_write(writer, samples, err);
    }
    if (rc == PSD_OK) {
        rc = psd_writer_commit(writer, err);
    }
    if (rc == PSD_OK) {
        ret_text[sample_file_get(path, ret_text, size - 1)] = '\0';
    }
    return rc;
}

Test(writer, formats_become_each_other)
{
    static const struct {
        const char *from, *text, *to, *expected;
    } cases[] = {
        {"libsvm", "1 qid:4 1:2 5:0.1\n-0.5\n", "libsvm", "1 qid:4 1:2 5:0.1\n-0.5\n"},
        {"libsvm", "1 1:2 5:0.1\n", "ps", "1; 0 1:2 5:0.1;\n"},
        {"csv", "\"\"\n1\n", "csv", "\"\"\n1\n"},
        {"csv", "1,2,3\n,4,5\n", "csv", "1,2,3\n,4,5\n"},
        {"csv", "1,2,.5\n", "libsvm", "1 0:2 1:0.5\n"},
        {"csv", "1,2,.5\n", "ps", "1; 0 2.0 0.5;\n"},
        {"csv", "1,2,3\n", "ps", "1; 0 2.0 3;\n"},
        {"csv", "1,1e10,3\n", "ps", "1; 0 1e+10 3;\n"},
        {"ps", "1; 3 7 9; -2 1;\n", "ps", "1; 3 7 9; -2 1;\n"},
        {"ps", "; 3 7:1.5;\n", "ps", "; 3 7:1.5;\n"},
        {"ps", "2; 0 7:1.5;\n", "libsvm", "2 7:1.5\n"},
        {"adfea", "1 1 1 5:1 6:2\n", "ps", "1; 1 5; 2 6;\n"},
        {"vw", "1 | 7:2\n", "ps", "1; 0 7:2; 11650396 116060:1;\n"},
        {"libsvm", "1 5:0.5 9:1\n", "vw", "1 | 5:0.5 9 \n"},
        {"ps", "1;7 12:2;8 3:1;\n", "vw", "1 |7 5:2 |8 18446744073709551611 \n"},
        {"vw", "2 0.5 4 'it|7 5:3\n", "vw", "2 0.5 4 'it|7 5:3 |11650396 18446744073698017280 \n"},
        {"vw", "'it|7\n", "vw", "'it|7 |11650396 18446744073698017280 \n"}};
    char text[256];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        psd_error_t *err = psd_error_new();

        cr_expect_eq(convert(cases[i].text, cases[i].from, cases[i].to, text, sizeof text, err),
                     PSD_OK, "%s", psd_error_text(err));
        cr_expect_str_eq(text, cases[i].expected, "%s", text);
        psd_error_destroy(&err);
    }
}

Test(writer, what_a_format_cannot_hold_is_said)
{
    static const struct {
        const char *from, *text, *to, *why;
    } cases[] = {
        {"ps", "1; 1 2:3; 2 3:4;\n", "libsvm",
         "sample 1: a sample of 2 groups (id 1); libsvm has no groups: they "
         "can "
         "be merged"},
        {"ps", "1; 7 2:3;\n", "libsvm",
         "sample 1: a sample of 1 group (id 7); libsvm has no groups: they can "
         "be merged"},
        {"vw", "1 2 |\n", "ps", "sample 1: a sample with a weight, which ps cannot hold"},
        {"vw", "1 1 3 |\n", "ps",
         "sample 1: a sample with an initial prediction, which ps cannot hold"},
        {"vw", "1 'a |\n", "ps", "sample 1: a sample with a tag, which ps cannot hold"},
        {"libsvm", "1 qid:3 1:1\n", "ps", "sample 1: a sample with a query, which ps cannot hold"},
        {"libsvm", "1 1:1\n1\n", "ps", "sample 2: a sample without entries; ps lines have some"},
        {"vw", "1 | a\n| a\n", "ps",
         "sample 2: a sample without a label after samples with; in ps files all have one or none "
         "has"},
        {"libsvm", "1 0:1\n1 0:1 1:2\n", "csv",
         "sample 2: a sample of 2 values after samples of 1; all csv lines have the same number of "
         "columns"},
        {"ps", "; 0 2:3;\n", "libsvm",
         "sample 1: a sample without a label; libsvm lines begin with one"},
        {"ps", "1; 0 3:3 2:1;\n", "libsvm",
         "sample 1: key 2 after 3; keys of libsvm lines must ascend"},
        {"libsvm", "1 0:1\n1 2:3\n", "csv",
         "sample 2: key 2 of a sample that is not dense; csv has a column for "
         "each key from 0"},
        {"libsvm", "1 0:1\n", "adfea", "format adfea is only read"},
        {"libsvm", "1 0:1\n", "x",
         "unknown format \"x\"; allowed: auto libsvm ps vw adfea terafea criteo csv"}};
    char text[256];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        psd_error_t *err = psd_error_new();

        cr_expect_eq(convert(cases[i].text, cases[i].from, cases[i].to, text, sizeof text, err),
                     PSD_INVALID);
        cr_expect_not_null(strstr(psd_error_text(err), cases[i].why), "%s", psd_error_text(err));
        psd_error_destroy(&err);
    }
}

/* What was refused leaves nothing, and the next one follows. */
Test(writer, a_refused_sample_leaves_the_file_as_it_was)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;
    ps_parser_t parser = sample_text_parser("ps");
    static const char bad[] = "1; 0 1:1 5:2 4:1;\n";
    static const char good[] = "-1; 0 6:1;\n";
    char path[SAMPLE_PATH];
    char text[64] = "";

    (void)snprintf(path, sizeof path, "%s/out", dir.path);
    cr_assert_eq(psd_writer_open(path, "libsvm", &writer, NULL), PSD_OK);
    cr_assert_eq(sample_text_parse(&parser, bad, strlen(bad), samples, NULL), 0);
    cr_expect_eq(psd_writer_write(writer, samples, NULL), PSD_INVALID);
    cr_assert_eq(sample_text_parse(&parser, good, strlen(good), samples, NULL), 0);
    cr_expect_eq(psd_writer_write(writer, samples, NULL), PSD_OK);
    cr_assert_eq(psd_writer_commit(writer, NULL), PSD_OK);
    (void)sample_file_get(path, text, sizeof text);
    cr_expect_str_eq(text, "-1 6:1\n");
}

Test(writer, lossy_leaves_out_what_has_no_place)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;
    ps_parser_t parser = sample_text_parser("vw");
    static const char line[] = "1 2 3 'tag |7 1:2\n";
    char path[SAMPLE_PATH];
    char text[64] = "";

    parser.constant = false;
    (void)snprintf(path, sizeof path, "%s/out", dir.path);
    cr_assert_eq(psd_writer_open(path, "libsvm", &writer, NULL), PSD_OK);
    cr_expect_eq(strncmp(psd_writer_beside(writer), path, strlen(path)), 0);
    psd_writer_set_lossy(writer, true);
    cr_assert_eq(sample_text_parse(&parser, line, strlen(line), samples, NULL), 0);
    cr_assert_eq(psd_writer_write(writer, samples, NULL), PSD_OK);
    cr_assert_eq(psd_writer_commit(writer, NULL), PSD_OK);
    cr_expect_str_eq(psd_writer_beside(writer), "");
    (void)sample_file_get(path, text, sizeof text);
    cr_expect_str_eq(text, "1 8:2\n");
}

Test(writer, floats_come_back_whatever_they_are)
{
    static const char line[] = "0.1 1:1.17549435e-38 2:3.40282347e+38 3:0.333333343 4:16777217 "
                               "5:1e-45 6:123456.789\n";
    char once[256];
    char twice[256];

    cr_assert_eq(convert(line, "libsvm", "libsvm", once, sizeof once, NULL), PSD_OK);
    cr_assert_eq(convert(once, "libsvm", "libsvm", twice, sizeof twice, NULL), PSD_OK);
    cr_expect_str_eq(once, twice);
    cr_expect_str_eq(once,
                     "0.1 1:1.1754944e-38 2:3.4028235e+38 3:0.33333334 "
                     "4:16777216 5:1.4013e-45 6:123456.79\n",
                     "%s", once);
}
