/* SPDX-License-Identifier: Apache-2.0 */
/* idx: images with the labels beside them, packed or not; shares; broken ones.
 */
#include "sample_file.h"
#include "sample_read.h"
#include "support/fail_alloc.h"

static temp_dir_t dir;
static char path[SAMPLE_PATH];
static char labels_path[SAMPLE_PATH];
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

TestSuite(format_idx, .init = set_up, .fini = tear_down);

/* Four images of 1 x 2 bytes, and what they are. */
static const uint8_t IMAGES[] = {0, 0, 8, 3, 0, 0, 0,   4, 0,  0, 0,  1,
                                 0, 0, 0, 2, 0, 1, 255, 2, 10, 0, 77, 3};
static const uint8_t LABELS[] = {0, 0, 8, 1, 0, 0, 0, 4, 7, 0, 1, 9};
#define SAMPLES "7 {0 0:0 1:1}\n0 {0 0:255 1:2}\n1 {0 0:10 1:0}\n9 {0 0:77 1:3}\n"

static void write_both(const char *images, const char *labels)
{
    sample_file_write(&dir, images, IMAGES, sizeof IMAGES, path);
    sample_file_write(&dir, labels, LABELS, sizeof LABELS, labels_path);
}

Test(format_idx, labels_are_found_beside_the_images)
{
    write_both("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
    sample_read_expect(path, NULL, SAMPLES, 0);
    write_both("a-images-idx3-ubyte.gz", "a-labels-idx1-ubyte");
    sample_read_expect(path, NULL, SAMPLES, 0);
    write_both("b-images.idx3-ubyte.zst", "b-labels.idx1-ubyte.gz");
    sample_read_expect(path, NULL, SAMPLES, 0);
    /* The words of a directory's name are not the file's. */
    write_both("c-images", "c-labels");
    sample_read_expect(path, NULL, SAMPLES, 0);
}

Test(format_idx, labels_are_named_or_there_are_none)
{
    write_both("pictures", "classes");
    sample_read_refused(path, NULL, PSD_INVALID, "as its name has no \"images\"");
    cr_assert_eq(psd_reader_options_set_labels(options, labels_path, NULL), PSD_OK);
    sample_read_expect(path, options, SAMPLES, 0);
    cr_assert_eq(psd_reader_options_set_labels(options, "none", NULL), PSD_OK);
    sample_read_expect(path, options,
                       "none {0 0:0 1:1}\nnone {0 0:255 1:2}\n"
                       "none {0 0:10 1:0}\nnone {0 0:77 1:3}\n",
                       0);
    sample_file_write(&dir, "x-images-idx3-ubyte.gz", IMAGES, sizeof IMAGES, path);
    sample_read_refused(path, NULL, PSD_INVALID, "x-labels-idx1-ubyte beside");
}

Test(format_idx, values_are_scaled)
{
    write_both("images", "labels");
    cr_assert_eq(psd_reader_options_set_scale(options, 0.5F, NULL), PSD_OK);
    sample_read_expect(path, options,
                       "7 {0 0:0 1:0.5}\n0 {0 0:127.5 1:1}\n"
                       "1 {0 0:5 1:0}\n9 {0 0:38.5 1:1.5}\n",
                       0);
    cr_expect_eq(psd_reader_options_set_scale(options, 0, NULL), PSD_INVALID);
    cr_expect_eq(psd_reader_options_set_scale(options, NAN, NULL), PSD_INVALID);
    cr_expect_eq(psd_reader_options_set_scale(options, 2e9F, NULL), PSD_INVALID);
}

/* Each sample is in one share, with its own label, packed or not. */
static void expect_shares(void)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t all = {0};

    for (uint32_t part = 0; part < 3; part++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t got = {0};
        uint64_t bad = 0;

        cr_assert_eq(psd_reader_options_set_share(options, part, 3, NULL), PSD_OK);
        cr_assert_eq(sample_read_all(path, options, &got, &bad, NULL), PSD_OK);
        cr_assert_gt(got.size, 0, "share %u", part);
        cr_assert(ps_buffer_append(&all, got.data, got.size));
    }
    cr_assert(ps_buffer_append(&all, "", 1));
    cr_expect_str_eq((const char *)all.data, SAMPLES);
}

Test(format_idx, shares_are_ranges_of_samples)
{
    write_both("images", "labels");
    expect_shares();
    write_both("images.gz", "labels.gz");
    expect_shares();
}

Test(format_idx, numbers_of_every_type_are_read)
{
    static const uint8_t i8[] = {0, 0, 9, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0xff};
    static const uint8_t i16[] = {0, 0, 11, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0xfe};
    static const uint8_t i32[] = {0, 0, 12, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0};
    /* 1.5, and a number that is none. */
    static const uint8_t f32[] = {0, 0, 13,   2,    0, 0, 0,    2,    0, 0,
                                  0, 1, 0x3f, 0xc0, 0, 0, 0x7f, 0xc0, 0, 0};
    static const uint8_t f64[] = {0, 0, 14,   2,    0, 0, 0, 1, 0, 0,
                                  0, 1, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0};

    cr_assert_eq(psd_reader_options_set_labels(options, "none", NULL), PSD_OK);
    sample_file_write(&dir, "i8", i8, sizeof i8, path);
    sample_read_expect(path, options, "none {0 0:-1}\n", 0);
    sample_file_write(&dir, "i16", i16, sizeof i16, path);
    sample_read_expect(path, options, "none {0 0:-2}\n", 0);
    sample_file_write(&dir, "i32", i32, sizeof i32, path);
    sample_read_expect(path, options, "none {0 0:65536}\n", 0);
    sample_file_write(&dir, "f64", f64, sizeof f64, path);
    sample_read_expect(path, options, "none {0 0:1.5}\n", 0);
    sample_file_write(&dir, "f32", f32, sizeof f32, path);
    sample_read_expect(path, options, "none {0 0:1.5}\n", 1);
    psd_reader_options_set_strict(options, true);
    sample_read_refused(path, options, PSD_INVALID,
                        "f32: byte 16: a number of the sample is not finite");
}

Test(format_idx, what_is_broken_is_refused)
{
    uint8_t bytes[sizeof IMAGES];

    write_both("images", "labels");
    sample_read_refused(labels_path, NULL, PSD_INVALID, "has one dimension");
    sample_file_write(&dir, "labels", LABELS, sizeof LABELS - 1, labels_path);
    sample_read_refused(path, NULL, PSD_DAMAGED, "labels ends early");
    sample_file_write(&dir, "labels", IMAGES, sizeof IMAGES, labels_path);
    sample_read_refused(path, NULL, PSD_INVALID, "4 labels of 2 numbers");
    sample_file_write(&dir, "labels", LABELS, sizeof LABELS, labels_path);
    sample_file_write(&dir, "images", IMAGES, sizeof IMAGES - 1, path);
    sample_read_refused(path, NULL, PSD_DAMAGED,
                        "images ends early: after byte 22 there are 1 of 2");
    cr_assert_eq(psd_reader_options_set_format(options, "idx", NULL), PSD_OK);
    sample_file_write(&dir, "images", IMAGES, 6, path);
    sample_read_refused(path, options, PSD_INVALID, "images is not an idx file");
    memcpy(bytes, IMAGES, sizeof bytes);
    memset(bytes + 8, 0xff, 4);
    sample_file_write(&dir, "images", bytes, sizeof bytes, path);
    sample_read_refused(path, options, PSD_INVALID, "dimension 2 is of 4294967295 numbers");
    sample_file_write(&dir, "images", IMAGES, 12, path);
    sample_read_refused(path, options, PSD_DAMAGED, "ends early");
}

static psd_status_t read_once(void *fixture)
{
    psd_status_t rc = PSD_OK;
    psd_reader_t *reader = NULL;
    const char *from = fixture;
    psd_samples_t *batch = psd_samples_new();

    if (batch == NULL) {
        return PSD_NOMEM;
    }
    rc = psd_reader_open(&from, 1, options, &reader, NULL);
    if (rc == PSD_OK) {
        rc = psd_reader_next(reader, 9, batch, NULL);
    }
    psd_reader_close(&reader);
    psd_samples_destroy(&batch);
    return rc;
}

Test(format_idx, memory_that_is_not_there_is_said)
{
    write_both("images", "labels");
    cr_assert_eq(psd_reader_options_set_labels(options, labels_path, NULL), PSD_OK);
    cr_assert_null(fail_alloc_sweep(read_once, path));
}
