/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/facts/copies.h: the copies of one partition as a value. */
#include "protocol/facts/copies.h"

#include <stdio.h>
#include <string.h>

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

/* A primary, n_in_sync in sync, the rest catches up; nodes 1, 2, 3, … */
static ps_copies_t make_copies(uint32_t n_in_sync, uint32_t n_late)
{
    ps_copies_t copies = {.epoch = 4, .n = 1 + n_in_sync + n_late};

    for (uint32_t i = 0; i < copies.n; i++) {
        copies.at[i] = (ps_copy_t){.incarnation = i + 1,
                                   .shard = i,
                                   .state = i == 0           ? PS_COPY_PRIMARY
                                            : i <= n_in_sync ? PS_COPY_IN_SYNC
                                                             : PS_COPY_CATCHING_UP,
                                   .tcp = "tcp://n:1"};
    }
    return copies;
}

/* Nodes in their order, with p, s, k or c for the state. */
static void assert_is(const ps_copies_t *copies, const char *text)
{
    char got[4 * PS_COPIES_MAX + 1] = "";

    for (uint32_t i = 0; i < copies->n; i++) {
        (void)snprintf(got + 3 * i, 4, "%u%c ", (unsigned)copies->at[i].incarnation,
                       "?pskc"[copies->at[i].state]);
    }
    cr_assert_str_eq(got, text);
    cr_assert_eq(ps_copies_check(copies, NULL), PSD_OK);
}

Test(copies, states_have_words)
{
    for (int i = PS_COPY_PRIMARY; i <= PS_COPY_CATCHING_UP; i++) {
        const char *word = ps_copy_state_name((ps_copy_state_t)i);

        cr_assert_eq(ps_copy_state_parse(word), (ps_copy_state_t)i);
    }
    cr_assert_eq(ps_copy_state_parse("?"), 0);
    cr_assert_eq(ps_copy_state_parse("gone"), 0);
    cr_assert_str_eq(ps_copy_state_name((ps_copy_state_t)5), "?");
}

Test(copies, whole_ones_are_the_primary_and_those_in_sync)
{
    ps_copies_t copies = make_copies(1, 2);

    cr_assert_eq(ps_copies_n_whole(&copies), 2);
    cr_assert_eq(ps_copies_primary(&copies), &copies.at[0]);
    cr_assert_eq(ps_copies_on(&copies, 3), &copies.at[2]);
    cr_assert_null(ps_copies_on(&copies, 9));
    ps_copies_fence(&copies);
    cr_assert_null(ps_copies_primary(&copies));
    assert_is(&copies, "1s 2s 3c 4c ");
    cr_assert_eq(ps_copies_n_whole(&copies), 2);
}

Test(copies, changes_keep_the_order_of_states)
{
    ps_copies_t copies = make_copies(2, 1);
    ps_copy_t fresh = {.incarnation = 9, .state = PS_COPY_CATCHING_UP};

    ps_copies_set_state(&copies, 1, PS_COPY_CATCHING_UP);
    assert_is(&copies, "1p 3s 4c 2c ");
    ps_copies_set_state(&copies, 3, PS_COPY_IN_SYNC);
    assert_is(&copies, "1p 3s 2s 4c ");
    ps_copies_fence(&copies);
    ps_copies_promote(&copies, 2);
    assert_is(&copies, "2p 1s 3s 4c ");
    ps_copies_add(&copies, &fresh);
    assert_is(&copies, "2p 1s 3s 4c 9c ");
    ps_copies_remove(&copies, 1);
    assert_is(&copies, "2p 3s 4c 9c ");
}

/* It stands behind those that are whole, and may become the primary. */
Test(copies, what_was_kept_is_an_heir)
{
    ps_copies_t copies = make_copies(2, 1);

    ps_copies_fence(&copies);
    ps_copies_set_state(&copies, 0, PS_COPY_KEPT);
    assert_is(&copies, "2s 3s 1k 4c ");
    cr_assert_eq(ps_copies_n_whole(&copies), 2);
    cr_assert_eq(ps_copies_n_heirs(&copies), 3);
    ps_copies_set_state(&copies, 0, PS_COPY_KEPT);
    ps_copies_set_state(&copies, 0, PS_COPY_CATCHING_UP);
    assert_is(&copies, "1k 2k 4c 3c ");
    ps_copies_promote(&copies, 1);
    assert_is(&copies, "2p 1k 4c 3c ");
    copies.at[0].state = PS_COPY_KEPT;
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID, "no primary");
}

Test(copies, that_were_dropped_are_recalled_when_no_heir_is_left)
{
    ps_copies_t before = make_copies(2, 1);
    ps_copies_t copies = before;

    ps_copies_set_state(&copies, 1, PS_COPY_CATCHING_UP);
    ps_copies_set_state(&copies, 1, PS_COPY_CATCHING_UP);
    ps_copies_drop(&copies, &before);
    cr_assert(ps_copies_has_dropped(&copies));
    assert_is(&copies, "1p 4c 2c 3c ");
    cr_assert_not(copies.at[1].dropped, "it never was in sync");
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_OK);
    ps_copies_fence(&copies);
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID, "not recalled");
    ps_copies_recall(&copies);
    ps_copies_set_state(&copies, 0, PS_COPY_KEPT);
    assert_is(&copies, "2k 3k 1k 4c ");
    cr_assert(copies.at[0].dropped && copies.at[1].dropped);
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_OK);
    ps_copies_promote(&copies, 1);
    cr_assert_not(ps_copies_has_dropped(&copies));
}

Test(copies, what_is_in_no_order_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_copies_t copies = {0};

    cr_assert_eq(ps_copies_check(&copies, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "there are 0 copies; allowed: 1..8");
    copies = make_copies(1, 1);
    copies.n = PS_COPIES_MAX + 1;
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID);
    copies = make_copies(1, 1);
    copies.at[1].state = PS_COPY_PRIMARY;
    psd_error_clear(err);
    cr_assert_eq(ps_copies_check(&copies, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "copy 1 of 3 is primary");
    copies = make_copies(1, 1);
    copies.fenced = true;
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID, "two minds");
    copies.fenced = false;
    copies.at[0].state = PS_COPY_IN_SYNC;
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID, "no primary");
    copies = make_copies(1, 1);
    copies.at[1].state = PS_COPY_CATCHING_UP;
    copies.at[2].state = PS_COPY_IN_SYNC;
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID, "order");
    copies.at[1].state = (ps_copy_state_t)0;
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID);
    copies = make_copies(1, 1);
    copies.at[2].incarnation = 1;
    psd_error_clear(err);
    cr_assert_eq(ps_copies_check(&copies, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "copies 0 and 2 are on one node");
    copies = make_copies(0, 1);
    copies.fenced = true;
    copies.at[0].state = PS_COPY_CATCHING_UP;
    cr_assert_eq(ps_copies_check(&copies, NULL), PSD_INVALID, "none is whole");
}
