/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/state/invites.h: tokens for nodes. */
#include "server/state/invites.h"

#include <criterion/criterion.h>
#include <stdio.h>

static ps_invites_t invites;

static const char *key(unsigned i)
{
    static char text[PS_PUBLIC_KEY_SIZE + 1];

    (void)snprintf(text, sizeof text, "%040u", i);
    return text;
}

Test(invites, a_token_is_found_by_its_key_with_what_became_of_it)
{
    const ps_invite_t *found = NULL;

    cr_assert_null(ps_invites_find(&invites, key(1)));
    cr_assert_null(ps_invites_find(&invites, ""));
    ps_invites_add(&invites, key(1), "b", 100);
    cr_assert_null(ps_invites_find(&invites, ""));
    cr_assert_null(ps_invites_find(&invites, key(2)));
    found = ps_invites_find(&invites, key(1));
    cr_assert_not_null(found);
    cr_assert_str_eq(found->node, "b");
    cr_assert_eq(found->until_ms, 100);
    cr_assert_str_empty(found->taken);
    ps_invites_take(&invites, found, key(7));
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->taken, key(7));
    ps_invites_add(&invites, key(1), "c", 900); /* a repetition, or another's guess */
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->node, "b");
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->taken, key(7));
}

Test(invites, the_newest_for_a_node_counts)
{
    ps_invites_add(&invites, key(1), "b", 100);
    ps_invites_add(&invites, key(2), "c", 100);
    ps_invites_add(&invites, key(3), "b", 200);
    cr_assert_eq(ps_invites_find(&invites, key(1))->until_ms, 0);
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 100);
    cr_assert_eq(ps_invites_find(&invites, key(3))->until_ms, 200);
    ps_invites_drop(&invites, "c");
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 0);
}

Test(invites, the_oldest_makes_room)
{
    for (unsigned i = 1; i <= PS_INVITES_MAX + 1; i++) {
        char node[16];

        (void)snprintf(node, sizeof node, "n%u", i);
        ps_invites_add(&invites, key(i), node, 100);
    }
    cr_assert_null(ps_invites_find(&invites, key(1)));
    cr_assert_not_null(ps_invites_find(&invites, key(2)));
    cr_assert_str_eq(ps_invites_find(&invites, key(PS_INVITES_MAX + 1))->node, "n65");
}
