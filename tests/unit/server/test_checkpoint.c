/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/checkpoints/control_checkpoint.h: what a manifest may promise. */
#include "server/checkpoints/control_checkpoint.h"

#include <criterion/criterion.h>
#include <string.h>

#define TABLES "\"tables\":[{\"id\":1,\"job\":3},{\"id\":2,\"job\":0}]"

/* What is said of files whose clocks are these, at clock 7. */
static bool stays_clock(const char *files)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    const char *consistent = NULL;

    cr_assert(ps_buffer_print(&text, "{\"consistent\":\"clock\",\"clock\":7,%s,\"files\":[%s]}",
                              TABLES, files));
    cr_assert_eq(ps_doc_parse((ps_bytes_t){text.data, text.size}, &manifest, NULL), PSD_OK);
    cr_assert(ps_control_checkpoint_judge(manifest));
    cr_assert_eq(ps_doc_get_text(manifest, "consistent", 32, &consistent, NULL), PSD_OK);
    cr_assert(strcmp(consistent, "clock") == 0 || strcmp(consistent, "partition") == 0);
    return strcmp(consistent, "clock") == 0;
}

Test(checkpoint, one_clock_is_promised_only_where_all_partitions_are_at_it)
{
    cr_expect(stays_clock("{\"table\":1,\"clock\":7},{\"table\":1,\"clock\":7}"));
    cr_expect_not(stays_clock("{\"table\":1,\"clock\":7},{\"table\":1,\"clock\":8}"),
                  "marks were let go before it began");
    cr_expect_not(stays_clock("{\"table\":1,\"clock\":8},{\"table\":1,\"clock\":8}"),
                  "not the clock that the manifest names");
}

Test(checkpoint, tables_of_no_job_have_no_clock)
{
    cr_expect(stays_clock("{\"table\":1,\"clock\":7},{\"table\":2,\"clock\":0}"));
}
