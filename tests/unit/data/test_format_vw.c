/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/formats/format_vw.c: lines of Vowpal Wabbit's text.
 *
 * Indices of "price", "sqft", "age", "2006" and the constant are those that the
 * program's own audit shows for the first example of its tutorial. The others
 * follow from its rules: murmur of a name from its namespace's hash on.
 */
#include "sample_case.h"

#include <stdio.h>

#include "data/text/murmur.h"

#define MASK ((1U << 18) - 1)

static uint32_t murmur(const char *name, uint32_t seed)
{
    return ps_murmur_32(name, strlen(name), seed);
}

Test(format_vw, the_tutorials_example_has_the_programs_indices)
{
    ps_parser_t parser = sample_text_parser("vw");

    sample_case_expect(&parser, "0 | price:.23 sqft:.25 age:.05 2006\n",
                       "0 {0 229902:0.23 162853:0.25 165201:0.05 2006:1}"
                       " {11650396 116060:1}\n");
}

/* What the program printed with --audit, as its own tests have recorded it
 * (audit, chain hash of text, cached interactions, a regressor's audit). */
Test(format_vw, indices_are_those_of_the_programs_audit)
{
    static const struct {
        const char *line;
        size_t n;
        uint64_t keys[8];
    } cases[] = {
        {"1 | feature\n", 1, {118880}},
        {"2 |namespace feature\n", 1, {242309}},
        {"3 | :1\n", 1, {0}},
        {"4 |other_namespace :1\n", 1, {207177}},
        {"+1 | happiness:1\n", 1, {143395}},
        {"+1 | happiness:true\n", 1, {42986}},
        {"+1 | happiness:true sadness:false\n", 2, {42986, 187175}},
        {"+1 |emotion happiness:1\n", 1, {196388}},
        {"+1 |emotion happiness:true\n", 1, {106841}},
        {"1 |s p^the_man w^the w^man |t p^un_homme w^un w^homme\n",
         6,
         {3563, 145229, 31316, 68438, 149058, 25913}},
        {"2 |t p^le_homme w^le\n", 2, {73877, 112588}},
        {"1 |features 13:.1 24:2 140 394\n", 4, {13700, 13711, 13827, 14081}},
    };
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    ps_parser_t parser = sample_text_parser("vw");

    parser.constant = false;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *line = cases[i].line;

        cr_assert_eq(sample_text_parse(&parser, line, strlen(line), samples, NULL), 0);
        cr_assert_eq(samples->n_entries, cases[i].n, "%s", line);
        for (size_t e = 0; e < cases[i].n; e++) {
            cr_expect_eq(samples->keys[e], cases[i].keys[e], "%s: entry %zu is %" PRIu64, line, e,
                         samples->keys[e]);
        }
    }
}

Test(format_vw, label_weight_initial_and_tag)
{
    static const struct {
        const char *line;
        const char *sample;
    } cases[] = {{"1 |\n", "1 {0}\n"},
                 {"1 2 |\n", "1*2 {0}\n"},
                 {"1 2 .5 |\n", "1*2+0.5 {0}\n"},
                 {"1 2 'third_house |\n", "1*2'third_house {0}\n"},
                 {"0 1 0.5 'a|\n", "0+0.5'a {0}\n"},
                 {"1 tag|\n", "1'tag {0}\n"},
                 {"1|\n", "none'1 {0}\n"},
                 {"'x |\n", "none'x {0}\n"},
                 {"|\n", "none {0}\n"},
                 {"-1e2\n", "none'-1e2\n"},
                 {"1 \n", "1\n"},
                 {"anything\t1 |\n", "1 {0}\n"},
                 {"\xef\xbb\xbf"
                  "1 |\r\n",
                  "1 {0}\n"}};
    ps_parser_t parser = sample_text_parser("vw");

    parser.constant = false;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample_case_expect(&parser, cases[i].line, cases[i].sample);
    }
    sample_case_expect(&parser, "\n\r\n", "");
}

Test(format_vw, names_hash_from_their_namespace_on)
{
    ps_parser_t parser = sample_text_parser("vw");
    uint32_t space = murmur("MetricFeatures", 0);
    char expected[256];

    parser.constant = false;
    (void)snprintf(expected, sizeof expected, "1 {%u %u:4.5 %u:3 %u:-6} {0 %u:1}\n", space,
                   murmur("height", space) & MASK, (space + 12) & MASK, murmur("a", space) & MASK,
                   murmur("b", 0) & MASK);
    sample_case_expect(&parser, "1 |MetricFeatures:3 height:1.5 12 a:-2e0 | b\n", expected);
}

Test(format_vw, numbers_are_their_own_index_unless_all_is_hashed)
{
    ps_parser_t parser = sample_text_parser("vw");
    char expected[128];

    parser.constant = false;
    sample_case_expect(
        &parser, "|  7 262145:2 -3\n",
        (snprintf(expected, sizeof expected, "none {0 7:1 1:2 %u:1}\n", murmur("-3", 0) & MASK),
         expected));
    parser.hash_all = true;
    (void)snprintf(expected, sizeof expected, "none {0 %u:1}\n", murmur("7", 0) & MASK);
    sample_case_expect(&parser, "| 7\n", expected);
}

Test(format_vw, a_number_in_a_namespace_of_a_number)
{
    ps_parser_t parser = sample_text_parser("vw");

    parser.constant = false;
    sample_case_expect(&parser, "|5 7 :3 :4\n", "none {5 12:1 5:3 6:4}\n");
}

Test(format_vw, a_word_as_value_chains_hashes)
{
    ps_parser_t parser = sample_text_parser("vw");
    char expected[128];

    parser.constant = false;
    (void)snprintf(expected, sizeof expected, "none {%u %u:1 %u:1}\n", murmur("s", 0),
                   murmur("red", murmur("color", murmur("s", 0))) & MASK,
                   murmur("x", murmur("s", 0)) & MASK);
    /* A factor is for numbers. */
    sample_case_expect(&parser, "|s:2 color:red :x\n", expected);
}

Test(format_vw, zeros_are_left_out_and_nan_is_one)
{
    ps_parser_t parser = sample_text_parser("vw");

    parser.constant = false;
    sample_case_expect(&parser, "| 1:0 2:nan 3:-0 4:.0 5\n", "none {0 5:1}\n");
    sample_case_expect(&parser, "|7:NaN 1:2\n|7:0 1\n", "none {7 8:2}\nnone {7}\n");
}

Test(format_vw, fewer_bits_cut_indices)
{
    ps_parser_t parser = sample_text_parser("vw");

    parser.bits = 4;
    sample_case_expect(&parser, "| 2006\n", "none {0 6:1} {11650396 12:1}\n");
}

Test(format_vw, bad_lines_say_what_is_wrong)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        {"x |\n", "\"x\" is not a label, weight or initial prediction (up to three numbers)"},
        {"1 2 3 4 |\n", "\"4\" is not a label, weight or initial prediction (up to three numbers)"},
        {"1 |:3 a\n", "\":3\" is not a namespace: it has no name"},
        {"1 |a:x b\n", "\"a:x\" is not a namespace with a finite factor"},
        {"1 | a:1x\n", "\"a:1x\" is not NAME, NAME:VALUE, NAME:WORD or :VALUE, "
                       "of a finite value"},
        {"1 | a:\n", "\"a:\" is not NAME, NAME:VALUE, NAME:WORD or :VALUE, of "
                     "a finite value"},
        {"1 |a:1e30 b:1e30\n", "\"b:1e30\" is not a feature whose value, times its namespace's "
                               "factor, is finite"}};
    ps_parser_t parser = sample_text_parser("vw");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sample_case_refused(&parser, cases[i].line, cases[i].why);
    }
}
