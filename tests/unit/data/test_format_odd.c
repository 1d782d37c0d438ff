/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of every text format that look odd and are legal, for what reads and
 * writes these formats elsewhere has them, and lines that are not: each a file
 * of its own, read as any file is.
 */
#include "sample_file.h"
#include "sample_read.h"

#define BOM "\xef\xbb\xbf"
#define TABS_5 "\t\t\t\t\t"
#define TABS_37 TABS_5 TABS_5 TABS_5 TABS_5 TABS_5 TABS_5 TABS_5 "\t\t"

typedef struct odd {
    const char *text;
    const char *samples;
    bool known; /* the format is found, too */
} odd_t;

typedef struct bad {
    const char *text;
    const char *why; /* stands in the error */
} bad_t;

static temp_dir_t dir;
static char path[SAMPLE_PATH];
static psd_reader_options_t *options;

static void set_up(void)
{
    char words[SAMPLE_PATH];

    cr_assert(temp_dir_make(&dir));
    options = psd_reader_options_new();
    cr_assert_not_null(options);
    psd_reader_options_set_constant(options, false);
    sample_file_write(&dir, "words", "a\nb\nc\n4\n", 8, words);
    cr_assert_eq(psd_reader_options_set_vocabulary(options, words, NULL), PSD_OK);
}

static void tear_down(void)
{
    psd_reader_options_destroy(&options);
    temp_dir_drop(&dir);
}

TestSuite(format_odd, .init = set_up, .fini = tear_down);

/* Names the format, or lets it be found. */
static void set_format(const char *format)
{
    cr_assert_eq(psd_reader_options_set_format(options, format, NULL), PSD_OK);
}

static void check_known(const char *format)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const char *from = path;

    set_format("auto");
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_expect_str_eq(psd_reader_format(reader), format);
}

static size_t check_all(const char *format, const odd_t *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s-%zu", dir.path, format, i);
        sample_file_put(path, cases[i].text, strlen(cases[i].text));
        set_format(format);
        sample_read_expect(path, options, cases[i].samples, 0);
        if (cases[i].known) {
            check_known(format);
        }
    }
    return n;
}

/* A bad line is refused with its place. */
static void refuse_all(const char *format, const bad_t *cases, size_t n)
{
    set_format(format);
    psd_reader_options_set_strict(options, true);
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(path, sizeof path, "%s/%s-%zu", dir.path, format, i);
        sample_file_put(path, cases[i].text, strlen(cases[i].text));
        sample_read_refused(path, options, PSD_INVALID, cases[i].why);
        sample_read_refused(path, options, PSD_INVALID, path);
    }
}

#define N(cases) (sizeof(cases) / sizeof(cases)[0])

/* svm-train, liblinear's train, load_svmlight_file, dmlc's parser. */
static const odd_t LIBSVM[] = {
    {"+1 1:1\n", "1 {0 1:1}\n", true},
    {"1.0 1:1\n", "1 {0 1:1}\n", true},
    {"1. 1:1", "1 {0 1:1}\n", true},
    {".5 1:1\n", "0.5 {0 1:1}\n", true},
    {"+.5 1:1\n", "0.5 {0 1:1}\n", true},
    {"-0 1:1\n", "-0 {0 1:1}\n", true},
    {"1e0 1:1\n", "1 {0 1:1}\n", true},
    {"1E+0 1:1\n", "1 {0 1:1}\n", true},
    {"-1.0e+00 1:1\n", "-1 {0 1:1}\n", true},
    {"001 1:1\n", "1 {0 1:1}\n", true},
    {"12345678901234567890 1:1\n", "1.23457e+19 {0 1:1}\n", true},
    {"1 001:1\n", "1 {0 1:1}\n", true},
    {"1 +3:1\n", "1 {0 3:1}\n", true},
    {"1 0:1\n", "1 {0 0:1}\n", true},
    {"1 18446744073709551615:1\n", "1 {0 18446744073709551615:1}\n", true},
    {"1 2:1 2:3\n", "1 {0 2:1 2:3}\n", true},
    {"1 1:1e-3\n", "1 {0 1:0.001}\n", true},
    {"1 1:1E+5\n", "1 {0 1:100000}\n", true},
    {"1 1:1.5E-05\n", "1 {0 1:1.5e-05}\n", true},
    {"1 1:1e-50\n", "1 {0 1:0}\n", true},
    {"1 1:3.4028234e38\n", "1 {0 1:3.40282e+38}\n", true},
    {"1 1:+2\n", "1 {0 1:2}\n", true},
    {"1 1:-.5\n", "1 {0 1:-0.5}\n", true},
    {"1 1:5.\n", "1 {0 1:5}\n", true},
    {"1 1:0\n", "1 {0 1:0}\n", true},
    {"1 1:-0\n", "1 {0 1:-0}\n", true},
    {"1 1:0.1000000000000000055511151231257827\n", "1 {0 1:0.1}\n", true},
    {"1 1:00000000000000000000001\n", "1 {0 1:1}\n", true},
    {"1\t1:1\t2:2\n", "1 {0 1:1 2:2}\n", true},
    {"1  1:1   2:2\n", "1 {0 1:1 2:2}\n", true},
    {"  1 1:1\n", "1 {0 1:1}\n", true},
    {"\t1 1:1\n", "1 {0 1:1}\n", true},
    {"1 1:1 \n", "1 {0 1:1}\n", true},
    {"1 1:1\t\n", "1 {0 1:1}\n", true},
    {"1 1:1  \t \r\n", "1 {0 1:1}\n", true},
    {"1 1:1\r\n-1 2:1\r\n", "1 {0 1:1}\n-1 {0 2:1}\n", true},
    {"1 1:1\r\n-1 2:1", "1 {0 1:1}\n-1 {0 2:1}\n", true},
    {"1\n-1\n0\n", "1 {0}\n-1 {0}\n0 {0}\n", false},
    {"+1\r\n", "1 {0}\n", false},
    {"1.0 \t\n", "1 {0}\n", false},
    {"-1", "-1 {0}\n", false},
    {"1 # all zero\n", "1 {0}\n", false},
    {"1#x\n2 1:1\n", "1 {0}\n2 {0 1:1}\n", true},
    {"1 1:1#x\n", "1 {0 1:1}\n", true},
    {"1 1:1 # 2:2\n", "1 {0 1:1}\n", true},
    {"# only words\n1 1:1\n", "1 {0 1:1}\n", true},
    {"   # indented\n1 1:1\n", "1 {0 1:1}\n", true},
    {"\n\n1 1:1\n\n", "1 {0 1:1}\n", true},
    {" \t\r\n1 1:1\n", "1 {0 1:1}\n", true},
    {"1 qid:3 1:1\n", "1?3 {0 1:1}\n", true},
    {"1 qid:007 1:1\n", "1?7 {0 1:1}\n", true},
    {"1\tqid:3\t 1:1\n", "1?3 {0 1:1}\n", true},
    {"1 qid:0 1:1\n", "1 {0 1:1}\n", true},
    {"1 qid:3\n1 qid:3 5:1\n", "1?3 {0}\n1?3 {0 5:1}\n", true},
    {BOM "1 1:1\n", "1 {0 1:1}\n", true},
};
static const bad_t BAD_LIBSVM[] = {
    {"nan 1:1\n", "label \"nan\" is not a finite number"},
    {"-inf 1:1\n", "label \"-inf\" is not a finite number"},
    {"Infinity\n", "label \"Infinity\" is not a finite number"},
    {"1 1:NaN\n", "\"1:NaN\" is not KEY:VALUE"},
    {"1 1:inf\n", "\"1:inf\" is not KEY:VALUE"},
    {"1 1:1e39\n", "\"1:1e39\" is not KEY:VALUE"},
    {"1 1:0x10\n", "\"1:0x10\" is not KEY:VALUE"},
    {"1 1:1e\n", "\"1:1e\" is not KEY:VALUE"},
    {"1 1: 2\n", "\"1:\" is not KEY:VALUE"},
    {"1 :2\n", "\":2\" is not KEY:VALUE"},
    {"1 -1:1\n", "\"-1:1\" is not KEY:VALUE"},
    {"1 ++1:1\n", "\"++1:1\" is not KEY:VALUE"},
    {"1 1.0:1\n", "\"1.0:1\" is not KEY:VALUE"},
    {"1 3\n", "\"3\" is not KEY:VALUE"},
    {"1 2:1 1:1\n", "key 1 after 2; keys of a line must ascend"},
    {"1 1:1 qid:2\n", "\"qid:2\" is not KEY:VALUE"},
    {"1 qid:-1 1:1\n", "\"qid:-1\" is not qid: and a whole number"},
    {"1,2 1:1\n", "is not a finite number"},
    {"1:1 2:2\n", "label \"1:1\" is not a finite number"},
    {"+ 1:1\n", "label \"+\" is not a finite number"},
    {"1 18446744073709551616:1\n", "is not KEY:VALUE of a whole number"},
};

/* parameter_server's text. */
static const odd_t PS[] = {
    {"1; 0 1:2\n", "1 {0 1:2}\n", true},
    {"1;0 1:2;\n", "1 {0 1:2}\n", true},
    {"+1; 0 1:2;\n", "1 {0 1:2}\n", true},
    {"1.0; 0 1:2;\n", "1 {0 1:2}\n", true},
    {"1e0; 0 1:2;\n", "1 {0 1:2}\n", true},
    {" 1 ; 0  1:2 ;\n", "1 {0 1:2}\n", true},
    {"1;\t0\t1:2;\r\n", "1 {0 1:2}\n", true},
    {"1; 0 1:2; \t\n", "1 {0 1:2}\n", true},
    {"; 0 1:2;\n", "none {0 1:2}\n", true},
    {" ; 0 1:2", "none {0 1:2}\n", true},
    {"1; -5 1:2;\n", "1 {-5 1:2}\n", true},
    {"1; +007 01:2;\n", "1 {7 1:2}\n", true},
    {"1; 0 1:1e-3 2:1E+5;\n", "1 {0 1:0.001 2:100000}\n", true},
    {"1; 0 1:+.5 2:5.;\n", "1 {0 1:0.5 2:5}\n", true},
    {"1; 0 2:1 1:1 1:3;\n", "1 {0 2:1 1:1 1:3}\n", true},
    {"\n1; 0 1:2;\n \r\n-1; 0 3:2;\n", "1 {0 1:2}\n-1 {0 3:2}\n", true},
    {"1; 0 7 8; 2 9;\n", "1 {0 7:1 8:1} {2 9:1}\n", true},
    {"1; 0 0.5 1;\n", "1 {0 0:0.5 1:1}\n", true},
    {BOM "1; 0 1:2;\n", "1 {0 1:2}\n", true},
};
static const bad_t BAD_PS[] = {
    {"nan; 0 1:2;\n1; 0 1:2;\n", "label \"nan\" is not a finite number"},
    {"1 or 2; 0 1:2;\n", "label \"1 or 2\" is not a finite number"},
    {"1; 0 1:inf;\n", "\"1:inf\" in group 0 is not KEY:VALUE"},
    {"1; 0 -1:1;\n", "\"-1:1\" in group 0 is not KEY:VALUE"},
    {"1; x 1:2;\n", "id \"x\" of a group is not a whole number"},
    {"1; 0;\n", "group 0 has no entry"},
    {"1;\n", "it has no group"},
};

/* Vowpal Wabbit. */
static const odd_t VW[] = {
    {"1 | 5:2\n", "1 {0 5:2}\n", true},
    {"+1 | 5\n", "1 {0 5:1}\n", true},
    {"1.0 | 5\n", "1 {0 5:1}\n", true},
    {"-1E+0 1.0 | 5\n", "-1 {0 5:1}\n", true},
    {"1 2 0.5 | 5\n", "1*2+0.5 {0 5:1}\n", true},
    {"  1   2 | 5\n", "1*2 {0 5:1}\n", true},
    {"| 5\n", "none {0 5:1}\n", true},
    {"1 'tag| 5\n", "1'tag {0 5:1}\n", true},
    {"1 tag| 5\n", "1'tag {0 5:1}\n", true},
    {"1 |  5\t6 \n", "1 {0 5:1 6:1}\n", true},
    {"1 | 5 \r\n", "1 {0 5:1}\n", true},
    {"1 | 5:1e-3 6:1E+5 7:+2 8:.5\n", "1 {0 5:0.001 6:100000 7:2 8:0.5}\n", true},
    {"1 | 5:0 6:-0 7:nan 8\n", "1 {0 8:1}\n", true},
    {"1 | 007\n", "1 {0 7:1}\n", true},
    {"1 | 6 5 5:2\n", "1 {0 6:1 5:1 5:2}\n", true},
    {"1 | 5 | 6\n", "1 {0 5:1} {0 6:1}\n", true},
    {"1 |0:2 5\n", "1 {0 5:2}\n", true},
    {"1 | :2 :3\n", "1 {0 0:2 1:3}\n", true},
    {"1 \n-1 | 5\n", "1\n-1 {0 5:1}\n", true},
    {"1 |\n", "1 {0}\n", true},
    {"\n1 | 5\n\r\n0 | 6", "1 {0 5:1}\n0 {0 6:1}\n", true},
    {BOM "1 | 5\n", "1 {0 5:1}\n", true},
};
static const bad_t BAD_VW[] = {
    {"nan | 5\n", "\"nan\" is not a label, weight or initial prediction"},
    {"1 inf | 5\n", "\"inf\" is not a label, weight or initial prediction"},
    {"1 2 3 4 | 5\n", "\"4\" is not a label, weight or initial prediction"},
    {"1 | 5:1e39\n", "\"5:1e39\" is not NAME, NAME:VALUE"},
    {"1 | 5:inf\n", "\"5:inf\" is not NAME, NAME:VALUE"},
    {"1 | 5:-Infinity\n", "\"5:-Infinity\" is not NAME, NAME:VALUE"},
    {"1 | 5:1e20 |x:1e30 5:1e20\n", "is not a feature whose value, times"},
    {"1 | 5:2x\n", "\"5:2x\" is not NAME, NAME:VALUE, NAME:WORD or :VALUE"},
};

/* pandas.read_csv, R, numpy.loadtxt. */
static const odd_t CSV[] = {
    {"1,2,3", "1 {0 0:2 1:3}\n", true},
    {"1,2,3\r\n", "1 {0 0:2 1:3}\n", true},
    {" 1 , 2\t,\t3 \n", "1 {0 0:2 1:3}\n", true},
    {"1,,3\n", "1 {0 0:0 1:3}\n", true},
    {",2,3\n", "none {0 0:2 1:3}\n", true},
    {"1,2,\n", "1 {0 0:2 1:0}\n", true},
    {",,\n", "none {0 0:0 1:0}\n", true},
    {"+1,1e-3,1E+5\n", "1 {0 0:0.001 1:100000}\n", true},
    {"1.0,.5,5.\n", "1 {0 0:0.5 1:5}\n", true},
    {"-0,-0,007\n", "-0 {0 0:-0 1:7}\n", true},
    {"\"1\",\"2\", \" 3 \" \n", "1 {0 0:2 1:3}\n", true},
    {"\"\",\"\",3\n", "none {0 0:0 1:3}\n", true},
    {"y,a,b\n1,2,3\n", "1 {0 0:2 1:3}\n", true},
    {"\"y\",\"a b\"\r\n1,2\r\n", "1 {0 0:2}\n", true},
    {",y\n1,2\n", "1 {0 0:2}\n", true},
    {"\"\",\"y\"\n1,2\n", "1 {0 0:2}\n", true},
    {"y,0,1\n1,2,3\n", "1 {0 0:2 1:3}\n", true},
    {"y,1,2\n1,2,3\n", "1 {0 0:2 1:3}\n", true},
    {BOM "y,a\n1,2\n", "1 {0 0:2}\n", true},
    {"\n1,2\n \n3,4\n\n", "1 {0 0:2}\n3 {0 0:4}\n", true},
    {"1\n0\n", "1 {0}\n0 {0}\n", false},
};
static const bad_t BAD_CSV[] = {
    {"1,2\n1,nan\n", "\"nan\" in column 2 is not a finite number"},
    {"1,2\n1,-inf\n", "\"-inf\" in column 2 is not a finite number"},
    {"1,2\nNA,3\n", "\"NA\" is not a label, a finite number"},
    {"1,2\n1,0x10\n", "\"0x10\" in column 2 is not a finite number"},
    {"1,2\n1,3 or 4 \n", "\"3 or 4\" in column 2 is not a finite number"},
    {"1,2\n1,\"3\n", "\"\"3\" in column 2 is not a finite number"},
    {"1,2\n1,\"3\"x\n", "\"\"3\"x\" in column 2 is not a finite number"},
    {"1,2\n1,2,3\n", "it has 3 columns; the first has 2"},
    {"y,0,2\n1,2,3\n", "\"y\" is not a label, a finite number"},
    {"y,a\n1;2\n", "\"1\" is not a label, a finite number"},
};

/* The file of Criteo's contest, also as pandas writes it again. */
static const odd_t CRITEO[] = {
    {"1\t5\t" TABS_37 "\n", "1 {1 5:1}\n", true},
    {"1.0\t5.0\t" TABS_37 "\r\n", "1 {1 5:1}\n", true},
    {"0\t005\t" TABS_37 "\n", "-1 {1 5:1}\n", true},
    {"0\t-1\t" TABS_37 "\n", "-1 {1 18446744073709551615:1}\n", true},
    {"+1\t\t" TABS_37, "1\n", true},
    {"1\t5\n", "1 {1 5:1}\n", false},
    {"1\t\r\n", "1\n", false},
    {"\n1\t5\t" TABS_37 "\n \n", "1 {1 5:1}\n", true},
    {"0\t\t" TABS_37 "abcd\n", "-1\n", true},
};
static const bad_t BAD_CRITEO[] = {
    {"nan\t5\t" TABS_37 "\n", "\"nan\" is not a label, a finite number"},
    {"1\t5.5\t" TABS_37 "\n", "\"5.5\" is not a count, a whole number"},
    {"1\tx\t" TABS_37 "\n", "\"x\" is not a count, a whole number"},
    {"1\t5\t" TABS_37 "\tx\n", "it has more than 40 columns"},
    {"1\n", "it has no tab after its label"},
};

/* parameter_server's parsers of the two. */
static const odd_t ADFEA[] = {
    {"7 1 1 5:1\n", "1 {1 5:1}\n", true},
    {"7\t1\t0\t5:1\r\n", "-1 {1 5:1}\n", true},
    {" 7  1 1   5:1 \n", "1 {1 5:1}\n", true},
    {"007 01 +1 05:01\n", "1 {1 5:1}\n", true},
    {"7 1 -1 5:1", "-1 {1 5:1}\n", true},
    {"7 2 3 5:1\n", "1 {1 5:1}\n", false},
    {"7 1 1\n8 1 0 5:1\n", "1\n-1 {1 5:1}\n", true},
    {"\n7 1 1 5:1\n\t\n", "1 {1 5:1}\n", true},
};
static const bad_t BAD_ADFEA[] = {
    {"7 1 nan 5:1\n", "\"nan\" is not a whole number"},
    {"7 1 1 5\n", "\"5\" is not KEY:GROUP of two whole numbers"},
    {"7 1 1 -5:1\n", "\"-5:1\" is not KEY:GROUP of two whole numbers"},
    {"7 1\n", "\"\" is not a whole number (a line begins with ID 1 CLICKS)"},
};
static const odd_t TERAFEA[] = {
    {"1 7 | 18014398509481984\n", "1 {1 18014398509481984:1}\n", true},
    {"1.0 7|18014398509481984\n", "1 {1 18014398509481984:1}\n", true},
    {"+1\t7\t|\t3\r\n", "1 {0 3:1}\n", false},
    {"-1e0 007 |003 \n", "-1 {0 3:1}\n", false},
    {"0 7 |\n", "-1\n", false},
    {" 1 7 | 3 2 3", "1 {0 3:1 2:1 3:1}\n", false},
    {"\n1 7 | 3\n \n", "1 {0 3:1}\n", false},
};
static const bad_t BAD_TERAFEA[] = {
    {"inf 7 | 3\n", "\"inf\" is not a label, a finite number"},
    {"1 | 3\n", "is not the number of the line, and a bar after it"},
    {"1 7 | -3\n", "\"-3\" is not a key, a whole number below 2^64"},
};

/* Blei's lda-c, and gensim, which writes counts as it has them. */
static const odd_t LDA_C[] = {
    {"2 3:1 1:2\r\n", "none {0 3:1 1:2}\n", true},
    {"2  3:1\t1:2 \n", "none {0 3:1 1:2}\n", true},
    {"2 3:1.0 1:2.000\n", "none {0 3:1 1:2}\n", true},
    {"002 03:01 1:2", "none {0 3:1 1:2}\n", true},
    {"0\n2 3:1 1:2\n0 \n", "none {0}\nnone {0 3:1 1:2}\nnone {0}\n", true},
    {"1 3:16777216\n", "none {0 3:1.67772e+07}\n", false},
    {"\n2 3:1 1:2\n\n", "none {0 3:1 1:2}\n", true},
};
static const bad_t BAD_LDA_C[] = {
    {"1 3:nan\n", "\"3:nan\" is not WORD:COUNT of two whole numbers"},
    {"1 3:1.5\n", "\"3:1.5\" is not WORD:COUNT of two whole numbers"},
    {"1 3:1.\n", "\"3:1.\" is not WORD:COUNT of two whole numbers"},
    {"1 3:-1\n", "\"3:-1\" is not WORD:COUNT of two whole numbers"},
    {"2 3:1\n", "it begins with 2, but has 1 words"},
};

static const odd_t TEXT[] = {
    {"a b\n", "none {0 0:1 1:1}\n", false},    {" a\t b \n", "none {0 0:1 1:1}\n", false},
    {"b a\r\n", "none {0 0:1 1:1}\n", false},  {"a\vb\fc", "none {0 0:1 1:1 2:1}\n", false},
    {"a x a\n", "none {0 0:2}\n", false},      {"x\n", "none {0}\n", false},
    {"\n \t\r\na\n", "none {0 0:1}\n", false},
};

/* docword files, the three totals in front. */
static const odd_t UCI[] = {
    {"1\n3\n1\n1 2 5\n", "none {0 1:5}\n", true},
    {"1\r\n3\r\n1\r\n1 2 5\r\n", "none {0 1:5}\n", true},
    {" 1 \n3\t\n1\n 1  2\t5 \n", "none {0 1:5}\n", true},
    {"01\n03\n01\n01 02 05", "none {0 1:5}\n", true},
    {"2\n3\n2\n1 2 5\n\n2 3 1\n", "none {0 1:5}\nnone {0 2:1}\n", true},
    {BOM "1\n3\n1\n1 2 5\n", "none {0 1:5}\n", false},
};
static const bad_t BAD_UCI[] = {
    {"1\n3\n1\n1 2 nan\n", "\"1…\" is not DOCUMENT WORD COUNT"},
    {"1\n3\n1\n1 2 5.0\n", "\"1…\" is not DOCUMENT WORD COUNT"},
    {"1\n3\n1\n1 4 5\n", "document 1, word 4; there are 1 and 3"},
};

Test(format_odd, what_others_write_is_read)
{
    size_t n = 0;

    n += check_all("libsvm", LIBSVM, N(LIBSVM));
    n += check_all("ps", PS, N(PS));
    n += check_all("vw", VW, N(VW));
    n += check_all("csv", CSV, N(CSV));
    n += check_all("criteo", CRITEO, N(CRITEO));
    n += check_all("adfea", ADFEA, N(ADFEA));
    n += check_all("terafea", TERAFEA, N(TERAFEA));
    n += check_all("lda-c", LDA_C, N(LDA_C));
    n += check_all("text", TEXT, N(TEXT));
    n += check_all("uci", UCI, N(UCI));
    cr_expect_geq(n, 120);
}

Test(format_odd, what_is_none_is_refused_by_name)
{
    refuse_all("libsvm", BAD_LIBSVM, N(BAD_LIBSVM));
    refuse_all("ps", BAD_PS, N(BAD_PS));
    refuse_all("vw", BAD_VW, N(BAD_VW));
    refuse_all("csv", BAD_CSV, N(BAD_CSV));
    refuse_all("criteo", BAD_CRITEO, N(BAD_CRITEO));
    refuse_all("adfea", BAD_ADFEA, N(BAD_ADFEA));
    refuse_all("terafea", BAD_TERAFEA, N(BAD_TERAFEA));
    refuse_all("lda-c", BAD_LDA_C, N(BAD_LDA_C));
    refuse_all("uci", BAD_UCI, N(BAD_UCI));
}

/* w8a: thousands of its lines are a label alone, also among the first. */
Test(format_odd, a_file_of_which_half_are_labels_alone_is_libsvm)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const char *from = path;

    cr_assert(batch != NULL && err != NULL);
    for (int i = 0; i < 10000; i++) {
        cr_assert(i % 2 == 0 ? ps_buffer_print(&text, "-1 \n")
                             : ps_buffer_print(&text, "+1 %d:1\n", i));
    }
    sample_file_write(&dir, "half", text.data, text.size, path);
    psd_reader_options_set_strict(options, true);
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_expect_str_eq(psd_reader_format(reader), "libsvm");
    cr_assert_eq(psd_reader_next(reader, 20000, batch, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(psd_samples_count(batch), 10000);
    cr_expect_eq(psd_samples_entry_count(batch), 5000);
    cr_expect_eq(psd_samples_labels(batch)[0], -1);
    cr_expect_eq(psd_samples_keys(batch)[4999], 9999);
}

/* A list of numbers says nothing; the empty documents of lda-c are none of
 * libsvm's. */
Test(format_odd, labels_alone_are_no_format)
{
    sample_file_write(&dir, "numbers", "1\n-1\n1\n", 7, path);
    sample_read_refused(
        path, options, PSD_INVALID,
        "match no known format (they have only numbers, like libsvm lines without features)");
    sample_file_write(&dir, "documents", "2 1:1 2:2\n0\n0\n0\n", 16, path);
    check_known("lda-c");
}

Test(format_odd, what_only_looks_like_a_format_is_not_taken_for_it)
{
    sample_file_write(&dir, "dates", "1,May\n2,May\n", 12, path);
    sample_read_refused(path, options, PSD_INVALID,
                        "dates: its first lines look like csv, but none of them is a sample (line "
                        "1: \"May\" in column 2 is not a finite number); name its format");
    sample_file_write(&dir, "code", "1; 2\n1; 3\n", 10, path);
    sample_read_refused(path, options, PSD_INVALID,
                        "code: its first lines look like ps, but none of them "
                        "is a sample (line 1: group 2 has no entry)");
    /* One good line is enough: the others are bad. */
    sample_file_write(&dir, "some", "1,May\n2,3\n", 10, path);
    psd_reader_options_set_strict(options, false);
    sample_read_expect(path, options, "2 {0 0:3}\n", 1);
}
