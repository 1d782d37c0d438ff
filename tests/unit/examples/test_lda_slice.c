/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lda/slice.h: the counts of words in memory, in each shape. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "lda/slice.h"

/* Of word 0. */
static int32_t count_of(const lda_slice_t *slice, uint32_t topic)
{
    const lda_row_t *row = &slice->rows[0];

    return lda_row_cell(slice, row, row->shape, topic).count;
}

/* Topics come to a rare word and go again, many more than it has room for. */
Test(lda_slice, a_rare_word_takes_any_topics_in_turn)
{
    enum { TOPICS = 1000 };
    lda_prior_t prior = {TOPICS, 1, 0.1, 0.01};
    lda_slice_t slice;
    int64_t *totals = calloc(TOPICS, sizeof *totals);
    const uint32_t frequency = 3;
    const uint32_t topics[2] = {7, 999};
    const int32_t counts[2] = {1, 2};
    lda_change_t changes[TOPICS];
    uint32_t at[3] = {7, 999, 999};

    cr_assert_not_null(totals);
    cr_assert_eq(lda_slice_init(&slice, &prior, NULL), PSD_OK);
    cr_assert_eq(lda_slice_begin(&slice, 0, 1, &frequency, totals, NULL), PSD_OK);
    cr_assert_eq(slice.rows[0].shape, LDA_HASHED);
    cr_assert_eq(slice.rows[0].n_cells, 16);
    cr_assert_eq(lda_slice_set(&slice, 0, frequency, topics, counts, 2, NULL), PSD_OK);
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t next = (i * 37) % TOPICS;

        lda_slice_add(&slice, 0, at[i % 3], -1);
        lda_slice_add(&slice, 0, next, 1);
        at[i % 3] = next;
        cr_assert_geq(count_of(&slice, next), 1);
    }
    cr_assert_eq(lda_slice_changes(&slice, 0, changes), 5);
    lda_slice_done(&slice);
    free(totals);
}

/* A word that has a cell for each of an odd number of topics: counts as large
 * as its cells take, and no cell's change is seen in its neighbours. */
static void check_every_topic(uint32_t frequency, lda_shape_t shape)
{
    enum { TOPICS = 7 };
    lda_prior_t prior = {TOPICS, 2, 0.1, 0.01};
    lda_slice_t slice;
    const int64_t totals[TOPICS] = {0};
    const uint32_t frequencies[2] = {frequency, 1};
    const uint32_t topics[2] = {2, 6};
    const int32_t counts[2] = {(int32_t)frequency - 1, 1};
    const uint32_t other = 5;
    const int32_t one = 1;
    lda_change_t changes[TOPICS];

    cr_assert_eq(lda_slice_init(&slice, &prior, NULL), PSD_OK);
    cr_assert_eq(lda_slice_begin(&slice, 0, 2, frequencies, totals, NULL), PSD_OK);
    cr_assert_eq((lda_shape_t)slice.rows[0].shape, shape);
    cr_assert_eq(lda_slice_set(&slice, 0, frequency, topics, counts, 2, NULL), PSD_OK);
    cr_assert_eq(lda_slice_set(&slice, 1, 1, &other, &one, 1, NULL), PSD_OK);
    cr_assert_eq(lda_slice_changes(&slice, 0, changes), 0);
    lda_slice_add(&slice, 0, 6, -1);
    lda_slice_add(&slice, 0, 2, 1);
    cr_assert_eq(count_of(&slice, 2), (int32_t)frequency);
    for (uint32_t i = 0; i < frequency; i++) {
        lda_slice_add(&slice, 0, 2, -1);
        lda_slice_add(&slice, 0, 3, 1);
    }
    for (uint32_t k = 0; k < TOPICS; k++) {
        cr_assert_eq(count_of(&slice, k), k == 3 ? (int32_t)frequency : 0);
    }
    cr_assert_eq(lda_slice_changes(&slice, 0, changes), 3);
    cr_assert_eq(changes[0].topic, 2);
    cr_assert_eq(changes[0].delta, -counts[0]);
    cr_assert_eq(changes[1].topic, 3);
    cr_assert_eq(changes[1].delta, (int32_t)frequency);
    cr_assert_eq(changes[2].topic, 6);
    cr_assert_eq(changes[2].delta, -1);
    cr_assert_eq(lda_slice_changes(&slice, 1, changes), 0);
    lda_slice_done(&slice);
}

Test(lda_slice, a_frequent_word_has_a_cell_for_every_topic)
{
    check_every_topic(2, LDA_NARROW);
    check_every_topic(65535, LDA_NARROW);
    check_every_topic(65536, LDA_WIDE);
    check_every_topic(70000, LDA_WIDE);
}

Test(lda_slice, counts_that_cannot_be_are_refused)
{
    lda_prior_t prior = {4, 1, 0.1, 0.01};
    const int64_t totals[4] = {0};
    const uint32_t frequency = 3;
    const uint32_t good[2] = {1, 2};
    const uint32_t twice[2] = {1, 1};
    const uint32_t beyond[2] = {1, 4};
    const int32_t counts[2] = {1, 2};
    const int32_t less[2] = {4, -1};
    lda_slice_t slice;
    psd_error_t *err = psd_error_new();

    cr_assert_eq(lda_slice_init(&slice, &prior, NULL), PSD_OK);
    cr_assert_eq(lda_slice_begin(&slice, 0, 1, &frequency, totals, NULL), PSD_OK);
    cr_assert_eq(lda_slice_set(&slice, 0, 3, twice, counts, 2, err), PSD_DAMAGED);
    cr_assert_eq(lda_slice_set(&slice, 0, 3, beyond, counts, 2, err), PSD_DAMAGED);
    cr_assert_eq(lda_slice_set(&slice, 0, 3, good, less, 2, err), PSD_DAMAGED);
    psd_error_clear(err);
    cr_assert_eq(lda_slice_set(&slice, 0, 3, good, counts, 1, err), PSD_DAMAGED);
    cr_assert_str_eq(psd_error_text(err), "word 0: its counts are of 1 tokens, there are 3");
    cr_assert_eq(lda_slice_set(&slice, 0, 3, good, counts, 2, NULL), PSD_OK);
    lda_slice_done(&slice);
    psd_error_destroy(&err);
}
