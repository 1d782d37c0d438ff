/* SPDX-License-Identifier: Apache-2.0 */
/* examples/common/job/outer.h: when what is pushed and pulled, and the mix. */
#include "common/job/outer.h"

#include <criterion/criterion.h>

static ex_outer_t make(uint32_t every, uint32_t fragments, uint32_t overlap, size_t n,
                       const float *parameters)
{
    const ex_outer_rule_t rule = {.every = every, .fragments = fragments, .overlap = overlap};
    ex_outer_t self;

    cr_assert_eq(ex_outer_init(&self, &rule, n, parameters, NULL), PSD_OK);
    return self;
}

Test(outer, a_push_is_the_way_back)
{
    float local[3] = {1, 2, 3};
    float deltas[3] = {0};
    const float pulled[3] = {10, 20, 30};
    ex_outer_t self = make(2, 1, 0, 3, local);

    cr_assert_eq(ex_outer_left(&self), 0);
    cr_assert_not(ex_outer_step(&self));
    cr_assert_not(ex_outer_pulls(&self));
    cr_assert_eq(ex_outer_left(&self), 1);
    local[0] = 0.5F;
    local[2] = 5;
    cr_assert(ex_outer_step(&self));
    cr_assert_not(ex_outer_pulls(&self), "nothing is pushed");
    ex_outer_push(&self, local, deltas);
    cr_assert_eq(deltas[0], 0.5F);
    cr_assert_eq(deltas[1], 0);
    cr_assert_eq(deltas[2], -2);
    cr_assert(ex_outer_pulls(&self));
    ex_outer_mix(&self, pulled, local);
    cr_assert_arr_eq(local, pulled, sizeof local);
    cr_assert_eq(ex_outer_left(&self), 0, "no step since");
    cr_assert_not(ex_outer_pulls(&self));
    local[1] = 21;
    ex_outer_push(&self, local, deltas);
    cr_assert_eq(deltas[0], 0);
    cr_assert_eq(deltas[1], -1);
    ex_outer_done(&self);
}

Test(outer, what_changes_meanwhile_is_kept)
{
    float local[1] = {1};
    float deltas[1] = {0};
    const float pulled[1] = {100};
    ex_outer_t self = make(3, 1, 2, 1, local);

    for (int i = 0; i < 3; i++) {
        local[0] += 1;
        cr_assert_eq(ex_outer_step(&self), i == 2);
    }
    ex_outer_push(&self, local, deltas);
    cr_assert_eq(deltas[0], -3);
    cr_assert_not(ex_outer_pulls(&self));
    for (int i = 0; i < 2; i++) {
        local[0] += 4;
        cr_assert_not(ex_outer_step(&self));
        cr_assert_eq(ex_outer_pulls(&self), i == 1);
    }
    ex_outer_mix(&self, pulled, local);
    cr_assert_eq(local[0], 108);
    local[0] += 1;
    cr_assert(ex_outer_step(&self));
    ex_outer_push(&self, local, deltas);
    cr_assert_eq(deltas[0], -9, "the 8 of the meantime are in the next push");
    ex_outer_done(&self);
}

Test(outer, fragments_take_turns)
{
    static const size_t firsts[] = {0, 2, 4, 0};
    static const size_t ns[] = {2, 2, 3, 2};
    float local[7] = {0};
    float values[7] = {0};
    ex_outer_t self = make(1, 3, 0, 7, local);

    for (int i = 0; i < 4; i++) {
        size_t first = 9;
        size_t n = 9;

        cr_assert(ex_outer_step(&self));
        ex_outer_push(&self, local, values);
        ex_outer_fragment(&self, &first, &n);
        cr_assert_eq(first, firsts[i]);
        cr_assert_eq(n, ns[i]);
        values[0] = (float)(i + 1);
        ex_outer_mix(&self, values, local);
        cr_assert_eq(local[first], i + 1);
    }
    cr_assert_eq(local[2], 2, "other fragments stay");
    cr_assert_eq(local[4], 3);
    ex_outer_done(&self);
}

static void refused(uint32_t every, uint32_t fragments, uint32_t overlap, const char *text)
{
    const ex_outer_rule_t rule = {.every = every, .fragments = fragments, .overlap = overlap};
    const float parameters[4] = {0};
    psd_error_t *err = psd_error_new();
    ex_outer_t self;

    cr_assert_eq(ex_outer_init(&self, &rule, 4, parameters, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), text);
    psd_error_destroy(&err);
}

Test(outer, what_does_not_fit_is_refused)
{
    refused(4, 1, 4,
            "an overlap of 4 inner steps is not allowed with outer steps every 4; less is");
    refused(4, 5, 0, "5 fragments are not allowed; there are 4 parameters");
}
