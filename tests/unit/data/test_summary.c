/* SPDX-License-Identifier: Apache-2.0 */
/* data/feed/summary.c: what a data set has, in one pass. */
#include "sample_file.h"
#include "sample_read.h"
#include "support/fail_alloc.h"

static temp_dir_t dir;
static char path[SAMPLE_PATH];
static psd_summary_t *summary;

static void set_up(void)
{
    cr_assert(temp_dir_make(&dir));
    summary = psd_summary_new();
    cr_assert_not_null(summary);
}

static void tear_down(void)
{
    psd_summary_destroy(&summary);
    cr_expect_null(summary);
    psd_summary_destroy(&summary);
    temp_dir_drop(&dir);
}

TestSuite(summary, .init = set_up, .fini = tear_down);

static psd_status_t read_all(void *unused)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_summary_destroy) psd_summary_t *own = psd_summary_new();
    const char *from = path;
    psd_status_t rc = own == NULL ? PSD_NOMEM : psd_reader_open(&from, 1, NULL, &reader, NULL);

    (void)unused;
    if (rc == PSD_OK) {
        rc = psd_reader_summary(reader, own, NULL);
    }
    if (rc == PSD_OK) {
        cr_assert_eq(psd_summary_sample_count(own), 3);
    }
    return rc;
}

static void summarize(const char *text)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const char *from = path;

    sample_file_write(&dir, "a", text, strlen(text), path);
    cr_assert_eq(psd_reader_open(&from, 1, NULL, &reader, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(psd_reader_summary(reader, summary, err), PSD_OK, "%s", psd_error_text(err));
}

Test(summary, all_of_a_file_is_counted)
{
    uint64_t min = 0;
    uint64_t max = 0;
    uint64_t n = 0;
    float least = 0;
    float most = 0;
    bool more = true;

    summarize("1 7:1 9:1\n-1\n1 7:2 8:1 18446744073709551615:1\n-1 0:1\n"
              "2.5 7:1\n");
    cr_expect_eq(psd_summary_sample_count(summary), 5);
    cr_expect_eq(psd_summary_entry_count(summary), 7);
    cr_expect_eq(psd_summary_most_entries(summary), 3);
    cr_expect_eq(psd_summary_key_count(summary, &more), 5);
    cr_expect_not(more);
    cr_assert(psd_summary_key_range(summary, &min, &max));
    cr_expect(min == 0 && max == UINT64_MAX);
    cr_expect_eq(psd_summary_unlabelled_count(summary), 0);
    cr_assert(psd_summary_label_range(summary, &least, &most));
    cr_expect(least == -1 && most == 2.5F);
    more = true;
    cr_expect_eq(psd_summary_label_count(summary, &more), 3);
    cr_expect_not(more);
    cr_expect_eq(psd_summary_label(summary, 0, &n), -1);
    cr_expect_eq(n, 2);
    cr_expect_eq(psd_summary_label(summary, 1, &n), 1);
    cr_expect_eq(n, 2);
    cr_expect_eq(psd_summary_label(summary, 2, NULL), 2.5F);
    cr_expect(isnan(psd_summary_label(summary, 3, &n)));
    cr_expect_eq(n, 0);
    /* A second file is added to it. */
    summarize("3 100:1\n");
    cr_expect_eq(psd_summary_sample_count(summary), 6);
    cr_expect_eq(psd_summary_key_count(summary, NULL), 6);
}

Test(summary, nothing_has_no_ranges)
{
    uint64_t key = 0;
    float label = 0;

    cr_expect_not(psd_summary_key_range(summary, &key, &key));
    cr_expect_not(psd_summary_label_range(summary, &label, &label));
    summarize("; 0 5:1;\n; 0 6:1;\n");
    cr_expect_not(psd_summary_label_range(summary, &label, &label));
    cr_expect_eq(psd_summary_unlabelled_count(summary), 2);
    cr_expect(psd_summary_key_range(summary, &key, &key));
}

Test(summary, labels_are_told_apart_up_to_a_bound)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    float least = 0;
    float most = 0;
    uint64_t n = 0;
    bool more = false;

    for (int i = 100; i > 0; i--) {
        cr_assert(ps_buffer_print(&text, "%d.5 1:1\n", i));
    }
    cr_assert(ps_buffer_append(&text, "100.5 1:1\n", 11));
    summarize((const char *)text.data);
    cr_expect_eq(psd_summary_label_count(summary, &more), PSD_SUMMARY_LABELS_MAX);
    cr_expect(more);
    cr_assert(psd_summary_label_range(summary, &least, &most));
    cr_expect(least == 1.5F && most == 100.5F);
    cr_expect_eq(psd_summary_label(summary, PSD_SUMMARY_LABELS_MAX - 1, &n), 100.5F);
    cr_expect_eq(n, 2);
}

Test(summary, an_error_of_the_reader_is_its_own)
{
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(psd_reader_options_destroy)
    psd_reader_options_t *options = psd_reader_options_new();
    const char *from = path;

    cr_assert_eq(psd_reader_options_set_format(options, "libsvm", NULL), PSD_OK);
    psd_reader_options_set_strict(options, true);
    sample_file_write(&dir, "a", "1 5:1\n1 x\n", 10, path);
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_summary(reader, summary, err), PSD_INVALID);
    cr_expect(strstr(psd_error_text(err), "a:2: \"x\" is not") != NULL);
    /* What was read before it counts. */
    cr_expect_eq(psd_summary_sample_count(summary), 1);
    cr_expect_eq(psd_summary_entry_count(summary), 1);
}

Test(summary, no_memory_is_an_error)
{
    sample_file_write(&dir, "a", "1 5:1\n1 6:1 7:1\n1\n", 18, path);
    cr_assert_null(fail_alloc_sweep(read_all, NULL));
}
