/* SPDX-License-Identifier: Apache-2.0 */
/* examples/common/samples/load.h: shares, and what is refused. */
#include "common/samples/load.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "support/temp_dir.h"

#define N_LINES 1000

static temp_dir_t directory;
static char path[PATH_MAX + 8];

static void begin(void)
{
    cr_assert(temp_dir_make(&directory));
    (void)snprintf(path, sizeof(path), "%s/data", directory.path);
}

static void end(void)
{
    temp_dir_drop(&directory);
}

static void write_file(const char *text)
{
    FILE *stream = fopen(path, "w");

    cr_assert_not_null(stream);
    cr_assert_geq(fputs(text, stream), 0);
    cr_assert_eq(fclose(stream), 0);
}

static psd_status_t load(const ex_load_options_t *options, const ex_share_t *share,
                         ex_samples_t *samples, psd_error_t *err)
{
    return ex_load(path, options, share, samples, err);
}

/* Of N_LINES samples with the value i, each belongs to exactly one share. */
static void check_shares(uint32_t deal, uint32_t n_parts)
{
    const ex_load_options_t options = {.bits = 18, .deal = deal};
    size_t seen[N_LINES + 1] = {0};

    for (uint32_t part = 0; part < n_parts; part++) {
        const ex_share_t share = {.part = part, .n_parts = n_parts, .key_max = UINT64_MAX};
        ex_samples_t samples = {0};

        cr_assert_eq(load(&options, &share, &samples, NULL), PSD_OK);
        for (size_t i = 0; i < samples.n; i++) {
            seen[(size_t)samples.values[samples.starts[i]]]++;
        }
        ex_samples_done(&samples);
    }
    for (size_t i = 1; i <= N_LINES; i++) {
        cr_assert_eq(seen[i], 1, "sample %zu is in %zu shares", i, seen[i]);
    }
}

Test(load, each_sample_is_in_one_share, .init = begin, .fini = end)
{
    static char text[N_LINES * 16];
    size_t n = 0;

    for (int i = 1; i <= N_LINES; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%d 3:%d\n", i % 2, i);
    }
    write_file(text);
    for (uint32_t n_parts = 1; n_parts <= 5; n_parts++) {
        check_shares(EX_DEAL_TURNS, n_parts);
        check_shares(EX_DEAL_BYTES, n_parts);
    }
}

Test(load, labels_become_two_unless_any_is_wanted, .init = begin, .fini = end)
{
    const ex_load_options_t options = {.format = "libsvm", .bits = 18};
    ex_share_t share = {.n_parts = 1, .key_max = 9};
    ex_samples_t samples = {0};

    write_file("0 1:1\n1 1:1\n-1 1:0 2:2\n+1\n");
    cr_assert_eq(load(&options, &share, &samples, NULL), PSD_OK);
    cr_assert_arr_eq(samples.labels, ((float[]){-1, 1, -1, 1}), 4 * sizeof(float));
    cr_assert_eq(samples.n_entries, 3, "zeros are left out");
    ex_samples_done(&samples);
    share.any_label = true;
    write_file("0.5 1:1\n0 1:1\n");
    cr_assert_eq(load(&options, &share, &samples, NULL), PSD_OK);
    cr_assert_arr_eq(samples.labels, ((float[]){0.5F, 0}), 2 * sizeof(float));
    ex_samples_done(&samples);
}

Test(load, what_is_refused_is_named, .init = begin, .fini = end)
{
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"1 1:1\n2 1:1\n", "data: sample 2: label 2 is not one of 0, 1, -1, +1"},
        {"1 1:1\n0 10:1\n", "data: sample 2: key 10 is not a whole number from 0 to 9"},
        {"1 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n"
         "0 1:1\n0 1:1\n0 1:1\n0 1:x\n",
         "data:12: "},
    };
    const ex_load_options_t options = EX_LOAD_DEFAULTS;
    const ex_share_t share = {.n_parts = 1, .key_max = 9};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        psd_error_t *err = psd_error_new();
        ex_samples_t samples = {0};

        write_file(cases[i].text);
        cr_assert_eq(load(&options, &share, &samples, err), PSD_INVALID);
        cr_assert_not_null(strstr(psd_error_text(err), cases[i].error), "%s", psd_error_text(err));
        cr_assert_eq(samples.n, 0);
        psd_error_destroy(&err);
    }
}

Test(load, bad_lines_are_left_out_where_that_is_asked_for, .init = begin, .fini = end)
{
    const ex_load_options_t options = {.format = "libsvm", .bits = 18, .skip_bad = true};
    const ex_share_t share = {.n_parts = 1, .key_max = 9};
    ex_samples_t samples = {0};

    write_file("1 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n0 1:1\n"
               "0 1:1\n0 1:1\n0 1:1\n0 1:x\n");
    cr_assert_eq(load(&options, &share, &samples, NULL), PSD_OK);
    cr_assert_eq(samples.n, 11);
    ex_samples_done(&samples);
}

Test(load, samples_that_are_not_allowed_are_left_out_where_that_is_asked_for, .init = begin,
     .fini = end)
{
    const ex_load_options_t options = {.format = "libsvm", .bits = 18, .skip_bad = true};
    ex_share_t share = {.n_parts = 1, .key_max = 9};
    psd_error_t *err = psd_error_new();
    ex_samples_t samples = {0};

    write_file("1 1:1\n2 1:1\n0 3:1 10:1\n0 9:4\n");
    cr_assert_eq(load(&options, &share, &samples, err), PSD_OK);
    cr_assert_arr_eq(samples.labels, ((float[]){1, -1}), 2 * sizeof(float));
    cr_assert_eq(samples.n, 2);
    cr_assert_eq(samples.n_entries, 2, "nothing of one that was left out");
    ex_samples_done(&samples);
    write_file("3 1:1\n4 1:1\n");
    cr_assert_eq(load(&options, &share, &samples, err), PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), "none of 2 samples can be used"), "%s",
                       psd_error_text(err));
    share.n_parts = 2;
    write_file("3 1:1\n1 1:1\n");
    cr_assert_eq(load(&options, &share, &samples, err), PSD_INVALID);
    psd_error_destroy(&err);
}
