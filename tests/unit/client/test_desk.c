/* SPDX-License-Identifier: Apache-2.0 */
/* client/connection/desk.h: what a client that does not listen is told later. */
#include "client/connection/desk.h"

#include <criterion/criterion.h>

#define SOME 100

/* Reads all; how many there were of that kind. */
static size_t count(ps_desk_t *desk, ps_relay_news_t kind)
{
    ps_desk_news_t news[7];
    size_t n_found = 0;
    size_t n = 7;

    while (n == 7) {
        n = ps_desk_hear(desk, news, 7);
        for (size_t i = 0; i < n; i++) {
            n_found += news[i].news == kind ? 1 : 0;
        }
    }
    return n_found;
}

Test(desk, signs_of_life_do_not_pile_up_and_ends_are_kept)
{
    ps_desk_t *desk = NULL;

    cr_assert_eq(ps_desk_new("tcp://h:1", &desk, NULL), PSD_OK);
    for (uint64_t i = 0; i < PS_DESK_SIGNS_MAX + SOME; i++) {
        ps_desk_tell(desk, i, PS_RELAY_WAITS);
    }
    for (uint64_t i = 0; i < SOME; i++) {
        ps_desk_tell(desk, i, PS_RELAY_RETURNED);
    }
    cr_assert_eq(count(desk, PS_RELAY_RETURNED), SOME);
    for (uint64_t i = 0; i < PS_DESK_SIGNS_MAX + SOME; i++) {
        ps_desk_tell(desk, i, PS_RELAY_WAITS);
    }
    cr_assert_eq(count(desk, PS_RELAY_WAITS), PS_DESK_SIGNS_MAX);
    ps_desk_release(&desk);
}

Test(desk, news_come_in_order)
{
    ps_desk_news_t news[3];
    ps_desk_t *desk = NULL;

    cr_assert_eq(ps_desk_new("tcp://h:1", &desk, NULL), PSD_OK);
    for (uint64_t i = 0; i < 4; i++) {
        ps_desk_tell(desk, i, PS_RELAY_DONE);
    }
    cr_assert_eq(ps_desk_hear(desk, news, 3), 3);
    cr_assert_eq(news[2].request, 2);
    ps_desk_tell(desk, 4, PS_RELAY_WAITS);
    cr_assert_eq(ps_desk_hear(desk, news, 3), 2);
    cr_assert_eq(news[0].request, 3);
    cr_assert_eq(news[1].request, 4);
    cr_assert_eq(news[1].news, PS_RELAY_WAITS);
    cr_assert_eq(ps_desk_hear(desk, news, 3), 0);
    ps_desk_release(&desk);
}
