/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/shard_image.h: when rows that were restored are safe. */
#include "protocol/shard_image.h"
#include "replica_kit.h"

static kit_t kit;
static psd_error_t *err;

/* A partition at level replica, whose rows are all set. */
static void
setup(void)
{
    ps_image_step_t now = {0};

    err = psd_error_new();
    cr_assert_not_null(err);
    kit_open(&kit);
    kit_serve(&kit);
    now = (ps_image_step_t){.now_ms = kit.now_ms, .outbox = &kit.outbox};
    for (int last = 0; last < 2; last++) {
        ps_outbox_clear(&kit.outbox);
        cr_assert_eq(ps_shard_restore(kit.shard, &now, KIT_TABLE, 0, NULL,
                                      last == 1, NULL),
                     PSD_OK);
    }
}

static void
teardown(void)
{
    kit_close(&kit);
    psd_error_destroy(&err);
}

TestSuite(shard_image, .init = setup, .fini = teardown);

/* What is said; how far it came. */
static psd_status_t
restored(uint64_t *ret_reached)
{
    psd_error_clear(err);
    return ps_shard_restored(kit.shard, kit.now_ms, KIT_TABLE, 0, ret_reached,
                             err);
}

Test(shard_image, restored_rows_are_safe_when_every_copy_in_sync_has_them)
{
    uint64_t reached = 0;

    cr_expect_eq(restored(&reached), PSD_BUSY);
    cr_expect_eq(reached, 0);
    cr_expect_not_null(
        strstr(psd_error_text(err), "copies in sync have 0 of 2 records"), "%s",
        psd_error_text(err));
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    cr_expect_eq(restored(&reached), PSD_BUSY);
    cr_expect_eq(reached, 1, "it gets on");
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 2);
    cr_expect_eq(restored(&reached), PSD_OK);
}

Test(shard_image, who_may_not_answer_does_not_say_that_rows_are_safe)
{
    uint64_t reached = 0;

    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 2);
    kit_tick(&kit, 400);
    cr_expect_eq(restored(&reached), PSD_BUSY, "there is no lease");
    kit_map(&kit, "6: 2P 1S");
    cr_expect_eq(restored(&reached), PSD_INVALID, "it is primary elsewhere");
}
