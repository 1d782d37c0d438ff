/* SPDX-License-Identifier: Apache-2.0 */
/* transport/lane/lane_share.h: the memory that two ends have in common. */
#include "transport/lane/lane_share.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const ps_lane_sizes_t SIZES = {
    .request_bytes = PS_LANE_RING_MIN, .reply_bytes = PS_LANE_RING_MIN, .arena_bytes = 1 << 18};

Test(lane_share, rings_go_on_at_their_beginning)
{
    ps_lane_share_t *share = NULL;
    ps_lane_share_t *other = NULL;
    int fd = -1;

    cr_assert_eq(ps_lane_share_new(&SIZES, &share, &fd, NULL), PSD_OK);
    cr_assert_eq(ps_lane_share_adopt(fd, &SIZES, &other, NULL), PSD_OK);
    share->requests[5] = 42;
    share->replies[SIZES.reply_bytes + 6] = 43;
    share->arena[SIZES.arena_bytes - 1] = 44;
    cr_assert_eq(other->requests[SIZES.request_bytes + 5], 42);
    cr_assert_eq(other->replies[6], 43);
    cr_assert_eq(other->arena[SIZES.arena_bytes - 1], 44);
    /* Nobody can pull the memory away from under the other one. */
    cr_assert_neq(ftruncate(fd, 4096), 0);
    cr_assert_eq(close(fd), 0);
    ps_lane_share_drop(&share);
    ps_lane_share_drop(&other);
    ps_lane_share_drop(&other);
}

Test(lane_share, takes_no_memory_that_may_shrink_or_is_of_another_size)
{
    psd_error_t *err = psd_error_new();
    ps_lane_share_t *share = NULL;
    ps_lane_sizes_t sizes = SIZES;
    int fd = memfd_create("test", MFD_ALLOW_SEALING);

    cr_assert_eq(ftruncate(fd, 4096 + (2 << 16) + (1 << 18)), 0);
    cr_assert_eq(ps_lane_share_adopt(fd, &sizes, &share, err), PSD_PROTO);
    cr_assert_neq(strstr(psd_error_text(err), "allowed: 397312, sealed"), NULL, "%s",
                  psd_error_text(err));
    psd_error_clear(err);
    cr_assert_eq(close(fd), 0);

    cr_assert_eq(ps_lane_share_new(&SIZES, &share, &fd, NULL), PSD_OK);
    ps_lane_share_drop(&share);
    sizes.arena_bytes *= 2;
    cr_assert_eq(ps_lane_share_adopt(fd, &sizes, &share, NULL), PSD_PROTO);
    sizes = SIZES;
    sizes.request_bytes += 4096;
    cr_assert_eq(ps_lane_share_adopt(fd, &sizes, &share, err), PSD_PROTO);
    cr_assert_neq(strstr(psd_error_text(err), "powers of two"), NULL);
    sizes = SIZES;
    sizes.reply_bytes = UINT64_C(1) << 63;
    cr_assert_eq(ps_lane_share_adopt(fd, &sizes, &share, NULL), PSD_PROTO);
    cr_assert_eq(close(fd), 0);
    cr_assert_null(share);
    psd_error_destroy(&err);
}
