/* SPDX-License-Identifier: Apache-2.0 */
/* lib/data's formats without lines: and those with lines when they are packed
 * or not known beforehand: no file hurts; samples hang together.
 * PSD_FUZZ_FORMAT names the format (auto, too), else the first byte chooses it.
 * Of binary ones the rest is a file after the other, two bytes of length in
 * front of each. The files lie in memory; where the system has none for them,
 * an input is passed over. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/formats/feed.h"
#include "data/streams/samples.h"

#define BATCH 16
#define SAMPLES_MAX 4096 /* of an input; then it is long enough */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *choose(uint8_t byte)
{
    const char *found[256] = {"auto"};
    const char *named = getenv("PSD_FUZZ_FORMAT");
    size_t n = 1;

    for (size_t i = 0; ps_sample_format_at(i) != NULL; i++) {
        if (ps_sample_format_at(i)->feed != NULL) {
            found[n++] = ps_sample_format_at(i)->name;
        }
    }
    return named != NULL ? named : found[byte % n];
}

static void check(const psd_samples_t *samples)
{
    assert(samples->groups[samples->n] == samples->n_groups);
    assert(samples->starts[samples->n_groups] == samples->n_entries);
    for (size_t i = 0; i < samples->n; i++) {
        assert(samples->groups[i] <= samples->groups[i + 1]);
        assert(isnan(samples->labels[i]) || isfinite(samples->labels[i]));
    }
    for (size_t e = 0; e < samples->n_entries; e++) {
        assert(isfinite(samples->values[e]));
    }
}

static void read_all(const char *path, psd_reader_options_t *options)
{
    PSD_AUTO(psd_samples_destroy) psd_samples_t *batch = psd_samples_new();
    PSD_AUTO(psd_reader_close) psd_reader_t *reader = NULL;
    size_t n = 0;

    if (batch == NULL || psd_reader_open(&path, 1, options, &reader, NULL) != PSD_OK) {
        return;
    }
    while (n < SAMPLES_MAX && psd_reader_next(reader, BATCH, batch, NULL) == PSD_OK &&
           psd_samples_count(batch) > 0) {
        check(batch);
        n += psd_samples_count(batch);
    }
}

/* Whole, and a share of three with groups merged. */
static void read_twice(const char *path, const char *format, const char *labels)
{
    PSD_AUTO(psd_reader_options_destroy)
    psd_reader_options_t *options = psd_reader_options_new();

    if (options == NULL || psd_reader_options_set_format(options, format, NULL) != PSD_OK ||
        psd_reader_options_set_labels(options, labels, NULL) != PSD_OK) {
        return; /* no memory is the machine's fault, not the input's */
    }
    read_all(path, options);
    psd_reader_options_set_merge(options, true);
    if (psd_reader_options_set_share(options, 1, 3, NULL) == PSD_OK) {
        read_all(path, options);
    }
}

/* ---- binary: files with names ---- */

static char directory[] = "/dev/shm/fuzz_feed.XXXXXX";
static const char *const PARTS[] = {"a.info",  "a.offset", "a.index",
                                    "a.value", "a.y.info", "a.y.value"};
#define N_PARTS (sizeof PARTS / sizeof PARTS[0])

static void name_part(size_t i, char ret_path[64])
{
    (void)snprintf(ret_path, 64, "%s/%s", directory, PARTS[i]);
}

static void remove_directory(void)
{
    char path[64];

    for (size_t i = 0; i < N_PARTS; i++) {
        name_part(i, path);
        (void)unlink(path);
    }
    (void)rmdir(directory);
}

static bool write_part(const char *path, const uint8_t *data, size_t size)
{
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fwrite(data, 1, size, file) == size;

    if ((file != NULL && fclose(file) != 0) || !ok) {
        perror(path);
        return false;
    }
    return true;
}

static void read_parts(const uint8_t *data, size_t size)
{
    static bool made;
    char path[64];

    if (!made && mkdtemp(directory) == NULL) {
        perror(directory);
        return;
    }
    if (!made && atexit(remove_directory) != 0) {
        return;
    }
    made = true;
    for (size_t i = 0; i < N_PARTS; i++) {
        size_t length = size < 2 ? 0 : (size_t)(data[0] | data[1] << 8);

        data += size < 2 ? size : 2;
        size -= size < 2 ? size : 2;
        length = length < size ? length : size;
        name_part(i, path);
        if (!write_part(path, data, length)) {
            return;
        }
        data += length;
        size -= length;
    }
    name_part(0, path);
    read_twice(path, "binary", NULL);
}

/* ---- one file ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *format = NULL;
    char path[64];
    int fd = -1;

    if (size == 0) {
        return 0;
    }
    format = choose(data[0]);
    if (strcmp(format, "binary") == 0) {
        read_parts(data + 1, size - 1);
        return 0;
    }
    fd = memfd_create("feed", 0);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1)) {
        perror("fuzz_feed: a file in memory");
        (void)close(fd);
        return 0;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    /* Labels of idx: none, or the same file. */
    read_twice(path, format, data[0] >= 128 ? path : "none");
    (void)close(fd);
    return 0;
}
