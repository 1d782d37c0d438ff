/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/state/owners.h: whose a session is. */
#include "server/state/owners.h"

#include <criterion/criterion.h>

static ps_owners_t *owners;

static void make(void)
{
    owners = ps_owners_new();
    cr_assert_not_null(owners);
}

static void drop(void)
{
    ps_owners_destroy(&owners);
    cr_assert_null(owners);
}

TestSuite(owners, .init = make, .fini = drop);

Test(owners, a_session_is_of_who_took_it_first)
{
    cr_assert(ps_owners_take(owners, 7, 1));
    cr_assert(ps_owners_take(owners, 7, 1));
    cr_assert_not(ps_owners_take(owners, 7, 2));
    cr_assert(ps_owners_take(owners, 8, 2));
    cr_assert_not(ps_owners_take(owners, 8, 1));
    cr_assert(ps_owners_take(owners, 7, 1));
}

/* The newer one has the row: of the old one nobody knows the owner any more. */
Test(owners, an_old_session_makes_room_and_takes_none)
{
    cr_assert(ps_owners_take(owners, 7, 1));
    cr_assert(ps_owners_take(owners, 7 + PS_OWNERS_MAX, 2));
    cr_assert(ps_owners_take(owners, 7, 3));
    cr_assert(ps_owners_take(owners, 7, 1));
    cr_assert_not(ps_owners_take(owners, 7 + PS_OWNERS_MAX, 1));
    cr_assert(ps_owners_take(owners, 7 + PS_OWNERS_MAX, 2));
}
