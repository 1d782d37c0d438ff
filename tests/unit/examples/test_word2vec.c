/* SPDX-License-Identifier: Apache-2.0 */
/* examples/word2vec: what needs no server: text, words, codes, draws, files of
 * vectors, and how they are judged. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/temp_dir.h"
#include "word2vec/block.h"
#include "word2vec/judge.h"
#include "word2vec/senses.h"

#define PATH_SIZE (PATH_MAX + 16)
#define TEXT_SIZE 200

static temp_dir_t dir;
static char path[PATH_SIZE];

static void setup(void)
{
    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/file", dir.path);
}

static void teardown(void)
{
    temp_dir_drop(&dir);
}

TestSuite(word2vec, .init = setup, .fini = teardown);

static void write_bytes(const char *text, size_t size)
{
    FILE *file = fopen(path, "wbe");

    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
}

static void write_text(const char *text)
{
    write_bytes(text, strlen(text));
}

static void read_file_is(const char *expected)
{
    char text[TEXT_SIZE];
    FILE *file = fopen(path, "re");
    size_t n = 0;

    cr_assert_not_null(file);
    n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    cr_assert_eq(fclose(file), 0);
    cr_assert_str_eq(text, expected);
}

/* The part's tokens, words by a blank, ends of lines as '|'. */
static void read_part(uint32_t part, uint32_t n, char *ret)
{
    wv_text_t text;
    wv_token_t token;

    *ret = '\0';
    cr_assert_eq(wv_text_open(&text, path, part, n, NULL), PSD_OK);
    while ((token = wv_text_next(&text)) != WV_TEXT_END) {
        size_t used = strlen(ret);

        (void)snprintf(ret + used, TEXT_SIZE - used, token == WV_WORD ? "%s " : "|", text.word);
    }
    cr_assert_eq(wv_text_check(&text, NULL), PSD_OK);
    wv_text_close(&text);
}

Test(word2vec, every_line_is_in_one_part)
{
    static const char *const texts[] = {
        "a b\nc\n\nx e f\n", "a b\nc\n\nx e f", "one", "one\n", "\n\n", "", "a\tb \r\n  c\n"};
    char last[TEXT_SIZE];

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char whole[TEXT_SIZE];

        write_text(texts[i]);
        read_part(0, 1, whole);
        for (uint32_t n = 2; n < 20; n++) {
            char parts[TEXT_SIZE] = "";
            size_t n_chars = 0;

            for (uint32_t k = 0; k < n; k++) {
                char part[TEXT_SIZE];

                read_part(k, n, part);
                n_chars += (size_t)snprintf(parts + n_chars, sizeof parts - n_chars, "%s", part);
            }
            cr_expect_str_eq(parts, whole, "text %zu in %u parts", i, n);
        }
    }
    read_part(0, 1, last);
    cr_expect_str_eq(last, "a b |c |");
}

Test(word2vec, words_stand_by_count_and_rare_ones_are_left_out)
{
    wv_vocabulary_t words;
    wv_vocabulary_t none;

    write_text("b c a\nb a x b\n");
    cr_assert_eq(wv_vocabulary_count(&words, path, 2, NULL), PSD_OK);
    cr_assert_eq(words.n, 3);
    cr_expect_str_eq(words.words[0].text, "</s>");
    cr_expect_str_eq(words.words[1].text, "b");
    cr_expect_str_eq(words.words[2].text, "a");
    cr_expect_eq(words.words[1].count, 3);
    cr_expect_eq(words.n_tokens, 2 + 3 + 2);
    cr_expect_eq(wv_vocabulary_find(&words, "a"), 2);
    cr_expect_eq(wv_vocabulary_find(&words, "x"), WV_UNKNOWN);
    wv_vocabulary_done(&words);
    cr_expect_eq(wv_vocabulary_count(&none, path, 9, NULL), PSD_INVALID);
    cr_expect_eq(wv_vocabulary_count(&none, dir.path, 1, NULL), PSD_IO);
}

/* n words "0", "1", …, seen so often. */
static void make_words(wv_vocabulary_t *words, const uint64_t *counts, uint32_t n)
{
    *words = (wv_vocabulary_t){.n = 0};
    for (uint32_t i = 0; i < n; i++) {
        char text[16];

        (void)snprintf(text, sizeof text, "%u", i);
        cr_assert_eq(wv_vocabulary_add(words, text), i);
        words->words[i].count = counts[i];
        words->n_tokens += counts[i];
    }
}

static bool begins_with(const wv_code_t *code, const wv_code_t *other)
{
    return other->n <= code->n && memcmp(code->bits, other->bits, other->n) == 0;
}

Test(word2vec, codes_are_as_short_as_can_be_and_none_begins_another)
{
    const uint64_t counts[] = {7, 15, 6, 5, 4}; /* the first is a line's end */
    wv_vocabulary_t words;
    wv_tree_t tree;
    uint64_t bits = 0;

    make_words(&words, counts, 5);
    cr_assert_eq(wv_tree_make(&tree, &words, NULL), PSD_OK);
    for (uint32_t i = 0; i < 5; i++) {
        bits += counts[i] * tree.codes[i].n;
        cr_expect_eq(tree.codes[i].nodes[0], 3, "the root");
        for (uint32_t k = 0; k < 5; k++) {
            cr_expect(i == k || !begins_with(&tree.codes[i], &tree.codes[k]));
        }
    }
    cr_expect_eq(bits, 15 * 1 + (7 + 6 + 5 + 4) * 3, "as Huffman's");
    wv_tree_done(&tree);
    wv_vocabulary_done(&words);
}

Test(word2vec, negatives_are_drawn_by_the_power_of_their_counts)
{
    enum { N = 1000000 };
    const uint64_t counts[] = {1000000, 10000, 160, 1};
    double weights[4] = {0};
    double sum = 0;
    uint32_t drawn[4] = {0};
    uint64_t random = 5;
    wv_vocabulary_t words;
    wv_draws_t draws;

    make_words(&words, counts, 4);
    cr_assert_eq(wv_draws_make(&draws, &words, 0, NULL), PSD_OK);
    for (int i = 1; i < 4; i++) {
        weights[i] = pow((double)counts[i], 0.75);
        sum += weights[i];
    }
    for (int i = 0; i < N; i++) {
        drawn[wv_draws_negative(&draws, &random)]++;
    }
    cr_expect_eq(drawn[0], 0, "never the end of a line");
    for (int i = 1; i < 4; i++) {
        double p = weights[i] / sum;

        cr_expect_lt(fabs(drawn[i] - N * p), 4 * sqrt(N * p * (1 - p)));
    }
    wv_draws_done(&draws);
    wv_vocabulary_done(&words);
}

Test(word2vec, frequent_words_are_left_out_now_and_then)
{
    enum { N = 1000000 };
    const uint64_t counts[] = {0, 1000000 - 100, 100};
    const double sample = 1e-3;
    uint64_t random = 7;
    double kept = 0;
    double p = sqrt(sample / 0.9999) + sample / 0.9999;
    wv_vocabulary_t words;
    wv_draws_t draws;

    make_words(&words, counts, 3);
    cr_assert_eq(wv_draws_make(&draws, &words, sample, NULL), PSD_OK);
    for (int i = 0; i < N; i++) {
        kept += wv_draws_keeps(&draws, 1, &random) ? 1 : 0;
        cr_assert(wv_draws_keeps(&draws, 2, &random), "it is rare");
    }
    cr_expect_lt(fabs(kept - N * p), 4 * sqrt(N * p * (1 - p)));
    wv_draws_done(&draws);
    wv_vocabulary_done(&words);
}

Test(word2vec, a_block_names_each_row_once)
{
    const wv_options_t options = {.train = path, .negative = 2, .hs = true, .epochs = 2};
    wv_task_t task = {.options = &options, .block = 3};
    wv_block_t *block = NULL;
    wv_feed_t feed;
    uint64_t n_read = 0;
    size_t n_blocks = 0;

    write_text("a b a\nb c\na a a a\n");
    cr_assert_eq(wv_vocabulary_count(&task.vocabulary, path, 1, NULL), PSD_OK);
    cr_assert_eq(wv_draws_make(&task.draws, &task.vocabulary, 0, NULL), PSD_OK);
    cr_assert_eq(wv_tree_make(&task.tree, &task.vocabulary, NULL), PSD_OK);
    task.senses = (wv_senses_t){.n = 2, .last = 1, .n_words = task.vocabulary.n};
    wv_feed_init(&feed, &task, 0, 1);
    for (;;) {
        cr_assert_eq(wv_feed_next(&feed, &block, NULL), PSD_OK);
        if (block == NULL) {
            break;
        }
        n_read += block->n_read;
        n_blocks++;
        cr_assert_eq(wv_block_prepare(block, NULL), PSD_OK);
        for (size_t i = 0; i < block->n; i++) {
            cr_expect(block->words[i] == WV_UNKNOWN ||
                      (block->words[i] < block->in.n &&
                       block->in.rows[block->words[i]] == block->out.rows[block->targets[i]]));
            cr_expect(block->words[i] == WV_UNKNOWN || block->in.rows[block->words[i]] != 1 ||
                      block->in.rows[block->words[i] + 1] == task.vocabulary.n);
        }
        for (uint32_t i = 0; i < block->n_pool; i++) {
            cr_expect_lt(block->pool[i], block->out.n);
        }
        for (size_t i = 0; i < block->out.n; i++) {
            cr_expect_eq(block->out.slot_of[block->out.rows[i]], i);
        }
        wv_block_free(block);
    }
    cr_expect_eq(n_blocks, 6, "a block ends with a sentence");
    cr_expect_eq(n_read, 2 * task.vocabulary.n_tokens);
    wv_feed_done(&feed);
    wv_vocabulary_done(&task.vocabulary);
    wv_draws_done(&task.draws);
    wv_tree_done(&task.tree);
}

Test(word2vec, vectors_come_back_to_the_bit_in_both_forms)
{
    const float values[] = {1.0F / 3, -1e-30F, 2, 0.1F, 3e30F, -0.0F};
    const uint64_t counts[] = {1, 1, 1};
    wv_vocabulary_t words;

    make_words(&words, counts, 3);
    for (int binary = 0; binary < 2; binary++) {
        wv_vectors_t again;

        cr_assert_eq(wv_vectors_write(&words, values, 2, binary == 1, path, NULL), PSD_OK);
        cr_assert_eq(wv_vectors_read(&again, path, NULL), PSD_OK);
        cr_expect_eq(again.size, 2);
        cr_assert_eq(again.words.n, 3);
        cr_expect_str_eq(again.words.words[2].text, "2");
        cr_expect_arr_eq(again.values, values, sizeof values);
        wv_vectors_done(&again);
    }
    wv_vocabulary_done(&words);
}

Test(word2vec, files_that_are_no_vectors_are_refused)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "0 2\n",
                                        "1 0\n",
                                        "1 2\na 1\n",
                                        "1 2\na 1 x\n",
                                        "1 2\na 1 nan\n",
                                        "2 1\na 1\na 2\n",
                                        "2 1\na 1\n",
                                        "99999999999 1\na 1\n"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        psd_error_t *err = psd_error_new();
        wv_vectors_t vectors;

        write_text(texts[i]);
        cr_expect_eq(wv_vectors_read(&vectors, path, err), PSD_INVALID, "%s", texts[i]);
        cr_expect_not_null(strstr(psd_error_text(err), path));
        psd_error_destroy(&err);
    }
}

Test(word2vec, rank_correlation_is_spearmans)
{
    const double a[] = {106, 86, 100, 101, 99, 103, 97, 113, 112, 110};
    const double b[] = {7, 0, 27, 50, 28, 29, 20, 12, 6, 17};
    const double tied[] = {1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    double rho = 0;

    cr_assert_eq(wv_spearman(a, b, 10, &rho, NULL), PSD_OK);
    cr_expect_float_eq(rho, -29.0 / 165, 1e-12);
    cr_assert_eq(wv_spearman(tied, tied, 10, &rho, NULL), PSD_OK);
    cr_expect_float_eq(rho, 1, 1e-12);
}

Test(word2vec, analogies_and_pairs_of_known_words_count)
{
    wv_vectors_t vectors;
    wv_judgement_t found;

    write_text("5 3\nman 1 0 0\nwoman 1 1 0\nking 1 0 1\nqueen 1 1 1\n"
               "far -1 -1 -1\n");
    cr_assert_eq(wv_vectors_read(&vectors, path, NULL), PSD_OK);
    wv_judge_prepare(&vectors);
    write_text(": family\nMan woman King queen\nman woman king far\n"
               "man woman king prince\n");
    cr_assert_eq(wv_judge_questions(&vectors, path, &found, NULL), PSD_OK);
    cr_expect_eq(found.n, 2);
    cr_expect_eq(found.n_all, 3);
    cr_expect_float_eq(found.value, 0.5, 1e-12);
    write_text("king\tqueen\t9\nman\tfar\t1\nking\tman\t8\nking\tnobody\t3\n");
    cr_assert_eq(wv_judge_pairs(&vectors, path, &found, NULL), PSD_OK);
    cr_expect_eq(found.n, 3);
    cr_expect_eq(found.n_all, 4);
    cr_expect_float_eq(found.value, 1, 1e-12);
    write_text("king queen\n");
    cr_expect_eq(wv_judge_pairs(&vectors, path, &found, NULL), PSD_INVALID);
    wv_vectors_done(&vectors);
}

Test(word2vec, senses_lie_behind_the_words)
{
    const wv_senses_t senses = {.n = 3, .last = 2, .n_words = 4};

    cr_assert_eq(wv_senses_rows(&senses), 8);
    cr_assert_eq(wv_senses_of(&senses, WV_END), 1);
    cr_assert_eq(wv_senses_of(&senses, 2), 3);
    cr_assert_eq(wv_senses_of(&senses, 3), 1);
    cr_assert_eq(wv_senses_row(&senses, 1, 0), 1);
    cr_assert_eq(wv_senses_row(&senses, 1, 2), 5);
    cr_assert_eq(wv_senses_row(&senses, 2, 1), 6);
}

/* The sense that was met most has the word's own name; a name that is a word of
 * the text is left to it. */
Test(word2vec, senses_are_named)
{
    const wv_senses_t senses = {.n = 2, .last = 2, .n_words = 4};
    float values[] = {0, 1, 2, 3, 10, 20};
    float met[] = {0, 0, 5, 1, 1, 3};
    wv_vocabulary_t words = {0};

    cr_assert_eq(wv_vocabulary_add(&words, "</s>"), 0);
    cr_assert_eq(wv_vocabulary_add(&words, "one"), 1);
    cr_assert_eq(wv_vocabulary_add(&words, "two"), 2);
    cr_assert_eq(wv_vocabulary_add(&words, "one#2"), 3);
    cr_assert_eq(wv_senses_name(&senses, &words, values, 1, met, NULL), PSD_OK);
    cr_assert_eq(words.n, 6);
    cr_assert_str_eq(words.words[4].text, "one##2");
    cr_assert_str_eq(words.words[5].text, "two#2");
    cr_assert_float_eq(values[1], 1, 0);
    cr_assert_float_eq(values[2], 20, 0);
    cr_assert_float_eq(values[5], 2, 0);
    cr_assert_eq(wv_senses_write(&senses, &words, met, path, NULL), PSD_OK);
    read_file_is("one\tone\t0.833333\none\tone##2\t0.166667\n"
                 "two\ttwo\t0.750000\ntwo\ttwo#2\t0.250000\n");
    wv_vocabulary_done(&words);
}
