/* SPDX-License-Identifier: Apache-2.0 */
/* base/handover.h. What it tells ThreadSanitizer is proved by the threaded
 * program thread_handover.c; here: it takes any pointer. */
#include "base/handover.h"

#include <criterion/criterion.h>

Test(handover, takes_any_pointer_and_changes_nothing)
{
    int value = 7;

    ps_handover_give(&value);
    ps_handover_take(&value);
    cr_assert_eq(value, 7);
    ps_handover_give(NULL);
    ps_handover_take(NULL);
}
