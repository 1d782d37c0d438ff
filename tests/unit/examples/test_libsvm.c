/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lr/libsvm.h: what is read, and the one error of each bad line. */
#include "libsvm.h"

#include <criterion/criterion.h>
#include <string.h>

#define N_OF(array) (sizeof(array) / sizeof(array)[0])

static const lr_slice_t ALL = {.n_parts = 1, .index_max = LR_INDEX_MAX};

static psd_status_t
read_bytes(const void *bytes,
           size_t size,
           const lr_slice_t *slice,
           lr_samples_t *ret_samples,
           psd_error_t *err)
{
    /* A stream of no bytes cannot be had from fmemopen. */
    FILE *stream = size == 0 ? fopen("/dev/null", "re")
                             : fmemopen((void *)bytes, size, "r");
    psd_status_t rc = PSD_OK;

    cr_assert_not_null(stream);
    rc = lr_libsvm_read(stream, "x", slice, ret_samples, err);
    cr_assert_eq(fclose(stream), 0);
    return rc;
}

static lr_samples_t
read_good(const char *text, const lr_slice_t *slice)
{
    lr_samples_t samples = {0};
    psd_error_t *err = psd_error_new();
    psd_status_t rc = read_bytes(text, strlen(text), slice, &samples, err);

    cr_assert_eq(rc, PSD_OK, "%s", psd_error_text(err));
    psd_error_destroy(&err);
    return samples;
}

static void
expect_bytes(const void *bytes, size_t size, const char *text)
{
    lr_samples_t samples = {0};
    psd_error_t *err = psd_error_new();

    cr_expect_eq(read_bytes(bytes, size, &ALL, &samples, err), PSD_INVALID,
                 "%s", (const char *)bytes);
    cr_expect_str_eq(psd_error_text(err), text);
    cr_expect_eq(samples.n, 0);
    cr_expect_null(samples.starts);
    psd_error_destroy(&err);
}

static void
expect_error(const char *bytes, const char *text)
{
    expect_bytes(bytes, strlen(bytes), text);
}

Test(libsvm, labels_features_and_values_are_read)
{
    lr_samples_t samples =
        read_good("1 1:0.5 7:-2e1\n-1 3:1\n+1\n0 2:+.25\n", &ALL);

    cr_assert_eq(samples.n, 4);
    cr_assert_eq(samples.n_seen, 4);
    cr_assert_eq(samples.n_entries, 4);
    cr_assert_eq(samples.greatest, 7);
    cr_assert_arr_eq(samples.labels, ((int8_t[]){1, -1, 1, -1}), 4);
    cr_assert_arr_eq(samples.starts, ((size_t[]){0, 2, 3, 3, 4}),
                     5 * sizeof(size_t));
    cr_assert_arr_eq(samples.features, ((uint32_t[]){1, 7, 3, 2}),
                     4 * sizeof(uint32_t));
    cr_assert_arr_eq(samples.values, ((float[]){0.5F, -20, 1, 0.25F}),
                     4 * sizeof(float));
    lr_samples_done(&samples);
}

Test(libsvm, comments_qid_blanks_and_line_ends_are_skipped)
{
    lr_samples_t samples = read_good(
        "# head\n\n  \t\r\n1 qid:7 2:1 # 3:1\r\n0\t1:1\t \n#end", &ALL);

    cr_assert_eq(samples.n, 2);
    cr_assert_eq(samples.n_entries, 2);
    cr_assert_eq(samples.features[0], 2);
    lr_samples_done(&samples);
}

Test(libsvm, the_last_line_needs_no_end)
{
    lr_samples_t samples = read_good("1 4294967294:3", &ALL);

    cr_assert_eq(samples.n, 1);
    cr_assert_eq(samples.greatest, LR_INDEX_MAX);
    lr_samples_done(&samples);
}

Test(libsvm, a_zero_is_as_good_as_absent)
{
    lr_samples_t samples = read_good("1 1:0 2:1 3:-0.0 4:1e-999\n", &ALL);

    cr_assert_eq(samples.n_entries, 1);
    cr_assert_eq(samples.greatest, 4);
    lr_samples_done(&samples);
}

Test(libsvm, a_slice_keeps_every_nth_example)
{
    const lr_slice_t second = {
        .part = 1, .n_parts = 3, .index_max = LR_INDEX_MAX};
    lr_samples_t samples =
        read_good("1 1:1\n# no example\n1 2:1\n1 3:1\n1 4:1\n1 5:1\n", &second);

    cr_assert_eq(samples.n, 2);
    cr_assert_eq(samples.n_seen, 5);
    cr_assert_eq(samples.features[0], 2);
    cr_assert_eq(samples.features[1], 5);
    cr_assert_eq(samples.greatest, 5, "of all lines, not only of ours");
    lr_samples_done(&samples);
}

Test(libsvm, a_line_may_be_long)
{
    size_t size = 2000000;
    char *text = calloc(size + 16, 1);
    size_t length = 1;
    lr_samples_t samples = {0};

    cr_assert_not_null(text);
    text[0] = '1';
    for (unsigned i = 0; length < size; i++) {
        length += (size_t)snprintf(text + length, 16, " %u:1", i);
    }
    samples = read_good(text, &ALL);
    cr_assert_eq(samples.n, 1);
    cr_assert_gt(samples.n_entries, 100000);
    lr_samples_done(&samples);
    free(text);
}

Test(libsvm, a_bad_line_is_one_error_that_names_place_value_and_rule)
{
    static const struct {
        const char *bytes;
        const char *text;
    } cases[] = {
        {"", "x: has no example"},
        {"# only\n\n", "x: has no example"},
        {"2 1:1\n", "x:1: label \"2\" is not one of 0, 1, -1, +1"},
        {"1.0 1:1\n", "x:1: label \"1.0\" is not one of 0, 1, -1, +1"},
        {"1:1\n", "x:1: label \"1:1\" is not one of 0, 1, -1, +1"},
        {"nan 1:1\n", "x:1: label \"nan\" is not one of 0, 1, -1, +1"},
        {"1 1:1\n\n# c\nyes\n",
         "x:4: label \"yes\" is not one of 0, 1, -1, +1"},
        {"1 7\n", "x:1: \"7\" is not of the form index:value"},
        {"1 :1\n",
         "x:1: index \"\" is not a whole number from 0 to 4294967294"},
        {"1 -1:1\n",
         "x:1: index \"-1\" is not a whole number from 0 to 4294967294"},
        {"1 1.5:1\n",
         "x:1: index \"1.5\" is not a whole number from 0 to 4294967294"},
        {"1 a:1\n",
         "x:1: index \"a\" is not a whole number from 0 to 4294967294"},
        {"1 4294967295:1\n", "x:1: index \"4294967295\" is not a whole number "
                             "from 0 to 4294967294"},
        {"1 99999999999999999999:1\n",
         "x:1: index \"99999999999999999999\" is not a whole number from 0 to "
         "4294967294"},
        {"1 2:1 2:1\n",
         "x:1: index 2 follows 2; the indices of a line must ascend"},
        {"1 2:1\n1 5:1 3:1\n",
         "x:2: index 3 follows 5; the indices of a line must ascend"},
        {"1 1:\n", "x:1: value \"\" of index 1 is not a finite number of type "
                   "f32"},
        {"1 1:nan\n", "x:1: value \"nan\" of index 1 is not a finite number of "
                      "type f32"},
        {"1 1:-inf\n", "x:1: value \"-inf\" of index 1 is not a finite number "
                       "of type f32"},
        {"1 1:1e39\n", "x:1: value \"1e39\" of index 1 is not a finite number "
                       "of type f32"},
        {"1 1:1e999\n", "x:1: value \"1e999\" of index 1 is not a finite "
                        "number of type f32"},
        {"1 1:0x10\n", "x:1: value \"0x10\" of index 1 is not a finite number "
                       "of type f32"},
        {"1 1:1,5\n", "x:1: value \"1,5\" of index 1 is not a finite number of "
                      "type f32"},
        {"1 1:1:1\n", "x:1: value \"1:1\" of index 1 is not a finite number of "
                      "type f32"},
        {"1 1:--1\n", "x:1: value \"--1\" of index 1 is not a finite number of "
                      "type f32"},
        {"1 qid:x 1:1\n", "x:1: qid \"x\" is not a whole number"},
        {"1 \x01\n", "x:1: a byte behind \"\" is no printable ASCII character; "
                     "this is no libsvm text"},
        {"1 1:1\xc3\xa9\n", "x:1: a byte behind \"1:1\" is no printable ASCII "
                            "character; this is no libsvm text"},
        {"1 1:11111111111111111111111111111111111111111111111111111111111111\n",
         "x:1: word \"1:11111111111111...\" is longer than 63 bytes"},
    };

    for (size_t i = 0; i < N_OF(cases); i++) {
        expect_error(cases[i].bytes, cases[i].text);
    }
    expect_bytes("1 1:1\n1 \0 2:1\n", 14,
                 "x:2: a byte behind \"\" is no printable ASCII character; "
                 "this is no libsvm text");
}

Test(libsvm, others_lines_are_checked_too)
{
    const lr_slice_t first = {
        .part = 0, .n_parts = 2, .index_max = LR_INDEX_MAX};
    lr_samples_t samples = {0};
    psd_error_t *err = psd_error_new();

    cr_assert_eq(read_bytes("1 1:1\n1 x\n", 10, &first, &samples, err),
                 PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err),
                     "x:2: \"x\" is not of the form index:value");
    psd_error_destroy(&err);
}

Test(libsvm, an_index_above_the_limit_is_refused)
{
    const lr_slice_t small = {.n_parts = 1, .index_max = 9};
    lr_samples_t samples = {0};
    psd_error_t *err = psd_error_new();

    cr_assert_eq(read_bytes("1 9:1 10:1\n", 11, &small, &samples, err),
                 PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err),
                     "x:1: index \"10\" is not a whole number from 0 to 9");
    psd_error_destroy(&err);
}

Test(libsvm, a_file_that_cannot_be_read_is_named)
{
    lr_samples_t samples = {0};
    psd_error_t *err = psd_error_new();

    cr_assert_eq(lr_libsvm_load("/no/such/file", &ALL, &samples, err), PSD_IO);
    cr_assert_str_eq(psd_error_text(err),
                     "open /no/such/file: No such file or directory");
    psd_error_clear(err);
    cr_assert_eq(lr_libsvm_load("/", &ALL, &samples, err), PSD_IO);
    cr_assert_str_eq(psd_error_text(err), "read /: Is a directory");
    psd_error_destroy(&err);
}
