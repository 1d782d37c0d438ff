/* SPDX-License-Identifier: Apache-2.0 */
/* Random samples, written in one format and from there in another, come back as
 * they were: each pair of the formats that are written, with what both hold. */
#include <unistd.h>

#include "sample_file.h"
#include "sample_read.h"

static temp_dir_t dir;

static void set_up(void)
{
    /* Hundreds of files are flushed: where that waits for no disk. */
    if (access("/dev/shm", W_OK) == 0) {
        cr_assert_eq(setenv("TMPDIR", "/dev/shm", 1), 0);
    }
    cr_assert(temp_dir_make(&dir));
}

static void tear_down(void)
{
    temp_dir_drop(&dir);
}

TestSuite(format_pairs, .init = set_up, .fini = tear_down);

/* What a format can hold. */
typedef struct kind {
    const char *name;
    const char *ending; /* of what is read */
    bool groups;
    bool heads;      /* weights, initial predictions, tags */
    bool queries;    /* and one label each */
    bool no_entries; /* samples without any */
    bool unlabelled;
    bool ranges; /* groups lie in ranges of keys */
    bool counts; /* values are whole, and there are no labels */
} kind_t;

static const kind_t KINDS[] = {
    {.name = "libsvm", .ending = "", .queries = true, .no_entries = true},
    {.name = "ps", .ending = "", .groups = true, .unlabelled = true},
    {.name = "vw",
     .ending = "",
     .groups = true,
     .heads = true,
     .no_entries = true,
     .unlabelled = true},
    {.name = "csv", .ending = "", .unlabelled = true},
    {.name = "binary", .ending = ".y.info", .groups = true, .no_entries = true, .unlabelled = true},
    {.name = "proto", .ending = "", .groups = true, .no_entries = true, .unlabelled = true},
    {.name = "proto-instance",
     .ending = "",
     .groups = true,
     .no_entries = true,
     .unlabelled = true,
     .ranges = true},
    {.name = "proto-input", .ending = "", .groups = true, .no_entries = true, .unlabelled = true},
    {.name = "lda-c", .ending = "", .no_entries = true, .unlabelled = true, .counts = true},
    {.name = "uci", .ending = "", .no_entries = true, .unlabelled = true, .counts = true},
};
#define N_KINDS (sizeof KINDS / sizeof KINDS[0])
#define SAMPLES 40

static uint64_t state;

/* splitmix64 */
static uint64_t next_random(uint64_t below)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static bool is(const kind_t *a, const kind_t *b, const char *name)
{
    return strcmp(a->name, name) == 0 || strcmp(b->name, name) == 0;
}

static float random_value(void)
{
    float value = (float)next_random(100000) / 64 - 700;

    return value == 0 ? 1 : value;
}

static float random_count(void)
{
    return (float)(next_random(1 << 24) + 1);
}

/* Entries of one group, by ascending keys; not 0, for vw has no such ones. */
static void add_group(psd_samples_t *to, int64_t id, psd_entries_t entries, size_t n, bool counts)
{
    /* 61 bits for vw; ranges of groups do not overlap. */
    uint64_t key = (uint64_t)id << 40;

    cr_assert(ps_samples_reserve(to, 1, n));
    for (size_t e = 0; e < n; e++) {
        key += entries == PSD_ENTRIES_DENSE ? 0 : next_random(1000) + 1;
        ps_samples_add(to, entries == PSD_ENTRIES_DENSE ? e : key,
                       entries == PSD_ENTRIES_BINARY ? 1
                       : counts                      ? random_count()
                                                     : random_value());
    }
    ps_samples_end_group(to, id);
}

static void add_sample(psd_samples_t *to, const kind_t *a, const kind_t *b, psd_entries_t entries,
                       bool labelled)
{
    bool groups = a->groups && b->groups && entries != PSD_ENTRIES_DENSE;
    bool counts = a->counts || b->counts;
    bool heads = a->heads && b->heads && labelled;
    bool empty = a->no_entries && b->no_entries && entries != PSD_ENTRIES_DENSE && !groups;
    size_t i = to->n;

    cr_assert(ps_samples_reserve(to, 1, 0));
    ps_samples_begin(to, labelled ? random_value() : NAN);
    if (heads) {
        to->weights[i] = random_value();
        to->initials[i] = random_value();
        cr_assert(ps_samples_tag(to, "it's", next_random(5)));
    }
    if (a->queries && b->queries) {
        to->queries[i] = next_random(9);
    }
    if (!groups) {
        size_t n = next_random(6) + (empty ? 0 : 1);

        add_group(to, 0, entries, entries == PSD_ENTRIES_DENSE ? 5 : n, counts);
    } else {
        for (int64_t id = (int64_t)next_random(4); id < 9; id += (int64_t)next_random(5) + 1) {
            add_group(to, id, entries, next_random(6) + 1, counts);
        }
    }
    ps_samples_end(to);
}

static void write_samples(const psd_samples_t *samples, const kind_t *kind, const char *path)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(psd_writer_close) psd_writer_t *writer = NULL;

    cr_assert_eq(psd_writer_open(path, kind->name, &writer, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_eq(psd_writer_write(writer, samples, err), PSD_OK, "%s: %s", kind->name,
                 psd_error_text(err));
    cr_assert_eq(psd_writer_commit(writer, err), PSD_OK, "%s", psd_error_text(err));
}

static void read_samples(psd_samples_t *ret_samples, const kind_t *kind, psd_entries_t entries,
                         const char *path)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    PSD_AUTO(psd_reader_options_destroy)
    psd_reader_options_t *options = psd_reader_options_new();
    char whole[SAMPLE_PATH];
    const char *from = whole;

    (void)snprintf(whole, sizeof whole, "%s%s", path, kind->ending);
    if (access(whole, F_OK) != 0) { /* one matrix without labels */
        (void)snprintf(whole, sizeof whole, "%s.info", path);
    }
    cr_assert_eq(psd_reader_options_set_format(options, kind->name, err), PSD_OK);
    cr_assert_eq(psd_reader_options_set_bits(options, 61, err), PSD_OK);
    cr_assert_eq(psd_reader_options_set_entries(options, entries, err), PSD_OK);
    psd_reader_options_set_constant(options, false);
    psd_reader_options_set_strict(options, true);
    cr_assert_eq(psd_reader_open(&from, 1, options, &reader, err), PSD_OK, "%s: %s", kind->name,
                 psd_error_text(err));
    cr_assert_eq(psd_reader_next(reader, SAMPLES + 1, ret_samples, err), PSD_OK, "%s: %s",
                 kind->name, psd_error_text(err));
}

static void expect_same(const psd_samples_t *got, const psd_samples_t *want, const char *from,
                        const char *to)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t left = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t right = {0};

    cr_assert_eq(got->n, want->n, "%s to %s: %zu samples", from, to, got->n);
    for (size_t i = 0; i < want->n; i++) {
        left.size = 0;
        right.size = 0;
        sample_case_print(got, i, &left);
        sample_case_print(want, i, &right);
        cr_assert_str_eq((const char *)left.data, (const char *)right.data, "%s to %s: %s is %s",
                         from, to, (const char *)right.data, (const char *)left.data);
    }
    /* The texts above are rounded; these are the bits. */
    cr_assert_eq(got->n_entries, want->n_entries);
    cr_assert_arr_eq(got->values, want->values, want->n_entries * sizeof *want->values);
    cr_assert_arr_eq(got->keys, want->keys, want->n_entries * sizeof *want->keys);
}

/* Entries that both formats have. */
static bool both_hold(const kind_t *a, const kind_t *b, psd_entries_t entries)
{
    if (entries == PSD_ENTRIES_DENSE) {
        return true;
    }
    return !is(a, b, "csv");
}

static void go(const kind_t *a, const kind_t *b, psd_entries_t entries, bool labelled)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *first = psd_samples_new();
    PSD_AUTO(psd_samples_destroy) psd_samples_t *middle = psd_samples_new();
    PSD_AUTO(psd_samples_destroy) psd_samples_t *last = psd_samples_new();
    char one[SAMPLE_PATH];
    char other[SAMPLE_PATH];
    static int n;

    (void)snprintf(one, sizeof one, "%s/%d", dir.path, n++);
    (void)snprintf(other, sizeof other, "%s/%d", dir.path, n++);
    first->entries = entries;
    for (size_t i = 0; i < SAMPLES; i++) {
        add_sample(first, a, b, entries, labelled);
    }
    write_samples(first, a, one);
    read_samples(middle, a, entries, one);
    write_samples(middle, b, other);
    read_samples(last, b, middle->entries, other);
    expect_same(last, first, a->name, b->name);
}

Test(format_pairs, every_pair_gives_the_same_samples)
{
    static const psd_entries_t entries[] = {PSD_ENTRIES_SPARSE, PSD_ENTRIES_BINARY,
                                            PSD_ENTRIES_DENSE};

    for (size_t k = 0; k < N_KINDS * N_KINDS * 3; k++) {
        const kind_t *a = &KINDS[k / 3 % N_KINDS];
        const kind_t *b = &KINDS[k / 3 / N_KINDS];

        if (!both_hold(a, b, entries[k % 3])) {
            continue;
        }
        state = k;
        if (!a->counts && !b->counts) {
            go(a, b, entries[k % 3], true);
        }
        if (a->unlabelled && b->unlabelled) {
            go(a, b, entries[k % 3], false);
        }
    }
}
