/* SPDX-License-Identifier: Apache-2.0 */
/* sample_read - all samples of files, as one text, or why there are none */
#ifndef PS_TESTS_SAMPLE_READ_H
#define PS_TESTS_SAMPLE_READ_H

#include "sample_case.h"

/* Reads all of it, three samples at a time. */
static inline psd_status_t sample_read_all(const char *path, const psd_reader_options_t *options,
                                           ps_buffer_t *ret_text, uint64_t *ret_bad,
                                           psd_error_t *err)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    psd_status_t rc = batch == NULL ? PSD_NOMEM : psd_reader_open(&path, 1, options, &reader, err);

    ret_text->size = 0;
    while (rc == PSD_OK) {
        rc = psd_reader_next(reader, 3, batch, err);
        if (rc != PSD_OK || psd_samples_count(batch) == 0) {
            break;
        }
        for (size_t i = 0; i < batch->n; i++) {
            sample_case_print(batch, i, ret_text);
        }
    }
    *ret_bad = reader == NULL ? 0 : psd_reader_bad_count(reader);
    return rc;
}

/* They are these, and so many more are bad. */
static inline void sample_read_expect(const char *path, const psd_reader_options_t *options,
                                      const char *expected, uint64_t n_bad)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t got = {0};
    uint64_t bad = 0;
    psd_status_t rc = PSD_OK;

    cr_assert(ps_buffer_append(&got, "", 1));
    got.data[0] = '\0';
    rc = sample_read_all(path, options, &got, &bad, err);
    cr_assert_eq(rc, PSD_OK, "%s: %s", path, psd_error_text(err));
    cr_expect_str_eq((const char *)got.data, expected, "%s\nis\n%s", path, (const char *)got.data);
    cr_expect_eq(bad, n_bad, "%s: %" PRIu64 " bad", path, bad);
}

/* It ends with that status, for a reason in which this stands. */
static inline void sample_read_refused(const char *path, const psd_reader_options_t *options,
                                       psd_status_t status, const char *why)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t got = {0};
    uint64_t bad = 0;
    psd_status_t rc = sample_read_all(path, options, &got, &bad, err);

    cr_expect_eq(rc, status, "%s: %s", path, psd_error_text(err));
    cr_expect(strstr(psd_error_text(err), why) != NULL, "%s: \"%s\" is not \"%s\"", path,
              psd_error_text(err), why);
}
#endif
