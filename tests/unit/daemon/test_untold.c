/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/untold.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

typedef struct ear {
    uint32_t heard[8];
    size_t n;
    uint32_t deaf_to; /* a table that cannot be told */
} ear_t;

static psd_status_t
tell(void *context, uint32_t table, psd_error_t *err)
{
    ear_t *ear = context;

    if (table == ear->deaf_to) {
        return psd_error_set(err, PSD_NOMEM, "no memory to tell %u", table);
    }
    ear->heard[ear->n++] = table;
    return PSD_OK;
}

static void
add(ps_untold_t *self, uint32_t table)
{
    cr_assert(ps_untold_reserve(self));
    ps_untold_add(self, table);
}

Test(untold, what_could_not_be_told_is_told_again)
{
    PSD_AUTO(ps_untold_done) ps_untold_t untold = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ear_t ear = {.deaf_to = 5};

    add(&untold, 4);
    add(&untold, 5);
    add(&untold, 6);
    cr_assert_eq(ps_untold_tell(&untold, tell, &ear, err), PSD_NOMEM);
    cr_expect_str_eq(psd_error_text(err), "no memory to tell 5");
    cr_assert_eq(ear.n, 1);
    cr_assert_eq(untold.n, 2);
    ear.deaf_to = 0;
    cr_assert_eq(ps_untold_tell(&untold, tell, &ear, NULL), PSD_OK);
    cr_assert_eq(ear.n, 3);
    cr_expect_eq(ear.heard[0], 4);
    cr_expect_eq(ear.heard[1], 5);
    cr_expect_eq(ear.heard[2], 6);
    cr_assert_eq(ps_untold_tell(&untold, tell, &ear, NULL), PSD_OK);
    cr_expect_eq(ear.n, 3, "each is told once");
}

Test(untold, a_place_that_was_taken_needs_no_memory)
{
    PSD_AUTO(ps_untold_done) ps_untold_t untold = {0};
    ear_t ear = {.deaf_to = 0};

    fail_alloc_at(0);
    cr_expect_not(ps_untold_reserve(&untold));
    fail_alloc_off();
    cr_assert(ps_untold_reserve(&untold));
    fail_alloc_at(0);
    ps_untold_add(&untold, 3);
    cr_expect_eq(ps_untold_tell(&untold, tell, &ear, NULL), PSD_OK);
    fail_alloc_off();
    cr_expect_eq(ear.n, 1);
}
