/* SPDX-License-Identifier: Apache-2.0 */
/* data/formats/format_uci.c, sink_uci.c: documents of several lines each. */
#include "sample_file.h"
#include "sample_read.h"
#include "sample_write.h"
#include "support/fail_alloc.h"

static temp_dir_t dir;
static char path[SAMPLE_PATH];
static psd_reader_options_t *options;

static void set_up(void)
{
    cr_assert(temp_dir_make(&dir));
    options = psd_reader_options_new();
}

static void tear_down(void)
{
    psd_reader_options_destroy(&options);
    temp_dir_drop(&dir);
}

TestSuite(format_uci, .init = set_up, .fini = tear_down);

static const char *put(const char *name, const char *text)
{
    sample_file_write(&dir, name, text, strlen(text), path);
    return path;
}

Test(format_uci, it_is_known_and_documents_without_lines_are_empty)
{
    static const char text[] = "5\n9\n4\n2 9 3\n2 1 1\n\n4 2 1\n4 3 7\r\n";
    static const char samples[] = "none {0}\nnone {0 8:3 0:1}\nnone {0}\n"
                                  "none {0 1:1 2:7}\nnone {0}\n";

    sample_read_expect(put("a", text), NULL, samples, 0);
    sample_read_expect(put("a.gz", text), NULL, samples, 0);
    sample_read_expect(put("none", "0\n0\n0\n"), NULL, "", 0);
    cr_assert_eq(psd_reader_options_set_rows(options, 1, 4, NULL), PSD_OK);
    sample_read_expect(put("a", text), options, "none {0 8:3 0:1}\nnone {0}\nnone {0 1:1 2:7}\n",
                       0);
}

Test(format_uci, a_bad_line_is_left_out_of_its_document)
{
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        {"1 2", "a:5: \"1…\" is not DOCUMENT WORD COUNT, three whole numbers"},
        {"1 2 3 4", "a:5: \"1…\" is not DOCUMENT WORD COUNT"},
        {"1 2 x", "a:5: \"1…\" is not DOCUMENT WORD COUNT"},
        {"3 1 1", "a:5: document 3, word 1; there are 2 and 9, counted from 1"},
        {"0 1 1", "a:5: document 0, word 1"},
        {"1 10 1", "a:5: document 1, word 10"},
        {"1 0 1", "a:5: document 1, word 0"},
        {"1 1 0", "a:5: count 0; 1 .. 16777216 are allowed"},
        {"1 1 16777217", "a:5: count 16777217"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];

        (void)snprintf(text, sizeof text, "2\n9\n4\n1 1 1\n%s\n1 2 2\n2 3 3\n", cases[i].line);
        sample_read_expect(put("a", text), NULL, "none {0 0:1 1:2}\nnone {0 2:3}\n", 1);
        psd_reader_options_set_strict(options, true);
        sample_read_refused(path, options, PSD_INVALID, cases[i].why);
    }
    sample_read_refused(put("a", "2\n9\n2\n2 1 1\n1 1 1\n"), options, PSD_INVALID,
                        "a:5: document 1 after 2; documents must ascend");
}

Test(format_uci, heads_that_cannot_be_are_refused)
{
    cr_assert_eq(psd_reader_options_set_format(options, "uci", NULL), PSD_OK);
    sample_read_refused(put("a", "2\n9\n"), options, PSD_INVALID,
                        "line 3 is not the number of entries");
    sample_read_refused(put("a", "x\n9\n"), options, PSD_INVALID,
                        "line 1 is not the number of documents");
    sample_read_refused(put("a", "4294967297\n9\n0\n"), options, PSD_LIMIT,
                        "4294967297 documents; 2^32 are allowed");
    sample_read_refused(put("a", "2\n9\n2\n1 1 1\n"), options, PSD_DAMAGED,
                        "has 1 entries; its third line says 2");
    sample_read_refused(put("a", "2\n9\n1\n1 1 1\n2 1 1\n"), options, PSD_DAMAGED,
                        "has 2 entries; its third line says 1");
    sample_file_put(path, "a\nb\n", 4);
    cr_assert_eq(psd_reader_options_set_vocabulary(options, path, NULL), PSD_OK);
    sample_read_refused(put("b", "1\n3\n1\n1 1 1\n"), options, PSD_INVALID, "has 3 words");
    /* Its last words need not occur. */
    sample_read_expect(put("b", "1\n1\n1\n1 1 1\n"), options, "none {0 0:1}\n", 0);
}

Test(format_uci, documents_without_lines_are_as_many_as_files_have)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = path;

    cr_assert_eq(psd_reader_options_set_format(options, "uci", NULL), PSD_OK);
    sample_read_refused(put("a", "4294967296\n1\n0\n"), options, PSD_LIMIT,
                        "4294967296 documents of 0 entries; 1048576 are");
    sample_read_refused(put("a.gz", "4294967296\n1\n0\n"), options, PSD_LIMIT,
                        "1048576 are allowed");
    /* Entries that are said and not there do not count. */
    sample_read_refused(put("a", "4294967296\n1\n18446744073709551615\n"), options, PSD_LIMIT,
                        "1050752 are allowed");
    sample_read_refused(put("a", "1048641\n1\n1\n9 1 1\n"), options, PSD_LIMIT,
                        "1048640 are allowed");
    (void)put("a", "1048640\n1\n1\n9 1 1\n");
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(reader, 2000000, batch, NULL), PSD_OK);
    cr_expect_eq(batch->n, 1048640);
}

/* Documents of 0 .. 6 words each, longer than what is not searched. */
static void write_many(const char *name, uint64_t n)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    uint64_t n_entries = 0;

    for (uint64_t i = 0; i < n; i++) {
        n_entries += i % 7;
    }
    cr_assert(
        ps_buffer_print(&text, "%" PRIu64 "\n%" PRIu64 "\n%" PRIu64 "\n", n, n + 7, n_entries));
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t k = 0; k < i % 7; k++) {
            cr_assert(ps_buffer_print(&text, "%" PRIu64 " %" PRIu64 " 1\n", i + 1, i + k + 1));
        }
    }
    sample_file_write(&dir, name, text.data, text.size, path);
}

/* The samples of one share are those of that many documents from there on. */
static void expect_share(uint32_t part, uint32_t n_parts, uint64_t first, uint64_t end)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = path;

    cr_assert_eq(psd_reader_options_set_share(options, part, n_parts, NULL), PSD_OK);
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(reader, 1000000, batch, NULL), PSD_OK);
    cr_assert_eq(batch->n, end - first, "%zu of share %u", batch->n, part);
    for (uint64_t i = first; i < end; i++) {
        size_t start = batch->starts[i - first];

        cr_assert_eq(batch->starts[i - first + 1] - start, i % 7);
        cr_assert(i % 7 == 0 || batch->keys[start] == i);
    }
    cr_assert_eq(psd_reader_next(reader, 1, batch, NULL), PSD_OK);
    cr_assert_eq(batch->n, 0);
    cr_expect_eq(psd_reader_bad_count(reader), 0);
}

Test(format_uci, shares_are_ranges_of_documents)
{
    static const char *const names[] = {"many", "many.gz"};
    const uint64_t n = 40000;

    for (size_t k = 0; k < 2; k++) {
        write_many(names[k], n);
        for (uint32_t part = 0; part < 7; part++) {
            expect_share(part, 7, n / 7 * part + n % 7 * part / 7,
                         n / 7 * (part + 1) + n % 7 * (part + 1) / 7);
        }
    }
}

static psd_status_t read_all(void *fixture)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = fixture;
    psd_status_t rc = batch == NULL ? PSD_NOMEM : psd_reader_open(&from, 1, NULL, &reader, NULL);

    if (rc == PSD_OK) {
        rc = psd_reader_next(reader, 9, batch, NULL);
        cr_assert(rc != PSD_OK || psd_samples_count(batch) == 2);
    }
    return rc;
}

static psd_status_t write_all(void *fixture)
{
    const psd_samples_t *samples = fixture;
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;
    psd_status_t rc = psd_writer_open(path, "uci", &writer, NULL);

    if (rc == PSD_OK) {
        rc = psd_writer_write(writer, samples, NULL);
    }
    return rc == PSD_OK ? psd_writer_commit(writer, NULL) : rc;
}

Test(format_uci, no_memory_is_an_error)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    ps_parser_t parser = sample_text_parser("lda-c");
    static const char docs[] = "2 7:1 0:2\n1 3:9\n";

    (void)put("a", "2\n9\n2\n1 1 1\n2 1 1\n");
    cr_assert_null(fail_alloc_sweep(read_all, path));
    cr_assert_eq(sample_text_parse(&parser, docs, sizeof docs - 1, samples, NULL), 0);
    cr_assert_null(fail_alloc_sweep(write_all, samples));
}
