/* SPDX-License-Identifier: Apache-2.0 */
/* data/formats/format_csv.c: numbers between commas. */
#include "sample_case.h"

Test(format_csv, the_first_column_is_the_label)
{
    ps_parser_t parser = sample_text_parser("csv");

    sample_case_expect(&parser, "1,2,.5\n, 3 ,\r\n0,,-1e2\n",
                       "1 {0 0:2 1:0.5}\nnone {0 0:3 1:0}\n"
                       "0 {0 0:0 1:-100}\n");
}

Test(format_csv, a_first_line_of_names_is_passed_over)
{
    ps_parser_t parser = sample_text_parser("csv");

    sample_case_expect(&parser, "y,a b,\"c\"\n1,2,3\n", "1 {0 0:2 1:3}\n");
    /* As pandas writes an index. */
    sample_case_expect(&parser, ",y,a\n1,2,3\n", "1 {0 0:2 1:3}\n");
    sample_case_refused(&parser, "1,2\ny,a\n", "\"y\" is not a label, a finite number");
}

Test(format_csv, lines_have_as_many_columns_as_the_first)
{
    ps_parser_t parser = sample_text_parser("csv");

    sample_case_refused(&parser, "1,2,3\n1,2\n", "it has 2 columns; the first has 3");
    sample_case_refused(&parser, "1,2,x\n", "\"x\" in column 3 is not a finite number");
    sample_case_refused(&parser, "1,nan\n", "\"nan\" in column 2 is not a finite number");
}
