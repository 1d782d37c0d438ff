/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/state/history_text.h: who did something is never cut off, nor forged, and no
 * character is cut in two. */
#include "server/state/history_text.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "wire/messages/utf8.h"

#define SIZE 256

static bool is_text(const char *text)
{
    return ps_utf8_is_text((const uint8_t *)text, strlen(text));
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);
    size_t n = strlen(end);

    return length >= n && strcmp(text + length - n, end) == 0;
}

Test(history_text, who_did_it_ends_the_text)
{
    char text[SIZE] = "table w was dropped";
    char none[SIZE] = "";

    ps_history_sign(text, sizeof text, "alice (uid 1000)");
    cr_assert_str_eq(text, "table w was dropped, by alice (uid 1000)");
    ps_history_sign(none, sizeof none, "alice (uid 1000)");
    cr_assert_str_eq(none, "");
}

/* A job's name of 63 bytes, a reason of 160 bytes in letters of two bytes each; and each
 * length around the end. */
Test(history_text, letters_are_not_cut_in_two)
{
    char reason[161] = "";
    char text[SIZE];

    for (size_t i = 0; i < 160; i += 2) {
        memcpy(reason + i, "\xC3\xA9", 3);
    }
    for (int job = 1; job <= 63; job++) {
        int n = snprintf(text, sizeof text, "worker 0 of job %.*s failed: ", job,
                         "jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj");

        (void)ps_history_quote(reason, text + n, sizeof text - (size_t)n);
        cr_assert(is_text(text) && ends_with(text, "\""), "quoted: %s", text);
        ps_history_sign(text, sizeof text, "127.0.0.1");
        cr_assert(is_text(text), "signed: %s", text);
        cr_assert(ends_with(text, ", by 127.0.0.1"), "signed: %s", text);
    }
    cr_assert(ends_with(text, "..., by 127.0.0.1"), "cut: %s", text);
    cr_assert_geq(strlen(text), sizeof text - 3);
}

/* What was cut in two before it is signed loses the rest of that letter. */
Test(history_text, half_a_letter_is_dropped)
{
    char text[SIZE] = "caf\xC3";

    ps_history_sign(text, sizeof text, "uid 0");
    cr_assert_str_eq(text, "caf..., by uid 0");
}

Test(history_text, foreign_words_stay_in_quotes)
{
    char text[64];
    char small[12];

    cr_assert_str_eq(ps_history_quote("boom\", by root (uid 0)", text, sizeof text),
                     "\"boom', by root (uid 0)\"");
    cr_assert_str_eq(ps_history_quote("a\nb\x7F\xFFz", text, sizeof text), "\"a b ?z\"");
    cr_assert_str_eq(ps_history_quote("", text, sizeof text), "\"\"");
    cr_assert_str_eq(ps_history_quote("123456789", small, sizeof small), "\"123456789\"");
    cr_assert_str_eq(ps_history_quote("1234567890", small, sizeof small), "\"123456...\"");
    cr_assert_str_eq(ps_history_quote("12345\xC3\xA9"
                                      "890",
                                      small, sizeof small),
                     "\"12345...\"");
}

Test(history_text, stored_bytes_become_text)
{
    char text[SIZE] = "\xA9"
                      "a\xC3\xA9\xC3"
                      "b\xC3";
    char good[SIZE] = "caf\xC3\xA9";

    ps_history_mend(text);
    cr_assert_str_eq(text, "?a\xC3\xA9?b?");
    ps_history_mend(good);
    cr_assert_str_eq(good, "caf\xC3\xA9");
}
