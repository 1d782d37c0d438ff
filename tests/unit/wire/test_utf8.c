/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/utf8.h: which bytes are text. */
#include "wire/messages/utf8.h"

#include <criterion/criterion.h>
#include <string.h>

static bool is_text(const char *text)
{
    return ps_utf8_is_text((const uint8_t *)text, strlen(text));
}

Test(utf8, first_and_last_of_each_length_are_text)
{
    cr_assert(ps_utf8_is_text(NULL, 0));
    cr_assert(ps_utf8_is_text((const uint8_t *)"\0\x7F", 2));
    cr_assert(is_text("\xC2\x80\xDF\xBF"));
    cr_assert(is_text("\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF"));
    cr_assert(is_text("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));
}

Test(utf8, overlong_forms_are_not)
{
    cr_assert_not(is_text("\xC0\x80"));
    cr_assert_not(is_text("\xC1\xBF"));
    cr_assert_not(is_text("\xE0\x9F\xBF"));
    cr_assert_not(is_text("\xF0\x8F\xBF\xBF"));
}

Test(utf8, surrogates_and_what_lies_above_the_last_are_not)
{
    cr_assert_not(is_text("\xED\xA0\x80"));
    cr_assert_not(is_text("\xED\xBF\xBF"));
    cr_assert_not(is_text("\xF4\x90\x80\x80"));
    cr_assert_not(is_text("\xF5\x80\x80\x80"));
    cr_assert_not(is_text("\xFF"));
}

Test(utf8, half_characters_are_not)
{
    cr_assert_not(is_text("\x80"));
    cr_assert_not(is_text("a\xC3"));
    cr_assert_not(is_text("\xC3"
                          "a"));
    cr_assert_not(is_text("\xE2\x82"));
    cr_assert_not(is_text("\xE2\x82"
                          "a"));
    cr_assert_not(is_text("\xF0\x9F\x98"));
    cr_assert_not(is_text("\xF0\x9F\x98"
                          "a"));
}

Test(utf8, character_gives_its_length)
{
    const uint8_t *euro = (const uint8_t *)"\xE2\x82\xAC.";

    cr_assert_eq(ps_utf8_character(euro, 4), 3);
    cr_assert_eq(ps_utf8_character(euro, 2), 0);
    cr_assert_eq(ps_utf8_character(euro + 3, 1), 1);
}
