/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/facts/epochs.h: which records a partition can be sure to have. */
#include "protocol/facts/epochs.h"

#include <criterion/criterion.h>

#include "base/alloc.h"

static ps_epochs_t three(void)
{
    ps_epochs_t epochs = {.n = 0};

    ps_epochs_add(&epochs, 1, 4);
    ps_epochs_add(&epochs, 2, 4);
    ps_epochs_add(&epochs, 3, 7);
    ps_epochs_add(&epochs, 4, 9);
    return epochs;
}

Test(epochs, a_record_is_there_when_its_epoch_went_on_to_it)
{
    const ps_epochs_t epochs = three();

    cr_expect(ps_epochs_have(&epochs, 2, 4));
    cr_expect(ps_epochs_have(&epochs, 3, 7));
    cr_expect(ps_epochs_have(&epochs, 0, 0), "in front of all");
    cr_expect_not(ps_epochs_have(&epochs, 3, 4), "it was lost: 3 is 7's here");
    cr_expect_not(ps_epochs_have(&epochs, 5, 9), "it is still to come");
    cr_expect_not(ps_epochs_have(&epochs, 3, 8), "there was no such epoch");
}

Test(epochs, the_oldest_are_forgotten)
{
    ps_epochs_t epochs = {.n = 0};

    for (uint64_t i = 1; i <= PS_EPOCHS_MAX + 1; i++) {
        ps_epochs_add(&epochs, i, 10 * i);
    }
    cr_expect_not(ps_epochs_have(&epochs, 1, 10));
    cr_expect(ps_epochs_have(&epochs, 2, 20));
    cr_expect(ps_epochs_have(&epochs, PS_EPOCHS_MAX + 1, UINT64_C(10) * (PS_EPOCHS_MAX + 1)));
}

Test(epochs, bytes_and_back)
{
    const ps_epochs_t epochs = three();
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    ps_epochs_t back = {.n = 0};
    ps_cursor_t cursor;

    cr_assert(ps_epochs_put(&epochs, &to));
    for (size_t size = 0; size < to.size; size++) { /* cut anywhere */
        cursor = ps_cursor_over((ps_bytes_t){to.data, size});
        cr_expect(ps_epochs_take(&cursor, &back, NULL) != PSD_OK || cursor.failed);
    }
    cursor = ps_cursor_over((ps_bytes_t){to.data, to.size});
    cr_assert_eq(ps_epochs_take(&cursor, &back, NULL), PSD_OK);
    cr_expect(ps_cursor_is_done(&cursor));
    cr_expect_eq(back.n, 3);
    cr_expect(ps_epochs_have(&back, 2, 4));
    cr_expect(ps_epochs_have(&back, 4, 9));
}

Test(epochs, what_cannot_be_is_refused)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t many = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t down = {0};
    ps_epochs_t epochs = three();
    ps_epochs_t back = {.n = 0};
    ps_cursor_t cursor;

    cr_assert(ps_buffer_u32(&many, PS_EPOCHS_MAX + 1));
    cursor = ps_cursor_over((ps_bytes_t){many.data, many.size});
    cr_expect_eq(ps_epochs_take(&cursor, &back, NULL), PSD_PROTO);
    epochs.epoch[2] = epochs.epoch[1];
    cr_assert(ps_epochs_put(&epochs, &down));
    cursor = ps_cursor_over((ps_bytes_t){down.data, down.size});
    cr_expect_eq(ps_epochs_take(&cursor, &back, NULL), PSD_PROTO);
}
