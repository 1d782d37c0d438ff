/* SPDX-License-Identifier: Apache-2.0 */
/* examples/common/samples/model.h: the model's file, there and back, and what is
 * refused.
 */
#include "common/samples/model.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/temp_dir.h"

static void in_file(const temp_dir_t *dir, char ret_path[PATH_MAX + 8])
{
    (void)snprintf(ret_path, PATH_MAX + 8, "%s/model", dir->path);
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    cr_assert_not_null(file);
    cr_assert_geq(fputs(text, file), 0);
    cr_assert_eq(fclose(file), 0);
}

Test(model, comes_back_to_the_bit)
{
    temp_dir_t dir;
    char path[PATH_MAX + 8];
    ex_model_t model = {0};
    ex_model_t again = {0};

    cr_assert(temp_dir_make(&dir));
    in_file(&dir, path);
    cr_assert_eq(ex_model_add(&model, 0, 1.0F / 3, NULL), PSD_OK);
    cr_assert_eq(ex_model_add(&model, 1, 0, NULL), PSD_OK);
    cr_assert_eq(ex_model_add(&model, 1ULL << 40, -1e-38F, NULL), PSD_OK);
    cr_assert_eq(model.n, 2, "zero is left out");
    cr_assert_eq(ex_model_save(&model, path, NULL), PSD_OK);
    cr_assert_eq(ex_model_load(&again, path, NULL), PSD_OK);
    cr_assert_eq(again.n, 2);
    cr_assert_arr_eq(again.rows, model.rows, 2 * sizeof(uint64_t));
    cr_assert_arr_eq(again.weights, model.weights, 2 * sizeof(float));
    ex_model_done(&model);
    ex_model_done(&again);
    temp_dir_drop(&dir);
}

Test(model, who_writes_by_hand_counts_nothing)
{
    temp_dir_t dir;
    char path[PATH_MAX + 8];
    ex_model_t model = {0};

    cr_assert(temp_dir_make(&dir));
    in_file(&dir, path);
    write_text(path, "# my weights\n5 1 # one\n7 -2");
    cr_assert_eq(ex_model_load(&model, path, NULL), PSD_OK);
    cr_assert_eq(model.n, 2);
    ex_model_done(&model);
    write_text(path, "# 0 weights\n");
    cr_assert_eq(ex_model_load(&model, path, NULL), PSD_OK);
    cr_assert_eq(model.n, 0);
    ex_model_done(&model);
    write_text(path, "# 1 weights\n5 1\n# end");
    cr_assert_eq(ex_model_load(&model, path, NULL), PSD_OK);
    cr_assert_eq(model.n, 1);
    ex_model_done(&model);
    temp_dir_drop(&dir);
}

Test(model, picks_the_weights_of_rows)
{
    ex_model_t model = {0};
    float weights[4] = {9, 9, 9, 9};

    cr_assert_eq(ex_model_add(&model, 3, 1, NULL), PSD_OK);
    cr_assert_eq(ex_model_add(&model, 7, -2, NULL), PSD_OK);
    ex_model_pick(&model, (uint64_t[]){0, 3, 5, 7}, 4, weights);
    cr_assert_arr_eq(weights, ((float[]){0, 1, 0, -2}), sizeof(weights));
    ex_model_pick(&model, (uint64_t[]){8}, 1, weights);
    cr_assert_eq(weights[0], 0);
    cr_assert_eq(ex_model_norm2(&model), 5);
    ex_model_done(&model);
}

Test(model, a_bad_line_is_named)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"1 0.5\nx 1\n", ":2: is not \"index value\""},
        {"1\n", ":1: is not \"index value\""},
        {"1 nan\n", ":1: is not \"index value\""},
        {"1 1e39\n", ":1: is not \"index value\""},
        {"-1 1\n", ":1: is not \"index value\""},
        {"1 1 1\n", ":1: is not \"index value\""},
        {"5 1\n# c\n5 1\n", ":3: index 5 follows 5"},
        {"", ": is empty"},
        {"# 2 weights\n5 1\n", ": is cut short: 1 weights of 2"},
        {"# 2 weights\n5 1\n7 0.1", ": is cut short: 2 weights of 2 were found, the last without"},
        {"# 2 weights\n", ": is cut short: 0 weights of 2"},
        {"# 1 weights\n5 1\n7 1\n", ": 2 weights of 1 "},
    };
    temp_dir_t dir;
    char path[PATH_MAX + 8];

    cr_assert(temp_dir_make(&dir));
    in_file(&dir, path);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ex_model_t model = {0};
        psd_error_t *err = psd_error_new();

        write_text(path, cases[i].text);
        cr_expect_eq(ex_model_load(&model, path, err), PSD_INVALID);
        cr_expect_not_null(strstr(psd_error_text(err), cases[i].why), "%s", psd_error_text(err));
        cr_expect_eq(model.n, 0);
        psd_error_destroy(&err);
    }
    temp_dir_drop(&dir);
}

Test(model, a_place_that_cannot_be_written_is_named)
{
    ex_model_t model = {0};
    psd_error_t *err = psd_error_new();

    cr_assert_eq(ex_model_save(&model, "/no/such/place", err), PSD_IO);
    cr_assert_str_eq(psd_error_text(err), "write /no/such/place.part: No such file or directory");
    psd_error_destroy(&err);
}
