/* SPDX-License-Identifier: Apache-2.0 */
/* A transfer of state and rows whose other end says what no copy would. */
#include "replica_kit.h"

static kit_t kit;

static void setup(void)
{
    kit_open(&kit);
}

static void teardown(void)
{
    kit_close(&kit);
}

TestSuite(rows_hostile, .init = setup, .fini = teardown);

/* Node 3 is a new copy, which has nothing. */
static void join(void)
{
    kit_map(&kit, "5: 1P 2S");
    kit_tick(&kit, 100);
    kit_welcome(&kit, 2);
    kit_answer(&kit, 2, 5, PS_APPENDED_OK, 1);
    kit_hello(&kit);
    kit_map(&kit, "6: 1P 2S 3C");
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
    kit_tick(&kit, 1);
}

static void take(const ps_msg_taken_t *taken)
{
    ps_message_t message = {.kind = PS_KIND_TAKEN, .taken = *taken};

    message.taken.table = KIT_TABLE;
    message.taken.epoch = 6;
    kit_say(&kit, kit.links[3], &message, NULL);
}

/* The state goes to node 3; its number. */
static uint64_t begin(void)
{
    join();
    kit_answer(&kit, 3, 6, PS_APPENDED_PARTIAL, 0);
    cr_assert_eq(kit_said(&kit, PS_KIND_ROWS)->rows.kind, PS_GIVEN_STATE);
    return kit_said(&kit, PS_KIND_ROWS)->rows.transfer;
}

/* Between two transfers there is no state that a part could be missing of. */
Test(rows_hostile, an_answer_to_no_transfer_is_none)
{
    uint64_t transfer = begin();

    take(&(ps_msg_taken_t){
        .request = 1, .transfer = transfer, .wants = PS_TAKEN_STATE, .status = PS_TAKEN_ANEW});
    take(&(ps_msg_taken_t){.wants = PS_TAKEN_STATE, .status = PS_TAKEN_GAP});
    take(&(ps_msg_taken_t){
        .request = 1, .transfer = transfer, .wants = PS_TAKEN_ROWS, .status = PS_TAKEN_OK});
    cr_expect_eq(kit_count(&kit, PS_KIND_ROWS), 0);
    kit_tick(&kit, 1000);
    cr_expect_eq(kit_said(&kit, PS_KIND_ROWS)->rows.transfer, transfer + 1);
}

/* It was asked for bytes behind the last one for ever. */
Test(rows_hostile, a_copy_that_has_a_state_and_wants_it_begins_anew)
{
    uint64_t transfer = begin();
    uint64_t size = kit_said(&kit, PS_KIND_ROWS)->rows.size;

    take(&(ps_msg_taken_t){.request = 1,
                           .transfer = transfer,
                           .wants = PS_TAKEN_STATE,
                           .offset = size,
                           .status = PS_TAKEN_GAP});
    cr_expect_eq(kit_count(&kit, PS_KIND_ROWS), 0);
    kit_tick(&kit, 1000);
    cr_expect_eq(kit_said(&kit, PS_KIND_ROWS)->rows.transfer, transfer + 1);
    cr_expect_eq(kit_said(&kit, PS_KIND_ROWS)->rows.offset, 0);
}

/* Rows that were never sent are not believed: their turn comes. */
Test(rows_hostile, rows_that_were_not_sent_cannot_be_there)
{
    uint64_t transfer = begin();

    take(&(ps_msg_taken_t){.request = 1,
                           .transfer = transfer,
                           .lsn = 1,
                           .wants = PS_TAKEN_ROWS,
                           .place = UINT64_MAX,
                           .status = PS_TAKEN_OK});
    cr_expect_eq(kit_said(&kit, PS_KIND_ROWS)->rows.kind, PS_GIVEN_PIECE);
    cr_expect_eq(kit_said(&kit, PS_KIND_ROWS)->rows.place, 0);
    take(&(ps_msg_taken_t){.request = 9,
                           .transfer = transfer,
                           .lsn = 1,
                           .wants = PS_TAKEN_NOTHING,
                           .status = PS_TAKEN_OK});
    kit_answer(&kit, 3, 6, PS_APPENDED_PARTIAL, 1);
    cr_expect_not(kit_reported(&kit, PS_REPORT_CAUGHT_UP));
}

/* Pushes wait for a copy that records outrun, but only as long as it moves. */
Test(rows_hostile, a_copy_that_stands_still_holds_no_pushes)
{
    ps_shard_args_t args = kit_args();
    uint64_t seq = 0;

    kit_close(&kit);
    args.tail_bytes = 3000;
    kit_open_with(&kit, &args);
    kit_hello(&kit);
    kit_map(&kit, "6: 1P 3C");
    kit_tick(&kit, 100);
    kit_welcome(&kit, 3);
    kit_tick(&kit, 1);
    kit_answer(&kit, 3, 6, PS_APPENDED_PARTIAL, 0);
    take(&(ps_msg_taken_t){.request = 1,
                           .transfer = kit_said(&kit, PS_KIND_ROWS)->rows.transfer,
                           .wants = PS_TAKEN_ROWS,
                           .status = PS_TAKEN_OK});
    do {
        cr_assert_lt(seq, 100, "no push waits for the copy");
        kit_push(&kit, 6, ++seq, PS_ACK_MEMORY);
    } while (kit_recorded(&kit, PS_RECORD_PUSH));
    kit_tick(&kit, 600);
    cr_expect_str_eq(kit_said(&kit, PS_KIND_PARKED)->parked.text,
                     "waiting for the copy on node 73 shard 0, which catches up and applies "
                     "records slower than they arrive");
    kit_answer(&kit, 3, 6, PS_APPENDED_PARTIAL, seq - 1);
    cr_assert(kit_recorded(&kit, PS_RECORD_PUSH), "the copy has moved");
    do {
        cr_assert_lt(seq, 200, "no push waits for the copy");
        kit_push(&kit, 6, ++seq, PS_ACK_MEMORY);
    } while (kit_recorded(&kit, PS_RECORD_PUSH));
    kit_tick(&kit, 1999);
    cr_assert_not(kit_recorded(&kit, PS_RECORD_PUSH));
    kit_tick(&kit, 1);
    cr_assert(kit_recorded(&kit, PS_RECORD_PUSH), "it has stood still");
    for (uint64_t n = 100; n > 0; n--) {
        kit_push(&kit, 6, ++seq, PS_ACK_MEMORY);
        cr_assert(kit_recorded(&kit, PS_RECORD_PUSH));
    }
}
