/* SPDX-License-Identifier: Apache-2.0 */
/* sample_write - the samples of a text, written in a format */
#ifndef PS_TESTS_SAMPLE_WRITE_H
#define PS_TESTS_SAMPLE_WRITE_H

#include "sample_case.h"

/* Parses the text by one format and writes it by another. */
static inline psd_status_t sample_write_text(const char *from, const char *text, const char *path,
                                             const char *to, psd_error_t *err)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;
    ps_parser_t parser = sample_text_parser(from);
    psd_status_t rc = PSD_OK;

    if (samples == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for samples");
    }
    if (sample_text_parse(&parser, text, strlen(text), samples, err) != 0) {
        return psd_error_status(err);
    }
    rc = psd_writer_open(path, to, &writer, err);
    if (rc == PSD_OK) {
        rc = psd_writer_write(writer, samples, err);
    }
    return rc == PSD_OK ? psd_writer_commit(writer, err) : rc;
}

static inline void sample_write_expect(const char *from, const char *text, const char *path,
                                       const char *to)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = sample_write_text(from, text, path, to, err);

    cr_assert_eq(rc, PSD_OK, "%s: %s", path, psd_error_text(err));
}

static inline void sample_write_refused(const char *from, const char *text, const char *path,
                                        const char *to, const char *why)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = sample_write_text(from, text, path, to, err);

    cr_expect_eq(rc, PSD_INVALID);
    cr_expect(strstr(psd_error_text(err), why) != NULL, "\"%s\" is not \"%s\"", psd_error_text(err),
              why);
}
#endif
