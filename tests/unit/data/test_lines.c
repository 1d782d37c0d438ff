/* SPDX-License-Identifier: Apache-2.0 */
/* data/text/lines.h, data/streams/source.h: every line once, whatever it lies in and however
 * it is shared out. */
#include "data/text/lines.h"

#include <criterion/criterion.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "sample_file.h"

#define N_LINES 2000
#define TEXT_SIZE ((size_t)4 << 20)

static temp_dir_t dir;

static void make_dir(void)
{
    cr_assert(temp_dir_make(&dir));
}

static void drop_dir(void)
{
    temp_dir_drop(&dir);
}

TestSuite(lines, .init = make_dir, .fini = drop_dir);

/* Lines "0", "1", … each followed by some x, a few of them long; the last one
 * without an end. Returns the size. */
static size_t make_text(char *text)
{
    ps_rng_t rng = {3};
    size_t size = 0;

    for (int i = 0; i < N_LINES; i++) {
        size_t more = (size_t)ps_rng_below(&rng, i % 100 == 50 ? 100000 : 900);

        size += (size_t)snprintf(text + size, 16, "%d ", i);
        memset(text + size, 'x', more);
        size += more;
        text[size++] = '\n';
        cr_assert_lt(size, TEXT_SIZE - 200000);
    }
    return size - 1;
}

/* Counts how often each line comes in this share. */
static void count_lines(const char *path, ps_share_t share, unsigned counts[N_LINES])
{
    ps_lines_t lines = {0};
    ps_line_t line = {0};
    psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_lines_open(&lines, path, share, err), PSD_OK, "%s", psd_error_text(err));
    for (;;) {
        unsigned number = 0;

        cr_assert_eq(ps_lines_next(&lines, &line, err), PSD_OK, "%s", psd_error_text(err));
        if (line.text == NULL) {
            break;
        }
        cr_assert_eq(line.text[line.size], '\n');
        cr_assert_eq(sscanf(line.text, "%u", &number), 1);
        cr_assert_lt(number, N_LINES);
        counts[number]++;
    }
    ps_lines_done(&lines);
    psd_error_destroy(&err);
}

Test(lines, each_line_belongs_to_one_share)
{
    static const char *const names[] = {"a", "a.gz", "a.zst"};
    static const uint32_t shares[] = {1, 2, 3, 7, 64};
    char *text = ps_alloc(TEXT_SIZE, 1);
    size_t size = make_text(text);
    char path[SAMPLE_PATH];

    for (size_t n = 0; n < 3; n++) {
        sample_file_write(&dir, names[n], text, size, path);
        for (size_t s = 0; s < 5; s++) {
            unsigned counts[N_LINES] = {0};

            for (uint32_t part = 0; part < shares[s]; part++) {
                count_lines(path, (ps_share_t){part, shares[s]}, counts);
            }
            for (int i = 0; i < N_LINES; i++) {
                cr_assert_eq(counts[i], 1, "%s: line %d of %u shares: %u", names[n], i, shares[s],
                             counts[i]);
            }
        }
    }
    ps_free(text);
}

/* Every way to cut a small file. */
Test(lines, cuts_at_any_byte_lose_nothing)
{
    static const char text[] = "0\n1 xx\n2\n3 x\n4 xxxxxx\n5";
    char path[SAMPLE_PATH];

    sample_file_write(&dir, "a", text, sizeof text - 1, path);
    for (uint32_t n_parts = 1; n_parts < 40; n_parts++) {
        unsigned counts[N_LINES] = {0};

        for (uint32_t part = 0; part < n_parts; part++) {
            count_lines(path, (ps_share_t){part, n_parts}, counts);
        }
        for (int i = 0; i < 6; i++) {
            cr_assert_eq(counts[i], 1, "line %d of %u shares", i, n_parts);
        }
    }
}

/* Takes a line and says where it stands. */
static void expect_place(ps_lines_t *lines, char first, const char *place)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_line_t line = {0};

    cr_assert_eq(ps_lines_next(lines, &line, NULL), PSD_OK);
    cr_expect_eq(line.text[0], first);
    cr_assert(ps_lines_place(lines, &text));
    cr_expect_not_null(strstr((const char *)text.data, place), "%s", (const char *)text.data);
}

Test(lines, places_are_lines_or_bytes_of_a_share_from_the_middle)
{
    static const char text[] = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    char path[SAMPLE_PATH];
    ps_lines_t lines = {0};

    sample_file_write(&dir, "a", text, sizeof text - 1, path);
    cr_assert_eq(ps_lines_open(&lines, path, (ps_share_t){0, 2}, NULL), PSD_OK);
    expect_place(&lines, '0', "/a:1");
    expect_place(&lines, '1', "/a:2");
    ps_lines_done(&lines);
    cr_assert_eq(ps_lines_open(&lines, path, (ps_share_t){1, 2}, NULL), PSD_OK);
    expect_place(&lines, '5', "/a: byte 10");
    expect_place(&lines, '6', "/a: byte 12");
    ps_lines_done(&lines);
}

Test(lines, a_byte_order_mark_is_passed_over)
{
    char path[SAMPLE_PATH];
    ps_lines_t lines = {0};
    ps_line_t line = {0};

    sample_file_write(&dir, "a",
                      "\xef\xbb\xbf"
                      "1\n2\n",
                      7, path);
    cr_assert_eq(ps_lines_open(&lines, path, (ps_share_t){0, 1}, NULL), PSD_OK);
    cr_assert_eq(ps_lines_peek(&lines, 1, 100, &line, NULL), PSD_OK);
    cr_expect(line.size == 2 && line.text[0] == '1');
    cr_assert_eq(ps_lines_next(&lines, &line, NULL), PSD_OK);
    cr_expect(line.size == 1 && line.text[0] == '1' && line.first);
    ps_lines_done(&lines);
}

Test(lines, zeros_behind_gzip_are_no_data)
{
    uint8_t packed[4096] = {0};
    char path[SAMPLE_PATH];
    unsigned counts[N_LINES] = {0};
    size_t n = 0;

    sample_file_write(&dir, "a.gz", "0\n1\n", 4, path);
    n = sample_file_get(path, packed, 1000);
    sample_file_put(path, packed, n + 512);
    count_lines(path, (ps_share_t){0, 1}, counts);
    cr_expect(counts[0] == 1 && counts[1] == 1);
}

Test(lines, what_was_peeked_at_comes_again)
{
    static const char text[] = "a\nbb\nccc\ne";
    char path[SAMPLE_PATH];
    ps_lines_t lines = {0};
    ps_line_t line = {0};

    sample_file_write(&dir, "a", text, sizeof text - 1, path);
    cr_assert_eq(ps_lines_open(&lines, path, (ps_share_t){0, 1}, NULL), PSD_OK);
    cr_assert_eq(ps_lines_peek(&lines, 2, 1000, &line, NULL), PSD_OK);
    cr_expect_eq(line.size, 5);
    cr_expect_eq(memcmp(line.text, text, 5), 0);
    cr_assert_eq(ps_lines_peek(&lines, 100, 1000, &line, NULL), PSD_OK);
    cr_expect_eq(line.size, 11, "a last line gets its end");
    cr_assert_eq(ps_lines_peek(&lines, 100, 3, &line, NULL), PSD_OK);
    cr_expect_eq(line.size, 5, "the lines that begin within 3 bytes");
    cr_assert_eq(ps_lines_next(&lines, &line, NULL), PSD_OK);
    cr_expect(line.first && line.size == 1 && line.text[0] == 'a');
    ps_lines_done(&lines);
}

Test(lines, an_empty_file_has_none)
{
    char path[SAMPLE_PATH];
    ps_lines_t lines = {0};
    ps_line_t line = {.size = 1};

    sample_file_write(&dir, "a.gz", "", 0, path);
    cr_assert_eq(ps_lines_open(&lines, path, (ps_share_t){0, 1}, NULL), PSD_OK);
    cr_assert_eq(ps_lines_peek(&lines, 5, 5, &line, NULL), PSD_OK);
    cr_expect_eq(line.size, 0);
    cr_assert_eq(ps_lines_next(&lines, &line, NULL), PSD_OK);
    cr_expect_null(line.text);
    ps_lines_done(&lines);
}

Test(lines, a_line_without_end_is_refused)
{
    char *text = ps_alloc(PS_LINE_MAX + ((size_t)4 << 20), 1);
    char path[SAMPLE_PATH];
    ps_lines_t lines = {0};
    ps_line_t line = {0};
    psd_error_t *err = psd_error_new();

    cr_assert_not_null(text);
    sample_file_write(&dir, "a.zst", text, PS_LINE_MAX + ((size_t)4 << 20), path);
    cr_assert_eq(ps_lines_open(&lines, path, (ps_share_t){0, 1}, NULL), PSD_OK);
    cr_expect_eq(ps_lines_next(&lines, &line, err), PSD_INVALID);
    cr_expect_not_null(strstr(psd_error_text(err), "longer than 67108864"), "%s",
                       psd_error_text(err));
    ps_lines_done(&lines);
    psd_error_destroy(&err);
    ps_free(text);
}

/* ---- packed data ---- */

/* Reads all lines; the status with which that ends. */
static psd_status_t read_all(const char *path, psd_error_t *err)
{
    ps_lines_t lines = {0};
    ps_line_t line = {.text = ""};
    psd_status_t rc = ps_lines_open(&lines, path, (ps_share_t){0, 1}, err);

    while (rc == PSD_OK && line.text != NULL) {
        rc = ps_lines_next(&lines, &line, err);
    }
    ps_lines_done(&lines);
    return rc;
}

Test(lines, members_behind_each_other_are_one_input)
{
    static const char *const names[] = {"a.gz", "a.zst"};

    for (size_t i = 0; i < 2; i++) {
        uint8_t packed[4096];
        char path[SAMPLE_PATH];
        unsigned counts[N_LINES] = {0};
        size_t n = 0;
        size_t m = 0;

        sample_file_write(&dir, names[i], "0\n1", 3, path);
        n = sample_file_get(path, packed, sizeof packed);
        sample_file_write(&dir, names[i], "\n2\n", 3, path);
        m = sample_file_get(path, packed + n, sizeof packed - n);
        sample_file_put(path, packed, n + m);
        count_lines(path, (ps_share_t){0, 1}, counts);
        cr_expect(counts[0] == 1 && counts[1] == 1 && counts[2] == 1);
    }
}

/* Cut anywhere, or with a byte changed anywhere, it is told, or every line is
 * there (bytes of a head that say nothing of the data may change). */
Test(lines, cut_and_changed_packed_data_is_noticed)
{
    static const char *const names[] = {"a.gz", "a.zst"};
    static const char text[] = "1 2:3 4:5\n0 1:1 9:8\n1 2:3 4:5\n";

    for (size_t i = 0; i < 2; i++) {
        uint8_t packed[4096];
        char path[SAMPLE_PATH];
        psd_error_t *err = psd_error_new();
        size_t n = 0;

        sample_file_write(&dir, names[i], text, sizeof text - 1, path);
        n = sample_file_get(path, packed, sizeof packed);
        for (size_t cut = 4; cut < n; cut++) {
            sample_file_put(path, packed, cut);
            cr_expect_eq(read_all(path, err), PSD_DAMAGED, "%s cut at %zu", names[i], cut);
            cr_expect_not_null(strstr(psd_error_text(err), path));
            psd_error_clear(err);
        }
        packed[n - 1] ^= 1; /* gzip: of its length; zstd: of its data */
        sample_file_put(path, packed, n);
        if (i == 0) {
            cr_expect_eq(read_all(path, err), PSD_DAMAGED);
        }
        psd_error_destroy(&err);
    }
}

Test(lines, what_is_not_there_or_no_file_is_said)
{
    psd_error_t *err = psd_error_new();
    ps_lines_t lines = {0};

    cr_expect_eq(ps_lines_open(&lines, "/nowhere/x", (ps_share_t){0, 1}, err), PSD_IO);
    cr_expect_str_eq(psd_error_text(err), "cannot open /nowhere/x: No such file or directory");
    psd_error_clear(err);
    cr_expect_eq(ps_lines_open(&lines, dir.path, (ps_share_t){0, 1}, err), PSD_INVALID);
    psd_error_destroy(&err);
}

/* First bytes of real files of xz 5.4, bzip2 1.0 and zip 3.0. */
Test(lines, what_is_packed_otherwise_is_named)
{
    static const struct {
        const char *name;
        const char *bytes;
        size_t size;
    } files[] = {{"xz", "\xfd\x37zXZ\0\0\4\xe6\xd6\xb4\x46", 12},
                 {"bzip2", "BZh91AY&SY\x9a\x8d", 12},
                 {"zip", "PK\3\4\x0a\0\0\0\0\0\x4c\x5a", 12}};

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        psd_error_t *err = psd_error_new();
        ps_lines_t lines = {0};
        char path[SAMPLE_PATH];
        char expected[SAMPLE_PATH + 100];

        (void)snprintf(path, sizeof path, "%s/f", dir.path);
        sample_file_put(path, files[i].bytes, files[i].size);
        cr_expect_eq(ps_lines_open(&lines, path, (ps_share_t){0, 1}, err), PSD_INVALID);
        (void)snprintf(expected, sizeof expected, "%s is packed by %s; allowed: plain, gzip, zstd",
                       path, files[i].name);
        cr_expect_str_eq(psd_error_text(err), expected);
        sample_file_put(path, files[i].bytes, 3); /* that is nothing special */
        psd_error_clear(err);
        cr_expect_eq(ps_lines_open(&lines, path, (ps_share_t){0, 1}, err), PSD_OK, "%s",
                     psd_error_text(err));
        ps_lines_done(&lines);
        psd_error_destroy(&err);
    }
}
