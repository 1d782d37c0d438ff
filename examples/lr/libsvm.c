/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of libsvm text: words, then lines, then the file. */
#include "libsvm.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "number.h"

#define WORD_SIZE 64

typedef struct reader {
    FILE *stream;
    const char *name;
    const lr_slice_t *slice;
    lr_samples_t *samples;
    size_t line;
    bool kept;     /* the current example belongs to the slice */
    bool any;      /* the current example has an index before */
    uint32_t last; /* which is that */
    char word[WORD_SIZE];
    psd_error_t *err;
} reader_t;

/* What a word was followed by. */
typedef enum stop { STOP_BLANK, STOP_LINE, STOP_END, STOP_BAD } stop_t;

#define REFUSE(self, format, ...)                                            \
    psd_error_set((self)->err, PSD_INVALID, "%s:%zu: " format, (self)->name, \
                  (self)->line, __VA_ARGS__)

static bool
is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static stop_t
skip_comment(FILE *stream)
{
    int c = 0;

    do {
        c = getc_unlocked(stream);
    } while (c != '\n' && c != EOF);
    return c == '\n' ? STOP_LINE : STOP_END;
}

/* Reads the next word of the line, "" when there is none. A word that is too
 * long or has a byte that is no printable ASCII is set as far as it goes, for
 * the error, with STOP_BAD. */
static stop_t
next_word(reader_t *self)
{
    size_t n = 0;
    int c = 0;

    do {
        c = getc_unlocked(self->stream);
    } while (is_blank(c));
    while (c > ' ' && c < 0x7f && c != '#' && n < WORD_SIZE - 1) {
        self->word[n++] = (char)c;
        c = getc_unlocked(self->stream);
    }
    self->word[n] = '\0';
    if (c == '#') {
        return skip_comment(self->stream);
    }
    if (c == EOF) {
        return STOP_END;
    }
    if (c == '\n') {
        return STOP_LINE;
    }
    return is_blank(c) ? STOP_BLANK : STOP_BAD;
}

static psd_status_t
refuse_word(reader_t *self)
{
    if (strlen(self->word) == WORD_SIZE - 1) {
        return REFUSE(self, "word \"%.16s...\" is longer than %d bytes",
                      self->word, WORD_SIZE - 1);
    }
    return REFUSE(self,
                  "a byte behind \"%s\" is no printable ASCII character; "
                  "this is no libsvm text",
                  self->word);
}

static psd_status_t
take_label(reader_t *self)
{
    const char *word = self->word;
    int8_t label = 0;

    if (strcmp(word, "1") == 0 || strcmp(word, "+1") == 0) {
        label = 1;
    } else if (strcmp(word, "0") == 0 || strcmp(word, "-1") == 0) {
        label = -1;
    } else {
        return REFUSE(self, "label \"%s\" is not one of 0, 1, -1, +1", word);
    }
    self->kept =
        self->samples->n_seen % self->slice->n_parts == self->slice->part;
    self->any = false;
    self->samples->n_seen++;
    if (self->kept && !lr_samples_add(self->samples, label)) {
        return psd_error_set(self->err, PSD_NOMEM,
                             "%s:%zu: no memory for %zu examples", self->name,
                             self->line, self->samples->n);
    }
    return PSD_OK;
}

static psd_status_t
take_index(reader_t *self, const char *text, uint32_t *ret_index)
{
    uint64_t index = 0;

    if (!lr_number_u64(text, &index) || index > self->slice->index_max) {
        return REFUSE(self,
                      "index \"%s\" is not a whole number from 0 to %" PRIu32,
                      text, self->slice->index_max);
    }
    if (self->any && index <= self->last) {
        return REFUSE(self,
                      "index %" PRIu64 " follows %" PRIu32
                      "; the indices of a line must ascend",
                      index, self->last);
    }
    *ret_index = (uint32_t)index;
    return PSD_OK;
}

static psd_status_t
take_value(reader_t *self, uint32_t index, const char *text, float *ret_value)
{
    double value = 0;

    if (!lr_number_f64(text, &value) || !isfinite((float)value)) {
        return REFUSE(self,
                      "value \"%s\" of index %" PRIu32
                      " is not a finite number of type f32",
                      text, index);
    }
    *ret_value = (float)value;
    return PSD_OK;
}

static psd_status_t
take_entry(reader_t *self)
{
    char *colon = strchr(self->word, ':');
    uint32_t index = 0;
    float value = 0;
    psd_status_t rc = PSD_OK;

    if (colon == NULL) {
        return REFUSE(self, "\"%s\" is not of the form index:value",
                      self->word);
    }
    *colon = '\0';
    if (strcmp(self->word, "qid") == 0) {
        uint64_t qid = 0;

        if (!lr_number_u64(colon + 1, &qid)) {
            return REFUSE(self, "qid \"%s\" is not a whole number", colon + 1);
        }
        return PSD_OK;
    }
    rc = take_index(self, self->word, &index);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = take_value(self, index, colon + 1, &value);
    if (rc != PSD_OK) {
        return rc;
    }
    self->any = true;
    self->last = index;
    if (index > self->samples->greatest) {
        self->samples->greatest = index;
    }
    /* A zero is as good as absent. */
    if (self->kept && value != 0 &&
        !lr_samples_add_entry(self->samples, index, value)) {
        return psd_error_set(self->err, PSD_NOMEM,
                             "%s:%zu: no memory for %zu entries", self->name,
                             self->line, self->samples->n_entries);
    }
    return PSD_OK;
}

/* Reads one line; *ret_stop says whether it was the last. */
static psd_status_t
read_line(reader_t *self, stop_t *ret_stop)
{
    psd_status_t rc = PSD_OK;
    bool first = true;
    stop_t stop = STOP_BLANK;

    self->line++;
    while (stop == STOP_BLANK) {
        stop = next_word(self);
        if (stop == STOP_BAD) {
            return refuse_word(self);
        }
        if (self->word[0] == '\0') {
            continue;
        }
        rc = first ? take_label(self) : take_entry(self);
        if (rc != PSD_OK) {
            return rc;
        }
        first = false;
    }
    *ret_stop = stop;
    return PSD_OK;
}

static psd_status_t
read_all(reader_t *self)
{
    stop_t stop = STOP_LINE;

    while (stop != STOP_END) {
        psd_status_t rc = read_line(self, &stop);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (ferror(self->stream) != 0) {
        return psd_error_set(self->err, PSD_IO, "read %s: %s", self->name,
                             strerror(errno));
    }
    if (self->samples->n_seen == 0) {
        return psd_error_set(self->err, PSD_INVALID, "%s: has no example",
                             self->name);
    }
    return PSD_OK;
}

psd_status_t
lr_libsvm_read(FILE *stream,
               const char *name,
               const lr_slice_t *slice,
               lr_samples_t *ret_samples,
               psd_error_t *err)
{
    lr_samples_t samples = {0};
    reader_t self = {
        .stream = stream,
        .name = name,
        .slice = slice,
        .samples = &samples,
        .err = err,
    };
    psd_status_t rc = read_all(&self);

    if (rc != PSD_OK) {
        lr_samples_done(&samples);
        return rc;
    }
    *ret_samples = samples;
    return PSD_OK;
}

psd_status_t
lr_libsvm_load(const char *path,
               const lr_slice_t *slice,
               lr_samples_t *ret_samples,
               psd_error_t *err)
{
    FILE *stream = fopen(path, "re");
    psd_status_t rc = PSD_OK;

    if (stream == NULL) {
        return psd_error_set(err, PSD_IO, "open %s: %s", path, strerror(errno));
    }
    rc = lr_libsvm_read(stream, path, slice, ret_samples, err);
    (void)fclose(stream); /* nothing was written */
    return rc;
}
