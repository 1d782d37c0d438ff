/* SPDX-License-Identifier: Apache-2.0 */
/* data/formats/format_libsvm.c: what lines become, and the one error of a bad one. */
#include "sample_case.h"

Test(format_libsvm, a_line_is_a_label_and_entries)
{
    ps_parser_t parser = sample_text_parser("libsvm");

    sample_case_expect(&parser,
                       "1 1:2 3:-.5\n"
                       "-1.5\t7:1e3 \r\n"
                       "  +3 18446744073709551615:1\n"
                       "0\n",
                       "1 {0 1:2 3:-0.5}\n"
                       "-1.5 {0 7:1000}\n"
                       "3 {0 18446744073709551615:1}\n"
                       "0 {0}\n");
}

Test(format_libsvm, comments_queries_and_empty_lines)
{
    ps_parser_t parser = sample_text_parser("libsvm");

    sample_case_expect(&parser,
                       "# a title\n"
                       "\n"
                       " \t\r\n"
                       "1 qid:12 1:2 # 3:4\n"
                       "2 qid:5#\n"
                       "2 5:6#x\n",
                       "1?12 {0 1:2}\n"
                       "2?5 {0}\n"
                       "2 {0 5:6}\n");
}

Test(format_libsvm, equal_keys_may_follow_each_other)
{
    ps_parser_t parser = sample_text_parser("libsvm");

    sample_case_expect(&parser, "1 2:1 2:3\n", "1 {0 2:1 2:3}\n");
    sample_case_refused(&parser, "1 3:1 2:1\n", "key 2 after 3; keys of a line must ascend");
}

Test(format_libsvm, bad_lines_say_what_is_wrong)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {{"x 1:2\n", "label \"x\" is not a finite number"},
                 {"nan 1:2\n", "label \"nan\" is not a finite number"},
                 {"1:2 3:4\n", "label \"1:2\" is not a finite number"},
                 {"1 qid:x 1:2\n", "\"qid:x\" is not qid: and a whole number"},
                 {"1 3\n", "\"3\" is not KEY:VALUE of a whole number below 2^64 and a "
                           "finite number"},
                 {"1 1:\n", "\"1:\" is not KEY:VALUE of a whole number below 2^64 and a "
                            "finite number"},
                 {"1 -1:2\n", "\"-1:2\" is not KEY:VALUE of a whole number below 2^64 "
                              "and a finite number"},
                 {"1 1:2x\n", "\"1:2x\" is not KEY:VALUE of a whole number below 2^64 "
                              "and a finite number"},
                 {"1 1:1e39\n", "\"1:1e39\" is not KEY:VALUE of a whole number below "
                                "2^64 and a finite number"},
                 {"1 18446744073709551616:1\n",
                  "\"18446744073709551616:1\" is not KEY:VALUE of a whole number below "
                  "2^64 and a finite number"},
                 {"1 1:111111111111111111111111111111x\n",
                  "\"1:1111111111111111111111...\" is not KEY:VALUE of a whole number "
                  "below 2^64 and a finite number"}};
    ps_parser_t parser = sample_text_parser("libsvm");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample_case_refused(&parser, cases[i].line, cases[i].why);
    }
}
