/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/state/invites.h: tokens for nodes. */
#include "server/state/invites.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define NOW 50

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
    cr_assert(ps_invites_add(&invites, key(1), "b", NOW, 100));
    cr_assert_null(ps_invites_find(&invites, ""));
    cr_assert_null(ps_invites_find(&invites, key(2)));
    found = ps_invites_find(&invites, key(1));
    cr_assert_not_null(found);
    cr_assert_str_eq(found->node, "b");
    cr_assert_eq(found->until_ms, 100);
    cr_assert_str_empty(found->taken);
    ps_invites_take(&invites, found, key(7));
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->taken, key(7));
    cr_assert(
        ps_invites_add(&invites, key(1), "c", NOW, 900)); /* a repetition, or another's guess */
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->node, "b");
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->taken, key(7));
}

Test(invites, the_newest_for_a_node_counts)
{
    cr_assert(ps_invites_add(&invites, key(1), "b", NOW, 100));
    cr_assert(ps_invites_add(&invites, key(2), "c", NOW, 100));
    cr_assert(ps_invites_add(&invites, key(3), "b", NOW, 200));
    cr_assert_eq(ps_invites_find(&invites, key(1))->until_ms, 0);
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 100);
    cr_assert_eq(ps_invites_find(&invites, key(3))->until_ms, 200);
    ps_invites_drop(&invites, "c");
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 0);
}

/* Those that count stay; the oldest that does not makes room. */
Test(invites, what_is_used_or_expired_makes_room)
{
    for (unsigned i = 1; i <= PS_INVITES_MAX; i++) {
        char node[16];

        (void)snprintf(node, sizeof node, "n%u", i);
        cr_assert(ps_invites_add(&invites, key(i), node, NOW, 100 + i));
    }
    cr_assert_not(ps_invites_add(&invites, key(65), "n65", NOW, 900), "all count");
    cr_assert_not_null(ps_invites_find(&invites, key(1)));
    cr_assert_null(ps_invites_find(&invites, key(65)));
    ps_invites_take(&invites, ps_invites_find(&invites, key(9)), key(70));
    cr_assert(ps_invites_add(&invites, key(66), "n66", NOW, 900));
    cr_assert_null(ps_invites_find(&invites, key(9)));
    cr_assert(ps_invites_add(&invites, key(67), "n30", NOW, 900), "instead of the one before");
    cr_assert_null(ps_invites_find(&invites, key(30)));
    cr_assert(ps_invites_add(&invites, key(68), "n68", 102, 900), "1 and 2 have expired");
    cr_assert(ps_invites_add(&invites, key(69), "n69", 102, 900));
    cr_assert_not(ps_invites_add(&invites, key(71), "n71", 102, 900));
    cr_assert_null(ps_invites_find(&invites, key(1)));
    cr_assert_null(ps_invites_find(&invites, key(2)));
    cr_assert_not_null(ps_invites_find(&invites, key(3)));
}
