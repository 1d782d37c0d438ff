/* SPDX-License-Identifier: Apache-2.0 */
/* data/formats/format_ps.c: four kinds of labels, three of entries, several groups. */
#include "sample_case.h"

Test(format_ps, three_kinds_of_entries)
{
    static const struct {
        const char *text;
        psd_entries_t entries;
        const char *samples;
    } cases[] = {{"1; 0 1:.5 7:2; -3 4:1;\n-1;9 1:1\n", PSD_ENTRIES_SPARSE,
                  "1 {0 1:0.5 7:2} {-3 4:1}\n-1 {9 1:1}\n"},
                 {"1; 0 1 7; 3 18446744073709551615;\n-1; 9 1\n", PSD_ENTRIES_BINARY,
                  "1 {0 1:1 7:1} {3 18446744073709551615:1}\n-1 {9 1:1}\n"},
                 {"1; 0 1 7.5; 3 4;\n-1; 9 -1\n", PSD_ENTRIES_DENSE,
                  "1 {0 0:1 1:7.5} {3 0:4}\n-1 {9 0:-1}\n"}};

    for (size_t i = 0; i < 3; i++) {
        ps_parser_t parser = sample_text_parser("ps");

        sample_case_expect(&parser, cases[i].text, cases[i].samples);
        cr_expect_eq(parser.entries, cases[i].entries);
    }
}

Test(format_ps, four_kinds_of_labels)
{
    static const struct {
        const char *text;
        psd_labels_t labels;
        const char *samples;
    } cases[] = {{"; 0 1\n;0 2;\n", PSD_LABELS_NONE, "none {0 1:1}\nnone {0 2:1}\n"},
                 {"+1; 0 1\n-1;0 2;\n", PSD_LABELS_BINARY, "1 {0 1:1}\n-1 {0 2:1}\n"},
                 {"0; 0 1\n12 ;0 2;\n", PSD_LABELS_CLASS, "0 {0 1:1}\n12 {0 2:1}\n"},
                 {"0; 0 1\n-.25;0 2;\n", PSD_LABELS_REAL, "0 {0 1:1}\n-0.25 {0 2:1}\n"}};

    for (size_t i = 0; i < 4; i++) {
        ps_parser_t parser = sample_text_parser("ps");

        sample_case_expect(&parser, cases[i].text, cases[i].samples);
        cr_expect_eq(parser.labels, cases[i].labels);
    }
}

Test(format_ps, who_says_what_entries_are_is_believed)
{
    ps_parser_t parser = sample_text_parser("ps");

    parser.entries = PSD_ENTRIES_DENSE;
    parser.entries_set = true;
    sample_case_expect(&parser, "1; 0 7 8\n", "1 {0 0:7 1:8}\n");
}

Test(format_ps, bad_lines_say_what_is_wrong)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"1;\n", "it has no group"},
        {"1\n", "it has no group"},
        {"1; 0 1:1;; 2 1:1\n", "id \"\" of a group is not a whole number from -2^31 to 2^31 - 1"},
        {"1; 2147483648 1:1\n", "id \"2147483648\" of a group is not a whole "
                                "number from -2^31 to 2^31 - 1"},
        {"1; 5;\n", "group 5 has no entry"},
        {"1; 5 1:1 2\n", "\"2\" in group 5 is not KEY:VALUE"},
        {"1; 5 1 2.5 x\n", "\"x\" in group 5 is not VALUE, a finite number"},
        {"1 2; 5 1\n", "label \"1 2\" is not a finite number"},
        {"1; 5 1\n; 5 1\n", "it has no label; the first lines have"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ps_parser_t parser = sample_text_parser("ps");

        sample_case_refused(&parser, cases[i].text, cases[i].why);
    }
}

/* What the first lines said holds for those behind them. */
Test(format_ps, later_lines_that_do_not_fit_are_bad)
{
    static const struct {
        const char *first;
        const char *later;
        const char *why;
    } cases[] = {
        {"1; 0 1\n", "2; 0 1\n", "label \"2\" is not 1 or -1, as the first lines' are"},
        {"2; 0 1\n", "2.5; 0 1\n", "label \"2.5\" is not a whole number, as the first lines' are"},
        {"; 0 1\n", "1; 0 1\n", "it has a label; the first lines have none"},
        {"1; 0 1\n", "1; 0 1:2\n", "\"1:2\" in group 0 is not KEY, a whole number below 2^64"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        PSD_AUTO(psd_samples_destroy)
        psd_samples_t *samples = psd_samples_new();
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        ps_parser_t parser = sample_text_parser("ps");
        ps_line_t line = {.text = cases[i].later, .size = strlen(cases[i].later) - 1};

        cr_assert_eq(
            sample_text_parse(&parser, cases[i].first, strlen(cases[i].first), samples, err), 0);
        cr_expect_eq(parser.format->parse(&parser, line, samples, err), PSD_INVALID);
        cr_expect_str_eq(psd_error_text(err), cases[i].why);
    }
}
