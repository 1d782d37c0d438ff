/* SPDX-License-Identifier: Apache-2.0 */
/* proto: records of the three schemas written and read; protoc's own bytes;
 * what is broken. */
#include <sys/stat.h>
#include <unistd.h>

#include "data/records/records.h"
#include "sample_file.h"
#include "sample_read.h"
#include "sample_write.h"
#include "support/fail_alloc.h"

static temp_dir_t dir;
static char path[SAMPLE_PATH]; /* of the last name asked for */
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

TestSuite(format_proto, .init = set_up, .fini = tear_down);

static const char *at(const char *name)
{
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    return path;
}

static const char *const KINDS[] = {"proto", "proto-instance", "proto-input"};
#define N_KINDS (sizeof KINDS / sizeof KINDS[0])

Test(format_proto, samples_of_every_kind_come_back)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        sample_write_expect("libsvm", "1 0:1 18446744073709551614:2\n-2.5 7:9\n3\n", at("s"),
                            KINDS[i]);
        sample_read_expect(at("s"), NULL,
                           "1 {0 0:1 18446744073709551614:2}\n-2.5 {0 7:9}\n"
                           "3 {0}\n",
                           0);
        sample_write_expect("ps", "1;-2 1 2;3 9;\n-1;3 8 10;\n", at("b.gz"), KINDS[i]);
        sample_read_expect(at("b.gz"), NULL, "1 {-2 1:1 2:1} {3 9:1}\n-1 {3 8:1 10:1}\n", 0);
        sample_write_expect("csv", ",0.5,0\n,1,2\n", at("d.zst"), KINDS[i]);
        sample_read_expect(at("d.zst"), NULL, "none {0 0:0.5 1:0}\nnone {0 0:1 1:2}\n", 0);
        sample_write_expect("libsvm", "", at("e"), KINDS[i]);
        cr_assert_eq(psd_reader_options_set_format(options, "proto", NULL), PSD_OK);
        sample_read_expect(at("e"), options, "", 0);
    }
}

/* Messages as protoc's encoder made them, from the text in front of each. */
static const struct {
    bool long_heads;
    const char *bytes[3];
    size_t sizes[3];
    const char *samples;
} FOREIGN[] = {
    /* label: 1 feature_group { group_id: 7 feature_id: 3 feature_id: -1
     * value: 0.5 value: 2 } */
    {true,
     {"\x0d\0\0\x80\x3f\x12\x19\x08\x07\x10\x03\x10\xff\xff\xff\xff\xff\xff"
      "\xff\xff\xff\x01\x1d\0\0\0\x3f\x1d\0\0\0\x40"},
     {32},
     "1 {7 3:0.5 18446744073709551615:2}\n"},
    /* label_type: BINARY fea_type: SPARSE_BINARY fea_group { group_id: 2
     * fea_begin: 0 fea_end: 5 } fea_group { group_id: 4 fea_begin: 5
     * fea_end: 300 } num_ins: 1; then label: -1 fea_id: 1 fea_id: 5
     * fea_id: 299 ins_id: 9 */
    {false,
     {"\x08\x02\x10\x03\x1a\x06\x08\x02\x18\0\x20\x05\x1a\x07\x08\x04\x18\x05"
      "\x20\xac\x02\x20\x01",
      "\x0d\0\0\x80\xbf\x10\x01\x10\x05\x10\xab\x02\x20\x09"},
     {23, 14},
     "-1 {2 1:1} {4 5:1 299:1}\n"},
    /* slot { id: 0 val: 3 } slot { id: 12 key: 5 key: 300 val: 1 val: 2 } */
    {false,
     {"\x0a\x08\x08\0\x1a\x04\0\0\x40\x40\x0a\x11\x08\x0c\x12\x03\x05\xac\x02"
      "\x1a\x08\0\0\x80\x3f\0\0\0\x40"},
     {29},
     "3 {12 5:1 300:2}\n"},
};

Test(format_proto, what_others_encode_is_read)
{
    for (size_t i = 0; i < sizeof FOREIGN / sizeof FOREIGN[0]; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};

        for (int r = 0; r < 3 && FOREIGN[i].bytes[r] != NULL; r++) {
            cr_assert(ps_records_append(&file, FOREIGN[i].long_heads, FOREIGN[i].bytes[r],
                                        FOREIGN[i].sizes[r]));
        }
        sample_file_put(at("f"), file.data, file.size);
        sample_read_expect(at("f"), NULL, FOREIGN[i].samples, 0);
    }
}

Test(format_proto, unpacked_messages_may_have_long_heads)
{
    static const uint8_t record[] = {0x0a, 0x23, 0xd7, 0x3e, 5, 0, 0, 0,    0, 0, 0,    0,   0,
                                     0,    0,    0,    0,    0, 0, 0, 0x0d, 0, 0, 0x80, 0x3f};

    sample_file_put(at("f"), record, sizeof record);
    sample_read_expect(at("f"), NULL, "1\n", 0);
}

/* 200 samples, whose label is their number. */
static void write_many(const char *kind)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    for (int i = 0; i < 200; i++) {
        cr_assert(ps_buffer_print(&text, "%d %d:1\n", i, i));
    }
    sample_write_expect("libsvm", (const char *)text.data, at("many"), kind);
}

Test(format_proto, each_sample_is_in_one_share)
{
    for (size_t k = 0; k < N_KINDS; k++) {
        bool seen[200] = {false};
        size_t n = 0;

        write_many(KINDS[k]);
        for (uint32_t part = 0; part < 3; part++) {
            PSD_AUTO(psd_samples_destroy)
            psd_samples_t *batch = psd_samples_new();
            PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
            const char *from = at("many");

            cr_assert_eq(psd_reader_options_set_share(options, part, 3, NULL), PSD_OK);
            cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
            cr_assert_eq(psd_reader_next(reader, 200, batch, NULL), PSD_OK);
            cr_assert_gt(batch->n, 0);
            for (size_t i = 0; i < batch->n; i++, n++) {
                cr_assert_not(seen[(int)batch->labels[i]]);
                seen[(int)batch->labels[i]] = true;
            }
        }
        cr_expect_eq(n, 200);
    }
}

Test(format_proto, what_a_schema_cannot_hold_is_refused)
{
    sample_write_refused("ps", "1;1 1:2 9:2;2 5:2;\n", at("a"), "proto-instance",
                         "keys of the groups 2 and 1 overlap");
    cr_expect_neq(access(at("a"), F_OK), 0);
    sample_write_expect("ps", "1;1 1:2 9:2;2 5:2;\n", at("a"), "proto-input");
}

/* The file of one sample with `bytes` put at `offset`. */
static void write_broken(const char *kind, size_t offset, const char *bytes, size_t size)
{
    uint8_t file[512];
    size_t n = 0;

    sample_write_expect("libsvm", "1 1:2\n2 2:1\n", at("x"), kind);
    n = sample_file_get(at("x"), file, sizeof file);
    memcpy(file + offset, bytes, size);
    sample_file_put(at("x"), file, n);
}

Test(format_proto, what_is_broken_is_bad_or_refused)
{
    uint8_t file[512];
    size_t n = 0;

    /* A message that is none is a bad sample; the next one is read. */
    sample_write_expect("libsvm", "1 1:2\n2 2:1\n", at("x"), "proto-input");
    n = sample_file_get(at("x"), file, sizeof file);
    file[n - 1] ^= 0xff; /* zlib's sum of the second message */
    sample_file_put(at("x"), file, n);
    sample_read_expect(at("x"), NULL, "1 {0 1:2}\n", 1);
    psd_reader_options_set_strict(options, true);
    sample_read_refused(at("x"), options, PSD_INVALID, "its record cannot be unpacked");
    /* What is no head ends it: where the next one is, nobody knows. */
    write_broken("proto-input", 0, "\0", 1);
    cr_assert_eq(psd_reader_options_set_format(options, "proto", NULL), PSD_OK);
    sample_read_refused(at("x"), options, PSD_INVALID, "is not a file of records");
    write_broken("proto", 4, "\xff\xff\xff\xff", 4);
    sample_read_refused(at("x"), NULL, PSD_DAMAGED, "byte 0: not the head of a record of at most");
    n = sample_file_get(at("x"), file, sizeof file);
    write_broken("proto", 0, "\x0a", 1);
    sample_file_put(at("x"), file, 6);
    sample_read_refused(at("x"), options, PSD_INVALID, "is not a file of records");
    write_broken("proto", 8, "\xff", 1);
    sample_read_refused(at("x"), NULL, PSD_INVALID, "the first record is not a protobuf message");
    sample_write_expect("libsvm", "1 1:2\n2 2:1\n", at("x"), "proto");
    n = sample_file_get(at("x"), file, sizeof file);
    sample_file_put(at("x"), file, n - 1);
    sample_read_refused(at("x"), NULL, PSD_DAMAGED, "ends early");
}

Test(format_proto, groups_that_do_not_fit_their_file_are_bad)
{
    static const char both[] = "\x12\x0b\x08\x01\x10\x03\x1d\0\0\x80\x3f\x10"
                               "\x04";
    static const char infinite[] = "\x12\x09\x08\x01\x10\x03\x1d\0\0\x80\x7f";
    static const char good[] = "\x12\x09\x08\x01\x10\x03\x1d\0\0\x80\x3f";
    static const char dense[] = "\x12\x07\x08\x01\x1d\0\0\x80\x3f";
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};

    cr_assert(ps_records_append(&file, true, good, sizeof good - 1));
    cr_assert(ps_records_append(&file, true, both, sizeof both - 1));
    cr_assert(ps_records_append(&file, true, infinite, sizeof infinite - 1));
    cr_assert(ps_records_append(&file, true, dense, sizeof dense - 1));
    sample_file_put(at("f"), file.data, file.size);
    /* Values alone are dense ones, also beside others with keys. */
    sample_read_expect(at("f"), NULL, "none {1 3:1}\nnone {1 0:1}\n", 2);
}

Test(format_proto, what_can_be_read_but_once_is_refused)
{
    cr_assert_eq(psd_reader_options_set_format(options, "proto", NULL), PSD_OK);
    cr_assert_eq(mkfifo(at("pipe"), 0600), 0);
    sample_read_refused(at("pipe"), options, PSD_INVALID, "pipe is not a regular file");
    sample_read_refused("-", options, PSD_INVALID, "- is not a regular file");
}

Test(format_proto, a_message_of_empty_slots_is_bad)
{
    static const char one[] = "\x0a\x0b\x08\x0c\x12\x01\x05\x1a\x04\0\0\x80"
                              "\x3f";
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t message = {0};

    for (int i = 0; i < 100000; i++) {
        cr_assert(ps_buffer_append(&message, "\x0a", 2)); /* and its size, 0 */
    }
    cr_assert(ps_records_append(&file, true, one, sizeof one - 1));
    cr_assert(ps_records_append(&file, true, message.data, message.size));
    cr_assert(ps_records_append(&file, true, one, sizeof one - 1));
    sample_file_put(at("f"), file.data, file.size);
    sample_read_expect(at("f"), NULL, "none {12 5:1}\nnone {12 5:1}\n", 1);
    psd_reader_options_set_strict(options, true);
    sample_read_refused(at("f"), options, PSD_INVALID, "of memory");
}

/* Of what is said of groups, too. */
Test(format_proto, an_info_of_empty_groups_is_refused)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t message = {0};

    cr_assert(ps_buffer_append(&message, "\x08\x02\x10\x03", 4));
    for (int i = 0; i < 100000; i++) {
        cr_assert(ps_buffer_append(&message, "\x1a", 2));
    }
    cr_assert(ps_records_append(&file, true, message.data, message.size));
    sample_file_put(at("f"), file.data, file.size);
    sample_read_refused(at("f"), NULL, PSD_INVALID, "of memory");
}

/* 9000 keys of a byte each: the least of a message for the most memory. */
Test(format_proto, many_small_keys_fit)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t message = {0};
    const char *from = at("f");

    cr_assert(ps_buffer_append(&message, "\x0d\0\0\x80\x3f", 5));
    for (int i = 0; i < 9000; i++) {
        cr_assert(ps_buffer_append(&message, "\x10\x07", 2));
    }
    cr_assert(
        ps_records_append(&file, false, "\x08\x02\x10\x03\x1a\x06\x08\x02\x18\0\x20\x50", 12));
    cr_assert(ps_records_append(&file, false, message.data, message.size));
    sample_file_put(from, file.data, file.size);
    psd_reader_options_set_strict(options, true);
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(reader, 2, batch, NULL), PSD_OK);
    cr_assert_eq(batch->n, 1);
    cr_expect_eq(batch->n_entries, 9000);
}

Test(format_proto, ranges_are_bounded)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t message = {0};

    cr_assert(ps_buffer_append(&message, "\x08\x02\x10\x03", 4));
    for (int i = 0; i < 4098; i++) {
        cr_assert(ps_buffer_append(&message, "\x1a\x06\x08\x02\x18\0\x20\x05", 8));
    }
    cr_assert(ps_records_append(&file, false, message.data, message.size));
    sample_file_put(at("f"), file.data, file.size);
    sample_read_refused(at("f"), NULL, PSD_INVALID,
                        "it has ranges of 4098 groups; 4096 are allowed");
}

/* One sample of each of so many groups. */
static void add_groups(psd_samples_t *samples, int64_t n)
{
    for (int64_t id = 0; id < n; id++) {
        cr_assert(ps_samples_reserve(samples, 1, 1));
        ps_samples_begin(samples, 1);
        ps_samples_add(samples, (uint64_t)id, 1);
        ps_samples_end_group(samples, id);
        ps_samples_end(samples);
    }
}

Test(format_proto, a_sample_of_a_group_too_many_is_not_written)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *samples = psd_samples_new();
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *to = at("g");

    add_groups(samples, 4097);
    cr_assert_eq(psd_writer_open(to, "proto-instance", &writer, NULL), PSD_OK);
    cr_expect_eq(psd_writer_write(writer, samples, NULL), PSD_INVALID);
    cr_assert_eq(psd_writer_commit(writer, NULL), PSD_OK);
    cr_assert_eq(psd_reader_open(&to, 1, NULL, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(reader, 9999, samples, NULL), PSD_OK);
    cr_expect_eq(samples->n, 4096);
    cr_expect_eq(psd_reader_bad_count(reader), 0);
}

static psd_status_t go_around(void *fixture)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = at("f");
    psd_status_t rc = batch == NULL
                          ? PSD_NOMEM
                          : sample_write_text("ps", "1;1 1:1;7 7:2;\n", from, fixture, NULL);

    if (rc == PSD_OK) {
        rc = psd_reader_open(&from, 1, NULL, &reader, NULL);
    }
    return rc == PSD_OK ? psd_reader_next(reader, 9, batch, NULL) : rc;
}

Test(format_proto, memory_that_is_not_there_is_said)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        const char *wrong = fail_alloc_sweep(go_around, (void *)KINDS[i]);

        cr_assert_null(wrong, "%s: %s", KINDS[i], wrong);
    }
}
