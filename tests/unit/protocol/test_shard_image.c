/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/shard/shard_image.h: when rows that were restored are safe, and when
 * clients get them. */
#include "protocol/shard/shard_image.h"
#include "replica_kit.h"

static kit_t kit;
static psd_error_t *err;
static ps_restore_at_t at;
static ps_payload_t *piece;

/* Row 0 with 1 in it, out of another cluster's table. */
static ps_payload_t *make_piece(void)
{
    const ps_image_order_t order = {.table = KIT_TABLE};
    ps_payload_t *made = NULL;
    kit_t source;
    ps_image_step_t now = {0};
    bool is_last = false;

    kit_open(&source);
    kit_map(&source, "5: 1P");
    kit_hello(&source);
    kit_push(&source, 5, 1, PS_ACK_MEMORY);
    ps_outbox_clear(&source.outbox);
    now = (ps_image_step_t){.now_ms = source.now_ms, .outbox = &source.outbox};
    ps_shard_image_begin(source.shard, &now, &order);
    cr_assert_eq(ps_shard_image_next(source.shard, KIT_TABLE, 0, 1 << 20, &made, &is_last, NULL),
                 PSD_OK);
    cr_assert_not_null(made);
    kit_close(&source);
    return made;
}

static ps_image_step_t step_now(void)
{
    ps_outbox_clear(&kit.outbox);
    return (ps_image_step_t){.now_ms = kit.now_ms, .outbox = &kit.outbox};
}

static psd_status_t restore(void)
{
    const ps_image_step_t now = step_now();

    psd_error_clear(err);
    return ps_shard_restore(kit.shard, &now, KIT_TABLE, 0, piece, &at, err);
}

/* A partition at level replica, two pieces of whose rows are set. */
static void setup(void)
{
    err = psd_error_new();
    cr_assert_not_null(err);
    at = (ps_restore_at_t){0};
    piece = make_piece();
    kit_open(&kit);
    kit.restoring = true;
    kit_serve(&kit);
    cr_assert_eq(restore(), PSD_OK);
    cr_assert_eq(restore(), PSD_OK);
    cr_assert_eq(at.lsn, 2);
}

static void teardown(void)
{
    kit_close(&kit);
    ps_payload_destroy(&piece);
    psd_error_destroy(&err);
}

TestSuite(shard_image, .init = setup, .fini = teardown);

/* What is said; how far it came. */
static psd_status_t restored(uint64_t *ret_reached)
{
    const ps_image_step_t now = step_now();

    psd_error_clear(err);
    return ps_shard_restored(kit.shard, &now, KIT_TABLE, 0, &at, ret_reached, err);
}

Test(shard_image, restored_rows_are_safe_when_every_copy_in_sync_has_them)
{
    uint64_t reached = 0;

    cr_expect_eq(restored(&reached), PSD_BUSY);
    cr_expect_eq(reached, 0);
    cr_expect_not_null(
        strstr(psd_error_text(err), "copies in sync have 0 of 2 records; the copy on node "), "%s",
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

/* Another node was primary between two pieces, without the one that came last:
 * the restore went on as if nothing was missing. */
Test(shard_image, a_primary_without_the_last_rows_takes_no_more_of_them)
{
    uint64_t reached = 0;

    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 2);
    at.lsn = 3;
    cr_expect_eq(restore(), PSD_INVALID);
    cr_expect_not_null(strstr(psd_error_text(err), "has lost rows"), "%s", psd_error_text(err));
    cr_expect_eq(restored(&reached), PSD_INVALID);
    at = (ps_restore_at_t){.lsn = 2, .epoch = 4};
    cr_expect_eq(restored(&reached), PSD_INVALID, "of another primary");
}

/* Each shard let clients go on by itself when its own rows were set. */
Test(shard_image, clients_wait_until_the_whole_table_is_restored)
{
    uint64_t reached = 0;

    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 2);
    cr_assert_eq(restored(&reached), PSD_OK);
    kit_hello(&kit);
    kit_pull(&kit, 5);
    cr_expect_eq(kit_count(&kit, PS_KIND_VALUES), 0, "other partitions are still to come");
    kit.restoring = false;
    kit_map(&kit, "5: 1P 2S");
    cr_expect_eq(kit_count(&kit, PS_KIND_VALUES), 1);
    kit.restoring = true;
    kit_map(&kit, "5: 1P 2S"); /* an older word */
    kit_pull(&kit, 5);
    cr_expect_eq(kit_count(&kit, PS_KIND_VALUES), 1);
}
