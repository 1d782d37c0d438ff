/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idx - arrays of numbers, the format of MNIST's images and labels
 *
 * Two zeros, the type of the numbers, the count of dimensions; the length of
 * each dimension as 32 bits, the highest byte first; the numbers in the order
 * of rows, their highest byte first. The first dimension counts the samples,
 * each of which is dense. Their labels are a file of one dimension, beside the
 * images and of the same name but for its words "images" and "idx3", or named
 * by the caller. A share is a range of samples; of packed files, what lies in
 * front of it is unpacked, too.
 */
#include "data/formats/feed.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/streams/window.h"

#define DIMENSIONS_MAX 16
#define SAMPLE_MAX ((size_t)1 << 24) /* numbers */
#define UNLABELLED "none"

/* The bytes after the head of a file. */
typedef struct array {
    ps_byte_window_t window;
    uint8_t type;
    size_t width;       /* of a number */
    uint64_t n_samples; /* the first dimension */
    size_t n_each;      /* numbers of a sample */
    int n_dimensions;
} array_t;

struct ps_feed {
    const ps_parser_t *parser;
    array_t images;
    array_t labels;
    bool labelled;
    uint64_t left; /* samples */
};

/* 0: there is no such type. */
static size_t width_of(uint8_t type)
{
    switch (type) {
    case 0x08: /* u8 */
    case 0x09: /* i8 */
        return 1;
    case 0x0b: /* i16 */
        return 2;
    case 0x0c: /* i32 */
    case 0x0d: /* f32 */
        return 4;
    case 0x0e: /* f64 */
        return 8;
    default:
        return 0;
    }
}

static bool knows(const char *path, const uint8_t *head, size_t size)
{
    (void)path;
    return size >= 8 && head[0] == 0 && head[1] == 0 && width_of(head[2]) != 0 && head[3] >= 1 &&
           head[3] <= DIMENSIONS_MAX;
}

static uint64_t read_be(const uint8_t *at, size_t width)
{
    uint64_t value = 0;

    for (size_t i = 0; i < width; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

/* The lengths of the dimensions after the first. */
static psd_status_t take_dimensions(array_t *self, psd_error_t *err)
{
    const char *path = ps_source_path(self->window.source);
    uint64_t n = 1;

    for (int i = 0; i < self->n_dimensions; i++) {
        const uint8_t *bytes = NULL;
        psd_status_t rc = ps_window_take(&self->window, 4, &bytes, err);
        uint64_t length = rc == PSD_OK ? read_be(bytes, 4) : 0;

        if (rc != PSD_OK) {
            return rc;
        }
        if (i == 0) {
            self->n_samples = length;
            continue;
        }
        if (length == 0 || length > SAMPLE_MAX || n * length > SAMPLE_MAX) {
            return psd_error_set(err, PSD_INVALID,
                                 "%s: dimension %d is of %" PRIu64
                                 " numbers; a sample has 1 .. %zu",
                                 path, i + 1, length, SAMPLE_MAX);
        }
        n *= length;
    }
    self->n_each = (size_t)n;
    return PSD_OK;
}

static psd_status_t open_array(array_t *self, const char *path, psd_error_t *err)
{
    const uint8_t *head = NULL;
    size_t size = 0;
    psd_status_t rc = ps_window_open(&self->window, path, err);

    if (rc == PSD_OK) {
        rc = ps_window_peek(&self->window, 8, &head, &size, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!knows(path, head, size)) {
        return psd_error_set(
            err, PSD_INVALID,
            "%s is not an idx file: it does not begin with 0, 0, a type and a count of dimensions",
            path);
    }
    self->type = head[2];
    self->width = width_of(self->type);
    self->n_dimensions = head[3];
    rc = ps_window_skip(&self->window, 4, err);
    return rc == PSD_OK ? take_dimensions(self, err) : rc;
}

/* Puts `to` in place of the last `from` of the text, if it is there. */
static bool put_word(char *text, size_t size, const char *from, const char *to)
{
    char *at = NULL;
    char rest[PATH_MAX];

    for (char *next = strstr(text, from); next != NULL; next = strstr(next + 1, from)) {
        at = next;
    }
    if (at == NULL) {
        return false;
    }
    (void)snprintf(rest, sizeof rest, "%s", at + strlen(from));
    (void)snprintf(at, size - (size_t)(at - text), "%s%s", to, rest);
    return true;
}

/* Ends the text, of `length` bytes, with each of the packings in turn. */
static bool find_packed(char *text, size_t size, size_t length)
{
    static const char *const packings[] = {"", ".gz", ".zst"};

    for (size_t i = 0; i < sizeof packings / sizeof packings[0]; i++) {
        (void)snprintf(text + length, size - length, "%s", packings[i]);
        if (access(text, F_OK) == 0) {
            return true;
        }
    }
    text[length] = '\0';
    return false;
}

/* The name of the labels that belong to images of that name. */
static psd_status_t find_labels(const char *path, char ret_path[PATH_MAX], psd_error_t *err)
{
    const char *slash = strrchr(path, '/');
    size_t start = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    size_t length = strlen(path);

    if (length + 16 > PATH_MAX) {
        return psd_error_set(err, PSD_INVALID, "%s: a path of %zu bytes", path, length);
    }
    memcpy(ret_path, path, length + 1);
    if (!put_word(ret_path + start, PATH_MAX - start, "images", "labels")) {
        return psd_error_set(err, PSD_INVALID,
                             "%s: the file of its labels is not known, as its name has no "
                             "\"images\"; name the file, or say \"" UNLABELLED "\"",
                             path);
    }
    (void)put_word(ret_path + start, PATH_MAX - start, "idx3", "idx1");
    length = strlen(ret_path);
    if (length > 3 && strcmp(ret_path + length - 3, ".gz") == 0) {
        length -= 3;
    } else if (length > 4 && strcmp(ret_path + length - 4, ".zst") == 0) {
        length -= 4;
    }
    return find_packed(ret_path, PATH_MAX, length)
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "%s: there is no file of labels %s beside it; name the file, or say "
                               "\"" UNLABELLED "\"",
                               path, ret_path);
}

static psd_status_t open_labels(ps_feed_t *self, const char *path, psd_error_t *err)
{
    char beside[PATH_MAX];
    const char *labels = self->parser->labels_path;
    psd_status_t rc = PSD_OK;

    if (labels != NULL && strcmp(labels, UNLABELLED) == 0) {
        return PSD_OK;
    }
    if (labels == NULL) {
        rc = find_labels(path, beside, err);
        labels = beside;
    }
    if (rc == PSD_OK) {
        rc = open_array(&self->labels, labels, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->labels.n_each != 1 || self->labels.n_samples != self->images.n_samples) {
        return psd_error_set(err, PSD_INVALID,
                             "%s has %" PRIu64 " labels of %zu numbers; %s "
                             "wants %" PRIu64 " of one",
                             labels, self->labels.n_samples, self->labels.n_each, path,
                             self->images.n_samples);
    }
    self->labelled = true;
    return PSD_OK;
}

static psd_status_t go_to(array_t *self, uint64_t sample, psd_error_t *err)
{
    return ps_window_skip(&self->window, sample * self->n_each * self->width, err);
}

static void close_feed(ps_feed_t **self_p)
{
    ps_feed_t *self = *self_p;

    if (self != NULL) {
        ps_window_done(&self->images.window);
        ps_window_done(&self->labels.window);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t open_both(ps_feed_t *self, const char *path, psd_error_t *err)
{
    psd_status_t rc = open_array(&self->images, path, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (self->images.n_dimensions == 1) {
        return psd_error_set(err, PSD_INVALID,
                             "%s has one dimension, as labels have; name the "
                             "file of what they label",
                             path);
    }
    return open_labels(self, path, err);
}

static psd_status_t open_feed(const ps_parser_t *parser, const char *path, ps_share_t share,
                              ps_feed_t **ret_feed, psd_error_t *err)
{
    PSD_AUTO(close_feed) ps_feed_t *self = ps_alloc(1, sizeof *self);
    ps_rows_t rows = {0};
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
    }
    self->parser = parser;
    rc = open_both(self, path, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rows = ps_rows_of(parser, share, self->images.n_samples);
    self->left = rows.end - rows.first;
    rc = go_to(&self->images, rows.first, err);
    if (rc == PSD_OK && self->labelled) {
        rc = go_to(&self->labels, rows.first, err);
    }
    if (rc == PSD_OK) {
        *ret_feed = self;
        self = NULL;
    }
    return rc;
}

/* One number, as it is stored. */
static float number_at(uint8_t type, const uint8_t *at, size_t width)
{
    uint64_t bits = read_be(at, width);
    uint32_t low = (uint32_t)bits;
    float narrow = 0;
    double wide = 0;

    switch (type) {
    case 0x09:
        return (float)(int8_t)low;
    case 0x0b:
        return (float)(int16_t)low;
    case 0x0c:
        return (float)(int32_t)low;
    case 0x0d:
        memcpy(&narrow, &low, sizeof narrow);
        return narrow;
    case 0x0e:
        memcpy(&wide, &bits, sizeof wide);
        return (float)wide;
    default:
        return (float)low;
    }
}

/* The numbers of one sample; false: not all are finite. */
static bool take_numbers(const array_t *array, const uint8_t *bytes, float scale, float *ret_values)
{
    bool finite = true;

    if (array->type == 0x08) {
        for (size_t i = 0; i < array->n_each; i++) {
            ret_values[i] = (float)bytes[i] * scale;
        }
        return true; /* 255 times a scale: checked where it is set */
    }
    for (size_t i = 0; i < array->n_each; i++) {
        ret_values[i] = number_at(array->type, bytes + i * array->width, array->width) * scale;
        finite = finite && isfinite(ret_values[i]);
    }
    return finite;
}

static psd_status_t take_label(ps_feed_t *self, float *ret_label, psd_error_t *err)
{
    const uint8_t *bytes = NULL;
    psd_status_t rc = PSD_OK;

    if (!self->labelled) {
        return PSD_OK;
    }
    rc = ps_window_take(&self->labels.window, self->labels.width, &bytes, err);
    if (rc == PSD_OK && !take_numbers(&self->labels, bytes, 1, ret_label)) {
        return psd_error_set(err, PSD_INVALID, "%s: byte %" PRIu64 ": a label is not finite",
                             ps_source_path(self->labels.window.source),
                             self->labels.window.offset - self->labels.width);
    }
    return rc;
}

static psd_status_t next_sample(ps_feed_t *self, psd_samples_t *samples, psd_error_t *err)
{
    array_t *images = &self->images;
    size_t n = images->n_each;
    const uint8_t *bytes = NULL;
    float label = NAN;
    psd_status_t rc = PSD_OK;

    if (self->left == 0) {
        return PSD_OK;
    }
    if (!ps_samples_reserve(samples, 1, n)) {
        return ps_sample_no_memory(n * sizeof(float), err);
    }
    self->left--;
    rc = ps_window_take(&images->window, n * images->width, &bytes, err);
    if (rc == PSD_OK) {
        rc = take_label(self, &label, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!take_numbers(images, bytes, self->parser->scale, samples->values + samples->n_entries)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s: byte %" PRIu64 ": a number of the sample is "
                             "not finite",
                             ps_source_path(images->window.source),
                             images->window.offset - n * images->width);
    }
    ps_samples_begin(samples, label);
    for (size_t i = 0; i < n; i++) {
        samples->keys[samples->n_entries + i] = i;
    }
    samples->n_entries += n;
    ps_samples_end_group(samples, 0);
    ps_samples_end(samples);
    return PSD_OK;
}

static uint64_t taken(const ps_feed_t *self)
{
    return ps_source_taken(self->images.window.source);
}

static const ps_feed_kind_t FEED = {
    .has_rows = true,
    .needs_no_parsing = true,
    .knows = knows,
    .open = open_feed,
    .next = next_sample,
    .taken = taken,
    .close = close_feed,
};

const ps_sample_format_t ps_sample_format_idx = {
    .name = "idx",
    .about = "images, and labels in a file beside them   (MNIST's format)",
    .entries = PSD_ENTRIES_DENSE,
    .feed = &FEED,
};
