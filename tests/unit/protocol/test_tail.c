/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/tail.h: records that a copy may still need. */
#include "support/fail_alloc.h"
#include "tail_kit.h"

Test(tail, empty_one_knows_what_is_in_front_of_it)
{
    ps_tail_t tail;
    uint64_t epoch = 99;

    ps_tail_init(&tail, 7, 3);
    cr_assert_eq(ps_tail_last(&tail), 7);
    cr_assert_null(ps_tail_get(&tail, 7));
    cr_assert(ps_tail_epoch(&tail, 7, &epoch));
    cr_assert_eq(epoch, 3);
    cr_assert(ps_tail_epoch(&tail, 0, &epoch));
    cr_assert_eq(epoch, 0);
    cr_assert_not(ps_tail_epoch(&tail, 6, &epoch));
    cr_assert_not(ps_tail_epoch(&tail, 8, &epoch));
    ps_tail_cut(&tail, 100);
    cr_assert_eq(ps_tail_last(&tail), 7);
    ps_tail_done(&tail);
}

Test(tail, keeps_records_by_number_while_it_grows_and_is_cut)
{
    ps_tail_t tail;
    uint64_t epoch = 0;

    ps_tail_init(&tail, 0, 0);
    for (uint64_t lsn = 1; lsn <= 100; lsn++) {
        cr_assert(tail_put(&tail, lsn / 10, 8 * lsn));
        ps_tail_cut(&tail, lsn / 2);
    }
    cr_assert_eq(tail.first, 51);
    cr_assert_eq(ps_tail_last(&tail), 100);
    cr_assert_null(ps_tail_get(&tail, 50));
    cr_assert_null(ps_tail_get(&tail, 101));
    for (uint64_t lsn = 51; lsn <= 100; lsn++) {
        const ps_tail_record_t *record = ps_tail_get(&tail, lsn);

        cr_assert_eq(record->bytes.size, 8 * lsn);
        cr_assert_eq(record->bytes.data[0], (uint8_t)lsn);
        cr_assert_eq(record->epoch, lsn / 10);
    }
    cr_assert(ps_tail_epoch(&tail, 50, &epoch));
    cr_assert_eq(epoch, 5);
    cr_assert_eq(tail.bytes, 8 * (100 * 101 - 50 * 51) / 2);
    cr_assert_eq(tail.end, 8 * 100 * 101 / 2);
    cr_assert_eq(ps_tail_get(&tail, 60)->end, 8 * 60 * 61 / 2);
    ps_tail_done(&tail);
    cr_assert_eq(tail.bytes, 0);
}

Test(tail, packs_what_fits_and_one_at_least)
{
    PSD_AUTO(ps_tail_done) ps_tail_t tail;
    uint32_t n = 0;

    ps_tail_init(&tail, 0, 0);
    cr_assert(tail_put(&tail, 1, 16) && tail_put(&tail, 1, 24) && tail_put(&tail, 1, 8));
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *two = ps_tail_pack(&tail, 1, 47, &n);
    cr_assert_eq(n, 2);
    cr_assert_eq(ps_payload_size(two), 40);
    cr_assert(two->spans[0].data[15] == 1 && two->spans[0].data[16] == 2);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *large = ps_tail_pack(&tail, 2, 1, &n);
    cr_assert_eq(n, 1);
    cr_assert_eq(large->spans[0].data, ps_tail_get(&tail, 2)->bytes.data,
                 "a record that goes alone is not copied");
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *all = ps_tail_pack(&tail, 1, 48, &n);
    cr_assert_eq(n, 3);
    cr_assert_eq(ps_payload_size(all), 48);
    cr_assert_null(ps_tail_pack(&tail, 4, 48, &n));
    cr_assert_eq(n, 0);
}

Test(tail, packed_records_outlive_it)
{
    ps_tail_t tail;
    uint32_t n = 0;

    ps_tail_init(&tail, 0, 0);
    cr_assert(tail_put(&tail, 1, 16));
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *one = ps_tail_pack(&tail, 1, 16, &n);
    ps_tail_done(&tail);
    cr_assert_eq(one->spans[0].data[15], 1);
}

static psd_status_t fill_and_pack(void *fixture)
{
    PSD_AUTO(ps_tail_done) ps_tail_t tail;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    uint32_t n = 0;

    (void)fixture;
    ps_tail_init(&tail, 0, 0);
    for (uint64_t lsn = 1; lsn <= 20; lsn++) {
        if (!tail_put(&tail, 1, 8)) {
            cr_assert_eq(ps_tail_last(&tail), lsn - 1);
            return PSD_NOMEM;
        }
    }
    payload = ps_tail_pack(&tail, 1, 160, &n);
    cr_assert_eq(n, payload == NULL ? 0 : 20);
    return payload == NULL ? PSD_NOMEM : PSD_OK;
}

Test(tail, without_memory_nothing_changes)
{
    cr_assert_null(fail_alloc_sweep(fill_and_pack, NULL));
}
