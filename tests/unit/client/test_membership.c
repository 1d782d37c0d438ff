/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's marks. */
#include "client/job.h"
#include "client_kit.h"

/* A mark to the fixture's table ends so. */
static void
end_mark(fixture_t *f, psd_status_t status)
{
    ps_cut_t nothing = {.partition = 0};
    ps_errand_t *mark = ps_errand_new(&f->client, PS_ERRAND_MARK, &nothing);

    cr_assert_not_null(mark);
    mark->queue = &f->table->queues[0];
    ps_errand_end(&f->client, mark, status, NULL);
    ps_perform(&f->client);
}

Test(membership, a_table_that_is_gone_gets_no_further_marks)
{
    fixture_t f;

    set_up(&f);
    f.table->in_job = true;
    end_mark(&f, PSD_OK);
    end_mark(&f, PSD_DEADLINE);
    end_mark(&f, PSD_WORKER_LOST);
    cr_assert(f.table->in_job);
    end_mark(&f, PSD_NO_TABLE);
    cr_assert_not(f.table->in_job);
    tear_down(&f);
}

Test(membership, the_end_of_one_table_is_not_that_of_another)
{
    fixture_t f;
    ps_known_table_t *other = NULL;

    set_up(&f);
    cr_assert_eq(ps_known_table_add(&f.client, 2, "v", 1, &other, NULL),
                 PSD_OK);
    f.table->in_job = true;
    other->in_job = true;
    end_mark(&f, PSD_NO_TABLE);
    cr_assert_not(f.table->in_job);
    cr_assert(other->in_job);
    ps_free(other->queues);
    ps_free(other);
    tear_down(&f);
}
