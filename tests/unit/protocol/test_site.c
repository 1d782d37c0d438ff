/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/overlay/site.h: what PSD_SITE says. */
#include "protocol/overlay/site.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static void check_site(const char *text, uint32_t rank, const char *wanted)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_site_t site = {.name = "?"};

    cr_assert_eq(ps_site_find(text, "PSD_SITE", rank, &site, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_str_eq(site.name, wanted, "rank %u of %s", rank, text);
}

Test(site, one_name_is_of_every_rank)
{
    check_site("east", 0, "east");
    check_site("east", 4095, "east");
    check_site("rack_7.a-b", 3, "rack_7.a-b");
    check_site(NULL, 0, "");
}

Test(site, names_by_rank)
{
    static const char *const TEXTS[] = {"east:2,west:3", "east:2,west", "east:2,west:1"};

    for (size_t i = 0; i < 3; i++) {
        check_site(TEXTS[i], 0, "east");
        check_site(TEXTS[i], 1, "east");
        check_site(TEXTS[i], 2, "west");
        check_site(TEXTS[i], 4, "west");
        check_site(TEXTS[i], 4095, "west");
    }
    check_site("a:1,b:4095,a:1", 4095, "b");
    check_site("a:1,b:1,a:1", 0, "a");
    check_site("a:1,b:1,a:1", 1, "b");
    check_site("a:1,b:1,a:1", 2, "a");
    check_site("a:4096,b", 4095, "a");
}

Test(site, the_longest_name_is_a_name)
{
    char text[PS_NAME_MAX + 8];

    memset(text, 'x', sizeof text);
    text[PS_NAME_MAX] = '\0';
    check_site(text, 0, text);
}

static void check_refused(const char *text, const char *part)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_site_t site = {.name = "?"};
    char wanted[300];

    (void)snprintf(wanted, sizeof wanted,
                   "PSD_SITE is \"%s\": \"%s\" names no site; allowed: NAME, or NAME:N,NAME:N,... "
                   "by rank, with names of letters, digits and \"_.-\", and N from 1 to 4096",
                   text, part);
    cr_assert_eq(ps_site_find(text, "PSD_SITE", 0, &site, err), PSD_INVALID, "%s", text);
    cr_assert_str_eq(psd_error_text(err), wanted);
    cr_assert_str_eq(site.name, "?");
}

Test(site, what_names_none_is_refused)
{
    char text[PS_NAME_MAX + 2];

    check_refused("", "");
    check_refused("a,b:1", "a");
    check_refused("a:0", "a:0");
    check_refused("a:4097", "a:4097");
    check_refused("a:12345", "a:12345");
    check_refused("a:1,", "");
    check_refused("a:1,,b", "");
    check_refused("a:", "a:");
    check_refused("a:b", "a:b");
    check_refused("a:1:1", "a:1:1");
    check_refused(":1", ":1");
    check_refused(".a", ".a");
    check_refused("two words", "two words");
    memset(text, 'x', sizeof text);
    text[PS_NAME_MAX + 1] = '\0';
    check_refused(text, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
}
