/* SPDX-License-Identifier: Apache-2.0 */
/* data/formats/format_lda_c.c, format_text.c, vocabulary.c: documents as words. */
#include "sample_file.h"
#include "sample_read.h"
#include "sample_write.h"
#include "support/fail_alloc.h"

static temp_dir_t dir;
static char path[SAMPLE_PATH];
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

TestSuite(format_words, .init = set_up, .fini = tear_down);

static void write_words(const char *text)
{
    char words[SAMPLE_PATH];

    sample_file_write(&dir, "words.gz", text, strlen(text), words);
    cr_assert_eq(psd_reader_options_set_vocabulary(options, words, NULL), PSD_OK);
}

Test(format_words, lda_c_has_pairs_and_how_many)
{
    ps_parser_t parser = sample_text_parser("lda-c");

    sample_case_expect(&parser, "2 7:1 0:16777216\r\n\n0\n 1\t5:2 \n",
                       "none {0 7:1 0:1.67772e+07}\nnone {0}\n"
                       "none {0 5:2}\n");
    sample_case_refused(&parser, "3 7:1 0:2\n", "it begins with 3, but has 2 words");
    sample_case_refused(&parser, "1 7:1 0:2\n", "it begins with 1, but has 2 words");
    sample_case_refused(&parser, "x 7:1\n", "\"x\" is not how many words follow, a whole number");
    sample_case_refused(&parser, "1 7:0\n",
                        "\"7:0\" is not WORD:COUNT of two whole numbers, the "
                        "count 1 .. 16777216");
    sample_case_refused(&parser, "1 7:1.5\n",
                        "\"7:1.5\" is not WORD:COUNT of two whole numbers, the "
                        "count 1 .. 16777216");
    sample_case_refused(&parser, "1 7:16777217\n",
                        "\"7:16777217\" is not WORD:COUNT of two whole "
                        "numbers, the count 1 .. 16777216");
}

Test(format_words, lda_c_is_known_and_libsvm_is_not_taken_for_it)
{
    static const char docs[] = "2 7:1 0:2\n2 3:9 1:1\n3 0:1 1:1 2:1\n";
    static const char samples[] = "1 7:1\n1 3:9\n1 0:1\n";

    sample_file_write(&dir, "docs", docs, sizeof docs - 1, path);
    sample_read_expect(path, NULL,
                       "none {0 7:1 0:2}\nnone {0 3:9 1:1}\n"
                       "none {0 0:1 1:1 2:1}\n",
                       0);
    sample_file_write(&dir, "samples", samples, sizeof samples - 1, path);
    sample_read_expect(path, NULL, "1 {0 7:1}\n1 {0 3:9}\n1 {0 0:1}\n", 0);
}

Test(format_words, lda_c_words_are_the_vocabularys)
{
    static const char docs[] = "1 1:1\n1 2:1\n";

    write_words("a\nb\n");
    cr_assert_eq(psd_reader_options_set_format(options, "lda-c", NULL), PSD_OK);
    sample_file_write(&dir, "docs", docs, sizeof docs - 1, path);
    sample_read_expect(path, options, "none {0 1:1}\n", 1);
}

Test(format_words, lda_c_refuses_to_write_what_is_no_count)
{
    char out[SAMPLE_PATH];

    (void)snprintf(out, sizeof out, "%s/out", dir.path);
    sample_write_refused("libsvm", "1 1:2\n", out, "lda-c",
                         "a sample with a label, which lda-c cannot hold");
    sample_write_refused("ps", "; 0 1:2.5;\n", out, "lda-c",
                         "value 2.5 is not a count, a whole number 1 .. 16777216");
    sample_write_refused("ps", "; 0 1:-1;\n", out, "lda-c", "value -1 is no");
    sample_write_refused("ps", "; 0 1:16777218;\n", out, "lda-c", "is no");
    sample_write_refused("ps", "; 0 1:2.5;\n", out, "uci", "value 2.5 is no");
    sample_write_refused("ps", "; 0 18446744073709551615:2;\n", out, "uci",
                         "key 2^64 - 1; words count from 1");
}

Test(format_words, text_has_words_or_counts_of_them)
{
    static const char text[] = "the cat  the\tdog\n \n\nbird the the the\r\n";

    write_words("dog\nthe 17\ncat\n");
    sample_file_write(&dir, "text", text, sizeof text - 1, path);
    cr_assert_eq(psd_reader_options_set_format(options, "text", NULL), PSD_OK);
    sample_read_expect(path, options, "none {0 0:1 1:2 2:1}\nnone {0 1:3}\n", 0);
    cr_assert_eq(psd_reader_options_set_entries(options, PSD_ENTRIES_BINARY, NULL), PSD_OK);
    sample_read_expect(path, options, "none {0 1:1 2:1 1:1 0:1}\nnone {0 1:1 1:1 1:1}\n", 0);
}

/* Appleby's own program prints cbd8a7b341bd9b02 … for the words hello. */
Test(format_words, text_hashes_words_where_there_is_no_vocabulary)
{
    ps_parser_t parser = sample_text_parser("text");

    sample_case_expect(&parser, "hello hello\n", "none {0 14688674573012802306:2}\n");
}

Test(format_words, text_is_not_guessed)
{
    sample_file_write(&dir, "text", "a b\nc\n", 6, path);
    sample_read_refused(path, NULL, PSD_INVALID,
                        "match no known format (no format begins like \"a…\")");
}

Test(format_words, what_came_nearest_is_said)
{
    sample_file_write(&dir, "a", "1 1:2\n2 3:4\n1;2\n", 16, path);
    sample_read_refused(path, NULL, PSD_INVALID,
                        ":3: \"1…\" is not libsvm, guessed by only 2 of the "
                        "first 3 lines");
    sample_file_write(&dir, "a", "1 1:2\n1;2\na b\n", 14, path);
    sample_read_refused(path, NULL, PSD_INVALID, "(1 of 3 could be libsvm, but not \"1…\")");
    sample_file_write(&dir, "a", "\n \n", 3, path);
    sample_read_refused(path, NULL, PSD_INVALID, "(they are empty)");
}

Test(format_words, a_vocabulary_finds_words_and_keys)
{
    PSD_AUTO(psd_vocabulary_destroy) psd_vocabulary_t *words = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    char word[16];
    uint64_t key = 0;

    for (int i = 0; i < 5000; i++) {
        cr_assert(ps_buffer_print(&text, " w%d\t%d\r\n", i, i % 7));
    }
    sample_file_write(&dir, "v.zst", text.data, text.size, path);
    cr_assert_eq(psd_vocabulary_read(path, &words, NULL), PSD_OK);
    cr_assert_eq(psd_vocabulary_count(words), 5000);
    for (size_t i = 0; i < 5000; i++) {
        int size = snprintf(word, sizeof word, "w%zu", i);

        cr_assert(psd_vocabulary_find(words, word, (size_t)size, &key));
        cr_assert_eq(key, i);
        cr_assert_str_eq(psd_vocabulary_word(words, i), word);
    }
    cr_expect_not(psd_vocabulary_find(words, "w", 1, &key));
    cr_expect_not(psd_vocabulary_find(words, "", 0, &key));
    cr_expect_null(psd_vocabulary_word(words, 5000));
}

static void expect_no_words(const char *text, size_t size, const char *why)
{
    PSD_AUTO(psd_vocabulary_destroy) psd_vocabulary_t *words = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    sample_file_write(&dir, "v", text, size, path);
    cr_expect_eq(psd_vocabulary_read(path, &words, err), PSD_INVALID);
    cr_expect(strstr(psd_error_text(err), why) != NULL, "\"%s\" is not \"%s\"", psd_error_text(err),
              why);
}

Test(format_words, a_vocabulary_that_is_none_is_refused)
{
    expect_no_words("a\nb\na 7\n", 8, "v:3: its word is on line 1 already");
    expect_no_words("a\n\nb\n", 5, "v:2: it has no word");
    expect_no_words("a\0b\n", 4, "v:1: a word with a byte of 0");
    expect_no_words("", 0, "has no word");
}

static psd_status_t read_with_words(void *fixture)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = fixture;
    psd_status_t rc = batch == NULL ? PSD_NOMEM : psd_reader_open(&from, 1, options, &reader, NULL);

    if (rc == PSD_OK) {
        rc = psd_reader_next(reader, 9, batch, NULL);
        cr_assert(rc != PSD_OK || psd_samples_count(batch) == 2);
        cr_assert_not_null(psd_reader_vocabulary(reader));
    }
    return rc;
}

Test(format_words, no_memory_is_an_error)
{
    write_words("a\nb\n");
    cr_assert_eq(psd_reader_options_set_format(options, "text", NULL), PSD_OK);
    sample_file_write(&dir, "text", "a b a\nb\n", 8, path);
    cr_assert_null(fail_alloc_sweep(read_with_words, path));
}
