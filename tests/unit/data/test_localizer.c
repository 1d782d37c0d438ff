/* SPDX-License-Identifier: Apache-2.0 */
/* psd_localizer: what a plain sort finds, in any batch, on any threads. */
#include <criterion/criterion.h>

#include "localizer_batch.h"
#include "support/check.h"
#include "support/fail_alloc.h"

static psd_localizer_t *localizer_new(uint32_t n_threads)
{
    psd_localizer_t *localizer = NULL;

    cr_assert_eq(psd_localizer_new(n_threads, &localizer, NULL), PSD_OK);
    return localizer;
}

Test(localizer, finds_what_a_plain_sort_finds)
{
    static const size_t SIZES[] = {1, 2, 23, 24, 25, 255, 5000, 120000};
    uint64_t *keys = malloc(120000 * sizeof *keys);

    for (uint32_t threads = 1; threads <= 3; threads++) {
        psd_localizer_t *localizer = localizer_new(threads);

        for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0]; s++) {
            for (int kind = 0; kind < BATCH_KINDS; kind++) {
                const char *wrong = NULL;

                batch_fill(keys, SIZES[s], (batch_kind_t)kind, s);
                cr_assert_eq(psd_localizer_run(localizer, keys, SIZES[s], NULL), PSD_OK);
                wrong = batch_check(localizer, keys, SIZES[s]);
                cr_assert_null(wrong, "%u threads, %zu keys of kind %d: %s", threads, SIZES[s],
                               kind, wrong);
            }
        }
        psd_localizer_destroy(&localizer);
    }
    free(keys);
}

Test(localizer, an_empty_batch_has_no_keys)
{
    psd_localizer_t *localizer = localizer_new(2);
    uint64_t key = 9;

    cr_assert_eq(psd_localizer_run(localizer, &key, 1, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_count(localizer), 1);
    cr_assert_eq(psd_localizer_run(localizer, NULL, 0, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_count(localizer), 0);
    psd_localizer_destroy(&localizer);
}

Test(localizer, leaves_keys_out_until_they_were_seen_often_enough)
{
    static const uint64_t FIRST[] = {5, 3, 5, 8};
    static const uint64_t SECOND[] = {8, 3, 9, 5};
    psd_localizer_t *localizer = localizer_new(2);

    cr_assert_eq(psd_localizer_set_min_count(localizer, 2, 1 << 16, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_run(localizer, FIRST, 4, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_count(localizer), 1);
    cr_assert_eq(psd_localizer_keys(localizer)[0], 5);
    cr_assert_eq(psd_localizer_counts(localizer)[0], 2);
    cr_assert_eq(psd_localizer_ids(localizer)[0], 0);
    cr_assert_eq(psd_localizer_ids(localizer)[1], PSD_ID_NONE);
    cr_assert_eq(psd_localizer_ids(localizer)[2], 0);
    cr_assert_eq(psd_localizer_ids(localizer)[3], PSD_ID_NONE);

    cr_assert_eq(psd_localizer_run(localizer, SECOND, 4, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_count(localizer), 3);
    cr_assert_eq(psd_localizer_ids(localizer)[0], 2); /* 8 */
    cr_assert_eq(psd_localizer_ids(localizer)[1], 0); /* 3 */
    cr_assert_eq(psd_localizer_ids(localizer)[2], PSD_ID_NONE);
    cr_assert_eq(psd_localizer_ids(localizer)[3], 1); /* 5 */
    psd_localizer_destroy(&localizer);
}

/* In a sketch far too small keys come in too soon, none too late; and what
 * comes in does not hang on the number of threads. */
Test(localizer, a_small_sketch_leaves_no_key_out_too_long)
{
    enum { N = 3000, BATCHES = 4, LEAST = 6, KEYS = 2000 };
    psd_localizer_t *one = localizer_new(1);
    psd_localizer_t *three = localizer_new(3);
    uint32_t seen[KEYS] = {0};
    uint64_t keys[N];
    ps_rng_t rng = {.state = 4};
    size_t too_soon = 0;

    cr_assert_eq(psd_localizer_set_min_count(one, LEAST, 4096, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_set_min_count(three, LEAST, 4096, NULL), PSD_OK);
    for (size_t b = 0; b < BATCHES; b++) {
        for (size_t i = 0; i < N; i++) {
            keys[i] = ps_rng_below(&rng, KEYS);
            seen[keys[i]]++;
        }
        cr_assert_eq(psd_localizer_run(one, keys, N, NULL), PSD_OK);
        cr_assert_eq(psd_localizer_run(three, keys, N, NULL), PSD_OK);
        cr_assert_arr_eq(psd_localizer_ids(one), psd_localizer_ids(three), N * sizeof(uint32_t));
        for (size_t i = 0; i < N; i++) {
            bool in = psd_localizer_ids(one)[i] != PSD_ID_NONE;

            cr_assert(in || seen[keys[i]] < LEAST, "key %zu, seen %u times", (size_t)keys[i],
                      seen[keys[i]]);
            too_soon += in && seen[keys[i]] < LEAST;
        }
    }
    cr_assert_gt(too_soon, 0, "or the sketch was not too small");
    psd_localizer_destroy(&one);
    psd_localizer_destroy(&three);
}

/* e N / W is passed by at most 2 % of the keys, and by far fewer in fact. */
Test(localizer, a_sketch_counts_too_high_as_rarely_as_it_promises)
{
    enum { KEYS = 20000, ROW = 16384, LEAST = 5 };
    psd_localizer_t *localizer = localizer_new(1);
    uint64_t *keys = malloc(KEYS * sizeof *keys);

    batch_fill(keys, KEYS, BATCH_RANDOM, 12);
    /* e x 20000 / 16384 = 3.3 too many; each key was seen once. */
    cr_assert_eq(psd_localizer_set_min_count(localizer, LEAST, 4 * ROW, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_run(localizer, keys, KEYS, NULL), PSD_OK);
    cr_assert_leq(psd_localizer_count(localizer), KEYS / 50);
    free(keys);
    psd_localizer_destroy(&localizer);
}

Test(localizer, counts_beyond_255_are_255)
{
    uint64_t keys[300] = {0};
    psd_localizer_t *localizer = localizer_new(1);

    cr_assert_eq(psd_localizer_set_min_count(localizer, 255, 64, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_run(localizer, keys, 254, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_count(localizer), 0);
    cr_assert_eq(psd_localizer_run(localizer, keys, 300, NULL), PSD_OK);
    cr_assert_eq(psd_localizer_counts(localizer)[0], 300);
    psd_localizer_destroy(&localizer);
}

Test(localizer, refuses_what_it_cannot_do)
{
    psd_localizer_t *localizer = NULL;
    psd_error_t *err = psd_error_new();

    cr_assert_eq(psd_localizer_new(0, &localizer, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "localizer: 0 threads; 1 .. 1024 are allowed");
    cr_assert_null(localizer);
    localizer = localizer_new(1);
    psd_error_clear(err);
    cr_assert_eq(psd_localizer_set_min_count(localizer, 256, 1, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "a minimum count of 256; 1 .. 255 are allowed");
    cr_assert_eq(psd_localizer_set_min_count(localizer, 0, 1, NULL), PSD_INVALID);
    cr_assert_eq(psd_localizer_set_min_count(localizer, 2, 0, NULL), PSD_INVALID);
    cr_assert_eq(psd_localizer_set_min_count(localizer, 2, UINT64_MAX, NULL), PSD_NOMEM);
    psd_error_clear(err);
    cr_assert_eq(psd_localizer_run(localizer, NULL, UINT32_MAX, err), PSD_LIMIT);
    cr_assert_str_eq(psd_error_text(err),
                     "4294967295 entries in a batch; fewer than 4294967295 can "
                     "be localized");
    psd_localizer_destroy(&localizer);
    psd_error_destroy(&err);
}

static psd_status_t localize(void *fixture)
{
    uint64_t keys[100];
    psd_localizer_t *localizer = NULL;
    psd_status_t rc = psd_localizer_new(2, &localizer, NULL);

    (void)fixture;
    batch_fill(keys, 100, BATCH_FEW, 1);
    if (rc == PSD_OK) {
        rc = psd_localizer_set_min_count(localizer, 2, 100, NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_localizer_run(localizer, keys, 60, NULL);
    }
    if (rc == PSD_OK) { /* larger: all of its room is replaced */
        rc = psd_localizer_run(localizer, keys, 100, NULL);
        if (rc != PSD_OK) {
            cr_assert_eq(psd_localizer_count(localizer), 0);
            cr_assert_eq(psd_localizer_run(localizer, keys, 100, NULL), PSD_OK);
        }
    }
    psd_localizer_destroy(&localizer);
    return rc;
}

Test(localizer, survives_each_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(localize, NULL));
}
