/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/state/invites.h: tokens for nodes and clients. */
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

static bool add(unsigned i, const char *name, ps_role_t role, uint64_t now_ms, uint64_t until_ms)
{
    ps_invite_t invite = {.rule.role = role, .until_ms = until_ms};

    (void)snprintf(invite.key, sizeof invite.key, "%s", key(i));
    (void)snprintf(invite.name, sizeof invite.name, "%s", name);
    return ps_invites_add(&invites, &invite, now_ms);
}

static bool has_room(const char *name, ps_role_t role, uint64_t now_ms)
{
    ps_invite_t invite = {.rule.role = role};

    (void)snprintf(invite.name, sizeof invite.name, "%s", name);
    return ps_invites_has_room(&invites, &invite, now_ms);
}

Test(invites, a_token_is_found_by_its_key_with_what_became_of_it)
{
    const ps_invite_t *found = NULL;

    cr_assert_null(ps_invites_find(&invites, key(1)));
    cr_assert_null(ps_invites_find(&invites, ""));
    cr_assert(add(1, "b", PS_ROLE_NODE, NOW, 100));
    cr_assert_null(ps_invites_find(&invites, ""));
    cr_assert_null(ps_invites_find(&invites, key(2)));
    found = ps_invites_find(&invites, key(1));
    cr_assert_not_null(found);
    cr_assert_str_eq(found->name, "b");
    cr_assert_eq(found->until_ms, 100);
    cr_assert_str_empty(found->taken);
    ps_invites_take(&invites, found, key(7));
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->taken, key(7));
    cr_assert(add(1, "c", PS_ROLE_NODE, NOW, 900)); /* a repetition, or another's guess */
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->name, "b");
    cr_assert_str_eq(ps_invites_find(&invites, key(1))->taken, key(7));
}

Test(invites, the_newest_for_a_node_counts)
{
    cr_assert(add(1, "b", PS_ROLE_NODE, NOW, 100));
    cr_assert(add(2, "c", PS_ROLE_NODE, NOW, 100));
    cr_assert(add(3, "b", PS_ROLE_NODE, NOW, 200));
    cr_assert_eq(ps_invites_find(&invites, key(1))->until_ms, 0);
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 100);
    cr_assert_eq(ps_invites_find(&invites, key(3))->until_ms, 200);
    cr_assert_not(ps_invites_drop(&invites, "c", false));
    cr_assert(ps_invites_drop(&invites, "c", true));
    cr_assert(ps_invites_drop(&invites, "c", true)); /* a repetition */
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 0);
}

/* A node and a client may have one name: each has its own token. */
Test(invites, a_node_and_a_client_of_one_name_are_two)
{
    cr_assert(add(1, "b", PS_ROLE_NODE, NOW, 100));
    cr_assert(add(2, "b", PS_ROLE_JOB, NOW, 100));
    cr_assert_eq(ps_invites_find(&invites, key(1))->until_ms, 100);
    cr_assert(ps_invite_is_node(ps_invites_find(&invites, key(1))));
    cr_assert_not(ps_invite_is_node(ps_invites_find(&invites, key(2))));
    cr_assert(ps_invites_drop(&invites, "b", false));
    cr_assert_eq(ps_invites_find(&invites, key(1))->until_ms, 100);
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 0);
    cr_assert(add(3, "b", PS_ROLE_READER, NOW, 200));
    cr_assert_eq(ps_invites_find(&invites, key(1))->until_ms, 100);
}

Test(invites, one_counts_until_it_is_used_dropped_or_expired)
{
    const ps_invite_t none = {.until_ms = 100};

    cr_assert(add(1, "b", PS_ROLE_JOB, NOW, 100));
    cr_assert(add(2, "c", PS_ROLE_JOB, NOW, 100));
    cr_assert_not(ps_invite_counts(&none, NOW));
    cr_assert(ps_invite_counts(ps_invites_find(&invites, key(1)), 99));
    cr_assert_not(ps_invite_counts(ps_invites_find(&invites, key(1)), 100));
    ps_invites_take(&invites, ps_invites_find(&invites, key(1)), key(7));
    cr_assert_not(ps_invite_counts(ps_invites_find(&invites, key(1)), NOW));
    cr_assert(ps_invites_drop(&invites, "c", false));
    cr_assert_not(ps_invite_counts(ps_invites_find(&invites, key(2)), NOW));
}

Test(invites, a_repetition_is_known_from_another_token_of_that_key)
{
    const ps_invite_t first = {
        .key = "k", .name = "n", .by = "b", .rule = {PS_ROLE_JOB, "*", "*"}, .until_ms = 1};
    ps_invite_t others[5] = {first, first, first, first, first};
    ps_invite_t again = first;

    again.until_ms = 2;
    cr_assert(ps_invite_equal(&first, &again));
    others[0].name[0] = 'x';
    others[1].by[0] = 'x';
    others[2].rule.role = PS_ROLE_ADMIN;
    others[3].rule.tables[0] = 'x';
    others[4].rule.jobs[0] = 'x';
    for (size_t i = 0; i < 5; i++) {
        cr_assert_not(ps_invite_equal(&first, &others[i]), "%zu", i);
    }
}

/* What others made, and what was used, is not touched. */
Test(invites, those_of_one_who_made_them_are_dropped)
{
    const ps_invite_t *found = NULL;

    for (unsigned i = 1; i <= 4; i++) {
        ps_invite_t invite = {.rule.role = i == 2 ? PS_ROLE_NODE : PS_ROLE_JOB, .until_ms = 100};

        (void)snprintf(invite.key, sizeof invite.key, "%s", key(i));
        (void)snprintf(invite.name, sizeof invite.name, "n%u", i);
        (void)snprintf(invite.by, sizeof invite.by, "%s", i == 3 ? "root" : "boss");
        cr_assert(ps_invites_add(&invites, &invite, NOW));
    }
    found = ps_invites_find(&invites, key(4));
    ps_invites_take(&invites, found, key(9));
    cr_assert_not(ps_invites_drop(&invites, "n4", false), "it was used");
    ps_invites_drop_by(&invites, "boss");
    cr_assert_eq(ps_invites_find(&invites, key(1))->until_ms, 0);
    cr_assert_eq(ps_invites_find(&invites, key(2))->until_ms, 0);
    cr_assert_eq(ps_invites_find(&invites, key(3))->until_ms, 100);
    cr_assert_eq(found->until_ms, 100);
}

/* Those that count stay; the oldest that does not makes room. */
Test(invites, what_is_used_or_expired_makes_room)
{
    for (unsigned i = 1; i <= PS_INVITES_MAX; i++) {
        char node[16];

        (void)snprintf(node, sizeof node, "n%u", i);
        cr_assert(add(i, node, PS_ROLE_NODE, NOW, 100 + i));
    }
    cr_assert_not(has_room("n65", PS_ROLE_NODE, NOW));
    cr_assert_not(has_room("n30", PS_ROLE_JOB, NOW));
    cr_assert(has_room("n30", PS_ROLE_NODE, NOW), "instead of the one before");
    cr_assert(has_room("n65", PS_ROLE_NODE, 101), "1 has expired");
    cr_assert_not(add(65, "n65", PS_ROLE_NODE, NOW, 900), "all count");
    cr_assert_not_null(ps_invites_find(&invites, key(1)));
    cr_assert_null(ps_invites_find(&invites, key(65)));
    ps_invites_take(&invites, ps_invites_find(&invites, key(9)), key(70));
    cr_assert(add(66, "n66", PS_ROLE_NODE, NOW, 900));
    cr_assert_null(ps_invites_find(&invites, key(9)));
    cr_assert(add(67, "n30", PS_ROLE_NODE, NOW, 900), "instead of the one before");
    cr_assert_null(ps_invites_find(&invites, key(30)));
    cr_assert(add(68, "n68", PS_ROLE_NODE, 102, 900), "1 and 2 have expired");
    cr_assert(add(69, "n69", PS_ROLE_NODE, 102, 900));
    cr_assert_not(add(71, "n71", PS_ROLE_NODE, 102, 900));
    cr_assert_null(ps_invites_find(&invites, key(1)));
    cr_assert_null(ps_invites_find(&invites, key(2)));
    cr_assert_not_null(ps_invites_find(&invites, key(3)));
}
