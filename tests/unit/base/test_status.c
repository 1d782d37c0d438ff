/* SPDX-License-Identifier: Apache-2.0 */
/* psd/status.h: the list of statuses, seen from every side. */
#include "psd/status.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define STATUS_OF(name, number, code, exit_code, text, hint) PSD_##name,
static const psd_status_t ALL[] = {PSD_STATUS_MAP(STATUS_OF)};
#define N_ALL (sizeof ALL / sizeof ALL[0])

Test(status, views_show_the_rows_of_the_list)
{
    cr_assert_str_eq(psd_status_name(PSD_OK), "OK");
    cr_assert_str_eq(psd_status_text(PSD_OK), "ok");
    cr_assert_str_eq(psd_status_code(PSD_OK), "E0000");
    cr_assert_eq(psd_status_exit(PSD_OK), 0);
    cr_assert_str_eq(psd_status_name(PSD_NO_TABLE), "NO_TABLE");
    cr_assert_str_eq(psd_status_text(PSD_NO_TABLE), "table does not exist");
    cr_assert_str_eq(psd_status_code(PSD_NO_TABLE), "E2003");
    cr_assert_str_eq(psd_status_hint(PSD_NO_TABLE), "\"pscli table list\" shows those that do");
    cr_assert_eq(psd_status_exit(PSD_NO_TABLE), 5);
    cr_assert_eq(psd_status_exit(PSD_INTERRUPTED), 130);
}

Test(status, numbers_and_codes_are_used_once)
{
    for (size_t i = 0; i < N_ALL; i++) {
        for (size_t j = i + 1; j < N_ALL; j++) {
            cr_assert_neq(ALL[i], ALL[j]);
            cr_assert_str_neq(psd_status_code(ALL[i]), psd_status_code(ALL[j]));
        }
    }
}

Test(status, numbers_that_travel_never_change)
{
    cr_assert_eq((int)PSD_FAILED, 1);
    cr_assert_eq((int)PSD_INVALID, 2);
    cr_assert_eq((int)PSD_NOMEM, 3);
    cr_assert_eq((int)PSD_SHAPE, 16);
    cr_assert_eq((int)PSD_CONNECT, 32);
    cr_assert_eq((int)PSD_NO_JOB, 48);
    cr_assert_eq((int)PSD_USAGE, 64);
}

Test(status, only_ok_exits_with_zero_and_all_have_words)
{
    for (size_t i = 0; i < N_ALL; i++) {
        cr_assert_eq(psd_status_exit(ALL[i]) == 0, ALL[i] == PSD_OK);
        cr_assert_eq(strlen(psd_status_code(ALL[i])), 5);
        cr_assert_gt(strlen(psd_status_text(ALL[i])), 0);
        cr_assert_gt(strlen(psd_status_hint(ALL[i])), 0);
    }
}

Test(status, unknown_number_has_safe_answers)
{
    psd_status_t unknown = (psd_status_t)4711;

    cr_assert_str_eq(psd_status_name(unknown), "?");
    cr_assert_str_eq(psd_status_code(unknown), "E0001");
    cr_assert_str_eq(psd_status_text(unknown), "unknown status");
    cr_assert_gt(strlen(psd_status_hint(unknown)), 0);
    cr_assert_eq(psd_status_exit(unknown), 1);
}
