/* SPDX-License-Identifier: Apache-2.0 */
/* psd/status.h: psd_error, why a call failed. */
#include "psd/status.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define TEXT_MAX 1023 /* bytes of an error's text */

static psd_error_t *err;

static void make_error(void)
{
    err = psd_error_new();
    cr_assert_not_null(err);
}

static void drop_error(void)
{
    psd_error_destroy(&err);
    cr_assert_null(err);
}

TestSuite(error, .init = make_error, .fini = drop_error);

Test(error, is_empty_at_first)
{
    cr_assert_eq(psd_error_status(err), PSD_OK);
    cr_assert_str_eq(psd_error_text(err), "");
}

Test(error, set_returns_the_status_and_keeps_the_text)
{
    psd_status_t rc = psd_error_set(err, PSD_SHAPE, "row %d has %s", 7, "four");

    cr_assert_eq(rc, PSD_SHAPE);
    cr_assert_eq(psd_error_status(err), PSD_SHAPE);
    cr_assert_str_eq(psd_error_text(err), "row 7 has four");
}

Test(error, first_cause_wins_but_the_new_status_is_returned)
{
    cr_assert_eq(psd_error_set(err, PSD_SHAPE, "first"), PSD_SHAPE);
    cr_assert_eq(psd_error_set(err, PSD_IO, "second"), PSD_IO);
    cr_assert_eq(psd_error_status(err), PSD_SHAPE);
    cr_assert_str_eq(psd_error_text(err), "first");
}

Test(error, wrap_puts_context_in_front)
{
    (void)psd_error_set(err, PSD_SHAPE, "row 7 has 4 floats");
    cr_assert_eq(psd_error_wrap(err, PSD_SHAPE, "push to table %d", 3), PSD_SHAPE);
    cr_assert_eq(psd_error_wrap(err, PSD_SHAPE, "worker 1"), PSD_SHAPE);
    cr_assert_eq(psd_error_status(err), PSD_SHAPE);
    cr_assert_str_eq(psd_error_text(err), "worker 1: push to table 3: row 7 has 4 floats");
}

Test(error, wrap_keeps_the_first_status_and_returns_the_new_one)
{
    (void)psd_error_set(err, PSD_SHAPE, "short");
    cr_assert_eq(psd_error_wrap(err, PSD_FAILED, "push"), PSD_FAILED);
    cr_assert_eq(psd_error_status(err), PSD_SHAPE);
}

Test(error, wrap_of_an_empty_error_takes_the_text_of_the_status)
{
    cr_assert_eq(psd_error_wrap(err, PSD_IO, "open log"), PSD_IO);
    cr_assert_eq(psd_error_status(err), PSD_IO);
    cr_assert_str_eq(psd_error_text(err), "open log: operating system call failed");
}

Test(error, ok_is_no_error)
{
    cr_assert_eq(psd_error_set(err, PSD_OK, "x"), PSD_OK);
    cr_assert_eq(psd_error_wrap(err, PSD_OK, "y"), PSD_OK);
    cr_assert_eq(psd_error_status(err), PSD_OK);
    cr_assert_str_eq(psd_error_text(err), "");
}

Test(error, clear_makes_room_for_the_next_call)
{
    (void)psd_error_set(err, PSD_SHAPE, "first");
    psd_error_clear(err);
    cr_assert_eq(psd_error_status(err), PSD_OK);
    cr_assert_str_eq(psd_error_text(err), "");
    (void)psd_error_set(err, PSD_IO, "second");
    cr_assert_eq(psd_error_status(err), PSD_IO);
    cr_assert_str_eq(psd_error_text(err), "second");
}

Test(error, null_is_taken_everywhere)
{
    psd_error_t *none = NULL;

    cr_assert_eq(psd_error_set(NULL, PSD_IO, "x"), PSD_IO);
    cr_assert_eq(psd_error_wrap(NULL, PSD_IO, "x"), PSD_IO);
    cr_assert_eq(psd_error_status(NULL), PSD_OK);
    cr_assert_str_eq(psd_error_text(NULL), "");
    psd_error_clear(NULL);
    psd_error_destroy(NULL);
    psd_error_destroy(&none);
}

Test(error, long_text_is_cut_and_says_so)
{
    char text[2 * TEXT_MAX];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    (void)psd_error_set(err, PSD_IO, "%s", text);
    cr_assert_eq(strlen(psd_error_text(err)), TEXT_MAX);
    cr_assert_str_eq(psd_error_text(err) + TEXT_MAX - 4, "x...");
}

Test(error, a_cut_does_not_halve_a_utf8_character)
{
    char text[TEXT_MAX + 20];
    const char *cut = NULL;

    /* Three-byte characters from offset 0: 1020 = TEXT_MAX - 3 is a border,
     * so shift them by one. */
    text[0] = 'x';
    for (size_t i = 1; i + 3 < sizeof text; i += 3) {
        memcpy(text + i, "\xE2\x82\xAC", 4);
    }
    (void)psd_error_set(err, PSD_IO, "%s", text);
    cut = strstr(psd_error_text(err), "...");
    cr_assert_not_null(cut);
    cr_assert_eq((cut - psd_error_text(err) - 1) % 3, 0);
}

Test(error, context_of_any_length_fits)
{
    char context[TEXT_MAX + 20];

    for (size_t length = TEXT_MAX - 8; length < sizeof context; length++) {
        memset(context, 'c', length);
        context[length] = '\0';
        psd_error_clear(err);
        (void)psd_error_set(err, PSD_IO, "cause");
        cr_assert_eq(psd_error_wrap(err, PSD_IO, "%s", context), PSD_IO);
        cr_assert_leq(strlen(psd_error_text(err)), TEXT_MAX);
        cr_assert_eq(strncmp(psd_error_text(err), "ccc", 3), 0);
        if (length + 2 + strlen("cause") <= TEXT_MAX) {
            cr_assert_str_eq(psd_error_text(err) + length, ": cause");
        } else {
            cr_assert_str_eq(psd_error_text(err) + strlen(psd_error_text(err)) - 3, "...");
        }
    }
}

Test(error, wrapping_for_ever_stays_inside)
{
    (void)psd_error_set(err, PSD_IO, "cause");
    for (int i = 0; i < 500; i++) {
        (void)psd_error_wrap(err, PSD_IO, "layer %d", i);
        cr_assert_leq(strlen(psd_error_text(err)), TEXT_MAX);
    }
    cr_assert_eq(strncmp(psd_error_text(err), "layer 499: layer 498: ", 22), 0);
}

Test(error, new_without_memory_gives_null)
{
    psd_error_t *none = NULL;

    fail_alloc_at(0);
    none = psd_error_new();
    cr_assert_null(none);
    cr_assert(fail_alloc_happened());
}
