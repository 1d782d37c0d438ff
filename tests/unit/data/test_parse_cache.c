/* SPDX-License-Identifier: Apache-2.0 */
/* data/feed/parse_cache.c, parse_block.c, and readers that use them: what is kept is
 * what was parsed, and nothing else is taken for it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/feed/parse_block.h"
#include "data/feed/parse_cache.h"
#include "sample_file.h"
#include "sample_read.h"
#include "support/fail_alloc.h"

#define SETTLED_NS 20000000

static temp_dir_t dir;
static char path[SAMPLE_PATH];
static psd_reader_options_t *options;

static void set_up(void)
{
    cr_assert(temp_dir_make(&dir));
    options = psd_reader_options_new();
    cr_assert_eq(psd_reader_options_set_cache(options, "beside", NULL), PSD_OK);
}

static void tear_down(void)
{
    psd_reader_options_destroy(&options);
    temp_dir_drop(&dir);
}

TestSuite(parse_cache, .init = set_up, .fini = tear_down);

/* When a file has lain there for so long that it gets a cache. */
static struct timespec settled_at(const struct stat *about)
{
    struct timespec at = about->st_ctim;

    at.tv_nsec += SETTLED_NS;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* Waits for that. */
static void let_settle(void)
{
    struct stat about;
    struct timespec until;

    cr_assert_eq(stat(path, &about), 0);
    until = settled_at(&about);
    while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

static void put(const char *name, const char *text)
{
    sample_file_write(&dir, name, text, strlen(text), path);
    let_settle();
}

/* The caches in a directory; ret_path: the last of them. */
static size_t find_caches(const char *directory, char ret_path[SAMPLE_PATH])
{
    DIR *list = opendir(directory);
    size_t n = 0;

    cr_assert_not_null(list);
    for (struct dirent *at = readdir(list); at != NULL; at = readdir(list)) {
        if (strstr(at->d_name, ".parsed") != NULL) {
            (void)snprintf(ret_path, SAMPLE_PATH, "%s/%s", directory, at->d_name);
            n++;
        }
    }
    (void)closedir(list);
    return n;
}

/* The samples are these, and the cache is the file that it was before: one that
 * is made anew is another. */
static void expect_not_parsed(const char *samples, uint64_t n_bad)
{
    char cache[SAMPLE_PATH];
    struct stat before;
    struct stat after;

    cr_assert_eq(find_caches(dir.path, cache), 1);
    cr_assert_eq(stat(cache, &before), 0);
    sample_read_expect(path, options, samples, n_bad);
    cr_assert_eq(stat(cache, &after), 0);
    cr_expect_eq(before.st_ino, after.st_ino);
    cr_expect_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
}

static void expect_warning(const char *samples, const char *why)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    const char *from = path;

    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    do {
        cr_assert_eq(psd_reader_next(reader, 3, batch, NULL), PSD_OK);
        for (size_t i = 0; i < batch->n; i++) {
            sample_case_print(batch, i, &text);
        }
    } while (batch->n > 0);
    cr_expect_str_eq((const char *)text.data, samples);
    if (why == NULL) {
        cr_expect_null(psd_reader_warning(reader));
        return;
    }
    cr_assert_not_null(psd_reader_warning(reader));
    cr_expect(strstr(psd_reader_warning(reader), why) != NULL, "%s", psd_reader_warning(reader));
}

Test(parse_cache, the_second_pass_takes_what_is_kept)
{
    static const struct {
        const char *name;
        const char *format;
        const char *text;
        const char *samples;
        uint64_t n_bad;
    } cases[] = {
        {"libsvm.gz", "libsvm", "1 qid:7 1:2 5000000000:1\n-1 3:4\nx\n0\n",
         "1?7 {0 1:2 5000000000:1}\n-1 {0 3:4}\n0 {0}\n", 1},
        {"ps", "ps", "1; 3 1 7; -9 5;\n; \n-1; 4 1;\n1; 3 4\n",
         "1 {3 1:1 7:1} {-9 5:1}\n-1 {4 1:1}\n1 {3 4:1}\n", 1},
        {"vw", "vw", "1 2 .5 tag|a 7:2\n-1 'x|a 9\n", NULL, 0},
        {"csv", "csv", "1,2,3\n4,5,6\n", "1 {0 0:2 1:3}\n4 {0 0:5 1:6}\n", 0},
        {"ones.csv", "csv", "1,1,1\n4,1,1\n", "1 {0 0:1 1:1}\n4 {0 0:1 1:1}\n", 0},
        {"uci", "uci", "3\n9\n3\n2 1 5\n2 9 1\n3 2 2\n",
         "none {0}\nnone {0 0:5 8:1}\nnone {0 1:2}\n", 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t plain = {0};
        const char *samples = cases[i].samples;
        char cache[SAMPLE_PATH];
        uint64_t bad = 0;

        put(cases[i].name, cases[i].text);
        cr_assert_eq(psd_reader_options_set_format(options, cases[i].format, NULL), PSD_OK);
        if (samples == NULL) {
            cr_assert_eq(sample_read_all(path, NULL, &plain, &bad, NULL), PSD_OK);
            samples = (const char *)plain.data;
        }
        sample_read_expect(path, options, samples, cases[i].n_bad);
        expect_not_parsed(samples, cases[i].n_bad);
        cr_assert_eq(find_caches(dir.path, cache), 1);
        cr_assert_eq(unlink(cache), 0);
    }
}

/* That a cache is read, and not the input, shows where they differ: its last
 * value becomes 77, and its sum what it is then. */
static void change_values(const char *cache)
{
    uint8_t bytes[4096];
    size_t size = sample_file_get(cache, bytes, sizeof bytes);
    uint64_t about_size = 0;
    ps_parse_head_t head;
    uint8_t *block = NULL;
    float value = 77;

    memcpy(&about_size, bytes + 8, sizeof about_size);
    block = bytes + 16 + about_size;
    memcpy(&head, block, sizeof head);
    memcpy(block + sizeof head + head.body_size - sizeof value, &value, sizeof value);
    head.sum = ps_parse_block_sum(&head, block + sizeof head);
    memcpy(block, &head, sizeof head);
    sample_file_put(cache, bytes, size);
}

Test(parse_cache, the_input_is_not_parsed_again)
{
    char cache[SAMPLE_PATH];

    put("a", "1 1:2\n0 3:4\n");
    sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:4}\n", 0);
    cr_assert_eq(find_caches(dir.path, cache), 1);
    change_values(cache);
    sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:77}\n", 0);
    /* Another length, another file, other settings: parsed. */
    psd_reader_options_set_merge(options, true);
    sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:4}\n", 0);
    cr_expect_eq(find_caches(dir.path, cache), 2);
    psd_reader_options_set_merge(options, false);
    sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:77}\n", 0);
    put("a", "1 1:2\n0 3:5\n"); /* another inode */
    sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:5}\n", 0);
    cr_expect_eq(find_caches(dir.path, cache), 2);
}

Test(parse_cache, who_may_not_read_the_input_may_not_read_it)
{
    static const struct {
        mode_t input;
        mode_t mask;
        mode_t cache;
    } modes[] = {{0666, 0022, 0644}, {0644, 0002, 0644}, {0640, 0022, 0640}, {0600, 0022, 0600}};
    char cache[SAMPLE_PATH];
    struct stat about;

    put("a", "1 1:2\n");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        (void)umask(modes[i].mask);
        cr_assert_eq(chmod(path, modes[i].input), 0);
        let_settle();
        sample_read_expect(path, options, "1 {0 1:2}\n", 0);
        cr_assert_eq(find_caches(dir.path, cache), 1);
        cr_assert_eq(stat(cache, &about), 0);
        cr_expect_eq(about.st_mode & 0777, modes[i].cache);
    }
}

Test(parse_cache, an_input_that_changed_is_parsed)
{
    struct timespec times[2] = {{1000, 0}, {1000, 0}};

    put("a", "1 1:2\n");
    sample_read_expect(path, options, "1 {0 1:2}\n", 0);
    sample_file_put(path, "1 1:2\n0 3:4\n", 12); /* size */
    let_settle();
    sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:4}\n", 0);
    sample_file_put(path, "1 1:3\n0 3:4\n", 12);
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0); /* its time */
    sample_read_expect(path, options, "1 {0 1:3}\n0 {0 3:4}\n", 0);
}

/* Is there one, to be made, for who read nothing before then? */
static bool has_cache_since(const ps_parser_t *parser, struct timespec since)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *warning = psd_error_new();
    PSD_AUTO(ps_parse_cache_close) ps_parse_cache_t *cache = NULL;
    const ps_parse_what_t what = {.path = path,
                                  .directory = PS_PARSE_BESIDE,
                                  .parser = parser,
                                  .share = {0, 1},
                                  .since = since};

    cr_assert_eq(ps_parse_cache_open(&what, false, &cache, warning, NULL), PSD_OK);
    cr_expect_eq(psd_error_status(warning), PSD_OK);
    cr_assert(cache == NULL || !ps_parse_cache_is_read(cache));
    return cache != NULL;
}

/* Else it could be written in place, to the same size, and keep its times. */
Test(parse_cache, an_input_that_changed_a_moment_before_has_none)
{
    ps_parser_t parser = sample_text_parser("libsvm");
    char words[SAMPLE_PATH];
    struct stat about;
    struct timespec settled;

    put("words", "a\n");
    (void)snprintf(words, sizeof words, "%s", path);
    put("a", "1 1:2\n");
    cr_assert_eq(stat(path, &about), 0);
    settled = settled_at(&about);
    cr_expect(has_cache_since(&parser, settled));
    cr_expect(!has_cache_since(&parser, about.st_ctim));
    cr_expect(!has_cache_since(&parser, (struct timespec){0, 999999999}));
    parser.vocabulary_path = words;
    cr_expect(has_cache_since(&parser, settled));
    cr_assert_eq(chmod(words, 0600), 0); /* behind it */
    cr_expect(!has_cache_since(&parser, settled));
}

Test(parse_cache, shares_have_caches_of_their_own)
{
    char cache[SAMPLE_PATH];
    char directory[SAMPLE_PATH];

    put("a", "1 1:2\n0 3:4\n1 5:6\n");
    (void)snprintf(directory, sizeof directory, "%s/kept", dir.path);
    cr_assert_eq(mkdir(directory, 0700), 0);
    cr_assert_eq(psd_reader_options_set_cache(options, directory, NULL), PSD_OK);
    for (int pass = 0; pass < 2; pass++) {
        cr_assert_eq(psd_reader_options_set_share(options, 0, 2, NULL), PSD_OK);
        sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:4}\n", 0);
        cr_assert_eq(psd_reader_options_set_share(options, 1, 2, NULL), PSD_OK);
        sample_read_expect(path, options, "1 {0 5:6}\n", 0);
    }
    cr_expect_eq(find_caches(directory, cache), 2);
    cr_expect_eq(find_caches(dir.path, cache), 0);
}

#define MANY 1200

/* Labels 0 .. 1199, and what they are read as. */
static void put_many(ps_buffer_t *ret_samples)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    for (int i = 0; i < MANY; i++) {
        cr_assert(ps_buffer_print(&text, "%d %d:3\n", i, i));
        cr_assert(ps_buffer_print(ret_samples, "%d {0 %d:3}\n", i, i));
    }
    cr_assert(ps_buffer_print(&text, "x\n"));
    sample_file_write(&dir, "many", text.data, text.size, path);
    let_settle();
}

Test(parse_cache, wherever_it_is_damaged_all_samples_come_once)
{
    static uint8_t bytes[65536];
    PSD_AUTO(ps_buffer_done) ps_buffer_t samples = {0};
    char cache[SAMPLE_PATH];
    size_t size = 0;

    put_many(&samples);
    sample_read_expect(path, options, (const char *)samples.data, 1);
    cr_assert_eq(find_caches(dir.path, cache), 1);
    size = sample_file_get(cache, bytes, sizeof bytes);
    cr_assert_lt(size, sizeof bytes);
    for (size_t k = 0; k < 40; k++) {
        size_t place = size * k / 40;

        bytes[place] ^= 0x10;
        sample_file_put(cache, bytes, size);
        bytes[place] ^= 0x10;
        sample_read_expect(path, options, (const char *)samples.data, 1);
        sample_file_put(cache, bytes, place); /* cut off there */
        sample_read_expect(path, options, (const char *)samples.data, 1);
        expect_not_parsed((const char *)samples.data, 1); /* made anew */
    }
    bytes[size / 2] ^= 1;
    sample_file_put(cache, bytes, size);
    expect_warning((const char *)samples.data, "is damaged at byte");
    expect_warning((const char *)samples.data, NULL);
}

/* Its file is long enough for it, of holes. */
Test(parse_cache, an_end_that_nobody_has_memory_for_is_damage)
{
    static uint8_t bytes[4096];
    ps_parse_head_t head;
    uint64_t about_size = 0;
    char cache[SAMPLE_PATH];
    size_t size = 0;
    size_t at = 0;

    put("a", "1 1:2\n0 3:4\n");
    sample_read_expect(path, options, "1 {0 1:2}\n0 {0 3:4}\n", 0);
    cr_assert_eq(find_caches(dir.path, cache), 1);
    size = sample_file_get(cache, bytes, sizeof bytes);
    memcpy(&about_size, bytes + 8, sizeof about_size);
    at = 16 + about_size;
    memcpy(&head, bytes + at, sizeof head);
    at += sizeof head + head.body_size;
    memcpy(&head, bytes + at, sizeof head);
    cr_assert_eq(head.n_samples, 0);
    head.body_size = UINT64_C(1) << 39;
    memcpy(bytes + at, &head, sizeof head);
    sample_file_put(cache, bytes, size);
    cr_assert_eq(truncate(cache, (off_t)1 << 40), 0);
    expect_warning("1 {0 1:2}\n0 {0 3:4}\n", "is damaged at byte");
    expect_not_parsed("1 {0 1:2}\n0 {0 3:4}\n", 0);
}

Test(parse_cache, what_is_read_in_part_is_not_kept)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    char cache[SAMPLE_PATH];
    const char *from = path;

    put("a", "1 1:2\n0 3:4\n");
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(reader, 1, batch, NULL), PSD_OK);
    psd_reader_close(&reader);
    psd_reader_options_set_max_lines(options, 1);
    sample_read_expect(path, options, "1 {0 1:2}\n", 0);
    psd_reader_options_set_max_lines(options, 0);
    psd_reader_options_set_strict(options, true);
    cr_assert_eq(psd_reader_options_set_format(options, "libsvm", NULL), PSD_OK);
    put("a", "1 1:2\nx\n");
    sample_read_refused(path, options, PSD_INVALID, "a:2:");
    cr_expect_eq(find_caches(dir.path, cache), 0);
}

Test(parse_cache, two_who_make_one_at_once_leave_a_whole_one)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *one = NULL;
    PSD_AUTO(psd_reader_close) psd_reader_t *other = NULL;
    const char *from = path;

    put("a", "1 1:2\n0 3:4\n");
    cr_assert_eq(psd_reader_open(&from, 1, options, &one, NULL), PSD_OK);
    cr_assert_eq(psd_reader_open(&from, 1, options, &other, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(one, 1, batch, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(other, 9, batch, NULL), PSD_OK);
    cr_assert_eq(psd_reader_next(one, 9, batch, NULL), PSD_OK);
    cr_expect_null(psd_reader_warning(one));
    cr_expect_null(psd_reader_warning(other));
    psd_reader_close(&one);
    psd_reader_close(&other);
    expect_not_parsed("1 {0 1:2}\n0 {0 3:4}\n", 0);
}

Test(parse_cache, a_cache_that_cannot_be_made_is_warned_of)
{
    put("a", "1 1:2\n");
    cr_assert_eq(psd_reader_options_set_cache(options, "/nowhere/at/all", NULL), PSD_OK);
    expect_warning("1 {0 1:2}\n", "cannot write /nowhere/at/all/a.");
}

Test(parse_cache, bad_lines_are_told_again)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();

    put("a", "1 1:2\nx\n0 3:4\ny\n");
    cr_assert_eq(psd_reader_options_set_format(options, "libsvm", NULL), PSD_OK);
    for (int pass = 0; pass < 2; pass++) {
        PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
        const char *from = path;

        cr_assert_eq(psd_reader_open(&from, 1, options, &reader, NULL), PSD_OK);
        cr_assert_eq(psd_reader_next(reader, 9, batch, NULL), PSD_OK);
        cr_expect_eq(batch->n, 2);
        cr_expect_eq(psd_reader_bad_count(reader), 2);
        cr_expect(strstr(psd_reader_bad(reader, 0), "a:2: label") != NULL);
        cr_expect(strstr(psd_reader_bad(reader, 1), "a:4: label") != NULL);
        cr_expect_null(psd_reader_bad(reader, 2));
        cr_expect_eq(psd_reader_labels(reader), PSD_LABELS_CLASS);
    }
}

/* With a cache that is there, or without. */
static psd_status_t read_cached(void *fixture)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    const char *from = path;
    psd_status_t rc = batch == NULL ? PSD_NOMEM : PSD_OK;
    char cache[SAMPLE_PATH];
    bool whole = true;

    if (fixture != NULL && find_caches(dir.path, cache) > 0) {
        cr_assert_eq(unlink(cache), 0);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_open(&from, 1, options, &reader, NULL);
    }
    while (rc == PSD_OK) {
        rc = psd_reader_next(reader, 100, batch, NULL);
        if (rc == PSD_OK && psd_samples_count(batch) == 0) {
            break;
        }
    }
    whole = rc == PSD_OK && psd_reader_sample_count(reader) == MANY;
    cr_assert(whole || rc == PSD_NOMEM);
    /* Making a cache may fail for want of memory, and the reading not. */
    return rc == PSD_OK && psd_reader_warning(reader) != NULL ? PSD_NOMEM : rc;
}

Test(parse_cache, no_memory_is_an_error_or_a_warning)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t samples = {0};
    const char *why = NULL;

    put_many(&samples);
    why = fail_alloc_sweep(read_cached, path);
    cr_assert_null(why, "made: %s", why);
    cr_assert_eq(read_cached(NULL), PSD_OK);
    why = fail_alloc_sweep(read_cached, NULL);
    cr_assert_null(why, "read: %s", why);
}
