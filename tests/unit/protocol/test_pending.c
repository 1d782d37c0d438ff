/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/pending.h: answers that wait for their level. */
#include "protocol/replica/pending.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static bool wait_for(ps_pending_t *pending, ps_ack_t level, uint64_t lsn, uint64_t request)
{
    const ps_waiting_answer_t answer = {
        .lsn = lsn, .session = 5, .request = request, .tell_ms = UINT64_MAX};

    if (!ps_pending_reserve(pending, level)) {
        return false;
    }
    ps_pending_add(pending, level, &answer);
    return true;
}

Test(pending, answers_go_in_order_when_their_record_is_everywhere)
{
    PSD_AUTO(ps_pending_done) ps_pending_t pending = {0};
    ps_waiting_answer_t got;

    for (uint64_t i = 1; i <= 50; i++) {
        cr_assert(wait_for(&pending, PS_ACK_REPLICA, 2 * i, i));
    }
    cr_assert_eq(ps_pending_count(&pending), 50);
    cr_assert_not(ps_pending_take(&pending, PS_ACK_REPLICA, 1, &got));
    for (uint64_t i = 1; i <= 25; i++) {
        cr_assert(ps_pending_take(&pending, PS_ACK_REPLICA, 51, &got));
        cr_assert_eq(got.request, i);
    }
    cr_assert_not(ps_pending_take(&pending, PS_ACK_REPLICA, 51, &got));
    cr_assert_eq(ps_pending_count(&pending), 25);
}

Test(pending, levels_wait_for_themselves)
{
    PSD_AUTO(ps_pending_done) ps_pending_t pending = {0};
    ps_waiting_answer_t got;

    cr_assert(wait_for(&pending, PS_ACK_DISK, 1, 11));
    cr_assert(wait_for(&pending, PS_ACK_REPLICA, 2, 12));
    cr_assert(ps_pending_take(&pending, PS_ACK_REPLICA, 9, &got));
    cr_assert_eq(got.request, 12);
    cr_assert_not(ps_pending_take(&pending, PS_ACK_REPLICA, 9, &got));
    cr_assert(ps_pending_take(&pending, PS_ACK_DISK, 9, &got));
    cr_assert_eq(got.request, 11);
}

Test(pending, one_is_found_by_whom_it_answers)
{
    PSD_AUTO(ps_pending_done) ps_pending_t pending = {0};
    ps_waiting_answer_t got;

    cr_assert(wait_for(&pending, PS_ACK_REPLICA, 1, 11));
    cr_assert(wait_for(&pending, PS_ACK_DISK, 2, 12));
    cr_assert_eq(ps_pending_find(&pending, 5, 12)->lsn, 2);
    cr_assert_null(ps_pending_find(&pending, 6, 12));
    cr_assert(ps_pending_take(&pending, PS_ACK_REPLICA, 1, &got));
    cr_assert_null(ps_pending_find(&pending, 5, 11));
}

Test(pending, room_of_answers_that_went_is_used_again)
{
    PSD_AUTO(ps_pending_done) ps_pending_t pending = {0};
    ps_waiting_answer_t got;
    size_t capacity = 0;

    for (uint64_t i = 1; i <= 10000; i++) {
        cr_assert(wait_for(&pending, PS_ACK_REPLICA, i, i));
        if (i > 8) {
            cr_assert(ps_pending_take(&pending, PS_ACK_REPLICA, i, &got));
            cr_assert_eq(got.request, i - 8);
        }
        capacity = pending.of[PS_ACK_REPLICA].capacity;
    }
    cr_assert_leq(capacity, 64);
}

/* Values that waited counted nowhere. */
Test(pending, bytes_count_while_they_wait)
{
    PSD_AUTO(ps_pending_done) ps_pending_t pending = {0};
    ps_waiting_answer_t answer = {.lsn = 1};
    uint8_t *to = NULL;
    ps_waiting_answer_t got;

    answer.answer.payload = ps_payload_room(0, 0, 5000, &to);
    cr_assert_not_null(answer.answer.payload);
    cr_assert(ps_pending_reserve(&pending, PS_ACK_REPLICA));
    ps_pending_add(&pending, PS_ACK_REPLICA, &answer);
    cr_assert(wait_for(&pending, PS_ACK_DISK, 1, 7));
    cr_assert_eq(pending.bytes, 5000 + 2 * sizeof answer);
    cr_assert(ps_pending_take(&pending, PS_ACK_REPLICA, 1, &got));
    ps_payload_destroy(&got.answer.payload);
    cr_assert_eq(pending.bytes, sizeof answer);
}

static psd_status_t fill(void *fixture)
{
    PSD_AUTO(ps_pending_done) ps_pending_t pending = {0};

    (void)fixture;
    for (uint64_t i = 1; i <= 20; i++) {
        if (!wait_for(&pending, PS_ACK_REPLICA, i, i)) {
            cr_assert_eq(ps_pending_count(&pending), i - 1);
            return PSD_NOMEM;
        }
    }
    return PSD_OK;
}

Test(pending, without_memory_nothing_changes)
{
    cr_assert_null(fail_alloc_sweep(fill, NULL));
}
