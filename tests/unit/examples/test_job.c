/* SPDX-License-Identifier: Apache-2.0 */
/* examples/common/job/job.h: names of the tables of one run. */
#include "common/job/job.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define LONGEST "greatest" /* of what the examples name so */

static void name_of(const char *table, const char *job, char ret_name[EX_NAME_SIZE])
{
    ex_job_t self = {0};

    (void)snprintf(self.name, sizeof self.name, "%s", job);
    ex_job_name_scratch(&self, table, LONGEST, ret_name);
}

Test(job, a_scratch_table_is_called_after_table_job_and_use)
{
    char name[EX_NAME_SIZE];

    name_of("lr", "nightly", name);
    cr_assert_str_eq(name, "lr.nightly-greatest");
    name_of("lr", "v1.2", name);
    cr_assert_str_eq(name, "lr.v1.2-greatest");
}

Test(job, names_with_dots_are_not_taken_for_each_other)
{
    char one[EX_NAME_SIZE];
    char other[EX_NAME_SIZE];

    name_of("a", "b.c", one);
    name_of("a.b", "c", other);
    cr_assert_str_neq(one, other);
    name_of("a.b.c", "c", one);
    name_of("a.b", "c.c", other);
    cr_assert_str_neq(one, other);
}

/* Up to 63 characters are a name, of a table as of a job. */
Test(job, long_names_give_one_that_fits_and_is_of_no_other_job)
{
    char table[EX_NAME_SIZE] = "";
    char job[EX_NAME_SIZE] = "";
    char one[EX_NAME_SIZE];
    char again[EX_NAME_SIZE];

    memset(table, 't', EX_NAME_SIZE - 1);
    memset(job, 'j', EX_NAME_SIZE - 1);
    name_of(table, job, one);
    name_of(table, job, again);
    cr_assert_str_eq(one, again);
    cr_assert_eq(strlen(one), EX_NAME_SIZE - 1);
    cr_assert_str_eq(one + EX_NAME_SIZE - 1 - strlen("-" LONGEST), "-" LONGEST);
    job[EX_NAME_SIZE - 2] = 'k';
    name_of(table, job, again);
    cr_assert_str_neq(one, again);
}
