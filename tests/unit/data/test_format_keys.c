/* SPDX-License-Identifier: Apache-2.0 */
/* data/formats/format_adfea.c, format_terafea.c, format_criteo.c: samples of keys. */
#include "sample_case.h"

#include <stdio.h>

#include "data/text/murmur.h"

Test(format_keys, adfea_has_clicks_and_keys_of_groups)
{
    ps_parser_t parser = sample_text_parser("adfea");

    sample_case_expect(&parser, "17 1 0 5:1 6:1 7:2\n\n18 1 3 18446744073709551615:9\n",
                       "-1 {1 5:1 6:1} {2 7:1}\n"
                       "1 {9 18446744073709551615:1}\n");
    sample_case_refused(&parser, "1 1 0 5:1 6:2 7:1\n", "keys of group 1 are not adjacent");
    sample_case_refused(&parser, "1 1 0 5\n", "\"5\" is not KEY:GROUP of two whole numbers");
    sample_case_refused(&parser, "1 1\n",
                        "\"\" is not a whole number (a line "
                        "begins with ID 1 CLICKS)");
}

Test(format_keys, terafea_gathers_the_keys_of_a_group)
{
    ps_parser_t parser = sample_text_parser("terafea");

    /* 2^54 is 18014398509481984: the first key of group 1. */
    sample_case_expect(&parser,
                       "1 7 | 18014398509481985 3 18014398509481984 2 18446744073709551615\n"
                       "0 8 |\n",
                       "1 {0 3:1 2:1} {1 18014398509481985:1 18014398509481984:1}"
                       " {1023 18446744073709551615:1}\n"
                       "-1\n");
    sample_case_refused(&parser, "1 7 3\n",
                        "\"7\" is not the number of the line, and a bar after it");
    sample_case_refused(&parser, "1 7 | x\n", "\"x\" is not a key, a whole number below 2^64");
}

/* A line of 40 columns: what is given, the others empty. */
static const char *criteo_line(const char *label, int column, const char *text)
{
    static char line[256];
    size_t size = 0;

    size = (size_t)snprintf(line, sizeof line, "%s", label);
    for (int i = 1; i < 40; i++) {
        size += (size_t)snprintf(line + size, sizeof line - size, "\t%s", i == column ? text : "");
    }
    (void)snprintf(line + size, sizeof line - size, "\n");
    return line;
}

Test(format_keys, criteo_counts_and_words_have_keys_of_their_columns)
{
    ps_parser_t parser = sample_text_parser("criteo");
    uint64_t halves[2];
    char expected[128];

    sample_case_expect(&parser, criteo_line("1", 1, "5"), "1 {1 5:1}\n");
    (void)snprintf(expected, sizeof expected, "-1 {3 %" PRIu64 ":1}\n", UINT64_MAX / 13 * 2 + 7);
    sample_case_expect(&parser, criteo_line("0", 3, "7"), expected);
    ps_murmur_128("68fd1e64", 8, 512927377, halves);
    (void)snprintf(expected, sizeof expected, "-1 {14 %" PRIu64 ":1}\n", halves[0] ^ halves[1]);
    sample_case_expect(&parser, criteo_line("0", 14, "68fd1e64"), expected);
    (void)snprintf(expected, sizeof expected, "-1 {39 %" PRIu64 ":1}\n", halves[0] ^ halves[1]);
    sample_case_expect(&parser, criteo_line("0", 39, "68fd1e64"), expected);
    sample_case_expect(&parser, criteo_line("0", 20, "abcd"), "-1\n");
    /* The last columns may be missing. */
    sample_case_expect(&parser, "1\t5\n", "1 {1 5:1}\n");
}

Test(format_keys, criteo_refuses_what_is_not_its_table)
{
    ps_parser_t parser = sample_text_parser("criteo");

    sample_case_refused(&parser, criteo_line("1", 2, "x"), "\"x\" is not a count, a whole number");
    sample_case_refused(&parser, "1 2 3\n", "\"1\" is not a label, a finite number");
    sample_case_refused(&parser, "1\n", "it has no tab after its label");
    sample_case_refused(&parser, criteo_line("1", 39, "a\tb"), "it has more than 40 columns");
}
